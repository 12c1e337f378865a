/* SPDX-License-Identifier: Apache-2.0 */
/* Handles events of the devices, publishes them to clients, and watches GPU memory limits. */
#include <errno.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/log.h"
#include "base/table.h"
#include "daemon/control.h"
#include "rpc/wire.h"
#include "task/json/task_json.h"

static uint64_t realtime_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * GP_NS_PER_S + (uint64_t)t.tv_nsec;
}

struct json_object *gp_event_new(struct gp_control *c, enum gp_topic topic)
{
	struct json_object *event;

	if (!c->server || !(gp_rpc_wanted(c->server) & 1ull << topic))
		return NULL;
	event = gp_json_begin();
	gp_json_add(event, "event", json_object_new_string(gp_topic_names[topic]));
	gp_json_add(event, "at_ns", json_object_new_uint64(realtime_ns()));
	return event;
}

void gp_event_add_proc(struct json_object *event, const struct gp_proc *proc)
{
	gp_json_add(event, "pid", json_object_new_int(proc->pid));
	gp_json_add(event, "name", json_object_new_string(proc->name));
}

void gp_events_publish(struct gp_control *c, enum gp_topic topic, struct json_object *event)
{
	gp_rpc_notify(c->server, 1ull << topic, "event", event);
}

/* The first topics have the order of the engine's events. */
_Static_assert((int)GP_TOPIC_TASK_IN == (int)GP_EVENT_TASK_IN &&
		       (int)GP_TOPIC_UNDONE == (int)GP_EVENT_UNDONE &&
		       (int)GP_TOPIC_RESTORED == (int)GP_EVENT_RESTORED,
	       "the order of topics and events differs");

static void add_details(struct json_object *event, const struct gp_device_event *device_event)
{
	switch (device_event->event.kind) {
	case GP_EVENT_TASK_IN:
	case GP_EVENT_REFUSED:
	case GP_EVENT_ADMITTED:
		gp_json_add(event, "class",
			    json_object_new_string(gp_class_name(device_event->attr.class)));
		break;
	case GP_EVENT_HELD:
		gp_json_add(event, "by", gp_holders_to_json(device_event->held_by));
		gp_evidence_to_json(event, device_event->evidence);
		break;
	case GP_EVENT_RELEASED: gp_evidence_to_json(event, device_event->evidence); break;
	case GP_EVENT_EVICTED:
		gp_json_add(event, "evicted_by",
			    json_object_new_string(gp_evicted_by(&device_event->evicted)));
		break;
	case GP_EVENT_POLICY:
		gp_json_add(event, "policy", json_object_new_string(device_event->text));
		break;
	case GP_EVENT_EJECTED:
		gp_json_add(event, "text", json_object_new_string(device_event->text));
		break;
	case GP_EVENT_ACTION_FAILED:
		gp_json_add(event, "errno",
			    json_object_new_string(gp_rpc_errno_name(device_event->event.code)));
		break;
	default: break;
	}
}

static void publish_device_event(struct gp_control *c, unsigned device,
				 const struct gp_device_event *device_event)
{
	enum gp_topic topic = (enum gp_topic)device_event->event.kind;
	struct json_object *event = gp_event_new(c, topic);
	const struct gp_proc *proc;

	if (!event)
		return;
	gp_json_add(event, "mono_ns", json_object_new_uint64(device_event->event.now_ns));
	gp_json_add(event, "device", json_object_new_uint64(device));
	if (device_event->event.task)
		gp_json_add(event, "task", json_object_new_uint64(device_event->event.task));
	proc = gp_procs_of_task(&c->procs, device, device_event->event.task);
	if (proc)
		gp_event_add_proc(event, proc);
	add_details(event, device_event);
	gp_events_publish(c, topic, event);
}

/* Copies the assignment of the process or of an ancestor, which may end earlier. */
static void adopt_assignment(struct gp_control *c, struct gp_proc *proc)
{
	const struct gp_proc *parent;
	struct gp_assignment entry;

	if (proc->source != GP_ATTR_BY_DEFAULT ||
	    !gp_assignments_find(c->assignments, proc->pid, proc->start_time, &entry))
		return;
	gp_proc_assign(proc, entry.source, entry.by);
	proc->rule = entry.rule;
	proc->attr = entry.attr;
	memcpy(proc->gang, entry.gang, sizeof proc->gang);
	if (entry.pid == proc->pid)
		return;
	parent = gp_procs_find(&c->procs, entry.pid, entry.start_time);
	proc->limit = parent ? parent->limit : gp_limit_least;
	entry.pid = proc->pid;
	entry.start_time = proc->start_time;
	gp_assignments_put(c->assignments, &entry, NULL);
}

