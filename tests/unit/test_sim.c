/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated device: the same seed gives the same bytes; time is neither lost nor created; a
 * held task stands still and loses nothing; slices and switches cost what the model says; hints
 * hide the switch; nothing is allocated during a run.
 */
#include "support/test.h"

#include <malloc.h>

#include "base/rng.h"
#include "sim_world.h"

/* Same seed, same bytes. */

#define MIX 5u

/* All kinds of loads, with control calls in between. Returns a hash of all events. */
static uint64_t run_mix(uint64_t seed, struct outcome *outcome, struct gp_sim_totals *totals)
{
	struct gp_sim_task task[MIX] = {PERIODIC(7 * MS, 1 * MS, .hint_ns = 500 * US),
					periodic(5 * MS, 1 * MS), closed_loop(3 * MS),
					LOOP(2 * MS, .gap_ns = 4 * MS),
					LOOP(50 * MS, .start_ns = 100 * MS, .stop_ns = 1500 * MS)};
	struct gp_sim_device device = gp_sim_h200;
	struct gp_sim *sim;
	uint64_t hash = 1;

	device.activity = GP_ACTIVITY_EVENTS;
	task[1].load = GP_LOAD_POISSON;
	sim = new_sim(&device, task, MIX, seed);
	gp_sim_set_watch(sim, hash_event, &hash);
	attach_at(sim, 2, 0);
	attach(sim, 3);
	for (uint64_t at_ns = 0; at_ns < 2 * S; at_ns += 50 * MS) {
		hold_at(sim, 2, at_ns);
		set_slice(sim, 3, (uint32_t)(1 + at_ns / MS), at_ns);
		release_at(sim, 2, at_ns + 20 * MS);
	}
	gp_sim_finish(sim, gp_sim_advance(sim, 0));
	for (uint32_t i = 0; i < MIX; i++)
		take_outcome(sim, i, &outcome[i]);
	*totals = *gp_sim_totals(sim);
	free_sims();
	return hash;
}

SIM_TEST(the_same_seed_gives_the_same_results_and_another_seed_others)
{
	struct outcome *outcome = calloc(3 * (size_t)MIX, sizeof *outcome);
	struct gp_sim_totals totals[3];
	uint64_t hash[3];

	assert_non_null(outcome);
	for (size_t i = 0; i < 3; i++)
		hash[i] = run_mix(i == 2 ? 8 : 7, &outcome[i * MIX], &totals[i]);
	assert_true(hash[0] == hash[1]);
	assert_memory_equal(&outcome[0], &outcome[MIX], MIX * sizeof *outcome);
	assert_memory_equal(&totals[0], &totals[1], sizeof totals[0]);
	assert_true(hash[0] != hash[2]);
	for (size_t i = 0; i < 4; i++) /* the closed loops through the others */
		assert_memory_not_equal(&outcome[i], &outcome[2 * (size_t)MIX + i],
					sizeof *outcome);
	assert_memory_not_equal(&totals[0], &totals[2], sizeof totals[0]);
	for (unsigned i = 0; i < MIX; i++)
		assert_true(outcome[i].result.finished > 0);
	free(outcome);
}

SIM_TEST(watching_changes_nothing)
{
	struct gp_sim *watched =
		MAKE_SIM(&gp_sim_h200, periodic(7 * MS, 1 * MS), closed_loop(3 * MS));
	struct gp_sim *alone =
		MAKE_SIM(&gp_sim_h200, periodic(7 * MS, 1 * MS), closed_loop(3 * MS));
	uint64_t hash = 1;

	gp_sim_set_watch(watched, hash_event, &hash);
	run_to(watched, 1 * S);
	run_to(alone, 1 * S);
	assert_memory_equal(gp_sim_totals(watched), gp_sim_totals(alone),
			    sizeof(struct gp_sim_totals));
}

/* Conservation. */

struct ledger {
	int64_t running; /* -1 = none */
	uint64_t since_ns;
	bool ready[8], held[8], gone[8];
	uint64_t run_ns[8], switches, requests;
};

