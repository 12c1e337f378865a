/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every policy promises, over random sequences through the real engine on a model of a device
 * that knows the truth (property_model.h, property_world.h). Each sequence draws a device that can
 * and shows more or less, tasks that come and go, change class and gang, work and pause, are held
 * by their users. Then single claims, one a test.
 *
 * A failure names policy, seed and step. GPREEMPT_SEED=N runs that sequence alone and tells what
 * happens in it; GPREEMPT_SOAK=N runs N times as many.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "base/log.h"
#include "property_world.h"

#define SEQUENCES    200u
#define STEPS        1000u
#define STEADY_STEPS 3000u /* of about 10 ms: three times the starvation limit */

/* ---- random sequences ---- */

/* One draw a statement: the order in an initialiser, or of arguments, is the compiler's choice. */
static struct model_profile draw_profile(struct world *w)
{
	static const uint32_t max_held[] = {0, 0, 1, 2, 3, ALL, ALL, ALL, ALL, ALL};
	bool clear = chance(w, 300);
	bool bounded = chance(w, 100);
	struct model_profile p = {
		.slice_min_us = bounded ? 1000 : 1,
		.slice_max_us = bounded ? 100000 : 10000000,
	};

	p.slices = chance(w, 600);
	p.slice_us = chance(w, 800) ? 2000 : 1000;
	p.slice_us_told = chance(w, 800);
	p.max_held = max_held[below(w, 10)];
	p.activity = clear ? EXACT : (enum model_sight)below(w, 3);
	p.activity_of_held = clear || chance(w, 500);
	p.events = p.activity == EXACT && chance(w, 500);
	p.running_seen = clear || chance(w, 500);
	p.run = (enum model_sight)below(w, 3);
	p.held_seen = clear || chance(w, 700);
	p.slice_seen = p.slices && (clear || chance(w, 700));
	p.finish = (enum model_finish)below(w, 4);
	p.cost_ns = 10000 + below(w, 390000);
	p.drop_permille = clear ? 0 : (unsigned)below(w, 3) * 20;
	p.blind_permille = clear ? 0 : (unsigned)below(w, 3) * 10;
	return p;
}

/* What a policy needs, it has: otherwise it would not have been loaded. */
static void fit_profile(const struct gp_policy_ops *policy, struct model_profile *p)
{
	if (policy->needs & GP_CAP_HOLD && !p->max_held)
		p->max_held = ALL;
	if (policy->needs_one & GP_CAP_ACTIVITY)
		p->activity = EXACT;
}

static void draw_rhythm(struct world *w, uint32_t i)
{
	unsigned kind = (unsigned)below(w, w->steady ? 6 : 10);
	uint64_t busy_ns = kind < 6 ? MS / 2 + below(w, 20 * MS) : MS + below(w, 300 * MS);
	uint64_t idle_ns = MS + below(w, (kind < 6 ? 50 : 300) * MS);

	if (kind < 4)
		model_set_rhythm(&w->model, i, GP_NEVER, GP_NEVER);
	else if (kind < 8)
		model_set_rhythm(&w->model, i, busy_ns, idle_ns);
	else
		model_set_rhythm(&w->model, i, 0, GP_NEVER);
}

static struct gp_task_attr draw_attr(struct world *w)
{
	struct gp_task_attr a = GP_TASK_ATTR_DEFAULT;
	static const uint8_t class[] = {GP_UNMANAGED,       GP_BEST_EFFORT, GP_BEST_EFFORT,
	                                GP_BEST_EFFORT,     GP_BEST_EFFORT, GP_LATENCY_CRITICAL,
	                                GP_LATENCY_CRITICAL};

	a.class = class[below(w, 7)];
	a.priority = chance(w, 600) ? 0 : (uint8_t)below(w, GP_PRIORITY_MAX + 1);
	a.gang = chance(w, 300) ? 1 + below(w, 3) : 0;
	if (w->policy->needs_one && chance(w, 500)) { /* it goes by deadlines */
		a.deadline_ns = MS + below(w, 200 * MS);
		a.budget_ns = chance(w, 800) ? below(w, a.deadline_ns) : 0;
	}
	return a;
}

static unsigned count_present(const struct world *w)
{
	unsigned n = 0;

	for (unsigned i = 0; i < MODEL_TASKS; i++)
		n += w->model.task[i].present;
	return n;
}

static bool gang_has_room(const struct world *w, uint64_t gang)
{
	unsigned n = 0;

	for (unsigned i = 0; i < MODEL_TASKS; i++)
		n += w->model.task[i].present && w->subject[i].attr.gang == gang;
	return !gang || n < 3;
}

