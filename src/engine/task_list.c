/* SPDX-License-Identifier: Apache-2.0 */
/* The list of tasks: they come and go, change attributes, form gangs, and are held by users. */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "engine/engine_state.h"

static int grow_array(void **array, size_t item, unsigned capacity)
{
	void *p = realloc(*array, item * capacity);

	if (!p)
		return -ENOMEM;
	*array = p;
	return 0;
}

/* Makes room for `n` tasks in every array. After a failure some arrays are larger than needed. */
static int reserve_tasks(struct gp_engine *e, unsigned n)
{
	unsigned capacity = e->capacity ? e->capacity : 16;
	int r = 0;

	if (n <= e->capacity)
		return 0;
	while (capacity < n)
		capacity *= 2;
#define GROW(member) (r = r ? r : grow_array((void **)&e->member, sizeof *e->member, capacity))
	GROW(task);
	GROW(counters);
	GROW(identity);
	GROW(view_task);
	GROW(plan_task);
	GROW(seen);
	GROW(action);
	GROW(action_task);
	GROW(todo);
	GROW(gang_todo);
#undef GROW
	if (!r && e->state.task_stride)
		r = grow_array((void **)&e->state.task, e->state.task_stride, capacity);
	if (!r)
		r = gp_table_reserve(&e->by_gang, capacity);
	if (!r)
		e->capacity = capacity;
	return r;
}

static bool attr_is_valid(const struct gp_task_attr *a)
{
	return a->class <= GP_LATENCY_CRITICAL && a->priority <= GP_PRIORITY_MAX &&
	       a->weight >= 1 && a->weight <= 10000 && a->share_permille <= 1000 &&
	       a->ceiling_permille <= 1000;
}

static struct gp_task_attr classify(const struct gp_engine *e, uint64_t task,
				    const struct gp_seen *seen)
{
	struct gp_task_attr attr = GP_TASK_ATTR_DEFAULT;

	if (e->config.classify)
		e->config.classify(e->config.arg, seen, &attr);
	if (attr_is_valid(&attr))
		return attr;
	gp_log(GP_LOG_ERROR, "classify.invalid", "task=%llu pid=%d", (unsigned long long)task,
	       seen->pid);
	return GP_TASK_ATTR_DEFAULT; /* unmanaged: never changed */
}

static void prepare(struct gp_engine *e, struct gp_task *t)
{
	if (t->attr.class == GP_UNMANAGED)
		return;
	gp_gpu_prepare(e->gpu, t->handle, t->attr.class == GP_BEST_EFFORT);
	t->prepared = true;
}

static void take_attr(struct gp_engine *e, struct gp_task *t, const struct gp_task_attr *attr)
{
	t->attr = *attr;
	prepare(e, t);
	e->gangs_stale = true;
}

static int add_task(struct gp_engine *e, uint64_t now_ns, const struct gp_seen *seen)
{
	struct gp_task *t;
	uint32_t handle;
	int r = reserve_tasks(e, e->n + 1);

	if (r)
		return r;
	r = gp_gpu_attach(e->gpu, seen->key, &handle);
	if (r)
		return r;
	t = &e->task[e->n];
	*t = (struct gp_task){.id = e->next_id++,
			      .handle = handle,
			      .last_progress_ns = now_ns,
			      .noticed_ns = now_ns};
	e->identity[e->n] = *seen;
	e->counters[e->n] = (struct gp_task_counters){0};
	gp_log2_hist_init(&e->counters[e->n].waits);
	t->attr = classify(e, t->id, seen);
	gp_engine_fill_view(t, &e->view_task[e->n], &(struct gp_observation){0});
	e->view_task[e->n].gang = e->n;
	memset(&e->plan_task[e->n], 0, sizeof *e->plan_task);
	if (e->state.task_stride)
		memset(gp_policy_task(&e->view, e->n), 0, e->state.task_stride);
	if (e->policy.ops->task_in)
		e->policy.ops->task_in(&e->state, &e->view_task[e->n],
				       gp_policy_task(&e->view, e->n));
	prepare(e, t);
	e->n++;
	e->gangs_stale = true;
	gp_engine_emit(e, now_ns, GP_EVENT_TASK_IN, t->id, 0, 0);
	return 0;
}

