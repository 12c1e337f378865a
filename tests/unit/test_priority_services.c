/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several services on a GPU with slices, beside best-effort work: `priority` with its defaults
 * leaves none of them worse off than the driver's own sharing. Random sets, simulated on an H200.
 */
#include "base/rng.h"
#include "scenario_world.h"

#define SETS         60
#define DURATION     (10 * GP_NS_PER_S)
#define MEAN_PERCENT 2  /* the same requests interleave differently */
#define P99_PERCENT  10 /* for a service with few requests it is the second longest time */

static double between(struct gp_rng *rng, double low, double high)
{
	return low + (high - low) * (double)gp_rng_below(rng, 1000001) / 1e6;
}

/* Over two and a half decades, uniform in the logarithm. */
static uint64_t draw_kernel(struct gp_rng *rng)
{
	static const uint64_t us[] = {100,  180,  320,   560,   1000, 1800,
				      3200, 5600, 10000, 32000, 50000};

	return us[gp_rng_below(rng, sizeof us / sizeof *us)] * GP_NS_PER_US;
}

/* Two to five services that take 10 to 60 % of the GPU together, and one to three jobs. */
static void draw_set(uint64_t number)
{
	struct gp_rng rng;
	uint64_t services, jobs;
	double load;

	begin(DURATION);
	gp_rng_init(&rng, number, 0);
	services = 2 + gp_rng_below(&rng, 4);
	jobs = 1 + gp_rng_below(&rng, 3);
	load = between(&rng, 0.1, 0.6) / (double)services;
	for (uint64_t i = 0; i < services; i++) {
		uint64_t kernel_ns = draw_kernel(&rng);
		bool poisson = gp_rng_below(&rng, 2);

		add(ARRIVALS(poisson ? GP_LOAD_POISSON : GP_LOAD_PERIODIC,
			     (uint64_t)((double)kernel_ns / load), kernel_ns),
		    ATTR(GP_LATENCY_CRITICAL));
	}
	for (uint64_t i = 0; i < jobs; i++)
		add(LOOP(draw_kernel(&rng)), ATTR(GP_BEST_EFFORT));
}

/* The number of services that are worse off under the policy, and of all services. */
static unsigned count_worse(const char *policy, unsigned *services)
{
	unsigned worse = 0;

	*services = 0;
	for (uint64_t number = 1; number <= SETS; number++) {
		struct gp_run driver, ours;

		draw_set(number);
		driver = run_scenario(&scenario, "none", NULL);
		ours = run_scenario(&scenario, policy, NULL);
		for (uint32_t i = 0; i < scenario.ntasks; i++) {
			const struct gp_run_task *a = &driver.task[i], *b = &ours.task[i];

			if (scenario.attr[i].class != GP_LATENCY_CRITICAL)
				continue;
			++*services;
			worse += b->mean_ns > a->mean_ns * (100 + MEAN_PERCENT) / 100 ||
				 b->p99_ns > a->p99_ns * (100 + P99_PERCENT) / 100;
		}
		gp_run_free(&driver);
		gp_run_free(&ours);
		gp_scenario_free(&scenario);
	}
	return worse;
}

TEST(no_service_is_worse_off_than_under_the_driver)
{
	unsigned services;

	assert_int_equal(count_worse("priority", &services), 0);
	assert_true(services > 2 * SETS);
}

/* This is why the turns of services are not longer by default. */
TEST(with_long_turns_some_are)
{
	static const unsigned ms[] = {2, 4, 6, 10, 20};
	unsigned worse = 0, services, last = 0;

	printf("lc_shared_slice  worse off than under the driver\n");
	for (size_t i = 0; i < sizeof ms / sizeof *ms; i++) {
		char policy[64];

		snprintf(policy, sizeof policy, "priority:lc_shared_slice=%u", ms[i] * 1000);
		worse = count_worse(policy, &services);
		printf("%12u ms  %u of %u services\n", ms[i], worse, services);
		assert_true(worse >= last);
		last = worse;
	}
	assert_true(worse > 5);
}
