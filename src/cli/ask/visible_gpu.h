/* SPDX-License-Identifier: Apache-2.0 */
/* Which GPU a command sees. */
#ifndef GP_CLI_ASK_VISIBLE_GPU_H
#define GP_CLI_ASK_VISIBLE_GPU_H

#include "cli/ask/ask.h"

/* Sets the variables by which programs choose a GPU to the daemon's device of this number, for
 * this process and what it becomes. -ENODEV: there is none; -ENOTSUP: there is no way to say it. */
int gp_choose_gpu(struct gp_client *client, unsigned device, struct gp_error *err);

#endif
