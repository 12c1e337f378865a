/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One world (property_world.h) for single claims about policies: tasks are added, work or are idle,
 * time passes, and the engine is called exactly when it asks for it. The general rules are checked
 * as in the random sequences.
 */
#ifndef GP_TESTS_PROPERTY_STAGE_H
#define GP_TESTS_PROPERTY_STAGE_H

#include "property_world.h"

static struct world stage;

static const struct model_profile best_device = {
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

static inline struct model_profile device_without_slices(void)
{
	struct model_profile p = best_device;

	p.slices = p.slice_seen = false;
	return p;
}

static inline void open_stage(const char *policy, const struct model_profile *profile)
{
	struct gp_policy_choice choice;

	assert_int_equal(gp_policy_parse(policy, &choice, NULL), 0);
	assert_int_equal(world_init(&stage, &choice, profile, 1), 0);
}

static inline void close_stage(void)
{
	gp_engine_free(stage.engine);
	if (stage.failure[0])
		fail_msg("%s", stage.failure);
}

/* Adds a task; the engine sees it. */
static inline uint32_t cast_gang(uint8_t class, uint8_t priority, bool busy, uint64_t gang)
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

static inline uint32_t cast(uint8_t class, bool busy)
{
	return cast_gang(class, 0, busy, 0);
}

/* The engine is called exactly when it asks for it. */
static inline void play_us(uint64_t us)
{
	uint64_t end_ns = stage.model.now_ns + us * GP_NS_PER_US;

	tick(&stage);
	while (stage.model.now_ns < end_ns) {
		uint64_t next_ns = gp_engine_next_ns(stage.engine);

		pass_time(&stage, next_ns < end_ns ? next_ns : end_ns);
		tick(&stage);
	}
}

static inline void play(uint64_t ms)
{
	play_us(ms * 1000);
}

static inline void set_busy(uint32_t i, bool busy)
{
	model_set_active(&stage.model, i, busy);
}

static inline bool held(uint32_t i)
{
	return stage.model.task[i].held;
}

static inline uint32_t slice_of(uint32_t i)
{
	return stage.model.task[i].slice_us;
}

/* Its part of the device in the next `ms`, in thousandths. */
static inline unsigned permille_of_the_next(uint32_t i, uint64_t ms)
{
	uint64_t before_ns = stage.model.task[i].run_ns;

	play(ms);
	return (unsigned)((stage.model.task[i].run_ns - before_ns) * 1000 / (ms * MS));
}

#endif
