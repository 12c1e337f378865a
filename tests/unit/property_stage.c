/* SPDX-License-Identifier: Apache-2.0 */
#include "property_stage.h"

#include "base/log.h"

struct world stage;

const struct model_profile best_device = {
	.slices = true,
	.slice_min_us = 1,
	.slice_max_us = 10000000,
	.slice_us = 2000,
	.slice_us_told = true,
	.max_held = ALL,
	.activity = EXACT,
	.activity_of_held = true,
	.running_seen = true,
	.run = EXACT,
	.held_seen = true,
	.slice_seen = true,
	.finish = AT_ONCE,
};

struct model_profile device_without_slices(void)
{
	struct model_profile p = best_device;

	p.slices = p.slice_seen = false;
	return p;
}

void open_stage(const char *policy, const struct model_profile *profile)
{
	struct gp_policy_choice choice;

	gp_log_set_level(GP_LOG_ERROR);
	assert_int_equal(gp_policy_parse(policy, &choice, NULL), 0);
	assert_int_equal(world_init(&stage, &choice, profile, 1), 0);
}

void close_stage(void)
{
	gp_engine_free(stage.engine);
	if (stage.failure[0])
		fail_msg("%s", stage.failure);
}

uint32_t cast_gang(uint8_t class, uint8_t priority, bool busy, uint64_t gang)
{
	uint32_t i = model_enter(&stage.model);

	stage.subject[i] = (struct subject){.attr = GP_TASK_ATTR_DEFAULT};
	stage.subject[i].attr.class = class;
	stage.subject[i].attr.priority = priority;
	stage.subject[i].attr.gang = gang;
	note_status(&stage, i);
	if (busy)
		model_set_active(&stage.model, i, true);
	gp_engine_trigger(stage.engine, true);
	return i;
}

void play_us(uint64_t us)
{
	uint64_t end_ns = stage.model.now_ns + us * GP_NS_PER_US;

	tick(&stage);
	while (stage.model.now_ns < end_ns) {
		uint64_t next_ns = gp_engine_next_ns(stage.engine);

		pass_time(&stage, next_ns < end_ns ? next_ns : end_ns);
		tick(&stage);
	}
}

unsigned permille_of_the_next(uint32_t i, uint64_t ms)
{
	uint64_t before_ns = stage.model.task[i].run_ns;

	play(ms);
	return (unsigned)((stage.model.task[i].run_ns - before_ns) * 1000 / (ms * MS));
}
