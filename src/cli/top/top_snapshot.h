/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's devices and tasks at one moment, as plain data, and their rates per second. */
#ifndef GP_CLI_TOP_TOP_SNAPSHOT_H
#define GP_CLI_TOP_TOP_SNAPSHOT_H

#include <sys/types.h>

#include "task/task.h"

struct json_object;

#define GP_TOP_UNKNOWN (-1.0) /* a rate or share that is not known */

struct gp_top_task {
	unsigned device;
	uint64_t id; /* on its device; the daemon never reuses it */
	pid_t pid;
	uint64_t start_time;
	char name[64];
	char user[32]; /* "": not known */
	uint8_t class; /* enum gp_class */
	uint8_t priority;
	enum gp_task_state state;
	bool refused;   /* the policy cannot promise its deadline or share */
	uint64_t at_ns; /* time of the snapshot on the daemon's clock */

	bool run_known;
	bool run_granted; /* run_ns is what the slices allowed: an upper bound of the run time */
	uint64_t run_ns;
	uint64_t preemptions;
	bool waits_known;
	uint64_t wait_p50_ns, wait_p99_ns;

	/* Filled in by gp_top_history_add; GP_TOP_UNKNOWN if not known. */
	double share;        /* of the device in the last second, 0 to 1 */
	double recent_share; /* of the device in the last 3 s, 0 to 1; the table is sorted by it */
	double preemptions_per_s; /* in the last second */

	struct json_object *json; /* owned: the daemon's answer; NULL unless `keep` was set */
};

struct gp_top_device {
	unsigned number;
	char name[64];
	char policy[32]; /* in force; "": not known */
	bool ejected;    /* the wanted policy was ejected */
	char why[256];   /* why the policy was ejected; "" if it was not */
	char state[16];  /* "ok", or what is wrong with the device */
	unsigned tasks;
	uint64_t at_ns;
	bool busy_known, inversions_known;
	uint64_t busy_ns, preemptions, inversions;

	double busy; /* in the last second, 0 to 1 */
	double preemptions_per_s, inversions_per_s;

	struct json_object *json;
};

struct gp_top_snapshot {
	char daemon[64];    /* name and version; "": not known */
	uint64_t uptime_ns; /* 0: not known */
	bool keeper_gone;
	unsigned ndevices, ntasks;
	struct gp_top_device *device; /* owned */
	struct gp_top_task *task;     /* owned; sorted by device and id */
	unsigned capacity;            /* of `task` */
};

/* Frees the contents and sets all fields to 0. */
void gp_top_snapshot_clear(struct gp_top_snapshot *snapshot);

/*
 * Read the daemon's answers to `stats` and `tasks`. With `keep`, each device and task also holds
 * its JSON. A field of the wrong type counts as missing. 0, -ENOMEM, or -EPROTO for an answer of
 * another form.
 */
int gp_top_read_devices(struct gp_top_snapshot *snapshot, struct json_object *stats, bool keep);
int gp_top_read_tasks(struct gp_top_snapshot *snapshot, struct json_object *answer, bool keep);

/* Sorts the tasks by device and id. */
void gp_top_snapshot_sort(struct gp_top_snapshot *snapshot);

/* Compares by device, then id; for qsort and bsearch. */
int gp_top_compare_tasks(const void *a, const void *b);

/*
 * Rates of tasks and devices over the last second, computed from counters. The last snapshots are
 * kept, so that a snapshot is compared with the one of a second ago even if several are taken per
 * second.
 */
#define GP_TOP_HISTORY 48 /* snapshots kept, at most */

/* The counters of one snapshot. */
struct gp_top_sample {
	uint64_t at_ns; /* clock of gpreempt top */
	unsigned ndevices, ntasks;
	struct gp_top_device *device; /* owned */
	struct gp_top_task *task;     /* owned */
};

/* Empty when all bytes are 0. */
struct gp_top_history {
	unsigned n;
	struct gp_top_sample sample[GP_TOP_HISTORY]; /* the oldest is sample[0] */
};

/* Fills in the rates of `snapshot`, taken at `now_ns`, and keeps a copy. Without memory for the
 * copy, later rates are unknown. */
void gp_top_history_add(struct gp_top_history *history, struct gp_top_snapshot *snapshot,
			uint64_t now_ns);

/* Forgets all snapshots. Call it after a lost connection: another daemon counts from 0. */
void gp_top_history_clear(struct gp_top_history *history);

#endif
