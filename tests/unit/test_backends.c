/* SPDX-License-Identifier: Apache-2.0 */
/* Which back ends are in use: those for real GPUs, or the one that somebody selected. */
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
	setenv("GPREEMPT_GPU", "", 1); /* says nothing: what somebody selected stays */
	assert_int_equal(gp_backends_select_by_environment(&err), 0);
	assert_true(uses("sim"));
	assert_int_equal(gp_backends_select(NULL), 0);
}
