/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The promises of `qos`, end to end on the simulated H200: possible targets are kept with less loss
 * of best-effort work than under `priority`; shares and ceilings hold; tasks without such
 * attributes see no difference; and the mode does not change all the time. Refusals are in
 * test_qos_refusal.c, the rules of all policies in test_policy_properties.c.
 */
#include "support/test.h"

#include "base/log.h"
#include "sim/scenario/scenario.h"

#define US GP_NS_PER_US
#define MS GP_NS_PER_MS
#define S  GP_NS_PER_S

static struct gp_scenario scenario;

static void begin(uint64_t duration_ns)
{
	gp_scenario_init(&scenario);
	scenario.duration_ns = duration_ns;
}

static void add(struct gp_sim_task task, struct gp_task_attr attr)
{
	snprintf(task.name, sizeof task.name, "task");
	task.stop_ns = task.stop_ns ? task.stop_ns : GP_NEVER;
	attr.weight = 100;
	assert_int_equal(gp_scenario_add(&scenario, &task, &attr), 0);
}

/* A service with requests of 100 us that come at random. */
static void add_service(unsigned rate, bool request_marks, uint64_t target_ns, uint64_t budget_ns)
{
	add((struct gp_sim_task){.load = GP_LOAD_POISSON,
				 .every_ns = S / rate,
				 .kernel_ns = 100 * US,
				 .request_marks = request_marks},
	    (struct gp_task_attr){.class = GP_LATENCY_CRITICAL,
				  .deadline_ns = target_ns,
				  .budget_ns = budget_ns});
}

