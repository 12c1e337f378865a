/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bounds for attributes that users set: what a rule gives the process, or the user's limit. They
 * are checked when they are set, and again later: the rule may become known only then, and a reload
 * or restart may change rules and limits.
 */
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>

#include "base/log.h"
#include "config/rights.h"
#include "daemon/control.h"

#define ENTRY_MAX  ((size_t)1 << 16) /* bytes of a passwd entry */
#define GROUPS_MAX 1024

bool gp_set_by_ordinary_user(const struct gp_proc *proc)
{
	return proc->source == GP_ATTR_BY_USER && proc->set_by != GP_BY_ADMIN;
}

/* Uses the groups of a login, because the client may have disconnected. */
struct gp_limit gp_bounds_of(const struct gp_config *config, uid_t uid)
{
	struct passwd entry, *user = NULL;
	gid_t group[GROUPS_MAX];
	int n = GROUPS_MAX;
	char *room = malloc(ENTRY_MAX);

	if (!room || getpwuid_r(uid, &entry, room, ENTRY_MAX, &user) || !user ||
	    getgrouplist(user->pw_name, user->pw_gid, group, &n) < 0)
		n = 0;
	free(room);
	return gp_config_limit(config, uid, group, (uint32_t)n);
}

static int find_user(const uid_t *user, unsigned n, uid_t uid)
{
	for (unsigned i = 0; i < n; i++)
		if (user[i] == uid)
			return (int)i;
	return -1;
}

int gp_bounds_users(const struct gp_control *c, struct gp_reading *r)
{
	unsigned most = 1;

	for (const struct gp_proc *p = c->procs.first; p; p = p->next)
		most += gp_set_by_ordinary_user(p);
	r->user = calloc(most, sizeof *r->user);
	r->limit = calloc(most, sizeof *r->limit);
	if (!r->user || !r->limit) {
		free(r->user);
		free(r->limit);
		return -ENOMEM;
	}
	for (const struct gp_proc *p = c->procs.first; p; p = p->next)
		if (gp_set_by_ordinary_user(p) && find_user(r->user, r->nusers, p->set_by) < 0)
			r->user[r->nusers++] = p->set_by;
	return 0;
}

bool gp_bounds_set(struct gp_control *c, const uid_t *user, const struct gp_limit *limit,
		   unsigned n)
{
	bool all = true;

	for (struct gp_proc *p = c->procs.first; p; p = p->next) {
		int i = gp_set_by_ordinary_user(p) ? find_user(user, n, p->set_by) : -1;

		if (i >= 0)
			p->limit = limit[i];
		else if (gp_set_by_ordinary_user(
				 p)) /* without groups, until these were looked up */
			p->limit = gp_config_limit(c->config, p->set_by, NULL, 0);
		all &= i >= 0 || !gp_set_by_ordinary_user(p);
	}
	return all;
}

void gp_bounds_renew(struct gp_control *c)
{
	struct gp_reading r = {0};

	if (gp_bounds_users(c, &r))
		return;
	for (unsigned i = 0; i < r.nusers; i++)
		r.limit[i] = gp_bounds_of(c->config, r.user[i]);
	gp_bounds_set(c, r.user, r.limit, r.nusers);
	free(r.user);
	free(r.limit);
}

void gp_bounds_apply(struct gp_control *c, struct gp_proc *proc, const struct gp_procinfo *info)
{
	struct gp_limit limit = proc->limit;
	struct gp_assignment entry;

	if (!gp_assignments_get(c->assignments, proc->pid, proc->start_time, &entry))
		return;
	if (info->known & GP_PROCINFO_USER) {
		struct gp_limit here =
			gp_config_limit(c->config, proc->set_by, info->group, info->ngroups);

		gp_limit_widen(&limit, &here);
	}
	gp_limit_add_given(&limit, &proc->given);
	if (!gp_limit_clamp(&limit, &entry.attr))
		return;
	gp_assignments_put(c->assignments, &entry,
			   NULL); /* if it cannot be written, it is repeated after a restart */
	proc->attr = entry.attr;
	gp_log(GP_LOG_INFO, "process.clamped", "pid=%d class=%s priority=%u by=%u", proc->pid,
	       gp_class_name(proc->attr.class), proc->attr.priority, proc->set_by);
	gp_apply_attr(c, NULL, proc);
}
