/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file in the JSON Trace Event Format, for Perfetto and Chrome. Events are written as they
 * happen, not kept in memory: a trace can be large.
 *
 * Two limits of Perfetto's reader: it finds a thread's name by the thread number alone, so numbers
 * are unique in the file. And spans of one thread must be nested or disjoint, so spans that can
 * overlap (requests, holds) are pairs of asynchronous events with an id. Events may be unordered.
 */
#ifndef GP_CLI_LIB_TRACE_FILE_H
#define GP_CLI_LIB_TRACE_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "cli/lib/out_file.h"

struct gp_trace_file {
	struct gp_out_file file;
	const char *path;
	bool any;         /* an event was written */
	uint32_t next;    /* the next number for a process or thread */
	uint64_t next_id; /* the next id for a pair of asynchronous events */
};

/* The track of an event: a thread of a process. A process is also a thread. */
struct gp_track {
	uint32_t pid, tid;
};

/* 0 or -errno with a message. `path` must stay valid until close or drop. */
int gp_trace_file_open(struct gp_trace_file *t, const char *path, struct gp_error *err);

/* Completes the file and replaces an older one. 0 or -errno with a message. */
int gp_trace_file_close(struct gp_trace_file *t, struct gp_error *err);

/* Discards the file. */
void gp_trace_file_drop(struct gp_trace_file *t);

/* Names a track and sorts it by its number. `what` is "process" or "thread". */
void gp_trace_name(struct gp_trace_file *t, struct gp_track track, const char *what,
		   const char *name);

/* A span. Spans of one track must be nested or disjoint. */
void gp_trace_span(struct gp_trace_file *t, struct gp_track track, const char *category,
		   const char *name, uint64_t from_ns, uint64_t to_ns);

/* A span that may overlap others. */
void gp_trace_overlapping(struct gp_trace_file *t, struct gp_track track, const char *category,
			  const char *name, uint64_t from_ns, uint64_t to_ns);

/* An instant. */
void gp_trace_moment(struct gp_trace_file *t, struct gp_track track, const char *category,
		     const char *name, uint64_t at_ns);

/* A point of a curve: the value until the next point. */
void gp_trace_value(struct gp_trace_file *t, struct gp_track track, const char *name,
		    uint64_t from_ns, double value);

#endif