/* Users hold no more tasks than the device can: what happens then is another test's subject. */
static bool users_ask_too_much(const struct world *w)
{
	return count_user_held(w) > w->model.profile.max_held;
}

static void note_status(struct world *w, uint32_t i)
{
	struct subject *s = &w->subject[i];

	s->was_managed |= is_managed(s);
	s->was_user_held |= s->user_hold;
	disturb(w);
}

static void let_one_in(struct world *w)
{
	uint32_t i = count_present(w) < 10 ? model_enter(&w->model) : MODEL_TASKS;
	struct subject *s;

	if (i == MODEL_TASKS)
		return;
	s = &w->subject[i];
	*s = (struct subject){.attr = draw_attr(w)};
	if (!gang_has_room(w, s->attr.gang) || users_ask_too_much(w))
		s->attr.gang = 0;
	tell(w, "task %u comes: class %u, gang %llu", i, s->attr.class,
	     (unsigned long long)s->attr.gang);
	note_status(w, i);
	draw_rhythm(w, i);
	if (chance(w, 500))
		gp_engine_trigger(w->engine, true);
}

static void change_attr(struct world *w, uint32_t i)
{
	struct subject *s = &w->subject[i];
	struct gp_task_attr before = s->attr, drawn = draw_attr(w);

	if (chance(w, 500))
		s->attr.class = drawn.class;
	if (chance(w, 300))
		s->attr.priority = drawn.priority;
	if (w->policy->needs_one && chance(w, 300)) {
		s->attr.deadline_ns = drawn.deadline_ns;
		s->attr.budget_ns = drawn.budget_ns;
	}
	if (chance(w, 300) && gang_has_room(w, drawn.gang))
		s->attr.gang = drawn.gang;
	if (users_ask_too_much(w)) {
		s->attr = before;
		return;
	}
	tell(w, "task %u: class %u, priority %u, gang %llu", i, s->attr.class, s->attr.priority,
	     (unsigned long long)s->attr.gang);
	note_status(w, i);
	if (gp_engine_set_attr(w->engine, s->id, &s->attr))
		breach(w, "set_attr of task %u failed", i);
}

static void change_user_hold(struct world *w, uint32_t i)
{
	struct subject *s = &w->subject[i];
	int r;

	s->user_hold = !s->user_hold;
	if (s->user_hold && users_ask_too_much(w)) {
		s->user_hold = false;
		return;
	}
	tell(w, "task %u: user %s", i, s->user_hold ? "holds" : "releases");
	note_status(w, i);
	r = s->user_hold ? gp_engine_user_hold(w->engine, s->id)
	                 : gp_engine_user_release(w->engine, s->id);
	if (r)
		breach(w, "(3) a user's wish for task %u failed: %d", i, r);
}

static void let_things_happen(struct world *w)
{
	uint32_t i = (uint32_t)below(w, MODEL_TASKS);
	unsigned permille = w->steady ? 1 : 20;

	if (chance(w, permille))
		let_one_in(w);
	if (!w->model.task[i].present)
		return;
	if (chance(w, permille / 2)) {
		tell(w, "task %u goes", i);
		model_leave(&w->model, i);
		disturb(w);
		return;
	}
	if (chance(w, 2 * permille))
		draw_rhythm(w, i);
	if (!w->subject[i].id)
		return;
	if (chance(w, permille))
		change_attr(w, i);
	if (chance(w, permille))
		change_user_hold(w, i);
}

static uint64_t draw_time(struct world *w)
{
	uint64_t asked_ns = gp_engine_next_ns(w->engine);
	uint64_t drawn_ns = w->model.now_ns + 50000 +
	                    below(w, w->steady || chance(w, 500) ? 20 * MS - 50000 : 2 * MS);

	if (w->punctual && asked_ns < drawn_ns)
		return asked_ns;
	return chance(w, w->punctual ? 700 : 200) && asked_ns ? asked_ns : drawn_ns;
}

static void tell_profile(const struct world *w)
{
	const struct model_profile *p = &w->model.profile;

	tell(w,
	     "slices %d (%u to %u us, own %u), holds %u, activity %d%s%s%s, run %d%s%s, finish %d "
	     "in "
	     "%llu us, %u/1000 missing, %u/1000 blind%s%s",
	     p->slices, p->slice_min_us, p->slice_max_us, p->slice_us, p->max_held, p->activity,
	     p->activity_of_held ? " also held" : "", p->events ? " events" : "",
	     p->running_seen ? " running" : "", p->run, p->held_seen ? " held" : "",
	     p->slice_seen ? " slice" : "", p->finish, (unsigned long long)(p->cost_ns / 1000),
	     p->drop_permille, p->blind_permille, w->punctual ? ", punctual" : "",
	     w->steady ? ", steady" : "");
}

