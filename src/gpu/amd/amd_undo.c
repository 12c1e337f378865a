/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Putting a process back. The driver resumes everything when who held it ends, in whatever way, so
 * there is something to do only while that one lives and does not let go: stopped, or hanging. Then
 * its session is ended from outside, which resumes all queues. It finds that out from its end of
 * the session's pipe.
 *
 * The driver lets a tracer end a session. Since 6.12.103 a holder gives up its link at once, so
 * that we can be that; before, it is the tracer itself, and the driver lets anybody end sessions.
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

/* A debugger's session, if it has one now, is not ours to end: only that of the holder's thread. */
static int end_as_anybody(const struct gp_amd_session *s, pid_t owner, int code,
                          struct gp_error *err)
{
	int r;

	if (!is_thread_of(gp_amd_tracer_of(s->pid), owner))
		return code;
	r = gp_kfd_disable(s->kfd, s->pid);
	if (r >= 0 || r == -EINVAL)
		return 0;
	*err = (struct gp_error){0};
	return gp_fail(err, r, "process %d cannot be taken from process %d: %s", s->pid, owner,
	               gp_error_name(r));
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
		s.enabled = gp_kfd_snapshot(kfd, s.pid, 0, NULL, 0) >= 0;
		gp_amd_session_close(&s);
	} else if (kfd >= 0) {
		r = end_as_anybody(&s, undo->owner, r, &why);
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
