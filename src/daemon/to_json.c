/* SPDX-License-Identifier: Apache-2.0 */
/* Devices and tasks as JSON for clients. Unknown values are left out. */
#include <json-c/json.h>

#include "daemon/control.h"
#include "daemon/usernames.h"
#include "task/json/task_json.h"

static void add(struct json_object *o, const char *key, uint64_t value)
{
	gp_json_add(o, key, json_object_new_uint64(value));
}

static void add_text(struct json_object *o, const char *key, const char *value)
{
	gp_json_add(o, key, json_object_new_string(value));
}

static void add_hist(struct json_object *o, const char *key, const struct gp_hist *h)
{
	struct json_object *times;

	if (!h->count)
		return;
	times = json_object_new_object();
	add(times, "count", h->count);
	add(times, "p50_ns", gp_hist_quantile(h, 500000));
	add(times, "p99_ns", gp_hist_quantile(h, 990000));
	add(times, "max_ns", h->max);
	gp_json_add(o, key, times);
}

static struct json_object *render_times(const struct gp_snapshot *snapshot)
{
	struct json_object *o = json_object_new_object();

	add_hist(o, "hold", &snapshot->stats.hold_ns);
	add_hist(o, "release", &snapshot->stats.release_ns);
	add_hist(o, "decide", &snapshot->stats.decide_ns);
	add_hist(o, "detect", &snapshot->stats.detect_ns);
	add_hist(o, "wait", &snapshot->stats.wait_ns);
	add_hist(o, "lag", &snapshot->lag_ns);
	return o;
}

static struct json_object *render_stats(const struct gp_snapshot *snapshot)
{
	const struct gp_engine_stats *s = &snapshot->stats;
	struct json_object *o = json_object_new_object();

	add(o, "ticks", s->ticks);
	add(o, "decisions", s->decisions);
	add(o, "holds", s->holds);
	add(o, "releases", s->releases);
	add(o, "slices", s->slices);
	add(o, "failures", s->failures);
	add(o, "deferred", s->deferred);
	add(o, "undone", s->undone);
	add(o, "blind", s->blind);
	if (s->inversions_seen) {
		add(o, "inversions", s->inversions);
		add(o, "inversion_ns", s->inversion_ns);
	}
	add(o, "preemptions", s->preemptions);
	add(o, "ejections", s->ejections);
	if (s->busy_seen)
		add(o, "busy_ns", s->busy_ns);
	add(o, "since_ns", snapshot->now_ns - snapshot->since_ns);
	return o;
}

static struct json_object *render_caps(uint32_t caps)
{
	static const struct {
		uint32_t cap;
		const char *name;
	} names[] = {
		{GP_CAP_HOLD, "hold"},
		{GP_CAP_SLICE, "slice"},
		{GP_CAP_ACTIVITY, "activity"},
		{GP_CAP_EVENTS, "events"},
		{GP_CAP_PREEMPT_MODE, "preempt_mode"},
		{GP_CAP_REQUEST_MARKS, "request_marks"},
		{GP_CAP_STOPS_ALL, "stops_all"},
	};
	struct json_object *list = json_object_new_array();

	for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++)
		if (caps & names[i].cap)
			gp_json_append(list, json_object_new_string(names[i].name));
	return list;
}

static struct json_object *render_ejection(const struct gp_ejection_note *note)
{
	struct json_object *o = json_object_new_object();

	add_text(o, "policy", note->policy->name);
	add_text(o, "reason", gp_eject_reason_name(note->reason));
	add_text(o, "text", note->text);
	add(o, "at_ns", note->now_ns);
	return o;
}

struct json_object *gp_render_device(struct gp_control *c, unsigned device)
{
	struct gp_device_thread *h = c->thread[device];
	const struct gp_snapshot *snapshot = gp_device_thread_snapshot(h);
	uint64_t now_ns = gp_monotonic_ns();
	struct json_object *o = json_object_new_object();

