/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file in the JSON Trace Event Format, for Perfetto and Chrome, written as things happen.
 *
 * Two things are shaped by Perfetto's reader: a thread's name goes by its number alone, whatever
 * the process, so numbers are never used twice; and spans of one thread must lie inside or beside
 * each other, so what can overlap (requests, holds) is told as pairs of asynchronous events with
 * a number of their own. Events need not be in the order of time.
 */
#ifndef GP_CLI_LIB_TRACE_FILE_H
#define GP_CLI_LIB_TRACE_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "cli/lib/out_file.h"

struct gp_trace_file {
	struct gp_out_file file;
	const char *path;
	bool any;         /* an event was written */
	uint32_t next;    /* the next number for a process or thread */
	uint64_t next_id; /* ... for a pair of asynchronous events */
};

/* Where an event stands: a thread of a process. A process is a thread of its own, too. */
struct gp_track {
	uint32_t pid, tid;
};

/* 0 or -errno with a sentence. `path` must live until the end. */
int gp_trace_file_open(struct gp_trace_file *t, const char *path, struct gp_error *err);

/* It is complete, and takes the place of what was at its path. 0 or -errno with a sentence. */
int gp_trace_file_close(struct gp_trace_file *t, struct gp_error *err);

/* It is not wanted. */
void gp_trace_file_drop(struct gp_trace_file *t);

/* Names a track, and puts it in the order of numbers: `what` is "process" or "thread". */
void gp_trace_name(struct gp_trace_file *t, struct gp_track track, const char *what,
                   const char *name);

/* From when to when; those of one track must lie inside or beside each other. */
void gp_trace_span(struct gp_trace_file *t, struct gp_track track, const char *category,
                   const char *name, uint64_t from_ns, uint64_t to_ns);

/* The same for what may overlap. */
void gp_trace_overlapping(struct gp_trace_file *t, struct gp_track track, const char *category,
                          const char *name, uint64_t from_ns, uint64_t to_ns);

/* Something that has no length. */
void gp_trace_moment(struct gp_trace_file *t, struct gp_track track, const char *category,
                     const char *name, uint64_t at_ns);

/* A curve: the value from then on, until the next. */
void gp_trace_value(struct gp_trace_file *t, struct gp_track track, const char *name,
                    uint64_t from_ns, double value);

#endif
