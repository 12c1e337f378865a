/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks and devices as the back ends show them to this process, without the daemon. */
#ifndef GP_CLI_LIB_LOCAL_TASKS_H
#define GP_CLI_LIB_LOCAL_TASKS_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/*
 * Observes all tasks for `for_ns`, or until a signal (see stop.h). With `patient` it goes on for up
 * to four sample periods of the device until every share is known. `*answer` is an object with
 * `tasks`, ordered by device and process, and `devices`, as docs/output.schema.json describes them;
 * the caller puts it.
 */
int gp_local_tasks(uint64_t for_ns, bool patient, struct json_object **answer,
		   struct gp_error *err);

#endif
