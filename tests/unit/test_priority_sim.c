/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `priority` end to end on the simulated H200, with the information of that device (samples of
 * utilisation, nothing about held tasks): latency beside many best-effort tasks, idle ones, tasks
 * that come and leave, a device that is never idle, and unmanaged tasks.
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

static void add(const char *name, uint8_t class, struct gp_sim_task task)
{
	struct gp_task_attr attr = GP_TASK_ATTR_DEFAULT;

	snprintf(task.name, sizeof task.name, "%s", name);
	task.stop_ns = task.stop_ns ? task.stop_ns : GP_NEVER;
	attr.class = class;
	assert_int_equal(gp_scenario_add(&scenario, &task, &attr), 0);
}

static void add_inference(uint64_t every_ns, uint64_t kernel_ns)
{
	add("inference", GP_LATENCY_CRITICAL,
	    (struct gp_sim_task){
		    .load = GP_LOAD_PERIODIC, .every_ns = every_ns, .kernel_ns = kernel_ns});
}

static void add_training(unsigned count, uint64_t start_ns, uint64_t stop_ns)
{
	for (unsigned i = 0; i < count; i++)
		add("training", GP_BEST_EFFORT,
		    (struct gp_sim_task){.load = GP_LOAD_CLOSED,
					 .kernel_ns = 13600 * US,
					 .start_ns = start_ns,
					 .stop_ns = stop_ns});
}

/* The caller frees the run; the scenario is freed here. */
static struct gp_run finish(const char *policy)
{
	struct gp_policy_choice choice;
	struct gp_error err = {0};
	struct gp_run run;

	if (gp_policy_parse(policy, &choice, &err) ||
	    gp_scenario_run(&scenario, &choice, NULL, &run, &err)) {
		fail_msg("%s", err.text);
		abort(); /* fail_msg does not return, but some analysers do not know that */
	}
	gp_scenario_free(&scenario);
	assert_int_equal(run.ejections, 0);
	return run;
}

static double kept(const struct gp_run *run, uint32_t task)
{
	return 100.0 * (double)run->task[task].work_ns / (double)run->task[task].alone_ns;
}

TEST(a_request_waits_no_longer_beside_many_best_effort_tasks_than_beside_one)
{
	for (unsigned n = 1; n <= 8; n *= 2) {
		struct gp_run run;
		double sum = 0;

		begin(20 * S);
		add_inference(3 * MS, 100 * US);
		add_training(n, 0, 0);
		run = finish("priority");
		for (unsigned i = 1; i <= n; i++) {
			sum += kept(&run, i);
			assert_true(kept(&run, i) > 70.0 / n); /* each has its share */
		}
		assert_in_range(run.task[0].p50_ns, 280 * US, 320 * US);
		assert_in_range(run.task[0].p99_ns, 300 * US, 350 * US);
		assert_true(sum > 83);
		gp_run_free(&run);
	}
}

TEST(idle_tasks_cost_little_at_the_start_and_nothing_later)
{
	struct gp_run run;

	begin(20 * S);
	add_inference(3 * MS, 100 * US);
	add_training(2, 0, 0);
	for (int i = 0; i < 4; i++)
		add("idle", GP_BEST_EFFORT, (struct gp_sim_task){.load = GP_LOAD_IDLE});
	run = finish("priority");
	assert_in_range(run.task[0].p99_ns, 300 * US, 350 * US);
	assert_true(kept(&run, 1) + kept(&run, 2) > 78); /* at most 0.25 s for each of them */
	gp_run_free(&run);
}

TEST(tasks_may_come_and_go)
{
	struct gp_run run;

	begin(20 * S);
	add_inference(3 * MS, 100 * US);
	add_training(1, 0, 15 * S);
	for (uint64_t at = 1; at < 12; at += 2)
		add_training(1, at * S, (at + 3) * S);
	run = finish("priority");
	/* A new process shares with hardware slices until it is found, up to 0.1 s later. */
	assert_in_range(run.task[0].p50_ns, 280 * US, 330 * US);
	assert_true(run.task[0].left <= 1);
	for (uint32_t i = 1; i < run.ntasks; i++)
		assert_true(kept(&run, i) > 25);
	gp_run_free(&run);
}

TEST(no_task_starves_beside_a_service_that_never_pauses)
{
	for (unsigned n = 1; n <= 8; n *= 2) {
		struct gp_run run;

		begin(30 * S);
		add_inference(1 * MS, 1 * MS);
		add_training(n, 0, 0);
		run = finish("priority");
		assert_true(kept(&run, 0) > 70);
		for (unsigned i = 1; i <= n; i++)
			assert_true(run.task[i].finished > 0);
		gp_run_free(&run);
	}
}

static void add_busy_services(unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		add("service", GP_LATENCY_CRITICAL,
		    (struct gp_sim_task){.load = GP_LOAD_CLOSED, .kernel_ns = 1 * MS});
}

TEST(no_task_starves_beside_many_of_them)
{
	for (int exact = 0; exact < 2; exact++) {
		struct gp_run run;

		begin(30 * S);
		scenario.device.activity = exact ? GP_ACTIVITY_EXACT : GP_ACTIVITY_SAMPLED;
		add_busy_services(8);
		add_training(3, 0, 0);
		run = finish("priority");
		for (unsigned i = 8; i < 11; i++)
			assert_true(run.task[i].work_ns > 10 * MS);
		gp_run_free(&run);
	}
}

