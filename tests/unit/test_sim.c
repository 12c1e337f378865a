/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated device: the same seed gives the same bytes; time is neither lost nor created; a
 * held task stands still and loses nothing; slices and switches cost what the model says; hints
 * hide the switch; unfinished requests are counted exactly; activity is reported according to the
 * mode; control calls take their time one after the other; nothing is allocated during a run.
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
	struct gp_sim_task task[MIX] = {periodic(7 * MS, 1 * MS), periodic(5 * MS, 1 * MS),
					closed_loop(3 * MS), closed_loop(2 * MS),
					closed_loop(50 * MS)};
	struct gp_sim_device device = gp_sim_h200;
	struct gp_sim *sim;
	uint64_t hash = 1;

	device.activity = GP_ACTIVITY_EVENTS;
	task[0].hint_ns = 500 * US;
	task[1].load = GP_LOAD_POISSON;
	task[3].gap_ns = 4 * MS;
	task[4].start_ns = 100 * MS;
	task[4].stop_ns = 1500 * MS;
	sim = new_sim(&device, task, MIX, seed);
	gp_sim_set_watch(sim, hash_event, &hash);
	run_to(sim, 0);
	attach(sim, 2);
	attach(sim, 3);
	for (uint64_t at_ns = 0; at_ns < 2 * S; at_ns += 50 * MS) {
		run_to(sim, at_ns);
		hold(sim, 2, at_ns);
		set_slice(sim, 3, (uint32_t)(1 + at_ns / MS), at_ns);
		run_to(sim, at_ns + 20 * MS);
		release(sim, 2, at_ns + 20 * MS);
	}
	gp_sim_finish(sim, gp_sim_advance(sim, 0));
	for (uint32_t i = 0; i < MIX; i++)
		take_outcome(sim, i, &outcome[i]);
	*totals = *gp_sim_totals(sim);
	gp_sim_free(sim);
	return hash;
}

TEST(the_same_seed_gives_the_same_results_and_another_seed_others)
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

TEST(watching_changes_nothing)
{
	const struct gp_sim_task task[] = {periodic(7 * MS, 1 * MS), closed_loop(3 * MS)};
	struct gp_sim *watched = new_sim(&gp_sim_h200, task, 2, 1);
	struct gp_sim *alone = new_sim(&gp_sim_h200, task, 2, 1);
	uint64_t hash = 1;

	gp_sim_set_watch(watched, hash_event, &hash);
	run_to(watched, 1 * S);
	run_to(alone, 1 * S);
	assert_memory_equal(gp_sim_totals(watched), gp_sim_totals(alone),
			    sizeof(struct gp_sim_totals));
	gp_sim_free(watched);
	gp_sim_free(alone);
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

TEST(time_is_neither_lost_nor_made)
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
		run_to(sim, 1 * S);
		gp_sim_finish(sim, 1 * S);
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
		gp_sim_free(sim);
	}
}

TEST(a_closed_loop_by_itself_keeps_the_device_busy)
{
	const struct gp_sim_task task[] = {closed_loop(3 * MS)};
	struct gp_sim *sim = new_sim(&gp_sim_h200, task, 1, 1);

	run_to(sim, 1 * S);
	gp_sim_finish(sim, 1 * S);
	assert_int_equal(gp_sim_totals(sim)->switches, 1); /* to be loaded at first */
	assert_int_equal(gp_sim_totals(sim)->switch_ns, gp_sim_h200.switch_idle_ns);
	assert_int_equal(gp_sim_totals(sim)->busy_ns, 1 * S - gp_sim_h200.switch_idle_ns);
	assert_int_equal(gp_sim_totals(sim)->preemptions, 0);
	assert_int_equal(gp_sim_result(sim, 0)->work_ns, 1 * S - gp_sim_h200.switch_idle_ns);
	assert_int_equal(finished(sim, 0), 333);
	assert_int_equal(gp_sim_result(sim, 0)->left, 1); /* the request in work */
	gp_sim_free(sim);
}

TEST(an_idle_task_and_an_empty_device_do_nothing)
{
	const struct gp_sim_task task[] = {{.load = GP_LOAD_IDLE, .stop_ns = GP_NEVER}};
	struct gp_sim *sim = new_sim(&plain, task, 1, 1);
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
	gp_sim_free(sim);
	gp_sim_free(empty);
	gp_sim_free(NULL);
}

/* Holds. */

TEST(a_held_task_stands_still_and_goes_on_with_nothing_lost)
{
	struct gp_sim_device device = plain;
	const struct gp_sim_task task[] = {closed_loop(10 * MS)};
	struct gp_sim *sim;

	device.refill_ns = 300 * US;
	sim = new_sim(&device, task, 1, 1);
	run_to(sim, 0);
	attach(sim, 0);
	run_to(sim, 4 * MS);
	hold(sim, 0, 4 * MS);
	run_to(sim, 50 * MS);
	assert_true(observe(sim, 0, 50 * MS).held);
	assert_false(observe(sim, 0, 50 * MS).running);
	assert_true(observe(sim, 0, 50 * MS).active);
	assert_int_equal(observe(sim, 0, 50 * MS).run_ns, 4 * MS);
	release(sim, 0, 50 * MS);
	run_to(sim, 56300 * US - 1);
	assert_int_equal(finished(sim, 0), 0);
	run_to(sim, 56300 * US); /* the remaining 6 ms, after the refill */
	assert_int_equal(finished(sim, 0), 1);
	assert_int_equal(gp_sim_result(sim, 0)->work_ns, 10 * MS);
	assert_int_equal(gp_sim_result(sim, 0)->run_ns, 10300 * US);
	assert_int_equal(gp_sim_totals(sim)->preemptions, 1);
	run_to(sim, 66300 * US); /* the next one was not interrupted */
	assert_int_equal(finished(sim, 0), 2);
	gp_sim_free(sim);
}

