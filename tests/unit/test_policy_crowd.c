/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules for every policy of the registry with many tasks, on simulated devices of each kind: no
 * task starves, no policy is ejected, and most of the device is left for work.
 */
#include "sharing.h"

#define CROWD 100u

static bool can_load(const struct device_kind *kind, const struct gp_policy_ops *policy)
{
	uint32_t caps = GP_CAP_HOLD | (kind->slices ? GP_CAP_SLICE : 0) |
			(kind->activity ? GP_CAP_ACTIVITY : 0) |
			(kind->activity == GP_ACTIVITY_EVENTS ? GP_CAP_EVENTS : 0);
	uint32_t prompt = knows_at_once(kind) ? caps : caps & ~(uint32_t)GP_CAP_ACTIVITY;

	return !(policy->needs & ~caps) && (!policy->needs_one || (policy->needs_one & prompt));
}

static void crowd_in(const struct device_kind *kind)
{
	begin_on(kind, 20 * S);
	for (uint32_t i = 0; i < CROWD; i++)
		add(busy(2 * MS), be_attr(100));
}

DEVICE_TEST(no_task_starves_among_many_whatever_the_policy)
{
	for (const struct gp_policy_ops *const *p = gp_policies; *p; p++) {
		double sum = 0;

		if (!can_load(kind, *p))
			continue;
		crowd_in(kind);
		finish((*p)->name);
		for (uint32_t i = 0; i < CROWD; i++) {
			if (!run.task[i].finished)
				fail_msg("%s, %s: task %u finished nothing", kind->name, (*p)->name,
					 i);
			sum += part(&run, i);
		}
		if (getenv("GPREEMPT_SHOW"))
			print_message("%-28s %-8s %5.1f %%\n", kind->name, (*p)->name, sum);
		assert_true(sum > 80);
	}
}
