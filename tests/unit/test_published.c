/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The workloads that GPreempt published (USENIX ATC'25, A100), simulated on A100 costs: the order
 * and the size of its effect. The figures are means, as published, of the artifact's own run; LC
 * latency is what a request takes longer than with nobody else on the GPU. docs/simulator.md says
 * where the model's parameters come from and why what disagrees does.
 */
#include <math.h>

#include "shipped.h"

/* Services that meet are not interrupted by best-effort work between two turns of 2 ms. */
#define LONG     "priority:lc_shared_slice=20000"
#define SEEDS    20 /* periodic tasks meet in another way with each */
#define DURATION (20 * GP_NS_PER_S)

/* What is compared with what was published. */
enum arm {
	DRIVER,        /* nobody sets slices, and no hint: no row of theirs, but what users have */
	NO_HINT,       /* the slices that GPreempt sets, and no hint */
	HINT,          /* ... and a hint */
	PRIORITY,      /* our own policy as it comes, and a hint */
	LONG_PRIORITY, /* ... with turns of services that are longer than their requests */
	ARMS,
};

/* How far apart published and simulated may be. */
#define LATENCY_PERCENT 40
#define HINTED_US       30
#define WORK_PERCENT    10

struct published {
	const char *name, *scenario;
	double plain_us, hint_us; /* added to a request, without and with hint */
	double work;              /* best-effort requests per second, with hint */
	bool only_order;          /* the size of the effect is known to differ */
};

static const struct published workloads[] = {
	{"A", "gpreempt-a", 152, 9, 100, false},
	{"B", "gpreempt-b", 175, 7, 65, false},
	{"C", "gpreempt-c", 206, 28, 417, false},
	/* Several latency-critical streams share a context there, and are tasks of their own here.
         */
	{"D", "gpreempt-d", 344, 212, 293, true},
	{"E", "gpreempt-e", 822, 654, 274, true},
	{"REAL", "gpreempt-real", 284, 121, 425, true},
	{"Y", "gpreempt-y", 410, 235, 150, true}, /* not explained */
	{"Z", "gpreempt-z", 185, 20, 370, false},
};

static void load(const char *name, struct gp_scenario *s)
{
	shipped_load(name, s);
	s->duration_ns = DURATION;
}

static bool is_lc(const struct gp_scenario *s, uint32_t task)
{
	return s->attr[task].class == GP_LATENCY_CRITICAL;
}

struct sums {
	double response_us, answered, work;
};

static void add_run(const struct gp_scenario *s, const char *policy, struct sums *sums)
{
	struct gp_scenario copy = *s; /* what is kept of a run alone stays with the copy */
	struct gp_run run;

	copy.alone_ns = NULL;
	shipped_run(&copy, policy, &run);
	for (uint32_t i = 0; i < s->ntasks; i++) {
		const struct gp_run_task *t = &run.task[i];

		if (!is_lc(s, i)) {
			sums->work += (double)t->finished;
			continue;
		}
		sums->response_us += (double)t->mean_ns / 1e3 * (double)t->finished;
		sums->answered += (double)t->finished;
	}
	gp_run_free(&run);
	free(copy.alone_ns);
}

/* The mean response over all latency-critical requests, and best-effort requests per second. */
static struct sums simulate(struct gp_scenario *s, const char *policy)
{
	struct sums sums = {0};

	for (s->seed = 1; s->seed <= SEEDS; s->seed++)
		add_run(s, policy, &sums);
	sums.response_us /= sums.answered;
	sums.work /= SEEDS * (double)DURATION / 1e9;
	return sums;
}

static void without_hints(struct gp_scenario *s)
{
	for (uint32_t i = 0; i < s->ntasks; i++)
		s->task[i].hint_ns = 0;
}

static void without_best_effort(struct gp_scenario *s)
{
	for (uint32_t i = 0; i < s->ntasks; i++)
		if (!is_lc(s, i))
			s->task[i].load = GP_LOAD_IDLE;
}

static void without_slices(struct gp_scenario *s)
{
	for (uint32_t i = 0; i < s->ntasks; i++)
		s->task[i].slice_us = 0;
}

/* What each arm adds to a request, always to the same time alone, and the best-effort work it
 * leaves. */
static void simulate_arms(const struct published *p, struct sums arm[ARMS])
{
	struct gp_scenario s;
	double alone_us;

	load(p->scenario, &s);
	arm[HINT] = simulate(&s, "none");
	arm[PRIORITY] = simulate(&s, "priority");
	arm[LONG_PRIORITY] = simulate(&s, LONG);
	without_hints(&s);
	arm[NO_HINT] = simulate(&s, "none");
	without_best_effort(&s);
	alone_us = simulate(&s, "none").response_us;
	gp_scenario_free(&s);

	load(p->scenario, &s);
	without_hints(&s);
	without_slices(&s);
	arm[DRIVER] = simulate(&s, "none");
	gp_scenario_free(&s);
	for (unsigned i = 0; i < ARMS; i++)
		arm[i].response_us -= alone_us;
}

static bool is_near(double published, double simulated, double within)
{
	return fabs(published - simulated) <= within;
}

static bool agrees(const struct published *p, const struct sums arm[ARMS])
{
	bool size = is_near(p->plain_us, arm[NO_HINT].response_us,
	                    p->plain_us * LATENCY_PERCENT / 100) &&
	            is_near(p->hint_us, arm[HINT].response_us, HINTED_US);
	bool order = arm[HINT].response_us < arm[NO_HINT].response_us &&
	             arm[LONG_PRIORITY].response_us < arm[NO_HINT].response_us &&
	             arm[NO_HINT].response_us < arm[DRIVER].response_us &&
	             arm[PRIORITY].response_us < arm[DRIVER].response_us;

	return order && (size || p->only_order) &&
	       is_near(p->work, arm[HINT].work, p->work * WORK_PERCENT / 100);
}

static double whole(double us)
{
	return fabs(us) < 0.5 ? 0 : us; /* not -0 */
}

static void print_row(const struct published *p, const struct sums arm[ARMS], bool good)
{
	printf("%-4s %8.0f %6.0f %7.0f %8.0f %6.0f %9.0f %7.0f %7.0f %6.0f %5.0f %9.0f %7.0f%s%s\n",
	       p->name, whole(arm[DRIVER].response_us), p->plain_us,
	       whole(arm[NO_HINT].response_us), p->hint_us, whole(arm[HINT].response_us),
	       whole(arm[PRIORITY].response_us), whole(arm[LONG_PRIORITY].response_us),
	       arm[DRIVER].work, p->work, arm[HINT].work, arm[PRIORITY].work,
	       arm[LONG_PRIORITY].work, p->only_order ? "  order only" : "",
	       good ? "" : "  DISAGREES");
}

/* Of the workloads with five services, the one with Poisson arrivals is the worst, as published. */
static bool poisson_is_worst(const struct sums arm[][ARMS])
{
	enum { D = 3, E = 4, REAL = 5 };
	bool worst = true;

	for (unsigned i = NO_HINT; i <= HINT; i++)
		worst &= arm[E][i].response_us > arm[D][i].response_us &&
		         arm[E][i].response_us > arm[REAL][i].response_us;
	return worst;
}

static void the_simulator_shows_the_published_effect(void **state)
{
	struct sums arm[sizeof workloads / sizeof *workloads][ARMS];
	unsigned bad = 0;

	(void)state;
	printf("       added, no hint, us      added, hint, us                   best-effort "
	       "requests/s\n"
	       "       driver theirs    ours   theirs   ours  priority    long  driver theirs  "
	       "ours  "
	       "priority    long\n");
	for (size_t i = 0; i < sizeof workloads / sizeof *workloads; i++) {
		bool good;

		simulate_arms(&workloads[i], arm[i]);
		good = agrees(&workloads[i], arm[i]);
		print_row(&workloads[i], arm[i], good);
		bad += !good;
	}
	assert_int_equal(bad, 0);
	assert_true(poisson_is_worst((const struct sums(*)[ARMS])arm));
}

/* Figure 7a: what a hint is worth, by how long the host prepares a request of workload A. */
static void a_longer_preparation_hides_more_of_the_switch(void **state)
{
	static const struct {
		uint64_t prepare_us;
		double published_us;
	} point[] = {{0, 82}, {25, 56}, {50, 44}, {100, 17}, {150, 18}, {200, 16}};
	unsigned bad = 0;

	(void)state;
	printf("prepare   theirs      ours\n");
	for (size_t i = 0; i < sizeof point / sizeof *point; i++) {
		uint64_t lead_us = point[i].prepare_us < 100 ? point[i].prepare_us : 100;
		struct gp_scenario s;
		double added_us;
		bool good;

		load("gpreempt-a", &s);
		s.task[0].prepare_ns = (point[i].prepare_us + 80) * GP_NS_PER_US;
		s.task[0].hint_ns = (lead_us + 80) * GP_NS_PER_US;
		added_us = simulate(&s, "none").response_us;
		without_hints(&s);
		without_best_effort(&s);
		added_us -= simulate(&s, "none").response_us;
		gp_scenario_free(&s);
		good = is_near(point[i].published_us, added_us, 25);
		printf("%4lu us %5.0f us %6.0f us%s\n", (unsigned long)point[i].prepare_us,
		       point[i].published_us, added_us, good ? "" : "  DISAGREES");
		bad += !good;
	}
	assert_int_equal(bad, 0);
}

/* Figure 7b: best-effort requests per second, by the rate of the latency-critical ones. */
static void best_effort_work_falls_with_the_rate_as_published(void **state)
{
	static const struct {
		uint64_t rate;
		double published;
	} point[] = {{100, 105}, {150, 88}, {200, 71}, {250, 54}, {300, 38}};
	unsigned bad = 0;

	(void)state;
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_simulator_shows_the_published_effect),
		cmocka_unit_test(a_longer_preparation_hides_more_of_the_switch),
		cmocka_unit_test(best_effort_work_falls_with_the_rate_as_published),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