TEST(a_held_task_gets_nothing_however_often_its_work_arrives)
{
	const struct gp_sim_task task[] = {periodic(10 * MS, 1 * MS), closed_loop(1 * MS)};
	struct gp_sim *sim = new_sim(&plain, task, 2, 1);
	uint64_t before;

	run_to(sim, 0);
	attach(sim, 0);
	run_to(sim, 100 * MS);
	hold(sim, 0, 100 * MS);
	run_to(sim, 100 * MS + 1);
	before = gp_sim_result(sim, 0)->run_ns;
	run_to(sim, 600 * MS);
	assert_int_equal(gp_sim_result(sim, 0)->run_ns, before);
	release(sim, 0, 600 * MS);
	run_to(sim, 1 * S);
	gp_sim_finish(sim, 1 * S);
	assert_in_range(finished(sim, 0), 98, 100); /* it has caught up */
	assert_in_range(gp_sim_result(sim, 0)->response->max, 490 * MS, 515 * MS);
	gp_sim_free(sim);
}

TEST(holding_in_the_middle_of_the_switch_to_it_is_safe)
{
	struct gp_sim_device device = plain;
	const struct gp_sim_task task[] = {closed_loop(10 * MS), closed_loop(10 * MS)};
	struct gp_sim *sim;

	device.switch_ns = 1 * MS;
	device.switch_idle_ns = device.switch_ns;
	sim = new_sim(&device, task, 2, 1);
	run_to(sim, 0);
	attach(sim, 0);
	attach(sim, 1);
	run_to(sim, 3500 * US); /* 0 ran from 1 to 3 ms; the switch to 1 is under way */
	assert_int_equal(gp_sim_totals(sim)->switches, 2);
	hold(sim, 1, 3500 * US);
	run_to(sim, 3600 * US);
	release(sim, 1, 3600 * US);
	run_to(sim, 3700 * US);
	hold(sim, 1, 3700 * US);
	run_to(sim, 100 * MS);
	assert_int_equal(gp_sim_result(sim, 1)->run_ns, 0);
	assert_int_equal(gp_sim_totals(sim)->switches, 3);
	release(sim, 1, 100 * MS);
	run_to(sim, 200 * MS);
	assert_true(gp_sim_result(sim, 1)->run_ns > 30 * MS);
	gp_sim_free(sim);
}

TEST(a_hold_that_is_over_before_the_switch_is_has_no_effect)
{
	struct gp_sim_device device = plain;
	struct gp_sim_task task[] = {closed_loop(10 * MS), closed_loop(1 * MS)};
	struct gp_sim *sim[2];

	task[1].gap_ns = 20 * MS;
	device.switch_ns = 1 * MS;
	device.switch_idle_ns = device.switch_ns;
	for (int i = 0; i < 2; i++) {
		sim[i] = new_sim(&device, task, 2, 1);
		run_to(sim[i], 3500 * US); /* the switch to 1 is under way */
		attach(sim[i], 1);
		if (i) {
			hold(sim[i], 1, 3500 * US);
			run_to(sim[i], 3600 * US);
			assert_true(observe(sim[i], 1, 3600 * US).held);
			release(sim[i], 1, 3600 * US);
		}
		run_to(sim[i], 500 * MS);
		gp_sim_finish(sim[i], 500 * MS);
	}
	for (uint32_t t = 0; t < 2; t++) {
		struct outcome o[2];

		take_outcome(sim[0], t, &o[0]);
		take_outcome(sim[1], t, &o[1]);
		assert_memory_equal(&o[0], &o[1], sizeof o[0]);
	}
	assert_int_equal(gp_sim_totals(sim[0])->preemptions, gp_sim_totals(sim[1])->preemptions);
	assert_int_equal(gp_sim_totals(sim[0])->switches, gp_sim_totals(sim[1])->switches);
	gp_sim_free(sim[0]);
	gp_sim_free(sim[1]);
}

TEST(nobody_is_preempted_for_one_that_is_held_while_it_waits)
{
	const struct gp_sim_task task[] = {closed_loop(50 * MS), closed_loop(50 * MS)};
	struct gp_sim *sim = new_sim(&plain, task, 2, 1);

	run_to(sim, 0);
	attach(sim, 1);
	run_to(sim, 1 * MS);
	hold(sim, 1, 1 * MS);
	run_to(sim, 40 * MS);
	assert_int_equal(gp_sim_totals(sim)->preemptions, 0);
	gp_sim_finish(sim, 40 * MS);
	assert_int_equal(gp_sim_result(sim, 0)->run_ns, 40 * MS);
	gp_sim_free(sim);
}

/* Slices and switches. */

TEST(two_closed_loops_share_equally)
{
	const struct gp_sim_task task[] = {closed_loop(7 * MS), closed_loop(300 * US)};
	struct gp_sim_device device = gp_sim_h200;
	struct gp_sim *sim;
	uint64_t turns;

	device.refill_ns = 0;
	sim = new_sim(&device, task, 2, 1);
	run_to(sim, 1 * S);
	gp_sim_finish(sim, 1 * S);
	turns = 1 * S / (2048 * US + 168 * US);
	assert_in_range(gp_sim_totals(sim)->switches, turns, turns + 1);
	assert_in_range(gp_sim_totals(sim)->preemptions, turns - 1, turns + 1);
	for (uint32_t i = 0; i < 2; i++)
		assert_in_range(gp_sim_result(sim, i)->work_ns, turns / 2 * 2048 * US - 3 * MS,
				turns / 2 * 2048 * US + 3 * MS);
	gp_sim_free(sim);
}

TEST(slices_set_the_shares)
{
	struct gp_sim_task task[] = {closed_loop(100 * MS), closed_loop(100 * MS)};
	struct gp_sim *sim;

	task[1].slice_us = 1000; /* the program's own slice */
	sim = new_sim(&plain, task, 2, 1);
	run_to(sim, 0);
	attach(sim, 0);
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
	gp_sim_free(sim);
}