static void keep_ledger(void *arg, const struct gp_sim_event *e)
{
	struct ledger *l = arg;

	/* A task that has left has no more events. */
	assert_false(l->gone[e->task] && e->what != GP_SIM_STOP && e->what != GP_SIM_SWITCH);
	switch (e->what) {
	case GP_SIM_RUN:
		assert_int_equal(l->running, -1); /* one at a time */
		assert_true(l->ready[e->task]);
		assert_false(l->held[e->task]);
		l->running = e->task;
		l->since_ns = e->now_ns;
		break;
	case GP_SIM_STOP:
		assert_int_equal(l->running, e->task);
		l->run_ns[e->task] += e->now_ns - l->since_ns;
		l->running = -1;
		break;
	case GP_SIM_SWITCH:
		assert_int_equal(l->running, -1);
		l->switches++;
		break;
	case GP_SIM_READY:
		assert_false(l->ready[e->task]);
		l->ready[e->task] = true;
		break;
	case GP_SIM_DONE:
		assert_true(l->ready[e->task]);
		l->ready[e->task] = false;
		break;
	case GP_SIM_HELD: l->held[e->task] = true; break;
	case GP_SIM_RELEASED: l->held[e->task] = false; break;
	case GP_SIM_REQUEST: l->requests++; break;
	case GP_SIM_GONE: l->gone[e->task] = true; break;
	case GP_SIM_BEGIN:
	case GP_SIM_END: break;
	}
}

static struct gp_sim_task task_at_random(struct gp_rng *rng)
{
	struct gp_sim_task t = {.load = (enum gp_sim_load)gp_rng_below(rng, 4),
				.every_ns = 1 + gp_rng_below(rng, 10 * MS),
				.kernel_ns = 1 + gp_rng_below(rng, 5 * MS),
				.gap_ns = gp_rng_below(rng, 2) * gp_rng_below(rng, 3 * MS),
				.hint_ns = gp_rng_below(rng, 2) * gp_rng_below(rng, 1 * MS),
				.start_ns = gp_rng_below(rng, 2) * gp_rng_below(rng, 100 * MS),
				.stop_ns = GP_NEVER,
				.slice_us = (uint32_t)gp_rng_below(rng, 3000)};

	if (gp_rng_below(rng, 4) == 0)
		t.stop_ns = gp_rng_below(rng, 1 * S);
	return t;
}

static void act_at_random(struct gp_sim *sim, struct gp_rng *rng, uint64_t now_ns)
{
	struct gp_action a = {.handle = (uint32_t)gp_rng_below(rng, 6),
			      .slice_us = (uint32_t)gp_rng_below(rng, 5000)};
	struct gp_gpu *gpu = gp_sim_gpu(sim);
	uint32_t handle;

	if (gp_gpu_attach(gpu, a.handle + 1, &handle) == -ESRCH)
		return;
	switch (gp_rng_below(rng, 4)) {
	case 0: gp_gpu_hold(gpu, now_ns, &a, 1); break;
	case 1: gp_gpu_release(gpu, now_ns, &a, 1); break;
	case 2: gp_gpu_set_slice(gpu, now_ns, &a, 1); break;
	default: gp_gpu_detach(gpu, a.handle);
	}
}

