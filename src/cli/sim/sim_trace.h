/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a simulation as a trace for Perfetto and Chrome (JSON Trace Event Format). Each policy and
 * device is a process, each task a thread with its running and switching spans. Requests and holds
 * overlap, so they are asynchronous spans. Spans are written during the run.
 */
#ifndef GP_CLI_SIM_SIM_TRACE_H
#define GP_CLI_SIM_SIM_TRACE_H

#include "cli/sim/spans.h"
#include "cli/lib/trace_file.h"

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

/* Writes only spans from `from_ns` to `to_ns`. 0, or -errno and a message. */
int gp_trace_open(struct gp_trace *trace, const char *path, uint64_t from_ns, uint64_t to_ns,
		  struct gp_error *err);

/* Begins a run. `label` is its policy. Scenario and label must live until gp_trace_end. 0 or
 * -ENOMEM. */
int gp_trace_begin(struct gp_trace *trace, const struct gp_scenario *scenario, const char *label);

/* A gp_sim_watch; arg is the trace. */
void gp_trace_watch(void *trace, const struct gp_sim_event *event);

void gp_trace_end(struct gp_trace *trace);

/* Closes the file; gp_trace_drop removes it instead. 0, or -errno and a message. */
int gp_trace_close(struct gp_trace *trace, struct gp_error *err);
void gp_trace_drop(struct gp_trace *trace);

#endif
