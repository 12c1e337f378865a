/* SPDX-License-Identifier: Apache-2.0 */
/* The task table: one line for each task on the screen. */
#include <string.h>

#include "cli/cli.h"
#include "cli/top/top.h"
#include "policy/policy.h"

/* Word and mark differ for each state, so that states can be told apart without colour. */
static const struct {
	const char *word, *mark, *ascii;
	enum gp_style style;
} states[] = {
	[GP_TOP_RUNNING] = {"running", "▸", ">", GP_STYLE_RUNNING},
	[GP_TOP_ACTIVE] = {"active", "▹", "+", GP_STYLE_RUNNING},
	[GP_TOP_WAITING] = {"waiting", "◇", "~", GP_STYLE_WAITING},
	[GP_TOP_HELD] = {"held", "▪", "=", GP_STYLE_HELD},
	[GP_TOP_SUSPENDED] = {"suspended", "■", "#", GP_STYLE_SUSPENDED},
	[GP_TOP_IDLE] = {"idle", "·", ".", GP_STYLE_FAINT},
	[GP_TOP_STATE_UNKNOWN] = {"?", " ", " ", GP_STYLE_FAINT},
};

/* One line of the table. */
struct line {
	struct gp_cells *cells;
	const struct gp_top_layout *layout;
	unsigned row;
	unsigned marked; /* GP_STYLE_SELECTED or 0 */
};

static void put(const struct line *l, enum gp_top_column c, unsigned style, const char *text)
{
	unsigned at = l->layout->col[c].at, width = l->layout->col[c].width;

	if (!width)
		return;
	if (gp_top_columns[c].right)
		gp_cells_put_right(l->cells, l->row, at, width, style | l->marked, text);
	else
		gp_cells_put(l->cells, l->row, at, width, style | l->marked, text);
}

static void put_number(const struct line *l, enum gp_top_column c, long long number)
{
	char text[32];

	snprintf(text, sizeof text, "%lld", number);
	put(l, c, GP_STYLE_PLAIN, text);
}

/* "2.30ms": without the blank it fits the column. */
static void put_wait(const struct line *l, enum gp_top_column c, const struct gp_top_task *t,
		     uint64_t ns)
{
	char text[32], *blank;

	gp_cli_duration(text, sizeof text, ns);
	blank = strchr(text, ' ');
	if (blank)
		memmove(blank, blank + 1, strlen(blank));
	put(l, c, t->waits_known ? GP_STYLE_PLAIN : GP_STYLE_FAINT, t->waits_known ? text : "?");
}

static void put_state(const struct line *l, const struct gp_top_task *t)
{
	char text[64];

	snprintf(text, sizeof text, "%s %s",
		 l->cells->utf8 ? states[t->state].mark : states[t->state].ascii,
		 states[t->state].word);
	put(l, GP_COL_STATE, states[t->state].style, text);
}

static void put_share(const struct line *l, const struct gp_top_task *t)
{
	unsigned at = l->layout->col[GP_COL_BAR].at, width = l->layout->col[GP_COL_BAR].width;
	char text[128];
	unsigned used;

	gp_top_percent_text(text, sizeof text,
			    !t->run_granted  ? ""
			    : l->cells->utf8 ? "≤"
					     : "<",
			    t->share);
	put(l, GP_COL_SHARE, t->share < 0 ? GP_STYLE_FAINT : GP_STYLE_PLAIN, text);
	if (!width || t->share < 0)
		return;
	gp_share_bar(text, sizeof text, t->share, width, l->cells->utf8);
	used = gp_cells_put(l->cells, l->row, at, width, GP_STYLE_BAR | l->marked, text);
	for (; used < width; used++)
		gp_cells_put(l->cells, l->row, at + used, 1, GP_STYLE_FAINT | l->marked,
			     l->cells->utf8 ? "·" : ".");
}

static void put_name(const struct line *l, const struct gp_top_task *t)
{
	char text[96];

	snprintf(text, sizeof text, "%s%s", *t->name ? t->name : "?",
		 t->refused ? " (no promise)" : "");
	put(l, GP_COL_NAME, t->refused ? GP_STYLE_WARNING : GP_STYLE_PLAIN, text);
}

static void paint_task(const struct line *l, const struct gp_top_task *t)
{
	char text[32];

	if (l->marked)
		gp_cells_fill(l->cells, l->row, 0, l->cells->cols, l->marked);
	put_number(l, GP_COL_PID, t->pid);
	put(l, GP_COL_USER, GP_STYLE_PLAIN, *t->user ? t->user : "?");
	put_number(l, GP_COL_DEVICE, t->device);
	put(l, GP_COL_CLASS, gp_class_style(t->class), gp_top_class_name(t->class));
	put_number(l, GP_COL_PRIORITY, t->priority);
	put_state(l, t);
	put_share(l, t);
	put_wait(l, GP_COL_P50, t, t->wait_p50_ns);
	put_wait(l, GP_COL_P99, t, t->wait_p99_ns);
	put(l, GP_COL_PREEMPTIONS, GP_STYLE_PLAIN,
	    gp_top_rate_text(text, sizeof text, t->preemptions_per_s));
	put_name(l, t);
}

static void paint_headings(const struct line *l, enum gp_top_column sort, bool selection)
{
	gp_cells_fill(l->cells, l->row, 0, l->cells->cols, GP_STYLE_HEAD);
	for (enum gp_top_column c = 0; c < GP_COLS; c++) {
		bool sorted = selection && c == sort;
		char text[16];

		/* The asterisk also shows without colour. */
		snprintf(text, sizeof text, "%s%s", gp_top_columns[c].head,
			 sorted && l->layout->col[c].width > strlen(gp_top_columns[c].head) ? "*"
											    : "");
		put(l, c, sorted ? GP_STYLE_HEAD_SORTED : GP_STYLE_HEAD, text);
	}
}

void gp_top_paint_tasks(const struct gp_top *top, struct gp_cells *cells, unsigned row,
			unsigned rows, bool selection)
{
	const struct gp_top_view *view = &top->view;
	struct gp_top_needs needs = gp_top_needs_of(&top->link.snapshot);
	struct gp_top_layout layout;
	struct line l = {.cells = cells, .layout = &layout, .row = row};

	gp_top_lay_out(&layout, &needs, cells->cols);
	paint_headings(&l, view->sort, selection);
	for (unsigned i = 0; i < rows && view->first + i < view->n; i++) {
		unsigned place = view->first + i;

		l.row = row + 1 + i;
		l.marked =
			selection && view->selected && place == view->place ? GP_STYLE_SELECTED : 0;
		paint_task(&l, &top->link.snapshot.task[view->order[place]]);
	}
	if (!view->n && rows)
		gp_cells_put(cells, row + 1, 0, cells->cols, GP_STYLE_FAINT,
			     !top->link.had_snapshot ? ""
			     : *view->filter ? "no task has the filter text in its name or user"
					     : "no process has queues on a GPU");
}
