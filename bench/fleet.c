/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures how fast a whole fleet (scenarios/fleet-1000.yaml) is simulated under `priority`,
 * including the engine and the runs of each task alone. The unit is simulated seconds per second of
 * one core, at a quarter, half and all of the devices, and of the tasks on each. Exits with 1 if
 * the whole fleet is slower than real time, or if the time grows faster than n log n in devices or
 * tasks.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "count_alloc.h"
#include "sim/scenario/scenario.h"

#define DEVICES   1000u
#define TASKS     16u
#define SIMULATED (2 * GP_NS_PER_S)

/* The CPU time of this process, because other processes may use the machine. */
static double cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Of four tasks one serves requests, one is busy and two are idle. */
static void fill(struct gp_scenario *s, unsigned tasks)
{
	for (unsigned i = 0; i < tasks; i++) {
		struct gp_sim_task task = {.load = GP_LOAD_IDLE, .stop_ns = GP_NEVER};
		struct gp_task_attr attr = GP_TASK_ATTR_DEFAULT;

		attr.class = i % 4 ? GP_BEST_EFFORT : GP_LATENCY_CRITICAL;
		if (i % 4 == 0) {
			task.load = GP_LOAD_POISSON;
			task.every_ns = 10 * GP_NS_PER_MS;
			task.kernel_ns = 200 * GP_NS_PER_US;
		} else if (i % 4 == 1) {
			task.load = GP_LOAD_CLOSED;
			task.kernel_ns = 13600 * GP_NS_PER_US;
		}
		if (gp_scenario_add(s, &task, &attr))
			exit(1);
	}
}

struct figures {
	double seconds;
	double bytes; /* memory per task, for one device and the results */
};

static struct figures measure(unsigned devices, unsigned tasks)
{
	struct gp_policy_choice priority;
	struct gp_error err = {0};
	struct figures f = {0};
	struct gp_scenario s;
	struct gp_run run;
	uint64_t bytes;

	gp_scenario_init(&s);
	s.duration_ns = SIMULATED;
	s.devices = devices;
	fill(&s, tasks);
	gp_policy_defaults(&gp_policy_priority, &priority);
	bytes = bench_allocated_bytes();
	f.seconds = -cpu_seconds();
	if (gp_scenario_run(&s, &priority, NULL, &run, &err)) {
		fprintf(stderr, "%s\n", err.text);
		exit(1);
	}
	f.seconds += cpu_seconds();
	f.bytes = (double)(bench_allocated_bytes() - bytes) / tasks;
	gp_run_free(&run);
	gp_scenario_free(&s);
	return f;
}

static double report(unsigned devices, unsigned tasks)
{
	double seconds = measure(devices, tasks).seconds;

	printf("%6u devices x %2u tasks  %7.3f s of one core  %6.1f x real time  %6.2f us per "
	       "simulated second of a task\n",
	       devices, tasks, seconds, (double)SIMULATED / 1e9 / seconds,
	       1e6 * seconds / devices / tasks / ((double)SIMULATED / 1e9));
	return seconds;
}

int main(void)
{
	double few_devices = report(DEVICES / 4, TASKS), few_tasks, all;
	bool fast, linear;

	report(DEVICES / 2, TASKS);
	few_tasks = report(DEVICES, TASKS / 4);
	report(DEVICES, TASKS / 2);
	all = report(DEVICES, TASKS);
	printf("%6.0f bytes for each of %u tasks, for any number of devices; half of them make "
	       "requests "
	       "and have a histogram of %zu bytes\n",
	       measure(1, TASKS).bytes, TASKS, sizeof(struct gp_hist));
	fast = all < (double)SIMULATED / 1e9;
	/* n log n from 4 to 16 is a factor of 8; from 250 to 1000 it is a factor of 5. */
	linear = all < 8 * few_tasks && all < 5 * few_devices;
	printf("%s: faster than real time\n%s: no worse than n log n\n",
	       fast ? "holds" : "DOES NOT HOLD", linear ? "holds" : "DOES NOT HOLD");
	return !(fast && linear);
}
