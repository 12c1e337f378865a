/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Applies rules to processes: attributes, unless a user set them, and the limit of GPU memory.
 * Rules match process info, which is read by src/procinfo.
 */
#include <string.h>
#include <sys/epoll.h>

#include "base/log.h"
#include "daemon/control.h"

#define TRIES_MAX 6 /* the pauses are 1, 2, 4 ... 64 s, then always 64 s */

static void ask_later(struct gp_proc *proc)
{
	unsigned pause_s = 1u << (proc->tries < TRIES_MAX ? proc->tries++ : TRIES_MAX);

	proc->again_ns = gp_monotonic_ns() + pause_s * GP_NS_PER_S;
}

/* Asks for process info. If that fails now, the process stays as it is until the next try. */
static void ask(struct gp_control *c, struct gp_proc *proc)
{
	uint32_t wants = gp_config_wants(c->config);
	int r;

	if (proc->asked || gp_proc_ended(proc))
		return;
	if (gp_set_by_ordinary_user(proc))
		wants |= GP_PROCINFO_USER;
	r = gp_procinfo_ask(c->info, proc->pid, proc->start_time, wants, 0);
	proc->asked = !r;
	proc->again_ns = 0;
	if (!r)
		return;
	ask_later(proc);
	if (r != -ETIMEDOUT) /* process.silent is logged */
		gp_log(GP_LOG_WARN, "procinfo.ask-failed", "pid=%d errno=%d", proc->pid, -r);
}

static void limit_memory(struct gp_proc *proc, uint64_t limit, uint8_t on_limit)
{
	proc->memory_limit = limit;
	proc->hold_at_limit = on_limit == GP_MEMORY_HOLD;
}

/* The default limit applies until the matching rule is known. */
void gp_process_arrived(struct gp_control *c, struct gp_proc *proc)
{
	limit_memory(proc, c->config->memory_limit, c->config->on_memory_limit);
	if (c->config->nrules || gp_set_by_ordinary_user(proc))
		ask(c, proc);
}

static void apply(struct gp_control *c, struct gp_proc *proc, const struct gp_procinfo *info,
		  const struct gp_match *match)
{
	struct gp_assignment entry = {.pid = proc->pid,
				      .start_time = proc->start_time,
				      .source = GP_ATTR_BY_RULE,
				      .rule = (unsigned)(match->rule + 1),
				      .attr = match->attr};

	limit_memory(proc, match->memory_limit, match->on_memory_limit);
	proc->given = match->attr;
	if (gp_set_by_ordinary_user(proc))
		gp_bounds_apply(c, proc, info);
	if (proc->source == GP_ATTR_BY_USER)
		return; /* a user has set them meanwhile, and users override rules */
	gp_proc_assign(proc, match->rule >= 0 ? GP_ATTR_BY_RULE : GP_ATTR_BY_DEFAULT, proc->set_by);
	proc->rule = entry.rule;
	if (match->rule >= 0)
		gp_assignments_put(c->assignments, &entry,
				   NULL); /* so that its tasks on other devices get them too */
	if (gp_task_attr_same(&proc->attr, &match->attr))
		return;
	proc->attr = match->attr;
	gp_log(GP_LOG_INFO, "process.rule-applied", "pid=%d rule=%u class=%s%s%s", proc->pid,
	       entry.rule, gp_class_name(proc->attr.class), match->clamped ? " clamped" : "",
	       match->incomplete ? " incomplete" : "");
	gp_log_shared(proc);
	gp_apply_attr(c, NULL, proc);
}

static int on_procinfo(sd_event_source *source, int fd, uint32_t events, void *arg)
{
	struct gp_control *c = arg;
	struct gp_procinfo *info;
	uint64_t token;

	(void)source;
	(void)fd;
	(void)events;
	while (!gp_procinfo_take(c->info, &info, &token)) {
		struct gp_proc *proc = gp_procs_find(&c->procs, info->pid, info->start_time);
		struct gp_match match;

		if (proc)
			proc->asked = false;
		if (proc && proc->ask_again) {
			proc->ask_again = false;
			ask(c, proc);
		} else if (proc && info->gone) {
			if (!gp_proc_ended(proc)) /* the process lives, so it could not be read */
				ask_later(proc);
		} else if (proc) {
			gp_config_match(c->config, info, &match);
			apply(c, proc, info, &match);
			if (match.incomplete)
				ask_later(proc);
		}
		gp_procinfo_drop(info);
	}
	return 0;
}

static uid_t account(void *arg, uid_t uid)
{
	struct gp_control *c = arg;

	return gp_account_of(&c->accounts, uid);
}

int gp_rules_begin(struct gp_control *c, struct gp_error *err)
{
	const struct gp_procinfo_limits limits = {.account = account, .arg = c};
	int fd, r = gp_procinfo_new(&limits, &c->info, &fd);

	if (!r)
		r = sd_event_add_io(c->loop, NULL, fd, EPOLLIN, on_procinfo, c);
	return r < 0 ? gp_fail(err, r, "cannot start reading process info: %s", gp_error_name(r))
		     : 0;
}

void gp_rules_retry(struct gp_control *c, uint64_t now_ns)
{
	for (struct gp_proc *proc = c->procs.first; proc; proc = proc->next)
		if (proc->again_ns && now_ns >= proc->again_ns)
			ask(c, proc);
}

void gp_rules_reapply(struct gp_control *c)
{
	gp_assignments_drop_rules(c->assignments);
	for (struct gp_proc *proc = c->procs.first; proc; proc = proc->next)
		if (proc->ntasks || gp_set_by_ordinary_user(proc)) {
			proc->ask_again =
				proc->asked; /* the new rules may need more process info */
			ask(c, proc);
		}
}
