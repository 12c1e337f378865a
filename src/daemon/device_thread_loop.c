/* SPDX-License-Identifier: Apache-2.0 */
/* The loop of a device thread: callbacks of its engine, and its ticks. */
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/device_thread_state.h"
#include "hold/replay.h"

#define PUBLISH_EVERY_NS (100 * GP_NS_PER_MS)
#define UNDO_CHECK_NS    (250 * GP_NS_PER_MS) /* whether the undo file is still there */

/* Events that are reported even if no client subscribes to them. */
#define EVENTS_ALWAYS                                                               \
	(1u << GP_EVENT_TASK_IN | 1u << GP_EVENT_TASK_OUT | 1u << GP_EVENT_POLICY | \
	 1u << GP_EVENT_EJECTED | 1u << GP_EVENT_REFUSED | 1u << GP_EVENT_ADMITTED)

static void classify(void *arg, const struct gp_seen *seen, struct gp_task_attr *attr)
{
	struct gp_device_thread *dt = arg;
	struct gp_assignment entry;

	dt->new_process = *seen;
	if (gp_assignments_find(dt->config.assignments, seen->pid, seen->start_time, &entry))
		*attr = entry.attr;
}

static int before_change(void *arg, const struct gp_undo *undo)
{
	struct gp_device_thread *dt = arg;
	int slot = dt->undo ? gp_undo_put(dt->undo, dt->gpu->ops->name, undo) : 0;

	return slot;
}

/* The daemon's own record in the slot. False: another process has it, or it is gone. */
static bool own_record(const struct gp_device_thread *dt, int slot, struct gp_undo_entry *e)
{
	return dt->undo && gp_undo_get(dt->undo, (unsigned)slot, e) && e->owner == getpid();
}

static bool release_asked(void *arg, int slot)
{
	struct gp_undo_entry e;

	return own_record(arg, slot, &e) && e.release_asked;
}

static uint64_t undone_ns(void *arg, int slot)
{
	const struct gp_device_thread *dt = arg;
	struct gp_undo_entry e;

	return own_record(dt, slot, &e) ? gp_undo_undone_ns(dt->undo, (unsigned)slot) : 0;
}

static void drop_record(void *arg, int slot)
{
	struct gp_device_thread *dt = arg;
	struct gp_undo_entry e;

	if (own_record(dt, slot, &e))
		gp_undo_drop_same(dt->undo, (unsigned)slot, &e);
}

/* Grows when another process undid changes: the keeper, or an administrator. */
static uint64_t epoch(void *arg)
{
	const struct gp_device_thread *dt = arg;

	return dt->undo ? gp_undo_epoch(dt->undo) + ((uint64_t)dt->undo_files << 32) : 0;
}

/* If the undo file was removed, replaced or truncated, uses the new one. The new value of epoch()
 * makes the engine write its records again. */
static void follow_undo_file(struct gp_device_thread *dt, uint64_t now_ns)
{
	struct gp_undo_file *file;

	if (!dt->undo || now_ns < dt->undo_check_ns)
		return;
	dt->undo_check_ns = now_ns + UNDO_CHECK_NS;
	if (gp_undo_is_current(dt->undo) || gp_undo_open(&file, true, NULL))
		return;
	gp_log(GP_LOG_WARN, "undo.file-new", "device=%u", dt->config.number);
	gp_undo_close(dt->undo);
	dt->undo = file;
	dt->undo_files++;
}

static void describe_task(struct gp_device_thread *dt, struct gp_device_event *device_event)
{
	struct gp_task_stats t;

	switch (device_event->event.kind) {
	case GP_EVENT_TASK_IN:
		if (!gp_engine_find_task(dt->engine, device_event->event.task, &t))
			device_event->attr = t.attr;
		device_event->pid = dt->new_process.pid;
		device_event->start_time = dt->new_process.start_time;
		device_event->key = dt->new_process.key;
		device_event->seen_flags = dt->new_process.flags;
		memcpy(device_event->name, dt->new_process.name, sizeof device_event->name);
		break;
	case GP_EVENT_TASK_OUT: break;
	case GP_EVENT_EJECTED:
		snprintf(device_event->text, sizeof device_event->text, "%s",
			 gp_engine_ejection(dt->engine)->text);
		break;
	case GP_EVENT_POLICY:
		snprintf(device_event->text, sizeof device_event->text, "%s",
			 gp_engine_policy(dt->engine)->name);
		break;
	default:
		if (!gp_engine_find_task(dt->engine, device_event->event.task, &t)) {
			device_event->held_by = t.held_by;
			device_event->evidence = t.evidence;
			device_event->evicted = t.evicted;
			device_event->attr = t.attr;
		}
	}
}

