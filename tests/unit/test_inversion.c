/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inversions: what is one and what is not, on views made by hand; how the engine counts them; that
 * none is reported where running tasks cannot be observed; and that the search is linear.
 */
#include "fake_gpu.h"

#include "engine/engine_state.h"

#define KNOWN (GP_KNOWN_ACTIVE | GP_KNOWN_RUNNING | GP_KNOWN_HELD)

static struct gp_task_view runs(enum gp_class class, unsigned priority)
{
	return (struct gp_task_view){.known = KNOWN,
				     .class = (uint8_t) class,
				     .priority = (uint8_t)priority,
				     .active = true,
				     .running = true};
}

/* Released, and the hardware gives it nothing. */
static struct gp_task_view waits(enum gp_class class, unsigned priority)
{
	struct gp_task_view t = runs(class, priority);

	t.running = false;
	return t;
}

static struct gp_task_view held(enum gp_class class, unsigned priority)
{
	struct gp_task_view t = waits(class, priority);

	t.held = true;
	t.held_by = GP_HELD_BY_POLICY;
	return t;
}

static bool is_inverted(struct gp_task_view a, struct gp_task_view b)
{
	const struct gp_task_view ab[] = {a, b}, ba[] = {b, a};
	struct gp_view view = {.n = 2, .task = ab};
	bool visible, first = gp_view_has_inversion(&view, &visible);

	view.task = ba; /* the order does not matter */
	assert_int_equal(gp_view_has_inversion(&view, &visible), first);
	return first;
}

TEST(latency_critical_work_that_waits_behind_best_effort_is_one)
{
	assert_true(is_inverted(waits(GP_LATENCY_CRITICAL, 0), runs(GP_BEST_EFFORT, 0)));
	assert_true(is_inverted(held(GP_LATENCY_CRITICAL, 0), runs(GP_BEST_EFFORT, 0)));
	/* whatever the priorities inside the classes */
	assert_true(is_inverted(waits(GP_LATENCY_CRITICAL, 0), runs(GP_BEST_EFFORT, 15)));
	assert_true(is_inverted(held(GP_LATENCY_CRITICAL, 0), runs(GP_BEST_EFFORT, 15)));
}

TEST(best_effort_work_that_waits_behind_latency_critical_is_none)
{
	assert_false(is_inverted(waits(GP_BEST_EFFORT, 15), runs(GP_LATENCY_CRITICAL, 0)));
	assert_false(is_inverted(held(GP_BEST_EFFORT, 15), runs(GP_LATENCY_CRITICAL, 0)));
}

TEST(a_task_without_work_does_not_wait)
{
	struct gp_task_view idle = waits(GP_LATENCY_CRITICAL, 9);
	struct gp_task_view idle_held = held(GP_LATENCY_CRITICAL, 9);

	idle.active = idle_held.active = false;
	assert_false(is_inverted(idle, runs(GP_BEST_EFFORT, 0)));
	assert_false(is_inverted(idle_held, runs(GP_BEST_EFFORT, 0)));
	assert_false(is_inverted(idle_held, runs(GP_LATENCY_CRITICAL, 0)));
}

TEST(nobody_is_in_the_way_when_nobody_runs)
{
	assert_false(is_inverted(waits(GP_LATENCY_CRITICAL, 9), waits(GP_BEST_EFFORT, 0)));
	assert_false(is_inverted(held(GP_LATENCY_CRITICAL, 9), held(GP_BEST_EFFORT, 0)));
	assert_false(is_inverted(runs(GP_LATENCY_CRITICAL, 9), runs(GP_BEST_EFFORT, 0)));
}

TEST(a_task_held_by_the_policy_behind_a_lower_priority_is_one)
{
	for (enum gp_class c = GP_BEST_EFFORT; c <= GP_LATENCY_CRITICAL; c++) {
		assert_true(is_inverted(held(c, 1), runs(c, 0)));
		assert_true(is_inverted(held(c, 15), runs(c, 14)));
		assert_false(is_inverted(held(c, 7), runs(c, 7)));
		assert_false(is_inverted(held(c, 6), runs(c, 7)));
	}
}

TEST(a_released_task_behind_a_lower_priority_is_the_hardwares_to_arbitrate)
{
	struct gp_task_view held_by_nobody;

	for (enum gp_class c = GP_BEST_EFFORT; c <= GP_LATENCY_CRITICAL; c++) {
		assert_false(is_inverted(waits(c, 15), runs(c, 0)));
		held_by_nobody = held(c, 15);
		held_by_nobody.held_by = 0; /* another program holds it */
		assert_false(is_inverted(held_by_nobody, runs(c, 0)));
	}
}

