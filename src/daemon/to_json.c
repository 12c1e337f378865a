/* SPDX-License-Identifier: Apache-2.0 */
/* Devices and tasks as JSON for clients. Unknown values are left out. */
#include <json-c/json.h>

#include "daemon/control.h"
#include "daemon/usernames.h"

static void add(struct json_object *o, const char *key, uint64_t value)
{
	json_object_object_add(o, key, json_object_new_uint64(value));
}

static void add_text(struct json_object *o, const char *key, const char *value)
{
	json_object_object_add(o, key, json_object_new_string(value));
}

const char *gp_class_name(uint8_t class)
{
	return class == GP_LATENCY_CRITICAL ? "lc" : class == GP_BEST_EFFORT ? "be" : "unmanaged";
}

void gp_render_attr(struct json_object *into, const struct gp_task_attr *a, const char *gang)
{
	add_text(into, "class", gp_class_name(a->class));
	add(into, "priority", a->priority);
	add(into, "weight", a->weight);
	if (a->share_permille)
		add(into, "share_permille", a->share_permille);
	if (a->ceiling_permille)
		add(into, "ceiling_permille", a->ceiling_permille);
	if (a->deadline_ns)
		add(into, "deadline_ns", a->deadline_ns);
	if (a->budget_ns)
		add(into, "budget_ns", a->budget_ns);
	if (gang && *gang)
		add_text(into, "gang", gang);
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
	json_object_object_add(o, key, times);
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
			json_object_array_add(list, json_object_new_string(names[i].name));
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
	add_text(o, "state", gp_device_thread_overdue_ns(h, now_ns) > GP_STUCK_NS ? "stuck" : "ok");
	if (snapshot->policy)
		add_text(o, "policy", snapshot->policy->name);
	add_text(o, "policy_wanted", c->policy[device].ops->name);
	json_object_object_add(o, "capabilities", render_caps(gp_device_thread_caps(h)));
	add(o, "tasks", snapshot->ntasks);
	add(o, "mono_ns", snapshot->now_ns);
	if (snapshot->ejection.policy)
		json_object_object_add(o, "ejection", render_ejection(&snapshot->ejection));
	json_object_object_add(o, "stats", render_stats(snapshot));
	json_object_object_add(o, "times", render_times(snapshot));
	return o;
}

static const char *state_name(const struct gp_task_stats *t)
{
	if (t->held)
		return t->held_by & GP_HELD_BY_USER ? "suspended" : "held";
	if (!(t->known & GP_KNOWN_ACTIVE))
		return "unknown";
	if (!t->active)
		return "idle";
	if (!(t->known & GP_KNOWN_RUNNING))
		return "active";
	return t->running ? "running" : "waiting";
}

static void add_holders(struct json_object *o, uint8_t held_by)
{
	struct json_object *list = json_object_new_array();

	if (held_by & GP_HELD_BY_POLICY)
		json_object_array_add(list, json_object_new_string("policy"));
	if (held_by & GP_HELD_BY_USER)
		json_object_array_add(list, json_object_new_string("user"));
	json_object_object_add(o, "held_by", list);
}

static void add_owner(struct json_object *o, const struct gp_proc *proc)
{
	static const char *const source[] = {"default", "rule", "user"};
	char name[32];

	if (proc->uid != GP_NO_UID) {
		add(o, "uid", proc->uid);
		add_text(o, "user", gp_user_name(proc->uid, name, sizeof name));
	}
	add_text(o, "set_by", source[proc->source]);
	if (proc->source == GP_ATTR_BY_RULE)
		add(o, "rule", proc->rule);
}

static void add_counts(struct json_object *o, const struct gp_task_stats *t)
{
	if (t->run_source != GP_RUN_UNKNOWN) {
		add(o, "run_ns", t->run_ns);
		add_text(o, "run_source",
		         t->run_source == GP_RUN_MEASURED ? "measured" : "granted");
	}
	add(o, "held_ns", t->held_ns);
	if (t->slice_us)
		add(o, "slice_us", t->slice_us);
	add(o, "preemptions", t->preemptions);
	add(o, "failures", t->failures);
	add(o, "undone", t->undone);
	if (t->memory)
		add(o, "memory", t->memory);
	if (t->refused)
		json_object_object_add(o, "refused", json_object_new_boolean(true));
}

static void add_waits(struct json_object *o, const struct gp_task_stats *t)
{
	struct json_object *waits;

	if (!t->waits)
		return;
	waits = json_object_new_object();
	add(waits, "count", t->waits);
	add(waits, "p50_ns", t->wait_p50_ns);
	add(waits, "p99_ns", t->wait_p99_ns);
	add(waits, "max_ns", t->wait_max_ns);
	json_object_object_add(o, "waits", waits);
}

struct json_object *gp_render_task(struct gp_control *c, unsigned device,
                                   const struct gp_task_stats *t)
{
	const struct gp_proc *proc = gp_procs_of_task(&c->procs, device, t->id);
	struct json_object *o = json_object_new_object();

	add(o, "device", device);
	add(o, "task", t->id);
	add(o, "pid", (uint64_t)t->pid);
	add(o, "start_time", t->start_time);
	add_text(o, "name", t->name);
	gp_render_attr(o, &t->attr, proc ? proc->gang : NULL);
	add_text(o, "state", state_name(t));
	add_holders(o, t->held_by);
	if (proc)
		add_owner(o, proc);
	add_counts(o, t);
	add_waits(o, t);
	return o;
}
