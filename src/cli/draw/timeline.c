/* SPDX-License-Identifier: Apache-2.0 */
/* Recording, and the drawing for terminals. */
#include <string.h>

#include "cli/cli.h"
#include "cli/draw/timeline.h"

void gp_timeline_init(struct gp_timeline *t, const char *label, uint64_t from_ns, uint64_t to_ns,
                      uint32_t request_task)
{
	*t = (struct gp_timeline){.label = label,
	                          .from_ns = from_ns,
	                          .to_ns = to_ns,
	                          .request_task = request_task,
	                          .open = {.from_ns = GP_NEVER}};
}

static void close_span(struct gp_timeline *t, uint64_t now_ns)
{
	struct gp_timeline_span s = t->open;

	t->open.from_ns = GP_NEVER;
	if (s.from_ns == GP_NEVER || now_ns <= t->from_ns || s.from_ns >= t->to_ns ||
	    t->nspans == GP_TIMELINE_SPANS)
		return;
	s.from_ns = s.from_ns < t->from_ns ? t->from_ns : s.from_ns;
	s.to_ns = now_ns > t->to_ns ? t->to_ns : now_ns;
	t->span[t->nspans++] = s;
}

void gp_timeline_watch(void *timeline, const struct gp_sim_event *event)
{
	struct gp_timeline *t = timeline;

	switch (event->what) {
	case GP_SIM_RUN:
	case GP_SIM_SWITCH:
		close_span(t, event->now_ns);
		t->open.from_ns = event->now_ns;
		t->open.task = event->what == GP_SIM_RUN ? (int32_t)event->task : -1;
		break;
	case GP_SIM_STOP: close_span(t, event->now_ns); break;
	case GP_SIM_REQUEST:
		if (event->task == t->request_task && event->arrival_ns >= t->from_ns &&
		    event->arrival_ns < t->to_ns && t->nmarks < GP_TIMELINE_MARKS)
			t->mark[t->nmarks++] =
				(struct gp_timeline_mark){event->arrival_ns, event->now_ns};
		break;
	default: break;
	}
}

/* What stands in a column: what had the GPU longest in it, but a request is never hidden. */
enum cell { IDLE, LC, BE, SWITCH, CELLS };

static uint64_t overlap(const struct gp_timeline_span *s, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t from = s->from_ns > from_ns ? s->from_ns : from_ns;
	uint64_t to = s->to_ns < to_ns ? s->to_ns : to_ns;

	return to > from ? to - from : 0;
}

static enum cell cell_at(const struct gp_timeline *t, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t had_ns[CELLS] = {0}, left_ns = to_ns - from_ns;
	enum cell best = IDLE;

	for (unsigned i = 0; i < t->nspans; i++) {
		const struct gp_timeline_span *s = &t->span[i];
		enum cell c = s->task < 0 ? SWITCH : s->task == (int32_t)t->request_task ? LC : BE;
		uint64_t ns = overlap(s, from_ns, to_ns);

		had_ns[c] += ns;
		left_ns -= ns;
	}
	if (had_ns[LC])
		return LC;
	had_ns[IDLE] = left_ns;
	for (unsigned c = 0; c < CELLS; c++)
		if (had_ns[c] > had_ns[best])
			best = c;
	return best;
}

static const char *const cell_text[2][CELLS] = {{" ", "#", ".", "/"}, {" ", "█", "░", "╱"}};
static const char *const cell_colour[CELLS] = {"", "\033[34m", "\033[33m", "\033[90m"};

static void print_cell(FILE *out, enum cell c, const struct gp_timeline_style *style)
{
	if (style->colour && c != IDLE)
		fprintf(out, "%s%s\033[0m", cell_colour[c], cell_text[style->utf8][c]);
	else
		fputs(cell_text[style->utf8][c], out);
}

static bool arrives_in(const struct gp_timeline *t, uint64_t from_ns, uint64_t to_ns)
{
	for (unsigned i = 0; i < t->nmarks; i++)
		if (t->mark[i].arrival_ns >= from_ns && t->mark[i].arrival_ns < to_ns)
			return true;
	return false;
}

static void print_lane(FILE *out, const struct gp_timeline *t,
                       const struct gp_timeline_style *style)
{
	uint64_t step_ns = (t->to_ns - t->from_ns) / style->columns;

	fprintf(out, "\n%s\n ", t->label);
	for (unsigned i = 0; i < style->columns; i++) {
		uint64_t at_ns = t->from_ns + i * step_ns;

		fputs(!arrives_in(t, at_ns, at_ns + step_ns) ? " " : style->utf8 ? "▾" : "v", out);
	}
	fputs("\n ", out);
	for (unsigned i = 0; i < style->columns; i++)
		print_cell(out,
		           cell_at(t, t->from_ns + i * step_ns, t->from_ns + (i + 1) * step_ns),
		           style);
	fputc('\n', out);
}

void gp_timeline_print(FILE *out, const struct gp_timeline *t, unsigned n, const char *lc,
                       const char *be, const struct gp_timeline_style *style)
{
	char window[32], column[32];

	fprintf(out, "Who had the GPU, %s of it, a column is %s:\n ",
	        gp_cli_duration(window, sizeof window, t->to_ns - t->from_ns),
	        gp_cli_duration(column, sizeof column, (t->to_ns - t->from_ns) / style->columns));
	print_cell(out, LC, style);
	fprintf(out, " %s   ", lc);
	print_cell(out, BE, style);
	fprintf(out, " %s   ", be);
	print_cell(out, SWITCH, style);
	fprintf(out, " switching   %s a request arrives\n", style->utf8 ? "▾" : "v");
	for (unsigned i = 0; i < n; i++)
		print_lane(out, &t[i], style);
}