static void on_event(void *arg, const struct gp_event *event)
{
	struct gp_device_thread *dt = arg;
	struct gp_device_event device_event = {.event = *event};
	uint32_t wanted = atomic_load_explicit(&dt->wanted, memory_order_relaxed) | EVENTS_ALWAYS;

	if (event->kind == GP_EVENT_TASK_IN || event->kind == GP_EVENT_TASK_OUT)
		dt->publish = true;
	if (!(wanted & 1u << event->kind))
		return;
	describe_task(dt, &device_event);
	dt->dropped += !gp_ring_put(&dt->device_event, &device_event);
	dt->wake_control = true;
}

int gp_device_thread_make_engine(struct gp_device_thread *dt, struct gp_error *err)
{
	const struct gp_device_thread_config *c = &dt->config;
	struct gp_engine_config config = {
		.gpu = dt->gpu,
		.classify = classify,
		.before_change = before_change,
		.release_asked = release_asked,
		.undone_ns = undone_ns,
		.drop_record = drop_record,
		.epoch = epoch,
		.on_event = on_event,
		.arg = dt,
		.request_marks = true,
		.decide_clock = &gp_clock_thread_cpu,
		.check_ns = c->check_ns,
		.check_lc_ns = c->check_lc_ns,
		.check_quiet_ns = c->check_quiet_ns,
		.scan_every_ns = c->scan_every_ns,
		.starve_limit_ns = c->starve_limit_ns,
	};
	int r;

	dt->epoch = epoch(dt);
	r = gp_engine_new(&config, &dt->engine);
	return r ? r : gp_engine_set_policy(dt->engine, dt->since_ns, &c->policy, err);
}

static void publish(struct gp_device_thread *dt, uint64_t now_ns)
{
	if (!dt->publish && now_ns - dt->published_ns < PUBLISH_EVERY_NS)
		return;
	gp_snapshots_take(&dt->snapshots, dt->engine, now_ns, dt->since_ns, &dt->lag_ns);
	dt->published_ns = now_ns;
	dt->publish = false;
}

static void end_user_hold(struct gp_device_thread *dt, uint64_t now_ns,
			  const struct gp_task_stats *t)
{
	struct gp_device_event device_event = {
		.event = {.kind = GP_EVENT_RELEASED, .now_ns = now_ns, .task = t->id},
		.resumed = true};

	gp_engine_user_release(dt->engine, t->id);
	dt->dropped += !gp_ring_put(&dt->device_event, &device_event);
	dt->wake_control = true;
}

static bool is_same_gang(const struct gp_task_stats *a, const struct gp_task_stats *b)
{
	return a->id == b->id || (a->attr.gang && a->attr.gang == b->attr.gang &&
				  a->attr.class != GP_UNMANAGED && b->attr.class != GP_UNMANAGED);
}

/* The holds of other members would hold the task again. Only an administrator can write into the
 * undo file, and may release all of them. */
static void end_user_holds_of_gang(struct gp_device_thread *dt, uint64_t now_ns,
				   const struct gp_task_stats *asked)
{
	for (unsigned i = 0; i < gp_engine_tasks(dt->engine); i++) {
		struct gp_task_stats t;

		gp_engine_task_stats(dt->engine, i, &t);
		if (is_same_gang(&t, asked))
			end_user_hold(dt, now_ns, &t);
	}
}

/*
 * Another process undid changes of this daemon. If it was the keeper, the wanted state still
 * applies. If a user asked for the release (gpreempt resume), that ends the holds by users.
 */
static void notice_outside_resume(struct gp_device_thread *dt, uint64_t now_ns)
{
	uint64_t now = epoch(dt);

	if (now == dt->epoch)
		return;
	dt->epoch = now;
	for (unsigned i = 0; i < gp_engine_tasks(dt->engine); i++) {
		struct gp_undo_entry e;
		struct gp_task_stats t;

		gp_engine_task_stats(dt->engine, i, &t);
		if ((t.held_by & GP_HELD_BY_USER) &&
		    gp_records_find(dt->undo, t.pid, t.start_time, &e) && e.release_asked)
			end_user_holds_of_gang(dt, now_ns, &t);
	}
}