static void task_in(struct gp_control *c, unsigned device,
		    const struct gp_device_event *device_event)
{
	struct gp_proc *proc = gp_procs_of_task(&c->procs, device, device_event->event.task);
	bool first;

	if (proc && proc->pid == device_event->pid && proc->start_time == device_event->start_time)
		return;
	if (proc) /* a child inherited the task, and the event of that was lost */
		gp_procs_task_out(&c->procs, device, device_event->event.task);
	proc = gp_procs_get(&c->procs, device_event->pid, device_event->start_time);
	if (!proc || gp_procs_task_in(&c->procs, proc, device, device_event->event.task,
				      device_event->key)) {
		gp_log(GP_LOG_ERROR, "task.no-memory", "pid=%d", device_event->pid);
		return;
	}
	first = proc->ntasks == 1;
	memcpy(proc->name, device_event->name, sizeof proc->name);
	proc->shared |= device_event->seen_flags & GP_SEEN_SHARED;
	if (first) {
		adopt_assignment(c, proc);
		gp_log_shared(proc);
		gp_process_arrived(c, proc);
	}
	if (proc->source != GP_ATTR_BY_DEFAULT &&
	    !gp_task_attr_same(&proc->attr, &device_event->attr))
		/* The attributes were set while the device thread classified the task. */
		gp_device_thread_command(c->thread[device],
					 &(struct gp_command){.kind = GP_COMMAND_ATTR,
							      .task = device_event->event.task,
							      .attr = proc->attr});
	if (proc->held_by != GP_NO_UID)
		gp_device_thread_command(c->thread[device],
					 &(struct gp_command){.kind = GP_COMMAND_HOLD,
							      .task = device_event->event.task});
}

static void on_resumed(struct gp_control *c, unsigned device,
		       const struct gp_device_event *device_event)
{
	struct gp_proc *proc = gp_procs_of_task(&c->procs, device, device_event->event.task);

	if (!proc || proc->held_by == GP_NO_UID)
		return;
	gp_hold_forget(proc);
	gp_log(GP_LOG_INFO, "process.resumed", "pid=%d", proc->pid);
}

static void handle_event(struct gp_control *c, unsigned device,
			 const struct gp_device_event *device_event)
{
	switch (device_event->event.kind) {
	case GP_EVENT_TASK_IN:
		c->last_task_event_ns[device] = device_event->event.now_ns;
		task_in(c, device, device_event);
		publish_device_event(c, device, device_event);
		break;
	case GP_EVENT_TASK_OUT:
		c->last_task_event_ns[device] = device_event->event.now_ns;
		publish_device_event(c, device, device_event);
		gp_procs_task_out(&c->procs, device, device_event->event.task);
		break;
	case GP_EVENT_RELEASED:
		if (device_event->resumed)
			on_resumed(c, device, device_event);
		else
			publish_device_event(c, device, device_event);
		break;
	case GP_EVENT_EJECTED:
		gp_log(GP_LOG_ERROR, "policy.ejected", "device=%u text=\"%s\"", device,
		       device_event->text);
		publish_device_event(c, device, device_event);
		break;
	default: publish_device_event(c, device, device_event);
	}
}

/* Removes the tasks of this device that are not in the snapshot. */
static void drop_absent(struct gp_control *c, unsigned device, const struct gp_table *present)
{
	struct gp_proc *next;

	for (struct gp_proc *proc = c->procs.first; proc; proc = next) {
		next = proc->next;
		for (unsigned i = proc->ntasks; i-- > 0;) {
			const struct gp_proc_task *t = &proc->task[i];
			bool last =
				proc->ntasks == 1; /* the process may be freed with its last task */

			if (t->device != device || gp_table_get(present, t->id, NULL))
				continue;
			gp_procs_task_out(&c->procs, device, t->id);
			if (last)
				break;
		}
	}
}

/*
 * Events were lost, so the tasks are read from a snapshot instead. It must be newer than all
 * handled events. In an older one a task that has left would reappear, and no event would remove
 * it.
 */
static void catch_up(struct gp_control *c, unsigned device)
{
	const struct gp_snapshot *snapshot = gp_device_thread_snapshot(c->thread[device]);
	struct gp_table present;
	int r = 0;

	if (snapshot->now_ns < c->last_task_event_ns[device])
		return; /* tried again at the next heartbeat at the latest */
	gp_table_init(&present);
	for (unsigned i = 0; i < snapshot->ntasks; i++) {
		const struct gp_task_stats *t = &snapshot->task[i];
		struct gp_device_event device_event = {
			.event = {.kind = GP_EVENT_TASK_IN, .task = t->id},
			.pid = t->pid,
			.start_time = t->start_time,
			.key = t->key,
			.attr = t->attr};

		memcpy(device_event.name, t->name, sizeof device_event.name);
		task_in(c, device, &device_event);
		r |= gp_table_put(&present, t->id, 1);
	}
	if (!r) {
		drop_absent(c, device, &present);
		c->behind[device] = false;
	}
	gp_table_free(&present);
}

