/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What verbs that also work without a daemon ask of it. Each call answers false when there is no
 * daemon, or this build cannot ask one (it has no json-c): the verb then does it itself. True: it
 * is done, or failed with a sentence, and `*exit` is the exit code.
 */
#ifndef GP_CLI_ASK_WITH_DAEMON_H
#define GP_CLI_ASK_WITH_DAEMON_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "cli/lib/targets.h"

/* Tasks as the daemon knows them. `for_ns`: how long to watch for shares; 0: since they came. */
bool gp_daemon_ps(uint64_t for_ns, bool json, int *exit);

/* What tasks had while it watched, and what the daemon counted. */
bool gp_daemon_stats(uint64_t for_ns, bool json, int *exit);

/* Prints which policy is in force, or nothing. */
void gp_daemon_show_policy(void);

/* Which policy is in force on each device, by its number. Returns how many devices there are, `max`
 * at most; -1: no daemon answers. */
#define GP_DAEMON_POLICY_SIZE 32
int gp_daemon_policies(char name[][GP_DAEMON_POLICY_SIZE], unsigned max);

/* Sets a policy ("qos:period=50") on all devices, or on one (-1: all). Returns the exit code. */
int gp_daemon_set_policy(const char *text, int device, bool json);

/* Holds, and returns (`for_ns` GP_NEVER), or waits and releases. */
bool gp_daemon_suspend(const struct gp_targets *targets, uint64_t for_ns, bool force, bool json,
                       int *exit);

/* What a daemon released: only what was held by hand. The rest is for its policy to say. */
struct gp_daemon_released {
	pid_t daemon; /* in whose hands its tasks are; 0 = not known */
	unsigned n;
	unsigned others;      /* tasks that somebody else holds, and that stay so */
	pid_t *pid;           /* n of them that were held by hand; the caller frees */
	struct gp_error *err; /* of each target, .code 0 = none; the caller frees. NULL: all */
};

/* `all`: everybody, not the targets. False also when it does not answer within 2 s. */
bool gp_daemon_resume(const struct gp_targets *targets, bool all,
                      struct gp_daemon_released *released);

#endif
