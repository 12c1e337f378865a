/* SPDX-License-Identifier: Apache-2.0 */
#include "task/json/columns.h"

#include <stddef.h>

const struct gp_task_column gp_ps_columns[] = {
	{"PID", "pid", GP_CELL_PLAIN, false},
	{"USER", "user", GP_CELL_PLAIN, true},
	{"DEVICE", "device", GP_CELL_PLAIN, false},
	{"CLASS", "class", GP_CELL_PLAIN, true},
	{"PRIO", "priority", GP_CELL_PLAIN, false},
	{"QUEUES", "queues", GP_CELL_PLAIN, false},
	{"STATE", "state", GP_CELL_PLAIN, true},
	{"HELD BY", "held_by", GP_CELL_WORDS, true},
	{"EVICTED BY", "evicted_by", GP_CELL_PLAIN, true},
	{"OWNER", "owner", GP_CELL_PLAIN, false},
	{"SLICE", "slice_us", GP_CELL_SLICE, false},
	{"GPU", "gpu_pct", GP_CELL_SHARE, false},
	{"WAIT P50", "waits.p50_ns", GP_CELL_NS, false},
	{"P99", "waits.p99_ns", GP_CELL_NS, false},
	{"MEMORY", "memory", GP_CELL_BYTES, false},
	{"PROMISE", "refused", GP_CELL_FLAG, true},
	{"NAME", "name", GP_CELL_NAME, true},
	{0},
};

const struct gp_task_column gp_stats_columns[] = {
	{"PID", "pid", GP_CELL_PLAIN, false},
	{"DEVICE", "device", GP_CELL_PLAIN, false},
	{"CLASS", "class", GP_CELL_PLAIN, true},
	{"RUN", "ran_ns", GP_CELL_NS, false},
	{"GPU", "gpu_pct", GP_CELL_SHARE, false},
	{"SCHEDULED", "scheduled", GP_CELL_PLAIN, false},
	{"MEAN", "ran_ns", GP_CELL_MEAN, false},
	{"PREEMPTED", "preempted", GP_CELL_PLAIN, false},
	{"HELD", "held_ns", GP_CELL_NS, false},
	{"WAITS", "waits.count", GP_CELL_PLAIN, false},
	{"P50", "waits.p50_ns", GP_CELL_NS, false},
	{"P99", "waits.p99_ns", GP_CELL_NS, false},
	{"SOURCE", "run_source", GP_CELL_SOURCE, true},
	{"NAME", "name", GP_CELL_NAME, true},
	{0},
};
