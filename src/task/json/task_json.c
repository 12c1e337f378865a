/* SPDX-License-Identifier: Apache-2.0 */
#include "task/json/task_json.h"

#include <stdio.h>

/* json-c aborts if there was no memory for `o` (NULL). */
static void add_value(struct json_object *o, const char *key, struct json_object *value)
{
	if (!o || json_object_object_add(o, key, value))
		json_object_put(value);
}

static void add(struct json_object *o, const char *key, uint64_t value)
{
	add_value(o, key, json_object_new_uint64(value));
}

static void add_known(struct json_object *o, const char *key, uint64_t value)
{
	if (value)
		add(o, key, value);
}

static void add_text(struct json_object *o, const char *key, const char *value)
{
	if (value && *value)
		add_value(o, key, json_object_new_string(value));
}

static void add_flag(struct json_object *o, const char *key, bool value)
{
	if (value)
		add_value(o, key, json_object_new_boolean(true));
}

void gp_attr_to_json(struct json_object *into, const struct gp_task_attr *a, const char *gang)
{
	add_text(into, "class", gp_class_name(a->class));
	add(into, "priority", a->priority);
	add(into, "weight", a->weight);
	add_known(into, "share_permille", a->share_permille);
	add_known(into, "ceiling_permille", a->ceiling_permille);
	add_known(into, "deadline_ns", a->deadline_ns);
	add_known(into, "budget_ns", a->budget_ns);
	add_text(into, "gang", gang);
}

void gp_share_to_json(struct json_object *into, uint64_t ran_ns, uint64_t over_ns)
{
	double percent = over_ns ? 100.0 * (double)ran_ns / (double)over_ns : 0;
	char text[16];

	if (!over_ns)
		return;
	/* Run time and interval come from two clocks that are read one after the other. */
	percent = percent < 100 ? percent : 100;
	snprintf(text, sizeof text, "%.1f", percent);
	add_value(into, "gpu_pct", json_object_new_double_s(percent, text));
}

const char *gp_evicted_by(const struct gp_eviction *evicted)
{
	return evicted->by_reset ? "reset" : "driver";
}

void gp_eviction_to_json(struct json_object *into, const struct gp_eviction *evicted)
{
	if (!evicted->ns)
		return;
	add_text(into, "evicted_by", gp_evicted_by(evicted));
	add(into, "evicted_ns", evicted->ns);
}

void gp_evidence_to_json(struct json_object *into, enum gp_evidence evidence)
{
	if (evidence != GP_EVIDENCE_ENOUGH)
		add_text(into, "confirmed_by", evidence == GP_EVIDENCE_DRIVER ? "driver" : "none");
}

struct json_object *gp_holders_to_json(uint8_t held_by)
{
	struct json_object *list = json_object_new_array();

	if (!list)
		return NULL;
	if (held_by & GP_HELD_BY_POLICY)
		json_object_array_add(list, json_object_new_string("policy"));
	if (held_by & GP_HELD_BY_USER)
		json_object_array_add(list, json_object_new_string("user"));
	return list;
}

static void add_slice(struct json_object *o, const struct gp_task_info *t)
{
	if (t->slice_min_us == t->slice_max_us) {
		add_known(o, "slice_us", t->slice_max_us);
		return;
	}
	add_known(o, "slice_min_us", t->slice_min_us);
	add_known(o, "slice_max_us", t->slice_max_us);
}

static void add_run(struct json_object *o, const struct gp_task_info *t)
{
	add_known(o, "scheduled", t->scheduled);
	if (t->run_source == GP_RUN_UNKNOWN)
		return;
	if (t->run_total)
		add(o, "run_ns", t->run_ns);
	add_text(o, "run_source", t->run_source == GP_RUN_MEASURED ? "measured" : "granted");
	if (t->share_known) {
		add(o, "ran_ns", t->ran_ns);
		add(o, "over_ns", t->over_ns);
		gp_share_to_json(o, t->ran_ns, t->over_ns);
	}
}

static void add_counters(struct json_object *o, const struct gp_task_info *t)
{
	struct json_object *waits;

	if (t->counters) {
		add(o, "held_ns", t->counters->held_ns);
		add(o, "preemptions", t->counters->preemptions);
		add(o, "failures", t->counters->failures);
		add(o, "undone", t->counters->undone);
	}
	if (!t->waits.count)
		return;
	waits = json_object_new_object();
	add(waits, "count", t->waits.count);
	add(waits, "p50_ns", t->waits.p50_ns);
	add(waits, "p99_ns", t->waits.p99_ns);
	add(waits, "max_ns", t->waits.max_ns);
	add_value(o, "waits", waits);
}

struct json_object *gp_task_to_json(const struct gp_task_info *t)
{
	struct json_object *o = json_object_new_object();

	add(o, "device", t->device);
	add_text(o, "device_name", t->device_name);
	add_known(o, "task", t->id);
	add(o, "pid", (uint64_t)t->pid);
	add_known(o, "start_time", t->start_time);
	add_value(o, "name", json_object_new_string(t->name));
	if (t->uid_known)
		add(o, "uid", t->uid);
	add_text(o, "user", t->user);
	if (t->attr)
		gp_attr_to_json(o, t->attr, t->gang);
	add_text(o, "set_by", t->set_by);
	add_known(o, "rule", t->rule);
	if (t->state != GP_TASK_UNKNOWN)
		add_text(o, "state", gp_task_state_name(t->state));
	if (t->held_by_known)
		add_value(o, "held_by", gp_holders_to_json(t->held_by));
	gp_evidence_to_json(o, t->evidence);
	gp_eviction_to_json(o, &t->evicted);
	add_known(o, "owner", (uint64_t)t->owner);
	add_flag(o, "shared", t->shared);
	add_flag(o, "refused", t->refused);
	if (t->queues_known) {
		add(o, "queues", t->queues);
		add(o, "copy_queues", t->copy_queues);
	}
	add_slice(o, t);
	add_known(o, "memory", t->memory);
	add_run(o, t);
	add_counters(o, t);
	add_known(o, "mono_ns", t->mono_ns);
	return o;
}
