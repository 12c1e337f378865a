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

/* Events that are reported even if no client subscribes to them. */
#define EVENTS_ALWAYS                                                               \
	(1u << GP_EVENT_TASK_IN | 1u << GP_EVENT_TASK_OUT | 1u << GP_EVENT_POLICY | \
	 1u << GP_EVENT_EJECTED | 1u << GP_EVENT_REFUSED | 1u << GP_EVENT_ADMITTED)

static void classify(void *arg, const struct gp_seen *seen, struct gp_task_attr *attr)
{
	struct gp_device_thread *h = arg;
	struct gp_assignment entry;

	h->new_process = *seen;
	if (gp_assignments_find(h->config.assignments, seen->pid, seen->start_time, &entry))
		*attr = entry.attr;
}

static int before_change(void *arg, const struct gp_undo *undo)
{
	struct gp_device_thread *h = arg;
	int slot = h->undo ? gp_undo_put(h->undo, h->gpu->ops->name, undo) : 0;

	return slot < 0 ? slot : 0;
}

/* Grows when another process undid changes: the keeper, or an administrator. */
static uint64_t epoch(void *arg)
{
	const struct gp_device_thread *h = arg;

	return h->undo ? gp_undo_epoch(h->undo) : 0;
}

static void describe_task(struct gp_device_thread *h, struct gp_device_event *device_event)
{
	struct gp_task_stats t;

	switch (device_event->event.kind) {
	case GP_EVENT_TASK_IN:
		if (!gp_engine_find_task(h->engine, device_event->event.task, &t))
			device_event->attr = t.attr;
		device_event->pid = h->new_process.pid;
		device_event->start_time = h->new_process.start_time;
		device_event->key = h->new_process.key;
		device_event->seen_flags = h->new_process.flags;
		memcpy(device_event->name, h->new_process.name, sizeof device_event->name);
		break;
	case GP_EVENT_TASK_OUT: break;
	case GP_EVENT_EJECTED:
		snprintf(device_event->text, sizeof device_event->text, "%s",
		         gp_engine_ejection(h->engine)->text);
		break;
	case GP_EVENT_POLICY:
		snprintf(device_event->text, sizeof device_event->text, "%s",
		         gp_engine_policy(h->engine)->name);
		break;
	default:
		if (!gp_engine_find_task(h->engine, device_event->event.task, &t)) {
			device_event->held_by = t.held_by;
			device_event->attr = t.attr;
		}
	}
}

static void on_event(void *arg, const struct gp_event *event)
{
	struct gp_device_thread *h = arg;
	struct gp_device_event device_event = {.event = *event};
	uint32_t wanted = atomic_load_explicit(&h->wanted, memory_order_relaxed) | EVENTS_ALWAYS;

	if (event->kind == GP_EVENT_TASK_IN || event->kind == GP_EVENT_TASK_OUT)
		h->publish = true;
	if (!(wanted & 1u << event->kind))
		return;
	describe_task(h, &device_event);
	h->dropped += !gp_ring_put(&h->device_event, &device_event);
	h->wake_control = true;
}

int gp_device_thread_make_engine(struct gp_device_thread *h, struct gp_error *err)
{
	const struct gp_device_thread_config *c = &h->config;
	struct gp_engine_config config = {
		.gpu = h->gpu,
		.classify = classify,
		.before_change = before_change,
		.epoch = epoch,
		.on_event = on_event,
		.arg = h,
		.request_marks = true,
		.decide_clock = &gp_clock_thread_cpu,
		.check_ns = c->check_ns,
		.check_lc_ns = c->check_lc_ns,
		.check_quiet_ns = c->check_quiet_ns,
		.scan_every_ns = c->scan_every_ns,
		.starve_limit_ns = c->starve_limit_ns,
	};
	int r;

	h->epoch = epoch(h);
	r = gp_engine_new(&config, &h->engine);
	return r ? r : gp_engine_set_policy(h->engine, h->since_ns, &c->policy, err);
}

static void publish(struct gp_device_thread *h, uint64_t now_ns)
{
	if (!h->publish && now_ns - h->published_ns < PUBLISH_EVERY_NS)
		return;
	gp_snapshots_take(&h->snapshots, h->engine, now_ns, h->since_ns, &h->lag_ns);
	h->published_ns = now_ns;
	h->publish = false;
}

/*
 * Another process undid changes of this daemon. If it was the keeper, the records stay and the
 * wanted state still applies. If a record is gone, a user removed it (gpreempt resume), which ends
 * a hold by a user.
 */
