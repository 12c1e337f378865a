/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A task as JSON: the protocol's `tasks` and the output of gpreempt ps and stats use this one
 * writer, with and without the daemon. A value that is not known is absent, never 0 or null.
 * docs/output.schema.json describes the result.
 */
#ifndef GP_TASK_JSON_TASK_JSON_H
#define GP_TASK_JSON_TASK_JSON_H

#include <json-c/json.h>
#include <sys/types.h>

#include "task/task.h"

/* The waits of a task that have ended. */
struct gp_task_waits {
	uint64_t count; /* 0: the members below are not known */
	uint64_t p50_ns, p99_ns, max_ns;
};

/* What the engine counts for a task. */
struct gp_task_counters {
	uint64_t held_ns, preemptions, failures, undone;
};

/* 0, NULL and "" mean "not known", unless a flag in this struct says that the value is known. */
struct gp_task_info {
	unsigned device;
	const char *device_name;
	uint64_t id; /* of the daemon's engine */
	pid_t pid;
	uint64_t start_time; /* of the process, in clock ticks since boot */
	const char *name;
	bool uid_known;
	uid_t uid;
	const char *user;

	const struct gp_task_attr *attr;
	const char *gang;
	const char *set_by; /* "default", "rule", "user" */
	unsigned rule;      /* from 1 */

	enum gp_task_state state;
	bool held_by_known;
	uint8_t held_by;           /* GP_HELD_BY_* */
	pid_t owner;               /* of the undo record */
	enum gp_evidence evidence; /* of the last hold or release */
	struct gp_eviction evicted;
	bool shared;  /* runs the work of many programs */
	bool refused; /* the policy cannot promise what the attributes ask for */

	bool queues_known;
	unsigned queues, copy_queues;
	uint32_t slice_min_us, slice_max_us;
	uint64_t memory; /* bytes */

	uint8_t run_source; /* enum gp_run_source; GP_RUN_UNKNOWN: the next three are not known */
	uint64_t run_ns;    /* since the daemon knows the task; 0 without a daemon */
	bool run_total;     /* run_ns is known */
	bool share_known;
	uint64_t ran_ns, over_ns; /* GPU time in the observed interval, and its length */
	uint64_t scheduled;       /* how often the task came on the hardware */

	const struct gp_task_counters *counters;
	struct gp_task_waits waits;
	uint64_t mono_ns; /* when the snapshot was taken */
};

/* The caller owns the result and drops it with json_object_put. */
struct json_object *gp_task_to_json(const struct gp_task_info *task);

/* Adds class, priority, weight and the attributes that are set. `gang` may be NULL. */
void gp_attr_to_json(struct json_object *into, const struct gp_task_attr *attr, const char *gang);

/* Adds `gpu_pct`, `ran_ns` as a part of `over_ns`, with one decimal. Adds nothing if `over_ns` is
 * 0. */
void gp_share_to_json(struct json_object *into, uint64_t ran_ns, uint64_t over_ns);

/* Adds `evicted_by` and `evicted_ns`, if the task is known to be evicted. */
void gp_eviction_to_json(struct json_object *into, const struct gp_eviction *evicted);

/* Adds `confirmed_by`, "driver" or "none", unless there is evidence enough. */
void gp_evidence_to_json(struct json_object *into, enum gp_evidence evidence);

/* "driver" or "reset". */
const char *gp_evicted_by(const struct gp_eviction *evicted);

/* An array of "policy" and "user", each only if its bit is set in `held_by`. */
struct json_object *gp_holders_to_json(uint8_t held_by);

#endif
