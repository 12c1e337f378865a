/* SPDX-License-Identifier: Apache-2.0 */
/* The sparkline of the last minute, and the bar of a share. */
#include "made_up.h"

static char out[256];

TEST(unknown_seconds_are_blank)
{
	struct gp_minute m;

	gp_minute_init(&m);
	assert_string_equal(gp_spark(out, sizeof out, &m, 5, true), "     ");
	gp_minute_add(&m, 1000 * S, GP_TOP_UNKNOWN);
	assert_string_equal(gp_spark(out, sizeof out, &m, 5, true), "     ");
	assert_string_equal(gp_spark(out, sizeof out, &m, 0, true), "");
}

TEST(idle_is_not_blank)
{
	struct gp_minute m;

	gp_minute_init(&m);
	gp_minute_add(&m, 1000 * S, 0);
	assert_string_equal(gp_spark(out, sizeof out, &m, 60, false) + 58, " _");
	assert_string_equal(gp_spark(out, sizeof out, &m, 60, true) + 59, "▁");
}

TEST(the_newest_is_to_the_right_and_all_levels_differ)
{
	struct gp_minute m;

	gp_minute_init(&m);
	for (unsigned i = 0; i < 8; i++)
		gp_minute_add(&m, (1000 + i) * S, i / 7.0);
	assert_string_equal(gp_spark(out, sizeof out, &m, 60, false) + 52, "_.:-=+*#");
	assert_string_equal(gp_spark(out, sizeof out, &m, 60, true) + 52, "▁▂▃▄▅▆▇█");
}

TEST(values_older_than_a_minute_are_forgotten)
{
	struct gp_minute m;

	gp_minute_init(&m);
	gp_minute_add(&m, 1000 * S, 1);
	for (unsigned i = 1; i < 60; i++)
		gp_minute_add(&m, (1000 + i) * S, 0);
	assert_int_equal(gp_spark(out, sizeof out, &m, 60, false)[0], '#');
	gp_minute_add(&m, 1060 * S, 0);
	assert_int_equal(gp_spark(out, sizeof out, &m, 60, false)[0], '_');
	gp_minute_add(&m, 2000 * S, 1); /* long ago */
	assert_string_equal(gp_spark(out, sizeof out, &m, 60, false) + 57, "  #");
}

TEST(rare_values_fill_their_time_and_frequent_ones_replace_each_other)
{
	struct gp_minute m;

	gp_minute_init(&m);
	gp_minute_add(&m, 1000 * S, 0);
	gp_minute_add(&m, 1004 * S, 1);
	assert_string_equal(gp_spark(out, sizeof out, &m, 60, false) + 54, " _####");
	gp_minute_add(&m, 1004 * S + 300 * MS, 0);
	assert_string_equal(gp_spark(out, sizeof out, &m, 60, false) + 54, " _###_");
}

TEST(with_fewer_columns_each_is_a_mean)
{
	struct gp_minute m;

	gp_minute_init(&m);
	for (unsigned i = 0; i < 60; i++)
		gp_minute_add(&m, (1000 + i) * S, i % 2);
	assert_string_equal(gp_spark(out, sizeof out, &m, 10, false), "==========");
	assert_int_equal(strlen(gp_spark(out, sizeof out, &m, 7, false)), 7);
	assert_int_equal(strlen(gp_spark(out, sizeof out, &m, 500, false)), 60);
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
