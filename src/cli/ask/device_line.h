/* SPDX-License-Identifier: Apache-2.0 */
/* What several verbs say of a device. */
#ifndef GP_CLI_ASK_DEVICE_LINE_H
#define GP_CLI_ASK_DEVICE_LINE_H

#include "cli/ask/fields.h"

/* "device 0: NVIDIA H200 #0, policy priority", and what else is to be known; no newline. */
void gp_show_device(struct json_object *device);

/* Why a policy was thrown out: a line, or nothing. */
void gp_show_ejection(struct json_object *device);

#endif