/* Runs one sequence. The failure, if any, is in w->failure. */
static void run_sequence(struct world *w, const struct gp_policy_ops *policy, uint64_t seed,
                         bool tells)
{
	struct gp_policy_choice choice;
	struct model_profile profile;
	unsigned steps;

	gp_policy_defaults(policy, &choice);
	*w = (struct world){.seed = seed};
	gp_rng_init(&w->rng, seed, 2);
	profile = draw_profile(w);
	fit_profile(policy, &profile);
	if (world_init(w, &choice, &profile, seed)) {
		breach(w, "no engine");
		return;
	}
	w->tells = tells;
	w->steady = chance(w, 200);
	w->punctual = chance(w, w->steady ? 400 : 600);
	tell_profile(w);
	for (unsigned n = (unsigned)below(w, 9); n; n--)
		let_one_in(w);
	steps = w->steady ? STEADY_STEPS : STEPS;
	while (w->step < steps && !w->failure[0]) {
		let_things_happen(w);
		pass_time(w, draw_time(w));
		look(w);
	}
	gp_engine_free(w->engine);
}

static uint64_t count_sequences(void)
{
	const char *soak = getenv("GPREEMPT_SOAK");

	return SEQUENCES * (soak && atoi(soak) > 0 ? (uint64_t)atoi(soak) : 1);
}

static void run_sequences(const struct gp_policy_ops *policy)
{
	const char *one = getenv("GPREEMPT_SEED");
	uint64_t n = count_sequences(), longest_ns = 0;
	static struct world w;

	w.failure[0] = '\0';
	if (one) {
		run_sequence(&w, policy, strtoull(one, NULL, 0), true);
		n = 0;
	}
	for (uint64_t seed = 1; seed <= n && !w.failure[0]; seed++) {
		run_sequence(&w, policy, seed, false);
		if (w.longest_denied_ns > longest_ns)
			longest_ns = w.longest_denied_ns;
	}
	if (w.failure[0])
		fail_msg("%s", w.failure);
	print_message("%s: nobody waited longer than %llu ms\n", policy->name,
	              (unsigned long long)(longest_ns / MS));
}

static void none_keeps_its_promises_in_random_sequences(void **state)
{
	(void)state;
	run_sequences(&gp_policy_none);
}

static void priority_keeps_its_promises_in_random_sequences(void **state)
{
	(void)state;
	run_sequences(&gp_policy_priority);
}

static void rr_keeps_its_promises_in_random_sequences(void **state)
{
	(void)state;
	run_sequences(&gp_policy_rr);
}

static void every_other_policy_keeps_the_promises_of_all(void **state)
{
	(void)state;
	for (const struct gp_policy_ops *const *p = gp_policies; *p; p++)
		if (*p != &gp_policy_none && *p != &gp_policy_priority && *p != &gp_policy_rr)
			run_sequences(*p);
}

static void the_same_seed_gives_the_same_plans_and_actions(void **state)
{
	static struct world w;

	(void)state;
	for (const struct gp_policy_ops *const *p = gp_policies; *p; p++)
		for (uint64_t seed = 1; seed <= count_sequences() / 10; seed++) {
			uint64_t first;

			run_sequence(&w, *p, seed, false);
			first = w.hash;
			run_sequence(&w, *p, seed, false);
			if (w.hash != first)
				fail_msg("(9) policy %s, seed %llu: another run differs",
				         (*p)->name, (unsigned long long)seed);
		}
}

/* ---- single claims, on a device that can and shows everything ---- */

static struct world stage;

static const struct model_profile best_device = {
	.slices = true,
	.slice_min_us = 1,
	.slice_max_us = 10000000,
	.slice_us = 2000,
	.slice_us_told = true,
	.max_held = ALL,
	.activity = EXACT,
	.activity_of_held = true,
	.running_seen = true,
	.run = EXACT,
	.held_seen = true,
	.slice_seen = true,
	.finish = AT_ONCE,
};

static struct model_profile device_without_slices(void)
{
	struct model_profile p = best_device;

	p.slices = p.slice_seen = false;
	return p;
}

static void open_stage(const char *policy, const struct model_profile *profile)
{
	struct gp_policy_choice choice;

	assert_int_equal(gp_policy_parse(policy, &choice, NULL), 0);
	assert_int_equal(world_init(&stage, &choice, profile, 1), 0);
}

static void close_stage(void)
{
	gp_engine_free(stage.engine);
	if (stage.failure[0])
		fail_msg("%s", stage.failure);
}