static void drop_task(struct gp_engine *e, uint64_t now_ns, unsigned i)
{
	struct gp_task *t = &e->task[i];

	if (e->policy.ops->task_out)
		e->policy.ops->task_out(&e->state, &e->view_task[i], gp_policy_task(&e->view, i));
	gp_engine_drop_record_of_gone(e, now_ns, t);
	gp_gpu_detach(e->gpu, t->handle);
	gp_engine_emit(e, now_ns, GP_EVENT_TASK_OUT, t->id, 0, 0);
	e->gangs_stale = true;
}

/* Moves all data of task `from` to the index `to`. */
static void move_task(struct gp_engine *e, unsigned to, unsigned from)
{
	if (to == from)
		return;
	e->task[to] = e->task[from];
	e->identity[to] = e->identity[from];
	e->counters[to] = e->counters[from];
	e->view_task[to] = e->view_task[from];
	e->plan_task[to] = e->plan_task[from];
	if (e->state.task_stride)
		memcpy(gp_policy_task(&e->view, to), gp_policy_task(&e->view, from),
		       e->state.task_stride);
}

static bool is_same_process(const struct gp_seen *a, const struct gp_seen *b)
{
	return a->pid == b->pid && a->start_time == b->start_time;
}

/*
 * The process of the task has ended, and a child (`heir`) inherited its queues. A user's hold ends
 * with the process for which it was requested. The child is classified like a new process.
 */
static void hand_over(struct gp_engine *e, uint64_t now_ns, unsigned i, const struct gp_seen *heir)
{
	struct gp_task *t = &e->task[i];
	struct gp_task_attr attr = classify(e, t->id, heir);
	int old_record = t->undo_kept ? t->record_number : -1;

	gp_log(GP_LOG_INFO, "task.inherited", "task=%llu pid=%d heir=%d user-hold-ended=%d",
	       (unsigned long long)t->id, e->identity[i].pid, heir->pid, t->user_hold);
	gp_engine_emit(e, now_ns, GP_EVENT_TASK_OUT, t->id, 0, 0);
	e->identity[i] = *heir;
	t->user_hold = t->has_marks = t->in_request = false;
	t->hint_until_ns = 0;
	take_attr(e, t, &attr);
	gp_engine_renew_record(e, t);
	if (old_record >= 0 && t->record_number != old_record && e->config.drop_record)
		e->config.drop_record(e->config.arg, old_record);
	gp_engine_emit(e, now_ns, GP_EVENT_TASK_IN, t->id, 0, 0);
}

/* Scans all tasks into e->found. Returns their number, or -errno. */
static int fill_found(struct gp_engine *e, uint64_t now_ns)
{
	for (;;) {
		int n = gp_gpu_scan(e->gpu, now_ns, e->found, e->found_capacity);
		int r;

		if (n < 0 || (unsigned)n <= e->found_capacity)
			return n;
		r = grow_array((void **)&e->found, sizeof *e->found, (unsigned)n * 2);
		if (r)
			return r;
		e->found_capacity = (unsigned)n * 2;
	}
}

