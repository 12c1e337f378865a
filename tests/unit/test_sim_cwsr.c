/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The AMD model: narrow tasks run side by side; wider ones share in proportion, and never more than
 * the device; a held task stands still and continues where it was; saving takes time in proportion
 * to the waves; HWS stops other tasks and MES does not; short waves end in the grace period;
 * activity is polled.
 */
#include "support/test.h"

#include "base/rng.h"
#include "sim_world.h"

/* All costs are 0 except those that a test adds. */
#define CWSR_MODEL .model = GP_SIM_CWSR, .xccs = 1, .launch_hinted_permille = 1000, .max_held = 16
static const struct gp_sim_device free_of_charge = {CWSR_MODEL, .save_mb_per_s = 1000000,
						    .activity = GP_ACTIVITY_EXACT};

/* A full device is saved in 1 ms. */
#define SLOW_TO_SAVE(which, ...)                                                                \
	(&(const struct gp_sim_device){CWSR_MODEL, .scheduler = (which), .save_area_kb = 10000, \
				       .save_mb_per_s = 10000, .activity = GP_ACTIVITY_EXACT,   \
				       __VA_ARGS__})

static struct gp_sim_task wide(uint32_t width_permille, uint64_t kernel_ns)
{
	return LOOP(kernel_ns, .width_permille = width_permille);
}

static uint64_t work(struct gp_sim *sim, uint32_t task)
{
	return gp_sim_result(sim, task)->work_ns;
}

/* Sharing. */

SIM_TEST(narrow_tasks_run_side_by_side_at_full_speed)
{
	struct gp_sim *sim = MAKE_SIM(&free_of_charge, wide(300, 3 * MS), wide(700, 7 * MS));

	assert_int_equal(finished_by(sim, 0, 210 * MS), 70);
	assert_int_equal(finished(sim, 1), 30);
	assert_int_equal(gp_sim_totals(sim)->busy_ns, 210 * MS);
}

SIM_TEST(what_does_not_fit_slows_all_down_alike)
{
	struct gp_sim *sim = MAKE_SIM(&free_of_charge, wide(1000, 1 * MS), wide(500, 1 * MS));

	assert_int_equal(finished_by(sim, 0, 150 * MS), 100);
	assert_int_equal(finished(sim, 1), 100);
}

SIM_TEST(a_newcomer_shares_from_its_arrival_to_its_end)
{
	const uint64_t at[] = {4 * MS};
	struct gp_sim *sim = MAKE_SIM(&free_of_charge, closed_loop(100 * MS), TRACE(at, 3 * MS));

	assert_int_equal(finished_by(sim, 1, 10 * MS - 1), 0);
	assert_int_equal(finished_by(sim, 1, 10 * MS), 1); /* 3 ms at half speed */
	assert_int_equal(finished_by(sim, 0, 103 * MS - 1), 0);
	assert_int_equal(finished_by(sim, 0, 103 * MS), 1);
}

/* Widths without common divisors: the sum is the whole device, less rounding. */
SIM_TEST(work_is_neither_lost_nor_made)
{
	const uint32_t width[] = {333, 77, 1000, 611, 13};
	struct gp_sim_task task[5];
	uint64_t sum = 0, widths = 0;
	struct gp_sim *sim;

	for (unsigned i = 0; i < 5; i++) {
		task[i] = wide(width[i], (100 + 7 * i) * S); /* none of them ends */
		widths += width[i];
	}
	sim = new_sim(&free_of_charge, task, 5, 1);
	for (uint64_t at_ns = 0; at_ns <= 10 * S; at_ns += 777 * US + 13) {
		attach_at(sim, 0, at_ns); /* updates the accounts, as any observation does */
		gp_gpu_detach(gp_sim_gpu(sim), 0);
	}
	finish_at(sim, 10 * S);
	for (unsigned i = 0; i < 5; i++)
		sum += width[i] * work(sim, i);
	assert_true(sum <= 10000 * S);
	assert_true(10000 * S - sum < widths);
}

/* Holds. */

SIM_TEST(a_held_task_stands_still_and_goes_on_with_the_rest)
{
	struct gp_sim *sim = MAKE_SIM(&free_of_charge, closed_loop(10 * MS));

	attach_at(sim, 0, 4 * MS);
	hold(sim, 0, 4 * MS);
	run_to(sim, 24 * MS);
	gp_gpu_detach(gp_sim_gpu(sim), 0); /* updates the accounts, too */
	attach(sim, 0);
	assert_int_equal(work(sim, 0), 4 * MS);
	assert_int_equal(finished_by(sim, 0, 30 * MS - 1), 0);
	assert_int_equal(finished_by(sim, 0, 30 * MS), 1);
}