SIM_TEST(time_is_neither_lost_nor_made)
{
	for (uint64_t seed = 0; seed < 100; seed++) {
		struct ledger l = {.running = -1};
		struct gp_sim_device device = gp_sim_h200;
		struct gp_sim_task task[6];
		const struct gp_sim_totals *totals;
		uint64_t run_ns = 0, requests = 0;
		struct gp_sim *sim;
		struct gp_rng rng;

		gp_rng_init(&rng, seed, 0);
		for (int i = 0; i < 6; i++)
			task[i] = task_at_random(&rng);
		device.activity = (enum gp_sim_activity)gp_rng_below(&rng, 4);
		sim = new_sim(&device, task, 6, seed);
		gp_sim_set_watch(sim, keep_ledger, &l);
		for (uint64_t at_ns = 0; at_ns <= 1 * S; at_ns += 7 * MS) {
			run_to(sim, at_ns);
			act_at_random(sim, &rng, at_ns);
		}
		finish_at(sim, 1 * S);
		totals = gp_sim_totals(sim);
		if (l.running >= 0)
			l.run_ns[l.running] += 1 * S - l.since_ns;
		for (uint32_t i = 0; i < 6; i++) {
			const struct gp_sim_result *r = gp_sim_result(sim, i);

			assert_int_equal(r->run_ns, l.run_ns[i]);
			assert_true(r->work_ns <= r->run_ns);
			assert_true(r->work_ns >= r->finished * task[i].kernel_ns);
			if (task[i].load != GP_LOAD_IDLE)
				assert_true(r->work_ns <= (r->finished + 1) * task[i].kernel_ns);
			else
				assert_int_equal(r->run_ns, 0);
			assert_int_equal(r->response ? r->response->count : 0, r->finished);
			run_ns += r->run_ns;
			requests += r->finished;
		}
		assert_int_equal(run_ns, totals->busy_ns);
		assert_true(totals->busy_ns + totals->switch_ns <= 1 * S);
		assert_int_equal(l.switches, totals->switches);
		/* The last one may not be finished. */
		assert_true(totals->switch_ns <= l.switches * device.switch_ns);
		assert_true(totals->switch_ns + device.switch_ns >=
			    l.switches * device.switch_idle_ns);
		assert_int_equal(l.requests, requests);
		free_sims();
	}
}

SIM_TEST(a_closed_loop_by_itself_keeps_the_device_busy)
{
	struct gp_sim *sim = MAKE_SIM(&gp_sim_h200, closed_loop(3 * MS));

	finish_at(sim, 1 * S);
	assert_int_equal(gp_sim_totals(sim)->switches, 1); /* to be loaded at first */
	assert_int_equal(gp_sim_totals(sim)->switch_ns, gp_sim_h200.switch_idle_ns);
	assert_int_equal(gp_sim_totals(sim)->busy_ns, 1 * S - gp_sim_h200.switch_idle_ns);
	assert_int_equal(gp_sim_totals(sim)->preemptions, 0);
	assert_int_equal(gp_sim_result(sim, 0)->work_ns, 1 * S - gp_sim_h200.switch_idle_ns);
	assert_int_equal(finished(sim, 0), 333);
	assert_int_equal(gp_sim_result(sim, 0)->left, 1); /* the request in work */
}

SIM_TEST(an_idle_task_and_an_empty_device_do_nothing)
{
	struct gp_sim *sim = MAKE_SIM(&plain, IDLE);
	struct gp_sim *empty = new_sim(&plain, NULL, 0, 1);
	struct gp_seen seen;

	assert_int_equal(gp_sim_next_ns(sim), 0); /* it appears */
	run_to(sim, 0);
	assert_int_equal(gp_gpu_scan(gp_sim_gpu(sim), 0, &seen, 1), 1);
	assert_true(gp_sim_next_ns(sim) == GP_NEVER);
	assert_int_equal(gp_sim_advance(sim, 5 * S), 5 * S);
	gp_sim_finish(sim, 5 * S);
	assert_int_equal(gp_sim_totals(sim)->busy_ns, 0);
	assert_int_equal(gp_sim_result(sim, 0)->left, 0);
	assert_true(gp_sim_next_ns(empty) == GP_NEVER);
	assert_int_equal(gp_sim_advance(empty, 5 * S), 5 * S);
	assert_int_equal(gp_gpu_scan(gp_sim_gpu(empty), 0, NULL, 0), 0);
	gp_sim_free(NULL);
}

/* Holds. */

