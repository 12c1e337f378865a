/* SPDX-License-Identifier: Apache-2.0 */
/* Draws the screen: title, devices, tasks, help and status line. */
#include <string.h>

#include "base/clock.h"
#include "cli/cli.h"
#include "cli/top/top.h"
#include "policy/policy.h"
#include "policy/registry.h"
#include "task/task.h"

/* "12.3", "1234"; "?" if not known. Returns `out`. */
static const char *rate_text(char *out, size_t size, double per_s)
{
	if (per_s < 0)
		snprintf(out, size, "?");
	else
		snprintf(out, size, "%.*f", per_s > 0 && per_s < 9.95 ? 1 : 0, per_s);
	return out;
}

/* `before` and "42%", or "?" if not known. Returns `out`. */
static const char *percent_text(char *out, size_t size, const char *before, double share)
{
	if (share < 0)
		snprintf(out, size, "?");
	else
		snprintf(out, size, "%s%.0f%%", before, share * 100);
	return out;
}

/* The columns of a device, from left to right. */
enum { NUMBER, NAME, POLICY, BUSY, MINUTE, PREEMPTIONS, INVERSIONS, DEVICE_COLUMNS };

static const struct {
	const char *head;
	unsigned width; /* 0: depends on the screen */
	bool right;
} device_columns[DEVICE_COLUMNS] = {
	[NUMBER] = {"DEV", 3, true},          [NAME] = {"NAME", 0, false},
	[POLICY] = {"POLICY", 8, false},      [BUSY] = {"BUSY", 5, true},
	[MINUTE] = {"LAST MINUTE", 0, false}, [PREEMPTIONS] = {"PRE/S", 6, true},
	[INVERSIONS] = {"INV/S", 6, true},
};

#define MINUTE_LEAST 8

/* Width 0: no room, not shown. */
struct device_layout {
	unsigned width[DEVICE_COLUMNS];
};

/* Number of rows that the devices need: a second one after an ejected policy. */
static unsigned device_rows(const struct gp_top_snapshot *snapshot)
{
	unsigned n = snapshot->ndevices;

	for (unsigned i = 0; i < snapshot->ndevices; i++)
		n += snapshot->device[i].ejected;
	return n;
}

static bool take(struct device_layout *l, unsigned column, unsigned *left)
{
	unsigned wants = device_columns[column].width;

	if (*left < wants + 1)
		return false;
	*left -= wants + 1;
	l->width[column] = wants;
	return true;
}

static struct device_layout lay_out_devices(const struct gp_top_snapshot *snapshot,
					    const struct gp_cells *cells)
{
	unsigned left = cells->cols, longest = 6,
		 most = cells->cols / 4 > 12 ? cells->cols / 4 : 12;
	struct device_layout l = {.width = {[NUMBER] = device_columns[NUMBER].width,
					    [BUSY] = device_columns[BUSY].width}};
	unsigned fixed = l.width[NUMBER] + 1 + l.width[BUSY] + 1;

	for (unsigned i = 0; i < snapshot->ndevices; i++) {
		unsigned width = gp_cells_width(cells, snapshot->device[i].name);

		longest = width > longest ? width : longest;
	}
	left = left > fixed ? left - fixed : 0;
	longest = longest < most ? longest : most;
	l.width[NAME] = longest < left ? longest : left;
	left -= l.width[NAME];
	/* The sparkline of the last minute gets its minimum before the other columns. */
	if (left > MINUTE_LEAST) {
		left -= MINUTE_LEAST + 1;
		l.width[MINUTE] = MINUTE_LEAST;
	}
	if (take(&l, POLICY, &left) && take(&l, PREEMPTIONS, &left))
		take(&l, INVERSIONS, &left);
	if (l.width[MINUTE])
		l.width[MINUTE] =
			l.width[MINUTE] + left < GP_MINUTE ? l.width[MINUTE] + left : GP_MINUTE;
	return l;
}

static void put_in_column(struct gp_cells *cells, unsigned row, const struct device_layout *l,
			  unsigned column, unsigned style, const char *text)
{
	unsigned at = 0;

	if (!l->width[column])
		return;
	for (unsigned i = 0; i < column; i++)
		at += l->width[i] || i == NAME ? l->width[i] + 1 : 0;
	if (device_columns[column].right)
		gp_cells_put_right(cells, row, at, l->width[column], style, text);
	else
		gp_cells_put(cells, row, at, l->width[column], style, text);
}

static void paint_device_headings(struct gp_cells *cells, unsigned row,
				  const struct device_layout *l)
{
	gp_cells_fill(cells, row, 0, cells->cols, GP_STYLE_HEAD);
	for (unsigned i = 0; i < DEVICE_COLUMNS; i++) {
		const char *head = device_columns[i].head;

		if (i == MINUTE && l->width[i] < strlen(head))
			head = "MINUTE";
		put_in_column(cells, row, l, i, GP_STYLE_HEAD, head);
	}
}

