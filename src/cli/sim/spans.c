/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/sim/spans.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/sim/sim_report.h"

int gp_spans_begin(struct gp_spans *s, const struct gp_scenario *scenario)
{
	const struct gp_sim_device *d = &scenario->device;

	s->ntasks = scenario->ntasks;
	s->device = 0;
	s->end_ns = scenario->duration_ns;
	s->switch_ns = GP_NEVER;
	if (d->model == GP_SIM_RUNLIST)
		s->switch_most_ns =
			d->switch_ns > d->switch_idle_ns ? d->switch_ns : d->switch_idle_ns;
	else
		s->switch_most_ns = 0;
	s->run_ns = malloc((s->ntasks + 1) * sizeof *s->run_ns);
	s->held_ns = malloc((s->ntasks + 1) * sizeof *s->held_ns);
	if (!s->run_ns || !s->held_ns) {
		free(s->run_ns);
		free(s->held_ns);
		s->run_ns = s->held_ns = NULL;
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < s->ntasks; i++)
		s->run_ns[i] = s->held_ns[i] = GP_NEVER;
	return 0;
}

static void emit(const struct gp_spans *s, enum gp_span_kind kind, uint32_t task, uint64_t from_ns,
		 uint64_t to_ns)
{
	struct gp_span span = {kind, s->device, task, from_ns, to_ns};

	if (to_ns <= s->from_ns || from_ns >= s->to_ns || from_ns == to_ns)
		return;
	if (kind != GP_SPAN_REQUEST) {
		span.from_ns = from_ns > s->from_ns ? from_ns : s->from_ns;
		span.to_ns = to_ns < s->to_ns ? to_ns : s->to_ns;
	}
	s->on_span(s->arg, &span);
}

static void close_span(const struct gp_spans *s, enum gp_span_kind kind, uint32_t task,
		       uint64_t *since_ns, uint64_t now_ns)
{
	if (*since_ns != GP_NEVER)
		emit(s, kind, task, *since_ns, now_ns);
	*since_ns = GP_NEVER;
}

/*
 * Model runlist: no event marks the end of a switch if its task is held meanwhile and no other task
 * wants the device. The switch then ends after switch_most_ns. Model cwsr: a switch ends when its
 * task is held or released.
 */
static void close_switch(struct gp_spans *s, uint64_t now_ns)
{
	if (s->switch_ns != GP_NEVER && s->switch_most_ns &&
	    now_ns - s->switch_ns > s->switch_most_ns)
		now_ns = s->switch_ns + s->switch_most_ns;
	close_span(s, GP_SPAN_SWITCH, s->switch_task, &s->switch_ns, now_ns);
}

static void close_all(struct gp_spans *s, uint64_t now_ns)
{
	close_switch(s, now_ns);
	for (uint32_t i = 0; i < s->ntasks; i++) {
		close_span(s, GP_SPAN_RUN, i, &s->run_ns[i], now_ns);
		close_span(s, GP_SPAN_HELD, i, &s->held_ns[i], now_ns);
	}
}

static void open_switch(struct gp_spans *s, const struct gp_sim_event *event)
{
	close_switch(s, event->now_ns);
	close_span(s, GP_SPAN_RUN, event->task, &s->run_ns[event->task], event->now_ns);
	s->switch_ns = event->now_ns;
	s->switch_task = event->task;
}

static void change_hold(struct gp_spans *s, const struct gp_sim_event *event)
{
	uint32_t t = event->task;

	if (!s->switch_most_ns && s->switch_task == t)
		close_switch(s, event->now_ns);
	if (event->what != GP_SIM_HELD)
		close_span(s, GP_SPAN_HELD, t, &s->held_ns[t], event->now_ns);
	else if (s->held_ns[t] == GP_NEVER)
		s->held_ns[t] = event->now_ns;
}

void gp_spans_watch(void *spans, const struct gp_sim_event *event)
{
	struct gp_spans *s = spans;
	uint32_t t = event->task;

	if (event->device != s->device) { /* the previous device is at its end */
		close_all(s, s->end_ns);
		s->device = event->device;
	}
	switch (event->what) {
	case GP_SIM_RUN:
		close_switch(s, event->now_ns);
		if (s->run_ns[t] == GP_NEVER)
			s->run_ns[t] = event->now_ns;
		break;
	case GP_SIM_STOP: close_span(s, GP_SPAN_RUN, t, &s->run_ns[t], event->now_ns); break;
	case GP_SIM_SWITCH: open_switch(s, event); break;
	case GP_SIM_HELD:
	case GP_SIM_RELEASED:
	case GP_SIM_GONE: change_hold(s, event); break;
	case GP_SIM_REQUEST: emit(s, GP_SPAN_REQUEST, t, event->arrival_ns, event->now_ns); break;
	default: break;
	}
}

void gp_spans_end(struct gp_spans *s)
{
	if (!s->run_ns)
		return;
	close_all(s, s->end_ns);
	free(s->run_ns);
	free(s->held_ns);
	s->run_ns = s->held_ns = NULL;
}

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
