/* SPDX-License-Identifier: Apache-2.0 */
/* The ptrace link of a session: SEIZE, which never stops the target, and what it asks of us. */
#ifndef GP_GPU_AMD_PTRACE_LINK_H
#define GP_GPU_AMD_PTRACE_LINK_H

#include "gpu/amd/session.h"

/* Makes this thread the target's tracer. -ESRCH, -EPERM, -EBUSY, with a sentence. */
int gp_amd_link(struct gp_amd_session *s, struct gp_error *err);

/* Begins to give it up; gp_amd_session_tick() ends it. */
void gp_amd_unlink(struct gp_amd_session *s);

/* The same, and waits for it, 10 ms at most: a leader that sleeps where no signal reaches it is let
 * go by gp_amd_session_tick(), or by the end of this thread. */
void gp_amd_unlink_now(struct gp_amd_session *s);

/* The thread that traces it; 0: none. */
pid_t gp_amd_tracer_of(pid_t pid);

/* Who may use an enabled session: asks the driver from a thread that is not the tracer. */
enum gp_amd_rule gp_amd_find_rule(int kfd, pid_t pid);

#endif