static void paint_device(const struct gp_top *top, struct gp_cells *cells, unsigned row,
			 const struct gp_top_device *d, const struct device_layout *l)
{
	bool ok = !strcmp(d->state, "ok");
	const char *policy = ok ? d->policy : d->state;
	char text[4 * GP_MINUTE + 1];

	snprintf(text, sizeof text, "%u", d->number);
	put_in_column(cells, row, l, NUMBER, GP_STYLE_PLAIN, text);
	put_in_column(cells, row, l, NAME, GP_STYLE_TITLE, d->name);
	put_in_column(cells, row, l, POLICY, ok && !d->ejected ? GP_STYLE_PLAIN : GP_STYLE_BAD,
		      *policy ? policy : "?");
	put_in_column(cells, row, l, BUSY, GP_STYLE_PLAIN,
		      percent_text(text, sizeof text, "", d->busy));
	if (l->width[MINUTE] && d->number < GP_DEVICES_MAX)
		put_in_column(cells, row, l, MINUTE, GP_STYLE_BAR,
			      gp_spark(text, sizeof text, &top->minute[d->number], l->width[MINUTE],
				       cells->utf8));
	put_in_column(cells, row, l, PREEMPTIONS, GP_STYLE_PLAIN,
		      rate_text(text, sizeof text, d->preemptions_per_s));
	put_in_column(cells, row, l, INVERSIONS,
		      d->inversions_per_s > 0 ? GP_STYLE_WARNING : GP_STYLE_PLAIN,
		      rate_text(text, sizeof text, d->inversions_per_s));
}

static void paint_rest(struct gp_cells *cells, unsigned row, unsigned left)
{
	char text[64];

	snprintf(text, sizeof text, "    %u more devices: gpreempt top --device N shows one", left);
	gp_cells_fill(cells, row, 0, cells->cols, GP_STYLE_PLAIN);
	gp_cells_put(cells, row, 0, cells->cols, GP_STYLE_FAINT, text);
}

static void paint_devices(const struct gp_top *top, struct gp_cells *cells, unsigned row,
			  unsigned rows)
{
	const struct gp_top_snapshot *snapshot = &top->link.snapshot;
	struct device_layout l = lay_out_devices(snapshot, cells);
	unsigned indent = l.width[NUMBER] + 1;
	unsigned used = 0;

	paint_device_headings(cells, row++, &l);
	for (unsigned i = 0; i < snapshot->ndevices && used < rows; i++) {
		const struct gp_top_device *d = &snapshot->device[i];

		if (used == rows - 1 && i + 1 < snapshot->ndevices) {
			paint_rest(cells, row + used, snapshot->ndevices - i);
			return;
		}
		paint_device(top, cells, row + used++, d, &l);
		if (d->ejected && used < rows)
			gp_cells_put(cells, row + used++, indent, cells->cols - indent,
				     GP_STYLE_BAD, d->why);
	}
}

/* Word and mark differ for each state, so that states can be told apart without colour. */
static const struct {
	const char *mark, *ascii;
	enum gp_style style;
} states[] = {
	[GP_TASK_RUNNING] = {"▸", ">", GP_STYLE_RUNNING},
	[GP_TASK_ACTIVE] = {"▹", "+", GP_STYLE_RUNNING},
	[GP_TASK_WAITING] = {"◇", "~", GP_STYLE_WAITING},
	[GP_TASK_HELD] = {"▪", "=", GP_STYLE_HELD},
	[GP_TASK_SUSPENDED] = {"■", "#", GP_STYLE_SUSPENDED},
	[GP_TASK_EVICTED] = {"□", "x", GP_STYLE_SUSPENDED},
	[GP_TASK_IDLE] = {"·", ".", GP_STYLE_FAINT},
	[GP_TASK_UNKNOWN] = {" ", " ", GP_STYLE_FAINT},
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
	struct gp_short_text wait = gp_cli_duration(ns);
	char *blank = strchr(wait.text, ' ');

	if (blank)
		memmove(blank, blank + 1, strlen(blank));
	if (t->waits_known)
		put(l, c, GP_STYLE_PLAIN, wait.text);
	else
		put(l, c, GP_STYLE_FAINT, "?");
}

static void put_state(const struct line *l, const struct gp_top_task *t)
{
	char text[64];

	snprintf(text, sizeof text, "%s %s",
		 l->cells->utf8 ? states[t->state].mark : states[t->state].ascii,
		 t->state == GP_TASK_UNKNOWN ? "?" : gp_task_state_name(t->state));
	put(l, GP_COL_STATE, states[t->state].style, text);
}

