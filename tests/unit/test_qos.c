/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The promises of `qos`, end to end on the simulated H200: possible targets are kept with less loss
 * of best-effort work than under `priority`; shares and ceilings hold; tasks without such
 * attributes see no difference; and the mode does not change all the time. Refusals are in
 * test_qos_refusal.c, the rules of all policies in test_policy_properties.c.
 */
#include "scenario_world.h"

/* A service with requests of 100 us that come at random. */
static void add_service(unsigned rate, bool request_marks, uint64_t target_ns, uint64_t budget_ns)
{
	add(POISSON(S / rate, 100 * US, .request_marks = request_marks),
	    ATTR(GP_LATENCY_CRITICAL, .deadline_ns = target_ns, .budget_ns = budget_ns));
}

static void add_training(uint32_t share_permille, uint32_t ceiling_permille)
{
	add(LOOP(13600 * US), ATTR(GP_BEST_EFFORT, .share_permille = share_permille,
				   .ceiling_permille = ceiling_permille));
}

/* What was observed during a run. */
struct watched {
	unsigned holds;
	unsigned changes; /* from windows to slices, or back */
	uint64_t held_ns; /* time of the last hold */
};

/* In windows a task is held every few milliseconds; with slices it is not held. */
static void watch_holds(void *arg, const struct gp_sim_event *event)
{
	struct watched *w = arg;

	if (event->what != GP_SIM_HELD)
		return;
	w->changes += !w->holds || event->now_ns - w->held_ns > 100 * MS;
	w->held_ns = event->now_ns;
	w->holds++;
}

/* The results of compare, which frees the ones before. */
static struct gp_run priority, qos;
static struct watched watched;

/* Runs under both policies. The scenario's first task is the service, its last the training. */
static void compare(void)
{
	const struct gp_run_options options = {.watch = watch_holds, .watch_arg = &watched};

	gp_run_free(&priority);
	gp_run_free(&qos);
	watched = (struct watched){0};
	priority = run_scenario(&scenario, "priority", NULL);
	qos = run_scenario(&scenario, "qos", &options);
	gp_scenario_free(&scenario);
	print_message("priority: p99 %7.3f ms, keeps %4.1f %%; qos: %7.3f ms, %4.1f %%, %u holds\n",
		      (double)priority.task[0].p99_ns / 1e6, kept(&priority, priority.ntasks - 1),
		      (double)qos.task[0].p99_ns / 1e6, kept(&qos, qos.ntasks - 1), watched.holds);
}

TEST(a_target_is_kept_with_less_loss_than_under_priority)
{
	static const struct {
		unsigned rate;
		uint64_t target_ns;
		bool request_marks;
		double gain; /* minimum, in points */
	} c[] = {
		{1000, 2 * MS, true, 8},   {1282, 2 * MS, true, 15},  {1500, 3 * MS, true, 25},
		{2000, 2 * MS, true, 35},  {1282, 2 * MS, false, 5},  {1500, 2 * MS, false, 10},
		{1500, 3 * MS, false, 15}, {1282, 5 * MS, false, 15}, {2000, 3 * MS, false, 30},
	};

	for (size_t i = 0; i < sizeof c / sizeof *c; i++)
		for (uint64_t seed = 1; seed <= 2; seed++) {
			begin(20 * S);
			scenario.seed = seed;
			add_service(c[i].rate, c[i].request_marks, c[i].target_ns, 100 * US);
			add_training(0, 0);
			compare();
			assert_true(qos.task[0].p99_ns <= c[i].target_ns);
			assert_true(kept(&qos, 1) > kept(&priority, 1) + c[i].gain);
			assert_int_equal(watched.changes, 1);
		}
}

/* The claim of scenarios/saturation.yaml, with other random numbers. */
TEST(where_priority_keeps_44_percent_it_keeps_more_than_55_in_the_same_time)
{
	for (uint64_t seed = 1; seed <= 5; seed++) {
		begin(30 * S);
		scenario.seed = seed;
		add_service(1282, true, 2 * MS, 100 * US);
		add_training(0, 0);
		compare();
		assert_in_range((uint64_t)(10 * kept(&priority, 1)), 435, 450);
		assert_true(kept(&qos, 1) > 58);
		assert_true(qos.task[0].p99_ns <= priority.task[0].p99_ns * 105 / 100);
	}
}