static void add_training(uint32_t share_permille, uint32_t ceiling_permille)
{
	add((struct gp_sim_task){.load = GP_LOAD_CLOSED, .kernel_ns = 13600 * US},
	    (struct gp_task_attr){.class = GP_BEST_EFFORT,
				  .share_permille = share_permille,
				  .ceiling_permille = ceiling_permille});
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

/* Runs the scenario, which stays; the caller frees the run. */
static struct gp_run run_under(const char *policy, struct watched *watched)
{
	struct gp_run_options options = {.watch = watched ? watch_holds : NULL,
					 .watch_arg = watched};
	struct gp_policy_choice choice;
	struct gp_error err = {0};
	struct gp_run run;

	if (gp_policy_parse(policy, &choice, &err) ||
	    gp_scenario_run(&scenario, &choice, &options, &run, &err)) {
		fail_msg("%s", err.text);
		abort(); /* fail_msg does not return, but some analysers do not know that */
	}
	assert_int_equal(run.ejections, 0);
	return run;
}

static double kept(const struct gp_run *run, uint32_t task)
{
	return 100.0 * (double)run->task[task].work_ns / (double)run->task[task].alone_ns;
}

/* The scenario's first task is the service, its last the training. */
static void compare(struct gp_run *priority, struct gp_run *qos, struct watched *watched)
{
	*priority = run_under("priority", NULL);
	*watched = (struct watched){0};
	*qos = run_under("qos", watched);
	print_message("priority: p99 %7.3f ms, keeps %4.1f %%; qos: %7.3f ms, %4.1f %%, %u holds\n",
		      (double)priority->task[0].p99_ns / 1e6, kept(priority, priority->ntasks - 1),
		      (double)qos->task[0].p99_ns / 1e6, kept(qos, qos->ntasks - 1),
		      watched->holds);
}

static void finish(struct gp_run *priority, struct gp_run *qos)
{
	gp_run_free(priority);
	gp_run_free(qos);
	gp_scenario_free(&scenario);
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
	struct gp_run priority, qos;
	struct watched watched;

	for (size_t i = 0; i < sizeof c / sizeof *c; i++)
		for (uint64_t seed = 1; seed <= 2; seed++) {
			begin(20 * S);
			scenario.seed = seed;
			add_service(c[i].rate, c[i].request_marks, c[i].target_ns, 100 * US);
			add_training(0, 0);
			compare(&priority, &qos, &watched);
			assert_true(qos.task[0].p99_ns <= c[i].target_ns);
			assert_true(kept(&qos, 1) > kept(&priority, 1) + c[i].gain);
			assert_int_equal(watched.changes, 1);
			finish(&priority, &qos);
		}
}

/* The claim of scenarios/saturation.yaml, with other random numbers. */
TEST(where_priority_keeps_44_percent_it_keeps_more_than_55_in_the_same_time)
{
	struct gp_run priority, qos;
	struct watched watched;

	for (uint64_t seed = 1; seed <= 5; seed++) {
		begin(30 * S);
		scenario.seed = seed;
		add_service(1282, true, 2 * MS, 100 * US);
		add_training(0, 0);
		compare(&priority, &qos, &watched);
		assert_in_range((uint64_t)(10 * kept(&priority, 1)), 435, 450);
		assert_true(kept(&qos, 1) > 58);
		assert_true(qos.task[0].p99_ns <= priority.task[0].p99_ns * 105 / 100);
		finish(&priority, &qos);
	}
}

TEST(a_service_that_drowns_with_tiny_slices_does_not_in_windows)
{
	struct gp_run priority, qos;
	struct watched watched;

	for (int request_marks = 0; request_marks < 2; request_marks++) {
		begin(20 * S);
		add_service(4000, request_marks, 2 * MS,
			    0); /* and the budget of requests is not declared */
		add_training(0, 0);
		compare(&priority, &qos, &watched);
		assert_true(kept(&priority, 0) < 65 && kept(&priority, 1) < 1);
		assert_true(kept(&qos, 0) > 99.5 && kept(&qos, 1) > 15);
		assert_true(qos.task[0].p50_ns < 2 * MS);
		finish(&priority, &qos);
	}
}

TEST(best_effort_work_keeps_its_floor_beside_a_target_out_of_reach)
{
	struct gp_run run;

	begin(20 * S);
	add_service(9000, false, 2 * MS, 100 * US); /* more than the device can do */
	add_training(0, 0);
	run = run_under("qos:floor=100", NULL);
	assert_in_range((uint64_t)kept(&run, 1), 6, 14);
	gp_run_free(&run);
	gp_scenario_free(&scenario);
}

TEST(where_requests_are_rare_it_is_priority)
{
	struct gp_run priority, qos;
	struct watched watched;

	begin(20 * S);
	add_service(300, true, 2 * MS, 100 * US);
	add_training(0, 0);
	compare(&priority, &qos, &watched);
	assert_int_equal(watched.holds, 0);
	assert_int_equal(qos.task[1].work_ns, priority.task[1].work_ns);
	finish(&priority, &qos);
}

TEST(where_nothing_is_asked_for_it_is_priority)
{
	struct gp_run priority, qos;
	struct watched watched;

	for (int slices = 0; slices < 2; slices++)
		for (unsigned activity = GP_ACTIVITY_NONE; activity <= GP_ACTIVITY_EVENTS;
		     activity++) {
			begin(10 * S);
			scenario.device.slices = slices;
			scenario.device.activity = (enum gp_sim_activity)activity;
			add_service(1500, false, 0, 0);
			add_training(0, 0);
			add_training(0, 0);
			compare(&priority, &qos, &watched);
			for (uint32_t i = 0; i < 3; i++)
				assert_int_equal(qos.task[i].work_ns, priority.task[i].work_ns);
			assert_int_equal(qos.task[0].p99_ns, priority.task[0].p99_ns);
			finish(&priority, &qos);
		}
}

/* It would wait as long as the others, but it has no target that allows that. */
TEST(one_service_without_a_target_keeps_all_from_waiting)
{
	struct gp_run priority, qos;
	struct watched watched;

	begin(10 * S);
	add_service(1000, true, 3 * MS, 100 * US);
	add_service(300, true, 0, 0);
	add_training(0, 0);
	compare(&priority, &qos, &watched);
	assert_int_equal(watched.holds, 0);
	assert_int_equal(qos.task[1].p99_ns, priority.task[1].p99_ns);
	finish(&priority, &qos);
}

TEST(several_best_effort_tasks_share_the_windows)
{
	struct gp_run priority, qos;
	struct watched watched;

	begin(20 * S);
	add_service(1500, true, 3 * MS, 100 * US);
	for (int i = 0; i < 3; i++)
		add_training(0, 0);
	compare(&priority, &qos, &watched);
	assert_true(qos.task[0].p99_ns <= 3 * MS);
	for (uint32_t i = 1; i <= 3; i++)
		assert_true(kept(&qos, i) > kept(&priority, i) + 4);
	finish(&priority, &qos);
}

TEST(beside_an_unmanaged_task_no_task_is_held_for_windows)
{
	struct gp_run run;
	struct watched watched = {0};

	begin(10 * S);
	add_service(1500, true, 3 * MS, 100 * US);
	add((struct gp_sim_task){.load = GP_LOAD_PERIODIC,
				 .every_ns = 20 * MS,
				 .kernel_ns = 1 * MS},
	    (struct gp_task_attr){.class = GP_UNMANAGED});
	add_training(950, 0); /* which windows would give it */
	run = run_under("qos", &watched);
	assert_int_equal(watched.holds, 0);
	gp_run_free(&run);
	gp_scenario_free(&scenario);
}

/* The time that slices seem to lose is idle time: the policy tries windows, notices that, and tries
 * again less and less often. */
TEST(windows_that_help_no_task_are_given_up)
{
	struct gp_run run;
	struct watched watched = {0};

	begin(60 * S);
	add_service(300, false, 5 * MS, 0);
	add((struct gp_sim_task){.load = GP_LOAD_PERIODIC,
				 .every_ns = 100 * MS,
				 .kernel_ns = 5 * MS},
	    (struct gp_task_attr){.class = GP_BEST_EFFORT});
	run = run_under("qos", &watched);
	assert_in_range(watched.changes, 1, 4);
	assert_true(run.task[0].p99_ns < 2 * MS);
	gp_run_free(&run);
	gp_scenario_free(&scenario);
}

TEST(without_slices_a_preemption_waits_as_long_as_the_target_allows)
{
	struct gp_run priority, qos;
	struct watched watched;

	for (int events = 0; events < 2; events++) {
		begin(20 * S);
		scenario.device.slices = false;
		scenario.device.activity = events ? GP_ACTIVITY_EVENTS : GP_ACTIVITY_EXACT;
		add((struct gp_sim_task){.load = GP_LOAD_POISSON,
					 .every_ns = 5 * MS,
					 .kernel_ns = 500 * US},
		    (struct gp_task_attr){.class = GP_LATENCY_CRITICAL,
					  .deadline_ns = 10 * MS,
					  .budget_ns = 500 * US});
		add_training(0, 0);
		add_training(0, 0);
		compare(&priority, &qos, &watched);
		assert_true(qos.task[0].p99_ns <= 10 * MS);
		assert_true(kept(&qos, 1) + kept(&qos, 2) >
			    kept(&priority, 1) + kept(&priority, 2) + 3);
		assert_true(qos.device.switches < priority.device.switches);
		finish(&priority, &qos);
	}
}

TEST(a_guaranteed_share_is_kept_beside_a_service_that_never_pauses)
{
	for (int slices = 0; slices < 2; slices++) {
		struct gp_run run;

		begin(20 * S);
		scenario.device.slices = slices;
		add((struct gp_sim_task){.load = GP_LOAD_CLOSED, .kernel_ns = 1 * MS},
		    (struct gp_task_attr){.class = GP_LATENCY_CRITICAL});
		add_training(300, 0);
		run = run_under("qos", NULL);
		assert_in_range((uint64_t)(10 * kept(&run, 1)), 280, 340);
		gp_run_free(&run);
		gp_scenario_free(&scenario);
	}
}

TEST(a_guaranteed_share_is_kept_beside_other_best_effort_tasks)
{
	struct gp_run run;

	begin(20 * S);
	add_service(100, false, 0, 0);
	add_training(600, 0);
	add_training(0, 0);
	add_training(0, 0);
	run = run_under("qos", NULL);
	assert_in_range((uint64_t)(10 * kept(&run, 1)), 580, 660);
	assert_true(kept(&run, 2) > 10 && kept(&run, 3) > 10);
	assert_true(run.task[0].p99_ns < 700 * US);
	gp_run_free(&run);
	gp_scenario_free(&scenario);
}

/* Samples do not show that it is idle most of the time; the use of its turns does. */
TEST(a_share_that_is_not_used_costs_the_others_little)
{
	struct gp_run priority, qos;
	struct watched watched;

	begin(20 * S);
	add_service(100, false, 0, 0);
	add((struct gp_sim_task){.load = GP_LOAD_PERIODIC,
				 .every_ns = 100 * MS,
				 .kernel_ns = 5 * MS},
	    (struct gp_task_attr){.class = GP_BEST_EFFORT, .share_permille = 300});
	add_training(0, 0);
	compare(&priority, &qos, &watched);
	assert_true(kept(&qos, 2) > kept(&priority, 2) - 6);
	finish(&priority, &qos);
}

/* 60 and 60 %: both are refused, and the service is answered in time all the same. */
TEST(shares_that_are_refused_cost_no_target)
{
	for (int slices = 0; slices < 2; slices++) {
		struct gp_run run;

		begin(10 * S);
		scenario.device.slices = slices;
		scenario.device.activity = GP_ACTIVITY_EVENTS;
		add_service(250, false, 20 * MS, 2 * MS);
		scenario.task[0].kernel_ns = 2 * MS;
		add_training(600, 0);
		add_training(600, 0);
		run = run_under("qos", NULL);
		assert_true(run.task[1].refused && run.task[2].refused);
		assert_in_range(run.task[0].p99_ns, 1 * MS, 21 * MS);
		gp_run_free(&run);
		gp_scenario_free(&scenario);
	}
}

/* The first always lacks time; the second comes before the third by priority. */
TEST(a_share_out_of_reach_starves_no_task)
{
	struct gp_run run;

	begin(20 * S);
	add_training(850, 0);
	add((struct gp_sim_task){.load = GP_LOAD_CLOSED, .kernel_ns = 5 * MS},
	    (struct gp_task_attr){.class = GP_BEST_EFFORT, .priority = 5});
	add((struct gp_sim_task){.load = GP_LOAD_CLOSED, .kernel_ns = 5 * MS},
	    (struct gp_task_attr){.class = GP_BEST_EFFORT});
	run = run_under("qos", NULL);
	for (uint32_t i = 0; i < 3; i++)
		assert_true(run.task[i].finished > 0);
	gp_run_free(&run);
	gp_scenario_free(&scenario);
}

TEST(a_ceiling_is_not_passed_and_nearly_reached)
{
	for (int slices = 0; slices < 2; slices++)
		for (int exact = 0; exact < 2; exact++)
			for (uint32_t percent = 5; percent <= 80; percent *= 2) {
				struct gp_run run;

				begin(20 * S);
				scenario.device.slices = slices;
				scenario.device.activity =
					exact ? GP_ACTIVITY_EXACT : GP_ACTIVITY_SAMPLED;
				add_training(0, percent * 10);
				run = run_under("qos", NULL);
				assert_true(kept(&run, 0) < percent + 1.5);
				assert_true(kept(&run, 0) > percent - 3);
				gp_run_free(&run);
				gp_scenario_free(&scenario);
			}
}

TEST_BEGIN
{
	gp_log_set_level(GP_LOG_ERROR);
}
