/* SPDX-License-Identifier: Apache-2.0 */
/* gpreempt resume: the result for each process (resume_outcome.c). Private to both files. */
#ifndef GP_CLI_VERB_RESUME_H
#define GP_CLI_VERB_RESUME_H

#include <stdbool.h>
#include <sys/types.h>

#include "hold/replay.h"

struct json_object;

/* The results so far. A process is reported once, also if it has several records. */
struct gp_outcome {
	bool json;
	struct json_object *list; /* of released processes, with `json` */
	unsigned released;        /* processes */
	unsigned unchanged;       /* processes that had nothing to undo */
	unsigned stale;           /* records of processes that have ended */
	int exit;                 /* of the first failure */
	pid_t daemon;             /* that answered: its own tasks stay as they are; 0 = none */
	bool foreign_daemon;      /* the daemon's records are not readable for this user */
	struct gp_error *answer;  /* of the daemon, by target; .code 0: it knows the process */
	unsigned n, capacity;
	pid_t *done; /* processes that are reported */
};

bool gp_outcome_is_done(const struct gp_outcome *o, pid_t pid);
/* Marks a process as reported. */
void gp_outcome_note(struct gp_outcome *o, pid_t pid);

/* The process that held another. The name is read before the release, which may end the process. */
struct gp_outcome_owner {
	pid_t pid;
	char name[32];
	enum gp_owner_state state; /* GP_OWNER_RUNS: it released the process */
};

/* `owner` NULL: the process that held it is not known. */
void gp_outcome_released(struct gp_outcome *o, pid_t pid, const struct gp_outcome_owner *owner);
void gp_outcome_failed(struct gp_outcome *o, pid_t pid, const struct gp_error *err);

void gp_outcome_begin(struct gp_outcome *o);
void gp_outcome_end(const struct gp_outcome *o);

#endif
