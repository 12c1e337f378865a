/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The limit of edf's admission test: a certain number of tasks is always accepted; sets that are
 * just accepted are not late, however requests come; and without the test a task is late.
 *
 *     test_edf_sets survey SETS ATTEMPTS
 *
 * prints the table of docs/deadlines.md: for each number of tasks SETS sets of each kind, and for
 * each refused set ATTEMPTS attempts to make a task late if it were accepted.
 */
#include "deadline_sets.h"

#define SHORTEST_NS (6400 * US) /* of this deadline the jitter takes the largest part: 1/64 */

/* As in the man page: with budgets of 80 % of the device, this many tasks are always accepted. */
static const struct {
	const char *name;
	unsigned always;
} kinds[COSTS] = {
	[SWITCH_ALONE] = {"switch 1 %, hold and release free", 7},
	[WITH_QUARTERS] = {"switch 1 %, hold and release 1/4 %", 6},
	[WHOLE_CHANGE] = {"change of hands 1 %, as on an H200", 18},
};

static unsigned times(unsigned n)
{
	return getenv("GPREEMPT_SOAK") ? 20 * n : n;
}

static void draw_of_kind(struct set *s, enum costs costs, enum family family, unsigned n,
			 unsigned seed)
{
	struct gp_rng rng;

	s->request_marks = false;
	gp_rng_init(&rng, seed, costs * 4 + family);
	set_costs(&s->device, costs, SHORTEST_NS);
	draw_set(s, &rng, family, n, SHORTEST_NS, 800);
}

TEST(so_many_tasks_with_four_fifths_of_the_device_are_always_accepted)
{
	struct set s;

	for (unsigned costs = 0; costs < COSTS; costs++)
		for (unsigned n = 1; n <= kinds[costs].always; n++)
			for (unsigned k = 0; k < times(100); k++) {
				enum family family = k < ANY ? (enum family)k : ANY;

				draw_of_kind(&s, costs, family, n, k);
				if (!is_accepted(&s, "edf"))
					fail_msg("%s: %u tasks, family %u, seed %u are refused",
						 kinds[costs].name, n, family, k);
			}
}

/* Otherwise the man page would promise too little. */
TEST(one_more_is_refused_in_the_worst_case)
{
	for (unsigned costs = 0; costs < COSTS; costs++) {
		unsigned refused = 0;

		for (unsigned family = 0; family < FAMILIES; family++) {
			struct set s;

			draw_of_kind(&s, costs, family, kinds[costs].always + 1, 1);
			refused += !is_accepted(&s, "edf");
		}
		if (!refused)
			fail_msg("%s: %u are accepted too", kinds[costs].name,
				 kinds[costs].always + 1);
	}
}

TEST(more_than_the_device_is_refused_whatever_it_costs)
{
	for (unsigned k = 0; k < times(400); k++) {
		struct gp_rng rng;
		struct set s = {.request_marks = false};

		gp_rng_init(&rng, k, 31);
		set_costs(&s.device, SWITCH_ALONE, SHORTEST_NS);
		s.device.switch_ns = s.device.switch_idle_ns = s.device.refill_ns = 1;
		draw_set(&s, &rng, k % FAMILIES, 1 + k % 12, SHORTEST_NS,
			 draw_between(&rng, 1001, 1500));
		assert_false(is_accepted(&s, "edf"));
		assert_false(is_accepted(&s, "lax"));
	}
}

/* The border. */

static void scale_budgets(struct set *s, const struct set *whole, uint64_t permille)
{
	*s = *whole;
	for (unsigned i = 0; i < s->n; i++)
		s->budget_ns[i] = whole->budget_ns[i] * permille / 1000 + 1;
}

/* A device with any costs, and budgets that are just accepted. */
static bool draw_at_border(struct set *s, const char *policy, unsigned seed)
{
	uint64_t low = 0, high = 1000;
	struct set whole;
	struct gp_rng rng;
	struct world w;

	gp_rng_init(&rng, seed, 41);
	whole.request_marks = !gp_rng_below(&rng, 3);
	deadline_world_init(&w, 1000);
	draw_any_costs(&w.device, &rng);
	whole.device = w.device;
	draw_set(&whole, &rng, (enum family)gp_rng_below(&rng, FAMILIES),
		 1 + (unsigned)gp_rng_below(&rng, 12),
		 world_change_ns(&w) * draw_between(&rng, 10, 200), 1000);
	while (high - low > 1) {
		scale_budgets(s, &whole, (low + high) / 2);
		*(is_accepted(s, policy) ? &low : &high) = (low + high) / 2;
	}
	scale_budgets(s, &whole, low);
	return low;
}

