/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which process a client means: {"self": true}, {"pidfd": INDEX of a file that came with the line}
 * or {"pid": N, "start_time": T}. A number alone names another process in another pid namespace,
 * and another one again when the first has ended; what comes out of here is one process for
 * certain.
 */
#ifndef GP_RPC_SERVER_TARGET_PROCESS_H
#define GP_RPC_SERVER_TARGET_PROCESS_H

#include "rpc/server/server.h"

struct gp_target {
	pid_t pid;
	uint64_t start_time; /* of that pid, as long as pidfd has not ended */
	int pidfd;           /* ends with the call */
};

/*
 * -EINVAL: it cannot be read; -ESRCH: it has ended, or is another one by now; -EPERM: it cannot be
 * named like that. All with a sentence. Look at gp_pidfd_ended once more before acting on the pid.
 */
int gp_target_read(struct gp_rpc_call *call, struct json_object *target, struct gp_target *out,
                   struct gp_error *err);

/* The member `target` of `params`; without one it is who asks ("self"). */
int gp_target_param(struct gp_rpc_call *call, struct json_object *params, struct gp_target *out,
                    struct gp_error *err);

#endif
