/* SPDX-License-Identifier: Apache-2.0 */
/* Prints tasks (a JSON array, see task/json) as a table, and devices as lines. */
#ifndef GP_CLI_LIB_TASK_TABLE_H
#define GP_CLI_LIB_TASK_TABLE_H

#include "cli/lib/fields.h"
#include "task/json/columns.h"

/* `columns` ends with a head of NULL. Prints a sentence where there is no task. */
void gp_task_table_print(struct json_object *tasks, const struct gp_task_column *columns);

/* "device 0: NVIDIA H200 #0, policy priority", and its state if that is not "ok"; no newline. */
void gp_show_device(struct json_object *device);

/* A line with the reason why a policy was ejected, or nothing. */
void gp_show_ejection(struct json_object *device);

#endif
