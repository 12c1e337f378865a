/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts the events of a simulation into spans: which task ran, was switched to, was held, or
 * worked on a request, from when to when. For pictures and traces. A span is passed on when it
 * ends, so that memory does not grow with the length of a run.
 */
#ifndef GP_CLI_SIM_SPANS_H
#define GP_CLI_SIM_SPANS_H

#include "cli/lib/trace_file.h"
#include "sim/scenario/scenario.h"

enum gp_span_kind {
	GP_SPAN_RUN,     /* on the device; several tasks may run at the same time */
	GP_SPAN_SWITCH,  /* the device switches to the task */
	GP_SPAN_HELD,    /* kept off the device */
	GP_SPAN_REQUEST, /* from its scheduled arrival to its end */
};

struct gp_span {
	enum gp_span_kind kind;
	uint32_t device, task;
	uint64_t from_ns, to_ns;
};

/*
 * Called for each span that lies at least partly in the window. Requests are passed on whole, all
 * other spans are cut to the window. RUN and SWITCH never overlap for one task.
 */
typedef void gp_span_fn(void *arg, const struct gp_span *span);

struct gp_spans {
	uint64_t from_ns, to_ns; /* the window */
	gp_span_fn *on_span;
	void *arg;

	uint32_t ntasks;
	uint64_t end_ns;         /* of the run */
	uint32_t device;         /* devices are simulated one after the other */
	uint64_t *run_ns;        /* owned: when each task began to run; GP_NEVER: it does not run */
	uint64_t *held_ns;       /* owned: when each task was held; GP_NEVER: it is not held */
	uint64_t switch_ns;      /* when the device began to switch; GP_NEVER: it does not switch */
	uint32_t switch_task;    /* the task it switches to */
	uint64_t switch_most_ns; /* longest switch; 0: an event marks the end of every switch */
};

/* Fill in window, `on_span` and `arg` first. 0 or -ENOMEM. */
int gp_spans_begin(struct gp_spans *spans, const struct gp_scenario *scenario);

/* A gp_sim_watch, to be registered with the struct gp_spans as its argument. */
void gp_spans_watch(void *spans, const struct gp_sim_event *event);

/* Ends the spans that are still open at the end of the run, and frees. Does nothing without a
 * begin. */
void gp_spans_end(struct gp_spans *spans);

/*
 * Writes a simulation as a trace for Perfetto and Chrome (JSON Trace Event Format). Each policy and
 * device is a process, each task a thread with its running and switching spans. Requests and holds
 * overlap, so they are asynchronous spans. Spans are written during the run.
 */
struct gp_trace {
	struct gp_trace_file file;

	/* The current run. */
	const struct gp_scenario *scenario;
	const char *label;
	struct gp_spans spans;
	uint32_t pid;    /* trace process of the device; the threads of its tasks follow */
	uint32_t device; /* that `pid` stands for */
	bool *named;     /* owned, per task: its thread has a name in the trace */
};

/* Writes only spans from `from_ns` to `to_ns`. 0, or -errno and a message. The caller closes or
 * drops trace->file. */
int gp_trace_open(struct gp_trace *trace, const char *path, uint64_t from_ns, uint64_t to_ns,
		  struct gp_error *err);

/* Begins a run. `label` is its policy. Scenario and label must live until gp_trace_end. 0 or
 * -ENOMEM. */
int gp_trace_begin(struct gp_trace *trace, const struct gp_scenario *scenario, const char *label);

/* A gp_sim_watch; arg is the trace. */
void gp_trace_watch(void *trace, const struct gp_sim_event *event);

void gp_trace_end(struct gp_trace *trace);

#endif
