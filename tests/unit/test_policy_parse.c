/* SPDX-License-Identifier: Apache-2.0 */
/* A policy by its name, with parameters, as users write it. */
#include "support/test.h"

#include "base/log.h"
#include "policy/registry.h"

TEST(parameters_are_taken_and_others_keep_their_defaults)
{
	struct gp_policy_choice c;
	struct gp_error err = {0};

	assert_int_equal(gp_policy_parse("none", &c, &err), 0);
	assert_ptr_equal(c.ops, &gp_policy_none);
	assert_int_equal(gp_policy_parse("priority:age_after=200:quantum=50", &c, &err), 0);
	assert_ptr_equal(c.ops, &gp_policy_priority);
	for (uint32_t i = 0; i < c.ops->nparam; i++) {
		const struct gp_param *p = &c.ops->param[i];

		assert_int_equal(c.param[i], !strcmp(p->name, "quantum")     ? 50
					     : !strcmp(p->name, "age_after") ? 200
									     : p->def);
	}
	assert_int_equal(err.code, 0);
	for (const struct gp_policy_ops *const *p = gp_policies; *p; p++) {
		assert_ptr_equal(gp_policy_find((*p)->name), *p);
		assert_in_range((*p)->nparam, 0, GP_PARAM_MAX);
		for (uint32_t i = 0; i < (*p)->nparam; i++)
			assert_true((*p)->param[i].min <= (*p)->param[i].def &&
				    (*p)->param[i].def <= (*p)->param[i].max);
	}
}

TEST(what_cannot_be_parsed_is_refused_in_one_sentence)
{
	static const struct {
		const char *text, *says;
	} refused[] = {
		{"", "there is no policy"},
		{"prio", "there is no policy 'prio'"},
		{"priority ", "there is no policy"},
		{"a_name_that_is_longer_than_any_policy", "there is no policy"},
		{"rr:speed=1", "has no parameter 'speed'"},
		{"rr:quant=1000", "has no parameter 'quant'"},
		{"rr:", "has no parameter ''"},
		{"rr:quantum=5000:", "has no parameter ''"},
		{"none:quantum=1", "has no parameter 'quantum'"},
		{"rr:quantum", "needs a value, for example quantum=10000"},
		{"rr:quantum=", "needs a value"},
		{"rr:quantum=fast", "takes a whole number from 1000 to"},
		{"rr:quantum=5000us", "takes a whole number"},
		{"rr:quantum=999", "takes a whole number"},
		{"rr:quantum=10000001", "takes a whole number"},
		{"rr:quantum=99999999999999999999", "takes a whole number"},
		{"priority:tiny_slice=51", "takes a whole number from 1 to 50 us"},
	};

	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
		struct gp_policy_choice c;
		struct gp_error err = {0};
		size_t length;

		assert_int_equal(gp_policy_parse(refused[i].text, &c, &err), -EINVAL);
		assert_int_equal(err.code, -EINVAL);
		if (!strstr(err.text, refused[i].says))
			fail_msg("'%s' is refused with '%s'", refused[i].text, err.text);
		length = strlen(err.text);
		assert_in_range(length, 10, sizeof err.text - 1);
		assert_null(strchr(err.text, '\n'));
		assert_true(err.text[length - 1] != '.' && !strstr(err.text, ". "));
	}
}

TEST_BEGIN
{
	gp_log_set_level(GP_LOG_ERROR);
}
