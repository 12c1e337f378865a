/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The promises of `mlfq`, on simulated devices of each kind: short tasks are answered sooner than
 * with the driver's sharing or with equal turns, although no attributes are set; long tasks make
 * progress.
 */
#include "sharing.h"

/* Short and long tasks cannot be distinguished if neither activity nor run times are known. */
static bool can_tell(const struct device_kind *kind)
{
	return kind->activity != GP_ACTIVITY_NONE;
}

struct load {
	uint64_t every_ns, kernel_ns; /* of the short task, on average */
	unsigned jobs;                /* beside it */
};

static const struct load loads[] = {
	{20 * MS, 1 * MS, 1}, {20 * MS, 1 * MS, 3},  {50 * MS, 5 * MS, 2}, {200 * MS, 100 * US, 4},
	{10 * MS, 2 * MS, 1}, {10 * MS, 2 * MS, 2},  {10 * MS, 2 * MS, 3}, {10 * MS, 3 * MS, 1},
	{10 * MS, 4 * MS, 1}, {25 * MS, 10 * MS, 1},
};

struct outcome {
	uint64_t p50_ns, p99_ns;
	double kept; /* part of the time, of all jobs */
	double busy;
};

static struct outcome play(const struct device_kind *kind, const struct load *load,
			   const char *policy)
{
	struct outcome o = {0};

	begin_on(kind, 10 * S);
	add(POISSON(load->every_ns, load->kernel_ns), be_attr(100));
	for (unsigned i = 0; i < load->jobs; i++)
		add(busy(13600 * US), be_attr(100));
	finish(policy);
	o.p50_ns = run.task[0].p50_ns;
	o.p99_ns = run.task[0].p99_ns;
	for (unsigned i = 1; i <= load->jobs; i++)
		o.kept += part(&run, i);
	o.busy = o.kept + part(&run, 0);
	if (getenv("GPREEMPT_SHOW"))
		print_message("%-28s %-5s p50 %7.2f p99 %7.2f ms, %4.1f %% kept, %4.1f busy\n",
			      kind->name, policy, (double)o.p50_ns / 1e6, (double)o.p99_ns / 1e6,
			      o.kept, o.busy);
	return o;
}

DEVICE_TEST(short_tasks_are_answered_sooner_without_being_told)
{
	for (size_t i = 0; i < sizeof loads / sizeof *loads; i++) {
		struct outcome none = play(kind, &loads[i], "none");
		struct outcome rr = play(kind, &loads[i], "rr");
		struct outcome mlfq = play(kind, &loads[i], "mlfq");
		/* If stretches count, those of waiting requests are long, and the task
		 * sinks; without slices each costs a hold. */
		bool all = !knows_at_once(kind) || loads[i].every_ns >= 10 * loads[i].kernel_ns;

		if (!can_tell(kind)) {
			assert_int_equal(mlfq.p50_ns, none.p50_ns);
			continue;
		}
		if (mlfq.p50_ns >= none.p50_ns || mlfq.p50_ns > rr.p50_ns ||
		    (all && (mlfq.p99_ns > none.p99_ns || mlfq.p99_ns > rr.p99_ns)))
			fail_msg("%s, load %zu: p50 %.2f and p99 %.2f ms", kind->name, i,
				 (double)mlfq.p50_ns / 1e6, (double)mlfq.p99_ns / 1e6);
		/* No task is held in favour of one that leaves the device idle. */
		if (!knows_at_once(kind) && mlfq.busy < none.busy - 1)
			fail_msg("%s, load %zu: busy for %.1f %%", kind->name, i, mlfq.busy);
		/* Holds cost more if the end of a request is not signalled. */
		if (all && mlfq.kept < none.kept - 10)
			fail_msg("%s, load %zu: jobs keep %.1f %%", kind->name, i, mlfq.kept);
	}
}

/* Equal tasks that pause too briefly for a sample to see it: turns would leave the device idle. */
TEST(no_task_is_held_for_one_that_leaves_the_device_idle)
{
	const struct device_kind *kind = device_named("slices, sampled activity");
	const struct gp_sim_task sets[][3] = {
		{LOOP(20 * MS, .gap_ns = 20 * MS), LOOP(20 * MS, .gap_ns = 20 * MS)},
		{LOOP(20 * MS, .gap_ns = 20 * MS), LOOP(20 * MS, .gap_ns = 20 * MS),
		 POISSON(20 * MS, 1 * MS)},
		{POISSON(10 * MS, 3 * MS), POISSON(10 * MS, 3 * MS)},
		{POISSON(10 * MS, 2 * MS), POISSON(10 * MS, 2 * MS), POISSON(20 * MS, 1 * MS)},
	};

	for (size_t s = 0; s < sizeof sets / sizeof *sets; s++) {
		uint32_t n = sets[s][2].kernel_ns ? 3 : 2;
		double busy_part[2] = {0}, p50_ms[2][3];

		for (int mlfq = 0; mlfq < 2; mlfq++) {
			begin_on(kind, 60 * S);
			for (uint32_t i = 0; i < n; i++)
				add(sets[s][i], be_attr(100));
			finish(mlfq ? "mlfq" : "none");
			for (uint32_t i = 0; i < n; i++) {
				busy_part[mlfq] += part(&run, i);
				p50_ms[mlfq][i] = (double)run.task[i].p50_ns / 1e6;
			}
		}
		if (busy_part[1] < busy_part[0] - 1)
			fail_msg("set %zu: busy for %.1f %%, not %.1f", s, busy_part[1],
				 busy_part[0]);
		for (uint32_t i = 0; i < n; i++)
			if (p50_ms[1][i] > 1.1 * p50_ms[0][i])
				fail_msg("set %zu: p50 of task %u is %.1f ms, not %.1f", s, i,
					 p50_ms[1][i], p50_ms[0][i]);
	}
}

