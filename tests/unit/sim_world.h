/* SPDX-License-Identifier: Apache-2.0 */
/* A simulated device for a test. */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include "support/test.h"

#include "sim_tasks.h"

/* All costs are 0, so that times are round numbers; tests add single costs with DEVICE. */
extern const struct gp_sim_device plain;
#define PLAIN_COSTS .slice_us = 2000, .slices = true, .max_held = 16, .launch_hinted_permille = 1000
#define DEVICE_WITH_ACTIVITY(...) \
	(&(const struct gp_sim_device){PLAIN_COSTS, .activity = __VA_ARGS__})
#define DEVICE(...) DEVICE_WITH_ACTIVITY(GP_ACTIVITY_EXACT, __VA_ARGS__)

struct gp_sim_task closed_loop(uint64_t kernel_ns);
struct gp_sim_task periodic(uint64_t every_ns, uint64_t kernel_ns);

/* Arguments for a function: an array of tasks and their number. */
#define TASKS(...)                                 \
	(const struct gp_sim_task[]){__VA_ARGS__}, \
		sizeof((struct gp_sim_task[]){__VA_ARGS__}) / sizeof(struct gp_sim_task)

/*
 * A simulation, until the end of the test or free_sims. A task whose stop_ns is 0 never stops.
 * MAKE_SIM takes the tasks as arguments; its seed is 1.
 */
struct gp_sim *new_sim(const struct gp_sim_device *device, const struct gp_sim_task *task,
		       size_t ntasks, uint64_t seed);
struct gp_sim *make_sim(const struct gp_sim_device *device, const struct gp_sim_task *task,
			size_t ntasks);
#define MAKE_SIM(device, ...) make_sim(device, TASKS(__VA_ARGS__))
void free_sims(void);

/* A test that frees its simulations. */
int sim_tear_down(void **state);
#define SIM_TEST(function) TEST_WITH(function, NULL, sim_tear_down)

/* Advances to `to_ns`, ignoring signals. */
void run_to(struct gp_sim *sim, uint64_t to_ns);

/* Advances to the end of the run. */
void finish_at(struct gp_sim *sim, uint64_t end_ns);

static inline uint64_t finished(const struct gp_sim *sim, uint32_t task)
{
	return gp_sim_result(sim, task)->finished;
}

/* How many requests are finished at that time, to which it advances. */
uint64_t finished_by(struct gp_sim *sim, uint32_t task, uint64_t at_ns);

void attach(struct gp_sim *sim, uint32_t task);
void hold(struct gp_sim *sim, uint32_t task, uint64_t now_ns);
void release(struct gp_sim *sim, uint32_t task, uint64_t now_ns);
void set_slice(struct gp_sim *sim, uint32_t task, uint32_t slice_us, uint64_t now_ns);

/* The same at a time to which they advance first. */
void attach_at(struct gp_sim *sim, uint32_t task, uint64_t at_ns);
void hold_at(struct gp_sim *sim, uint32_t task, uint64_t at_ns);
void release_at(struct gp_sim *sim, uint32_t task, uint64_t at_ns);
void set_slice_at(struct gp_sim *sim, uint32_t task, uint32_t slice_us, uint64_t at_ns);
struct gp_observation observe(struct gp_sim *sim, uint32_t task, uint64_t now_ns);
void hash_event(void *arg, const struct gp_sim_event *e);

/* All results of a task, as bytes to compare. */
struct outcome {
	struct gp_sim_result result; /* without the address of its histogram */
	struct gp_hist response;
};

void take_outcome(const struct gp_sim *sim, uint32_t task, struct outcome *o);

#endif