SIM_TEST(a_held_task_stands_still_and_goes_on_with_nothing_lost)
{
	struct gp_sim *sim = MAKE_SIM(DEVICE(.refill_ns = 300 * US), closed_loop(10 * MS));

	attach_at(sim, 0, 0);
	hold_at(sim, 0, 4 * MS);
	run_to(sim, 50 * MS);
	assert_true(observe(sim, 0, 50 * MS).held);
	assert_false(observe(sim, 0, 50 * MS).running);
	assert_true(observe(sim, 0, 50 * MS).active);
	assert_int_equal(observe(sim, 0, 50 * MS).run_ns, 4 * MS);
	release(sim, 0, 50 * MS);
	assert_int_equal(finished_by(sim, 0, 56300 * US - 1), 0);
	run_to(sim, 56300 * US); /* the remaining 6 ms, after the refill */
	assert_int_equal(finished(sim, 0), 1);
	assert_int_equal(gp_sim_result(sim, 0)->work_ns, 10 * MS);
	assert_int_equal(gp_sim_result(sim, 0)->run_ns, 10300 * US);
	assert_int_equal(gp_sim_totals(sim)->preemptions, 1);
	assert_int_equal(finished_by(sim, 0, 66300 * US), 2); /* the next one was not interrupted */
}

SIM_TEST(a_held_task_gets_nothing_however_often_its_work_arrives)
{
	struct gp_sim *sim = MAKE_SIM(&plain, periodic(10 * MS, 1 * MS), closed_loop(1 * MS));
	uint64_t before;

	attach_at(sim, 0, 0);
	hold_at(sim, 0, 100 * MS);
	run_to(sim, 100 * MS + 1);
	before = gp_sim_result(sim, 0)->run_ns;
	run_to(sim, 600 * MS);
	assert_int_equal(gp_sim_result(sim, 0)->run_ns, before);
	release(sim, 0, 600 * MS);
	finish_at(sim, 1 * S);
	assert_in_range(finished(sim, 0), 98, 100); /* it has caught up */
	assert_in_range(gp_sim_result(sim, 0)->response->max, 490 * MS, 515 * MS);
}

SIM_TEST(holding_in_the_middle_of_the_switch_to_it_is_safe)
{
	struct gp_sim *sim = MAKE_SIM(DEVICE(.switch_ns = 1 * MS, .switch_idle_ns = 1 * MS),
				      closed_loop(10 * MS), closed_loop(10 * MS));

	attach_at(sim, 0, 0);
	attach(sim, 1);
	run_to(sim, 3500 * US); /* 0 ran from 1 to 3 ms; the switch to 1 is under way */
	assert_int_equal(gp_sim_totals(sim)->switches, 2);
	hold(sim, 1, 3500 * US);
	release_at(sim, 1, 3600 * US);
	hold_at(sim, 1, 3700 * US);
	run_to(sim, 100 * MS);
	assert_int_equal(gp_sim_result(sim, 1)->run_ns, 0);
	assert_int_equal(gp_sim_totals(sim)->switches, 3);
	release(sim, 1, 100 * MS);
	run_to(sim, 200 * MS);
	assert_true(gp_sim_result(sim, 1)->run_ns > 30 * MS);
}

SIM_TEST(a_hold_that_is_over_before_the_switch_is_has_no_effect)
{
	struct gp_sim *sim[2];

	for (int i = 0; i < 2; i++) {
		sim[i] = MAKE_SIM(DEVICE(.switch_ns = 1 * MS, .switch_idle_ns = 1 * MS),
				  closed_loop(10 * MS), LOOP(1 * MS, .gap_ns = 20 * MS));
		attach_at(sim[i], 1, 3500 * US); /* the switch to 1 is under way */
		if (i) {
			hold(sim[i], 1, 3500 * US);
			run_to(sim[i], 3600 * US);
			assert_true(observe(sim[i], 1, 3600 * US).held);
			release(sim[i], 1, 3600 * US);
		}
		finish_at(sim[i], 500 * MS);
	}
	for (uint32_t t = 0; t < 2; t++) {
		struct outcome o[2];

		take_outcome(sim[0], t, &o[0]);
		take_outcome(sim[1], t, &o[1]);
		assert_memory_equal(&o[0], &o[1], sizeof o[0]);
	}
	assert_int_equal(gp_sim_totals(sim[0])->preemptions, gp_sim_totals(sim[1])->preemptions);
	assert_int_equal(gp_sim_totals(sim[0])->switches, gp_sim_totals(sim[1])->switches);
}