TEST(a_new_slice_begins_at_once)
{
	const struct gp_sim_task task[] = {closed_loop(50 * MS), closed_loop(50 * MS)};
	struct gp_sim *sim = new_sim(&plain, task, 2, 1);

	run_to(sim, 0);
	attach(sim, 0);
	attach(sim, 1);
	run_to(sim, 1 * MS); /* in the middle of a slice of 2 ms */
	set_slice(sim, 0, 5000, 1 * MS);
	run_to(sim, 6 * MS);
	assert_int_equal(observe(sim, 0, 0).run_ns, 6 * MS);
	assert_true(observe(sim, 1, 0).running);
	gp_sim_free(sim);
}

/* The longest of 100 requests beside a closed loop. */
static uint64_t slowest_beside(const struct gp_sim_device *device, uint32_t loop_slice_us,
			       uint64_t hint_ns)
{
	struct gp_sim_task task[] = {periodic(10 * MS, 100 * US), closed_loop(50 * MS)};
	struct gp_sim *sim;
	uint64_t slowest_ns;

	task[0].hint_ns = hint_ns;
	task[1].slice_us = loop_slice_us;
	sim = new_sim(device, task, 2, 3);
	run_to(sim, 1005 * MS);
	assert_in_range(finished(sim, 0), 99, 101);
	slowest_ns = gp_sim_result(sim, 0)->response->max;
	gp_sim_free(sim);
	return slowest_ns;
}

TEST(a_tiny_slice_gives_way_at_once)
{
	struct gp_sim_device device = plain;

	device.switch_ns = 168 * US;
	device.switch_idle_ns = device.switch_ns;
	assert_in_range(slowest_beside(&device, 1, 0), 268 * US, 269 * US);
	assert_in_range(slowest_beside(&device, 2000, 0), 1500 * US, 2268 * US);
	assert_in_range(slowest_beside(&device, 5000, 0), 4000 * US, 5268 * US);
}

TEST(a_hint_hides_the_launch_and_the_switch)
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

TEST(waiting_behind_a_hint_is_run_time_but_no_work)
{
	struct gp_sim_task task[] = {periodic(10 * MS, 100 * US)};
	struct gp_sim *sim;
	const struct gp_sim_result *r;

	task[0].hint_ns = 500 * US;
	sim = new_sim(&plain, task, 1, 1);
	run_to(sim, 1 * S);
	gp_sim_finish(sim, 1 * S);
	r = gp_sim_result(sim, 0);
	assert_in_range(r->finished, 99, 101);
	assert_in_range(r->work_ns, 9900 * US, 10100 * US);
	assert_in_range(r->run_ns, 59 * MS, 61 * MS);
	assert_int_equal(r->response->max, 100 * US);
	gp_sim_free(sim);
}

TEST(a_task_that_falls_idle_yields_the_rest_of_its_slice)
{
	struct gp_sim_task task[] = {periodic(10 * MS, 1 * MS), closed_loop(3 * MS)};
	struct gp_sim *sim;
	uint64_t of_loop_ns;

	task[0].slice_us = 1000000;
	task[1].slice_us = 1;
	sim = new_sim(&plain, task, 2, 1);
	run_to(sim, 1 * S);
	gp_sim_finish(sim, 1 * S);
	of_loop_ns = gp_sim_result(sim, 1)->work_ns;
	assert_in_range(of_loop_ns, 898 * MS, 902 * MS);
	assert_int_equal(gp_sim_totals(sim)->busy_ns, 1 * S);
	assert_in_range(gp_sim_result(sim, 0)->response->max, 1 * MS, 1 * MS + 1 * US);
	gp_sim_free(sim);
}

TEST(the_context_that_is_still_loaded_costs_no_switch)
{
	struct gp_sim_device device = plain;
	const struct gp_sim_task task[] = {periodic(10 * MS, 1 * MS)};
	struct gp_sim *sim;

	device.switch_ns = 168 * US;
	device.switch_idle_ns = device.switch_ns;
	sim = new_sim(&device, task, 1, 1);
	run_to(sim, 1 * S);
	gp_sim_finish(sim, 1 * S);
	assert_int_equal(gp_sim_totals(sim)->switches, 1);
	assert_int_equal(gp_sim_result(sim, 0)->response->max, 1168 * US);
	assert_int_equal(gp_sim_result(sim, 0)->response->min, 1 * MS);
	gp_sim_free(sim);
}

TEST(the_launch_takes_its_time)
{
	struct gp_sim_device device = plain;
	const struct gp_sim_task task[] = {periodic(10 * MS, 1 * MS)};
	struct gp_sim *sim;
	const struct gp_hist *response;

	device.launch_ns = 50 * US;
	device.launch_jitter_ns = 20 * US;
	sim = new_sim(&device, task, 1, 1);
	run_to(sim, 10 * S);
	response = gp_sim_result(sim, 0)->response;
	assert_in_range(response->min, 1050 * US, 1051 * US);
	assert_in_range(gp_hist_mean(response), 1068 * US, 1072 * US);
	gp_sim_free(sim);
}

TEST(only_work_that_was_interrupted_must_refill)
{
	struct gp_sim_device device = plain;
	const struct gp_sim_task task[] = {closed_loop(6 * MS), closed_loop(2 * MS)};
	struct gp_sim *sim;

	device.refill_ns = 500 * US;
	sim = new_sim(&device, task, 2, 1);
	/* 0 runs 2 ms, 1 a whole kernel of 2 ms, 0 refills and does 1.5 ms, 1 a kernel, ... */
	run_to(sim, 16 * MS);
	gp_sim_finish(sim, 16 * MS);
	assert_int_equal(gp_sim_result(sim, 0)->run_ns, 8 * MS);
	assert_int_equal(gp_sim_result(sim, 0)->work_ns, 6500 * US);
	assert_int_equal(gp_sim_result(sim, 1)->work_ns, 8 * MS);
	gp_sim_free(sim);
}

/* Programs. */

struct presence {
	unsigned gone;
	uint64_t gone_ns;
};

static void note_presence(void *arg, const struct gp_sim_event *e)
{
	struct presence *p = arg;

	p->gone += e->what == GP_SIM_GONE;
	if (e->what == GP_SIM_GONE)
		p->gone_ns = e->now_ns;
}