/* A task comes and the engine sees it. */
static uint32_t cast_gang(uint8_t class, uint8_t priority, bool busy, uint64_t gang)
{
	uint32_t i = model_enter(&stage.model);

	stage.subject[i] = (struct subject){.attr = GP_TASK_ATTR_DEFAULT};
	stage.subject[i].attr.class = class;
	stage.subject[i].attr.priority = priority;
	stage.subject[i].attr.gang = gang;
	note_status(&stage, i);
	if (busy)
		model_set_active(&stage.model, i, true);
	gp_engine_trigger(stage.engine, true);
	return i;
}

static uint32_t cast(uint8_t class, bool busy)
{
	return cast_gang(class, 0, busy, 0);
}

/* The engine is called exactly when it asks for it. */
static void play_us(uint64_t us)
{
	uint64_t end_ns = stage.model.now_ns + us * GP_NS_PER_US;

	look(&stage);
	while (stage.model.now_ns < end_ns) {
		uint64_t next_ns = gp_engine_next_ns(stage.engine);

		pass_time(&stage, next_ns < end_ns ? next_ns : end_ns);
		look(&stage);
	}
}

static void play(uint64_t ms)
{
	play_us(ms * 1000);
}

static void set_busy(uint32_t i, bool busy)
{
	model_set_active(&stage.model, i, busy);
}

static bool held(uint32_t i)
{
	return stage.model.task[i].held;
}

static uint32_t slice_of(uint32_t i)
{
	return stage.model.task[i].slice_us;
}

/* Its part of the device from now on, in thousandths. */
static unsigned permille_of_the_next(uint32_t i, uint64_t ms)
{
	uint64_t before_ns = stage.model.task[i].run_ns;

	play(ms);
	return (unsigned)((stage.model.task[i].run_ns - before_ns) * 1000 / (ms * MS));
}

static void one_lc_task_gets_a_second_and_several_get_two_ms_each(void **state)
{
	uint32_t a, b;

	(void)state;
	open_stage("priority", &best_device);
	a = cast(GP_LATENCY_CRITICAL, true);
	play(10);
	assert_int_equal(slice_of(a), 1000000);
	b = cast(GP_LATENCY_CRITICAL, false);
	play(10);
	assert_int_equal(slice_of(a), 2000);
	assert_int_equal(slice_of(b), 2000);
	model_leave(&stage.model, b);
	play(110);
	assert_int_equal(slice_of(a), 1000000);
	close_stage();
}

static void the_only_be_task_gets_the_tiny_slice_while_there_is_an_lc_task(void **state)
{
	uint32_t lc, be;

	(void)state;
	open_stage("priority", &best_device);
	be = cast(GP_BEST_EFFORT, true);
	play(10);
	assert_int_equal(slice_of(be), 0);
	lc = cast(GP_LATENCY_CRITICAL, false);
	play(10);
	assert_int_equal(slice_of(be), 1);
	assert_in_range(permille_of_the_next(be, 100), 1000, 1000); /* it costs it nothing */
	set_busy(lc, true);
	assert_in_range(permille_of_the_next(lc, 90), 1000, 1000);
	assert_false(held(be));
	model_leave(&stage.model, lc);
	play(110);
	assert_int_equal(slice_of(be), 0);
	close_stage();
}

static void an_idle_be_task_alone_has_the_tiny_slice_for_when_it_wakes_up(void **state)
{
	uint32_t lc, be;

	(void)state;
	open_stage("priority", &best_device);
	lc = cast(GP_LATENCY_CRITICAL, true);
	be = cast(GP_BEST_EFFORT, false);
	play(10);
	assert_int_equal(slice_of(be), 1);
	set_busy(be, true);
	assert_in_range(permille_of_the_next(lc, 50), 1000, 1000);
	close_stage();
}

static void two_busy_be_tasks_take_turns_of_a_quantum(void **state)
{
	uint32_t a, b, first, second;

	(void)state;
	open_stage("priority:quantum=100", &best_device);
	cast(GP_LATENCY_CRITICAL, false);
	a = cast(GP_BEST_EFFORT, true);
	b = cast(GP_BEST_EFFORT, true);
	play_us(1);
	first = held(a) ? b : a;
	second = held(a) ? a : b;
	for (int turn = 0; turn < 6; turn++) {
		uint32_t other = first;

		play_us(turn ? 1000 : 999);
		assert_false(held(first));
		assert_true(held(second));
		assert_int_equal(slice_of(first), 1);
		play(98);
		assert_false(held(first));
		play(1);
		assert_true(held(first));
		assert_false(held(second));
		first = second;
		second = other;
	}
	assert_in_range(permille_of_the_next(a, 1000), 480, 520);
	close_stage();
}

