/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine with a policy that fails, is slow, breaks a rule or starves a task: it is thrown out,
 * everything is given back, and a record says why. What a failing back end causes is not its fault.
 */
#include "fake_gpu.h"

#include "engine/engine_state.h"

/* Longest backoff, the time after which an action counts as lost, and a little. */
#define RECOVERY_NS (1 * S + 20 * MS + 10 * MS)

/*
 * Task 1 is held by the policy, 2 has a slice of its own, 3 is held by its user, 4 is
 * latency-critical, 5 and 6 are a gang, 7 is unmanaged.
 */
static void want_well(void)
{
	WANT(HOLD, RUN(3000), RUN(0), RUN(100000), RUN(0), RUN(0));
}

static struct rig *rig_of_victims(void)
{
	struct rig *r = rig_new();

	for (int i = 0; i < 7; i++)
		rig_add(r, i == 3 ? GP_LATENCY_CRITICAL : i == 6 ? GP_UNMANAGED : GP_BEST_EFFORT);
	r->attr[5].gang = r->attr[6].gang = 99;
	r->gpu.base.info.slice_min_us = 5;
	r->gpu.base.info.slice_max_us = 200000;
	r->gpu.base.info.max_held = 4;
	r->config.decide_clock = &r->decide_clock.base;
	script.clock = &r->decide_clock;
	script.takes_ns = 10 * MS; /* just within the limit */
	want_well();
	rig_start(r, &watching);
	gp_engine_user_hold(r->engine, 3);
	rig_run(r, 20 * MS);
	assert_null(gp_engine_ejection(r->engine));
	assert_true(rig_is(r, 0)->held);
	assert_int_equal(rig_is(r, 1)->slice_us, 3000);
	assert_true(rig_is(r, 2)->held);
	assert_int_equal(rig_is(r, 3)->slice_us, 100000);
	return r;
}

static int set_up_victims(void **state)
{
	*state = rig_of_victims();
	return 0;
}

#define VICTIMS_TEST(function) RIG_TEST_WITH(function, set_up_victims)

static void assert_given_back(struct rig *r)
{
	assert_ptr_equal(gp_engine_policy(r->engine), &gp_policy_none);
	rig_run(r, 10 * MS);
	for (uint32_t h = 0; h < 7; h++) {
		assert_int_equal(rig_is(r, h)->held, h == 2); /* the user's stays */
		assert_int_equal(rig_is(r, h)->slice_us, 0);
		assert_int_equal(rig_task(r, h).held_by, h == 2 ? GP_HELD_BY_USER : 0);
	}
	for (enum fake_kind k = 0; k < FAKE_KINDS; k++)
		assert_int_equal(fake_count(&r->gpu, k, 6, 0), 0); /* unmanaged */
}

static void assert_ejected(struct rig *r, enum gp_eject_reason reason, uint64_t task,
			   const char *why)
{
	const struct gp_ejection *x = gp_engine_ejection(r->engine);

	assert_non_null(x);
	assert_int_equal(x->reason, reason);
	assert_ptr_equal(x->policy, &watching);
	assert_int_equal(x->now_ns, r->now_ns);
	assert_int_equal(x->task, task);
	if (!strstr(x->text, why))
		fail_msg("\"%s\" does not say \"%s\"", x->text, why);
	assert_non_null(strstr(x->text, "policy watching "));
	assert_int_equal(x->view.now_ns, r->now_ns);
	assert_int_equal(x->view.n, gp_engine_tasks(r->engine));
	assert_ptr_equal(x->view.task, x->task_view);
	assert_int_equal(x->ntasks, x->view.n);
	for (uint32_t i = 0; i < x->ntasks; i++) {
		assert_int_equal(x->task_view[i].id, i + 1);
		assert_int_equal(x->task_view[i].class, rig_task(r, i).attr.class);
	}
	assert_int_equal(x->task_view[0].held_by, GP_HELD_BY_POLICY);
	assert_int_equal(rig_stats(r)->ejections, 1);
	assert_int_equal(r->events[GP_EVENT_EJECTED], 1);
	assert_int_equal(r->last[GP_EVENT_EJECTED].task, task);
	assert_int_equal(r->last[GP_EVENT_EJECTED].now_ns, r->now_ns);
}

VICTIMS_TEST(a_policy_that_returns_an_error_is_ejected)
{
	script.result = -EPROTO;
	rig_step(r);
	assert_ejected(r, GP_EJECT_FAILED, 0, gp_error_name(-EPROTO));
	assert_given_back(r);
}