SIM_TEST(saving_takes_as_long_as_there_is_to_save)
{
	const uint32_t width[] = {1000, 250, 1};
	const struct gp_sim_device *device = SLOW_TO_SAVE(GP_SIM_HWS, .hold_ns = 100 * US,
							  .unmap_ns = 30 * US, .map_ns = 20 * US);

	for (unsigned i = 0; i < 3; i++) {
		struct gp_sim *sim = MAKE_SIM(device, wide(width[i], 1 * S));
		uint64_t held_ns = 10 * MS + 150 * US + width[i] * US;

		attach_at(sim, 0, 10 * MS);
		hold(sim, 0, 10 * MS);
		run_to(sim, held_ns - 1);
		assert_false(observe(sim, 0, held_ns - 1).held);
		assert_int_equal(observe(sim, 0, held_ns - 1).under_way, GP_UNDER_WAY_HOLD);
		run_to(sim, held_ns);
		assert_true(observe(sim, 0, held_ns).held);
		/* It ran during the driver's work, and not while it was saved. */
		assert_int_equal(observe(sim, 0, held_ns).run_ns, 100 * US);
		free_sims();
	}
}

/* How long a hold of task 0 at that time takes, in steps of 10 us. */
static uint64_t time_to_hold(struct gp_sim *sim, uint64_t begin_ns)
{
	uint64_t at_ns = begin_ns;

	attach_at(sim, 0, begin_ns);
	hold(sim, 0, begin_ns);
	while (!observe(sim, 0, at_ns).held)
		run_to(sim, at_ns += 10 * US);
	free_sims();
	return at_ns - begin_ns;
}

static uint64_t time_to_save(uint32_t xccs, uint32_t mb_per_s)
{
	struct gp_sim_device device = *SLOW_TO_SAVE(GP_SIM_HWS, .grace_ns = 0);

	device.xccs = xccs;
	device.save_mb_per_s = mb_per_s;
	return time_to_hold(MAKE_SIM(&device, closed_loop(1 * S)), 0);
}

SIM_TEST(xccs_save_at_the_same_time_and_share_the_memory)
{
	assert_int_equal(time_to_save(1, 10000), 1 * MS);
	assert_int_equal(time_to_save(8, 80000), 1 * MS);
	assert_int_equal(time_to_save(8, 10000), 8 * MS);
}

/* Two tasks that fit side by side; one is held at 10 ms and released at 20 ms. Returns how late the
 * 100th kernel of the other is. */
static uint64_t delay_of_the_other(enum gp_sim_scheduler scheduler)
{
	const struct gp_sim_device *device =
		SLOW_TO_SAVE(scheduler, .unmap_ns = 30 * US, .map_ns = 20 * US,
			     .hold_ns = 500 /* in the middle of a kernel */);
	struct gp_sim *sim = MAKE_SIM(device, wide(500, 1 * MS), wide(500, 1 * S));
	uint64_t at_ns = 100 * MS;

	attach_at(sim, 1, 10 * MS);
	hold(sim, 1, 10 * MS);
	run_to(sim, 20 * MS);
	assert_true(observe(sim, 1, 20 * MS).held);
	release(sim, 1, 20 * MS);
	run_to(sim, at_ns);
	while (finished(sim, 0) < 100)
		run_to(sim, at_ns += 10 * US);
	free_sims();
	return at_ns - 100 * MS;
}

SIM_TEST(hws_stops_bystanders_and_mes_does_not)
{
	/* The hold saves both (1 ms) and restores one (0.5 ms), the release saves one and restores
	 * both; 50 us for the lists each time. */
	assert_in_range(delay_of_the_other(GP_SIM_HWS), 3090 * US, 3110 * US);
	assert_int_equal(delay_of_the_other(GP_SIM_MES), 0);
}

SIM_TEST(with_mes_a_released_task_waits_for_its_own_waves)
{
	struct gp_sim *sim =
		MAKE_SIM(SLOW_TO_SAVE(GP_SIM_MES, .map_ns = 20 * US), closed_loop(10 * MS));

	attach_at(sim, 0, 4 * MS);
	hold(sim, 0, 4 * MS);
	release_at(sim, 0, 20 * MS);
	run_to(sim, 27 * MS + 20 * US - 1); /* 6 ms were left, 1 ms is for its waves */
	assert_int_equal(finished(sim, 0), 0);
	assert_int_equal(finished_by(sim, 0, 27 * MS + 20 * US), 1);
}