TEST(the_highest_that_waits_counts_against_the_lowest_that_runs)
{
	struct gp_task_view t[] = {held(GP_BEST_EFFORT, 3), runs(GP_BEST_EFFORT, 5),
				   held(GP_BEST_EFFORT, 5), runs(GP_BEST_EFFORT, 9)};
	struct gp_view view = {.n = 4, .task = t};
	bool visible;

	assert_false(gp_view_has_inversion(&view, &visible));
	t[0].priority = 6;
	assert_true(gp_view_has_inversion(&view, &visible));
	t[0].priority = 3;
	t[3].priority = 4;
	assert_true(gp_view_has_inversion(&view, &visible));
}

TEST(what_is_not_known_is_never_an_inversion)
{
	const struct gp_task_view waiting[] = {waits(GP_LATENCY_CRITICAL, 9),
					       held(GP_LATENCY_CRITICAL, 9)};
	struct gp_task_view w, r;

	for (int i = 0; i < 2; i++) {
		w = waiting[i];
		w.known &= ~(uint32_t)GP_KNOWN_ACTIVE; /* does it want the device? */
		assert_false(is_inverted(w, runs(GP_BEST_EFFORT, 0)));
		assert_false(is_inverted(w, runs(GP_LATENCY_CRITICAL, 0)));
		r = runs(GP_BEST_EFFORT, 0);
		r.known &= ~(uint32_t)GP_KNOWN_RUNNING; /* does the other have it? */
		assert_false(is_inverted(waiting[i], r));
	}
	w = waiting[0];
	w.known &= ~(uint32_t)GP_KNOWN_RUNNING; /* is it off the hardware? */
	assert_false(is_inverted(w, runs(GP_BEST_EFFORT, 0)));
	w = waiting[1];
	w.known &= ~(uint32_t)(GP_KNOWN_RUNNING | GP_KNOWN_HELD);
	assert_false(is_inverted(w, runs(GP_BEST_EFFORT, 0)));
	w = waiting[1];
	w.known &= ~(uint32_t)GP_KNOWN_HELD; /* off it, but for what reason? */
	assert_false(is_inverted(w, runs(GP_LATENCY_CRITICAL, 0)));
	assert_true(is_inverted(w, runs(GP_BEST_EFFORT, 0)));
	w = waiting[1];
	w.known &= ~(uint32_t)GP_KNOWN_RUNNING; /* held is off the hardware */
	assert_true(is_inverted(w, runs(GP_BEST_EFFORT, 0)));
	assert_true(is_inverted(w, runs(GP_LATENCY_CRITICAL, 0)));
}

TEST(unmanaged_tasks_take_no_part)
{
	assert_false(is_inverted(waits(GP_LATENCY_CRITICAL, 9), runs(GP_UNMANAGED, 0)));
	assert_false(is_inverted(held(GP_LATENCY_CRITICAL, 9), runs(GP_UNMANAGED, 0)));
	assert_false(is_inverted(waits(GP_UNMANAGED, 9), runs(GP_BEST_EFFORT, 0)));
	assert_false(is_inverted(held(GP_UNMANAGED, 9), runs(GP_BEST_EFFORT, 0)));
	assert_false(is_inverted(held(GP_UNMANAGED, 9), runs(GP_UNMANAGED, 0)));
}

TEST(tasks_that_a_user_holds_take_no_part)
{
	const uint8_t holders[] = {GP_HELD_BY_USER, GP_HELD_BY_USER | GP_HELD_BY_POLICY};
	struct gp_task_view t;

	for (int i = 0; i < 2; i++) {
		t = held(GP_LATENCY_CRITICAL, 9);
		t.held_by = holders[i];
		assert_false(is_inverted(t, runs(GP_BEST_EFFORT, 0)));
		assert_false(is_inverted(t, runs(GP_LATENCY_CRITICAL, 0)));
		t = runs(GP_BEST_EFFORT, 0); /* is about to be taken off */
		t.held_by = holders[i];
		assert_false(is_inverted(waits(GP_LATENCY_CRITICAL, 9), t));
	}
}

TEST(an_empty_device_has_none)
{
	const struct gp_view view = {.n = 0};
	bool visible = true;

	assert_false(gp_view_has_inversion(&view, &visible));
	assert_false(visible);
}

TEST(it_says_whether_anybody_could_see_who_runs)
{
	struct gp_task_view t[] = {runs(GP_UNMANAGED, 0), runs(GP_BEST_EFFORT, 0)};
	const struct gp_view view = {.n = 2, .task = t};
	bool visible;

	t[1].known = GP_KNOWN_ACTIVE | GP_KNOWN_HELD;
	gp_view_has_inversion(&view, &visible);
	assert_true(visible);
	t[0].known = 0;
	gp_view_has_inversion(&view, &visible);
	assert_false(visible);
}

/* Brings the best-effort task onto the hardware, or takes it off, while the other waits. */
static void look_at(struct rig *r, bool inverted, uint64_t after_ns)
{
	rig_is(r, 1)->running = inverted;
	rig_tick(r, after_ns);
}