VICTIMS_TEST(a_policy_that_takes_too_long_is_ejected)
{
	script.takes_ns = 10 * MS + 1 * GP_NS_PER_US;
	want(1, GP_RUN, 0); /* what it wanted does not count */
	rig_step(r);
	assert_ejected(r, GP_EJECT_SLOW, 0, "10001 us");
	assert_int_equal(gp_engine_ejection(r->engine)->task_plan[0].want, GP_RUN);
	assert_given_back(r);
}

TEST(the_limit_on_deciding_can_be_set_and_needs_a_clock)
{
	for (int with_clock = 0; with_clock < 2; with_clock++) {
		struct rig *r = rig_new();

		(void)state;
		r->config.decide_limit_ns = 100;
		r->config.decide_clock = with_clock ? &r->decide_clock.base : NULL;
		script.clock = &r->decide_clock;
		script.takes_ns = 101;
		rig_start(r, &scripted);
		assert_int_equal(gp_engine_ejection(r->engine) != NULL, with_clock);
		rig_free(r);
	}
}

struct bound_case {
	uint64_t id; /* does this ... */
	unsigned what;
	uint32_t slice_us;
	uint64_t blamed;
	const char *why;
};

TEST(a_policy_that_breaks_a_rule_is_ejected)
{
	static const struct bound_case cases[] = {
		{7, GP_RUN, 0, 7, "unmanaged"},
		{7, GP_HOLD, 0, 7, "unmanaged"},
		{7, GP_LEAVE, 1000, 7, "unmanaged"},
		{2, GP_RUN, 4, 2, "slice of 4 us"},
		{2, GP_RUN, 200001, 2, "slice of 200001 us"},
		{2, GP_HOLD, 200001, 2, "slice of 200001 us"},
		{5, GP_HOLD, 0, 6, "gang"},
		{6, GP_HOLD, 0, 6, "gang"},
		{6, GP_LEAVE, 0, 6, "gang"},
		{2, GP_HOLD + 1, 0, 2, "wants 3"},
		{2, 255, 0, 2, "wants 255"},
	};

	for (unsigned c = 0; c < sizeof cases / sizeof *cases; c++) {
		struct rig *r = rig_of_victims();

		script.rude = true;
		want(cases[c].id, (enum gp_want)cases[c].what, cases[c].slice_us);
		rig_step(r);
		assert_ejected(r, GP_EJECT_BOUND, cases[c].blamed, cases[c].why);
		assert_int_equal(gp_engine_ejection(r->engine)->task_plan[cases[c].id - 1].want,
				 cases[c].what);
		assert_given_back(r);
		rig_free(r);
	}
}

VICTIMS_TEST(a_policy_that_gives_two_tasks_tiny_slices_is_ejected)
{
	want(2, GP_RUN, 5);
	want(5, GP_RUN, GP_TINY_SLICE_US);
	rig_step(r);
	assert_ejected(r, GP_EJECT_BOUND, 5, "tiny");
	assert_given_back(r);
}

VICTIMS_TEST(a_policy_that_holds_more_than_the_device_can_is_ejected)
{
	r->gpu.base.info.max_held = 3; /* one of them is the user's */
	WANT(HOLD, HOLD);
	want(4, GP_HOLD, 0);
	rig_step(r);
	assert_ejected(r, GP_EJECT_BOUND, 0, "holds 3 tasks beside 1");
	assert_given_back(r);
}

TEST(a_policy_that_asks_for_a_look_in_the_past_is_ejected)
{
	for (uint64_t ago_ns = 0; ago_ns < 2; ago_ns++) {
		struct rig *r = rig_of_victims();

		script.next_ns = r->now_ns - ago_ns;
		rig_step(r);
		assert_ejected(r, GP_EJECT_BOUND, 0, "past");
		script.next_ns = 0;
		assert_given_back(r);
		rig_free(r);
	}
}

TEST(a_policy_that_uses_what_the_device_lacks_is_ejected)
{
	static const struct {
		uint32_t caps;
		enum gp_want what;
		uint32_t slice_us;
		const char *why;
	} cases[] = {
		{FAKE_CAPS & ~GP_CAP_HOLD, GP_HOLD, 0, "cannot hold"},
		{FAKE_CAPS & ~GP_CAP_SLICE, GP_RUN, 2000, "slice"},
		{FAKE_CAPS & ~GP_CAP_SLICE, GP_HOLD, 2000, "slice"},
	};

	for (unsigned c = 0; c < sizeof cases / sizeof *cases; c++) {
		struct rig *r = rig_new();

		rig_add(r, GP_BEST_EFFORT);
		r->gpu.base.info.caps = cases[c].caps;
		want(1, cases[c].what, cases[c].slice_us);
		rig_start(r, &scripted);
		assert_int_equal(gp_engine_ejection(r->engine)->reason, GP_EJECT_BOUND);
		assert_int_equal(gp_engine_ejection(r->engine)->task, 1);
		assert_non_null(strstr(gp_engine_ejection(r->engine)->text, cases[c].why));
		rig_run(r, 10 * MS);
		assert_int_equal(r->gpu.nasked, 0);
		rig_free(r);
	}
}