static void the_higher_of_two_be_priorities_has_the_device_but_for_aging(void **state)
{
	uint32_t low;

	(void)state;
	open_stage("priority:quantum=100", &best_device);
	low = cast_gang(GP_BEST_EFFORT, 3, true, 0);
	cast_gang(GP_BEST_EFFORT, 4, true, 0);
	play(10);
	assert_true(held(low));
	assert_in_range(permille_of_the_next(low, 2200), 60, 120); /* 10 ms of 110 */
	close_stage();
}

static void an_idle_be_task_stays_released_and_joins_when_seen_active(void **state)
{
	uint32_t busy, idle;

	(void)state;
	open_stage("priority:quantum=100", &best_device);
	cast(GP_LATENCY_CRITICAL, false);
	busy = cast(GP_BEST_EFFORT, true);
	idle = cast(GP_BEST_EFFORT, false);
	play(500);
	assert_false(held(busy));
	assert_int_equal(slice_of(busy), 1);
	assert_false(held(idle));
	assert_int_equal(slice_of(idle), 0);
	set_busy(idle, true);
	play(2);
	assert_int_equal(held(busy) + held(idle), 1);
	assert_in_range(permille_of_the_next(idle, 1000), 450, 550);
	set_busy(idle, false);
	play(2);
	assert_false(held(idle));
	assert_false(held(busy));
	assert_in_range(permille_of_the_next(busy, 300), 1000, 1000);
	close_stage();
}

static void a_busy_unmanaged_task_keeps_the_tiny_slice_away(void **state)
{
	uint32_t be, unmanaged;

	(void)state;
	open_stage("priority", &best_device);
	cast(GP_LATENCY_CRITICAL, true);
	be = cast(GP_BEST_EFFORT, true);
	unmanaged = cast(GP_UNMANAGED, true);
	play(10);
	assert_int_equal(slice_of(be), 0);
	set_busy(unmanaged, false);
	play(2);
	assert_int_equal(slice_of(be), 1);
	assert_false(held(unmanaged));
	assert_int_equal(slice_of(unmanaged), 0);
	close_stage();
}

static void aging_gives_a_be_task_with_the_tiny_slice_10_ms_in_110(void **state)
{
	uint32_t lc, be;

	(void)state;
	open_stage("priority", &best_device);
	lc = cast(GP_LATENCY_CRITICAL, true);
	be = cast(GP_BEST_EFFORT, true);
	play(99);
	assert_int_equal(stage.model.task[be].run_ns, 0);
	play(4);
	assert_int_equal(slice_of(be), 2000);
	assert_int_equal(slice_of(lc), 2000);
	play(10);
	assert_int_equal(slice_of(be), 1);
	assert_int_equal(slice_of(lc), 1000000);
	assert_in_range(permille_of_the_next(be, 3000), 30, 60); /* half of 10 ms in 110 */
	close_stage();
}

static void aging_reaches_every_be_task_although_they_take_turns(void **state)
{
	uint32_t be[4];

	(void)state;
	open_stage("priority", &best_device);
	cast(GP_LATENCY_CRITICAL, true);
	for (uint8_t i = 0; i < 4; i++)
		be[i] = cast_gang(GP_BEST_EFFORT, i / 2, true, 0);
	play(3000);
	for (unsigned i = 0; i < 4; i++)
		assert_in_range(stage.model.task[be[i]].run_ns, 2 * MS, 200 * MS);
	close_stage();
}

static void aging_reaches_a_be_task_that_nobody_sees_run(void **state)
{
	struct model_profile device = best_device;
	uint32_t a, b;

	(void)state;
	device.run = UNSEEN;
	device.running_seen = false;
	open_stage("priority", &device);
	cast(GP_LATENCY_CRITICAL, true);
	a = cast(GP_BEST_EFFORT, true);
	b = cast(GP_BEST_EFFORT, true);
	play(300); /* while a task is held, its wait is known */
	model_leave(&stage.model, b);
	play(100);
	assert_in_range(permille_of_the_next(a, 5000), 3, 100);
	close_stage();
}

static void without_slices_be_is_held_while_lc_is_seen_active(void **state)
{
	struct model_profile device = device_without_slices();
	uint32_t lc, be;

	(void)state;
	open_stage("priority", &device);
	lc = cast(GP_LATENCY_CRITICAL, false);
	be = cast(GP_BEST_EFFORT, true);
	for (int burst = 0; burst < 5; burst++) {
		play(20);
		assert_false(held(be));
		set_busy(lc, true);
		play(1);
		assert_true(held(be));
		play(20);
		assert_true(held(be));
		set_busy(lc, false);
		play(1);
		assert_false(held(be));
	}
	close_stage();
}

