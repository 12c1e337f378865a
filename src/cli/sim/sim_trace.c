/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/sim/spans.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/sim/sim_report.h"

static void write_span(void *arg, const struct gp_span *span);

int gp_trace_open(struct gp_trace *t, const char *path, uint64_t from_ns, uint64_t to_ns,
		  struct gp_error *err)
{
	*t = (struct gp_trace){
		.spans = {.from_ns = from_ns, .to_ns = to_ns, .on_span = write_span, .arg = t}};
	return gp_trace_file_open(&t->file, path, err);
}

static struct gp_track track_of(const struct gp_trace *t, uint32_t task)
{
	return (struct gp_track){.pid = t->pid, .tid = t->pid + 1 + task};
}

static void begin_device(struct gp_trace *t, uint32_t device)
{
	char name[192];

	t->device = device;
	t->pid = t->file.next;
	t->file.next += 1 + t->scenario->ntasks;
	memset(t->named, 0, t->scenario->ntasks * sizeof *t->named);
	snprintf(name, sizeof name, "%s, device %" PRIu32, t->label, device);
	gp_trace_name(&t->file, (struct gp_track){t->pid, t->pid}, "process", name);
}

static void name_thread(struct gp_trace *t, uint32_t task)
{
	char name[64];

	if (t->named[task])
		return;
	t->named[task] = true;
	snprintf(name, sizeof name, "%s (%s)", t->scenario->task[task].name,
		 gp_class_name(t->scenario->attr[task].class));
	gp_trace_name(&t->file, track_of(t, task), "thread", name);
}

static void put_overlapping(struct gp_trace *t, const struct gp_span *s)
{
	bool request = s->kind == GP_SPAN_REQUEST;
	char name[64];

	snprintf(name, sizeof name, "%s %s", t->scenario->task[s->task].name,
		 request ? "request" : "held");
	gp_trace_overlapping(&t->file, track_of(t, s->task), request ? "request" : "hold", name,
			     s->from_ns, s->to_ns);
}

static void write_span(void *arg, const struct gp_span *s)
{
	struct gp_trace *t = arg;

	if (!t->pid || s->device != t->device)
		begin_device(t, s->device);
	name_thread(t, s->task);
	if (s->kind == GP_SPAN_RUN)
		gp_trace_span(&t->file, track_of(t, s->task), "run", "running", s->from_ns,
			      s->to_ns);
	else if (s->kind == GP_SPAN_SWITCH)
		gp_trace_span(&t->file, track_of(t, s->task), "switch", "switching", s->from_ns,
			      s->to_ns);
	else
		put_overlapping(t, s);
}

int gp_trace_begin(struct gp_trace *t, const struct gp_scenario *scenario, const char *label)
{
	t->scenario = scenario;
	t->label = label;
	t->pid = 0;
	t->named = calloc(scenario->ntasks ? scenario->ntasks : 1, sizeof *t->named);
	return t->named ? gp_spans_begin(&t->spans, scenario) : -ENOMEM;
}

void gp_trace_watch(void *trace, const struct gp_sim_event *event)
{
	gp_spans_watch(&((struct gp_trace *)trace)->spans, event);
}

void gp_trace_end(struct gp_trace *t)
{
	gp_spans_end(&t->spans);
	free(t->named);
	t->named = NULL;
}

int gp_trace_close(struct gp_trace *t, struct gp_error *err)
{
	return gp_trace_file_close(&t->file, err);
}

void gp_trace_drop(struct gp_trace *t)
{
	gp_trace_file_drop(&t->file);
}