SIM_TEST(one_call_for_many_stops_the_device_once)
{
	struct gp_action a[] = {{.handle = 0}, {.handle = 2}};
	struct gp_sim *sim = MAKE_SIM(SLOW_TO_SAVE(GP_SIM_HWS, .grace_ns = 0), wide(200, 1 * S),
				      wide(200, 1 * S), wide(200, 1 * S));

	run_to(sim, 0);
	for (uint32_t i = 0; i < 3; i++)
		attach(sim, i);
	assert_int_equal(gp_gpu_hold(gp_sim_gpu(sim), 0, a, 2), 0);
	run_to(sim, 600 * US);
	assert_true(observe(sim, 0, 600 * US).held);
	assert_true(observe(sim, 2, 600 * US).held);
	assert_false(observe(sim, 0, 600 * US).running);
	assert_true(observe(sim, 1, 600 * US).running);
	assert_int_equal(gp_sim_totals(sim)->switches, 1);
	assert_int_equal(gp_sim_totals(sim)->switch_ns, 600 * US);
}

/* The grace period. */

static uint64_t held_after(uint64_t kernel_ns, uint64_t wave_ns, enum gp_sim_scheduler scheduler)
{
	const struct gp_sim_device *device = SLOW_TO_SAVE(scheduler, .grace_ns = 100 * US);

	return time_to_hold(MAKE_SIM(device, LOOP(kernel_ns, .wave_ns = wave_ns)), 10 * MS);
}

SIM_TEST(waves_that_end_in_the_grace_period_are_not_saved)
{
	assert_int_equal(held_after(1 * S, 1 * S, GP_SIM_HWS), 1100 * US);
	assert_int_equal(held_after(1 * S, 200 * US, GP_SIM_HWS), 600 * US); /* half of them */
	assert_int_equal(held_after(1 * S, 100 * US, GP_SIM_HWS), 100 * US);
	assert_int_equal(held_after(1 * S, 50 * US, GP_SIM_HWS), 100 * US);
	assert_int_equal(held_after(1 * S, 100 * US, GP_SIM_MES), 1000 * US); /* has none */
}

SIM_TEST(no_kernel_begins_in_the_grace_period)
{
	struct gp_sim *sim =
		MAKE_SIM(SLOW_TO_SAVE(GP_SIM_HWS, .grace_ns = 500 * US), closed_loop(80 * US));

	attach_at(sim, 0, 10 * US);
	hold(sim, 0, 10 * US);
	assert_int_equal(finished_by(sim, 0, 10 * MS), 1);
	assert_int_equal(work(sim, 0), 80 * US);
	assert_int_equal(gp_sim_totals(sim)->preemptions, 0);
}

SIM_TEST(a_release_has_no_grace_period)
{
	struct gp_sim *sim =
		MAKE_SIM(SLOW_TO_SAVE(GP_SIM_HWS, .grace_ns = 5 * MS), closed_loop(1 * S));
	uint64_t at_ns = 30 * MS;

	attach_at(sim, 0, 10 * MS);
	hold(sim, 0, 10 * MS);
	release_at(sim, 0, at_ns);
	while (observe(sim, 0, at_ns).held)
		run_to(sim, at_ns += 10 * US);
	assert_in_range(at_ns, 30 * MS, 31 * MS);
}

/* Coming and leaving. */

/* It is held at 10 ms and exits at `stop_ns`; the other continues. */
static void exit_at(enum gp_sim_scheduler scheduler, uint64_t stop_ns)
{
	struct gp_sim *sim = MAKE_SIM(
		SLOW_TO_SAVE(scheduler, .grace_ns = 200 * US, .hold_ns = 100 * US),
		LOOP(7 * MS, .width_permille = 500, .stop_ns = stop_ns), wide(500, 7 * MS));

	attach_at(sim, 0, 10 * MS - 1);
	attach(sim, 1);
	hold(sim, 0, 10 * MS - 1);
	finish_at(sim, 1 * S);
	assert_in_range(finished(sim, 1), 141, 142);
	assert_in_range(work(sim, 0), 10 * MS - 1, 10 * MS + 300 * US);
	free_sims();
}

/* During the driver's work, draining, stopped, saving waves, and off. */
SIM_TEST(a_task_can_exit_in_every_state)
{
	for (uint64_t stop_ns = 10 * MS; stop_ns < 13 * MS; stop_ns += 50 * US) {
		exit_at(GP_SIM_HWS, stop_ns);
		exit_at(GP_SIM_MES, stop_ns);
	}
}

