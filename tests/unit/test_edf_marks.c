/* SPDX-License-Identifier: Apache-2.0 */
/*
 * edf on devices that do not report activity in time, as NVIDIA GPUs: requests are known by request
 * marks. For tasks without marks there are samples of activity, or nothing.
 */
#include "deadline_world.h"

TEST(request_marks_are_enough_on_a_device_without_activity)
{
	some_are_refused("edf", DRAW(200, .most = 7, .low = 100, .high = 1100,
				     .change_permille = 10, .request_marks = true));
}

/* As on NVIDIA GPUs: of a task without marks only a sample is known. */
TEST(request_marks_are_enough_on_a_device_with_samples_and_slices)
{
	none_are_refused("edf",
			 DRAW(200, .most = 13, .low = 100, .high = 799, .change_permille = 10,
			      .request_marks = true, .sampled = true));
	some_are_refused("edf",
			 DRAW(200, .most = 13, .low = 100, .high = 1100, .change_permille = 30,
			      .request_marks = true, .sampled = true, .sporadic = true));
}

/* A service with requests of 20 ms that sends request marks, on an H200 as it is. */
static uint32_t add_frames(struct world *w)
{
	uint32_t frames = world_add_service(w, 150 * MS, 150 * MS, 21 * MS);

	world_show_samples(w);
	w->task[frames].kernel_ns = 20 * MS;
	w->task[frames].request_marks = true;
	return frames;
}

/* Tasks that send no request marks. */

/* It is not waited for, and no room is kept for it; its requests would be seen 167 ms late. */
DEADLINE_TEST(a_task_that_never_says_anything_is_refused_and_costs_the_others_nothing, 1000)
{
	uint32_t silent, frames;

	silent = world_add(w, IDLE, 600 * MS, 20 * MS);
	frames = add_frames(w);
	world_run(w, "edf");
	assert_true(w->stats[silent].refused);
	assert_false(w->stats[frames].refused);
	assert_in_range(w->longest_ns[frames], 20 * MS, 22 * MS);
}

DEADLINE_TEST(a_task_that_works_and_says_nothing_is_refused_and_is_not_in_the_way, 1000)
{
	uint32_t silent, frames;

	silent = world_add_service(w, 600 * MS, 700 * MS, 20 * MS);
	frames = add_frames(w);
	world_run(w, "edf");
	assert_true(w->stats[silent].refused);
	assert_false(w->stats[frames].refused);
	assert_int_equal(w->missed[silent] + w->missed[frames], 0);
	assert_in_range(w->longest_ns[frames], 20 * MS, 25 * MS);
}

/* It works for 30 ms now and then. A sample shows it as idle, and is outdated when it works. */
DEADLINE_TEST(a_task_that_was_seen_idle_is_held_all_the_same, 1000)
{
	uint32_t frames;

	world_add_service(w, 0, 410 * MS, 30 * MS);
	frames = add_frames(w);
	world_run(w, "edf");
	assert_false(w->stats[frames].refused);
	assert_int_equal(w->stats[frames].overruns, 0);
	assert_in_range(w->longest_ns[frames], 20 * MS, 22 * MS);
	assert_int_equal(w->finished[0], 24);
}

TEST(what_is_promised_is_kept_beside_tasks_that_work_and_say_nothing)
{
	struct draw draw = DRAW(200, .most = 10, .low = 100, .high = 1100, .change_permille = 30,
				.request_marks = true, .sampled = true, .silent = true);

	some_are_refused("edf", draw);
	draw.sampled = false;
	some_are_refused("edf", draw);
}

/* Two services that never work, and a job that always does. */
DEADLINE_TEST(no_turns_are_kept_for_services_that_do_nothing, 1000)
{
	uint32_t job;

	world_show_samples(w);
	w->config.request_marks = true;
	for (int i = 0; i < 2; i++)
		world_add(w, IDLE, 600 * MS, 20 * MS);
	job = world_add_job(w);
	w->duration_ns = 2 * S;
	world_run(w, "edf");
	assert_true(w->work_ns[job] > 2 * S * 98 / 100);
}

TEST(samples_of_activity_come_too_late_for_a_promise)
{
	struct gp_sim_task idle = {.load = GP_LOAD_IDLE, .stop_ns = GP_NEVER};
	struct gp_sim_config config = {.device = gp_sim_h200, .task = &idle, .ntasks = 1};
	struct gp_engine_config engine_config = {0};
	struct gp_policy_choice choice;
	struct gp_engine *engine;
	struct gp_error err = {0};
	struct gp_sim *sim;

	assert_int_equal(gp_sim_new(&config, &sim), 0);
	engine_config.gpu = gp_sim_gpu(sim);
	assert_int_equal(gp_engine_new(&engine_config, &engine), 0);
	gp_policy_defaults(&gp_policy_edf, &choice);
	assert_int_equal(gp_engine_set_policy(engine, 0, &choice, &err), -ENOTSUP);
	assert_non_null(strstr(err.text, "request marks"));
	gp_engine_free(engine);
	gp_sim_free(sim);
}