static unsigned ms_until(uint32_t i, bool is_held)
{
	unsigned ms = 0;

	for (; held(i) != is_held && ms < 1000; ms++)
		play(1);
	return ms;
}

static void without_slices_aging_lets_be_in_after_100_ms_for_10(void **state)
{
	struct model_profile device = device_without_slices();
	uint32_t be;

	(void)state;
	open_stage("priority", &device);
	cast(GP_LATENCY_CRITICAL, true);
	be = cast(GP_BEST_EFFORT, true);
	play(1);
	for (int round = 0; round < 5; round++) {
		assert_in_range(ms_until(be, false), 97, 102);
		assert_in_range(ms_until(be, true), 9, 12);
	}
	close_stage();
}

static void a_task_keeps_its_place_when_one_that_came_before_it_leaves(void **state)
{
	struct model_profile device = device_without_slices();
	uint32_t idle, be;

	(void)state;
	open_stage("priority", &device);
	idle = cast(GP_BEST_EFFORT, false);
	cast(GP_LATENCY_CRITICAL, true);
	be = cast(GP_BEST_EFFORT, true);
	play(50);
	model_leave(&stage.model, idle);
	gp_engine_trigger(stage.engine, true);
	assert_in_range(ms_until(be, false), 47, 52);
	close_stage();
}

/* Where changes announce themselves, looks are far apart: it ran up to now, not up to the last. */
static void a_be_task_that_has_just_run_is_not_let_in_for_having_waited(void **state)
{
	struct model_profile device = device_without_slices();
	uint32_t lc, be;

	(void)state;
	device.events = true;
	open_stage("priority", &device);
	lc = cast(GP_LATENCY_CRITICAL, false);
	be = cast(GP_BEST_EFFORT, true);
	play(101); /* the next look is due in 99 ms */
	pass_time(&stage, stage.model.now_ns + 95 * MS);
	set_busy(lc, true);
	look(&stage);
	for (int ms = 0; ms < 90; ms++) {
		assert_true(held(be));
		play(1);
	}
	close_stage();
}

static void a_device_that_holds_few_holds_the_lowest(void **state)
{
	struct model_profile device = device_without_slices();
	uint32_t low_lc, be;

	(void)state;
	device.max_held = 1;
	open_stage("priority", &device);
	cast_gang(GP_LATENCY_CRITICAL, 9, true, 0);
	low_lc = cast_gang(GP_LATENCY_CRITICAL, 0, true, 0);
	be = cast(GP_BEST_EFFORT, true);
	play(20);
	assert_true(held(be));
	assert_false(held(low_lc));
	close_stage();
}

static void no_more_turns_are_taken_than_the_device_can_hold(void **state)
{
	struct model_profile device = best_device;
	uint32_t be[3];

	(void)state;
	device.max_held = 1;
	open_stage("priority", &device);
	cast(GP_LATENCY_CRITICAL, false);
	be[0] = cast(GP_BEST_EFFORT, true);
	be[1] = cast(GP_BEST_EFFORT, true);
	play(250);
	assert_int_equal(held(be[0]) + held(be[1]), 1);
	be[2] = cast(GP_BEST_EFFORT, true);
	play(250);
	for (int i = 0; i < 3; i++) { /* two would have to be held: the hardware shares */
		assert_false(held(be[i]));
		assert_int_equal(slice_of(be[i]), 0);
	}
	close_stage();
}

static void a_gang_takes_its_turn_together(void **state)
{
	uint32_t a, b, other;

	(void)state;
	open_stage("priority", &best_device);
	a = cast_gang(GP_BEST_EFFORT, 0, true, 7);
	other = cast(GP_BEST_EFFORT, true);
	b = cast_gang(GP_BEST_EFFORT, 0, true, 7);
	for (int i = 0; i < 50; i++) {
		play(13);
		assert_int_equal(held(a), held(b));
		assert_int_not_equal(held(a), held(other));
	}
	close_stage();
}

static void a_be_task_in_a_gang_with_an_lc_task_is_not_held(void **state)
{
	struct model_profile device = device_without_slices();
	uint32_t mate, be;

	(void)state;
	open_stage("priority", &device);
	cast_gang(GP_LATENCY_CRITICAL, 0, true, 7);
	mate = cast_gang(GP_BEST_EFFORT, 0, true, 7);
	be = cast(GP_BEST_EFFORT, true);
	play(50);
	assert_false(held(mate));
	assert_true(held(be));
	close_stage();
}