SIM_TEST(one_that_is_let_go_while_it_is_taken_off_runs_again)
{
	for (enum gp_sim_scheduler scheduler = GP_SIM_HWS; scheduler <= GP_SIM_MES; scheduler++) {
		struct gp_sim *sim =
			MAKE_SIM(SLOW_TO_SAVE(scheduler, .grace_ns = 0), closed_loop(10 * MS));

		attach_at(sim, 0, 4 * MS);
		hold(sim, 0, 4 * MS);
		run_to(sim, 4 * MS + 500 * US);
		gp_gpu_detach(gp_sim_gpu(sim), 0);
		run_to(sim, 12 * MS); /* 10 ms of work, 1 ms to save, 1 ms to restore */
		assert_int_equal(finished(sim, 0), 1);
		free_sims();
	}
}

SIM_TEST(a_hint_takes_no_room_until_its_kernel_comes)
{
	const uint64_t at[] = {10 * MS};
	struct gp_sim *sim = MAKE_SIM(&free_of_charge, closed_loop(100 * MS),
				      TRACE(at, 2 * MS, .hint_ns = 5 * MS));

	attach_at(sim, 0, 10 * MS - 1); /* updates the accounts */
	attach(sim, 1);
	assert_true(observe(sim, 1, 10 * MS - 1).active);
	assert_int_equal(work(sim, 0), 10 * MS - 1);
	assert_int_equal(finished_by(sim, 1, 14 * MS), 1);
}

/* Observation. */

/* Polled every millisecond. */
static const struct gp_sim_device polled = {CWSR_MODEL, .save_mb_per_s = 1000000,
					    .activity = GP_ACTIVITY_EVENTS, .detect_ns = 1 * MS};

SIM_TEST(activity_is_found_by_polling)
{
	const uint64_t at[] = {200 * US, 2500 * US};
	struct gp_sim *sim = MAKE_SIM(&polled, TRACE(at, 1 * MS));
	bool rescan;

	attach_at(sim, 0, 0);
	run_to(sim, 900 * US);
	assert_false(observe(sim, 0, 900 * US).active);
	assert_int_equal(gp_sim_advance(sim, 10 * MS), 1 * MS);
	assert_true(gp_sim_take_signal(sim, &rescan));
	assert_true(observe(sim, 0, 1 * MS).active);
	assert_int_equal(observe(sim, 0, 1 * MS).active_since_ns, 1 * MS);
	run_to(sim, 1900 * US);
	assert_true(observe(sim, 0, 1900 * US).active); /* has ended at 1.2 ms */
	run_to(sim, 2 * MS);
	assert_false(observe(sim, 0, 2 * MS).active);
}

SIM_TEST(activity_between_two_polls_is_not_seen)
{
	const uint64_t at[] = {200 * US};
	struct gp_sim *sim = MAKE_SIM(&polled, TRACE(at, 100 * US));
	bool rescan;

	attach_at(sim, 0, 0);
	assert_int_equal(gp_sim_advance(sim, 10 * MS), 10 * MS);
	assert_false(gp_sim_take_signal(sim, &rescan));
	assert_int_equal(finished(sim, 0), 1);
}

SIM_TEST(an_mi300x_tells_no_run_times)
{
	struct gp_sim *sim = MAKE_SIM(&gp_sim_mi300x, closed_loop(10 * MS));
	const struct gp_gpu_info *info = &gp_sim_gpu(sim)->info;

	attach_at(sim, 0, 5 * MS);
	assert_int_equal(observe(sim, 0, 5 * MS).known, GP_KNOWN_HELD | GP_KNOWN_ACTIVE |
								GP_KNOWN_PENDING |
								GP_KNOWN_ACTIVE_SINCE);
	assert_int_equal(info->caps, GP_CAP_HOLD | GP_CAP_ACTIVITY | GP_CAP_EVENTS);
	assert_int_equal(info->slice_default_us, 0);
	assert_int_equal(info->sample_period_ns, 0);
	/* 8 x 23.2 MB at 3.7 TB/s is 50 us; 20, 60 and 60 are the calls. */
	assert_in_range(info->hold_cost_ns, 190 * US, 191 * US);
}

SIM_TEST(what_makes_no_sense_is_refused)
{
	const struct gp_sim_task task = closed_loop(1 * MS), too_wide = wide(1001, 1 * MS);
	struct gp_sim_config config = {.device = free_of_charge, .task = &task, .ntasks = 1};
	struct gp_sim *sim;

	for (int wrong = 0; wrong < 5; wrong++) {
		config.device = free_of_charge;
		switch (wrong) {
		case 0: config.device.slices = true; break;
		case 1: config.device.xccs = 0; break;
		case 2: config.device.save_mb_per_s = 0; break;
		case 3: config.device.model = (enum gp_sim_model)2; break;
		case 4: config.task = &too_wide; break;
		}
		assert_int_equal(gp_sim_new(&config, &sim), -EINVAL);
	}
}