SIM_TEST(nobody_is_preempted_for_one_that_is_held_while_it_waits)
{
	struct gp_sim *sim = MAKE_SIM(&plain, closed_loop(50 * MS), closed_loop(50 * MS));

	attach_at(sim, 1, 0);
	hold_at(sim, 1, 1 * MS);
	run_to(sim, 40 * MS);
	assert_int_equal(gp_sim_totals(sim)->preemptions, 0);
	gp_sim_finish(sim, 40 * MS);
	assert_int_equal(gp_sim_result(sim, 0)->run_ns, 40 * MS);
}

SIM_TEST(a_task_can_exit_in_every_state)
{
	for (uint64_t stop_ns = 1; stop_ns < 9 * MS; stop_ns += 250 * US - 1) {
		for (int is_held = 0; is_held < 2; is_held++) {
			struct gp_sim *sim =
				MAKE_SIM(DEVICE(.switch_ns = 1 * MS, .switch_idle_ns = 1 * MS,
						.hold_ns = 500 * US, .release_ns = 500 * US),
					 LOOP(3 * MS, .gap_ns = 1 * MS, .stop_ns = stop_ns),
					 closed_loop(2 * MS));
			struct ledger l = {.running = -1};

			gp_sim_set_watch(sim, keep_ledger, &l);
			attach_at(sim, 0, 0);
			if (is_held)
				hold(sim, 0, 0);
			release_at(sim, 0, stop_ns - 1); /* too late for it */
			run_to(sim, 50 * MS);
			gp_gpu_detach(gp_sim_gpu(sim), 0);
			finish_at(sim, 100 * MS);
			assert_true(gp_sim_result(sim, 0)->run_ns < stop_ns);
			assert_true(gp_sim_result(sim, 1)->run_ns > 85 * MS);
			free_sims();
		}
	}
}

/* Slices and switches. */

SIM_TEST(two_closed_loops_share_equally)
{
	const struct gp_sim_task task[] = {closed_loop(7 * MS), closed_loop(300 * US)};
	struct gp_sim_device device = gp_sim_h200;
	struct gp_sim *sim;
	uint64_t turns;

	device.refill_ns = 0;
	sim = new_sim(&device, task, 2, 1);
	finish_at(sim, 1 * S);
	turns = 1 * S / (2048 * US + 168 * US);
	assert_in_range(gp_sim_totals(sim)->switches, turns, turns + 1);
	assert_in_range(gp_sim_totals(sim)->preemptions, turns - 1, turns + 1);
	for (uint32_t i = 0; i < 2; i++)
		assert_in_range(gp_sim_result(sim, i)->work_ns, turns / 2 * 2048 * US - 3 * MS,
				turns / 2 * 2048 * US + 3 * MS);
}

SIM_TEST(slices_set_the_shares)
{
	struct gp_sim *sim = MAKE_SIM(&plain, closed_loop(100 * MS),
				      LOOP(100 * MS, .slice_us = 1000 /* the program's own */));

	attach_at(sim, 0, 0);
	attach(sim, 1);
	run_to(sim, 300 * MS);
	assert_int_equal(observe(sim, 0, 300 * MS).run_ns, 200 * MS);
	assert_int_equal(observe(sim, 1, 300 * MS).run_ns, 100 * MS);
	assert_int_equal(observe(sim, 1, 300 * MS).slice_us, 0); /* it was not changed */
	set_slice(sim, 0, 1000, 300 * MS);
	set_slice(sim, 1, 4000, 300 * MS);
	run_to(sim, 800 * MS);
	assert_int_equal(observe(sim, 1, 800 * MS).slice_us, 4000);
	assert_in_range(observe(sim, 0, 800 * MS).run_ns, 298 * MS, 302 * MS);
	assert_in_range(observe(sim, 1, 800 * MS).run_ns, 498 * MS, 502 * MS);
	set_slice(sim, 1, 0, 800 * MS); /* its slice before it was changed */
	run_to(sim, 1000 * MS);
	assert_int_equal(observe(sim, 1, 1 * S).slice_us, 0);
	assert_in_range(observe(sim, 1, 1 * S).run_ns, 597 * MS, 604 * MS);
}