static void notice_outside_resume(struct gp_device_thread *h, uint64_t now_ns)
{
	uint64_t now = epoch(h);

	if (now == h->epoch)
		return;
	h->epoch = now;
	for (unsigned i = 0; i < gp_engine_tasks(h->engine); i++) {
		struct gp_device_event device_event = {
			.event = {.kind = GP_EVENT_RELEASED, .now_ns = now_ns}, .resumed = true};
		struct gp_undo_entry e;
		struct gp_task_stats t;

		gp_engine_task_stats(h->engine, i, &t);
		if (!(t.held_by & GP_HELD_BY_USER) ||
		    gp_records_find(h->undo, t.pid, t.start_time, &e))
			continue;
		gp_engine_user_release(h->engine, t.id);
		device_event.event.task = t.id;
		h->dropped += !gp_ring_put(&h->device_event, &device_event);
		h->wake_control = true;
	}
}

static void tick(struct gp_device_thread *h)
{
	uint64_t now_ns = gp_monotonic_ns(), next_ns;

	notice_outside_resume(h, now_ns);
	gp_device_thread_execute(h, now_ns);
	next_ns = gp_engine_step(h->engine, now_ns);
	gp_device_thread_answer_waiting(h, now_ns);
	publish(h, now_ns);
	gp_device_thread_give_answers(h);
	if (h->dropped) { /* only after a snapshot that shows what the events were about */
		atomic_fetch_add_explicit(&h->lost, h->dropped, memory_order_release);
		h->dropped = 0;
	}
	if (h->nwaiting && next_ns > now_ns + GP_NS_PER_MS)
		next_ns = now_ns + GP_NS_PER_MS; /* a command waits for the result */
	h->at_once = !gp_engine_next_ns(h->engine);
	if (h->at_once)
		next_ns = now_ns;
	atomic_store_explicit(&h->due_ns, next_ns, memory_order_relaxed);
	if (h->wake_control) {
		h->wake_control = false;
		eventfd_write(h->config.wake_fd, 1);
	}
}

/* Waits until the next tick is due or an event comes. */
static void wait(struct gp_device_thread *h, int event_fd)
{
	uint64_t due_ns = atomic_load_explicit(&h->due_ns, memory_order_relaxed), now_ns, ignored;
	struct itimerspec at = {.it_value = gp_timespec(due_ns ? due_ns : 1)};
	struct pollfd p[3] = {{.fd = h->timer_fd, .events = POLLIN},
	                      {.fd = h->command_fd, .events = POLLIN},
	                      {.fd = event_fd, .events = POLLIN}};

	now_ns = gp_monotonic_ns();
	if (due_ns <= now_ns) {
		if (!h->at_once) /* the last tick took longer than its interval */
			gp_hist_add(&h->lag_ns, now_ns - due_ns);
		return;
	}
	timerfd_settime(h->timer_fd, TFD_TIMER_ABSTIME, &at, NULL);
	if (poll(p, event_fd >= 0 ? 3 : 2, -1) < 0)
		return; /* a signal: the engine decides when to tick */
	now_ns = gp_monotonic_ns();
	if (p[0].revents && now_ns > due_ns)
		gp_hist_add(&h->lag_ns, now_ns - due_ns);
	if (p[1].revents && read(h->command_fd, &ignored, sizeof ignored) < 0)
		return;
	if (event_fd >= 0 && p[2].revents) {
		if (read(event_fd, &ignored, sizeof ignored) < 0)
			return;
		gp_engine_trigger(h->engine, true);
	}
}

/* A refused setting is logged. The daemon works without it, with more delay. */
static void set_up_thread(const struct gp_device_thread *h)
{
	char name[16];
	int r;

	snprintf(name, sizeof name, "device-%u", h->config.number);
	pthread_setname_np(pthread_self(), name);
	prctl(PR_SET_TIMERSLACK, 1ul);
	if (h->config.cpu >= 0) {
		cpu_set_t cpus;

		CPU_ZERO(&cpus);
		CPU_SET((size_t)h->config.cpu, &cpus);
		r = pthread_setaffinity_np(pthread_self(), sizeof cpus, &cpus);
		if (r)
			gp_log(GP_LOG_WARN, "thread.affinity-failed", "device=%u cpu=%d errno=%d",
			       h->config.number, h->config.cpu, r);
	}
	if (h->config.realtime) {
		struct sched_param p = {.sched_priority = h->config.realtime};

		r = pthread_setschedparam(pthread_self(), SCHED_FIFO, &p);
		if (r)
			gp_log(GP_LOG_WARN, "thread.realtime-failed",
			       "device=%u priority=%d errno=%d", h->config.number,
			       h->config.realtime, r);
	}
}

void *gp_device_thread_run(void *arg)
{
	struct gp_device_thread *h = arg;
	int event_fd = gp_gpu_event_fd(h->gpu);

	set_up_thread(h);
	while (!atomic_load_explicit(&h->stop, memory_order_acquire)) {
		tick(h);
		wait(h, event_fd);
	}
	return NULL;
}