TEST(tasks_start_and_stop_at_their_time)
{
	struct gp_sim_task task[] = {closed_loop(1 * MS), closed_loop(1 * MS), closed_loop(1 * MS)};
	struct presence p = {0};
	struct gp_sim *sim;
	struct gp_seen seen[3] = {0};
	uint32_t handle;
	bool rescan;

	task[1].start_ns = 100 * MS;
	task[1].stop_ns = 200 * MS;
	task[2].start_ns = task[2].stop_ns = 50 * MS; /* never present */
	strcpy(task[1].name, "guest");
	sim = new_sim(&plain, task, 3, 1);
	gp_sim_set_watch(sim, note_presence, &p);
	run_to(sim, 100 * MS - 1);
	assert_int_equal(gp_gpu_scan(gp_sim_gpu(sim), 0, seen, 3), 1);
	assert_int_equal(seen[0].key, 1);
	assert_int_equal(gp_gpu_attach(gp_sim_gpu(sim), 2, &handle), -ESRCH);
	run_to(sim, 100 * MS);
	assert_int_equal(gp_gpu_scan(gp_sim_gpu(sim), 0, seen, 1), 2); /* as many as there are */
	assert_int_equal(gp_gpu_scan(gp_sim_gpu(sim), 0, seen, 3), 2);
	assert_int_equal(seen[1].key, 2);
	assert_string_equal(seen[1].name, "guest");
	attach(sim, 1);
	assert_int_equal(gp_gpu_attach(gp_sim_gpu(sim), 2, &handle), -EBUSY);
	assert_int_equal(gp_gpu_attach(gp_sim_gpu(sim), 0, &handle), -ESRCH);
	assert_int_equal(gp_gpu_attach(gp_sim_gpu(sim), 4, &handle), -ESRCH);
	assert_int_equal(gp_sim_advance(sim, 1 * S), 200 * MS); /* an exit is signalled */
	assert_true(gp_sim_take_signal(sim, &rescan));
	assert_true(rescan);
	assert_false(gp_sim_take_signal(sim, &rescan)); /* reading clears it */
	assert_int_equal(gp_gpu_scan(gp_sim_gpu(sim), 0, seen, 3), 1);
	gp_gpu_detach(gp_sim_gpu(sim), 1);
	assert_int_equal(gp_gpu_attach(gp_sim_gpu(sim), 2, &handle), -ESRCH);
	run_to(sim, 400 * MS);
	gp_sim_finish(sim, 400 * MS);
	assert_int_equal(p.gone, 1);
	assert_int_equal(p.gone_ns, 200 * MS);
	assert_in_range(gp_sim_result(sim, 1)->run_ns, 49 * MS, 51 * MS);
	assert_in_range(gp_sim_result(sim, 0)->run_ns, 349 * MS, 351 * MS);
	assert_int_equal(gp_sim_result(sim, 2)->run_ns, 0);
	assert_int_equal(gp_sim_totals(sim)->busy_ns, 400 * MS);
	gp_sim_free(sim);
}

TEST(a_task_can_exit_in_every_state)
{
	for (uint64_t stop_ns = 1; stop_ns < 9 * MS; stop_ns += 250 * US - 1) {
		for (int is_held = 0; is_held < 2; is_held++) {
			struct gp_sim_device device = plain;
			struct gp_sim_task task[] = {closed_loop(3 * MS), closed_loop(2 * MS)};
			struct ledger l = {.running = -1};
			struct gp_sim *sim;

			task[0].gap_ns = 1 * MS;
			device.switch_ns = 1 * MS;
			device.switch_idle_ns = device.switch_ns;
			device.hold_ns = device.release_ns = 500 * US;
			task[0].stop_ns = stop_ns;
			sim = new_sim(&device, task, 2, 1);
			gp_sim_set_watch(sim, keep_ledger, &l);
			run_to(sim, 0);
			attach(sim, 0);
			if (is_held)
				hold(sim, 0, 0);
			run_to(sim, stop_ns - 1);
			release(sim, 0, stop_ns - 1); /* too late for it */
			run_to(sim, 50 * MS);
			gp_gpu_detach(gp_sim_gpu(sim), 0);
			run_to(sim, 100 * MS);
			gp_sim_finish(sim, 100 * MS);
			assert_true(gp_sim_result(sim, 0)->run_ns < stop_ns);
			assert_true(gp_sim_result(sim, 1)->run_ns > 85 * MS);
			gp_sim_free(sim);
		}
	}
}

static void note_first_arrival(void *arg, const struct gp_sim_event *e)
{
	uint64_t *first_ns = arg;

	if (e->what == GP_SIM_REQUEST && *first_ns == GP_NEVER)
		*first_ns = e->arrival_ns;
}

TEST(what_is_left_over_in_overload_is_counted_exactly)
{
	for (int exits = 0; exits < 2; exits++) {
		struct gp_sim_task task[] = {periodic(1 * MS, 3 * MS)};
		uint64_t first_ns = GP_NEVER, arrived;
		struct gp_sim *sim;

		if (exits)
			task[0].stop_ns = 600 * MS;
		sim = new_sim(&plain, task, 1, 5);
		gp_sim_set_watch(sim, note_first_arrival, &first_ns);
		run_to(sim, 900 * MS);
		gp_sim_finish(sim, 900 * MS);
		arrived = ((exits ? 600 : 900) * MS - first_ns + 1 * MS - 1) / (1 * MS);
		assert_int_equal(finished(sim, 0) + gp_sim_result(sim, 0)->left, arrived);
		assert_in_range(finished(sim, 0), exits ? 199 : 299, exits ? 200 : 300);
		/* The response time of the last one has grown by 2 ms for each before it. */
		assert_int_equal(gp_sim_result(sim, 0)->response->max,
				 3 * MS + (finished(sim, 0) - 1) * 2 * MS);
		gp_sim_free(sim);
	}
}

