/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why users' holds last: until a release, or as long as a client renews its lease. Several clients
 * can hold one process, and each ends only its own lease. A lease that is not renewed expires, so a
 * client that is killed leaves no hold behind.
 */
#include "base/clock.h"
#include "base/log.h"
#include "daemon/control.h"

struct gp_lease *gp_lease_find(struct gp_proc *proc, uint64_t number)
{
	for (unsigned i = 0; i < proc->nleases; i++)
		if (proc->lease[i].number == number)
			return &proc->lease[i];
	return NULL;
}

uint64_t gp_lease_add(struct gp_control *c, struct gp_proc *proc, uint64_t for_ns)
{
	c->leases = c->leases ? c->leases + 1 : gp_monotonic_ns() / GP_NS_PER_US;
	proc->lease[proc->nleases++] = (struct gp_lease){
		.number = c->leases, .until_ns = gp_time_add(gp_monotonic_ns(), for_ns)};
	return c->leases;
}

bool gp_lease_renew(struct gp_proc *proc, uint64_t lease, uint64_t for_ns)
{
	struct gp_lease *l = gp_lease_find(proc, lease);

	if (l)
		l->until_ns = gp_time_add(gp_monotonic_ns(), for_ns);
	return l;
}

bool gp_lease_drop(struct gp_proc *proc, uint64_t lease)
{
	struct gp_lease *l = gp_lease_find(proc, lease);

	if (l)
		*l = proc->lease[--proc->nleases];
	return l;
}

bool gp_hold_has_reason(const struct gp_proc *proc)
{
	return proc->hold_stays || proc->nleases;
}

void gp_hold_forget(struct gp_proc *proc)
{
	proc->held_by = GP_NO_UID;
	proc->held_by_admin = false;
	proc->hold_stays = false;
	proc->nleases = 0;
}

/* Keeps the last lease, if nothing else holds the process, until the release was sent. */
static void expire(struct gp_control *c, struct gp_proc *proc, uint64_t now_ns)
{
	for (unsigned i = proc->nleases; i-- > 0;) {
		if (proc->lease[i].until_ns > now_ns)
			continue;
		if (proc->nleases == 1 && !proc->hold_stays) {
			if (!gp_command_tasks(c, proc, GP_COMMAND_RELEASE))
				return;
			gp_log(GP_LOG_INFO, "process.lease-expired", "pid=%d by=%u", proc->pid,
			       proc->held_by);
			gp_hold_forget(proc);
		} else {
			proc->lease[i] = proc->lease[--proc->nleases];
		}
	}
}

void gp_leases_expire(struct gp_control *c, uint64_t now_ns)
{
	for (struct gp_proc *proc = c->procs.first; proc; proc = proc->next)
		if (proc->nleases)
			expire(c, proc, now_ns);
}
