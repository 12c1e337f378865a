/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The methods `hold`, `release` and `release_all`: holds by users, independent of those of the
 * policy.
 */
#include <string.h>

#include "base/log.h"
#include "daemon/control.h"
#include "rpc/params.h"
#include "task/json/task_json.h"

#define LEASE_MIN_NS (100 * GP_NS_PER_MS)
#define LEASE_MAX_NS (60 * GP_NS_PER_S)

static const struct gp_task_stats *find_stats(const struct gp_control *c,
					      const struct gp_proc_task *task)
{
	const struct gp_snapshot *s = gp_device_thread_snapshot(c->thread[task->device]);

	for (unsigned i = 0; i < s->ntasks; i++)
		if (s->task[i].id == task->id)
			return &s->task[i];
	return NULL;
}

/* Of the tasks of a process, a reset first. */
static struct gp_eviction find_eviction(const struct gp_control *c, const struct gp_proc *proc)
{
	struct gp_eviction found = {0};

	for (unsigned i = 0; proc && i < proc->ntasks && !found.by_reset; i++) {
		const struct gp_task_stats *t = find_stats(c, &proc->task[i]);

		if (t && t->evicted.ns && (!found.ns || t->evicted.by_reset))
			found = t->evicted;
	}
	return found;
}

/* What shows that the tasks are held, or released: the least of all. A task that the policy holds
 * after a release is not asked. */
static enum gp_evidence find_evidence(const struct gp_control *c, const struct gp_proc *proc)
{
	enum gp_evidence found = GP_EVIDENCE_ENOUGH;

	for (unsigned i = 0; proc && i < proc->ntasks; i++) {
		const struct gp_task_stats *t = find_stats(c, &proc->task[i]);

		if (t && t->held_by != GP_HELD_BY_POLICY && t->evidence > found)
			found = t->evidence;
	}
	return found;
}

/* Adds up how often the hold has ended without a request since the lease began. A task that has
 * ended takes its count with it. */
static void note_lapses(const struct gp_control *c, const struct gp_proc *proc,
			struct gp_lease *lease)
{
	struct gp_lapses now = {0}, *own = &lease->own, *seen = &lease->seen;

	for (unsigned i = 0; i < proc->ntasks; i++) {
		const struct gp_task_stats *t = find_stats(c, &proc->task[i]);

		now.all += t ? t->lapses.all : 0;
		now.worked += t ? t->lapses.worked : 0;
	}
	own->all += now.all > seen->all ? now.all - seen->all : 0;
	own->worked += now.worked > seen->worked ? now.worked - seen->worked : 0;
	*seen = now;
}

static void lapses_to_json(struct json_object *into, const struct gp_lapses *lapses)
{
	if (lapses->all)
		gp_json_add(into, "again", json_object_new_uint64(lapses->all));
	if (lapses->worked)
		gp_json_add(into, "worked", json_object_new_boolean(true));
}

static bool is_held_elsewhere(const struct gp_control *c, const struct gp_proc *proc)
{
	for (unsigned i = 0; proc && i < proc->ntasks; i++) {
		const struct gp_task_stats *t = find_stats(c, &proc->task[i]);

		if (t && t->held_elsewhere)
			return true;
	}
	return false;
}

/* A user's hold has ended, and the policy holds a task of the process. */
static bool is_held_by_policy(const struct gp_control *c, const struct gp_proc *proc)
{
	for (unsigned i = 0; proc && i < proc->ntasks; i++) {
		const struct gp_task_stats *t = find_stats(c, &proc->task[i]);

		if (t && t->held && t->held_by == GP_HELD_BY_POLICY)
			return true;
	}
	return false;
}

/* The process of which a user's hold keeps the gang of `proc` held; NULL: none is known. */
static const struct gp_proc *find_held_member(const struct gp_control *c,
					      const struct gp_proc *proc)
{
	for (const struct gp_proc *p = c->procs.first; proc && proc->attr.gang && p; p = p->next)
		if (p != proc && p->attr.gang == proc->attr.gang && p->held_by != GP_NO_UID)
			return p;
	return NULL;
}

