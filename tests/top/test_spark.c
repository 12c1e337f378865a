/* SPDX-License-Identifier: Apache-2.0 */
/* The sparkline of the last minute, and the bar of a share. */
#include "made_up.h"

static char out[256];
static struct gp_minute m;

static int new_minute(void **state)
{
	(void)state;
	gp_minute_init(&m);
	return 0;
}

#define MINUTE_TEST(function) TEST_WITH(function, new_minute, NULL)

static const char *spark(unsigned columns, bool utf8)
{
	return gp_spark(out, sizeof out, &m, columns, utf8);
}

MINUTE_TEST(unknown_seconds_are_blank)
{
	assert_string_equal(spark(5, true), "     ");
	gp_minute_add(&m, 1000 * S, GP_TOP_UNKNOWN);
	assert_string_equal(spark(5, true), "     ");
	assert_string_equal(spark(0, true), "");
}

MINUTE_TEST(idle_is_not_blank)
{
	gp_minute_add(&m, 1000 * S, 0);
	assert_string_equal(spark(60, false) + 58, " _");
	assert_string_equal(spark(60, true) + 59, "▁");
}

MINUTE_TEST(the_newest_is_to_the_right_and_all_levels_differ)
{
	for (unsigned i = 0; i < 8; i++)
		gp_minute_add(&m, (1000 + i) * S, i / 7.0);
	assert_string_equal(spark(60, false) + 52, "_.:-=+*#");
	assert_string_equal(spark(60, true) + 52, "▁▂▃▄▅▆▇█");
}

MINUTE_TEST(values_older_than_a_minute_are_forgotten)
{
	gp_minute_add(&m, 1000 * S, 1);
	for (unsigned i = 1; i < 60; i++)
		gp_minute_add(&m, (1000 + i) * S, 0);
	assert_int_equal(spark(60, false)[0], '#');
	gp_minute_add(&m, 1060 * S, 0);
	assert_int_equal(spark(60, false)[0], '_');
	gp_minute_add(&m, 2000 * S, 1); /* long ago */
	assert_string_equal(spark(60, false) + 57, "  #");
}

MINUTE_TEST(rare_values_fill_their_time_and_frequent_ones_replace_each_other)
{
	gp_minute_add(&m, 1000 * S, 0);
	gp_minute_add(&m, 1004 * S, 1);
	assert_string_equal(spark(60, false) + 54, " _####");
	gp_minute_add(&m, 1004 * S + 300 * MS, 0);
	assert_string_equal(spark(60, false) + 54, " _###_");
}

MINUTE_TEST(with_fewer_columns_each_is_a_mean)
{
	for (unsigned i = 0; i < 60; i++)
		gp_minute_add(&m, (1000 + i) * S, i % 2);
	assert_string_equal(spark(10, false), "==========");
	assert_int_equal(strlen(spark(7, false)), 7);
	assert_int_equal(strlen(spark(500, false)), 60);
}

TEST(a_bar_is_as_long_as_the_share)
{
	assert_string_equal(gp_share_bar(out, sizeof out, 0, 10, false), "");
	assert_string_equal(gp_share_bar(out, sizeof out, 0.5, 10, false), "#####");
	assert_string_equal(gp_share_bar(out, sizeof out, 1, 10, false), "##########");
	assert_string_equal(gp_share_bar(out, sizeof out, 7, 4, false), "####");
	assert_string_equal(gp_share_bar(out, sizeof out, -1, 4, false), "");
	assert_string_equal(gp_share_bar(out, sizeof out, 0.5, 5, true), "██▌");
	assert_string_equal(gp_share_bar(out, sizeof out, 1, 3, true), "███");
}

TEST(a_small_share_shows)
{
	assert_string_equal(gp_share_bar(out, sizeof out, 0.001, 4, false), "#");
	assert_string_equal(gp_share_bar(out, sizeof out, 0.001, 4, true), "▏");
}
