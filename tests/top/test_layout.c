/* SPDX-License-Identifier: Apache-2.0 */
/* The layout of columns and rows. */
#include "made_up.h"

static struct gp_top_layout laid_out(unsigned width, bool devices)
{
	struct gp_top_needs needs = {.pid = 7, .user = 5, .class = 5, .devices = devices};
	struct gp_top_layout layout;

	gp_top_lay_out(&layout, &needs, width);
	return layout;
}

TEST(columns_never_overlap_nor_leave_the_screen)
{
	for (unsigned width = 0; width < 300; width++) {
		struct gp_top_layout l = laid_out(width, width % 2);
		unsigned end = 0;

		for (unsigned c = 0; c < GP_COLS; c++) {
			if (!l.col[c].width)
				continue;
			assert_true(l.col[c].at >= end);
			end = l.col[c].at + l.col[c].width + 1;
		}
		assert_true(end <= width + 1);
		assert_true(!width || end == width + 1); /* no column is left unused */
	}
}

TEST(eighty_columns_have_room_for_all)
{
	struct gp_top_layout l = laid_out(80, false);

	for (unsigned c = 0; c < GP_COLS; c++)
		assert_true(c == GP_COL_DEVICE ? !l.col[c].width : l.col[c].width > 0);
	assert_true(laid_out(84, true).col[GP_COL_DEVICE].width);
}

TEST(the_least_important_columns_go_first)
{
	unsigned had = 0;

	for (unsigned width = 1; width < 120; width++) {
		struct gp_top_layout l = laid_out(width, true);
		unsigned has = 0;

		for (unsigned c = 0; c < GP_COLS; c++)
			has |= l.col[c].width ? 1u << c : 0;
		assert_int_equal(has & had, had); /* a wider screen loses no column */
		had = has;
		assert_true(l.col[GP_COL_NAME].width);
		assert_true(l.col[GP_COL_P50].width <= l.col[GP_COL_P99].width);
	}
	assert_int_equal(had, (1u << GP_COLS) - 1);
}

TEST(bars_and_names_use_the_width_of_wide_screens)
{
	struct gp_top_layout narrow = laid_out(80, false), wide = laid_out(160, false);

	assert_true(wide.col[GP_COL_BAR].width > narrow.col[GP_COL_BAR].width);
	assert_true(wide.col[GP_COL_NAME].width > narrow.col[GP_COL_NAME].width);
	assert_int_equal(wide.col[GP_COL_PID].width, narrow.col[GP_COL_PID].width);
	assert_true(laid_out(300, false).col[GP_COL_BAR].width <= 20);
}

TEST(the_tasks_decide_the_widths)
{
	struct gp_top_snapshot snapshot = made_up_snapshot(2, S);
	struct gp_top_needs n = gp_top_needs_of(&snapshot);

	assert_int_equal(n.class, 5);
	assert_int_equal(n.pid, 5);
	assert_int_equal(n.user, 5);
	assert_false(n.devices);
	snapshot.task[1].class = GP_UNMANAGED;
	snapshot.task[1].pid = 4194303;
	strcpy(snapshot.task[1].user, "somebody_with_a_long_name");
	n = gp_top_needs_of(&snapshot);
	assert_int_equal(n.class, 9);
	assert_int_equal(n.pid, 7);
	assert_int_equal(n.user, 12);
	gp_top_snapshot_clear(&snapshot);
}

TEST(rows_add_up_and_tasks_come_first)
{
	for (unsigned rows = 0; rows < 100; rows++)
		for (unsigned devices = 0; devices < 70; devices++) {
			struct gp_top_rows r = gp_top_share_rows(rows, devices);

			assert_int_equal(r.title + r.device_head + r.devices + r.task_head +
						 r.tasks + r.status,
					 rows);
			assert_true(r.devices <= devices);
			assert_true(rows < 3 || r.tasks >= 1);
			assert_true(!r.devices || r.tasks >= 2);
			assert_true(rows < 7 || !devices || r.devices >= 1);
		}
	assert_int_equal(gp_top_share_rows(24, 1).tasks, 19);
	assert_int_equal(gp_top_share_rows(24, 8).devices, 8);
	assert_int_equal(gp_top_share_rows(24, 64).devices, 10);
}
