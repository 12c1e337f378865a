/* SPDX-License-Identifier: Apache-2.0 */
/* Calls to the daemon: connection, targets, attributes. */
#ifndef GP_CLI_ASK_ASK_H
#define GP_CLI_ASK_ASK_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "cli/lib/options.h"
#include "cli/lib/fields.h"
#include "rpc/client.h"

#define GP_ASK_SHORT_MS 2000 /* timeout of verbs that also work without an answer */

/*
 * For verbs that also work without a daemon. NULL: no daemon runs, or it does not answer, which is
 * then reported on standard error. The caller closes the client.
 */
struct gp_client *gp_ask_if_there(void);

/*
 * A call about a process. Pid and start time name it, so a reused pid cannot be confused with it.
 * Takes `params`, which may be NULL, and adds the target to them. -ESRCH: there is no such process.
 */
int gp_ask_about(struct gp_client *client, const char *method, pid_t pid,
		 struct json_object *params, struct json_object **result, struct gp_error *err);

/* Adds the attributes that were given to `params`. */
void gp_ask_put_attrs(struct json_object *params, const struct gp_given_attrs *given);

/* "class be, priority 3, weight 100, deadline 2 ms" of a task or a reply. Returns `out`. */
const char *gp_ask_attr_text(struct json_object *attr, char *out, size_t size);

/*
 * The effect of attributes, from the answer to `set`: "in force on 2 devices; policy priority does
 * not use share", "accepted, not in force on device 0: REASON". Attributes count if `given` has
 * them or if they differ from the default. Returns `out`.
 */
const char *gp_ask_effect_text(struct json_object *answer, const struct gp_given_attrs *given,
			       char *out, size_t size);

/* The same, only the part about given attributes without effect; "" where there are none. */
const char *gp_ask_unused_text(struct json_object *answer, const struct gp_given_attrs *given,
			       char *out, size_t size);

/* All devices, and all tasks, each as a JSON array that the caller puts. Asks for one device after
 * the other, which limits the length of an answer. */
int gp_ask_devices(struct gp_client *client, struct json_object **devices, struct gp_error *err);
int gp_ask_tasks(struct gp_client *client, struct json_object *devices, struct json_object **tasks,
		 struct gp_error *err);

/*
 * For ps and stats, which also work without a daemon. False: no daemon runs. True: the daemon
 * answered, or failed and a message was printed; `*exit` is the exit code. `*answer` is an object
 * with `tasks` and `devices` and, with `counters`, `daemon`, as docs/output.schema.json describes
 * it. NULL after a failure; the caller puts it. Shares are measured for `for_ns`; 0: they are those
 * of the last second, which the daemon has measured.
 */
bool gp_daemon_tasks(uint64_t for_ns, bool counters, struct json_object **answer, int *exit);

#endif
