/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Simulated tasks as expressions. The arguments after the first ones are initialisers of other
 * members. stop_ns is 0: the functions that take tasks make GP_NEVER of it.
 */
#ifndef TESTS_UNIT_SIM_TASKS_H
#define TESTS_UNIT_SIM_TASKS_H

#include "base/clock.h"
#include "sim/model/sim_gpu.h"

#define US GP_NS_PER_US
#define MS GP_NS_PER_MS
#define S  GP_NS_PER_S

#define LOOP(kernel, ...) \
	((struct gp_sim_task){.load = GP_LOAD_CLOSED, .kernel_ns = (kernel), __VA_ARGS__})
#define ARRIVALS(kind, every, kernel, ...) \
	((struct gp_sim_task){             \
		.load = (kind), .every_ns = (every), .kernel_ns = (kernel), __VA_ARGS__})
#define PERIODIC(...) ARRIVALS(GP_LOAD_PERIODIC, __VA_ARGS__)
#define POISSON(...)  ARRIVALS(GP_LOAD_POISSON, __VA_ARGS__)
#define TRACE(at, kernel, ...)                                       \
	((struct gp_sim_task){.load = GP_LOAD_TRACE,                 \
			      .arrival_ns = (at),                    \
			      .arrivals = sizeof(at) / sizeof *(at), \
			      .kernel_ns = (kernel),                 \
			      __VA_ARGS__})
#define IDLE ((struct gp_sim_task){.load = GP_LOAD_IDLE})

#endif
