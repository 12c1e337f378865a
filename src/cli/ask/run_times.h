/* SPDX-License-Identifier: Apache-2.0 */
/* How much of the GPU tasks had, of what the daemon counted. */
#ifndef GP_CLI_ASK_RUN_TIMES_H
#define GP_CLI_ASK_RUN_TIMES_H

#include "cli/ask/ask.h"

/*
 * The tasks by device and process, each with `device_name` and, where run times are known,
 * `gpu_pct`: its share of `for_ns`, in which this waits (or until a signal, see stop.h), or, with
 * 0, of the time since it was first seen. With `for_ns` there are also `over_ns`, the time it is
 * for, and `ran_ns` and `preempted`, what it had in it. The caller puts them.
 */
int gp_ran_ask(struct gp_client *client, struct json_object *devices, uint64_t for_ns,
               struct json_object **tasks, struct gp_error *err);

/* "42 %", "<= 42 %" where it is what was granted; NULL: not known. */
const char *gp_ran_text(struct json_object *task, char *out, size_t size);

#endif
