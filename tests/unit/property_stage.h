/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One world (property_world.h) for single claims about policies: tasks are added, work or are idle,
 * time passes, and the engine is called exactly when it asks for it. The general rules are checked
 * as in the random sequences.
 */
#ifndef GP_TESTS_PROPERTY_STAGE_H
#define GP_TESTS_PROPERTY_STAGE_H

#include "support/test.h"

#include "property_world.h"

extern struct world stage;

extern const struct model_profile best_device;
struct model_profile device_without_slices(void);
void open_stage(const char *policy, const struct model_profile *profile);
void close_stage(void);

/* A test with an open stage. */
#define STAGE_TEST(function, policy, profile)                  \
	static void function##_on_stage(void);                 \
	TEST(function)                                         \
	{                                                      \
		const struct model_profile profile_ = profile; \
                                                               \
		open_stage(policy, &profile_);                 \
		function##_on_stage();                         \
		close_stage();                                 \
	}                                                      \
	static void function##_on_stage(void)

/* Adds a task; the engine sees it. */
uint32_t cast_gang(uint8_t class, uint8_t priority, bool busy, uint64_t gang);

static inline uint32_t cast(uint8_t class, bool busy)
{
	return cast_gang(class, 0, busy, 0);
}

/* The engine is called exactly when it asks for it. */
void play_us(uint64_t us);

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
unsigned permille_of_the_next(uint32_t i, uint64_t ms);

#endif
