/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks and devices as the back ends show them to this process, without the daemon; and the share
 * of a device that a task had.
 */
#ifndef GP_CLI_LIB_LOCAL_TASKS_H
#define GP_CLI_LIB_LOCAL_TASKS_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "hold/devices.h"

/*
 * Observes all tasks for `for_ns`, or until a signal (see stop.h). With `patient` it goes on for up
 * to four sample periods of the device until every share is known. `*answer` is an object with
 * `tasks`, ordered by device and process, and `devices`, as docs/output.schema.json describes them;
 * the caller puts it.
 */
int gp_local_tasks(uint64_t for_ns, bool patient, struct json_object **answer,
		   struct gp_error *err);

struct gp_share {
	bool attached;
	bool known; /* two different run times were observed */
	uint32_t handle;
	uint8_t source; /* enum gp_run_source, of the last observation */
	uint64_t begin_ns, begin_run_ns;
	uint64_t end_ns, end_run_ns;
	unsigned ticks, held_ticks, active_ticks, running_ticks; /* observations of each state */
	struct gp_observation last;                              /* .known is 0 before the first */
};

/* Attaches the task. If that fails, share->last.known stays 0. */
void gp_share_begin(struct gp_share *share, const struct gp_task_ref *ref);

/* Observes. The share begins with the first observation that has a run time. */
void gp_share_tick(struct gp_share *share, const struct gp_task_ref *ref);

void gp_share_end(struct gp_share *share, const struct gp_task_ref *ref);

/* 0 to 100; only where `known` is set. */
double gp_share_percent(const struct gp_share *share);

/* "42 %", "<= 42 %" where it is the granted time, "-" where it is not known. Returns `out`. */
const char *gp_share_text(char *out, size_t size, const struct gp_share *share);

#endif