/* Random sequences. */

#define MIX 6u

struct witness {
	bool held[MIX], running[MIX], ready[MIX];
	uint64_t hash;
};

static void check_event(void *arg, const struct gp_sim_event *e)
{
	struct witness *w = arg;

	hash_event(&w->hash, e);
	switch (e->what) {
	case GP_SIM_RUN:
		assert_false(w->held[e->task] || w->running[e->task]);
		assert_true(w->ready[e->task]);
		w->running[e->task] = true;
		break;
	case GP_SIM_STOP:
		assert_true(w->running[e->task]);
		w->running[e->task] = false;
		break;
	case GP_SIM_HELD:
		assert_false(w->held[e->task] || w->running[e->task]);
		w->held[e->task] = true;
		break;
	case GP_SIM_RELEASED: w->held[e->task] = false; break;
	case GP_SIM_READY: w->ready[e->task] = true; break;
	case GP_SIM_DONE: w->ready[e->task] = false; break;
	default: break;
	}
}

static void fill(struct gp_sim_task task[MIX])
{
	const uint64_t kernel_ns[MIX] = {3 * MS, 700 * US, 20 * MS, 1 * MS, 5 * MS, 100 * US};
	const uint32_t width[MIX] = {1000, 130, 777, 0, 50, 300};

	for (unsigned i = 0; i < MIX; i++) {
		task[i] = i % 2 ? periodic((5 + i) * MS, kernel_ns[i]) : closed_loop(kernel_ns[i]);
		task[i].width_permille = width[i];
	}
	task[1].hint_ns = 1 * MS;
	task[3].wave_ns = 30 * US;
	task[4].kernels = 3;
	task[4].kernel_gap_ns = 200 * US;
}

/* Holds and releases at random. No task runs while it is held, and the work done equals the work
 * finished. */
static uint64_t run_at_random(uint64_t seed, enum gp_sim_scheduler scheduler)
{
	struct gp_sim_device device = gp_sim_mi300x;
	struct gp_sim_task task[MIX];
	struct witness w = {.hash = seed};
	struct gp_rng rng;
	struct gp_sim *sim;

	device.scheduler = scheduler;
	device.grace_ns = 20 * US;
	fill(task);
	gp_rng_init(&rng, seed, 99);
	sim = new_sim(&device, task, MIX, seed);
	gp_sim_set_watch(sim, check_event, &w);
	run_to(sim, 0);
	for (uint32_t i = 0; i < MIX; i++)
		attach(sim, i);
	for (uint64_t at_ns = 0; at_ns < 500 * MS; at_ns += gp_rng_below(&rng, 2 * MS)) {
		struct gp_action a = {.handle = (uint32_t)gp_rng_below(&rng, MIX)};

		run_to(sim, at_ns);
		if (gp_rng_below(&rng, 2))
			gp_gpu_hold(gp_sim_gpu(sim), at_ns, &a, 1);
		else
			gp_gpu_release(gp_sim_gpu(sim), at_ns, &a, 1);
	}
	finish_at(sim, 1 * S);
	for (uint32_t i = 0; i < MIX; i++) {
		uint64_t request_ns = task[i].kernel_ns * (task[i].kernels ? task[i].kernels : 1);

		assert_true(work(sim, i) >= finished(sim, i) * request_ns);
		assert_true(work(sim, i) <= (finished(sim, i) + 1) * request_ns);
		assert_true(gp_sim_result(sim, i)->run_ns >= work(sim, i));
		w.hash = (w.hash ^ work(sim, i)) * 0x100000001b3ull;
	}
	assert_true(gp_sim_totals(sim)->busy_ns + gp_sim_totals(sim)->switch_ns <= 1 * S);
	free_sims();
	return w.hash;
}

SIM_TEST(no_task_runs_while_held_and_the_same_seed_gives_the_same_bytes)
{
	for (uint64_t seed = 1; seed <= 40; seed++)
		for (enum gp_sim_scheduler s = GP_SIM_HWS; s <= GP_SIM_MES; s++) {
			uint64_t hash = run_at_random(seed, s);

			assert_true(hash == run_at_random(seed, s));
			assert_true(hash != run_at_random(seed + 1, s));
		}
}
