/* SPDX-License-Identifier: Apache-2.0 */
/* What each task gets done with the device to itself: the measure of what sharing costs it. */
#ifndef GP_SIM_SCENARIO_ALONE_H
#define GP_SIM_SCENARIO_ALONE_H

#include "sim/scenario/scenario.h"

/* Fills in s->alone_ns unless it is there already, so once for all policies. 0 or -errno. */
int gp_scenario_measure_alone(struct gp_scenario *s);

#endif
