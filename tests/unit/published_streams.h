/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The published workloads as they ran without GPreempt: all programs are streams of one context and
 * run side by side, each as wide as its kernels. The model `cwsr` does that; no task is held, so
 * none of its costs counts. docs/simulator.md says where the widths come from.
 */
#ifndef TESTS_UNIT_PUBLISHED_STREAMS_H
#define TESTS_UNIT_PUBLISHED_STREAMS_H

#include "support/test.h"

#include "base/clock.h"
#include "scenario_world.h"

struct stream {
	const char *name;
	uint64_t kernel_ns;
	uint32_t width_permille;
};

/* The scenario with all its programs as streams; without the best-effort ones on request. */
void make_streams(const struct gp_scenario *from, bool with_best_effort, struct gp_scenario *to);

#endif
