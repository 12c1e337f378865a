/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times are compared with controls of the same run: what a bare call takes, and by how much a bare
 * timer is late, which is what every hand-over between threads may cost on this machine now.
 */
#ifndef TESTS_AMD_TIMING_H
#define TESTS_AMD_TIMING_H

#include "gpu/amd/session.h"
#include "amd_world.h"

/* The percentile of the values. Sorts them. */
uint64_t percentile(uint64_t *ns, unsigned n, unsigned percent);

/* By how much a timer of 1 ms is late: nine of ten times less. */
uint64_t timer_lateness_ns(void);

/* The same before and after something was measured, whichever is more. */
uint64_t worse_lateness_ns(uint64_t before_ns);

/* What it takes to suspend the queues of a process with nothing around it, half of the times less.
 */
uint64_t bare_suspend_ns(pid_t pid, unsigned n);

#endif