void gp_engine_scan(struct gp_engine *e, uint64_t now_ns)
{
	int found = fill_found(e, now_ns);
	unsigned kept = 0;
	uint64_t at;

	e->scan_at_ns = gp_time_add(now_ns, e->config.scan_every_ns);
	if (found < 0 || gp_table_reserve(&e->by_key, (size_t)found))
		return; /* the known tasks stay; the next scan tries again */

	gp_table_clear(&e->by_key);
	for (unsigned i = 0; i < (unsigned)found; i++)
		gp_table_put(&e->by_key, e->found[i].key, i);
	for (unsigned i = 0; i < e->n; i++) {
		if (!gp_table_get(&e->by_key, e->identity[i].key, &at)) {
			drop_task(e, now_ns, i);
			continue;
		}
		gp_table_remove(&e->by_key, e->identity[i].key);
		if (!is_same_process(&e->identity[i], &e->found[at]))
			hand_over(e, now_ns, i, &e->found[at]);
		e->identity[i] = e->found[at]; /* memory use, and the name after an exec */
		move_task(e, kept++, i);
	}
	e->n = kept;
	for (unsigned i = 0; i < (unsigned)found && e->by_key.count; i++) {
		int r;

		if (!gp_table_remove(&e->by_key, e->found[i].key))
			continue;
		r = add_task(e, now_ns, &e->found[i]);
		if (r)
			gp_log(GP_LOG_DEBUG, "attach.failed", "pid=%d errno=%d", e->found[i].pid,
			       -r);
	}
}

/* The first task of a gang represents it. A user's hold of one member holds all members. */
void gp_engine_update_gangs(struct gp_engine *e)
{
	uint64_t head;

	e->gangs_stale = false;
	e->lc_tasks = 0;
	e->managed = 0;
	gp_table_clear(&e->by_gang);
	for (unsigned i = 0; i < e->n; i++) {
		struct gp_task *t = &e->task[i];

		t->gang = i;
		t->gang_user_hold = t->user_hold;
		e->lc_tasks += t->attr.class == GP_LATENCY_CRITICAL;
		e->managed += t->attr.class != GP_UNMANAGED;
		if (!t->attr.gang || t->attr.class == GP_UNMANAGED)
			continue;
		if (gp_table_get(&e->by_gang, t->attr.gang, &head))
			t->gang = (uint32_t)head;
		else
			gp_table_put(&e->by_gang, t->attr.gang, i); /* room is reserved */
		e->task[t->gang].gang_user_hold |= t->user_hold;
	}
	for (unsigned i = 0; i < e->n; i++)
		e->task[i].gang_user_hold = e->task[e->task[i].gang].gang_user_hold;
}

static struct gp_task *find_task(const struct gp_engine *e, uint64_t id)
{
	unsigned low = 0, high = e->n;

	while (low < high) {
		unsigned mid = low + (high - low) / 2;

		if (e->task[mid].id < id)
			low = mid + 1;
		else
			high = mid;
	}
	return low < e->n && e->task[low].id == id ? &e->task[low] : NULL;
}

int gp_engine_set_attr(struct gp_engine *e, uint64_t task, const struct gp_task_attr *attr)
{
	struct gp_task *t = find_task(e, task);

	if (!t)
		return -ESRCH;
	if (!attr_is_valid(attr))
		return -EINVAL;
	take_attr(e, t, attr);
	gp_engine_trigger(e, false);
	return 0;
}

/* Returns how many tasks users would hold, including `t` and its gang. */
static unsigned count_user_held(struct gp_engine *e, const struct gp_task *t)
{
	unsigned held = 0;

	if (e->gangs_stale)
		gp_engine_update_gangs(e);
	for (unsigned i = 0; i < e->n; i++)
		held += e->task[i].gang_user_hold || e->task[i].gang == t->gang;
	return held;
}

int gp_engine_user_hold(struct gp_engine *e, uint64_t task)
{
	struct gp_task *t = find_task(e, task);

	if (!t)
		return -ESRCH;
	if (!(e->gpu->info.caps & GP_CAP_HOLD))
		return -ENOTSUP;
	if (count_user_held(e, t) > e->gpu->info.max_held)
		return -ENOSPC;
	t->user_hold = true;
	e->gangs_stale = true;
	gp_engine_trigger(e, false);
	return 0;
}