static void tick(struct gp_device_thread *dt)
{
	uint64_t now_ns = gp_monotonic_ns(), next_ns;

	follow_undo_file(dt, now_ns);
	notice_outside_resume(dt, now_ns);
	gp_device_thread_execute(dt, now_ns);
	next_ns = gp_engine_step(dt->engine, now_ns);
	gp_device_thread_answer_waiting(dt, now_ns);
	atomic_store_explicit(&dt->gone, gp_gpu_is_gone(dt->gpu), memory_order_relaxed);
	publish(dt, now_ns);
	gp_device_thread_give_answers(dt);
	if (dt->dropped) { /* only after a snapshot that shows what the events were about */
		atomic_fetch_add_explicit(&dt->lost, dt->dropped, memory_order_release);
		dt->dropped = 0;
	}
	if (dt->nwaiting && next_ns > now_ns + GP_NS_PER_MS)
		next_ns = now_ns + GP_NS_PER_MS; /* a command waits for the result */
	dt->at_once = !gp_engine_next_ns(dt->engine);
	if (dt->at_once)
		next_ns = now_ns;
	atomic_store_explicit(&dt->due_ns, next_ns, memory_order_relaxed);
	if (dt->wake_control) {
		dt->wake_control = false;
		eventfd_write(dt->config.wake_fd, 1);
	}
}

/* Waits until the next tick is due or an event comes. */
static void wait(struct gp_device_thread *dt, int event_fd)
{
	uint64_t due_ns = atomic_load_explicit(&dt->due_ns, memory_order_relaxed), now_ns, ignored;
	struct itimerspec at = {.it_value = gp_timespec(due_ns ? due_ns : 1)};
	struct pollfd p[3] = {{.fd = dt->timer_fd, .events = POLLIN},
			      {.fd = dt->command_fd, .events = POLLIN},
			      {.fd = event_fd, .events = POLLIN}};

	now_ns = gp_monotonic_ns();
	if (due_ns <= now_ns) {
		if (!dt->at_once) /* the last tick took longer than its interval */
			gp_hist_add(&dt->lag_ns, now_ns - due_ns);
		return;
	}
	timerfd_settime(dt->timer_fd, TFD_TIMER_ABSTIME, &at, NULL);
	if (poll(p, event_fd >= 0 ? 3 : 2, -1) < 0)
		return; /* a signal: the engine decides when to tick */
	now_ns = gp_monotonic_ns();
	if (p[0].revents && now_ns > due_ns)
		gp_hist_add(&dt->lag_ns, now_ns - due_ns);
	if (p[1].revents && read(dt->command_fd, &ignored, sizeof ignored) < 0)
		return;
	if (event_fd >= 0 && p[2].revents) {
		if (read(event_fd, &ignored, sizeof ignored) < 0)
			return;
		gp_engine_trigger(dt->engine, true);
	}
}

/* A refused setting is logged. The daemon works without it, with more delay. */
static void set_up_thread(const struct gp_device_thread *dt)
{
	char name[16];
	int r;

	snprintf(name, sizeof name, "device-%u", dt->config.number);
	pthread_setname_np(pthread_self(), name);
	prctl(PR_SET_TIMERSLACK, 1ul);
	if (dt->config.cpu >= 0) {
		cpu_set_t cpus;

		CPU_ZERO(&cpus);
		CPU_SET((size_t)dt->config.cpu, &cpus);
		r = pthread_setaffinity_np(pthread_self(), sizeof cpus, &cpus);
		if (r)
			gp_log(GP_LOG_WARN, "thread.affinity-failed", "device=%u cpu=%d errno=%d",
			       dt->config.number, dt->config.cpu, r);
	}
	if (dt->config.realtime) {
		struct sched_param p = {.sched_priority = dt->config.realtime};

		r = pthread_setschedparam(pthread_self(), SCHED_FIFO, &p);
		if (r)
			gp_log(GP_LOG_WARN, "thread.realtime-failed",
			       "device=%u priority=%d errno=%d", dt->config.number,
			       dt->config.realtime, r);
	}
}

void *gp_device_thread_run(void *arg)
{
	struct gp_device_thread *dt = arg;
	int event_fd = gp_gpu_event_fd(dt->gpu);

	set_up_thread(dt);
	while (!atomic_load_explicit(&dt->stop, memory_order_acquire)) {
		tick(dt);
		wait(dt, event_fd);
	}
	return NULL;
}