	add(o, "device", device);
	add_text(o, "name", gp_device_thread_info(h)->name);
	add_text(o, "backend", gp_device_thread_backend(h));
	if (*gp_device_thread_info(h)->bus)
		add_text(o, "bus", gp_device_thread_info(h)->bus);
	add_text(o, "state",
		 gp_device_thread_overdue_ns(h, now_ns) > GP_STUCK_NS ? "stuck"
		 : gp_device_thread_is_gone(h)                        ? "gone"
								      : "ok");
	if (snapshot->policy)
		add_text(o, "policy", snapshot->policy->name);
	add_text(o, "policy_wanted", c->policy[device].ops->name);
	add_text(o, "policy_source", gp_policy_source_names[c->policy_origin[device].source]);
	gp_json_add(o, "capabilities", render_caps(gp_device_thread_caps(h)));
	add(o, "tasks", snapshot->ntasks);
	add(o, "mono_ns", snapshot->now_ns);
	if (snapshot->ejection.policy)
		gp_json_add(o, "ejection", render_ejection(&snapshot->ejection));
	gp_json_add(o, "stats", render_stats(snapshot));
	gp_json_add(o, "times", render_times(snapshot));
	return o;
}

/*
 * What prevailed in the last second. Holds by the policy and turns on the hardware change too often
 * for the state of one moment to say much. A hold by a user is shown at once.
 */
static struct gp_task_condition prevailing(const struct gp_task_stats *t, const struct gp_recent *r)
{
	struct gp_task_condition c = {.held = t->held,
				      .held_by = t->held_by,
				      .evicted = t->evicted.ns,
				      .known = t->known,
				      .active = t->active,
				      .running = t->running};
	bool ran_most = r->run_over_ns && 2 * r->ran_ns > r->run_over_ns;

	if (t->unsure)
		c.known = 0; /* what was read of it may be older than the failure */
	if (t->unsure || t->attr.class == GP_UNMANAGED || t->held_by & GP_HELD_BY_USER ||
	    r->over_ns < GP_RECENT_NS / 4)
		return c;
	if (2 * r->held_ns > r->over_ns) {
		c.held = true;
		c.held_by = GP_HELD_BY_POLICY;
	} else if (2 * r->unproven_ns + r->held_ns > r->over_ns && !ran_most) {
		c.held = false;
		c.known = 0; /* for most of the time without a hold nothing shows that it runs */
	} else if (c.held && r->held_ns) { /* by the policy, for less than half of the time */
		c.held = false;
		c.active = true;
		c.known = GP_KNOWN_ACTIVE | (ran_most ? (uint32_t)GP_KNOWN_RUNNING : 0);
		c.running = ran_most;
	} else if (c.known & GP_KNOWN_RUNNING && ran_most) {
		c.active = c.running = true;
	}
	if (!c.held)
		c.held_by = 0;
	return c;
}

struct json_object *gp_render_task(struct gp_control *c, unsigned device,
				   const struct gp_snapshot *snapshot, unsigned index)
{
	const struct gp_task_stats *t = &snapshot->task[index];
	const struct gp_recent *recent = &snapshot->recent[index];
	static const char *const source[] = {"default", "rule", "user"};
	const struct gp_proc *proc = gp_procs_of_task(&c->procs, device, t->id);
	const struct gp_task_condition condition = prevailing(t, recent);
	const struct gp_task_counters counters = {.held_ns = t->held_ns,
						  .preemptions = t->preemptions,
						  .failures = t->failures,
						  .undone = t->undone};
	char user[32];
	struct gp_task_info info = {
		.device = device,
		.id = t->id,
		.pid = t->pid,
		.start_time = t->start_time,
		.name = t->name,
		.attr = &t->attr,
		.state = gp_task_state(&condition),
		.held_by_known = true,
		.held_by = condition.held_by,
		.evidence = t->evidence,
		.evicted = t->evicted,
		.refused = t->refused,
		.slice_min_us = t->slice_us,
		.slice_max_us = t->slice_us,
		.memory = t->memory,
		.run_source = t->run_source,
		.run_total = true,
		.run_ns = t->run_ns,
		.share_known = recent->run_over_ns,
		.ran_ns = recent->ran_ns,
		.over_ns = recent->run_over_ns,
		.counters = &counters,
		.waits = {t->waits, t->wait_p50_ns, t->wait_p99_ns, t->wait_max_ns},
		.mono_ns = snapshot->now_ns,
	};

	if (proc) {
		info.gang = proc->gang;
		info.set_by = source[proc->source];
		info.rule = proc->source == GP_ATTR_BY_RULE ? (unsigned)proc->rule : 0;
		info.uid_known = proc->uid != GP_NO_UID;
		info.uid = proc->uid;
		if (info.uid_known)
			info.user = gp_user_name(proc->uid, user, sizeof user);
	}
	return gp_task_to_json(&info);
}
