/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The workloads that GPreempt published (USENIX ATC'25, A100), simulated on A100 costs: the order
 * and the size of its effect. The figures are those of the artifact's own run, and counted as
 * there: means from when the program begins a request, then the mean of the programs.
 * docs/simulator.md says where the model's parameters come from, and explains the differences.
 */
#include "published.h"

/* Services that compete are not interrupted by best-effort work between two turns of 2 ms. */
#define LONG "priority:lc_shared_slice=20000"

/* The configurations that are compared with the publication. */
enum arm {
	ALONE,    /* the latency-critical programs alone, streams of one context */
	TOGETHER, /* all programs, streams of one context: "no preemption" */
	NO_HINT,  /* one process each, with the slices that GPreempt sets */
	HINT,     /* the same, with a hint */
	APART,    /* the latency-critical programs alone, one process each */
	DRIVER, /* one process each with the driver's slices: not published, but what users have */
	PRIORITY,      /* our own policy with its defaults, and a hint */
	LONG_PRIORITY, /* the same, with turns of services that are longer than their requests */
	ARMS,
};

/* Allowed differences between published and simulated values: the ratio of a request to one alone,
 * the time that is added to it, and best-effort work. */
#define FACTOR                1.2
#define FACTOR_ALONE          1.1
#define FACTOR_TOGETHER       1.5 /* theirs are streams with priorities; the model has none */
#define FACTOR_TOGETHER_MEAN  1.25
#define FACTOR_HINT_MEAN      1.05
#define ADDED_PERCENT         40
#define ADDED_US              30
#define KNOWN_PERCENT         10
#define WORK_PERCENT          10
#define WORK_TOGETHER_PERCENT 20

struct published {
	const char *name, *scenario;
	double alone_ms, together_ms;     /* per request */
	double plain_us, hint_us;         /* what NO_HINT and HINT add to it */
	double work_together, work;       /* best-effort requests per second, also with a hint */
	double our_plain_us, our_hint_us; /* our value, if a difference is known */
};

static const struct published workloads[] = {
	{"A", "gpreempt-a", 2.38, 2.40, 152, 9, 100, 100, 0, 0},
	{"B", "gpreempt-b", 2.40, 2.93, 175, 7, 105, 65, 0, 0},
	{"C", "gpreempt-c", 2.38, 4.00, 206, 28, 459, 417, 0, 0},
	{"D", "gpreempt-d", 4.65, 9.85, 344, 212, 462, 293, 0, 0},
	{"E", "gpreempt-e", 5.16, 8.78, 822, 654, 393, 274, 1676, 1490},
	{"REAL", "gpreempt-real", 4.78, 9.14, 284, 121, 474, 425, 641, 449},
	{"Y", "gpreempt-y", 2.38, 3.78, 410, 235, 150, 150, 190, 11},
	{"Z", "gpreempt-z", 2.38, 4.20, 185, 20, 385, 370, 0, 0},
};

enum { WORKLOADS = sizeof workloads / sizeof *workloads };

static void simulate_arms(const struct published *p, struct outcome arm[ARMS])
{
	struct gp_scenario s;

	load(p->scenario, &s);
	arm[ALONE] = simulate_streams(&s, false);
	arm[TOGETHER] = simulate_streams(&s, true);
	arm[HINT] = simulate(&s, "none");
	arm[PRIORITY] = simulate(&s, "priority");
	arm[LONG_PRIORITY] = simulate(&s, LONG);
	without_hints(&s);
	arm[NO_HINT] = simulate(&s, "none");
	without_best_effort(&s);
	arm[APART] = simulate(&s, "none");
	gp_scenario_free(&s);

	load(p->scenario, &s);
	without_hints(&s);
	without_slices(&s);
	arm[DRIVER] = simulate(&s, "none");
	gp_scenario_free(&s);
}

/* The comparison. */

static bool is_within_factor(double a, double b, double factor)
{
	return a <= b * factor && b <= a * factor;
}

static double added_us(const struct outcome arm[ARMS], enum arm a)
{
	return arm[a].us - arm[ALONE].us;
}

/* How many times as long as alone a request takes: published, and ours. */
struct times {
	double together, plain, hint;
};

static struct times times_of(const struct published *p)
{
	return (struct times){.together = p->together_ms / p->alone_ms,
			      .plain = 1 + p->plain_us / 1e3 / p->alone_ms,
			      .hint = 1 + p->hint_us / 1e3 / p->alone_ms};
}

static struct times our_times(const struct outcome arm[ARMS])
{
	return (struct times){.together = arm[TOGETHER].us / arm[ALONE].us,
			      .plain = arm[NO_HINT].us / arm[ALONE].us,
			      .hint = arm[HINT].us / arm[ALONE].us};
}

static bool sizes_agree(const struct published *p, const struct outcome arm[ARMS])
{
	struct times theirs = times_of(p), ours = our_times(arm);

	return is_within_factor(p->alone_ms * 1e3, arm[ALONE].us, FACTOR_ALONE) &&
	       is_within_factor(theirs.together, ours.together, FACTOR_TOGETHER) &&
	       is_within_factor(theirs.plain, ours.plain, FACTOR) &&
	       is_within_factor(theirs.hint, ours.hint, FACTOR);
}

static bool work_agrees(const struct published *p, const struct outcome arm[ARMS])
{
	return is_near(p->work, arm[HINT].work, p->work * WORK_PERCENT / 100) &&
	       is_near(p->work_together, arm[TOGETHER].work,
		       p->work_together * WORK_TOGETHER_PERCENT / 100);
}

/*
 * A hint helps, both are better than streams side by side, and our policy with its defaults is not
 * worse than the driver for any service. In A the two programs never compete: there is nothing to
 * gain.
 */
static bool order_agrees(const struct published *p, const struct outcome arm[ARMS])
{
	bool order = arm[HINT].us < arm[NO_HINT].us && arm[NO_HINT].us <= arm[DRIVER].us;

	if (p->together_ms * 1e3 > p->alone_ms * 1e3 + p->plain_us)
		order &= arm[TOGETHER].us > arm[NO_HINT].us;
	for (unsigned i = 0; i < MAX_TASKS; i++)
		order &= arm[PRIORITY].task_us[i] <= arm[DRIVER].task_us[i];
	return order;
}

static bool is_known_to_differ(const struct published *p)
{
	return p->our_plain_us > 0;
}

/* The added time; our own value if a difference is known. */
static bool added_agrees(const struct published *p, const struct outcome arm[ARMS])
{
	double plain_us = is_known_to_differ(p) ? p->our_plain_us : p->plain_us;
	double hint_us = is_known_to_differ(p) ? p->our_hint_us : p->hint_us;
	double percent = is_known_to_differ(p) ? KNOWN_PERCENT : ADDED_PERCENT;

	return is_near(plain_us, added_us(arm, NO_HINT), plain_us * percent / 100) &&
	       (is_near(hint_us, added_us(arm, HINT), ADDED_US) ||
		is_near(hint_us, added_us(arm, HINT), hint_us * percent / 100));
}

/* The tables. */

static void print_size(const struct published *p, const struct outcome arm[ARMS], bool good)
{
	struct times theirs = times_of(p), ours = our_times(arm);

	printf("%-4s %7.2f %6.2f %8.2f %6.2f %8.2f %6.2f %8.2f %6.2f %8.0f %5.0f %7.0f %5.0f%s\n",
	       p->name, p->alone_ms, arm[ALONE].us / 1e3, theirs.together, ours.together,
	       theirs.plain, ours.plain, theirs.hint, ours.hint, p->work_together,
	       arm[TOGETHER].work, p->work, arm[HINT].work, good ? "" : "  DISAGREES");
}

static double whole(double us)
{
	return fabs(us) < 0.5 ? 0 : us; /* not -0 */
}

static void print_added(const struct published *p, const struct outcome arm[ARMS], bool good)
{
	printf("%-4s %7.0f %6.0f %8.0f %6.0f %7.0f %8.0f %9.0f %7.0f %8.0f %9.0f %7.0f%s%s\n",
	       p->name, p->plain_us, whole(added_us(arm, NO_HINT)), p->hint_us,
	       whole(added_us(arm, HINT)), whole(added_us(arm, APART)),
	       whole(added_us(arm, DRIVER)), whole(added_us(arm, PRIORITY)),
	       whole(added_us(arm, LONG_PRIORITY)), arm[DRIVER].work, arm[PRIORITY].work,
	       arm[LONG_PRIORITY].work, is_known_to_differ(p) ? "  known" : "",
	       good ? "" : "  DISAGREES");
}

/* Claims. */

static struct outcome results[WORKLOADS][ARMS];

static void simulate_all(void)
{
	static bool done;

	for (size_t i = 0; i < WORKLOADS && !done; i++)
		simulate_arms(&workloads[i], results[i]);
	done = true;
}

TEST(the_size_of_the_effect_is_the_published_one)
{
	struct times theirs = {0}, ours = {0};
	unsigned bad = 0;

	simulate_all();
	printf("      alone, ms        x together         x no hint            x hint   "
	       "be/s together     with hint\n"
	       "      theirs   ours   theirs   ours   theirs   ours   theirs   ours   "
	       "theirs  ours  theirs  ours\n");
	for (size_t i = 0; i < WORKLOADS; i++) {
		const struct published *p = &workloads[i];
		bool good = sizes_agree(p, results[i]) && work_agrees(p, results[i]) &&
			    order_agrees(p, results[i]);

		print_size(p, results[i], good);
		bad += !good;
		theirs.together += times_of(p).together / WORKLOADS;
		theirs.hint += times_of(p).hint / WORKLOADS;
		ours.together += our_times(results[i]).together / WORKLOADS;
		ours.hint += our_times(results[i]).hint / WORKLOADS;
	}
	printf("mean                 %8.2f %6.2f %24.2f %6.2f\n", theirs.together, ours.together,
	       theirs.hint, ours.hint);
	assert_int_equal(bad, 0);
	assert_true(is_within_factor(theirs.together, ours.together, FACTOR_TOGETHER_MEAN));
	assert_true(is_within_factor(theirs.hint, ours.hint, FACTOR_HINT_MEAN));
}

TEST(what_is_added_is_what_was_published_or_known_to_be_another)
{
	unsigned bad = 0;

	simulate_all();
	printf("       added, no hint       added, hint                   added, not published   "
	       "            be/s\n"
	       "      theirs   ours   theirs   ours   apart   driver  priority    long   driver  "
	       "priority    long\n");
	for (size_t i = 0; i < WORKLOADS; i++) {
		bool good = added_agrees(&workloads[i], results[i]);

		print_added(&workloads[i], results[i], good);
		bad += !good;
	}
	assert_int_equal(bad, 0);
}

/* E and REAL: the value lies between the effect of best-effort work alone, and that effect together
 * with services that take the GPU one after the other. */
TEST(services_that_meet_are_why_two_of_them_differ)
{
	simulate_all();
	for (size_t i = 0; i < WORKLOADS; i++) {
		const struct published *p = &workloads[i];
		double apart_us = added_us(results[i], APART);
		bool meet = !strcmp(p->name, "E") || !strcmp(p->name, "REAL");

		if (!meet)
			continue;
		assert_true(added_us(results[i], NO_HINT) - apart_us < p->plain_us);
		assert_true(added_us(results[i], HINT) - apart_us < p->hint_us);
		assert_true(p->plain_us < added_us(results[i], NO_HINT));
		assert_true(p->hint_us < added_us(results[i], HINT));
	}
}