TEST(a_service_that_drowns_with_tiny_slices_does_not_in_windows)
{
	for (int request_marks = 0; request_marks < 2; request_marks++) {
		begin(20 * S);
		add_service(4000, request_marks, 2 * MS,
			    0); /* and the budget of requests is not declared */
		add_training(0, 0);
		compare();
		assert_true(kept(&priority, 0) < 65 && kept(&priority, 1) < 1);
		assert_true(kept(&qos, 0) > 99.5 && kept(&qos, 1) > 15);
		assert_true(qos.task[0].p50_ns < 2 * MS);
	}
}

TEST(best_effort_work_keeps_its_floor_beside_a_target_out_of_reach)
{
	begin(20 * S);
	add_service(9000, false, 2 * MS, 100 * US); /* more than the device can do */
	add_training(0, 0);
	finish("qos:floor=100");
	assert_in_range((uint64_t)kept(&run, 1), 6, 14);
}

TEST(where_requests_are_rare_it_is_priority)
{
	begin(20 * S);
	add_service(300, true, 2 * MS, 100 * US);
	add_training(0, 0);
	compare();
	assert_int_equal(watched.holds, 0);
	assert_int_equal(qos.task[1].work_ns, priority.task[1].work_ns);
}

TEST(where_nothing_is_asked_for_it_is_priority)
{
	for (int slices = 0; slices < 2; slices++)
		for (unsigned activity = GP_ACTIVITY_NONE; activity <= GP_ACTIVITY_EVENTS;
		     activity++) {
			begin(10 * S);
			scenario.device.slices = slices;
			scenario.device.activity = (enum gp_sim_activity)activity;
			add_service(1500, false, 0, 0);
			add_training(0, 0);
			add_training(0, 0);
			compare();
			for (uint32_t i = 0; i < 3; i++)
				assert_int_equal(qos.task[i].work_ns, priority.task[i].work_ns);
			assert_int_equal(qos.task[0].p99_ns, priority.task[0].p99_ns);
		}
}

/* It would wait as long as the others, but it has no target that allows that. */
TEST(one_service_without_a_target_keeps_all_from_waiting)
{
	begin(10 * S);
	add_service(1000, true, 3 * MS, 100 * US);
	add_service(300, true, 0, 0);
	add_training(0, 0);
	compare();
	assert_int_equal(watched.holds, 0);
	assert_int_equal(qos.task[1].p99_ns, priority.task[1].p99_ns);
}

TEST(several_best_effort_tasks_share_the_windows)
{
	begin(20 * S);
	add_service(1500, true, 3 * MS, 100 * US);
	for (int i = 0; i < 3; i++)
		add_training(0, 0);
	compare();
	assert_true(qos.task[0].p99_ns <= 3 * MS);
	for (uint32_t i = 1; i <= 3; i++)
		assert_true(kept(&qos, i) > kept(&priority, i) + 4);
}

TEST(beside_an_unmanaged_task_no_task_is_held_for_windows)
{
	begin(10 * S);
	add_service(1500, true, 3 * MS, 100 * US);
	add(PERIODIC(20 * MS, 1 * MS), ATTR(GP_UNMANAGED));
	add_training(950, 0); /* which windows would give it */
	compare();
	assert_int_equal(watched.holds, 0);
}

/* The time that slices seem to lose is idle time: the policy tries windows, notices that, and tries
 * again less and less often. */
TEST(windows_that_help_no_task_are_given_up)
{
	begin(60 * S);
	add_service(300, false, 5 * MS, 0);
	add(PERIODIC(100 * MS, 5 * MS), ATTR(GP_BEST_EFFORT));
	compare();
	assert_in_range(watched.changes, 1, 4);
	assert_true(qos.task[0].p99_ns < 2 * MS);
}

