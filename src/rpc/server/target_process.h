/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which process a request is about: {"self": true} or {"pid": N, "start_time": T}. A bare pid
 * is ambiguous: it differs between pid namespaces and is reused. The pid of a client in another pid
 * namespace is translated. The result here is exactly one process.
 */
#ifndef GP_RPC_SERVER_TARGET_PROCESS_H
#define GP_RPC_SERVER_TARGET_PROCESS_H

#include "rpc/server/server.h"

struct gp_target {
	pid_t pid;
	uint64_t start_time; /* valid while pidfd has not ended */
	int pidfd;           /* owned by the call */
};

/*
 * Reads the member `target` of `params`; without it, the target is the client itself. -EINVAL:
 * malformed. -ESRCH: the process has ended, or its pid was reused. -EPERM: this client may not name
 * it this way. Each with a message. Check gp_pidfd_ended again before acting on the pid.
 */
int gp_target_param(struct gp_rpc_call *call, struct json_object *params, struct gp_target *out,
		    struct gp_error *err);

#endif