TEST(what_arrives_at_the_very_end_is_not_left_over)
{
	const struct gp_sim_task task[] = {periodic(1 * MS, 3 * MS)};
	struct gp_sim *sim = new_sim(&plain, task, 1, 5);
	uint64_t first_ns = GP_NEVER, end_ns;

	gp_sim_set_watch(sim, note_first_arrival, &first_ns);
	run_to(sim, 10 * MS);
	end_ns = first_ns + 100 * MS;
	run_to(sim, end_ns);
	gp_sim_finish(sim, end_ns);
	assert_int_equal(finished(sim, 0) + gp_sim_result(sim, 0)->left, 100);
	gp_sim_free(sim);
}

TEST(poisson_arrivals_have_their_rate_and_their_spread)
{
	struct gp_sim_task task[] = {periodic(1 * MS, 1 * US)};
	struct gp_sim *sim;
	uint64_t arrived;

	task[0].load = GP_LOAD_POISSON;
	sim = new_sim(&plain, task, 1, 1);
	run_to(sim, 10 * S);
	gp_sim_finish(sim, 10 * S);
	arrived = finished(sim, 0) + gp_sim_result(sim, 0)->left;
	assert_in_range(arrived, 10000 - 400, 10000 + 400); /* four sigma */
	assert_true(arrived != 10000);
	assert_true(gp_sim_result(sim, 0)->response->max > 1 * US); /* some came close together */
	gp_sim_free(sim);

	task[0].kernel_ns = 2 * MS; /* in overload as many arrive */
	sim = new_sim(&plain, task, 1, 1);
	run_to(sim, 10 * S);
	gp_sim_finish(sim, 10 * S);
	assert_in_range(finished(sim, 0), 4990, 5000);
	arrived = finished(sim, 0) + gp_sim_result(sim, 0)->left;
	assert_in_range(arrived, 10000 - 400, 10000 + 400);
	gp_sim_free(sim);
}

TEST(a_periodic_task_has_its_period_at_a_phase_of_its_own)
{
	const struct gp_sim_task task[] = {periodic(10 * MS, 1 * US), periodic(10 * MS, 1 * US)};
	struct gp_sim *sim = new_sim(&plain, task, 2, 1);
	uint64_t next_ns;

	run_to(sim, 0);
	next_ns = gp_sim_next_ns(sim);
	assert_true(next_ns < 10 * MS);
	run_to(sim, next_ns);
	assert_true(gp_sim_next_ns(sim) != next_ns);
	run_to(sim, 1 * S);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(finished(sim, i), 100);
		assert_int_equal(gp_sim_result(sim, i)->response->max, 1 * US);
	}
	gp_sim_free(sim);
}

TEST(a_phase_says_when_the_first_request_comes)
{
	struct gp_sim_task task = periodic(10 * MS, 1 * US);

	for (uint64_t seed = 1; seed <= 3; seed++) {
		struct gp_sim *sim;

		task.phase_ns = 7 * MS;
		task.start_ns = 1 * MS;
		sim = new_sim(&plain, &task, 1, seed);
		run_to(sim, 8 * MS);
		assert_int_equal(finished(sim, 0), 0);
		run_to(sim, 8 * MS + 1 * US);
		assert_int_equal(finished(sim, 0), 1);
		run_to(sim, 18 * MS + 1 * US - 1);
		assert_int_equal(finished(sim, 0), 1);
		run_to(sim, 18 * MS + 1 * US);
		assert_int_equal(finished(sim, 0), 2);
		gp_sim_free(sim);
	}
}

TEST(a_closed_loop_pauses_between_requests)
{
	struct gp_sim_task task[] = {closed_loop(1 * MS)};
	struct gp_sim *sim;

	task[0].gap_ns = 3 * MS;
	sim = new_sim(&plain, task, 1, 1);
	run_to(sim, 1 * S);
	gp_sim_finish(sim, 1 * S);
	assert_int_equal(finished(sim, 0), 250);
	assert_int_equal(gp_sim_result(sim, 0)->response->max, 1 * MS);
	assert_int_equal(gp_sim_totals(sim)->busy_ns, 250 * MS);
	gp_sim_free(sim);
}

/* Observation. */

TEST(without_activity_reports_nothing_is_known)
{
	struct gp_sim_device device = plain;
	const struct gp_sim_task task[] = {closed_loop(1 * MS)};
	struct gp_observation o;
	struct gp_sim *sim;

	device.activity = GP_ACTIVITY_NONE;
	sim = new_sim(&device, task, 1, 1);
	assert_int_equal(gp_sim_gpu(sim)->info.caps, GP_CAP_HOLD | GP_CAP_SLICE);
	run_to(sim, 0);
	attach(sim, 0);
	for (uint64_t at_ns = 0; at_ns < 1 * S; at_ns += 30 * MS) {
		run_to(sim, at_ns);
		o = observe(sim, 0, at_ns);
		assert_int_equal(o.known, GP_KNOWN_HELD | GP_KNOWN_SLICE);
	}
	gp_sim_free(sim);
}

TEST(a_device_says_what_it_can_do)
{
	struct gp_sim_device device = gp_sim_h200;
	struct gp_sim *sim = new_sim(&device, NULL, 0, 1);
	const struct gp_gpu_info *info = &gp_sim_gpu(sim)->info;

	assert_int_equal(info->caps, GP_CAP_HOLD | GP_CAP_SLICE | GP_CAP_ACTIVITY);
	assert_int_equal(info->max_held, device.max_held);
	assert_int_equal(info->slice_default_us, device.slice_us);
	assert_int_equal(info->slice_min_us, 1);
	assert_true(info->slice_max_us >= 1000000);
	assert_int_equal(info->hold_cost_ns, device.hold_ns);
	assert_int_equal(info->release_cost_ns, device.release_ns);
	assert_int_equal(info->slice_cost_ns, device.set_slice_ns);
	assert_int_equal(info->switch_cost_ns, device.switch_ns);
	assert_int_equal(info->sample_period_ns, device.activity_window_ns);
	gp_sim_free(sim);
	device.activity = GP_ACTIVITY_EVENTS;
	device.slices = false;
	device.max_held = 0;
	sim = new_sim(&device, NULL, 0, 1);
	info = &gp_sim_gpu(sim)->info;
	assert_int_equal(info->caps, GP_CAP_ACTIVITY | GP_CAP_EVENTS);
	assert_int_equal(info->max_held, 0);
	assert_int_equal(info->slice_max_us, 0);
	assert_int_equal(info->sample_period_ns, 0);
	gp_sim_free(sim);
}