SIM_TEST(a_new_slice_begins_at_once)
{
	struct gp_sim *sim = MAKE_SIM(&plain, closed_loop(50 * MS), closed_loop(50 * MS));

	attach_at(sim, 0, 0);
	attach(sim, 1);
	set_slice_at(sim, 0, 5000, 1 * MS); /* in the middle of a slice of 2 ms */
	run_to(sim, 6 * MS);
	assert_int_equal(observe(sim, 0, 0).run_ns, 6 * MS);
	assert_true(observe(sim, 1, 0).running);
}

/* The longest of 100 requests beside a closed loop. */
static uint64_t slowest_beside(const struct gp_sim_device *device, uint32_t loop_slice_us,
			       uint64_t hint_ns)
{
	const struct gp_sim_task task[] = {PERIODIC(10 * MS, 100 * US, .hint_ns = hint_ns),
					   LOOP(50 * MS, .slice_us = loop_slice_us)};
	struct gp_sim *sim = new_sim(device, task, 2, 3);
	uint64_t slowest_ns;

	run_to(sim, 1005 * MS);
	assert_in_range(finished(sim, 0), 99, 101);
	slowest_ns = gp_sim_result(sim, 0)->response->max;
	free_sims();
	return slowest_ns;
}

SIM_TEST(a_tiny_slice_gives_way_at_once)
{
	const struct gp_sim_device *device =
		DEVICE(.switch_ns = 168 * US, .switch_idle_ns = 168 * US);

	assert_in_range(slowest_beside(device, 1, 0), 268 * US, 269 * US);
	assert_in_range(slowest_beside(device, 2000, 0), 1500 * US, 2268 * US);
	assert_in_range(slowest_beside(device, 5000, 0), 4000 * US, 5268 * US);
}

SIM_TEST(a_hint_hides_the_launch_and_the_switch)
{
	struct gp_sim_device device = plain;

	device.switch_ns = 168 * US;
	device.switch_idle_ns = device.switch_ns;
	device.launch_ns = 20 * US;
	device.launch_hinted_permille = 600;
	assert_in_range(slowest_beside(&device, 1, 0), 288 * US, 289 * US);
	/* In time: 12 us of launch are left, and the kernel. */
	assert_in_range(slowest_beside(&device, 1, 300 * US), 112 * US, 113 * US);
	/* 100 us before: it hides that much. */
	assert_in_range(slowest_beside(&device, 1, 100 * US), 187 * US, 190 * US);
}

SIM_TEST(waiting_behind_a_hint_is_run_time_but_no_work)
{
	struct gp_sim *sim = MAKE_SIM(&plain, PERIODIC(10 * MS, 100 * US, .hint_ns = 500 * US));
	const struct gp_sim_result *r;

	finish_at(sim, 1 * S);
	r = gp_sim_result(sim, 0);
	assert_in_range(r->finished, 99, 101);
	assert_in_range(r->work_ns, 9900 * US, 10100 * US);
	assert_in_range(r->run_ns, 59 * MS, 61 * MS);
	assert_int_equal(r->response->max, 100 * US);
}

SIM_TEST(a_task_that_falls_idle_yields_the_rest_of_its_slice)
{
	struct gp_sim *sim = MAKE_SIM(&plain, PERIODIC(10 * MS, 1 * MS, .slice_us = 1000000),
				      LOOP(3 * MS, .slice_us = 1));
	uint64_t of_loop_ns;

	finish_at(sim, 1 * S);
	of_loop_ns = gp_sim_result(sim, 1)->work_ns;
	assert_in_range(of_loop_ns, 898 * MS, 902 * MS);
	assert_int_equal(gp_sim_totals(sim)->busy_ns, 1 * S);
	assert_in_range(gp_sim_result(sim, 0)->response->max, 1 * MS, 1 * MS + 1 * US);
}

SIM_TEST(the_context_that_is_still_loaded_costs_no_switch)
{
	struct gp_sim *sim = MAKE_SIM(DEVICE(.switch_ns = 168 * US, .switch_idle_ns = 168 * US),
				      periodic(10 * MS, 1 * MS));

	finish_at(sim, 1 * S);
	assert_int_equal(gp_sim_totals(sim)->switches, 1);
	assert_int_equal(gp_sim_result(sim, 0)->response->max, 1168 * US);
	assert_int_equal(gp_sim_result(sim, 0)->response->min, 1 * MS);
}

