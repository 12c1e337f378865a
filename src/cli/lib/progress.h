/* SPDX-License-Identifier: Apache-2.0 */
/* A line about how far something is, for who sits in front of a terminal, and nobody else. */
#ifndef GP_CLI_LIB_PROGRESS_H
#define GP_CLI_LIB_PROGRESS_H

#include <stdint.h>

/* At most ten times a second; on a terminal only. */
__attribute__((format(printf, 1, 2))) void gp_progress(const char *format, ...);

/* Takes the line away; before anything else is written. */
void gp_progress_end(void);

#endif
