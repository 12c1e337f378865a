/* SPDX-License-Identifier: Apache-2.0 */
/* How verbs ask the daemon: connections, targets and attributes. */
#ifndef GP_CLI_ASK_ASK_H
#define GP_CLI_ASK_ASK_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "cli/lib/attrs.h"
#include "cli/ask/fields.h"
#include "rpc/client.h"

#define GP_ASK_SHORT_MS 2000 /* for those who can do without an answer */

/*
 * For verbs that also work without a daemon: NULL when there is none. One that is there and does
 * not answer is mentioned on standard error. The caller closes it.
 */
struct gp_client *gp_ask_if_there(void);

/* A call without a file. `params` is taken, and may be NULL. */
int gp_ask(struct gp_client *client, const char *method, struct json_object *params,
           struct json_object **result, struct gp_error *err);

/*
 * A call about a process: its pidfd goes with it, so that no other can be meant. Takes `params`,
 * which are made if NULL, and puts the target into them. -ESRCH: there is no such process.
 */
int gp_ask_about(struct gp_client *client, const char *method, pid_t pid,
                 struct json_object *params, struct json_object **result, struct gp_error *err);

/* Puts what was said into `params`. */
void gp_ask_put_attrs(struct json_object *params, const struct gp_attr_source *given);

/* "class be, priority 3, weight 100, deadline 2 ms" of a task or a reply. Returns `out`. */
const char *gp_ask_attr_text(struct json_object *attr, char *out, size_t size);

/* All devices, and all tasks (of one process, if `pid` is not 0), each as a JSON array that the
 * caller puts. One device after the other, so that no answer becomes too long. */
int gp_ask_devices(struct gp_client *client, struct json_object **devices, struct gp_error *err);
int gp_ask_tasks(struct gp_client *client, struct json_object *devices, pid_t pid,
                 struct json_object **tasks, struct gp_error *err);

#endif
