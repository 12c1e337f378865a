/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of targets ask, and what they expect. */
#ifndef GP_TESTS_RPC_TARGETS_H
#define GP_TESTS_RPC_TARGETS_H

#include "support/test.h"
#include "base/process.h"
#include "rpc_world.h"

/* 0 or -errno, and the pid that the server took it for. */
int ask_target(struct gp_client *client, struct json_object *target, struct json_object **result,
	       struct gp_error *err);
struct json_object *by_pid(pid_t pid, uint64_t start_time);
void assert_taken(struct gp_client *client, struct json_object *target, pid_t pid);
void assert_refused(struct gp_client *client, struct json_object *target, int code,
		    const char *words);

#endif
