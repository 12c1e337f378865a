/* SPDX-License-Identifier: Apache-2.0 */
#include "sim_world.h"

#define SIMS_MAX  8
#define TASKS_MAX 16

static struct gp_sim *made[SIMS_MAX];
static unsigned nmade;

const struct gp_sim_device plain = {PLAIN_COSTS, .activity = GP_ACTIVITY_EXACT};

struct gp_sim_task closed_loop(uint64_t kernel_ns)
{
	return (struct gp_sim_task){.load = GP_LOAD_CLOSED, .kernel_ns = kernel_ns};
}

struct gp_sim_task periodic(uint64_t every_ns, uint64_t kernel_ns)
{
	return (struct gp_sim_task){
		.load = GP_LOAD_PERIODIC, .every_ns = every_ns, .kernel_ns = kernel_ns};
}

struct gp_sim *new_sim(const struct gp_sim_device *device, const struct gp_sim_task *task,
		       size_t ntasks, uint64_t seed)
{
	struct gp_sim_task copy[TASKS_MAX];
	const struct gp_sim_config config = {
		.device = *device, .task = copy, .ntasks = (uint32_t)ntasks, .seed = seed};

	assert_true(ntasks <= TASKS_MAX && nmade < SIMS_MAX);
	for (size_t i = 0; i < ntasks; i++) {
		copy[i] = task[i];
		if (!copy[i].stop_ns)
			copy[i].stop_ns = GP_NEVER;
	}
	assert_int_equal(gp_sim_new(&config, &made[nmade]), 0);
	return made[nmade++];
}

struct gp_sim *make_sim(const struct gp_sim_device *device, const struct gp_sim_task *task,
			size_t ntasks)
{
	return new_sim(device, task, ntasks, 1);
}

void free_sims(void)
{
	while (nmade)
		gp_sim_free(made[--nmade]);
}

int sim_tear_down(void **state)
{
	(void)state;
	free_sims();
	return 0;
}

void run_to(struct gp_sim *sim, uint64_t to_ns)
{
	bool rescan;

	while (gp_sim_advance(sim, to_ns) < to_ns)
		gp_sim_take_signal(sim, &rescan);
	gp_sim_take_signal(sim, &rescan);
}

void finish_at(struct gp_sim *sim, uint64_t end_ns)
{
	run_to(sim, end_ns);
	gp_sim_finish(sim, end_ns);
}

uint64_t finished_by(struct gp_sim *sim, uint32_t task, uint64_t at_ns)
{
	run_to(sim, at_ns);
	return finished(sim, task);
}

void attach(struct gp_sim *sim, uint32_t task)
{
	uint32_t handle = UINT32_MAX;

	assert_int_equal(gp_gpu_attach(gp_sim_gpu(sim), task + 1, &handle), 0);
	assert_int_equal(handle, task);
}

void hold(struct gp_sim *sim, uint32_t task, uint64_t now_ns)
{
	struct gp_action a = {.handle = task};

	assert_int_equal(gp_gpu_hold(gp_sim_gpu(sim), now_ns, &a, 1), 0);
	assert_int_equal(a.status, -EINPROGRESS);
}

void release(struct gp_sim *sim, uint32_t task, uint64_t now_ns)
{
	struct gp_action a = {.handle = task};

	assert_int_equal(gp_gpu_release(gp_sim_gpu(sim), now_ns, &a, 1), 0);
	assert_int_equal(a.status, -EINPROGRESS);
}

void set_slice(struct gp_sim *sim, uint32_t task, uint32_t slice_us, uint64_t now_ns)
{
	struct gp_action a = {.handle = task, .slice_us = slice_us};

	assert_int_equal(gp_gpu_set_slice(gp_sim_gpu(sim), now_ns, &a, 1), 0);
	assert_int_equal(a.status, -EINPROGRESS);
}

void attach_at(struct gp_sim *sim, uint32_t task, uint64_t at_ns)
{
	run_to(sim, at_ns);
	attach(sim, task);
}

void hold_at(struct gp_sim *sim, uint32_t task, uint64_t at_ns)
{
	run_to(sim, at_ns);
	hold(sim, task, at_ns);
}

void release_at(struct gp_sim *sim, uint32_t task, uint64_t at_ns)
{
	run_to(sim, at_ns);
	release(sim, task, at_ns);
}

void set_slice_at(struct gp_sim *sim, uint32_t task, uint32_t slice_us, uint64_t at_ns)
{
	run_to(sim, at_ns);
	set_slice(sim, task, slice_us, at_ns);
}

struct gp_observation observe(struct gp_sim *sim, uint32_t task, uint64_t now_ns)
{
	struct gp_observation o = {.handle = task};

	assert_int_equal(gp_gpu_observe(gp_sim_gpu(sim), now_ns, &o, 1), 0);
	assert_int_equal(o.known & GP_KNOWN_WAITED, 0);
	return o;
}

void hash_event(void *arg, const struct gp_sim_event *e)
{
	uint64_t *hash = arg;
	const uint64_t word[] = {e->what, e->now_ns, e->task, e->arrival_ns};

	for (int i = 0; i < 4; i++)
		*hash = (*hash ^ word[i]) * 0x100000001b3ull;
}

void take_outcome(const struct gp_sim *sim, uint32_t task, struct outcome *o)
{
	o->result = *gp_sim_result(sim, task);
	o->response = *o->result.response;
	o->result.response = NULL;
}
