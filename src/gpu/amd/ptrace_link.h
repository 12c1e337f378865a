/* SPDX-License-Identifier: Apache-2.0 */
/* The ptrace link of a session: PTRACE_SEIZE, which does not stop the target, and its duties. */
#ifndef GP_GPU_AMD_PTRACE_LINK_H
#define GP_GPU_AMD_PTRACE_LINK_H

#include "gpu/amd/session.h"

/* Makes this thread the tracer of the target. -ESRCH, -EPERM, -EBUSY, with a sentence. */
int gp_amd_link(struct gp_amd_session *s, struct gp_error *err);

/* Begins to unlink; gp_amd_session_tick() completes it. */
void gp_amd_unlink(struct gp_amd_session *s);

/* The same, and waits up to 10 ms. If the main thread of the target sleeps uninterruptibly,
 * gp_amd_session_tick() or the end of this thread completes it later. */
void gp_amd_unlink_now(struct gp_amd_session *s);

/* The thread that traces the process, and the process of that thread; 0: none. */
pid_t gp_amd_tracer_of(pid_t pid);
pid_t gp_amd_tracing_process(pid_t pid);

/* Finds the rule of the kernel by a call from a thread that is not the tracer. */
enum gp_amd_rule gp_amd_find_rule(int kfd, pid_t pid);

#endif
