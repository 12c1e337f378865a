/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks and devices as the back ends show them to this process, without the daemon. */
#ifndef GP_CLI_LIB_LOCAL_TASKS_H
#define GP_CLI_LIB_LOCAL_TASKS_H

#include <json-c/json.h>

#include "hold/devices.h"

/*
 * Observes all tasks for `for_ns`, or until a signal (see stop.h). With `patient` it goes on for up
 * to four sample periods of the device until every share is known. `*tasks` is an array, ordered by
 * device and process, as docs/output.schema.json describes it; the caller puts it.
 */
int gp_local_tasks(const struct gp_devices *devices, uint64_t for_ns, bool patient,
                   struct json_object **tasks, struct gp_error *err);

/* An array of the devices: number, name, back end, bus. The caller puts it. */
struct json_object *gp_local_devices(const struct gp_devices *devices);

#endif
