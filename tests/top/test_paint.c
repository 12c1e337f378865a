/* SPDX-License-Identifier: Apache-2.0 */
/* Whole screens. */
#include "made_up.h"

static struct gp_top *top;
static struct gp_cells cells;

/* A service, two jobs, and a task without known values. */
static int begin(void **state)
{
	struct gp_top_task *t;

	(void)state;
	top = malloc(sizeof *top);
	assert_non_null(top);
	gp_top_init(top, S, -1);
	top->link.had_snapshot = true;
	top->link.snapshot = made_up_snapshot(4, S);
	top->link.snapshot.uptime_ns = 10800 * S;
	t = top->link.snapshot.task;
	strcpy(t[0].name, "serve");
	t[0].class = GP_LATENCY_CRITICAL;
	t[0].priority = 7;
	t[0].share = t[0].recent_share = 0.874;
	t[0].waits_known = true;
	t[0].wait_p50_ns = 127 * GP_NS_PER_US;
	t[0].wait_p99_ns = 1360 * GP_NS_PER_US;
	t[0].preemptions_per_s = 12;
	t[1].state = GP_TASK_HELD;
	t[1].share = t[1].recent_share = 0.1;
	t[2].state = GP_TASK_SUSPENDED;
	t[2].share = t[2].recent_share = 0;
	t[2].run_granted = true;
	t[3].state = GP_TASK_UNKNOWN;
	t[3].class = GP_UNMANAGED;
	*t[3].user = 0;
	top->link.snapshot.device[0].busy = 0.974;
	top->link.snapshot.device[0].preemptions_per_s = 34;
	gp_minute_add(&top->minute[0], 100 * S, 0.974);
	gp_top_view_update(&top->view, &top->link.snapshot, 10);
	cells = (struct gp_cells){0};
	return 0;
}

static int end(void **state)
{
	(void)state;
	gp_top_free(top);
	free(top);
	gp_cells_free(&cells);
	return 0;
}

TEST_WITH(eighty_columns_show_all, begin, end)
{
	gp_top_paint(top, &cells, 24, 80);
	assert_shows(&cells, "4 tasks on 1 device");
	assert_shows(&cells, "gpreemptd 9.9, up 3 h 0 min\n");
	assert_shows(&cells, "DEV NAME              POLICY    BUSY LAST MINUTE");
	assert_shows(&cells, "  0 simulated H200 #0 priority   97%");
	assert_shows(&cells, "#     34      ?\n"); /* inversions are not known */
	assert_shows(&cells, "1000 alice lc          7 > running ");
	assert_shows(&cells, " 87%  127us 1.36ms    12 serve\n");
	assert_shows(&cells, "= held ");
	assert_shows(&cells, "# suspended");
	assert_shows(&cells, "<0%"); /* granted: an upper bound */
	assert_shows(&cells, "1003 ?     unmanaged   0   ? ");
	assert_shows(&cells, "q quit  ? help");
	assert_shows(&cells, "p policy\n");
}

TEST_WITH(utf8_has_finer_bars, begin, end)
{
	cells.utf8 = true;
	gp_top_paint(top, &cells, 24, 80);
	assert_shows(&cells, "▸ running");
	assert_shows(&cells, "■ suspended");
	assert_shows(&cells, "≤0%");
	assert_shows(&cells, "█");
}

TEST_WITH(no_size_is_too_small, begin, end)
{
	for (unsigned mode = GP_TOP_BROWSE; mode <= GP_TOP_FILTER; mode++)
		for (unsigned rows = 0; rows < 30; rows++)
			for (unsigned cols = 0; cols < 130; cols++) {
				top->mode = mode;
				cells.utf8 = cols % 2;
				gp_top_paint(top, &cells, rows, cols);
				assert_int_equal(cells.rows, rows);
			}
	top->mode = GP_TOP_BROWSE;
	gp_top_paint(top, &cells, 3, 20);
	assert_shows(&cells, "serve");
}

TEST_WITH(sixty_by_fifteen_has_the_important_columns, begin, end)
{
	gp_top_paint(top, &cells, 15, 60);
	assert_shows(&cells, "simulated H2");
	assert_shows(&cells, "97%");
	assert_shows(&cells, "> running");
	assert_shows(&cells, "87%");
	assert_shows(&cells, "1.36ms");
	assert_shows(&cells, "serve");
	assert_hides(&cells, "P50");
}

TEST_WITH(only_what_is_visible_is_drawn, begin, end)
{
	gp_top_snapshot_clear(&top->link.snapshot);
	top->link.snapshot = made_up_snapshot(1000, S);
	top->view.sort = GP_COL_PID;
	gp_top_view_update(&top->view, &top->link.snapshot, 10);
	gp_top_view_move(&top->view, &top->link.snapshot, 1000, 10);
	gp_top_paint(top, &cells, 24, 80);
	assert_shows(&cells, "1000 tasks on 1 device");
	assert_shows(&cells, "job999\n");
	assert_shows(&cells, "job981\n");
	assert_hides(&cells, "job980\n");
}