VICTIMS_TEST(a_policy_may_go_to_the_limits)
{
	want(1, GP_HOLD, 0); /* with the user's, four */
	want(2, GP_RUN, 5);  /* the smallest, and the only tiny one */
	want(3, GP_RUN, 6);  /* held by its user: does not count */
	want(4, GP_RUN, 200000);
	want(5, GP_HOLD, 0);
	want(6, GP_HOLD, 0);
	script.next_ns = r->now_ns + 1;
	rig_step(r);
	assert_null(gp_engine_ejection(r->engine));
	want(4, GP_RUN, 7); /* latency-critical: neither does this */
	want(5, GP_RUN, GP_TINY_SLICE_US + 1);
	want(6, GP_RUN, GP_TINY_SLICE_US + 1);
	script.next_ns = GP_NEVER;
	rig_step(r);
	assert_null(gp_engine_ejection(r->engine));
}

TEST(a_policy_that_holds_a_busy_task_for_ever_is_ejected)
{
	for (int known = 0; known < 2; known++) {
		struct rig *r = rig_of_victims();
		uint64_t begin_ns = r->now_ns;

		if (!known) /* not known to be idle is not idle */
			rig_is(r, 0)->known &= ~(uint32_t)(GP_KNOWN_ACTIVE | GP_KNOWN_RUNNING);
		rig_is(r, 0)->running = false;
		rig_run(r, 9900 * MS);
		assert_null(gp_engine_ejection(r->engine));
		while (!gp_engine_ejection(r->engine) && r->now_ns < begin_ns + 12 * S) {
			r->now_ns = gp_engine_next_ns(r->engine);
			rig_step(r);
		}
		assert_in_range(r->now_ns - begin_ns, 9900 * MS, 10010 * MS);
		assert_ejected(r, GP_EJECT_STARVED, 1, "starved task 1 for 100");
		assert_true(gp_engine_ejection(r->engine)->task_view[0].waited_ns > 10 * S);
		assert_int_equal(gp_engine_ejection(r->engine)->task_plan[0].want, GP_HOLD);
		assert_given_back(r);
		rig_free(r);
	}
}

/* Where the hardware takes no turns by itself, a look shows it; elsewhere the run time does. */
TEST(a_policy_that_never_lets_the_hardware_reach_a_busy_task_is_ejected)
{
	for (int slices = 0; slices < 2; slices++) {
		struct rig *r = rig_new();

		rig_add(r, GP_UNMANAGED); /* not the policy's */
		for (uint64_t id = 2; id <= 3; id++) {
			rig_add(r, GP_BEST_EFFORT);
			want(id, GP_RUN, 0);
		}
		if (!slices)
			r->gpu.base.info.caps &= ~(uint32_t)GP_CAP_SLICE;
		for (uint32_t h = 0; h < 3; h++) {
			rig_is(r, h)->running = h == 1;
			rig_is(r, h)->known |= slices ? GP_KNOWN_RUN : 0;
			rig_is(r, h)->run_source = GP_RUN_MEASURED;
		}
		rig_start(r, &watching);
		for (int ms = 0; ms < 9900; ms += 10) {
			rig_is(r, 1)->run_ns += 10 * MS;
			rig_run(r, 10 * MS);
		}
		assert_null(gp_engine_ejection(r->engine));
		rig_is(r, 1)->run_ns += 200 * MS;
		rig_run(r, 200 * MS);
		assert_non_null(gp_engine_ejection(r->engine));
		assert_int_equal(gp_engine_ejection(r->engine)->reason, GP_EJECT_STARVED);
		assert_int_equal(gp_engine_ejection(r->engine)->task, 3);
		rig_free(r);
	}
}

RIG_TEST(a_released_task_that_may_be_idle_is_not_starved)
{
	rig_add(r, GP_BEST_EFFORT);
	want(1, GP_RUN, 0);
	rig_is(r, 0)->known = GP_KNOWN_RUN; /* up to now, and it never ran */
	rig_is(r, 0)->run_source = GP_RUN_MEASURED;
	rig_start(r, &watching);
	rig_run(r, 60 * S);
	assert_null(gp_engine_ejection(r->engine));
}