int gp_engine_user_release(struct gp_engine *e, uint64_t task)
{
	struct gp_task *t = find_task(e, task);

	if (!t)
		return -ESRCH;
	t->user_hold = false;
	gp_engine_release_again(t);
	e->gangs_stale = true;
	gp_engine_trigger(e, false);
	return 0;
}

unsigned gp_engine_tasks(const struct gp_engine *e)
{
	return e->n;
}

void gp_engine_task_stats(const struct gp_engine *e, unsigned index, struct gp_task_stats *out)
{
	const struct gp_task *t = &e->task[index];
	const struct gp_task_view *v = &e->view_task[index];
	const struct gp_task_counters *counters = &e->counters[index];

	*out = (struct gp_task_stats){
		.id = t->id,
		.key = e->identity[index].key,
		.handle = t->handle,
		.pid = e->identity[index].pid,
		.attr = t->attr,
		.held_by = (uint8_t)((t->policy_hold ? GP_HELD_BY_POLICY : 0) |
				     (t->gang_user_hold ? GP_HELD_BY_USER : 0)),
		.held_for_gang = t->gang_user_hold && !t->user_hold,
		.held = t->held && !t->unsure,
		.unsure = t->unsure,
		.settled = !t->hold.in_flight && !t->unsure && !t->unproven && !t->release_again &&
			   (t->held ? t->our_hold || !(t->user_hold || t->gang_user_hold)
				    : !t->our_hold),
		.held_elsewhere = t->held && !t->our_hold && !t->unsure && !t->hold.in_flight &&
				  !t->policy_hold && !t->gang_user_hold &&
				  gp_is_left_alone(e, index),
		.evidence = t->evidence,
		.in_part = t->in_part,
		.evicted = t->evicted,
		.refused = t->refused,
		.overruns = counters->overruns,
		.slice_us = t->slice_us,
		.held_ns = t->held_ns,
		.unproven_ns = t->unproven_ns,
		.preemptions = counters->preemptions,
		.failures = counters->failures,
		.failure = t->failure,
		.failing = t->hold.backoff_ns || t->slice.backoff_ns || t->record.backoff_ns
				   ? t->failure
				   : 0,
		.hold_failure = t->hold_failure,
		.under_way = t->hold.in_flight || t->slice.in_flight || e->seen[index].under_way,
		.undone = counters->undone,
		.lapses = counters->lapses,
		.run_ns = v->known & GP_KNOWN_RUN ? v->run_ns : 0,
		.run_at_ns = e->seen[index].run_at_ns,
		.run_source = v->known & GP_KNOWN_RUN ? v->run_source : GP_RUN_UNKNOWN,
		.scheduled = e->seen[index].scheduled,
		.waited_known = t->waited_known,
		.waited_ns = t->waited_known ? v->waited_ns : 0,
		.waited_max_ns = t->waited_max_ns,
		.start_time = e->identity[index].start_time,
		.memory = e->identity[index].memory,
		/* If holds cannot be observed, a task without activity may be held. */
		.known = t->unsure || (!(v->known & GP_KNOWN_HELD) && !gp_seen_active(v))
				 ? 0
				 : v->known & (GP_KNOWN_ACTIVE | GP_KNOWN_RUNNING),
		.active = gp_seen_active(v),
		.running = (v->known & GP_KNOWN_RUNNING) && v->running,
		.waits = counters->waits.count,
		.wait_p50_ns = gp_log2_hist_quantile(&counters->waits, 500000),
		.wait_p99_ns = gp_log2_hist_quantile(&counters->waits, 990000),
		.wait_max_ns = counters->waits.max_ns,
		.wait_sum_ns = counters->waits.sum_ns,
	};
	memcpy(out->name, e->identity[index].name, sizeof out->name);
}

int gp_engine_find_task(const struct gp_engine *e, uint64_t task, struct gp_task_stats *out)
{
	const struct gp_task *t = find_task(e, task);

	if (!t)
		return -ESRCH;
	gp_engine_task_stats(e, (unsigned)(t - e->task), out);
	return 0;
}
