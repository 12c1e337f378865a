/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures the simulator (device and loads, under `priority`): events per second, and bytes per
 * task. Checks that it allocates nothing while it runs. Exits with 1 if it does.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "count_alloc.h"
#include "engine/engine.h"
#include "sim/model/sim_gpu.h"

static void classify(void *arg, const struct gp_seen *seen, struct gp_task_attr *attr)
{
	(void)arg;
	attr->class = seen->key % 4 == 1 ? GP_LATENCY_CRITICAL : GP_BEST_EFFORT;
}

/* A quarter of the tasks serve requests; the others train or are idle. */
static struct gp_sim_task *make_tasks(unsigned n)
{
	struct gp_sim_task *task = calloc(n, sizeof *task);

	for (unsigned i = 0; task && i < n; i++) {
		task[i].stop_ns = GP_NEVER;
		task[i].kernel_ns = 50 * GP_NS_PER_US;
		task[i].every_ns = 500 * GP_NS_PER_US * n; /* the same total load at every size */
		task[i].load = i % 4 == 0   ? GP_LOAD_POISSON
			       : i % 4 == 1 ? GP_LOAD_CLOSED
					    : GP_LOAD_IDLE;
	}
	return task;
}

static void drive(struct gp_sim *sim, struct gp_engine *e, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t now_ns = from_ns;
	bool rescan;

	while (now_ns < to_ns) {
		uint64_t next_ns = gp_engine_next_ns(e);

		if (next_ns <= now_ns) {
			gp_engine_step(e, now_ns);
			continue;
		}
		now_ns = gp_sim_advance(sim, next_ns < to_ns ? next_ns : to_ns);
		if (gp_sim_take_signal(sim, &rescan))
			gp_engine_trigger(e, rescan);
	}
}

static bool measure(const char *model, const struct gp_sim_device *device, unsigned ntasks)
{
	struct gp_sim_task *task = make_tasks(ntasks);
	struct gp_sim_config config = {
		.device = *device, .task = task, .ntasks = ntasks, .seed = 1};
	uint64_t bytes = bench_allocated_bytes(), allocations, events, begin_ns;
	struct gp_policy_choice priority;
	struct gp_engine *e;
	struct gp_sim *sim;
	double seconds;

	if (!task || gp_sim_new(&config, &sim))
		exit(1);
	bytes = bench_allocated_bytes() - bytes;
	gp_policy_defaults(&gp_policy_priority, &priority);
	if (gp_engine_new(&(struct gp_engine_config){.gpu = gp_sim_gpu(sim), .classify = classify},
			  &e) ||
	    gp_engine_set_policy(e, 0, &priority, NULL))
		exit(1);
	gp_sim_advance(sim, 0);
	drive(sim, e, 0, GP_NS_PER_S);
	allocations = bench_allocations();
	events = gp_sim_totals(sim)->events;
	begin_ns = gp_monotonic_ns();
	drive(sim, e, GP_NS_PER_S, 21 * GP_NS_PER_S);
	seconds = (double)(gp_monotonic_ns() - begin_ns) / 1e9;
	allocations = bench_allocations() - allocations;
	events = gp_sim_totals(sim)->events - events;
	printf("%s %6u tasks  %10.0f events/s  %8.0f x real time  %6.0f bytes/task (%zu in the "
	       "model)  %llu allocations\n",
	       model, ntasks, (double)events / seconds, 20 / seconds, (double)bytes / ntasks,
	       gp_sim_bytes_per_task(), (unsigned long long)allocations);
	gp_engine_free(e);
	gp_sim_free(sim);
	free(task);
	return !allocations;
}

int main(void)
{
	bool good = true;

	printf("simulator: 20 simulated seconds under priority\n");
	for (unsigned n = 4; n <= 1024; n *= 16)
		good &= measure("runlist", &gp_sim_h200, n);
	for (unsigned n = 4; n <= 1024; n *= 16)
		good &= measure("cwsr   ", &gp_sim_mi300x, n);
	printf("%s: nothing is allocated per event\n", good ? "holds" : "DOES NOT HOLD");
	return !good;
}
