/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/scenario/alone.h"

#include <stdlib.h>

static int run_alone(const struct gp_scenario *s, uint32_t task, uint32_t device, uint64_t *work_ns)
{
	struct gp_hist *const nowhere = NULL; /* response times are not needed */
	struct gp_sim_config config = {
		.device = s->device,
		.task = &s->task[task],
		.ntasks = 1,
		.seed = s->seed,
		/* the same arrivals as together with the other tasks */
		.first_stream = (uint64_t)device * s->ntasks + task,
		.response = &nowhere,
	};
	struct gp_sim *sim;
	int r = gp_sim_new(&config, &sim);
	bool rescan;

	if (r)
		return r;
	while (gp_sim_advance(sim, s->duration_ns) < s->duration_ns ||
	       gp_sim_take_signal(sim, &rescan))
		gp_sim_take_signal(sim, &rescan);
	gp_sim_finish(sim, s->duration_ns);
	*work_ns = gp_sim_result(sim, 0)->work_ns;
	gp_sim_free(sim);
	return 0;
}

/* A closed loop has no randomness: the result is the same on every device. */
static int measure_task(const struct gp_scenario *s, uint32_t task, uint64_t *alone_ns)
{
	bool same = s->task[task].load == GP_LOAD_CLOSED;
	uint32_t runs = same ? 1 : s->devices;
	uint64_t work_ns;
	int r = 0;

	for (uint32_t i = 0; i < runs && !r; i++) {
		r = run_alone(s, task, i, &work_ns);
		if (!r)
			*alone_ns += same ? work_ns * s->devices : work_ns;
	}
	return r;
}

int gp_scenario_measure_alone(struct gp_scenario *s)
{
	int r = 0;

	if (s->alone_ns && s->alone_seed == s->seed)
		return 0;
	free(s->alone_ns);
	s->alone_seed = s->seed;
	s->alone_ns = calloc(s->ntasks ? s->ntasks : 1, sizeof *s->alone_ns);
	if (!s->alone_ns)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->ntasks && !r; i++)
		if (s->task[i].load != GP_LOAD_IDLE)
			r = measure_task(s, i, &s->alone_ns[i]);
	return r;
}
