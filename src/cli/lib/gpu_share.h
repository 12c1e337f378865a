/* SPDX-License-Identifier: Apache-2.0 */
/* The share of a device that a task had, from two observations of the task. */
#ifndef GP_CLI_LIB_GPU_SHARE_H
#define GP_CLI_LIB_GPU_SHARE_H

#include "hold/devices.h"

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