TEST_WITH(the_selected_row_is_marked_as_a_whole, begin, end)
{
	unsigned marked = 0;

	gp_top_view_move(&top->view, &top->link.snapshot, 1, 10);
	gp_top_paint(top, &cells, 24, 80);
	for (unsigned i = 0; i < 24 * 80; i++)
		if (cells.cell[i].style & GP_STYLE_SELECTED) {
			assert_int_equal(i / 80, 5);
			marked++;
		}
	assert_int_equal(marked, 80);
}

TEST_WITH(trouble_is_shown_in_the_first_line_and_the_rest_stays, begin, end)
{
	gp_fail(&top->link.trouble, -ECONNREFUSED, "no daemon answers");
	gp_top_paint(top, &cells, 24, 80);
	assert_shows(&cells, "no daemon answers\n");
	assert_hides(&cells, "up 3 h");
	assert_shows(&cells, "serve");
	assert_int_equal(cells.cell[0].style, GP_STYLE_BAD);
}

TEST_WITH(problems_of_devices_are_shown, begin, end)
{
	struct gp_top_device *d = &top->link.snapshot.device[0];

	d->ejected = true;
	strcpy(d->policy, "none");
	strcpy(d->why, "edf was ejected: it let task 3 starve");
	gp_top_paint(top, &cells, 24, 80);
	assert_shows(&cells, "    edf was ejected: it let task 3 starve\n");
	strcpy(d->state, "stuck");
	top->link.snapshot.keeper_gone = true;
	gp_top_paint(top, &cells, 24, 80);
	assert_shows(&cells, "simulated H200 #0 stuck");
	assert_shows(&cells, "no keeper");
}

TEST_WITH(devices_that_do_not_fit_are_counted, begin, end)
{
	free(top->link.snapshot.device);
	top->link.snapshot.device = calloc(64, sizeof *top->link.snapshot.device);
	assert_non_null(top->link.snapshot.device);
	top->link.snapshot.ndevices = 64;
	for (unsigned i = 0; i < 64; i++) {
		top->link.snapshot.device[i].number = i;
		snprintf(top->link.snapshot.device[i].name, 64, "GPU-%u-", i);
	}
	gp_top_paint(top, &cells, 24, 80);
	assert_shows(&cells, "GPU-8-");
	assert_hides(&cells, "GPU-9-");
	assert_shows(&cells, "55 more devices: gpreempt top --device N shows one");
	assert_shows(&cells, "serve");
	gp_top_paint_plain(top, &cells, 80);
	assert_shows(&cells, "GPU-63-");
}

TEST_WITH(plain_text_has_all_tasks_and_no_keys, begin, end)
{
	gp_top_snapshot_clear(&top->link.snapshot);
	top->link.snapshot = made_up_snapshot(500, S);
	gp_top_view_update(&top->view, &top->link.snapshot, 0);
	gp_top_paint_plain(top, &cells, 120);
	assert_int_equal(cells.rows, 504);
	assert_shows(&cells, "job0\n");
	assert_shows(&cells, "job499\n");
	assert_hides(&cells, "quit");
	for (unsigned i = 0; i < cells.rows * cells.cols; i++)
		assert_false(cells.cell[i].style & GP_STYLE_SELECTED);
}

TEST_WITH(a_long_message_is_shown_whole, begin, end)
{
	gp_top_show_message(top, S, true,
			    "4711 train: the process belongs to user 0; use root or the group");
	gp_top_paint(top, &cells, 12, 40);
	assert_shows(&cells,
		     "\n4711 train: the process belongs to user\n0; use root or the group\n");
	assert_int_equal(cells.cell[400].style, GP_STYLE_BAD);
	gp_top_show_message(top, S, true, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
	gp_top_paint(top, &cells, 12, 40);
	assert_shows(&cells, "\naaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa~\n");
	for (unsigned rows = 0; rows < 6; rows++) {
		gp_top_show_message(top, S, true, "a b c d e f g h i j");
		gp_top_paint(top, &cells, rows, 3);
	}
	assert_shows(&cells, "\na b\nc d\ne f\ng ~\n");
}

TEST_WITH(an_empty_machine_is_shown_as_such, begin, end)
{
	top->link.snapshot.ntasks = 0;
	gp_top_view_update(&top->view, &top->link.snapshot, 10);
	gp_top_paint(top, &cells, 24, 80);
	assert_shows(&cells, "no process has queues on a GPU");
	strcpy(top->view.filter, "x");
	gp_top_paint(top, &cells, 24, 80);
	assert_shows(&cells, "0 of 0 tasks match 'x'");
	assert_shows(&cells, "no task has the filter text in its name or user");
}

TEST_BEGIN
{
	setlocale(LC_CTYPE, "C.UTF-8");
}