static void attack_border(const char *policy, unsigned sets, unsigned attempts)
{
	struct gp_policy_choice choice;
	struct gp_error err;
	unsigned tried = 0;

	assert_int_equal(gp_policy_parse(policy, &choice, &err), 0);
	for (unsigned seed = 0; seed < sets; seed++) {
		struct set s;

		if (!draw_at_border(&s, policy, seed))
			continue;
		tried++;
		for (unsigned k = 0; k < attempts; k++)
			if (is_late(&s, &choice, seed * attempts + k))
				fail_msg("%s, set %u, attempt %u: late", policy, seed, k);
	}
	assert_in_range(tried, sets / 2, sets);
}

TEST(what_is_just_accepted_is_not_late_however_requests_come)
{
	attack_border("edf", times(30), 12);
	attack_border("lax", times(10), 12);
}

TEST(without_the_test_some_of_what_is_refused_is_late)
{
	for (unsigned costs = 0; costs < COSTS; costs++) {
		struct set s;

		draw_of_kind(&s, costs, ONE_BIG, costs == WHOLE_CHANGE ? 30 : 20, 1);
		assert_false(is_accepted(&s, "edf"));
		assert_true(has_witness(&s, 12));
	}
}

/* Tasks without a promise. */

/* Each time it becomes active it would be on the device before it is held, and no promise includes
 * that. So it is held while it is idle, too. */
TEST(background_that_pauses_all_the_time_makes_no_task_late)
{
	static const uint64_t kernel_ns[] = {20 * US, 100 * US, 500 * US};

	for (unsigned slice_us = 100; slice_us <= 1600; slice_us *= 2)
		for (unsigned k = 0; k < 3; k++) {
			uint64_t deadline_ns;
			struct world w;

			deadline_world_init(&w, 1000);
			w.device.slice_us = slice_us;
			deadline_ns = 20 * world_change_ns(&w);
			world_add_service(&w, deadline_ns, deadline_ns + 7 * MS,
					  deadline_ns * 8 / 10);
			for (unsigned i = 0; i < 8; i++)
				world_add(&w, POISSON(32 * kernel_ns[k], kernel_ns[k]), 0, 0);
			w.duration_ns = 3 * S;
			world_run(&w, "edf");
			world_check(&w, "edf");
			assert_int_equal(world_refused(&w), 0);
		}
}

/* A request without competition costs no call, and so delays no other task. */
DEADLINE_TEST(idle_tasks_are_held_only_while_a_task_waits, 1000)
{
	uint64_t arrival_ns[10];

	for (uint64_t k = 0; k < 10; k++)
		arrival_ns[k] = k * 200 * MS;
	for (uint32_t i = 0; i < 4; i++) {
		world_add_service(w, 200 * MS, 200 * MS, 10 * MS);
		world_set_trace(w, i, arrival_ns, 10);
		w->task[i].start_ns = 50ull * i * MS;
	}
	world_run(w, "edf");
	world_check(w, "edf");
	assert_int_equal(w->engine_stats.holds, 0);
	for (uint32_t i = 0; i < 4; i++)
		assert_in_range(w->longest_ns[i], 10 * MS, 10500 * US);
}

/* The table. */

static void survey(unsigned sets, unsigned attempts)
{
	struct gp_policy_choice choice;
	struct gp_error err;

	assert_int_equal(gp_policy_parse("edf", &choice, &err), 0);
	for (unsigned costs = 0; costs < COSTS; costs++) {
		printf("%s\n%5s %9s %5s %13s %16s\n", kinds[costs].name, "tasks", "accepted",
		       "late", "refused, late", "refused, not yet");
		for (unsigned n = 1; n <= 3 * kinds[costs].always && n < SET_TASKS; n++) {
			unsigned accepted = 0, late = 0, witnessed = 0, open = 0;

			for (unsigned k = 0; k < sets; k++) {
				struct set s;

				draw_of_kind(&s, costs, k % FAMILIES, n, k);
				if (is_accepted(&s, "edf")) {
					accepted++;
					for (unsigned a = 0; a < PHASINGS; a++)
						late += is_late(&s, &choice, k * PHASINGS + a);
				} else {
					*(has_witness(&s, attempts) ? &witnessed : &open) += 1;
				}
			}
			printf("%5u %9u %5u %13u %16u\n", n, accepted, late, witnessed, open);
		}
	}
}

TEST_BEGIN
{
	if (argc == 4 && !strcmp(argv[1], "survey")) {
		survey((unsigned)atoi(argv[2]), (unsigned)atoi(argv[3]));
		exit(0);
	}
}
