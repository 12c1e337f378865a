/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's part of verbs that also work without a daemon. A function that returns bool returns
 * false when no daemon runs: the verb then does the work itself. True: the daemon did it, or failed
 * and a message was printed; `*exit` is the exit code.
 */
#ifndef GP_CLI_ASK_WITH_DAEMON_H
#define GP_CLI_ASK_WITH_DAEMON_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "cli/lib/targets.h"

/*
 * An object with `tasks` and `devices` and, with `counters`, `daemon`, as docs/output.schema.json
 * describes it. NULL after a failure; the caller puts it. Shares are measured for `for_ns`; 0: they
 * are those of the last second, which the daemon has measured.
 */
bool gp_daemon_tasks(uint64_t for_ns, bool counters, struct json_object **answer, int *exit);

/* Prints the policy in force, or nothing. */
void gp_daemon_show_policy(void);

/* The policy in force on each device, by its number. Returns the number of devices, at most `max`;
 * -1: no daemon runs. */
#define GP_DAEMON_POLICY_SIZE 32
int gp_daemon_policies(char name[][GP_DAEMON_POLICY_SIZE], unsigned max);

/*
 * Sets a policy ("qos:period=50"; NULL: the configured policy) on one device, or on all with -1.
 * Returns the exit code.
 */
int gp_daemon_set_policy(const char *text, int device, bool json);

/* Holds the targets. With `for_ns` GP_NEVER it returns, and the daemon keeps the hold until a
 * resume; otherwise it waits and releases. */
bool gp_daemon_suspend(const struct gp_targets *targets, uint64_t for_ns, bool force, bool json,
		       int *exit);

/* What a daemon released: only what users held. Holds by the policy stay. */
struct gp_daemon_released {
	pid_t daemon; /* owner of the records of its tasks; 0 = not known */
	unsigned n;
	unsigned others; /* tasks that other users hold, and that stay held */
	pid_t *pid;      /* n processes that a user held; the caller frees */
	struct gp_error
		*err; /* of each target, .code 0 = none; the caller frees. NULL with `all` */
};

/* `all`: the tasks of all processes, not only the targets. False also when the daemon does not
 * answer within 2 s. */
bool gp_daemon_resume(const struct gp_targets *targets, bool all,
		      struct gp_daemon_released *released);

#endif
