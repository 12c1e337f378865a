/* SPDX-License-Identifier: Apache-2.0 */
/* The view of the task table: order, filter, selection, scrolling. */
#include "made_up.h"

static struct gp_top_snapshot snapshot;
static struct gp_top_view view;

static pid_t at(unsigned place)
{
	assert_true(place < view.n);
	return snapshot.task[view.order[place]].pid;
}

static void update(void)
{
	gp_top_view_update(&view, &snapshot, 10);
}

static const struct gp_top_task *selected(void)
{
	return gp_top_view_selected(&view, &snapshot);
}

static int clear(void **state)
{
	(void)state;
	gp_top_view_free(&view);
	gp_top_snapshot_clear(&snapshot);
	return 0;
}

/* A test of a view of so many tasks. */
#define VIEW_TEST(function, tasks, ...)                   \
	static void function##_in(void);                  \
	TEST_WITH(function, NULL, clear)                  \
	{                                                 \
		snapshot = made_up_snapshot(tasks, S);    \
		view = (struct gp_top_view){__VA_ARGS__}; \
		function##_in();                          \
	}                                                 \
	static void function##_in(void)

VIEW_TEST(the_largest_recent_share_comes_first_and_unknown_ones_last, 4, .sort = GP_COL_SHARE)
{
	snapshot.task[0].recent_share = 0.1;
	snapshot.task[0].share = 0.9; /* of the last second: not used for sorting */
	snapshot.task[2].recent_share = 0.5;
	snapshot.task[3].recent_share = 0;
	update();
	assert_int_equal(at(0), 1002);
	assert_int_equal(at(1), 1000);
	assert_int_equal(at(2), 1003);
	assert_int_equal(at(3), 1001);
}

TEST_WITH(every_column_can_be_sorted_by, NULL, clear)
{
	static const enum gp_top_column by[] = {GP_COL_USER,     GP_COL_DEVICE,      GP_COL_CLASS,
						GP_COL_PRIORITY, GP_COL_STATE,       GP_COL_P50,
						GP_COL_P99,      GP_COL_PREEMPTIONS, GP_COL_NAME};

	for (unsigned i = 0; i < sizeof by / sizeof by[0]; i++) {
		struct gp_top_task *t;

		snapshot = made_up_snapshot(3, S);
		t = &snapshot.task[1]; /* the first in every column */
		strcpy(t->user, "aaron");
		strcpy(t->name, "a");
		t->class = GP_LATENCY_CRITICAL;
		t->priority = 3;
		snapshot.task[0].state = snapshot.task[2].state = GP_TASK_IDLE;
		t->waits_known = snapshot.task[0].waits_known = true;
		t->wait_p50_ns = t->wait_p99_ns = 7;
		t->preemptions_per_s = 0.5;
		snapshot.task[0].device = snapshot.task[2].device = 1;
		view.sort = by[i];
		update();
		assert_int_equal(at(0), 1001);
		gp_top_snapshot_clear(&snapshot);
	}
}

TEST(the_key_s_comes_round_to_every_column_but_the_bar)
{
	enum gp_top_column c = GP_COL_SHARE;
	unsigned seen = 0;

	do {
		c = gp_top_next_sort(c);
		assert_false(seen & 1u << c);
		seen |= 1u << c;
	} while (c != GP_COL_SHARE);
	assert_int_equal(seen, ((1u << GP_COLS) - 1) & ~(1u << GP_COL_BAR));
}

VIEW_TEST(the_selected_task_stays_selected_when_the_order_changes, 5, .sort = GP_COL_PID)
{
	update();
	assert_int_equal(selected()->pid, 1000);
	gp_top_view_move(&view, &snapshot, 3, 10);
	assert_int_equal(selected()->pid, 1003);
	view.sort = GP_COL_SHARE;
	snapshot.task[3].recent_share = 1;
	update();
	assert_int_equal(at(0), 1003);
	assert_int_equal(selected()->pid, 1003);
}

VIEW_TEST(when_the_selected_task_ends_the_next_one_is_selected, 3, .sort = GP_COL_PID)
{
	update();
	gp_top_view_move(&view, &snapshot, 2, 10);
	snapshot.ntasks = 2;
	update();
	assert_int_equal(selected()->pid, 1001);
	snapshot.ntasks = 0;
	update();
	assert_null(selected());
	gp_top_view_move(&view, &snapshot, 1, 10);
	assert_null(selected());
	snapshot.ntasks = 3;
	update();
	assert_non_null(selected());
}

VIEW_TEST(the_filter_matches_names_and_users_in_any_case, 4, .sort = GP_COL_PID, .filter = "BO")
{
	strcpy(snapshot.task[1].user, "bob");
	strcpy(snapshot.task[3].name, "turbo");
	update();
	assert_int_equal(view.n, 2);
	assert_int_equal(at(0), 1001);
	assert_int_equal(at(1), 1003);
	strcpy(view.filter, "nobody");
	update();
	assert_int_equal(view.n, 0);
	assert_null(selected());
}

VIEW_TEST(the_selected_task_is_always_on_the_screen, 1000, .sort = GP_COL_PID)
{
	static const long moves[] = {5, 7, 1, -9, 2000, -1, -30, 400, -5000, 19, 1};

	gp_top_view_update(&view, &snapshot, 20);
	for (unsigned i = 0; i < 200; i++) {
		unsigned rows = 1 + i % 37;

		gp_top_view_move(&view, &snapshot, moves[i % (sizeof moves / sizeof moves[0])],
				 rows);
		assert_true(view.place >= view.first && view.place < view.first + rows);
		gp_top_view_update(&view, &snapshot, rows);
		assert_true(view.place >= view.first && view.place < view.first + rows);
		assert_true(view.first + rows <= 1000); /* no blank rows below */
	}
	gp_top_view_update(&view, &snapshot, 2000);
	assert_int_equal(view.first, 0);
}