void gp_events_catch_up(struct gp_control *c)
{
	for (unsigned i = 0; i < c->nthreads; i++)
		if (c->behind[i])
			catch_up(c, i);
}

void gp_events_take(struct gp_control *c)
{
	struct gp_answer answer;
	struct gp_device_event device_event;

	for (unsigned i = 0; i < c->nthreads; i++) {
		uint64_t lost;

		while (gp_device_thread_next_event(c->thread[i], &device_event))
			handle_event(c, i, &device_event);
		while (gp_device_thread_next_answer(c->thread[i], &answer))
			gp_gather_answer(i, &answer);
		lost = gp_device_thread_lost_events(c->thread[i]);
		if (lost) {
			gp_log(GP_LOG_WARN, "events.lost", "device=%u events=%llu", i,
			       (unsigned long long)lost);
			c->behind[i] = true;
		}
	}
	gp_events_catch_up(c);
}

static int on_wake(sd_event_source *source, int fd, uint32_t events, void *arg)
{
	eventfd_t ignored;

	(void)source;
	(void)events;
	eventfd_read(fd, &ignored);
	gp_events_take(arg);
	return 0;
}

int gp_events_begin(struct gp_control *c)
{
	sd_event_source *wake;
	int r;

	c->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (c->wake_fd < 0)
		return -errno;
	r = sd_event_add_io(c->loop, &wake, c->wake_fd, EPOLLIN, on_wake, c);
	return r < 0 ? r : gp_run_before_clients(wake); /* the rings of events are bounded */
}

void gp_events_want(struct gp_control *c)
{
	uint32_t wanted = (uint32_t)gp_rpc_wanted(c->server);

	if (wanted == c->wanted)
		return;
	c->wanted = wanted;
	for (unsigned i = 0; i < c->nthreads; i++)
		gp_device_thread_want(c->thread[i], wanted);
}

static void pass_limit(struct gp_control *c, struct gp_proc *proc, uint64_t memory)
{
	struct json_object *event = gp_event_new(c, GP_TOPIC_LIMIT);

	gp_log(GP_LOG_WARN, "memory.limit-exceeded", "pid=%d memory=%llu limit=%llu", proc->pid,
	       (unsigned long long)memory, (unsigned long long)proc->memory_limit);
	c->limits_passed++;
	if (event) {
		gp_event_add_proc(event, proc);
		gp_json_add(event, "memory", json_object_new_uint64(memory));
		gp_json_add(event, "limit", json_object_new_uint64(proc->memory_limit));
		gp_events_publish(c, GP_TOPIC_LIMIT, event);
	}
}

/* Holds the process once; a user who releases it afterwards overrides the limit. */
static void hold_for_limit(struct gp_control *c, struct gp_proc *proc)
{
	proc->limit_held = true;
	proc->hold_stays = true;
	/*
	 * If only its owner holds it, the hold becomes an administrator's, so that the owner cannot
	 * release it.
	 */
	if (proc->held_by != GP_NO_UID && proc->held_by_admin)
		return;
	proc->held_by = 0;
	proc->held_by_admin = true;
	gp_command_tasks(c, proc, GP_COMMAND_HOLD);
}

/*
 * A limit counts the memory on all devices together. It is reported once, until the process is
 * below it again.
 */
void gp_events_check_limits(struct gp_control *c)
{
	for (struct gp_proc *p = c->procs.first; p; p = p->next)
		p->memory = 0;
	for (unsigned i = 0; i < c->nthreads; i++) {
		const struct gp_snapshot *snapshot = gp_device_thread_snapshot(c->thread[i]);

		for (unsigned t = 0; t < snapshot->ntasks; t++) {
			struct gp_proc *p = gp_procs_of_task(&c->procs, i, snapshot->task[t].id);

			if (p)
				p->memory += snapshot->task[t].memory;
		}
	}
	for (struct gp_proc *p = c->procs.first; p; p = p->next) {
		bool passed = p->memory_limit && p->memory > p->memory_limit;

		if (passed && !p->limit_passed)
			pass_limit(c, p, p->memory);
		p->limit_passed = passed;
		p->limit_held &= passed;
		/* An unmanaged process is never held, but its class may change later. */
		if (passed && p->hold_at_limit && !p->limit_held && p->attr.class != GP_UNMANAGED)
			hold_for_limit(c, p);
	}
}