static void what_a_user_holds_stays_held_and_takes_no_turn(void **state)
{
	uint32_t a, b;

	(void)state;
	open_stage("priority:quantum=100", &best_device);
	cast(GP_LATENCY_CRITICAL, false);
	a = cast(GP_BEST_EFFORT, true);
	b = cast(GP_BEST_EFFORT, true);
	play(10);
	change_user_hold(&stage, a);
	play(2);
	assert_true(held(a));
	assert_in_range(permille_of_the_next(b, 1000), 1000, 1000);
	assert_true(held(a));
	change_user_hold(&stage, a);
	assert_in_range(permille_of_the_next(a, 1000), 450, 550);
	close_stage();
}

static void rr_gives_everybody_the_same_slice(void **state)
{
	uint32_t a, b, c, unmanaged;

	(void)state;
	open_stage("rr:quantum=5000", &best_device);
	a = cast(GP_LATENCY_CRITICAL, true);
	b = cast(GP_BEST_EFFORT, true);
	c = cast(GP_BEST_EFFORT, false);
	unmanaged = cast(GP_UNMANAGED, false);
	play(10);
	assert_int_equal(slice_of(a), 5000);
	assert_int_equal(slice_of(b), 5000);
	assert_int_equal(slice_of(c), 5000);
	assert_int_equal(slice_of(unmanaged), 0);
	assert_in_range(permille_of_the_next(a, 1000), 490, 510);
	close_stage();
}

static void rr_rotates_where_there_are_no_slices(void **state)
{
	struct model_profile device = device_without_slices();
	uint32_t a, b, c;
	int held_at_once = 0;

	(void)state;
	open_stage("rr", &device);
	a = cast(GP_LATENCY_CRITICAL, true);
	b = cast(GP_BEST_EFFORT, true);
	c = cast(GP_BEST_EFFORT, true);
	cast(GP_BEST_EFFORT, false);
	play(5);
	for (int i = 0; i < 30; i++) {
		play(10);
		held_at_once += held(a) + held(b) + held(c);
	}
	assert_int_equal(held_at_once, 60);
	assert_in_range(permille_of_the_next(a, 3000), 320, 347);
	assert_in_range(permille_of_the_next(b, 3000), 320, 347);
	close_stage();
}

static void none_puts_everything_back(void **state)
{
	struct gp_policy_choice none;
	uint32_t task[4];

	(void)state;
	open_stage("priority", &best_device);
	task[0] = cast(GP_LATENCY_CRITICAL, true);
	for (int i = 1; i < 4; i++)
		task[i] = cast(GP_BEST_EFFORT, true);
	play(150);
	assert_int_equal(held(task[1]) + held(task[2]) + held(task[3]), 2);
	gp_policy_defaults(&gp_policy_none, &none);
	stage.policy = &gp_policy_none;
	assert_int_equal(gp_engine_set_policy(stage.engine, stage.model.now_ns, &none, NULL), 0);
	play(2);
	for (int i = 0; i < 4; i++) {
		assert_false(held(task[i]));
		assert_int_equal(slice_of(task[i]), 0);
	}
	assert_in_range(permille_of_the_next(task[3], 1000), 245, 255);
	close_stage();
}

/* Looks every 100 ms at slices of 10 ms see the same one of two or five tasks every time. */
static void a_task_that_never_runs_at_a_look_is_not_starved_for_it(void **state)
{
	struct model_profile device = best_device;

	(void)state;
	device.events = true;
	device.run = UNSEEN;
	open_stage("rr", &device);
	for (int i = 0; i < 5; i++)
		cast(GP_BEST_EFFORT, true);
	play(15000);
	assert_int_equal(gp_engine_stats(stage.engine)->ejections, 0);
	close_stage();
}

/* ---- parameters ---- */

static void parameters_are_taken_and_others_keep_their_defaults(void **state)
{
	struct gp_policy_choice c;
	struct gp_error err = {0};

	(void)state;
	assert_int_equal(gp_policy_parse("none", &c, &err), 0);
	assert_ptr_equal(c.ops, &gp_policy_none);
	assert_int_equal(gp_policy_parse("priority:age_after=200:quantum=50", &c, &err), 0);
	assert_ptr_equal(c.ops, &gp_policy_priority);
	for (uint32_t i = 0; i < c.ops->nparam; i++) {
		const struct gp_param *p = &c.ops->param[i];

		assert_int_equal(c.param[i], !strcmp(p->name, "quantum")     ? 50
		                             : !strcmp(p->name, "age_after") ? 200
		                                                             : p->def);
	}
	assert_int_equal(err.code, 0);
	for (const struct gp_policy_ops *const *p = gp_policies; *p; p++) {
		assert_ptr_equal(gp_policy_find((*p)->name), *p);
		assert_in_range((*p)->nparam, 0, GP_PARAM_MAX);
		for (uint32_t i = 0; i < (*p)->nparam; i++)
			assert_true((*p)->param[i].min <= (*p)->param[i].def &&
			            (*p)->param[i].def <= (*p)->param[i].max);
	}
}