/* A client in a container knows other numbers of processes. */
static void fail_for_gang(struct gp_gather *g)
{
	const struct gp_proc *proc = gp_procs_find(&g->control->procs, g->pid, g->start_time);
	const struct gp_proc *member = find_held_member(g->control, proc);

	if (member && gp_rpc_peer(g->call)->same_pidns)
		gp_rpc_fail(g->call, 0, -EBUSY,
			    "process %d stays held, because process %d (%s) of its gang is held; "
			    "release that one, too",
			    g->pid, member->pid, member->name);
	else
		gp_rpc_fail(g->call, 0, -EBUSY, "%s", g->text);
}

static void finish(struct gp_gather *g)
{
	const struct gp_proc *proc = gp_procs_find(&g->control->procs, g->pid, g->start_time);
	struct gp_eviction evicted = find_eviction(g->control, proc);
	struct json_object *result;

	if (g->status == -EBUSY) {
		fail_for_gang(g);
		return;
	}
	if (g->status && (g->status != -ESRCH || !g->done)) {
		gp_rpc_fail(g->call, 0, g->status, "%s", g->text);
		return;
	}
	result = gp_json_begin();
	gp_json_add(result, "tasks", json_object_new_uint64(g->done));
	if (g->lease)
		gp_json_add(result, "lease", json_object_new_uint64(g->lease));
	if (is_held_elsewhere(g->control, proc))
		gp_json_add(result, "held_by_other", json_object_new_boolean(true));
	if (is_held_by_policy(g->control, proc))
		gp_json_add(result, "held_by_policy", json_object_new_boolean(true));
	if (proc && g->ends.number)
		note_lapses(g->control, proc, &g->ends);
	lapses_to_json(result, &g->ends.own);
	gp_evidence_to_json(result, find_evidence(g->control, proc));
	gp_eviction_to_json(result, &evicted);
	gp_rpc_reply(g->call, result);
}

static void command_tasks(struct gp_control *c, struct gp_gather *g, const struct gp_proc *proc,
			  enum gp_command_kind kind)
{
	for (unsigned i = 0; i < proc->ntasks; i++) {
		struct gp_command command = {.kind = kind, .task = proc->task[i].id};

		gp_gather_command(g, c->thread[proc->task[i].device], &command);
	}
}

/*
 * A partial hold is undone: the tasks that are held already are released, then the call is answered
 * with the cause.
 */
static void undo_hold(struct gp_gather *g, const struct gp_proc *proc)
{
	struct gp_gather *back = gp_gather_new(g->control, g->call, finish);

	if (!back)
		return; /* the call was answered */
	back->status = g->status;
	memcpy(back->text, g->text, sizeof back->text);
	command_tasks(g->control, back, proc, GP_COMMAND_RELEASE);
	gp_gather_go(back);
}

/*
 * A failed hold must not apply to later tasks either. A task that ended or was released meanwhile
 * is not a failure.
 */
static void finish_hold(struct gp_gather *g)
{
	struct gp_proc *proc = gp_procs_find(&g->control->procs, g->pid, g->start_time);
	bool failed = g->status && g->status != -ECANCELED && (g->status != -ESRCH || !g->done);

	if (proc && failed && g->lease)
		gp_lease_drop(proc, g->lease);
	else if (proc && failed && g->first)
		proc->hold_stays = false;
	if (!proc || !failed || gp_hold_has_reason(proc)) {
		finish(g);
		return;
	}
	gp_hold_forget(proc);
	if (!g->done)
		finish(g);
	else
		undo_hold(g, proc);
}

struct hold_params {
	bool force;
	bool has_time, has_lease;
	uint64_t lease_ns, lease;
};

static int read_hold_params(struct json_object *params, struct hold_params *p, struct gp_error *err)
{
	bool there;

	if (GP_PARAMS_KNOWN(params, err, "target", "force", "lease_ns", "lease") ||
	    gp_params_bool(params, "force", &p->force, &there, err) ||
	    gp_params_u64(params, "lease_ns", LEASE_MIN_NS, LEASE_MAX_NS, &p->lease_ns,
			  &p->has_time, err) ||
	    gp_params_u64(params, "lease", 1, UINT64_MAX, &p->lease, &p->has_lease, err))
		return -EINVAL;
	return p->has_lease && !p->has_time
		       ? gp_fail(err, -EINVAL, "lease needs lease_ns, its new length")
		       : 0;
}

