/* SPDX-License-Identifier: Apache-2.0 */
/* gpreempt schedule: the tasks of one device, and the thread that drives its engine. */
#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/verb/schedule.h"
#include "engine/real_time.h"
#include "hold/devices.h"
#include "hold/replay.h"

static const struct gp_named *find_named(const struct gp_schedule *what, const struct gp_seen *seen)
{
	for (unsigned i = 0; i < what->nnamed; i++)
		if (what->named[i].found && what->named[i].key == seen->key)
			return &what->named[i];
	return NULL;
}

static void classify(void *arg, const struct gp_seen *seen, struct gp_task_attr *attr)
{
	const struct gp_scheduled *s = arg;
	const struct gp_named *n = find_named(s->what, seen);

	if (n)
		*attr = n->attr;
}

static int before_change(void *arg, const struct gp_undo *undo)
{
	struct gp_scheduled *s = arg;
	int slot = gp_undo_put(s->undo, s->gpu->ops->name, undo);

	if (slot < 0)
		return slot;
	for (unsigned i = 0; i < s->nslots; i++)
		if (s->slot[i] == slot)
			return slot;
	if (s->nslots == GP_NAMED_MAX)
		return -ENOSPC;
	s->slot[s->nslots++] = slot;
	return slot;
}

/* The keeper releases the tasks if this thread hangs or is frozen. */
static void send_heartbeat(const struct gp_scheduled *s, uint64_t now_ns)
{
	for (unsigned i = 0; i < s->nslots; i++)
		gp_undo_record_heartbeat(s->undo, (unsigned)s->slot[i], now_ns);
}

/* Whether another process asks for the release of a task: then all tasks are released. */
static bool is_resumed(const struct gp_scheduled *s)
{
	struct gp_undo_entry e;

	if (gp_undo_epoch(s->undo) == s->epoch)
		return false;
	for (unsigned i = 0; i < s->nslots; i++)
		if (!gp_undo_get(s->undo, (unsigned)s->slot[i], &e) || e.owner != getpid() ||
		    e.release_asked)
			return true;
	return false;
}

static uint64_t epoch(void *arg)
{
	const struct gp_scheduled *s = arg;

	return gp_undo_epoch(s->undo);
}

/* Whether every named task is as the plan wants it. */
static bool is_in_force(const struct gp_engine *e)
{
	const struct gp_plan *plan = gp_engine_plan(e);
	unsigned managed = 0;

	for (unsigned i = 0; i < gp_engine_tasks(e); i++) {
		struct gp_task_stats t;

		gp_engine_task_stats(e, i, &t);
		if (t.attr.class == GP_UNMANAGED)
			continue;
		managed++;
		if (plan->task[i].want == GP_HOLD ? !t.held
						  : t.held || t.slice_us != plan->task[i].slice_us)
			return false;
	}
	return managed;
}

/* Prints once why a task could not be held, if the back end knows the reason. */
static void complain(struct gp_scheduled *s)
{
	for (unsigned i = 0; i < gp_engine_tasks(s->engine) && gp_gpu_commands(s->gpu)->why; i++) {
		struct gp_error why = {0};
		struct gp_task_stats t;

		gp_engine_task_stats(s->engine, i, &t);
		if (!t.failures || t.held_ns || t.attr.class == GP_UNMANAGED)
			continue;
		gp_gpu_why(s->gpu, t.handle, &why);
		if (!*why.text)
			continue;
		fprintf(stderr, "gpreempt: %s\n", why.text);
		s->complained = true;
	}
}

/* Prints once why the activity of a service is not visible: no task is held for such a service. */
static void warn(struct gp_scheduled *s)
{
	const struct gp_view *view = gp_engine_view(s->engine);

	for (unsigned i = 0; i < view->n; i++) {
		const struct gp_task_view *t = &view->task[i];
		struct gp_error why = {0};
		struct gp_task_stats stats;

		if (t->class != GP_LATENCY_CRITICAL || t->known & GP_KNOWN_ACTIVE)
			continue;
		gp_engine_task_stats(s->engine, i, &stats);
		gp_gpu_why(s->gpu, stats.handle, &why);
		if (!*why.text)
			continue;
		fprintf(stderr, "gpreempt: %s\n", why.text);
		s->warned = true;
	}
}

static int after_tick(void *arg, uint64_t now_ns)
{
	struct gp_scheduled *s = arg;

	send_heartbeat(s, now_ns);
	if (is_resumed(s))
		return 1;
	if (!s->complained && gp_engine_stats(s->engine)->failures)
		complain(s);
	if (!s->warned && gp_gpu_commands(s->gpu)->why && gp_engine_policy(s->engine)->watches)
		warn(s);
	if (!s->ready && is_in_force(s->engine)) {
		s->ready = true;
		eventfd_write(s->ready_fd, 1);
	}
	return 0;
}

static void *drive(void *arg)
{
	struct gp_scheduled *s = arg;

	s->over = gp_drive(s->engine, s->gpu, s->stop_fd, after_tick, s);
	return NULL;
}

/* Finds the task of a named process on a GPU. */
static int find_task(struct gp_gpu *gpu, const struct gp_named *n, struct gp_seen *seen,
		     struct gp_error *why)
{
	if (n->queue == GP_QUEUE_ALL)
		return gp_gpu_find(gpu, n->pid, seen, why);
	if (!gp_gpu_commands(gpu)->split)
		return gp_fail(why, -ENOTSUP,
			       "%s schedules whole processes only: name %d without a queue",
			       gpu->info.name, n->pid);
	return gp_gpu_split(gpu, n->pid, n->queue, seen, why);
}

int gp_schedule_find(struct gp_schedule *what, struct gp_gpu *gpu, const struct gp_undo_file *undo,
		     struct gp_error *err)
{
	int found = 0;

	for (unsigned i = 0; i < what->nnamed; i++) {
		struct gp_named *n = &what->named[i];
		struct gp_error why = {0};
		struct gp_seen seen = {0};
		int r = find_task(gpu, n, &seen, &why);

		if (!r)
			r = gp_refuse_shared(&seen, n->pid, what->force,
					     "runs the work of many programs; --force schedules "
					     "all of them as one",
					     &why);
		if (!r)
			r = gp_records_check_free(undo, seen.pid, seen.start_time, &why);
		if (!r) {
			n->found = true;
			n->key = seen.key;
			n->start_time = seen.start_time;
			found++;
		} else if (r != -ENODEV && r != -ENODATA && r != -ENOENT) {
			return gp_fail(err, r, "%s", why.text);
		}
	}
	return found;
}

int gp_schedule_begin(struct gp_scheduled *s, struct gp_error *err)
{
	struct gp_engine_config config = {
		.gpu = s->gpu,
		.classify = classify,
		.before_change = before_change,
		.epoch = epoch,
		.arg = s,
		.decide_clock = &gp_clock_thread_cpu,
	};
	int r = gp_engine_new(&config, &s->engine);

	if (!r)
		r = gp_engine_set_policy(s->engine, gp_monotonic_ns(), &s->what->policy, err);
	if (!r)
		r = -pthread_create(&s->thread, NULL, drive, s);
	return r ? gp_fail(err, r, "cannot start: %s", gp_error_name(r)) : 0;
}