static void what_cannot_be_parsed_is_refused_in_one_sentence(void **state)
{
	static const struct {
		const char *text, *says;
	} refused[] = {
		{"", "there is no policy"},
		{"prio", "there is no policy 'prio'"},
		{"priority ", "there is no policy"},
		{"a_name_that_is_longer_than_any_policy", "there is no policy"},
		{"rr:speed=1", "has no parameter 'speed'"},
		{"rr:quant=1000", "has no parameter 'quant'"},
		{"rr:", "has no parameter ''"},
		{"rr:quantum=5000:", "has no parameter ''"},
		{"none:quantum=1", "has no parameter 'quantum'"},
		{"rr:quantum", "needs a value, as quantum=10000"},
		{"rr:quantum=", "needs a value"},
		{"rr:quantum=fast", "takes a whole number from 1000 to"},
		{"rr:quantum=5000us", "takes a whole number"},
		{"rr:quantum=999", "takes a whole number"},
		{"rr:quantum=10000001", "takes a whole number"},
		{"rr:quantum=99999999999999999999", "takes a whole number"},
		{"priority:tiny_slice=51", "takes a whole number from 1 to 50 us"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
		struct gp_policy_choice c;
		struct gp_error err = {0};
		size_t length;

		assert_int_equal(gp_policy_parse(refused[i].text, &c, &err), -EINVAL);
		assert_int_equal(err.code, -EINVAL);
		if (!strstr(err.text, refused[i].says))
			fail_msg("'%s' is refused with '%s'", refused[i].text, err.text);
		length = strlen(err.text);
		assert_in_range(length, 10, sizeof err.text - 1);
		assert_null(strchr(err.text, '\n'));
		assert_true(err.text[length - 1] != '.' && !strstr(err.text, ". "));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_lc_task_gets_a_second_and_several_get_two_ms_each),
		cmocka_unit_test(the_only_be_task_gets_the_tiny_slice_while_there_is_an_lc_task),
		cmocka_unit_test(an_idle_be_task_alone_has_the_tiny_slice_for_when_it_wakes_up),
		cmocka_unit_test(two_busy_be_tasks_take_turns_of_a_quantum),
		cmocka_unit_test(the_higher_of_two_be_priorities_has_the_device_but_for_aging),
		cmocka_unit_test(an_idle_be_task_stays_released_and_joins_when_seen_active),
		cmocka_unit_test(a_busy_unmanaged_task_keeps_the_tiny_slice_away),
		cmocka_unit_test(aging_gives_a_be_task_with_the_tiny_slice_10_ms_in_110),
		cmocka_unit_test(aging_reaches_every_be_task_although_they_take_turns),
		cmocka_unit_test(aging_reaches_a_be_task_that_nobody_sees_run),
		cmocka_unit_test(without_slices_be_is_held_while_lc_is_seen_active),
		cmocka_unit_test(without_slices_aging_lets_be_in_after_100_ms_for_10),
		cmocka_unit_test(a_task_keeps_its_place_when_one_that_came_before_it_leaves),
		cmocka_unit_test(a_be_task_that_has_just_run_is_not_let_in_for_having_waited),
		cmocka_unit_test(a_device_that_holds_few_holds_the_lowest),
		cmocka_unit_test(no_more_turns_are_taken_than_the_device_can_hold),
		cmocka_unit_test(a_gang_takes_its_turn_together),
		cmocka_unit_test(a_be_task_in_a_gang_with_an_lc_task_is_not_held),
		cmocka_unit_test(what_a_user_holds_stays_held_and_takes_no_turn),
		cmocka_unit_test(rr_gives_everybody_the_same_slice),
		cmocka_unit_test(rr_rotates_where_there_are_no_slices),
		cmocka_unit_test(none_puts_everything_back),
		cmocka_unit_test(a_task_that_never_runs_at_a_look_is_not_starved_for_it),
		cmocka_unit_test(parameters_are_taken_and_others_keep_their_defaults),
		cmocka_unit_test(what_cannot_be_parsed_is_refused_in_one_sentence),
		cmocka_unit_test(none_keeps_its_promises_in_random_sequences),
		cmocka_unit_test(priority_keeps_its_promises_in_random_sequences),
		cmocka_unit_test(rr_keeps_its_promises_in_random_sequences),
		cmocka_unit_test(every_other_policy_keeps_the_promises_of_all),
		cmocka_unit_test(the_same_seed_gives_the_same_plans_and_actions),
	};

	gp_log_set_level(GP_LOG_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
