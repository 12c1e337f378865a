/* SPDX-License-Identifier: Apache-2.0 */
/* A progress line, on a terminal only. */
#ifndef GP_CLI_LIB_PROGRESS_H
#define GP_CLI_LIB_PROGRESS_H

#include <stdint.h>

/* Written at most ten times a second. */
__attribute__((format(printf, 1, 2))) void gp_progress(const char *format, ...);

/* Removes the line; to be called before other output. */
void gp_progress_end(void);

#endif
