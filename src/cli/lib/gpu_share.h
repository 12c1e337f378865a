/* SPDX-License-Identifier: Apache-2.0 */
/* How much of a device a task had, from two observations of it. */
#ifndef GP_CLI_LIB_GPU_SHARE_H
#define GP_CLI_LIB_GPU_SHARE_H

#include "hold/devices.h"

struct gp_share {
	bool attached;
	bool known; /* run times were seen at two times */
	uint32_t handle;
	uint8_t source; /* enum gp_run_source, of the last one */
	uint64_t begin_ns, begin_run_ns;
	uint64_t end_ns, end_run_ns;
	struct gp_observation last; /* .known is 0 when there was none */
};

/* Attaches the task, if it can be: otherwise nothing is known of it. */
void gp_share_begin(struct gp_share *share, const struct gp_task_ref *ref);

/* Looks; the first look that knows a run time is where the share begins. */
void gp_share_tick(struct gp_share *share, const struct gp_task_ref *ref);

void gp_share_end(struct gp_share *share, const struct gp_task_ref *ref);

/* 0 to 100; only where it is known. */
double gp_share_percent(const struct gp_share *share);

/* "42 %", "<= 42 %" where it is what it was granted, "-". Returns `out`. */
const char *gp_share_text(char *out, size_t size, const struct gp_share *share);

/* ,"gpu_pct":42.0,"run_source":"measured" or null */
void gp_share_json(const struct gp_share *share);

#endif
