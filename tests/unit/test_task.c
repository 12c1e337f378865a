/* SPDX-License-Identifier: Apache-2.0 */
/* Class names, and the state of a task as it follows from an observation. */
#include "support/test.h"

#include "task/task.h"

TEST(every_class_is_found_by_its_name)
{
	for (unsigned i = 0; i < GP_CLASSES; i++)
		assert_int_equal(gp_class_find(gp_class_name(i)), i);
	assert_null(gp_class_words[GP_CLASSES]);
	assert_int_equal(gp_class_find("LC"), -1);
	assert_int_equal(gp_class_find(""), -1);
	assert_string_equal(gp_class_name(77), "unmanaged");
}

TEST(the_state_follows_from_what_is_known)
{
	static const struct {
		struct gp_task_condition condition;
		const char *name;
	} all[] = {
		{{0}, "unknown"},
		{{.active = true, .running = true}, "unknown"},
		{{.known = GP_KNOWN_RUNNING, .running = true}, "unknown"},
		{{.known = GP_KNOWN_ACTIVE}, "idle"},
		{{.known = GP_KNOWN_ACTIVE, .active = true, .running = true}, "active"},
		{{.known = GP_KNOWN_ACTIVE | GP_KNOWN_RUNNING, .active = true}, "waiting"},
		{{.known = GP_KNOWN_ACTIVE | GP_KNOWN_RUNNING, .active = true, .running = true},
		 "running"},
		{{.held = true}, "held"},
		{{.held = true, .held_by = GP_HELD_BY_POLICY, .known = GP_KNOWN_ACTIVE}, "held"},
		{{.held = true, .held_by = GP_HELD_BY_POLICY | GP_HELD_BY_USER}, "suspended"},
		{{.held_by = GP_HELD_BY_USER, .known = GP_KNOWN_ACTIVE}, "idle"},
		{{.evicted = true, .known = GP_KNOWN_ACTIVE, .active = true}, "evicted"},
		{{.evicted = true, .held = true, .held_by = GP_HELD_BY_USER}, "suspended"},
	};

	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		assert_string_equal(gp_task_state_name(gp_task_state(&all[i].condition)),
				    all[i].name);
}

TEST(attributes_differ_if_one_differs)
{
	const struct gp_task_attr a = GP_TASK_ATTR_DEFAULT;
	struct gp_task_attr b = a;

	assert_true(gp_task_attr_same(&a, &b));
	b.deadline_ns = 1;
	assert_false(gp_task_attr_same(&a, &b));
	b = a;
	b.gang = 1;
	assert_false(gp_task_attr_same(&a, &b));
}