/* Task 0 is a closed loop, task 1 is idle. */
static struct gp_sim *new_sampled(uint64_t gap_ns)
{
	struct gp_sim_device device = plain;
	struct gp_sim_task task[] = {closed_loop(1 * MS),
				     {.load = GP_LOAD_IDLE, .stop_ns = GP_NEVER}};
	struct gp_sim *sim;

	device.activity = GP_ACTIVITY_SAMPLED;
	device.activity_window_ns = 100 * MS;
	task[0].gap_ns = gap_ns;
	sim = new_sim(&device, task, 2, 1);
	run_to(sim, 0);
	attach(sim, 0);
	attach(sim, 1);
	return sim;
}

TEST(sampled_activity_is_known_after_a_window)
{
	struct gp_sim *sim = new_sampled(3 * MS);
	struct gp_observation o;

	run_to(sim, 100 * MS - 1);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(observe(sim, i, 0).known, GP_KNOWN_HELD | GP_KNOWN_SLICE);
	run_to(sim, 150 * MS);
	o = observe(sim, 0, 150 * MS);
	assert_int_equal(o.known, GP_KNOWN_HELD | GP_KNOWN_SLICE | GP_KNOWN_ACTIVE | GP_KNOWN_RUN);
	assert_true(o.active);
	assert_int_equal(o.run_source, GP_RUN_MEASURED);
	assert_int_equal(o.run_ns, 25 * MS); /* up to the sample, not up to now */
	assert_int_equal(o.run_at_ns, 100 * MS);
	o = observe(sim, 1, 150 * MS);
	assert_true(o.known & GP_KNOWN_ACTIVE); /* the device had time for it */
	assert_false(o.active);
	assert_int_equal(o.run_ns, 0);
	gp_sim_free(sim);
}

TEST(sampled_activity_of_a_held_task_is_not_known)
{
	struct gp_sim *sim = new_sampled(3 * MS);
	struct gp_observation o;

	run_to(sim, 100 * MS);
	assert_true(observe(sim, 0, 0).known & GP_KNOWN_ACTIVE);
	hold(sim, 0, 100 * MS);
	run_to(sim, 110 * MS);
	assert_false(observe(sim, 0, 0).known & GP_KNOWN_ACTIVE); /* at once, not with the window */
	run_to(sim, 310 * MS);
	o = observe(sim, 0, 0);
	assert_false(o.known & GP_KNOWN_ACTIVE);
	assert_true(o.known & GP_KNOWN_RUN);
	assert_int_equal(o.run_at_ns, 300 * MS);
	release(sim, 0, 310 * MS);
	run_to(sim, 320 * MS); /* the last window says nothing */
	assert_false(observe(sim, 0, 0).known & GP_KNOWN_ACTIVE);
	run_to(sim, 400 * MS);
	assert_true(observe(sim, 0, 0).known & GP_KNOWN_ACTIVE);
	assert_true(observe(sim, 0, 0).active);
	gp_sim_free(sim);
}

TEST(a_full_device_says_nothing_of_those_that_did_not_run)
{
	struct gp_sim *sim = new_sampled(0);

	run_to(sim, 100 * MS);
	assert_true(observe(sim, 0, 0).active);
	assert_false(observe(sim, 1, 0).known & GP_KNOWN_ACTIVE); /* idle, or never reached */
	gp_sim_free(sim);
}

TEST(a_task_that_two_others_go_round_past_is_idle)
{
	struct gp_sim_device device = plain;
	const struct gp_sim_task task[] = {closed_loop(1 * MS),
					   {.load = GP_LOAD_IDLE, .stop_ns = GP_NEVER},
					   closed_loop(1 * MS)};
	struct gp_sim *sim;

	device.activity = GP_ACTIVITY_SAMPLED;
	device.activity_window_ns = 100 * MS;
	sim = new_sim(&device, task, 3, 1);
	run_to(sim, 0);
	attach(sim, 1);
	run_to(sim, 100 * MS);
	assert_true(observe(sim, 1, 0).known & GP_KNOWN_ACTIVE);
	assert_false(observe(sim, 1, 0).active);
	gp_sim_free(sim);
}

TEST(a_task_just_released_is_not_called_idle_for_it)
{
	struct gp_sim *sim = new_sampled(3 * MS);

	hold(sim, 1, 0);
	run_to(sim, 90 * MS);
	release(sim, 1, 90 * MS);
	run_to(sim, 110 * MS); /* released for a tenth of the window only */
	assert_false(observe(sim, 1, 0).known & GP_KNOWN_ACTIVE);
	run_to(sim, 210 * MS);
	assert_true(observe(sim, 1, 0).known & GP_KNOWN_ACTIVE);
	assert_false(observe(sim, 1, 0).active);
	gp_sim_free(sim);
}

