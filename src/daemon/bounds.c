/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How high what a user said of a process may stand: at what a rule gives that process, or at the
 * user's limit. It was checked when it was said, but the rule may have become known only then, and
 * rules and limits may be others since, after a reload or a restart.
 */
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>

#include "base/log.h"
#include "config/rights.h"
#include "daemon/control.h"

#define ENTRY_MAX  ((size_t)1 << 16)
#define GROUPS_MAX 1024

bool gp_is_users_word(const struct gp_proc *proc)
{
	return proc->said == GP_SAID_USER && proc->said_by != GP_BY_ADMIN;
}

/* With the groups that a login would have: who asked may have gone. */
static struct gp_limit look_up_limit(const struct gp_control *c, uid_t uid)
{
	struct passwd entry, *user = NULL;
	gid_t group[GROUPS_MAX];
	int n = GROUPS_MAX;
	char *room = malloc(ENTRY_MAX);

	if (!room || getpwuid_r(uid, &entry, room, ENTRY_MAX, &user) || !user ||
	    getgrouplist(user->pw_name, user->pw_gid, group, &n) < 0)
		n = 0;
	free(room);
	return gp_config_limit(c->config, uid, group, (uint32_t)n);
}

void gp_bounds_renew(struct gp_control *c)
{
	const struct gp_proc *last = NULL;

	for (struct gp_proc *p = c->procs.first; p; p = p->next) {
		if (!gp_is_users_word(p))
			continue;
		p->limit = last && last->said_by == p->said_by ? last->limit
		                                               : look_up_limit(c, p->said_by);
		last = p;
	}
}

void gp_bound(struct gp_control *c, struct gp_proc *proc, const struct gp_facts *facts)
{
	struct gp_limit limit = proc->limit;
	struct gp_entry entry;

	if (!gp_roster_get(c->roster, proc->pid, proc->start_time, &entry))
		return;
	if (facts->known & GP_FACT_USER) {
		struct gp_limit here =
			gp_config_limit(c->config, proc->said_by, facts->group, facts->ngroups);

		gp_limit_widen(&limit, &here);
	}
	gp_limit_add_given(&limit, &proc->given);
	if (!gp_limit_clamp(&limit, &entry.attr))
		return;
	gp_roster_put(c->roster, &entry, NULL); /* if it cannot be written, it is done again */
	proc->attr = entry.attr;
	gp_log(GP_LOG_INFO, "process.bound", "pid=%d class=%s priority=%u by=%u", proc->pid,
	       gp_class_name(proc->attr.class), proc->attr.priority, proc->said_by);
	gp_apply_attr(c, NULL, proc);
}