RIG_TEST(a_sample_that_is_never_renewed_starves_nobody)
{
	rig_add(r, GP_BEST_EFFORT);
	want(1, GP_RUN, 0);
	rig_is(r, 0)->known = GP_KNOWN_ACTIVE | GP_KNOWN_RUN;
	rig_is(r, 0)->run_source = GP_RUN_MEASURED;
	rig_is(r, 0)->run_at_ns = r->now_ns + 3 * MS;
	rig_start(r, &watching);
	rig_run(r, 60 * S); /* there is evidence for 3 ms of waiting, and for no more */
	assert_null(gp_engine_ejection(r->engine));
}

RIG_TEST(a_hold_by_somebody_else_is_not_the_policys_fault)
{
	rig_add(r, GP_BEST_EFFORT);
	rig_start(r, &watching); /* leaves it alone */
	rig_is(r, 0)->held = true;
	rig_is(r, 0)->running = false;
	rig_run(r, 30 * S);
	assert_true(rig_is(r, 0)->held);
	assert_null(gp_engine_ejection(r->engine));
}

VICTIMS_TEST(idle_and_unmanaged_tasks_cannot_be_starved)
{
	rig_is(r, 0)->active = rig_is(r, 0)->running = false;
	rig_is(r, 6)->running = false;
	rig_run(r, 60 * S);
	assert_null(gp_engine_ejection(r->engine));
	assert_true(rig_is(r, 0)->held);
}

VICTIMS_TEST(a_task_that_gets_a_moment_now_and_then_is_not_starved)
{
	for (int i = 0; i < 8; i++) {
		rig_is(r, 0)->running = false;
		rig_run(r, 9 * S);
		want(1, GP_RUN, 0);
		gp_engine_trigger(r->engine, false);
		rig_is(r, 0)->running = true;
		rig_run(r, 10 * MS);
		want(1, GP_HOLD, 0);
	}
	assert_null(gp_engine_ejection(r->engine));
	assert_in_range(rig_task(r, 0).waited_max_ns, 9 * S, 9 * S + 20 * MS);
}

/* The daemon was stopped, and everything was released meanwhile. */
VICTIMS_TEST(time_in_which_nobody_looked_is_not_held_against_the_policy)
{
	rig_is(r, 0)->running = false;
	rig_run(r, 5 * S);
	r->now_ns += 60 * S;
	rig_run(r, 4 * S);
	assert_null(gp_engine_ejection(r->engine));
	rig_run(r, 2 * S);
	assert_non_null(gp_engine_ejection(r->engine));
	assert_int_equal(gp_engine_ejection(r->engine)->reason, GP_EJECT_STARVED);
}

VICTIMS_TEST(what_was_waited_under_another_policy_is_not_held_against_this_one)
{
	rig_is(r, 0)->running = false;
	rig_run(r, 9 * S);
	rig_set_policy(r, &scripted);
	rig_run(r, 9 * S);
	assert_null(gp_engine_ejection(r->engine));
	rig_run(r, 2 * S);
	assert_ptr_equal(gp_engine_ejection(r->engine)->policy, &scripted);
}

VICTIMS_TEST(a_release_that_fails_is_not_the_policys_fault)
{
	rig_is(r, 0)->running = false;
	rig_run(r, 100 * MS);
	r->gpu.fault[FAKE_RELEASE].status = -EIO;
	want(1, GP_RUN, 0);
	rig_run(r, 20 * S);
	assert_true(rig_is(r, 0)->held);
	assert_null(gp_engine_ejection(r->engine));
	r->gpu.fault[FAKE_RELEASE].status = 0;
	rig_run(r, RECOVERY_NS);
	assert_false(rig_is(r, 0)->held);
	assert_null(gp_engine_ejection(r->engine));
}

VICTIMS_TEST(a_release_that_fails_is_not_the_fault_of_a_policy_that_gives_turns)
{
	rig_is(r, 0)->running = false;
	r->gpu.fault[FAKE_RELEASE].status = -EIO;
	for (int turn = 0; turn < 40; turn++) { /* it wants the best for task 1, half the time */
		want(1, turn % 2 ? GP_HOLD : GP_RUN, 0);
		gp_engine_trigger(r->engine, false);
		rig_run(r, 500 * MS);
	}
	assert_null(gp_engine_ejection(r->engine));
}

