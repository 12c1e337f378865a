/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A simulation as a trace for Perfetto and Chrome (the JSON Trace Event Format): a process for each
 * policy and device, a thread for each task with what ran and what was switched to, and requests
 * and holds as asynchronous spans, since they overlap. Written as it happens.
 */
#ifndef GP_CLI_SIM_SIM_TRACE_H
#define GP_CLI_SIM_SIM_TRACE_H

#include "cli/sim/spans.h"
#include "cli/lib/trace_file.h"

struct gp_trace {
	struct gp_trace_file file;

	/* The run under way. */
	const struct gp_scenario *scenario;
	const char *label;
	struct gp_spans spans;
	uint32_t pid;    /* of the device; its tasks follow */
	uint32_t device; /* of the process */
	bool *named;     /* owned: whether the task's thread has its name */
};

/* Only what happens from `from_ns` to `to_ns` is written. 0 or -errno with a sentence. */
int gp_trace_open(struct gp_trace *trace, const char *path, uint64_t from_ns, uint64_t to_ns,
                  struct gp_error *err);

/* A run begins; `label` is its policy. Both must live until its end. 0 or -ENOMEM. */
int gp_trace_begin(struct gp_trace *trace, const struct gp_scenario *scenario, const char *label);

/* A gp_sim_watch; arg is the trace. */
void gp_trace_watch(void *trace, const struct gp_sim_event *event);

void gp_trace_end(struct gp_trace *trace);

/* 0 or -errno with a sentence. */
int gp_trace_close(struct gp_trace *trace, struct gp_error *err);
void gp_trace_drop(struct gp_trace *trace);

#endif