RIG_TEST(the_engine_counts_beginnings_and_time)
{
	rig_add(r, GP_LATENCY_CRITICAL);
	rig_add(r, GP_BEST_EFFORT);
	rig_is(r, 0)->running = rig_is(r, 1)->running = false;
	rig_start(r, &scripted);
	assert_int_equal(rig_stats(r)->inversions, 0);
	assert_true(rig_stats(r)->inversions_seen);
	look_at(r, true, 1 * MS);
	assert_int_equal(rig_stats(r)->inversions, 1);
	assert_int_equal(rig_stats(r)->inversion_ns, 0);
	look_at(r, true, 2 * MS);
	assert_int_equal(rig_stats(r)->inversions, 1);
	assert_int_equal(rig_stats(r)->inversion_ns, 2 * MS);
	look_at(r, false, 3 * MS);
	assert_int_equal(rig_stats(r)->inversions, 1);
	assert_int_equal(rig_stats(r)->inversion_ns, 5 * MS);
	look_at(r, false, 4 * MS);
	look_at(r, true, 5 * MS);
	assert_int_equal(rig_stats(r)->inversions, 2);
	assert_int_equal(rig_stats(r)->inversion_ns, 5 * MS);
	look_at(r, false, 1 * MS);
	assert_int_equal(rig_stats(r)->inversion_ns, 6 * MS);
}

RIG_TEST(an_inversion_at_time_zero_counts_once)
{
	rig_add(r, GP_LATENCY_CRITICAL);
	rig_add(r, GP_BEST_EFFORT);
	rig_is(r, 0)->running = false;
	r->now_ns = 0; /* where virtual time begins */
	rig_start(r, &scripted);
	look_at(r, true, 1 * MS);
	assert_int_equal(rig_stats(r)->inversions, 1);
	assert_int_equal(rig_stats(r)->inversion_ns, 1 * MS);
}

RIG_TEST(a_hold_by_the_policy_that_inverts_priorities_is_counted)
{
	rig_add_many(r, 2);
	r->attr[1].priority = 5;
	WANT(HOLD, RUN(0));
	rig_start(r, &scripted);
	rig_is(r, 0)->running = false;
	rig_run(r, 10 * MS);
	assert_int_equal(rig_stats(r)->inversions, 1);
}

RIG_TEST(nothing_is_claimed_where_nobody_can_see_who_runs)
{
	rig_add(r, GP_LATENCY_CRITICAL);
	rig_add(r, GP_BEST_EFFORT);
	for (uint32_t h = 0; h < 2; h++)
		rig_is(r, h)->known &= ~(uint32_t)GP_KNOWN_RUNNING;
	rig_is(r, 0)->running = false;
	rig_start(r, &scripted);
	rig_run(r, 1 * S);
	assert_false(rig_stats(r)->inversions_seen);
	assert_int_equal(rig_stats(r)->inversions, 0);
	rig_is(r, 1)->known |= GP_KNOWN_RUNNING; /* once is enough */
	rig_step(r);
	rig_is(r, 1)->known &= ~(uint32_t)GP_KNOWN_RUNNING;
	rig_step(r);
	assert_true(rig_stats(r)->inversions_seen);
}

static uint64_t cheapest_look_ns(struct gp_task_view *t, uint32_t n)
{
	const struct gp_view view = {.n = n, .task = t};
	uint64_t best_ns = GP_NEVER;
	bool visible, sink = false;

	for (int run = 0; run < 200; run++) {
		uint64_t begin_ns = gp_now_ns(&gp_clock_thread_cpu), took_ns;

		for (int i = 0; i < 10; i++)
			sink ^= gp_view_has_inversion(&view, &visible);
		took_ns = gp_now_ns(&gp_clock_thread_cpu) - begin_ns;
		best_ns = took_ns < best_ns ? took_ns : best_ns;
	}
	assert_false(sink); /* an even number of times the same */
	return best_ns;
}

/* Both sizes stay in the nearest caches. Eight times the tasks cost 64 times as much if it were
 * quadratic; a busy neighbour slows one of the two, which the best of some tries does not show. */
TEST(the_cost_is_linear_in_the_number_of_tasks)
{
	enum { FEW = 64, MANY = 8 * FEW, TRIES = 5 };
	struct gp_task_view *t = calloc(MANY, sizeof *t);
	double growth = MANY * MANY;

	assert_non_null(t);
	for (uint32_t i = 0; i < MANY; i++) /* the worst: none found, all compared */
		t[i] = i % 2 ? runs(GP_BEST_EFFORT, 7) : held(GP_BEST_EFFORT, 7);
	for (int i = 0; i < TRIES; i++) {
		uint64_t few_ns = cheapest_look_ns(t, FEW);
		double times = (double)cheapest_look_ns(t, MANY) / (double)few_ns;

		assert_true(few_ns > 0);
		growth = times < growth ? times : growth;
	}
	if (growth >= 16)
		fail_msg("%d tasks cost %.1f times what %d do", MANY, growth, FEW);
	free(t);
}
