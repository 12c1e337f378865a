/* SPDX-License-Identifier: Apache-2.0 */
/* Runs and times a command of the user, to show the effect of a hold on it. */
#ifndef GP_CLI_LIB_USER_COMMAND_H
#define GP_CLI_LIB_USER_COMMAND_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct gp_online_run {
	bool done;
	uint64_t took_ns;
	int status; /* exit status, or 128 + the signal that ended it */
};

struct gp_online {
	struct gp_online_run alone; /* with the process held */
	struct gp_online_run beside;
};

/* Runs a shell command to its end; a signal to this program ends it. Its output goes to standard
 * error. */
int gp_online_run(const char *command, struct gp_online_run *run, struct gp_error *err);

#endif
