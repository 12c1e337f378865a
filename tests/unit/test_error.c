/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors: a failing path is one line and returns its code; the first sentence wins and the last
 * code does; prefixes go in front; texts too long are cut; names exist for every code.
 */
#include "support/test.h"

#include <limits.h>

#include "base/error.h"

TEST(a_failure_leaves_its_code_and_its_sentence)
{
	struct gp_error err = {0};
	assert_int_equal(gp_fail(&err, -EINVAL, "%s: unknown policy %d", "fifo2", 7), -EINVAL);
	assert_int_equal(err.code, -EINVAL);
	assert_string_equal(err.text, "fifo2: unknown policy 7");
}

TEST(a_failure_without_a_place_to_explain_still_returns_its_code)
{
	assert_int_equal(gp_fail(NULL, -ENOENT, "no %s", "file"), -ENOENT);
	gp_error_prefix(NULL, "ignored");
}

TEST(the_first_sentence_wins_and_the_code_is_the_one_returned_last)
{
	struct gp_error err = {0};
	gp_fail(&err, -EACCES, "cannot open /dev/gpu");
	assert_int_equal(gp_fail(&err, -EIO, "cannot start"), -EIO);
	assert_string_equal(err.text, "cannot open /dev/gpu");
	assert_int_equal(err.code, -EIO);
}

TEST(prefixes_stack_in_front_of_the_sentence)
{
	struct gp_error err = {0};
	gp_fail(&err, -EINVAL, "not a number");
	gp_error_prefix(&err, "line %d", 12);
	gp_error_prefix(&err, "%s", "a.conf");
	assert_string_equal(err.text, "a.conf: line 12: not a number");
	assert_int_equal(err.code, -EINVAL);
}

TEST(a_prefix_may_quote_the_sentence_it_precedes)
{
	struct gp_error err = {0};
	gp_fail(&err, -EINVAL, "bad");
	gp_error_prefix(&err, "seen '%s'", err.text);
	assert_string_equal(err.text, "seen 'bad': bad");
}

TEST(a_prefix_does_nothing_without_an_error)
{
	struct gp_error err = {0};
	gp_error_prefix(&err, "a.conf");
	assert_int_equal(err.code, 0);
	assert_string_equal(err.text, "");
}

TEST(a_sentence_too_long_is_cut_at_the_end)
{
	char word[400];
	memset(word, 'x', sizeof(word) - 1);
	word[sizeof(word) - 1] = '\0';

	struct gp_error err = {0};
	gp_fail(&err, -EINVAL, "%s", word);
	assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
	gp_error_prefix(&err, "near");
	assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
	assert_memory_equal(err.text, "near: xxx", 9);
	gp_error_prefix(&err, "%.254s", word);
	assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
	assert_int_equal(err.text[254], ':');
	gp_error_prefix(&err, "%s", word);
	assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
	assert_int_equal(err.text[254], 'x');
}

TEST(errno_is_left_alone)
{
	struct gp_error err = {0};
	errno = ERANGE;
	gp_fail(&err, -EINVAL, "x");
	gp_error_prefix(&err, "y");
	gp_error_name(-EIO);
	assert_int_equal(errno, ERANGE);
}

TEST(every_code_has_a_name)
{
	assert_string_equal(gp_error_name(-EINVAL), "Invalid argument");
	assert_string_equal(gp_error_name(-ENOSPC), "No space left on device");
	assert_string_equal(gp_error_name(0), "Success");
	const int strange[] = {-100000, EINVAL, INT_MAX, INT_MIN, INT_MIN + 1};
	for (size_t i = 0; i < sizeof(strange) / sizeof(strange[0]); i++)
		assert_string_equal(gp_error_name(strange[i]), "Unknown error");
}
