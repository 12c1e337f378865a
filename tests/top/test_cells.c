/* SPDX-License-Identifier: Apache-2.0 */
/* Text in the grid of cells: task names cannot send escape sequences to the terminal. */
#include "made_up.h"

static struct gp_cells cells;

static void assert_is(const char *expected)
{
	char *text = text_of(&cells);

	assert_string_equal(text, expected);
	free(text);
}

static int blank(void **state)
{
	(void)state;
	cells.utf8 = true;
	return gp_cells_begin(&cells, 2, 8);
}

static int drop(void **state)
{
	(void)state;
	gp_cells_free(&cells);
	return 0;
}

TEST_WITH(text_stands_where_it_was_put, blank, drop)
{
	assert_int_equal(gp_cells_put(&cells, 0, 2, 5, GP_STYLE_BAD, "abc"), 3);
	gp_cells_put_right(&cells, 1, 2, 5, GP_STYLE_PLAIN, "xy");
	assert_is("  abc\n     xy\n");
	assert_int_equal(cells.cell[2].style, GP_STYLE_BAD);
	assert_int_equal(cells.cell[1].style, GP_STYLE_PLAIN);
}

TEST_WITH(a_text_that_is_too_long_ends_with_an_ellipsis, blank, drop)
{
	assert_int_equal(gp_cells_put(&cells, 0, 0, 4, 0, "abcdef"), 4);
	gp_cells_put(&cells, 1, 5, 100, 0, "abcdef"); /* to the end of the row, not beyond */
	assert_is("abc…\n     ab…\n");
	cells.utf8 = false;
	gp_cells_put_right(&cells, 0, 0, 4, 0, "abcdef");
	assert_int_equal(cells.cell[3].c, L'~');
	gp_cells_put(&cells, 0, 0, 6, 0, "abcdef");
	assert_is("abcdef\n     ab…\n");
}

TEST_WITH(text_outside_the_grid_is_ignored, blank, drop)
{
	assert_int_equal(gp_cells_put(&cells, 2, 0, 4, 0, "a"), 0);
	assert_int_equal(gp_cells_put(&cells, 0, 8, 4, 0, "a"), 0);
	gp_cells_fill(&cells, 7, 0, 4, GP_STYLE_BAD);
	gp_cells_fill(&cells, 1, 6, 400, GP_STYLE_BAD);
	assert_is("\n\n");
	assert_int_equal(cells.cell[15].style, GP_STYLE_BAD);
}

TEST_WITH(escape_sequences_become_question_marks, blank, drop)
{
	gp_cells_put(&cells, 0, 0, 8, 0, "\033[31m\a");
	gp_cells_put(&cells, 1, 0, 8, 0,
		     "a\nb\tc\177\xc2\x9b"); /* the last is ESC [ as one character */
	assert_is("?[31m?\na?b?c??\n");
}

TEST_WITH(invalid_utf8_is_shown_as_such, blank, drop)
{
	gp_cells_put(&cells, 0, 0, 8, 0, "a\xff\xc3(b\xe2\x82");
	assert_is("a\xef\xbf\xbd\xef\xbf\xbd(b\xef\xbf\xbd\xef\xbf\xbd\n\n");
}

TEST_WITH(wide_characters_take_two_columns, blank, drop)
{
	assert_int_equal(gp_cells_width(&cells, "日本"), 4);
	gp_cells_put(&cells, 0, 0, 8, 0, "日本");
	assert_int_equal(gp_cells_put(&cells, 1, 0, 4, 0, "日本語"),
			 3); /* half a wide character is not shown */
	assert_is("日本\n日…\n");
}

TEST_WITH(combining_characters_take_no_column, blank, drop)
{
	assert_int_equal(gp_cells_width(&cells, "e\xcc\x81"), 1);
	gp_cells_put(&cells, 0, 0, 8, 0, "e\xcc\x81x");
	assert_is("ex\n\n");
}

TEST_WITH(without_utf8_all_is_ascii, blank, drop)
{
	cells.utf8 = false;
	gp_cells_put(&cells, 0, 0, 8, 0, "é日▸x");
	assert_is("???x\n\n");
}

TEST_BEGIN
{
	setlocale(LC_CTYPE, "C.UTF-8");
}
