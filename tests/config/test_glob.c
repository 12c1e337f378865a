/* SPDX-License-Identifier: Apache-2.0 */
/* Globs: what fits, what is a mistake, and that no pattern and no text take long. */
#include "support/test.h"

#include <fnmatch.h>

#include "base/rng.h"
#include "config/glob.h"

static bool fits(const char *pattern, const char *text)
{
	uint32_t steps = UINT32_MAX;

	return gp_glob(pattern, text, strlen(text), &steps);
}

TEST(a_star_is_anything_and_a_question_mark_one_byte)
{
	assert_true(fits("", ""));
	assert_false(fits("", "a"));
	assert_true(fits("*", ""));
	assert_true(fits("*", "a/b"));
	assert_true(fits("a*c", "abbc"));
	assert_false(fits("a*c", "abbcd"));
	assert_true(fits("*/kubepods*/pod?/*", "/sys/kubepods.slice/pod1/x"));
	assert_true(fits("a**b", "ab"));
	assert_false(fits("?", ""));
	assert_true(fits("?", "/"));
	assert_true(fits("*ab", "aab"));
	assert_true(fits("*a*b*c*", "xaxbxc"));
	assert_false(fits("*a*b*c*", "xaxcxb"));
}

TEST(a_set_is_one_of_its_bytes_and_a_backslash_takes_the_next_as_it_is)
{
	assert_true(fits("[a-c]", "b"));
	assert_false(fits("[a-c]", "d"));
	assert_true(fits("[!a-c]", "d"));
	assert_false(fits("[!a-c]", "b"));
	assert_true(fits("[]x]", "]"));
	assert_true(fits("[a-]", "-"));
	assert_true(fits("[\\]]", "]"));
	assert_true(fits("*[0-9]", "gpu7"));
	assert_true(fits("\\*", "*"));
	assert_false(fits("\\*", "a"));
	assert_true(fits("\\[a]", "[a]"));
	assert_true(fits("[\xc3-\xc5]", "\xc4")); /* bytes, not signed ones */
}

/* Whatever is no mistake means the same as in the shell. */
TEST(what_fits_is_what_the_systems_own_matcher_takes)
{
	static const char pattern_bytes[] = "ab*?[]!-\\", text_bytes[] = "ab]-!";
	struct gp_rng rng;
	unsigned compared = 0, fit = 0;

	gp_rng_init(&rng, 1, 0);
	for (unsigned i = 0; i < 300000; i++) {
		char pattern[9] = "", text[7] = "";
		unsigned n = (unsigned)gp_rng_below(&rng, sizeof pattern);
		unsigned m = (unsigned)gp_rng_below(&rng, sizeof text);

		for (unsigned j = 0; j < n; j++)
			pattern[j] = pattern_bytes[gp_rng_below(&rng, sizeof pattern_bytes - 1)];
		for (unsigned j = 0; j < m; j++)
			text[j] = text_bytes[gp_rng_below(&rng, sizeof text_bytes - 1)];
		/* What the two may read differently: odd ranges, a backslash in a set. */
		if (gp_glob_mistake(pattern) || (strchr(pattern, '[') && strpbrk(pattern, "-\\")))
			continue;
		compared++;
		fit += fits(pattern, text);
		if (fits(pattern, text) != !fnmatch(pattern, text, 0))
			fail_msg("'%s' and '%s'", pattern, text);
	}
	assert_true(compared > 50000);
	assert_true(fit > 1000);
}

TEST(a_pattern_that_cannot_be_read_is_a_mistake)
{
	assert_null(gp_glob_mistake("a*[b-c]?\\["));
	assert_non_null(gp_glob_mistake("a["));
	assert_non_null(gp_glob_mistake("a[]"));
	assert_non_null(gp_glob_mistake("a[!]"));
	assert_non_null(gp_glob_mistake("a\\"));
	assert_non_null(gp_glob_mistake("[a\\]"));
}

TEST(no_pattern_takes_more_than_its_length_times_that_of_the_text)
{
	static char text[4096];
	char pattern[192];
	const uint32_t most = 4096 * 192;
	uint32_t steps = most;

	memset(text, 'a', sizeof text);
	for (unsigned i = 0; i < sizeof pattern - 2; i++)
		pattern[i] = i % 2 ? 'a' : '*'; /* what makes others take for ever */
	pattern[sizeof pattern - 2] = 'b';
	pattern[sizeof pattern - 1] = '\0';
	assert_false(gp_glob(pattern, text, sizeof text, &steps));
	assert_true(steps > 0);
	snprintf(pattern, sizeof pattern, "*%0150db", 0);
	memset(text, '0', sizeof text);
	steps = most;
	assert_false(gp_glob(pattern, text, sizeof text, &steps));
	assert_true(steps > 0 && steps < most - sizeof text);
}

TEST(without_steps_nothing_fits)
{
	uint32_t steps = 3;

	assert_false(gp_glob("aaaa", "aaaa", 4, &steps));
	assert_int_equal(steps, 0);
	steps = 4;
	assert_true(gp_glob("aaaa", "aaaa", 4, &steps));
	steps = 5;
	assert_false(gp_glob("[abcdefgh][abcdefgh]", "hh", 2, &steps)); /* a set costs its length */
}

TEST(a_plain_pattern_says_which_text_it_means)
{
	char text[32];

	assert_true(gp_glob_is_plain("a\\*b", text));
	assert_string_equal(text, "a*b");
	assert_false(gp_glob_is_plain("a*", text));
	assert_int_equal(gp_glob_least("a*b?[c-z]\\*"), 5);
}