static uint64_t count_held(const struct gp_control *c, const struct gp_proc *proc)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < proc->ntasks; i++) {
		const struct gp_task_stats *t = find_stats(c, &proc->task[i]);

		n += t && t->held;
	}
	return n;
}

static int renew(struct gp_control *c, struct gp_rpc_call *call, struct gp_proc *proc,
		 const struct hold_params *p, struct gp_error *err)
{
	struct json_object *result;

	if (!gp_lease_renew(proc, p->lease, p->lease_ns))
		return gp_fail(err, -ENOENT, "the hold of process %d has ended", proc->pid);
	result = gp_json_begin();
	gp_json_add(result, "tasks", json_object_new_uint64(count_held(c, proc)));
	gp_json_add(result, "lease", json_object_new_uint64(p->lease));
	note_lapses(c, proc, gp_lease_find(proc, p->lease));
	lapses_to_json(result, &gp_lease_find(proc, p->lease)->own);
	gp_rpc_reply(call, result);
	return 0;
}

static void add_lease(struct gp_gather *g, struct gp_proc *proc, uint64_t for_ns)
{
	struct gp_lease *lease;

	g->lease = gp_lease_add(g->control, proc, for_ns);
	lease = gp_lease_find(proc, g->lease);
	note_lapses(g->control, proc, lease);
	lease->own = (struct gp_lapses){0};
}

static int begin_hold(struct gp_control *c, struct gp_rpc_call *call, struct gp_proc *proc,
		      const struct hold_params *p, struct gp_error *err)
{
	struct gp_gather *g;

	if (p->has_time && proc->nleases == GP_LEASES_MAX)
		return gp_fail(err, -EUSERS,
			       "%d clients hold process %d for a time already; try again later",
			       GP_LEASES_MAX, proc->pid);
	g = gp_gather_new(c, call, finish_hold);
	if (!g)
		return 0;
	g->pid = proc->pid;
	g->start_time = proc->start_time;
	g->first = !proc->hold_stays;
	if (p->has_time)
		add_lease(g, proc, p->lease_ns);
	else
		proc->hold_stays = true;
	if (proc->held_by == GP_NO_UID || gp_administers(c, gp_rpc_peer(call))) {
		proc->held_by = gp_rpc_peer(call)->uid;
		proc->held_by_admin = gp_administers(c, gp_rpc_peer(call));
	}
	if (gp_method_may_log(c, call))
		gp_log(GP_LOG_INFO, "process.hold-requested", "pid=%d by=%u", proc->pid,
		       gp_rpc_peer(call)->uid);
	command_tasks(c, g, proc, GP_COMMAND_HOLD);
	gp_gather_go(g);
	return 0;
}

int gp_method_hold(void *arg, struct gp_rpc_call *call, struct json_object *params)
{
	struct gp_control *c = arg;
	struct gp_error *err = gp_rpc_error(call);
	struct hold_params p = {0};
	struct gp_proc *proc;
	int r;

	if (read_hold_params(params, &p, err))
		return -EINVAL;
	proc = gp_method_target(c, call, params);
	if (!proc)
		return 0;
	r = gp_may_hold(c, call, proc, false, err);
	if (!r && p.has_lease)
		return renew(c, call, proc, &p, err);
	if (!r && !proc->ntasks)
		r = gp_fail(err, -ESRCH, "gpreemptd sees no queues of process %d", proc->pid);
	if (!r && proc->shared && !p.force)
		r = gp_fail(err, -EPERM, "process %d " GP_WOULD_STOP_ALL, proc->pid);
	if (!r)
		r = begin_hold(c, call, proc, &p, err);
	if (r)
		gp_procs_drop_unused(&c->procs, proc);
	return r;
}

