/* SPDX-License-Identifier: Apache-2.0 */
/* Ctrl-C, SIGTERM, SIGHUP and SIGQUIT as a file descriptor to wait for. */
#ifndef GP_CLI_LIB_STOP_H
#define GP_CLI_LIB_STOP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/*
 * From now on the first such signal only makes the returned descriptor readable. A second signal at
 * least 2 s later kills the program. SIGPIPE is ignored. -errno: it failed.
 */
int gp_stop_open(void);

/* The same. 0, or -errno with a message. */
int gp_stop_begin(struct gp_error *err);

/* The same descriptor; -1 = not opened. */
int gp_stop_fd(void);

/* Whether a signal has come. */
bool gp_stop_asked(void);

/* Sleeps until `until_ns` (CLOCK_MONOTONIC) or a signal. True: a signal has come. */
bool gp_stop_sleep(uint64_t until_ns);

#endif
