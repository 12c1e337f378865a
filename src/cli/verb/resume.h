/* SPDX-License-Identifier: Apache-2.0 */
/* gpreempt resume: what came of it, and how that is told (resume_outcome.c). Private to both. */
#ifndef GP_CLI_VERB_RESUME_H
#define GP_CLI_VERB_RESUME_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

/* What came of it. A process is said once, however many records it has. */
struct gp_outcome {
	bool json;
	unsigned released;       /* processes */
	unsigned looked;         /* that had nothing to undo */
	unsigned stale;          /* records of processes that ended */
	int exit;                /* the first failure */
	pid_t daemon;            /* that answered: what is in its hands stays there; 0 = none */
	bool its_own;            /* its records are not for us to read */
	struct gp_error *answer; /* of the daemon, by target; .code 0: it knows the process */
	unsigned n, capacity;
	pid_t *told; /* those that are dealt with */
};

bool gp_outcome_is_told(const struct gp_outcome *o, pid_t pid);
/* Nothing more is to be said of it. */
void gp_outcome_note(struct gp_outcome *o, pid_t pid);
/* `holder` 0: nobody knows who held it. */
void gp_outcome_released(struct gp_outcome *o, pid_t pid, pid_t owner);
void gp_outcome_failed(struct gp_outcome *o, pid_t pid, const struct gp_error *err);

void gp_outcome_begin(const struct gp_outcome *o);
void gp_outcome_end(const struct gp_outcome *o);

#endif
