/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `mlfq` promises, on simulated devices of each kind: short tasks are answered sooner than
 * with the driver's sharing or with equal turns, without anybody having said which they are; long
 * ones go on.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "sharing.h"

/* Nobody can tell short from long where neither activity nor run times are known. */
static bool can_tell(const struct device_kind *kind)
{
	return kind->activity != GP_ACTIVITY_NONE;
}

struct load {
	uint64_t every_ns, kernel_ns; /* of the short one, on average */
	unsigned jobs;                /* beside it */
};

static const struct load loads[] = {
	{20 * MS, 1 * MS, 1}, {20 * MS, 1 * MS, 3}, {50 * MS, 5 * MS, 2}, {200 * MS, 100 * US, 4}};

struct outcome {
	uint64_t p50_ns, p99_ns;
	double kept; /* of the time, by all jobs */
};

static struct outcome play(const struct device_kind *kind, const struct load *load,
                           const char *policy)
{
	struct outcome o = {0};
	struct gp_run run;

	begin(kind, 10 * S);
	add((struct gp_sim_task){.load = GP_LOAD_POISSON,
	                         .every_ns = load->every_ns,
	                         .kernel_ns = load->kernel_ns},
	    be_attr(100));
	for (unsigned i = 0; i < load->jobs; i++)
		add(busy(13600 * US), be_attr(100));
	run = finish(policy);
	o.p50_ns = run.task[0].p50_ns;
	o.p99_ns = run.task[0].p99_ns;
	for (unsigned i = 1; i <= load->jobs; i++)
		o.kept += part(&run, i);
	gp_run_free(&run);
	if (getenv("GPREEMPT_SHOW"))
		print_message("%-28s %-5s p50 %7.2f p99 %7.2f ms, %4.1f %% kept\n", kind->name,
		              policy, (double)o.p50_ns / 1e6, (double)o.p99_ns / 1e6, o.kept);
	return o;
}

static void short_tasks_are_answered_sooner_without_being_told(void **state)
{
	(void)state;
	for (const struct device_kind *kind = device_kinds; kind->name; kind++) {
		for (size_t i = 0; i < sizeof loads / sizeof *loads; i++) {
			struct outcome none = play(kind, &loads[i], "none");
			struct outcome rr = play(kind, &loads[i], "rr");
			struct outcome mlfq = play(kind, &loads[i], "mlfq");

			if (!can_tell(kind)) {
				assert_int_equal(mlfq.p50_ns, none.p50_ns);
				continue;
			}
			if (mlfq.p50_ns >= none.p50_ns || mlfq.p50_ns > rr.p50_ns ||
			    mlfq.p99_ns > none.p99_ns || mlfq.p99_ns > rr.p99_ns)
				fail_msg("%s, load %zu: p50 %.2f and p99 %.2f ms", kind->name, i,
				         (double)mlfq.p50_ns / 1e6, (double)mlfq.p99_ns / 1e6);
			/* Holds cost more where the end of a request does not announce itself. */
			if (mlfq.kept < none.kept - 10)
				fail_msg("%s, load %zu: jobs keep %.1f %%", kind->name, i,
				         mlfq.kept);
		}
	}
}

static void jobs_of_equal_length_share(void **state)
{
	(void)state;
	for (const struct device_kind *kind = device_kinds; kind->name; kind++) {
		struct gp_run run;

		begin(kind, 10 * S);
		for (int i = 0; i < 3; i++)
			add(busy(13600 * US), be_attr(100));
		run = finish("mlfq");
		for (uint32_t i = 0; i < 3; i++)
			assert_part(kind, &run, i, kind->activity ? 32 : 30, 4);
		gp_run_free(&run);
	}
}

/* Four that are short, and together want all there is. */
static void a_long_job_goes_on_beside_short_ones_that_never_all_pause(void **state)
{
	(void)state;
	for (const struct device_kind *kind = device_kinds; kind->name; kind++) {
		struct gp_run run;

		begin(kind, 20 * S);
		for (int i = 0; i < 4; i++)
			add((struct gp_sim_task){.load = GP_LOAD_POISSON,
			                         .every_ns = 16 * MS,
			                         .kernel_ns = 4 * MS},
			    be_attr(100));
		add(busy(5 * MS), be_attr(100));
		run = finish("mlfq");
		if (part(&run, 4) < 1)
			fail_msg("%s: the job got %.2f %%", kind->name, part(&run, 4));
		gp_run_free(&run);
	}
}

static void a_task_that_works_now_and_then_gets_more_done_than_with_equal_turns(void **state)
{
	(void)state;
	for (const struct device_kind *kind = device_kinds; kind->name; kind++) {
		double got[2];

		for (int mlfq = 0; mlfq < 2; mlfq++) {
			struct gp_sim_task burst = busy(5 * MS);
			struct gp_run run;

			burst.gap_ns = 33 * MS;
			begin(kind, 10 * S);
			add(burst, be_attr(100));
			for (int i = 0; i < 3; i++)
				add(busy(13600 * US), be_attr(100));
			run = finish(mlfq ? "mlfq" : "rr");
			got[mlfq] = part(&run, 0);
			gp_run_free(&run);
		}
		if (can_tell(kind) && got[1] < 1.1 * got[0])
			fail_msg("%s: %.1f %% with mlfq, %.1f with rr", kind->name, got[1], got[0]);
	}
}

/* Each gap is filled by the first of them: the second is released for it and gets nothing. */
static void nobody_starves_in_gaps_that_others_fill(void **state)
{
	static const struct {
		uint64_t release_us, gap_us;
	} pair[] = {{400, 1200}, {1000, 1500}, {1000, 2000}, {3000, 1200}};

	(void)state;
	for (size_t i = 0; i < sizeof pair / sizeof *pair; i++) {
		const struct device_kind holds = {.activity = GP_ACTIVITY_EVENTS};
		struct gp_run run;

		begin(&holds, 15 * S);
		scenario.device.slices = false;
		scenario.device.hold_ns = 500 * US;
		scenario.device.release_ns = pair[i].release_us * US;
		add((struct gp_sim_task){.load = GP_LOAD_CLOSED,
		                         .kernel_ns = 9 * MS,
		                         .gap_ns = pair[i].gap_us * US},
		    be_attr(100));
		add(busy(13600 * US), be_attr(100));
		add(busy(13600 * US), be_attr(100));
		run = finish("mlfq"); /* which fails when it is ejected */
		assert_true(run.task[1].work_ns && run.task[2].work_ns);
		gp_run_free(&run);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(short_tasks_are_answered_sooner_without_being_told),
		cmocka_unit_test(nobody_starves_in_gaps_that_others_fill),
		cmocka_unit_test(jobs_of_equal_length_share),
		cmocka_unit_test(a_long_job_goes_on_beside_short_ones_that_never_all_pause),
		cmocka_unit_test(
			a_task_that_works_now_and_then_gets_more_done_than_with_equal_turns),
	};

	gp_log_set_level(GP_LOG_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