/* A job with pauses gets less than one without; that is no reason to exchange their levels. */
TEST(two_unequal_jobs_do_not_disturb_a_short_task)
{
	const struct device_kind *kind = device_named("slices, sampled activity");
	uint64_t p50_ns[2], p99_ns[2];

	for (int mlfq = 0; mlfq < 2; mlfq++) {
		begin_on(kind, 60 * S);
		add(POISSON(10 * MS, 2 * MS), be_attr(100));
		add(LOOP(5 * MS, .gap_ns = 1 * MS), be_attr(100));
		add(busy(13600 * US), be_attr(100));
		finish(mlfq ? "mlfq" : "none");
		p50_ns[mlfq] = run.task[0].p50_ns;
		p99_ns[mlfq] = run.task[0].p99_ns;
	}
	assert_true(p50_ns[1] < p50_ns[0] * 2 / 3);
	assert_true(p99_ns[1] < p99_ns[0]);
}

/*
 * Random requests with four fifths of an equal part on average, sometimes more. Until the jobs have
 * sunk, requests wait and must be caught up with.
 */
TEST(one_that_takes_a_little_less_than_the_others_stays_at_the_top)
{
	for (uint64_t seed = 1; seed <= 8; seed++) {
		begin_on(device_named("slices, sampled activity"), 60 * S);
		scenario.seed = seed;
		add(POISSON(10 * MS, 2 * MS), be_attr(100));
		for (int i = 0; i < 3; i++)
			add(busy(13600 * US), be_attr(100));
		finish("mlfq");
		if (run.task[0].p50_ns > 5 * MS || run.task[0].p99_ns > 60 * MS)
			fail_msg("seed %llu: p50 %.1f, p99 %.1f ms", (unsigned long long)seed,
				 (double)run.task[0].p50_ns / 1e6,
				 (double)run.task[0].p99_ns / 1e6);
	}
}

DEVICE_TEST(jobs_of_equal_length_share)
{
	begin_on(kind, 10 * S);
	for (int i = 0; i < 3; i++)
		add(busy(13600 * US), be_attr(100));
	finish("mlfq");
	for (uint32_t i = 0; i < 3; i++)
		assert_part(kind, i, kind->activity ? 32 : 30, 4);
}

/* Four short tasks that together want the whole device. */
DEVICE_TEST(a_long_job_goes_on_beside_short_ones_that_never_all_pause)
{
	begin_on(kind, 20 * S);
	for (int i = 0; i < 4; i++)
		add(POISSON(16 * MS, 4 * MS), be_attr(100));
	add(busy(5 * MS), be_attr(100));
	finish("mlfq");
	if (part(&run, 4) < 1)
		fail_msg("%s: the job got %.2f %%", kind->name, part(&run, 4));
}

DEVICE_TEST(a_task_that_works_now_and_then_gets_more_done_than_with_equal_turns)
{
	double got[2];

	for (int mlfq = 0; mlfq < 2; mlfq++) {
		struct gp_sim_task burst = busy(5 * MS);

		burst.gap_ns = 33 * MS;
		begin_on(kind, 10 * S);
		add(burst, be_attr(100));
		for (int i = 0; i < 3; i++)
			add(busy(13600 * US), be_attr(100));
		finish(mlfq ? "mlfq" : "rr");
		got[mlfq] = part(&run, 0);
	}
	if (can_tell(kind) && got[1] < 1.1 * got[0])
		fail_msg("%s: %.1f %% with mlfq, %.1f with rr", kind->name, got[1], got[0]);
}

/* Each gap is filled by the first of them: the second is released for it and gets nothing. */
TEST(no_task_starves_in_gaps_that_others_fill)
{
	static const struct {
		uint64_t release_us, gap_us;
	} pair[] = {{400, 1200}, {1000, 1500}, {1000, 2000}, {3000, 1200}};

	for (size_t i = 0; i < sizeof pair / sizeof *pair; i++) {
		const struct device_kind holds = {.activity = GP_ACTIVITY_EVENTS};

		begin_on(&holds, 15 * S);
		scenario.device.slices = false;
		scenario.device.hold_ns = 500 * US;
		scenario.device.release_ns = pair[i].release_us * US;
		add(LOOP(9 * MS, .gap_ns = pair[i].gap_us * US), be_attr(100));
		add(busy(13600 * US), be_attr(100));
		add(busy(13600 * US), be_attr(100));
		finish("mlfq"); /* fails if the policy is ejected */
		assert_true(run.task[1].work_ns && run.task[2].work_ns);
	}
}
