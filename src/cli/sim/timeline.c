/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/sim/timeline.h"

#include <errno.h>
#include <stdlib.h>

#include "cli/cli.h"

#define SPANS_MAX 40000u /* per run: more would be a grey area and megabytes of SVG */

struct recorder {
	const struct gp_timeline *timeline;
	struct gp_timeline_run *run;
	struct gp_spans spans;
};

static bool has_row(const struct gp_timeline *t, const struct gp_span *s)
{
	for (unsigned i = 0; i < t->nrows; i++)
		if (t->row[i].device == s->device && t->row[i].task == s->task)
			return true;
	return false;
}

static void record_span(void *arg, const struct gp_span *s)
{
	struct recorder *recorder = arg;
	struct gp_timeline_run *r = recorder->run;

	if (r->cut || !has_row(recorder->timeline, s))
		return;
	if (r->n == r->capacity) {
		unsigned capacity = r->capacity ? 2 * r->capacity : 256;
		struct gp_span *span = NULL;

		if (r->n < SPANS_MAX)
			span = reallocarray(r->span, capacity, sizeof *span);
		r->cut = !span;
		if (!span)
			return;
		r->span = span;
		r->capacity = capacity;
	}
	r->span[r->n++] = *s;
}

static struct gp_timeline_run *add_run(struct gp_timeline *t, const char *label)
{
	struct gp_timeline_run *run = reallocarray(t->run, t->nruns + 1, sizeof *run);

	if (!run)
		return NULL;
	t->run = run;
	run += t->nruns++;
	*run = (struct gp_timeline_run){.label = label};
	return run;
}

int gp_timeline_record(struct gp_timeline *t, const char *label, struct gp_scenario *scenario,
		       const struct gp_policy_choice *policy, struct gp_run *result,
		       struct gp_error *err)
{
	struct recorder recorder = {.timeline = t, .run = add_run(t, label)};
	struct gp_run_options options = {.watch = gp_spans_watch, .watch_arg = &recorder.spans};
	struct gp_run unused;
	int r;

	recorder.spans = (struct gp_spans){
		.from_ns = t->from_ns, .to_ns = t->to_ns, .on_span = record_span, .arg = &recorder};
	if (!recorder.run || gp_spans_begin(&recorder.spans, scenario))
		return gp_fail(err, -ENOMEM, "no memory for the timeline of %s", label);
	r = gp_scenario_run(scenario, policy, &options, result ? result : &unused, err);
	gp_spans_end(&recorder.spans);
	if (!r && !result)
		gp_run_free(&unused);
	return r;
}

void gp_timeline_free(struct gp_timeline *t)
{
	for (unsigned i = 0; i < t->nruns; i++)
		free(t->run[i].span);
	free(t->run);
	t->run = NULL;
	t->nruns = 0;
}

bool gp_timeline_has_requests(const struct gp_timeline *t, uint32_t task)
{
	enum gp_sim_load load = t->scenario->task[task].load;

	return load != GP_LOAD_CLOSED && load != GP_LOAD_IDLE;
}

/*
 * In the terminal. A column shows what had the device longest in its time. A latency-critical task
 * always shows, however short it ran.
 */
enum cell { IDLE, LC, BE, SWITCH, CELLS };

static uint64_t overlap(const struct gp_span *s, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t from = s->from_ns > from_ns ? s->from_ns : from_ns;
	uint64_t to = s->to_ns < to_ns ? s->to_ns : to_ns;

	return to > from ? to - from : 0;
}

static enum cell cell_of(const struct gp_timeline *t, const struct gp_span *s)
{
	if (s->kind == GP_SPAN_SWITCH)
		return SWITCH;
	return t->scenario->attr[s->task].class == GP_LATENCY_CRITICAL ? LC : BE;
}

static enum cell cell_at(const struct gp_timeline *t, const struct gp_timeline_run *run,
			 uint64_t from_ns, uint64_t to_ns)
{
	uint64_t sum_ns[CELLS] = {[IDLE] = to_ns - from_ns};
	enum cell best = IDLE;

	for (unsigned i = 0; i < run->n; i++) {
		const struct gp_span *s = &run->span[i];
		uint64_t ns = overlap(s, from_ns, to_ns);

		if (s->device || (s->kind != GP_SPAN_RUN && s->kind != GP_SPAN_SWITCH))
			continue;
		sum_ns[cell_of(t, s)] += ns;
		sum_ns[IDLE] -= ns < sum_ns[IDLE] ? ns : sum_ns[IDLE];
	}
	if (sum_ns[LC])
		return LC;
	for (unsigned c = 0; c < CELLS; c++)
		if (sum_ns[c] > sum_ns[best])
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

static bool arrives_in(const struct gp_timeline *t, const struct gp_timeline_run *run,
		       uint64_t from_ns, uint64_t to_ns)
{
	for (unsigned i = 0; i < run->n; i++) {
		const struct gp_span *s = &run->span[i];

		if (s->kind == GP_SPAN_REQUEST && !s->device && s->from_ns >= from_ns &&
		    s->from_ns < to_ns && gp_timeline_has_requests(t, s->task))
			return true;
	}
	return false;
}

static void print_run(FILE *out, const struct gp_timeline *t, const struct gp_timeline_run *run,
		      const struct gp_timeline_style *style)
{
	uint64_t step_ns = (t->to_ns - t->from_ns) / style->columns;

	fprintf(out, "\n%s\n ", run->label);
	for (unsigned i = 0; i < style->columns; i++) {
		uint64_t at_ns = t->from_ns + i * step_ns;

		fputs(!arrives_in(t, run, at_ns, at_ns + step_ns) ? " "
		      : style->utf8                               ? "▾"
								  : "v",
		      out);
	}
	fputs("\n ", out);
	for (unsigned i = 0; i < style->columns; i++) {
		uint64_t at_ns = t->from_ns + i * step_ns;

		print_cell(out, cell_at(t, run, at_ns, at_ns + step_ns), style);
	}
	fputc('\n', out);
}

void gp_timeline_print(FILE *out, const struct gp_timeline *t, const char *lc, const char *be,
		       const struct gp_timeline_style *style)
{
	fprintf(out, "GPU use during %s; one column is %s:\n ",
		gp_cli_duration(t->to_ns - t->from_ns).text,
		gp_cli_duration((t->to_ns - t->from_ns) / style->columns).text);
	print_cell(out, LC, style);
	fprintf(out, " %s   ", lc);
	print_cell(out, BE, style);
	fprintf(out, " %s   ", be);
	print_cell(out, SWITCH, style);
	fprintf(out, " switching   %s a request arrives\n", style->utf8 ? "▾" : "v");
	for (unsigned i = 0; i < t->nruns; i++)
		print_run(out, t, &t->run[i], style);
}
