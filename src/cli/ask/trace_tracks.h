/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's tasks as tracks of a trace. Samples of all tasks give the state and the GPU time
 * between samples. Events give the exact times of holds and releases.
 */
#ifndef GP_CLI_ASK_TRACE_TRACKS_H
#define GP_CLI_ASK_TRACE_TRACKS_H

#include "base/table.h"
#include "cli/lib/fields.h"
#include "cli/lib/trace_file.h"

struct gp_track_task {
	uint64_t device, task;
	struct gp_track at;
	char label[64]; /* "train.py 4712" */
	char state[16]; /* as last sampled; "" = nothing to draw */
	uint64_t state_ns;
	bool held;
	uint64_t held_ns; /* since when */
	bool run_known;
	uint64_t run_ns, run_at_ns; /* at the last sample, and the time of that */
};

struct gp_tracks {
	struct gp_trace_file file;
	uint64_t begin_ns, end_ns; /* CLOCK_MONOTONIC; times in the file are relative to begin_ns */
	struct json_object *devices; /* borrowed */
	struct gp_track *device;     /* owned; as many as devices */
	struct gp_table index;       /* device and task to the index in `task` */
	struct gp_track_task *task;  /* owned */
	unsigned n, capacity;
	uint64_t samples, events, lost;
};

/* 0 or -errno with a message. The caller closes it in any case. */
int gp_tracks_open(struct gp_tracks *tracks, const char *path, struct json_object *devices,
		   struct gp_error *err);

/* Adds a sample of all tasks. */
void gp_tracks_sample(struct gp_tracks *tracks, struct json_object *tasks, uint64_t now_ns);

/* Adds a notification of the daemon. */
void gp_tracks_event(struct gp_tracks *tracks, struct json_object *notification);

/* Ends all open spans. 0 or -errno with a message: the file may be incomplete. */
int gp_tracks_close(struct gp_tracks *tracks, uint64_t now_ns, struct gp_error *err);

#endif