TEST(exact_activity_is_what_is_true_at_the_moment)
{
	struct gp_sim_task task[] = {closed_loop(1 * MS), closed_loop(100 * MS)};
	struct gp_sim_device device = plain;
	struct gp_sim *sim;
	struct gp_observation o;

	device.switch_ns = 100 * US;
	device.switch_idle_ns = device.switch_ns;
	task[0].gap_ns = 9 * MS;
	task[1].start_ns = 50 * MS;
	sim = new_sim(&device, task, 2, 1);
	run_to(sim, 0);
	attach(sim, 0);
	run_to(sim, 50 * US); /* wants the device, which is switching to it */
	o = observe(sim, 0, 0);
	assert_true(o.active);
	assert_false(o.running);
	assert_int_equal(o.pending, 1);
	assert_int_equal(o.active_since_ns, 0);
	run_to(sim, 600 * US);
	o = observe(sim, 0, 0);
	assert_true(o.active && o.running);
	assert_int_equal(o.run_ns, 500 * US);
	assert_int_equal(o.run_at_ns, 600 * US);
	assert_int_equal(o.run_source, GP_RUN_MEASURED);
	run_to(sim, 1100 * US); /* finished at this moment */
	o = observe(sim, 0, 0);
	assert_false(o.active || o.running);
	assert_int_equal(o.pending, 0);
	assert_false(o.known & GP_KNOWN_ACTIVE_SINCE);
	run_to(sim, 10200 * US);
	o = observe(sim, 0, 0);
	assert_true(o.active && o.running);
	assert_int_equal(o.active_since_ns, 10100 * US);
	run_to(sim, 60 * MS);
	attach(sim, 1); /* run time counts from here */
	assert_int_equal(observe(sim, 1, 0).run_ns, 0);
	run_to(sim, 200 * MS);
	assert_in_range(observe(sim, 1, 0).run_ns, 119 * MS, 126 * MS);
	gp_sim_free(sim);
}

TEST(only_a_device_with_events_signals_changes_of_activity)
{
	struct gp_sim_task task[] = {closed_loop(1 * MS)};
	struct gp_sim_device device = plain;
	struct gp_sim *sim;
	bool rescan;

	task[0].gap_ns = 4 * MS;
	sim = new_sim(&device, task, 1, 1);
	assert_int_equal(gp_sim_advance(sim, 1 * S), 1 * S);
	assert_false(gp_sim_take_signal(sim, &rescan));
	gp_sim_free(sim);

	device.activity = GP_ACTIVITY_EVENTS;
	sim = new_sim(&device, task, 1, 1);
	assert_int_equal(gp_sim_advance(sim, 1 * S), 0); /* it has come, with work */
	assert_int_equal(gp_sim_advance(sim, 1 * S), 0); /* the signal stays until it is read */
	assert_true(gp_sim_take_signal(sim, &rescan));
	assert_true(rescan);
	assert_int_equal(gp_sim_advance(sim, 1 * S), 1 * MS);
	assert_true(gp_sim_take_signal(sim, &rescan));
	assert_false(rescan);
	assert_int_equal(gp_sim_advance(sim, 1 * S), 5 * MS);
	gp_sim_free(sim);
}

/* Control calls. */

TEST(a_control_call_has_its_effect_at_its_end_and_signals_it)
{
	struct gp_sim_device device = plain;
	const struct gp_sim_task task[] = {closed_loop(1 * MS), closed_loop(1 * MS)};
	struct gp_sim *sim;
	bool rescan;

	device.hold_ns = 500 * US;
	device.release_ns = 400 * US;
	device.set_slice_ns = 300 * US;
	sim = new_sim(&device, task, 2, 1);
	run_to(sim, 0);
	attach(sim, 0);
	attach(sim, 1);
	run_to(sim, 10 * MS);
	hold(sim, 0, 10 * MS);
	set_slice(sim, 1, 77, 10 * MS); /* one after the other */
	assert_int_equal(gp_sim_advance(sim, 10 * MS + 499 * US), 10 * MS + 499 * US);
	assert_false(observe(sim, 0, 0).held);
	assert_int_equal(gp_sim_advance(sim, 20 * MS), 10 * MS + 500 * US);
	assert_true(gp_sim_take_signal(sim, &rescan));
	assert_true(observe(sim, 0, 0).held);
	assert_int_equal(observe(sim, 1, 0).slice_us, 0);
	assert_int_equal(gp_sim_advance(sim, 20 * MS), 10 * MS + 800 * US);
	assert_true(gp_sim_take_signal(sim, &rescan));
	assert_int_equal(observe(sim, 1, 0).slice_us, 77);
	run_to(sim, 20 * MS);
	release(sim, 0, 20 * MS);
	assert_int_equal(gp_sim_advance(sim, 30 * MS), 20 * MS + 400 * US);
	assert_false(observe(sim, 0, 0).held);
	gp_sim_free(sim);
}

TEST(one_call_holds_many_but_slices_are_set_one_by_one)
{
	struct gp_sim_device device = plain;
	struct gp_sim_task task[8];
	struct gp_action a[8];
	struct gp_sim *sim;

	device.hold_ns = device.release_ns = device.set_slice_ns = 1 * MS;
	for (int i = 0; i < 8; i++)
		task[i] = closed_loop(1 * MS);
	sim = new_sim(&device, task, 8, 1);
	run_to(sim, 0);
	for (uint32_t i = 0; i < 8; i++) {
		attach(sim, i);
		a[i] = (struct gp_action){.handle = i, .slice_us = 100 + i};
	}
	assert_int_equal(gp_gpu_hold(gp_sim_gpu(sim), 0, a, 8), 0);
	run_to(sim, 1 * MS);
	for (uint32_t i = 0; i < 8; i++)
		assert_true(observe(sim, i, 0).held);
	assert_int_equal(gp_gpu_release(gp_sim_gpu(sim), 1 * MS, a, 8), 0);
	run_to(sim, 2 * MS);
	for (uint32_t i = 0; i < 8; i++)
		assert_false(observe(sim, i, 0).held);
	assert_int_equal(gp_gpu_set_slice(gp_sim_gpu(sim), 2 * MS, a, 8), 0);
	run_to(sim, 5 * MS);
	for (uint32_t i = 0; i < 8; i++)
		assert_int_equal(observe(sim, i, 0).slice_us, i < 3 ? 100 + i : 0);
	gp_sim_free(sim);
}

