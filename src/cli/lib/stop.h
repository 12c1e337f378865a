/* SPDX-License-Identifier: Apache-2.0 */
/* Ctrl-C, SIGTERM, SIGHUP and SIGQUIT as something to wait for. */
#ifndef GP_CLI_LIB_STOP_H
#define GP_CLI_LIB_STOP_H

#include <stdbool.h>
#include <stdint.h>

/*
 * From here on the first such signal makes the returned descriptor readable and nothing else; one
 * that comes 2 s later kills, for those who cannot wait. A reader of our output that went away does
 * not kill. -errno: it cannot be done.
 */
int gp_stop_open(void);

/* The same descriptor again; -1 = not opened. */
int gp_stop_fd(void);

/* Whether one has come. */
bool gp_stop_asked(void);

/* Until `until_ns` (CLOCK_MONOTONIC) or such a signal; true: it has come. */
bool gp_stop_sleep(uint64_t until_ns);

#endif
