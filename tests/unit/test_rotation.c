/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns by holds, as `rr` takes them without slices, and `edf` and `lax` for tasks without a
 * promise: the effect of a pause on a turn.
 */
#include "sharing.h"

static const char *const policies[] = {"rr", "edf", "lax"};

#define POLICIES (sizeof policies / sizeof *policies)

static bool takes_turns(const struct device_kind *kind, const char *policy)
{
	return knows_at_once(kind) && !(kind->slices && !strcmp(policy, "rr"));
}

static void show(const struct device_kind *kind, const char *policy)
{
	if (getenv("GPREEMPT_SHOW"))
		print_message(
			"%-28s %-4s %4llu done, %4llu left, p50 %7.1f ms, %4.1f and %4.1f %%\n",
			kind->name, policy, (unsigned long long)run.task[0].finished,
			(unsigned long long)run.task[0].left, (double)run.task[0].p50_ns / 1e6,
			part(&run, 0), part(&run, 1));
}

/* Ten requests a second, each of 40 kernels with short host times in between. */
DEVICE_TEST(a_request_of_many_kernels_is_done_in_a_turn_or_two)
{
	for (size_t i = 0; i < POLICIES; i++) {
		if (!takes_turns(kind, policies[i]))
			continue;
		begin_on(kind, 20 * S);
		add(POISSON(100 * MS, 50 * US, .kernels = 40, .kernel_gap_ns = 30 * US),
		    be_attr(100));
		add(busy(13600 * US), be_attr(100));
		finish(policies[i]);
		show(kind, policies[i]);
		if (run.task[0].left > 5 || run.task[0].p50_ns > 250 * MS)
			fail_msg("%s, %s: %llu requests left over", kind->name, policies[i],
				 (unsigned long long)run.task[0].left);
	}
}

DEVICE_TEST(between_two_requests_that_wait_a_turn_is_not_over)
{
	for (size_t i = 0; i < POLICIES; i++) {
		if (!takes_turns(kind, policies[i]))
			continue;
		begin_on(kind, 20 * S);
		add(POISSON(50 * MS, 3 * MS), be_attr(100));
		add(busy(13600 * US), be_attr(100));
		finish(policies[i]);
		show(kind, policies[i]);
		if (run.task[0].left > 5)
			fail_msg("%s, %s: %llu requests left over", kind->name, policies[i],
				 (unsigned long long)run.task[0].left);
	}
}

/* A frame of 4 ms, then 8 ms idle: waiting a millisecond for more would cost 7 % of the job. */
TEST(a_turn_ends_at_once_if_pauses_are_long)
{
	const struct device_kind *kind = device_named("no slices, events");
	begin_on(kind, 20 * S);
	scenario.device.hold_ns = scenario.device.release_ns = 20 * US;
	add(LOOP(4 * MS, .gap_ns = 8 * MS), be_attr(100));
	add(busy(13600 * US), be_attr(100));
	finish("rr");
	show(kind, "rr");
	assert_true(part(&run, 0) + part(&run, 1) > 96);
}