TEST(too_many_calls_at_once_are_turned_away)
{
	struct gp_sim_device device = plain;
	const struct gp_sim_task task[] = {closed_loop(1 * MS)};
	struct gp_action a = {.handle = 0};
	struct gp_sim *sim;
	unsigned taken = 0;

	device.hold_ns = 1 * MS;
	sim = new_sim(&device, task, 1, 1);
	run_to(sim, 0);
	attach(sim, 0);
	do {
		assert_int_equal(gp_gpu_hold(gp_sim_gpu(sim), 0, &a, 1), 0);
		taken += a.status == -EINPROGRESS;
	} while (a.status == -EINPROGRESS && taken < 100);
	assert_int_equal(a.status, -EAGAIN);
	assert_in_range(taken, 4, 16);
	run_to(sim, 1 * MS); /* one is done: there is room again */
	assert_int_equal(gp_gpu_hold(gp_sim_gpu(sim), 0, &a, 1), 0);
	assert_int_equal(a.status, -EINPROGRESS);
	run_to(sim, 1 * S);
	assert_true(observe(sim, 0, 0).held);
	gp_sim_free(sim);
}

TEST(detaching_puts_a_task_back)
{
	struct gp_sim_task task[] = {closed_loop(100 * MS), closed_loop(100 * MS)};
	struct gp_sim *sim;

	task[0].slice_us = 1000;
	task[1].slice_us = 1000;
	sim = new_sim(&plain, task, 2, 1);
	run_to(sim, 0);
	attach(sim, 0);
	set_slice(sim, 0, 50000, 0);
	hold(sim, 0, 0);
	run_to(sim, 100 * MS);
	gp_gpu_detach(gp_sim_gpu(sim), 0);
	attach(sim, 0);
	assert_false(observe(sim, 0, 0).held);
	assert_int_equal(observe(sim, 0, 0).slice_us, 0);
	run_to(sim, 200 * MS);
	assert_in_range(observe(sim, 0, 0).run_ns, 49 * MS, 51 * MS); /* its own slice */
	gp_sim_free(sim);
}

TEST(a_call_that_comes_after_the_detaching_has_no_effect)
{
	struct gp_sim_device device = plain;
	const struct gp_sim_task task[] = {closed_loop(1 * MS)};
	struct gp_sim *sim;

	device.hold_ns = device.set_slice_ns = 500 * US;
	sim = new_sim(&device, task, 1, 1);
	run_to(sim, 0);
	attach(sim, 0);
	hold(sim, 0, 0);
	set_slice(sim, 0, 77, 0);
	gp_gpu_detach(gp_sim_gpu(sim), 0);
	run_to(sim, 2 * MS);
	attach(sim, 0);
	assert_false(observe(sim, 0, 0).held);
	assert_int_equal(observe(sim, 0, 0).slice_us, 0);
	gp_sim_free(sim);
}

TEST(what_has_not_ended_is_under_way)
{
	struct gp_sim_device device = plain;
	const struct gp_sim_task task[] = {closed_loop(1 * MS), closed_loop(1 * MS)};
	struct gp_sim *sim;

	device.hold_ns = device.release_ns = device.set_slice_ns = 500 * US;
	sim = new_sim(&device, task, 2, 1);
	run_to(sim, 0);
	attach(sim, 0);
	attach(sim, 1);
	assert_int_equal(observe(sim, 0, 0).under_way, 0);
	hold(sim, 0, 0);
	set_slice(sim, 0, 77, 0);
	release(sim, 0, 0);
	assert_int_equal(observe(sim, 0, 0).under_way, GP_UNDER_WAY_HOLD | GP_UNDER_WAY_SLICE);
	assert_int_equal(observe(sim, 1, 0).under_way, 0);
	run_to(sim, 1 * MS);
	assert_int_equal(observe(sim, 0, 0).under_way, GP_UNDER_WAY_HOLD);
	run_to(sim, 1500 * US);
	assert_int_equal(observe(sim, 0, 0).under_way, 0);
	gp_sim_free(sim);
}

/* Memory, and invalid configurations. */

TEST(nothing_is_allocated_after_it_was_made)
{
	struct gp_sim_task task[MIX] = {periodic(1 * MS, 300 * US), periodic(1 * MS, 300 * US),
					closed_loop(3 * MS), closed_loop(2 * MS),
					closed_loop(50 * MS)};
	struct gp_sim *sim;
	size_t before;

	task[0].hint_ns = 100 * US;
	task[1].load = GP_LOAD_POISSON;
	task[4].start_ns = 100 * MS;
	task[4].stop_ns = 1500 * MS;
	sim = new_sim(&gp_sim_h200, task, MIX, 1);
	run_to(sim, 0);
	attach(sim, 2);
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
	gp_sim_free(sim);
}

TEST(what_makes_no_sense_is_refused)
{
	const struct gp_sim_task good = periodic(1 * MS, 1 * MS);
	struct gp_sim_task bad;
	struct gp_sim_config config = {.device = plain, .task = &bad, .ntasks = 1};
	struct gp_sim *sim = NULL;

	bad = good;
	bad.kernel_ns = 0;
	assert_int_equal(gp_sim_new(&config, &sim), -EINVAL);
	bad.load = GP_LOAD_CLOSED;
	assert_int_equal(gp_sim_new(&config, &sim), -EINVAL);
	bad = good;
	bad.every_ns = 0;
	assert_int_equal(gp_sim_new(&config, &sim), -EINVAL);
	bad.load = GP_LOAD_POISSON;
	assert_int_equal(gp_sim_new(&config, &sim), -EINVAL);
	bad = good;
	config.device.slice_us = 0;
	assert_int_equal(gp_sim_new(&config, &sim), -EINVAL);
	config.device = plain;
	config.device.activity = GP_ACTIVITY_SAMPLED;
	config.device.activity_window_ns = 0;
	assert_int_equal(gp_sim_new(&config, &sim), -EINVAL);
	assert_null(sim);
	config.device = plain;
	assert_int_equal(gp_sim_new(&config, &sim), 0);
	gp_sim_free(sim);
	bad = (struct gp_sim_task){.load = GP_LOAD_IDLE}; /* needs no kernel, and no period */
	assert_int_equal(gp_sim_new(&config, &sim), 0);
	gp_sim_free(sim);
	bad = closed_loop(1 * MS); /* no period */
	assert_int_equal(gp_sim_new(&config, &sim), 0);
	gp_sim_free(sim);
}