static void add_light_services(unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		add("service", GP_LATENCY_CRITICAL,
		    (struct gp_sim_task){.load = GP_LOAD_POISSON,
					 .every_ns = count * (10 * MS),
					 .kernel_ns = 300 * US});
}

/* An entity that loses its turn to a starving one must not be the next again. */
TEST(many_that_take_turns_get_the_same)
{
	uint64_t least_ns = UINT64_MAX, most_ns = 0;
	struct gp_run run;

	begin(40 * S);
	add_light_services(16);
	add_training(16, 0, 0);
	run = finish("priority");
	for (unsigned i = 16; i < 32; i++) {
		least_ns = run.task[i].work_ns < least_ns ? run.task[i].work_ns : least_ns;
		most_ns = run.task[i].work_ns > most_ns ? run.task[i].work_ns : most_ns;
	}
	assert_true(most_ns < least_ns + least_ns / 4);
	assert_true(run.task[0].p99_ns < 2 * MS);
	gp_run_free(&run);
}

/* Their turns and windows cannot all come before one starves; finish() detects an ejection. */
TEST(too_many_to_take_turns_share)
{
	for (unsigned n = 64; n <= 256; n *= 2) {
		struct gp_run run;

		begin(25 * S);
		add_busy_services(n);
		add_training(n, 0, 0);
		run = finish("priority");
		for (unsigned i = n; i < 2 * n; i++)
			assert_true(run.task[i].work_ns > 0);
		gp_run_free(&run);

		begin(25 * S);
		add_light_services(n);
		add_training(n, 0, 0);
		run = finish("priority");
		gp_run_free(&run);
	}
}

TEST(no_task_starves_beside_many_of_them_without_slices)
{
	struct gp_run run;

	begin(30 * S);
	scenario.device.slices = false;
	scenario.device.activity = GP_ACTIVITY_EVENTS;
	add_busy_services(8);
	add_training(1, 0, 0);
	run = finish("priority");
	assert_true(run.task[8].work_ns > 10 * MS);
	gp_run_free(&run);
}

/* Each gap is filled by the first of them: the second is released for it and gets nothing. */
TEST(no_task_starves_in_gaps_that_others_fill)
{
	struct gp_run run;

	begin(15 * S);
	scenario.device.slices = false;
	scenario.device.activity = GP_ACTIVITY_EVENTS;
	scenario.device.hold_ns = 500 * US;
	scenario.device.release_ns = 400 * US;
	add("service", GP_LATENCY_CRITICAL,
	    (struct gp_sim_task){.load = GP_LOAD_CLOSED, .kernel_ns = 9 * MS, .gap_ns = 1200 * US});
	add_training(2, 0, 0);
	run = finish("priority");
	for (unsigned i = 1; i <= 2; i++)
		assert_true(run.task[i].work_ns > 100 * MS);
	gp_run_free(&run);
}

TEST(a_busy_service_does_not_squeeze_an_unmanaged_neighbour_out)
{
	struct gp_run run;

	begin(10 * S);
	add_busy_services(1);
	add("stranger", GP_UNMANAGED,
	    (struct gp_sim_task){.load = GP_LOAD_CLOSED, .kernel_ns = 5 * MS});
	run = finish("priority");
	assert_true(kept(&run, 1) > 40);
	gp_run_free(&run);
}

TEST(a_task_that_has_the_device_to_itself_does_all_its_work)
{
	for (uint64_t seed = 1; seed <= 5; seed++) {
		struct gp_run run;

		begin(2 * S);
		scenario.seed = seed;
		add("idle", GP_UNMANAGED, (struct gp_sim_task){.load = GP_LOAD_IDLE});
		add("poisson", GP_BEST_EFFORT,
		    (struct gp_sim_task){
			    .load = GP_LOAD_POISSON, .every_ns = 100 * MS, .kernel_ns = 1 * MS});
		run = finish("none");
		assert_int_equal(run.task[1].work_ns, run.task[1].alone_ns);
		gp_run_free(&run);
	}
}

TEST(an_unmanaged_neighbour_keeps_what_the_driver_gave_it)
{
	struct gp_run before, after;

	for (int managed = 0; managed < 2; managed++) {
		begin(10 * S);
		add_inference(10 * MS, 100 * US);
		add("stranger", GP_UNMANAGED,
		    (struct gp_sim_task){.load = GP_LOAD_CLOSED, .kernel_ns = 5 * MS});
		add_training(1, 0, 0);
		*(managed ? &after : &before) = finish(managed ? "priority" : "none");
	}
	assert_true(kept(&after, 1) > kept(&before, 1) - 2);
	gp_run_free(&before);
	gp_run_free(&after);
}

TEST(without_slices_best_effort_work_is_held_while_requests_run)
{
	struct gp_run none, priority;

	for (int managed = 0; managed < 2; managed++) {
		begin(10 * S);
		scenario.device.slices = false;
		scenario.device.activity = GP_ACTIVITY_EVENTS;
		add_inference(20 * MS, 5 * MS);
		add_training(2, 0, 0);
		*(managed ? &priority : &none) = finish(managed ? "priority" : "none");
	}
	assert_true(priority.task[0].p99_ns * 2 < none.task[0].p99_ns);
	assert_true(kept(&priority, 1) + kept(&priority, 2) > 60);
	gp_run_free(&none);
	gp_run_free(&priority);
}

TEST_BEGIN
{
	gp_log_set_level(GP_LOG_ERROR);
}