VICTIMS_TEST(a_slice_that_cannot_be_set_is_not_the_policys_fault)
{
	rig_is(r, 0)->active = false;
	rig_is(r, 1)->running = false;
	rig_is(r, 1)->known |= GP_KNOWN_RUN; /* which stands still */
	rig_is(r, 1)->run_source = GP_RUN_MEASURED;
	r->gpu.fault[FAKE_SLICE].status = -EIO;
	want(2, GP_RUN, 50000);
	rig_run(r, 20 * S);
	assert_null(gp_engine_ejection(r->engine));
}

TEST(the_record_of_many_tasks_is_cut_and_says_so)
{
	for (unsigned n = GP_EJECT_VIEW_MAX - 1; n <= GP_EJECT_VIEW_MAX + 36; n++) {
		struct rig *r = rig_new();
		const struct gp_ejection *x;

		(void)state;
		rig_add_many(r, n);
		script.result = -EINVAL;
		rig_start(r, &scripted);
		x = gp_engine_ejection(r->engine);
		assert_non_null(x);
		assert_int_equal(x->view.n, n);
		assert_int_equal(x->ntasks, n < GP_EJECT_VIEW_MAX ? n : GP_EJECT_VIEW_MAX);
		assert_ptr_equal(x->view.task, x->task_view);
		for (unsigned i = 0; i < x->ntasks; i++)
			assert_int_equal(x->task_view[i].id, i + 1);
		rig_free(r);
	}
}

VICTIMS_TEST(after_an_ejection_another_policy_can_be_tried_and_the_record_stays)
{
	uint64_t ejected_ns;

	script.result = -EIO;
	rig_step(r);
	ejected_ns = r->now_ns;
	script.result = 0;
	assert_given_back(r);
	want_well();
	rig_set_policy(r, &scripted);
	rig_run(r, 20 * MS);
	assert_true(rig_is(r, 0)->held);
	assert_int_equal(gp_engine_ejection(r->engine)->now_ns, ejected_ns);
	assert_ptr_equal(gp_engine_ejection(r->engine)->policy, &watching);
	want(2, (enum gp_want)9, 0);
	gp_engine_trigger(r->engine, false);
	rig_run(r, 20 * MS);
	assert_ptr_equal(gp_engine_ejection(r->engine)->policy, &scripted);
	assert_int_equal(gp_engine_ejection(r->engine)->reason, GP_EJECT_BOUND);
	assert_int_equal(rig_stats(r)->ejections, 2);
	assert_given_back(r);
}

/* A clock on which everything takes a second. */
static uint64_t crawl(const struct gp_clock *clock)
{
	static uint64_t now_ns;

	(void)clock;
	return now_ns += 1 * S;
}

RIG_TEST(the_baseline_is_never_ejected)
{
	const struct gp_clock slow = {.now_ns = crawl};

	rig_add(r, GP_BEST_EFFORT);
	rig_is(r, 0)->running = false;
	r->gpu.base.info.caps &= ~(uint32_t)GP_CAP_SLICE; /* so that it is seen to wait */
	r->config.decide_clock = &slow;
	rig_make(r);
	rig_run(r, 20 * S);
	assert_int_equal(rig_stats(r)->ejections, 0);
	assert_null(gp_engine_ejection(r->engine));
	rig_set_policy(r, &watching);
	rig_run(r, 20 * S);
	assert_int_equal(rig_stats(r)->ejections, 1); /* and its record is not written over */
	assert_ptr_equal(gp_engine_ejection(r->engine)->policy, &watching);
}

VICTIMS_TEST(what_an_ejected_policy_held_is_released_even_if_that_fails_at_first)
{
	r->gpu.fault[FAKE_RELEASE].whole = -EIO;
	r->gpu.fault[FAKE_SLICE].whole = -EIO;
	script.result = -EIO;
	rig_run(r, 3 * S);
	assert_true(rig_is(r, 0)->held);
	memset(r->gpu.fault, 0, sizeof r->gpu.fault);
	rig_run(r, RECOVERY_NS);
	assert_given_back(r);
}

TEST(every_reason_has_a_name)
{
	assert_string_equal(gp_eject_reason_name(GP_EJECT_NONE), "none");
	assert_string_equal(gp_eject_reason_name(GP_EJECT_FAILED), "failed");
	assert_string_equal(gp_eject_reason_name(GP_EJECT_SLOW), "slow");
	assert_string_equal(gp_eject_reason_name(GP_EJECT_BOUND), "bound");
	assert_string_equal(gp_eject_reason_name(GP_EJECT_STARVED), "starved");
	assert_non_null(gp_eject_reason_name((enum gp_eject_reason)77));
}
