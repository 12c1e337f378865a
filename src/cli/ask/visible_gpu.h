/* SPDX-License-Identifier: Apache-2.0 */
/* Selects the GPU that a command sees. */
#ifndef GP_CLI_ASK_VISIBLE_GPU_H
#define GP_CLI_ASK_VISIBLE_GPU_H

#include "cli/ask/ask.h"

/* Sets the environment variables that select a GPU to the daemon's device of this number, for this
 * process and the command it becomes. -ENODEV: there is no such device; -ENOTSUP: no variable can
 * select it. */
int gp_choose_gpu(struct gp_client *client, unsigned device, struct gp_error *err);

#endif
