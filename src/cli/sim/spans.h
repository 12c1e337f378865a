/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happened to each task from when to when, made of the events of a simulation: for pictures
 * and traces. A span is told when it ends, so memory does not grow with the length of a run.
 */
#ifndef GP_CLI_SIM_SPANS_H
#define GP_CLI_SIM_SPANS_H

#include "sim/scenario/scenario.h"

enum gp_span_kind {
	GP_SPAN_RUN,     /* on the device; tasks may be there at the same time */
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
 * `kind` RUN and SWITCH never overlap for one task. All but requests are cut to the window; a
 * request of which any part lies in the window is told whole.
 */
typedef void gp_span_told(void *arg, const struct gp_span *span);

struct gp_spans {
	uint64_t from_ns, to_ns; /* the window */
	gp_span_told *told;
	void *arg;

	uint32_t ntasks;
	uint64_t end_ns;    /* of the run */
	uint32_t device;    /* devices are simulated one after the other */
	uint64_t *run_ns;   /* owned: since when the task runs; GP_NEVER: it does not */
	uint64_t *held_ns;  /* ... is held */
	uint64_t switch_ns; /* since when the device switches, and to whom */
	uint32_t switch_task;
	uint64_t switch_most_ns; /* 0: the end of a switch is always told */
};

/* Fill in window, `told` and `arg` first. 0 or -ENOMEM. */
int gp_spans_begin(struct gp_spans *spans, const struct gp_scenario *scenario);

/* A gp_sim_watch; arg is the spans. */
void gp_spans_watch(void *spans, const struct gp_sim_event *event);

/* The run is over: what is still open ends with it. Frees. Harmless without a begin. */
void gp_spans_end(struct gp_spans *spans);

#endif