/* The lease has ended, or the process stays held for another reason. */
static int say_not_released(struct gp_rpc_call *call, const struct gp_proc *proc,
			    const struct gp_lease *ended)
{
	struct json_object *result = gp_json_begin();

	gp_json_add(result, "tasks", json_object_new_uint64(0));
	gp_json_add(result, "held", json_object_new_boolean(proc->held_by != GP_NO_UID));
	lapses_to_json(result, &ended->own);
	gp_rpc_reply(call, result);
	return 0;
}

/* number 0: it has ended before. */
static struct gp_lease end_lease(const struct gp_control *c, struct gp_proc *proc, uint64_t number)
{
	struct gp_lease *lease = gp_lease_find(proc, number), ended = {0};

	if (!lease)
		return ended;
	note_lapses(c, proc, lease);
	ended = *lease;
	gp_lease_drop(proc, number);
	return ended;
}

int gp_method_release(void *arg, struct gp_rpc_call *call, struct json_object *params)
{
	struct gp_control *c = arg;
	struct gp_error *err = gp_rpc_error(call);
	struct gp_proc *proc;
	struct gp_gather *g;
	struct gp_lease ends = {0};
	uint64_t lease;
	bool has_lease;
	int r;

	if (GP_PARAMS_KNOWN(params, err, "target", "lease") ||
	    gp_params_u64(params, "lease", 1, UINT64_MAX, &lease, &has_lease, err))
		return -EINVAL;
	proc = gp_method_target(c, call, params);
	if (!proc)
		return 0;
	r = gp_may_hold(c, call, proc, true, err);
	if (!r && !proc->ntasks)
		r = gp_fail(err, -ESRCH, "gpreemptd sees no queues of process %d", proc->pid);
	if (r) {
		gp_procs_drop_unused(&c->procs, proc);
		return r;
	}
	if (has_lease)
		ends = end_lease(c, proc, lease);
	if (has_lease && (!ends.number || gp_hold_has_reason(proc)))
		return say_not_released(call, proc, &ends);
	g = gp_gather_new(c, call, finish);
	if (!g)
		return 0;
	g->ends = ends;
	g->pid = proc->pid;
	g->start_time = proc->start_time;
	gp_hold_forget(proc);
	if (gp_method_may_log(c, call))
		gp_log(GP_LOG_INFO, "process.release-requested", "pid=%d by=%u", proc->pid,
		       gp_rpc_peer(call)->uid);
	command_tasks(c, g, proc, GP_COMMAND_RELEASE);
	gp_gather_go(g);
	return 0;
}

/* Whether a task of the process may be held although nothing wants it: an earlier release has
 * failed, is not complete, or is confirmed by the driver only. */
static bool is_being_released(const struct gp_control *c, const struct gp_proc *proc)
{
	for (unsigned i = 0; i < proc->ntasks; i++) {
		const struct gp_task_stats *t = find_stats(c, &proc->task[i]);

		if (t && !t->held_by &&
		    (!t->settled || (t->attr.class != GP_UNMANAGED && !t->held &&
				     t->evidence == GP_EVIDENCE_DRIVER)))
			return true;
	}
	return false;
}

/* A task that stays held for a member of its gang which the caller may not release is no failure:
 * it is one of those that stay held. */
static void finish_all(struct gp_gather *g)
{
	if (g->status == -EBUSY)
		g->status = 0;
	finish(g);
}

int gp_method_release_all(void *arg, struct gp_rpc_call *call, struct json_object *params)
{
	struct gp_control *c = arg;
	struct gp_gather *g;

	if (gp_params_known(params, NULL, 0, gp_rpc_error(call)))
		return -EINVAL;
	g = gp_gather_new(c, call, finish_all);
	if (!g)
		return 0;
	for (struct gp_proc *proc = c->procs.first; proc; proc = proc->next) {
		if ((proc->held_by == GP_NO_UID && !is_being_released(c, proc)) ||
		    gp_may_hold(c, call, proc, true, NULL))
			continue;
		gp_hold_forget(proc);
		command_tasks(c, g, proc, GP_COMMAND_RELEASE);
	}
	gp_gather_go(g);
	return 0;
}