static void put_share(const struct line *l, const struct gp_top_task *t)
{
	unsigned at = l->layout->col[GP_COL_BAR].at, width = l->layout->col[GP_COL_BAR].width;
	char text[128];
	unsigned used;

	percent_text(text, sizeof text,
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
	put(l, GP_COL_CLASS, gp_class_style(t->class), gp_class_name(t->class));
	put_number(l, GP_COL_PRIORITY, t->priority);
	put_state(l, t);
	put_share(l, t);
	put_wait(l, GP_COL_P50, t, t->wait_p50_ns);
	put_wait(l, GP_COL_P99, t, t->wait_p99_ns);
	put(l, GP_COL_PREEMPTIONS, GP_STYLE_PLAIN,
	    rate_text(text, sizeof text, t->preemptions_per_s));
	put_name(l, t);
}

static void paint_task_headings(const struct line *l, enum gp_top_column sort, bool selection)
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

static void paint_tasks(const struct gp_top *top, struct gp_cells *cells, unsigned row,
			unsigned rows, bool selection)
{
	const struct gp_top_view *view = &top->view;
	struct gp_top_needs needs = gp_top_needs_of(&top->link.snapshot);
	struct gp_top_layout layout;
	struct line l = {.cells = cells, .layout = &layout, .row = row};

	gp_top_lay_out(&layout, &needs, cells->cols);
	paint_task_headings(&l, view->sort, selection);
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

static void paint_status(const struct gp_top *top, struct gp_cells *cells, unsigned row)
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
		{"evicted", "the driver keeps it off the GPU: no memory, or a reset"},
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

static void paint_panel(const struct gp_top *top, struct gp_cells *cells)
{
	if (top->mode == GP_TOP_HELP)
		paint_help(cells);
	else if (top->mode == GP_TOP_POLICY)
		paint_policies(top, cells);
}

/* "4 min", "3 h 12 min", "17 days": shows whether the daemon was restarted. */
static const char *age_text(char *out, size_t size, uint64_t ns)
{
	unsigned long long s = ns / GP_NS_PER_S;

	if (s < 120)
		snprintf(out, size, "%llu s", s);
	else if (s < 7200)
		snprintf(out, size, "%llu min", s / 60);
	else if (s < 172800)
		snprintf(out, size, "%llu h %llu min", s / 3600, s / 60 % 60);
	else
		snprintf(out, size, "%llu days", s / 86400);
	return out;
}

static void count_text(char *out, size_t size, const struct gp_top *top)
{
	const struct gp_top_snapshot *snapshot = &top->link.snapshot;

	if (*top->view.filter)
		snprintf(out, size, "%u of %u tasks match '%s'", top->view.n, snapshot->ntasks,
			 top->view.filter);
	else
		snprintf(out, size, "%u task%s on %u device%s", snapshot->ntasks,
			 snapshot->ntasks == 1 ? "" : "s", snapshot->ndevices,
			 snapshot->ndevices == 1 ? "" : "s");
}

static void paint_title(const struct gp_top *top, struct gp_cells *cells, unsigned row)
{
	const struct gp_top_snapshot *snapshot = &top->link.snapshot;
	char count[128], age[32], text[256];
	unsigned at;

	if (top->link.trouble.code) {
		gp_cells_fill(cells, row, 0, cells->cols, GP_STYLE_BAD);
		gp_cells_put(cells, row, 0, cells->cols, GP_STYLE_BAD, top->link.trouble.text);
		return;
	}
	count_text(count, sizeof count, top);
	at = gp_cells_put(cells, row, 0, cells->cols, GP_STYLE_TITLE,
			  top->link.had_snapshot ? count : "waiting for the daemon");
	if (!top->link.had_snapshot)
		return;
	if (snapshot->keeper_gone)
		at += gp_cells_put(cells, row, at, cells->cols - at, GP_STYLE_WARNING,
				   "  no keeper");
	snprintf(text, sizeof text, "%s, up %s", *snapshot->daemon ? snapshot->daemon : "gpreemptd",
		 age_text(age, sizeof age, snapshot->uptime_ns));
	if (at + 2 + gp_cells_width(cells, text) <= cells->cols)
		gp_cells_put_right(cells, row, at, cells->cols - at, GP_STYLE_FAINT, text);
}

void gp_top_paint(struct gp_top *top, struct gp_cells *cells, unsigned rows, unsigned cols)
{
	struct gp_top_rows r = gp_top_share_rows(rows, device_rows(&top->link.snapshot));
	unsigned row = 0;

	if (gp_cells_begin(cells, rows, cols))
		return;
	if (top->task_rows != r.tasks) {
		top->task_rows = r.tasks;
		gp_top_view_update(&top->view, &top->link.snapshot, r.tasks);
	}
	if (r.title)
		paint_title(top, cells, row++);
	if (r.device_head)
		paint_devices(top, cells, row, r.devices);
	row += r.device_head + r.devices;
	if (r.task_head)
		paint_tasks(top, cells, row, r.tasks, true);
	paint_panel(top, cells);
	if (r.status)
		paint_status(top, cells, rows - 1);
}

void gp_top_paint_plain(struct gp_top *top, struct gp_cells *cells, unsigned cols)
{
	unsigned devices = device_rows(&top->link.snapshot), tasks = top->view.n;

	if (gp_cells_begin(cells, 1 + (devices ? 1 + devices : 0) + 1 + tasks, cols))
		return;
	paint_title(top, cells, 0);
	if (devices)
		paint_devices(top, cells, 1, devices);
	paint_tasks(top, cells, cells->rows - tasks - 1, tasks, false);
}
