/* SPDX-License-Identifier: Apache-2.0 */
/* The work of each task with the device to itself. It is the reference for the cost of sharing. */
#ifndef GP_SIM_SCENARIO_ALONE_H
#define GP_SIM_SCENARIO_ALONE_H

#include "sim/scenario/scenario.h"

/* Fills in s->alone_ns unless it is set already, so it is computed once for all policies. Returns 0
 * or -errno. */
int gp_scenario_measure_alone(struct gp_scenario *s);

#endif
