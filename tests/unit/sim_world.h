/* SPDX-License-Identifier: Apache-2.0 */
/* A simulated device for a test; include after cmocka.h. */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include "support/test.h"

#include "base/clock.h"
#include "sim/model/sim_gpu.h"

#define US GP_NS_PER_US
#define MS GP_NS_PER_MS
#define S  GP_NS_PER_S

/* All costs are 0, so that times are round numbers; tests add single costs. */
extern const struct gp_sim_device plain;
struct gp_sim_task closed_loop(uint64_t kernel_ns);
struct gp_sim_task periodic(uint64_t every_ns, uint64_t kernel_ns);
struct gp_sim *new_sim(const struct gp_sim_device *device, const struct gp_sim_task *task,
		       uint32_t ntasks, uint64_t seed);

/* Advances to `to_ns`, ignoring signals. */
void run_to(struct gp_sim *sim, uint64_t to_ns);

static inline uint64_t finished(const struct gp_sim *sim, uint32_t task)
{
	return gp_sim_result(sim, task)->finished;
}

void attach(struct gp_sim *sim, uint32_t task);
void hold(struct gp_sim *sim, uint32_t task, uint64_t now_ns);
void release(struct gp_sim *sim, uint32_t task, uint64_t now_ns);
void set_slice(struct gp_sim *sim, uint32_t task, uint32_t slice_us, uint64_t now_ns);
struct gp_observation observe(struct gp_sim *sim, uint32_t task, uint64_t now_ns);
void hash_event(void *arg, const struct gp_sim_event *e);

/* All results of a task, as bytes to compare. */
struct outcome {
	struct gp_sim_result result; /* without the address of its histogram */
	struct gp_hist response;
};

void take_outcome(const struct gp_sim *sim, uint32_t task, struct outcome *o);

#endif
