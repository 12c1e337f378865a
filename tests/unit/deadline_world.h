/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks with deadlines on a simulated device, for the tests of `edf` and `lax`. Counts requests
 * that were late, from their scheduled arrival, and tasks that were refused.
 */
#ifndef TESTS_UNIT_DEADLINE_WORLD_H
#define TESTS_UNIT_DEADLINE_WORLD_H

#include "support/test.h"

#include "base/rng.h"
#include "engine/engine.h"
#include "sim_tasks.h"

#define WORLD_TASKS 64

struct world {
	struct gp_sim_device device;
	struct gp_engine_config config;
	uint64_t seed;
	uint64_t duration_ns;
	uint32_t n;
	struct gp_sim_task task[WORLD_TASKS];
	struct gp_task_attr attr[WORLD_TASKS];
	uint64_t *arrival_ns[WORLD_TASKS]; /* owned; of tasks with a trace */

	/* Results. */
	struct gp_engine *engine;
	uint64_t missed[WORLD_TASKS]; /* finished after deadline_ns, counted from arrival */
	uint64_t finished[WORLD_TASKS];
	uint64_t longest_ns[WORLD_TASKS]; /* from arrival */
	uint64_t runs[WORLD_TASKS];       /* how often it came on the device */
	uint64_t work_ns[WORLD_TASKS];
	struct gp_task_stats stats[WORLD_TASKS];
	struct gp_engine_stats engine_stats;
	char ejected[200];
};

/*
 * A device without slices that signals every change, with the costs of an H200 times permille/1000.
 */
void deadline_world_init(struct world *w, uint64_t permille);

/* A test with such a world, `w`. */
#define DEADLINE_TEST(function, permille)              \
	static void function##_in(struct world *w);    \
	TEST(function)                                 \
	{                                              \
		struct world world;                    \
                                                       \
		deadline_world_init(&world, permille); \
		function##_in(&world);                 \
		world_free(&world);                    \
	}                                              \
	static void function##_in(struct world *w)

/* An H200 as it is. */
void world_show_samples(struct world *w);

/* The cost of a handover on this device as a policy computes it; see demand.c. */
uint64_t world_change_ns(const struct world *w);
uint32_t world_add(struct world *w, struct gp_sim_task task, uint64_t deadline_ns,
		   uint64_t budget_ns);

/* One request per period that takes the declared budget. */
uint32_t world_add_service(struct world *w, uint64_t deadline_ns, uint64_t every_ns,
			   uint64_t budget_ns);

/* Never pauses. */
uint32_t world_add_job(struct world *w);

/* Its requests come at these times. */
void world_set_trace(struct world *w, uint32_t task, const uint64_t *arrival_ns, uint32_t n);
void world_run_choice(struct world *w, const struct gp_policy_choice *choice);

/* Runs it under "edf" or "lax:hysteresis=500". */
void world_run(struct world *w, const char *policy);
unsigned world_refused(const struct world *w);

/* The sum over all tasks with a promise. */
uint64_t world_missed(const struct world *w);

/* Random sets. */

struct draw {
	unsigned sets;
	unsigned most;            /* tasks with a deadline; gangs count as one */
	uint64_t low, high;       /* permille of the device that they ask for together */
	uint64_t change_permille; /* a handover is this part of the shortest deadline */
	uint64_t cost_permille;   /* of the costs of an H200; 0 = 1000 */
	bool any_costs;           /* its own costs, independent of an H200 */
	bool equal;               /* all have the shortest deadline */
	bool sporadic;      /* at random times, at least a deadline apart; the first all at once */
	bool request_marks; /* requests of several kernels with gaps; no activity */
	bool sampled;       /* the same on an H200 as it is: slices, and samples of activity */
	bool silent; /* one task in three sends no request marks, on a device that needs them */
	bool unannounced; /* the device sends no events */
	bool cwsr;        /* the AMD model: an MI300X at its full costs */
	bool gangs;       /* two tasks each, which work at the same time */
};

static inline uint64_t draw_between(struct gp_rng *rng, uint64_t low, uint64_t high)
{
	return low + gp_rng_below(rng, high - low + 1);
}

/* Half of the budget is spent on the host, between and before kernels: no other task has the device
 * in that time. */
void split_request(struct world *w, uint32_t i);
void world_free(struct world *w);

/* No task with a promise misses its deadline, and no other task starves. */
void world_check(const struct world *w, const char *policy);

/* Draws and runs different sets. Returns in how many of them a task was refused. */
unsigned run_sets(const char *policy, const struct draw *draw);
/* How many sets to draw: `n` in `make soak`, a quarter of it otherwise. */
unsigned sets_of(unsigned n);

/* Arguments after the first are initialisers of other members of struct draw. */
#define DRAW(number, ...) ((struct draw){.sets = sets_of(number), __VA_ARGS__})

/* A task is refused in none of the sets, in all, or in some but not all. */
void none_are_refused(const char *policy, struct draw draw);
void all_are_refused(const char *policy, struct draw draw);
void some_are_refused(const char *policy, struct draw draw);

/* Claims about both policies. */

/* Up to `most` tasks that ask for 80 % are accepted, also with equal deadlines. */
void four_fifths_are_accepted(const char *policy, unsigned most);
/* The promises are kept on the AMD model. */
void amd_keeps_promises(const char *policy, unsigned most);
/* A task that needs 1.1 to 4 times its budget makes no other task late, and is counted. */
void overruns_harm_no_other_task(const char *policy);

#endif
