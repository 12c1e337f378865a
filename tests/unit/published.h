/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs of the published workloads, counted as in the publication: the mean time from when a program
 * begins a request until it is answered, and the mean over the latency-critical programs.
 */
#ifndef TESTS_UNIT_PUBLISHED_H
#define TESTS_UNIT_PUBLISHED_H

#include "support/test.h"

#include <math.h>

#include "published_streams.h"

#define SEEDS     10 /* for random arrivals; all else is the same with each seed */
#define DURATION  (20 * GP_NS_PER_S)
#define MAX_TASKS 16

struct outcome {
	double us;   /* the mean over requests and programs */
	double work; /* best-effort requests per second */
	double task_us[MAX_TASKS];
};

struct book {
	uint64_t free_ns[MAX_TASKS]; /* when the program finished the last request */
	double sum_us[MAX_TASKS];
	uint64_t n[MAX_TASKS];
};

struct outcome simulate(struct gp_scenario *s, const char *policy);
void load(const char *name, struct gp_scenario *s);
void without_hints(struct gp_scenario *s);
void without_slices(struct gp_scenario *s);
void without_best_effort(struct gp_scenario *s);
struct outcome simulate_streams(const struct gp_scenario *s, bool with_best_effort);

static inline bool is_near(double published, double simulated, double within)
{
	return fabs(published - simulated) <= within;
}

#endif
