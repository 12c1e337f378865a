/* SPDX-License-Identifier: Apache-2.0 */
/* One picture of the daemon's devices and tasks, as plain data. */
#ifndef GP_CLI_TOP_TOP_SNAPSHOT_H
#define GP_CLI_TOP_TOP_SNAPSHOT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct json_object;

#define GP_TOP_UNKNOWN (-1.0) /* of a rate or a share: never 0 */

enum gp_top_state {
	GP_TOP_RUNNING,
	GP_TOP_ACTIVE,  /* running or waiting: the device does not say which */
	GP_TOP_WAITING, /* for its turn */
	GP_TOP_HELD,    /* by the policy */
	GP_TOP_SUSPENDED,
	GP_TOP_IDLE,
	GP_TOP_STATE_UNKNOWN,
};

struct gp_top_task {
	unsigned device;
	uint64_t id; /* on its device; never reused while the daemon lives */
	pid_t pid;
	uint64_t start_time;
	char name[64];
	char user[32]; /* "" = not known */
	uint8_t class; /* enum gp_class */
	uint8_t priority;
	enum gp_top_state state;
	bool refused;   /* the policy cannot promise what it asks for */
	uint64_t at_ns; /* when the daemon saw all this: its clock */

	bool run_known;
	bool run_granted; /* what the settings allowed: it had at most this */
	uint64_t run_ns;
	uint64_t preemptions;
	bool waits_known;
	uint64_t wait_p50_ns, wait_p99_ns;

	/* From rates.h; GP_TOP_UNKNOWN where it is not known. */
	double share;             /* of the device in the last second: 0 to 1 */
	double recently;          /* the same of the last seconds: what it is sorted by */
	double preemptions_per_s; /* in the last second */

	struct json_object *json; /* what the daemon said; NULL unless it is to be kept */
};

struct gp_top_device {
	unsigned number;
	char name[64];
	char policy[32]; /* in force; "" = not known */
	bool ejected;    /* ... because the one that is wanted was thrown out */
	char why[256];   /* it was */
	char state[16];  /* "ok", or what is wrong */
	unsigned tasks;
	uint64_t at_ns;
	bool busy_known, inversions_known;
	uint64_t busy_ns, preemptions, inversions;

	double busy; /* in the last second, as above */
	double preemptions_per_s, inversions_per_s;

	struct json_object *json;
};

struct gp_top_snapshot {
	char daemon[64];    /* its name and version; "" = not known */
	uint64_t uptime_ns; /* 0 = not known */
	bool keeper_gone;
	unsigned ndevices, ntasks;
	struct gp_top_device *device; /* owned */
	struct gp_top_task *task;     /* owned; by device and id */
	unsigned capacity;            /* of `task` */
};

/* Frees what is in it, and empties it. */
void gp_top_snapshot_clear(struct gp_top_snapshot *snapshot);

/* read.c: out of the daemon's answers to `stats` and `tasks`. `keep`: each with its JSON. Fields
 * of the wrong type count as not there. 0, -ENOMEM, or -EPROTO: it is no such answer. */
int gp_top_read_devices(struct gp_top_snapshot *snapshot, struct json_object *stats, bool keep);
int gp_top_read_tasks(struct gp_top_snapshot *snapshot, struct json_object *answer, bool keep);

/* Puts the tasks in order when all are there. */
void gp_top_snapshot_settle(struct gp_top_snapshot *snapshot);

/* By device, then id: for qsort and bsearch. */
int gp_top_compare_tasks(const void *a, const void *b);

#endif
