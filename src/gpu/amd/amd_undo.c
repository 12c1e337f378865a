/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Puts a process back. The driver resumes all queues when the owner of the session ends. So undo
 * acts only if the owner lives but does not release: it is stopped or hangs. It then ends the
 * owner's session, which resumes all queues. The owner notices it by the closed pipe.
 *
 * The driver lets a tracer end a session. Since 6.12.103 the owner gives up its link at once, so
 * this process can become the tracer. Before, the owner is the tracer, and the driver lets any
 * process end sessions.
 */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/process.h"
#include "gpu/amd/amd_device.h"
#include "gpu/amd/ptrace_link.h"

static bool is_thread_of(pid_t thread, pid_t pid)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/task/%d", pid, thread);
	return thread && access(path, F_OK) == 0;
}

/* 0: the process has no session any more. */
static int end(struct gp_amd_session *s, pid_t owner, struct gp_error *err)
{
	int r;

	s->enabled = true;
	r = gp_amd_session_end(s);
	return r ? gp_fail(err, r,
			   "the driver does not end the debug session of process %d with process "
			   "%d (%s): its queues may stay suspended until process %d ends",
			   s->pid, owner, gp_error_name(r), owner)
		 : 0;
}

/* Ends a session of the owner's thread only; the session of a debugger must stay. */
static int end_without_link(struct gp_amd_session *s, pid_t owner, int code, struct gp_error *err)
{
	if (!is_thread_of(gp_amd_tracer_of(s->pid), owner))
		return code;
	*err = (struct gp_error){0};
	return end(s, owner, err);
}

static int take_from(const struct gp_undo *undo, struct gp_error *err)
{
	struct gp_amd_session s = {
		.pid = undo->pid, .pidfd = gp_pidfd_open(undo->pid), .event_fd = -1};
	struct gp_error why = {0};
	int kfd = s.pidfd < 0 ? -ESRCH : gp_kfd_open(&why), r;

	s.kfd = kfd;
	r = kfd < 0 ? kfd : gp_amd_link(&s, &why);
	if (!r) {
		if (gp_kfd_has_session(kfd, s.pid)) /* or it is not known */
			r = end(&s, undo->owner, &why);
		s.enabled = false;
		gp_amd_session_close(&s);
	} else if (kfd >= 0) {
		r = end_without_link(&s, undo->owner, r, &why);
	}
	if (s.pidfd >= 0)
		close(s.pidfd);
	if (kfd >= 0)
		close(kfd);
	return r ? gp_fail(err, r, "%s", why.text) : 0;
}

int gp_amd_undo(const struct gp_undo *undo, struct gp_error *err)
{
	if (gp_process_gone(undo->pid, undo->start_time))
		return -ESRCH;
	if (!undo->owner || undo->owner == getpid() ||
	    !gp_process_lives(undo->owner, undo->owner_start_time))
		return 0;
	return take_from(undo, err);
}