SIM_TEST(the_launch_takes_its_time)
{
	struct gp_sim *sim = MAKE_SIM(DEVICE(.launch_ns = 50 * US, .launch_jitter_ns = 20 * US),
				      periodic(10 * MS, 1 * MS));
	const struct gp_hist *response;

	run_to(sim, 10 * S);
	response = gp_sim_result(sim, 0)->response;
	assert_in_range(response->min, 1050 * US, 1051 * US);
	assert_in_range(gp_hist_mean(response), 1068 * US, 1072 * US);
}

SIM_TEST(only_work_that_was_interrupted_must_refill)
{
	struct gp_sim *sim =
		MAKE_SIM(DEVICE(.refill_ns = 500 * US), closed_loop(6 * MS), closed_loop(2 * MS));

	/* 0 runs 2 ms, 1 a whole kernel of 2 ms, 0 refills and does 1.5 ms, 1 a kernel, ... */
	finish_at(sim, 16 * MS);
	assert_int_equal(gp_sim_result(sim, 0)->run_ns, 8 * MS);
	assert_int_equal(gp_sim_result(sim, 0)->work_ns, 6500 * US);
	assert_int_equal(gp_sim_result(sim, 1)->work_ns, 8 * MS);
}

/* Memory, and invalid configurations. */

SIM_TEST(nothing_is_allocated_after_it_was_made)
{
	struct gp_sim_task task[MIX] = {PERIODIC(1 * MS, 300 * US, .hint_ns = 100 * US),
					periodic(1 * MS, 300 * US), closed_loop(3 * MS),
					closed_loop(2 * MS),
					LOOP(50 * MS, .start_ns = 100 * MS, .stop_ns = 1500 * MS)};
	struct gp_sim *sim;
	size_t before;

	task[1].load = GP_LOAD_POISSON;
	sim = new_sim(&gp_sim_h200, task, MIX, 1);
	attach_at(sim, 2, 0);
	before = mallinfo2().uordblks;
	for (uint64_t at_ns = 0; at_ns < 20 * S; at_ns += 10 * MS) {
		run_to(sim, at_ns);
		observe(sim, 2, at_ns);
		if (at_ns / (10 * MS) % 2)
			hold(sim, 2, at_ns);
		else
			release(sim, 2, at_ns);
	}
	gp_sim_finish(sim, gp_sim_advance(sim, 0));
	assert_int_equal(mallinfo2().uordblks, before);
	assert_true(gp_sim_totals(sim)->events > 10000);
}

/* The result of making a simulation of one task. */
static int try_sim(const struct gp_sim_device *device, const struct gp_sim_task *task)
{
	const struct gp_sim_config config = {.device = *device, .task = task, .ntasks = 1};
	struct gp_sim *sim = NULL;
	int rc = gp_sim_new(&config, &sim);

	assert_int_equal(sim != NULL, rc == 0);
	gp_sim_free(sim);
	return rc;
}

SIM_TEST(what_makes_no_sense_is_refused)
{
	const struct gp_sim_task good = periodic(1 * MS, 1 * MS);
	const struct gp_sim_task bad[] = {periodic(1 * MS, 0),
					  LOOP(0, .every_ns = 1 * MS),
					  periodic(0, 1 * MS),
					  {.load = GP_LOAD_POISSON, .kernel_ns = 1 * MS}};
	const struct gp_sim_task without_period[] = {IDLE, closed_loop(1 * MS)};
	struct gp_sim_device device = plain;

	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(try_sim(&plain, &bad[i]), -EINVAL);
	device.slice_us = 0;
	assert_int_equal(try_sim(&device, &good), -EINVAL);
	assert_int_equal(try_sim(DEVICE_WITH_ACTIVITY(GP_ACTIVITY_SAMPLED), &good), -EINVAL);
	assert_int_equal(try_sim(&plain, &good), 0);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(try_sim(&plain, &without_period[i]), 0);
}
