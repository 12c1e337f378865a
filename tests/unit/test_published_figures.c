/* SPDX-License-Identifier: Apache-2.0 */
/* The two curves of figure 7 of GPreempt (USENIX ATC'25, A100), simulated on A100 costs. */
#include "published.h"

/* Figure 7a: the gain of a hint, by how long the host prepares a request of workload A. */
TEST(a_longer_preparation_hides_more_of_the_switch)
{
	static const struct {
		uint64_t prepare_us;
		double published_us;
	} point[] = {{0, 82}, {25, 56}, {50, 44}, {100, 17}, {150, 18}, {200, 16}};
	unsigned bad = 0;

	printf("prepare   theirs      ours\n");
	for (size_t i = 0; i < sizeof point / sizeof *point; i++) {
		uint64_t lead_us = point[i].prepare_us < 100 ? point[i].prepare_us : 100;
		struct gp_scenario s;
		double us;
		bool good;

		load("gpreempt-a", &s);
		s.task[0].prepare_ns = (point[i].prepare_us + 80) * GP_NS_PER_US;
		s.task[0].hint_ns = (lead_us + 80) * GP_NS_PER_US;
		us = simulate(&s, "none").us;
		us -= simulate_streams(&s, false).us;
		gp_scenario_free(&s);
		good = is_near(point[i].published_us, us, 25);
		printf("%4lu us %5.0f us %6.0f us%s\n", (unsigned long)point[i].prepare_us,
		       point[i].published_us, us, good ? "" : "  DISAGREES");
		bad += !good;
	}
	assert_int_equal(bad, 0);
}

/* Figure 7b: best-effort requests per second, by the rate of the latency-critical ones. */
TEST(best_effort_work_falls_with_the_rate_as_published)
{
	static const struct {
		uint64_t rate;
		double published;
	} point[] = {{100, 105}, {150, 88}, {200, 71}, {250, 54}, {300, 38}};
	unsigned bad = 0;

	printf("rate     theirs    ours\n");
	for (size_t i = 0; i < sizeof point / sizeof *point; i++) {
		struct gp_scenario s;
		double work;
		bool good;

		load("gpreempt-a", &s);
		s.task[0].every_ns = GP_NS_PER_S / point[i].rate;
		s.task[1].load = GP_LOAD_CLOSED;
		work = simulate(&s, "none").work;
		gp_scenario_free(&s);
		good = is_near(point[i].published, work, point[i].published / 10);
		printf("%3lu /s %9.0f %7.0f%s\n", (unsigned long)point[i].rate, point[i].published,
		       work, good ? "" : "  DISAGREES");
		bad += !good;
	}
	assert_int_equal(bad, 0);
}
