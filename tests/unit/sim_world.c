/* SPDX-License-Identifier: Apache-2.0 */
#include "sim_world.h"

const struct gp_sim_device plain = {
	.slice_us = 2000,
	.slices = true,
	.max_held = 16,
	.launch_hinted_permille = 1000,
	.activity = GP_ACTIVITY_EXACT,
};

struct gp_sim_task closed_loop(uint64_t kernel_ns)
{
	return (struct gp_sim_task){
		.load = GP_LOAD_CLOSED, .kernel_ns = kernel_ns, .stop_ns = GP_NEVER};
}

struct gp_sim_task periodic(uint64_t every_ns, uint64_t kernel_ns)
{
	return (struct gp_sim_task){.load = GP_LOAD_PERIODIC,
				    .every_ns = every_ns,
				    .kernel_ns = kernel_ns,
				    .stop_ns = GP_NEVER};
}

struct gp_sim *new_sim(const struct gp_sim_device *device, const struct gp_sim_task *task,
		       uint32_t ntasks, uint64_t seed)
{
	const struct gp_sim_config config = {
		.device = *device, .task = task, .ntasks = ntasks, .seed = seed};
	struct gp_sim *sim;

	assert_int_equal(gp_sim_new(&config, &sim), 0);
	return sim;
}

void run_to(struct gp_sim *sim, uint64_t to_ns)
{
	bool rescan;

	while (gp_sim_advance(sim, to_ns) < to_ns)
		gp_sim_take_signal(sim, &rescan);
	gp_sim_take_signal(sim, &rescan);
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
