/* SPDX-License-Identifier: Apache-2.0 */
/* Which back ends are in use: those for real GPUs, or the selected one. */
#include "support/test.h"

#include "gpu/backends.h"

static unsigned in_use(void)
{
	unsigned n = 0;

	while (gp_backends[n])
		n++;
	return n;
}

static bool uses(const char *name)
{
	for (unsigned i = 0; gp_backends[i]; i++)
		if (!strcmp(gp_backends[i]->name, name))
			return true;
	return false;
}

TEST(a_simulated_gpu_is_used_only_where_it_is_asked_for)
{
	assert_int_equal(in_use(), 2);
	assert_true(uses("nvidia") && uses("amd"));
	assert_int_equal(gp_backends_select("sim"), 0);
	assert_int_equal(in_use(), 1);
	assert_true(uses("sim"));
	assert_int_equal(gp_backends_select(NULL), 0);
	assert_false(uses("sim"));
}

TEST(one_kind_can_be_selected_and_an_unknown_one_changes_nothing)
{
	assert_int_equal(gp_backends_select("amd"), 0);
	assert_int_equal(gp_backends_select("intel"), -ENOENT);
	assert_int_equal(in_use(), 1);
	assert_true(uses("amd"));
	assert_int_equal(gp_backends_select(NULL), 0);
	assert_int_equal(in_use(), 2);
}

TEST(all_are_found_by_name)
{
	assert_non_null(gp_backend_find("nvidia"));
	assert_non_null(gp_backend_find("amd"));
	assert_non_null(gp_backend_find("sim"));
	assert_null(gp_backend_find("simulated"));
}

TEST(the_environment_selects)
{
	struct gp_error err = {0};

	setenv("GPREEMPT_GPU", "sim", 1);
	assert_int_equal(gp_backends_select_by_environment(&err), 0);
	assert_true(uses("sim"));
	setenv("GPREEMPT_GPU", "intel", 1);
	assert_int_equal(gp_backends_select_by_environment(&err), -ENOENT);
	assert_string_equal(err.text, "GPREEMPT_GPU is 'intel': it can be nvidia, amd or sim");
	assert_true(uses("sim"));
	setenv("GPREEMPT_GPU", "", 1); /* empty: the selection stays */
	assert_int_equal(gp_backends_select_by_environment(&err), 0);
	assert_true(uses("sim"));
	assert_int_equal(gp_backends_select(NULL), 0);
}

TEST(a_missing_function_is_a_missing_capability)
{
	static const struct gp_gpu_ops ops = {.name = "empty"};
	struct gp_gpu gpu = {.ops = &ops, .info.name = "empty"};
	struct gp_action action = {0};
	struct gp_undo undo = {0};
	struct gp_error err = {0};
	struct gp_seen seen;
	unsigned n;

	for (enum gp_act_kind kind = GP_ACT_HOLD; kind <= GP_ACT_SLICE; kind++)
		assert_int_equal(gp_gpu_act(&gpu, 0, kind, &action, 1), -ENOTSUP);
	assert_int_equal(gp_gpu_event_fd(&gpu), -ENOTSUP);
	assert_int_equal(gp_gpu_find(&gpu, 1, &seen, &err), -ENOTSUP);
	assert_int_equal(gp_gpu_queues(&gpu, 1, false, NULL, 0, &err), -ENOTSUP);
	assert_int_equal(gp_gpu_split(&gpu, 1, 0, &seen, &err), -ENOTSUP);
	assert_int_equal(gp_gpu_evicted_ms(&gpu, 1), -ENOTSUP);
	assert_int_equal(gp_gpu_hold_self(&gpu, 0, &err), -ENOTSUP);
	assert_int_equal(gp_gpu_release_self(&gpu, &err), -ENOTSUP);
	assert_int_equal(gp_gpu_set_preempt_type(&gpu, 0, 0), -ENOTSUP);
	assert_int_equal(gp_backend_undo(&ops, &undo, &err), -ENOTSUP);
	assert_int_equal(gp_backend_release_process(&ops, 1, NULL, &err), -ENOTSUP);
	assert_int_equal(gp_backend_make_visible(&ops, 0, "empty", NULL, &err), -ENOTSUP);
	gp_gpu_why(&gpu, 0, &err);
	gp_backend_doctor(&ops, NULL, NULL);
	assert_string_equal(err.text, "");
	assert_string_equal(gp_gpu_preempt_types(&gpu, &n)->name, "save");
	assert_int_equal(n, 1);
}

TEST(each_back_end_has_commands)
{
	static const char *const names[] = {"nvidia", "amd", "sim"};

	for (unsigned i = 0; i < 3; i++) {
		const struct gp_gpu_ops *ops = gp_backend_find(names[i]);

		assert_non_null(ops->act);
		assert_non_null(ops->command->find);
		assert_non_null(ops->command->undo);
		assert_non_null(ops->command->doctor);
	}
}