TEST(without_slices_a_preemption_waits_as_long_as_the_target_allows)
{
	for (int events = 0; events < 2; events++) {
		begin(20 * S);
		scenario.device.slices = false;
		scenario.device.activity = events ? GP_ACTIVITY_EVENTS : GP_ACTIVITY_EXACT;
		add(POISSON(5 * MS, 500 * US),
		    ATTR(GP_LATENCY_CRITICAL, .deadline_ns = 10 * MS, .budget_ns = 500 * US));
		add_training(0, 0);
		add_training(0, 0);
		compare();
		assert_true(qos.task[0].p99_ns <= 10 * MS);
		assert_true(kept(&qos, 1) + kept(&qos, 2) >
			    kept(&priority, 1) + kept(&priority, 2) + 3);
		assert_true(qos.device.switches < priority.device.switches);
	}
}

TEST(a_guaranteed_share_is_kept_beside_a_service_that_never_pauses)
{
	for (int slices = 0; slices < 2; slices++) {
		begin(20 * S);
		scenario.device.slices = slices;
		add(LOOP(1 * MS), ATTR(GP_LATENCY_CRITICAL));
		add_training(300, 0);
		finish("qos");
		assert_in_range((uint64_t)(10 * kept(&run, 1)), 280, 340);
	}
}

TEST(a_guaranteed_share_is_kept_beside_other_best_effort_tasks)
{
	begin(20 * S);
	add_service(100, false, 0, 0);
	add_training(600, 0);
	add_training(0, 0);
	add_training(0, 0);
	finish("qos");
	assert_in_range((uint64_t)(10 * kept(&run, 1)), 580, 660);
	assert_true(kept(&run, 2) > 10 && kept(&run, 3) > 10);
	assert_true(run.task[0].p99_ns < 700 * US);
}

/* Samples do not show that it is idle most of the time; the use of its turns does. */
TEST(a_share_that_is_not_used_costs_the_others_little)
{
	begin(20 * S);
	add_service(100, false, 0, 0);
	add(PERIODIC(100 * MS, 5 * MS), ATTR(GP_BEST_EFFORT, .share_permille = 300));
	add_training(0, 0);
	compare();
	assert_true(kept(&qos, 2) > kept(&priority, 2) - 6);
}

/* 60 and 60 %: both are refused, and the service is answered in time all the same. */
TEST(shares_that_are_refused_cost_no_target)
{
	for (int slices = 0; slices < 2; slices++) {
		begin(10 * S);
		scenario.device.slices = slices;
		scenario.device.activity = GP_ACTIVITY_EVENTS;
		add_service(250, false, 20 * MS, 2 * MS);
		scenario.task[0].kernel_ns = 2 * MS;
		add_training(600, 0);
		add_training(600, 0);
		finish("qos");
		assert_true(run.task[1].refused && run.task[2].refused);
		assert_in_range(run.task[0].p99_ns, 1 * MS, 21 * MS);
	}
}

/* The first always lacks time; the second comes before the third by priority. */
TEST(a_share_out_of_reach_starves_no_task)
{
	begin(20 * S);
	add_training(850, 0);
	add(LOOP(5 * MS), ATTR(GP_BEST_EFFORT, .priority = 5));
	add(LOOP(5 * MS), ATTR(GP_BEST_EFFORT));
	finish("qos");
	for (uint32_t i = 0; i < 3; i++)
		assert_true(run.task[i].finished > 0);
}

TEST(a_ceiling_is_not_passed_and_nearly_reached)
{
	for (int slices = 0; slices < 2; slices++)
		for (int exact = 0; exact < 2; exact++)
			for (uint32_t percent = 5; percent <= 80; percent *= 2) {
				begin(20 * S);
				scenario.device.slices = slices;
				scenario.device.activity =
					exact ? GP_ACTIVITY_EXACT : GP_ACTIVITY_SAMPLED;
				add_training(0, percent * 10);
				finish("qos");
				assert_true(kept(&run, 0) < percent + 1.5);
				assert_true(kept(&run, 0) > percent - 3);
			}
}
