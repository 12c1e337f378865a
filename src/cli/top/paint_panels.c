/* SPDX-License-Identifier: Apache-2.0 */
/* The last line, the help, and the list of policies. */
#include <string.h>

#include "cli/top/top.h"
#include "policy/registry.h"

#define MESSAGE_ROWS 4

struct pair {
	const char *key, *does;
};

/* Draws as many pairs as fit. */
static void paint_pairs(struct gp_cells *cells, unsigned row, unsigned at, const struct pair *pair,
			unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		unsigned width = (unsigned)(strlen(pair[i].key) + 1 + strlen(pair[i].does));

		if (at + width > cells->cols)
			return;
		at += gp_cells_put(cells, row, at, cells->cols, GP_STYLE_TITLE, pair[i].key) + 1;
		at += gp_cells_put(cells, row, at, cells->cols, GP_STYLE_FAINT, pair[i].does) + 2;
	}
}

/* The number of bytes that fit into one line: whole words, or the whole text if its first word is
 * too long. */
static size_t line_of(const struct gp_cells *cells, const char *text)
{
	char part[sizeof((struct gp_top *)0)->message];
	size_t fits = 0;

	for (size_t n = 1; n <= strlen(text); n++) {
		if (text[n] && text[n] != ' ')
			continue;
		snprintf(part, sizeof part, "%.*s", (int)n, text);
		if (gp_cells_width(cells, part) > cells->cols)
			break;
		fits = n;
	}
	return fits ? fits : strlen(text);
}

/* A message longer than one line also covers the rows above. */
static void paint_message(const struct gp_top *top, struct gp_cells *cells, unsigned row)
{
	enum gp_style style = top->refused ? GP_STYLE_BAD : GP_STYLE_GOOD;
	char part[sizeof top->message];
	const char *text = top->message;
	unsigned lines = 0;

	while (*text && lines < MESSAGE_ROWS) {
		text += line_of(cells, text);
		text += strspn(text, " ");
		lines++;
	}
	text = top->message;
	for (unsigned first = row + 1 > lines ? row + 1 - lines : 0; first <= row; first++) {
		size_t n = first < row ? line_of(cells, text) : strlen(text);

		snprintf(part, sizeof part, "%.*s", (int)n, text);
		gp_cells_fill(cells, first, 0, cells->cols, style);
		gp_cells_put(cells, first, 0, cells->cols, style, part);
		text += n;
		text += strspn(text, " ");
	}
}

void gp_top_paint_status(const struct gp_top *top, struct gp_cells *cells, unsigned row)
{
	static const struct pair browse[] = {
		{"q", "quit"},    {"?", "help"}, {"c", "class"},  {"+-", "prio"},  {"h", "hold"},
		{"r", "release"}, {"s", "sort"}, {"f", "filter"}, {"p", "policy"},
	};
	static const struct pair class[] = {
		{"l", "lc"}, {"b", "be"}, {"u", "unmanaged"}, {"Esc", "cancel"}};
	static const struct pair list[] = {{"Enter", "choose"}, {"Esc", "cancel"}};
	char text[256];
	unsigned at;

	gp_cells_fill(cells, row, 0, cells->cols, GP_STYLE_PLAIN);
	switch (top->mode) {
	case GP_TOP_CLASS:
		snprintf(text, sizeof text, "class of %d %s:  ", (int)top->target.pid,
			 top->target.name);
		at = gp_cells_put(cells, row, 0, cells->cols / 2, GP_STYLE_PLAIN, text);
		paint_pairs(cells, row, at, class, sizeof class / sizeof class[0]);
		return;
	case GP_TOP_POLICY: paint_pairs(cells, row, 0, list, sizeof list / sizeof list[0]); return;
	case GP_TOP_FILTER:
		snprintf(text, sizeof text, "show tasks whose name or user contains: %s_",
			 top->view.filter);
		gp_cells_put(cells, row, 0, cells->cols, GP_STYLE_PLAIN, text);
		return;
	case GP_TOP_HELP:
		gp_cells_put(cells, row, 0, cells->cols, GP_STYLE_FAINT, "any key: back");
		return;
	default: break;
	}
	if (*top->message)
		paint_message(top, cells, row);
	else
		paint_pairs(cells, row, 0, browse, sizeof browse / sizeof browse[0]);
}

static void paint_help(struct gp_cells *cells)
{
	static const struct pair line[] = {
		{"up down k j", "select a task; also PgUp PgDn Home End"},
		{"c", "set its class: lc, be or unmanaged (never changed by a policy)"},
		{"+ -", "change its priority, 0 to 15"},
		{"h r", "hold the task; release the task"},
		{"s", "sort by the next column"},
		{"f", "filter: tasks whose name or user contains a text"},
		{"p", "choose a policy"},
		{"q", "quit; the daemon continues"},
		{"", ""},
		{"GPU", "share of the last second; < is an upper bound, ? not known"},
		{"P50 P99", "wait for the GPU: median and 99th percentile"},
		{"PRE/S", "preemptions per second while the task had work"},
		{"INV/S", "priority inversions per second"},
		{"running", "is on the GPU. active: running or waiting, the GPU cannot tell"},
		{"waiting", "has work and waits for its turn. held: the policy holds it"},
		{"suspended", "held by a user: r or gpreempt resume releases it"},
	};
	unsigned n = sizeof line / sizeof line[0];

	for (unsigned row = 0; row + 1 < cells->rows; row++) {
		gp_cells_fill(cells, row, 0, cells->cols, GP_STYLE_PLAIN);
		if (row >= n)
			continue;
		gp_cells_put(cells, row, 1, 11, GP_STYLE_TITLE, line[row].key);
		gp_cells_put(cells, row, 13, cells->cols, GP_STYLE_PLAIN, line[row].does);
	}
}

static void paint_policies(const struct gp_top *top, struct gp_cells *cells)
{
	unsigned rows = cells->rows > 2 ? cells->rows - 2 : 0, n = 0, first;

	while (gp_policies[n])
		n++;
	first = top->chosen_policy >= rows && rows ? top->chosen_policy - rows + 1 : 0;
	for (unsigned row = 0; row + 1 < cells->rows; row++)
		gp_cells_fill(cells, row, 0, cells->cols, GP_STYLE_PLAIN);
	gp_cells_fill(cells, 0, 0, cells->cols, GP_STYLE_HEAD);
	gp_cells_put(cells, 0, 1, cells->cols, GP_STYLE_HEAD,
		     top->link.device < 0 ? "POLICY FOR ALL DEVICES" : "POLICY FOR THIS DEVICE");
	for (unsigned i = 0; i < rows && first + i < n; i++) {
		const struct gp_policy_ops *ops = gp_policies[first + i];
		unsigned marked = first + i == top->chosen_policy ? GP_STYLE_SELECTED : 0;

		gp_cells_fill(cells, 1 + i, 0, cells->cols, marked);
		/* The mark also shows without colour and reverse video. */
		gp_cells_put(cells, 1 + i, 0, 1, GP_STYLE_TITLE | marked, marked ? ">" : " ");
		gp_cells_put(cells, 1 + i, 1, 10, GP_STYLE_TITLE | marked, ops->name);
		gp_cells_put(cells, 1 + i, 12, cells->cols, GP_STYLE_PLAIN | marked, ops->summary);
	}
}

void gp_top_paint_panel(const struct gp_top *top, struct gp_cells *cells)
{
	if (top->mode == GP_TOP_HELP)
		paint_help(cells);
	else if (top->mode == GP_TOP_POLICY)
		paint_policies(top, cells);
}
