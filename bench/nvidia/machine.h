/* SPDX-License-Identifier: Apache-2.0 */
/* What was measured on: no names of hosts or people. */
#ifndef BENCH_MACHINE_H
#define BENCH_MACHINE_H

#include "report.h"

/* Machine, driver and date; the GPU's name where the driver tells without a context. */
void machine_describe(struct report *r);

/*
 * Keeps the first GPU initialised between runs: without persistence mode the driver shuts it down
 * with its last user, and each start would take seconds. Closed by the end of the process.
 */
void machine_keep_gpu(void);

#endif
