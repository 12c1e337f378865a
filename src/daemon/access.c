/* SPDX-License-Identifier: Apache-2.0 */
/* Access rights: describes client and target process for gp_rights_check (config/rights.h). */
#include <sys/resource.h>
#include <unistd.h>

#include "base/process.h"
#include "config/rights.h"
#include "daemon/control.h"

/* Root and the user that runs the daemon are always administrators. */
static bool is_admin(const struct gp_control *c, const struct gp_rpc_peer *peer)
{
	return !peer->uid || peer->uid == geteuid() ||
	       (c->group != (gid_t)-1 && gp_rpc_peer_in_group(peer, c->group));
}

static struct gp_peer describe_peer(const struct gp_control *c, const struct gp_rpc_peer *peer)
{
	return (struct gp_peer){
		.uid = peer->uid,
		.admin = is_admin(c, peer),
		.other_pidns = !peer->same_pidns,
	};
}

bool gp_administers(const struct gp_control *c, const struct gp_rpc_peer *peer)
{
	struct gp_peer client = describe_peer(c, peer);

	return gp_peer_administers(&client);
}

static bool has_foreign_gang(const struct gp_control *c, const struct gp_proc *proc)
{
	for (const struct gp_proc *p = c->procs.first; proc->attr.gang && p; p = p->next)
		if (p->attr.gang == proc->attr.gang && p->uid != proc->uid)
			return true;
	return false;
}

static int describe_subject(const struct gp_control *c, const struct gp_rpc_peer *peer,
			    const struct gp_proc *proc, struct gp_subject *s, struct gp_error *err)
{
	bool known;

	*s = (struct gp_subject){
		.same_pidns = gp_process_same_pidns(peer->pid, proc->pid) && peer->pidfd >= 0 &&
			      !gp_pidfd_ended(peer->pidfd),
		.is_self = peer->start_time && peer->pid == proc->pid &&
			   peer->start_time == proc->start_time,
		.gang_of_others = has_foreign_gang(c, proc),
	};
	/* In this order: if the process has not ended by now, the uids belong to it. */
	known = gp_process_uids(proc->pid, s->uid);
	if (gp_proc_ended(proc))
		return gp_fail(err, -ESRCH, "process %d has ended", proc->pid);
	if (!s->same_pidns && gp_process_read_start_time(proc->pid, &(uint64_t){0}) == -ETIMEDOUT)
		return gp_process_silent(err, proc->pid, -EAGAIN);
	if (!known || proc->unwatched)
		return gp_fail(err, -EAGAIN,
			       "the owner of process %d cannot be determined now (the daemon may "
			       "have too many files open); try again",
			       proc->pid);
	return 0;
}

static int check(const struct gp_control *c, const struct gp_rpc_call *call,
		 const struct gp_proc *proc, const struct gp_change *change, struct gp_error *err)
{
	const struct gp_rpc_peer *peer = gp_rpc_peer(call);
	struct gp_peer client = describe_peer(c, peer);
	struct gp_subject subject;
	int r = proc ? describe_subject(c, peer, proc, &subject, err) : 0;

	return r ? r : gp_rights_check(&client, proc ? &subject : NULL, change, err);
}

struct gp_limit gp_configured_limit(const struct gp_control *c, const struct gp_rpc_peer *peer)
{
	return gp_config_limit(c->config, peer->uid, peer->groups, peer->ngroups);
}

/*
 * The daemon has a pidfd open for each process. Half of its files are kept for administrators,
 * clients and programs with queues.
 */
static bool has_files_for_users(const struct gp_control *c)
{
	struct rlimit l;

	return getrlimit(RLIMIT_NOFILE, &l) || c->procs.n <= l.rlim_cur / 2;
}

int gp_may_set(struct gp_control *c, struct gp_rpc_call *call, const struct gp_proc *proc,
	       const struct gp_task_attr *to, struct gp_error *err)
{
	const struct gp_rpc_peer *peer = gp_rpc_peer(call);
	struct gp_limit limit = gp_configured_limit(c, peer);
	struct gp_change change = {
		.kind = GP_CHANGE_ATTR,
		.from = &proc->attr,
		.to = to,
		.limit = &limit,
		.tasks = proc->source == GP_ATTR_BY_USER && proc->set_by == peer->uid
				 ? 0
				 : gp_procs_set_by(&c->procs, peer->uid) + 1,
	};

	gp_limit_add_given(&limit, &proc->given);
	if (change.tasks && !proc->ntasks && !gp_administers(c, peer) && !has_files_for_users(c))
		return gp_fail(err, -EUSERS,
			       "the daemon watches %u processes, as many as it may for users; end "
			       "some of them, or ask an administrator",
			       c->procs.n - 1);
	return check(c, call, proc, &change, err);
}

int gp_may_hold(struct gp_control *c, struct gp_rpc_call *call, const struct gp_proc *proc,
		bool release, struct gp_error *err)
{
	bool held = proc->held_by !=
		    GP_NO_UID; /* a process that is not held may be released by its owner */
	struct gp_change change = {
		.kind = release ? GP_CHANGE_RELEASE : GP_CHANGE_HOLD,
		.hold_uid = held ? proc->held_by : gp_rpc_peer(call)->uid,
		.hold_by_admin = held && proc->held_by_admin,
	};

	return check(c, call, proc, &change, err);
}

int gp_may_administer(struct gp_control *c, struct gp_rpc_call *call, struct gp_error *err)
{
	return check(c, call, NULL, &(struct gp_change){.kind = GP_CHANGE_POLICY}, err);
}

int gp_may_read(struct gp_control *c, const struct gp_rpc_call *call, const struct gp_proc *proc,
		struct gp_error *err)
{
	const struct gp_rpc_peer *peer = gp_rpc_peer(call);

	if (peer->same_pidns)
		return 0;
	if (proc && proc->uid != peer->uid)
		return -EPERM; /* without checking each process, because there may be many */
	return check(c, call, proc, &(struct gp_change){.kind = GP_CHANGE_READ}, err);
}
