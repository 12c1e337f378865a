/* SPDX-License-Identifier: Apache-2.0 */
/* The share of the GPU that tasks had, from the daemon's counters. */
#ifndef GP_CLI_ASK_RUN_TIMES_H
#define GP_CLI_ASK_RUN_TIMES_H

#include "cli/ask/ask.h"

/*
 * Asks for the tasks, ordered by device and process, and adds `device_name` to each. Where run
 * times are known it adds `gpu_pct`: the share of `for_ns`, during which this function waits (or
 * until a signal, see stop.h). With `for_ns` 0 it is the share of the time since the daemon knows
 * the task. With `for_ns` it also adds `over_ns`, the length of the interval, and the changes in
 * it: `ran_ns` and `preempted`. The caller puts the array.
 */
int gp_ran_ask(struct gp_client *client, struct json_object *devices, uint64_t for_ns,
	       struct json_object **tasks, struct gp_error *err);

#endif
