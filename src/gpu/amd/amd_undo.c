/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Puts a process back. The driver resumes all queues when the owner of the session ends. So undo
 * acts only if the owner lives but does not release: it is stopped or hangs. It then ends the
 * owner's session, which resumes all queues. The owner notices it by the closed pipe. If the owner
 * has ended, undo looks whether the driver has ended the session, ends it if not, and logs what it
 * has found.
 *
 * From Linux 6.12.103 on, the driver lets only a tracer (ptrace) of the process end a session. The
 * owner detaches right after it has opened the session, so this process can become the tracer. In
 * older kernels the owner stays the tracer, and the driver lets any process end the session. If
 * that tracer is stopped or hangs, the next signal to the traced process stops the traced process;
 * only the end of the tracer lets it continue.
 *
 * The driver's success code alone is not believed: asked afterwards, the driver must report no
 * session. If the process has waiting packets, its work is looked at as well. This process does not
 * try whether it can begin a session: a failed ENABLE would take the session from its owner, whose
 * end would no longer resume the queues.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/process.h"
#include "gpu/amd/amd_device.h"
#include "gpu/amd/ptrace_link.h"

#define END_TRIES     4
#define STOP_LOOKS    10
#define STOP_PAUSE_US 10000
#define END_LOOKS     10
#define LOOK_PAUSE_US 5000
#define TRACE_TRIES   20

static bool is_thread_of(pid_t thread, pid_t pid)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/task/%d", pid, thread);
	return thread && access(path, F_OK) == 0;
}

/* Whether the answer to a call says that there is no session: the driver finds none, or the process
 * has ended or runs another program. */
static bool says_no_session(const struct gp_amd_session *s, int code)
{
	return code == -EINVAL || (code == -ESRCH && gp_amd_has_no_queues(s->pid));
}

static int fail_still(pid_t pid, struct gp_error *err)
{
	if (err)
		*err = (struct gp_error){0};
	return gp_fail(err, -ETIME,
		       "it is not known whether process %d was released: the driver finds no debug "
		       "session, but the process does no work although packets wait; it may wait "
		       "for its host or for another program, or be evicted by the driver",
		       pid);
}

/* Ends the session, if there is one, and checks that none is left. A tracer may look for it; other
 * processes may only try to end it again. */
static int end_session(const struct gp_amd_session *s, pid_t owner, struct gp_error *err)
{
	int r = 0;

	for (int i = 0; i < END_TRIES; i++) {
		int seen;

		r = gp_kfd_disable(s->kfd, s->pid);
		seen = gp_kfd_has_session(s->kfd, s->pid);
		if (!seen || (seen < 0 && says_no_session(s, seen == -EPERM ? r : seen)))
			return 0;
	}
	if (r == -EINVAL) /* but there is one */
		r = 0;
	if (r == -ESRCH) /* but it lives */
		r = -EIO;
	*err = (struct gp_error){0};
	if (r >= 0)
		return gp_fail(err, -EIO,
			       "the driver accepts that process %d is released from process %d, "
			       "but nothing changes",
			       s->pid, owner);
	return gp_fail(err, r, "process %d cannot be released from process %d: %s", s->pid, owner,
		       gp_error_name(r));
}

/* Whether the process stays in a ptrace stop. A tracer that runs ends such a stop at once. */
static bool is_kept_stopped(pid_t pid)
{
	for (int i = 0; i < STOP_LOOKS; i++) {
		if (gp_process_state(pid) != 't')
			return false;
		usleep(STOP_PAUSE_US);
	}
	return true;
}

/* Ends a session of the owner's thread only; the session of a debugger must stay. */
static int end_without_link(const struct gp_amd_session *s, pid_t owner, int code,
			    struct gp_error *err)
{
	int r;

	if (!is_thread_of(gp_amd_tracer_of(s->pid), owner))
		return code;
	r = end_session(s, owner, err);
	if (r || !is_kept_stopped(s->pid))
		return r;
	*err = (struct gp_error){0};
	return gp_fail(
		err, -EBUSY,
		"process %d stays stopped: process %d traces it and does not let it continue",
		s->pid, owner);
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
		r = end_session(&s, undo->owner, &why);
		s.enabled = true; /* the runtime of the process may wait for an answer */
		gp_amd_session_close(&s);
	} else if (kfd >= 0) {
		r = end_without_link(&s, undo->owner, r, &why);
	}
	if (s.pidfd >= 0)
		close(s.pidfd);
	if (kfd >= 0)
		close(kfd);
	if (r)
		return gp_fail(err, r, "%s", why.text);
	/* Not while this process is the tracer: the owner may continue and attach again. */
	return gp_amd_stands_still(undo->pid) > 0 ? fail_still(undo->pid, err) : 0;
}

struct look {
	pid_t pid;
	int kfd;
	int result; /* of gp_kfd_has_session(), or -errno */
};

/* Other processes that look, and a thread of this one that has looked before, trace the process for
 * a moment. 0 or -errno. */
static int trace(pid_t pid)
{
	int r = -EPERM;

	for (int i = 0; i < TRACE_TRIES && r == -EPERM; i++) {
		if (i > 1 && !gp_amd_tracer_of(pid))
			break; /* it is not permitted */
		if (i)
			usleep(LOOK_PAUSE_US);
		r = ptrace(PTRACE_SEIZE, pid, NULL, NULL) ? -errno : 0;
	}
	return r;
}

/* The end of this thread ends its link, and the process is not stopped for it. */
static void *look_for_session(void *arg)
{
	struct look *look = arg;
	int r = trace(look->pid);

	look->result = r ? r : 1;
	for (int i = 0; i < END_LOOKS && look->result > 0; i++) {
		if (i)
			usleep(LOOK_PAUSE_US);
		look->result = gp_kfd_has_session(look->kfd, look->pid);
	}
	return NULL;
}

static int look_as_tracer(pid_t pid)
{
	struct look look = {.pid = pid, .kfd = gp_kfd_open(NULL)};
	pthread_t thread;

	if (look.kfd < 0)
		return look.kfd;
	if (pthread_create(&thread, NULL, look_for_session, &look))
		look.result = -EAGAIN;
	else
		pthread_join(thread, NULL);
	close(look.kfd);
	return look.result;
}

/* Whether the process has a session that stays: 1 or 0; or -errno: not known. */
static int look(pid_t pid, uint64_t start_time)
{
	int r = gp_process_read_start_time(pid, &(uint64_t){0});

	if (r == -ETIMEDOUT) /* a tracer would wait, too */
		return r;
	r = look_as_tracer(pid);
	if (gp_process_gone(pid, start_time))
		return 0;
	if (r >= 0)
		return r;
	if (gp_amd_has_no_queues(pid))
		return 0;              /* there is nothing to suspend */
	return r == -ESRCH ? -EIO : r; /* the driver does not find it, and lists queues of it */
}

/* 0, or -errno: it is not known to have ended. */
static int end_left_session(pid_t pid, uint64_t start_time)
{
	struct gp_amd_session s = {
		.kfd = gp_kfd_open(NULL), .pid = pid, .pidfd = gp_pidfd_open(pid), .event_fd = -1};
	int r = s.kfd < 0 || s.pidfd < 0 ? -EIO : gp_amd_link(&s, NULL);

	/* The link of the thread that looked may end a moment after the thread. */
	for (int i = 0; i < END_LOOKS && r == -EBUSY; i++) {
		usleep(LOOK_PAUSE_US);
		r = gp_amd_link(&s, NULL);
	}
	if (r || gp_process_gone(pid, start_time))
		return 0; /* the next look shows it */
	if (gp_kfd_has_session(s.kfd, pid) > 0)
		r = gp_amd_end_as_tracer(s.kfd, pid);
	s.enabled = true; /* the runtime of the process may wait for an answer */
	gp_amd_session_close(&s);
	return r;
}

static int fail_left(pid_t pid, struct gp_error *err)
{
	return gp_fail(err, -EIO,
		       "process %d has a debug session that the driver does not end, although its "
		       "holder is gone; its queues may stay suspended",
		       pid);
}

/*
 * Ends a session that no process traces the target for. The driver keeps it, and its queues
 * suspended, if the ENABLE of another process failed and that process has ended: it resumes the
 * queues only at the end of the last process that tried, and only if that one has begun a session.
 * A session that stays can also be that of a scheduler which began just now, and notices the end.
 * Returns 1 if there was a session and has ended, 0 if there was none, -EEXIST if there is one, or
 * -errno: not known.
 */
static int end_left(pid_t pid, uint64_t start_time)
{
	int r = look(pid, start_time), status = 0;
	pid_t child;

	if (r <= 0)
		return r;
	child = fork(); /* see gp_amd_end_as_tracer() */
	if (!child)
		_exit(end_left_session(pid, start_time) != 0);
	if (child > 0)
		waitpid(child, &status, 0);
	r = look(pid, start_time);
	if (!r && status && !gp_process_gone(pid, start_time))
		r = 1; /* the child could not begin a session, so there is one */
	return r > 0 ? -EEXIST : r ? r : 1;
}

/* Another process may have the session, for example a debugger, or gpreempt with another undo file.
 * Only the tracer could look. */
static int fail_unknown(pid_t pid, int code, struct gp_error *err)
{
	pid_t tracer = gp_amd_tracing_process(pid);
	char name[32];

	if (tracer)
		return gp_fail(err, -EBUSY,
			       "it is not known whether process %d is held: process %d (%s) traces "
			       "it; end that first",
			       pid, tracer, gp_process_name(tracer, name, sizeof name));
	if (code == -EPERM || code == -EACCES)
		return gp_process_denied(err, pid, code);
	if (code == -ETIMEDOUT)
		return gp_process_silent(err, pid, code);
	return gp_fail(err, code,
		       "it is not known whether process %d is held: the driver does not say "
		       "whether it has a debug session (%s)",
		       pid, gp_error_name(code));
}

/* 0, or -errno with a sentence for a result of end_left(). */
static int judge(pid_t pid, int r, struct gp_error *err)
{
	return r >= 0 ? 0 : r == -EEXIST ? fail_left(pid, err) : fail_unknown(pid, r, err);
}

/* The owner has ended, or has closed its session. A process without a session has no suspended
 * queues. If it is not known whether there is one, the record has to stay. */
static int end_of_dead(const struct gp_undo *undo, struct gp_error *err)
{
	int r = end_left(undo->pid, undo->start_time);

	if (r >= 0 && gp_amd_stands_still(undo->pid) > 0) {
		gp_log(GP_LOG_WARN, "undo.not-confirmed", "pid=%d session=none progress=none",
		       undo->pid);
		return fail_still(undo->pid, err);
	}
	if (r >= 0)
		gp_log(GP_LOG_INFO, "undo.confirmed", "pid=%d session=%s", undo->pid,
		       r ? "ended" : "none");
	else if (r == -EEXIST)
		gp_log(GP_LOG_WARN, "undo.not-confirmed", "pid=%d session=exists", undo->pid);
	else
		gp_log(GP_LOG_WARN, "undo.not-confirmed", "pid=%d session=unknown errno=%d",
		       undo->pid, -r);
	return judge(undo->pid, r, err);
}

int gp_amd_release_process(pid_t pid, bool *released, struct gp_error *err)
{
	int n = gp_amd_sysfs_queues(pid, NULL, 0), r;

	if (n <= 0)
		return n == -ESRCH ? gp_amd_not_a_user(pid, -ENODEV, err) : n;
	r = end_left(pid, gp_process_start_time(pid));
	if (released && r > 0)
		*released = true;
	/* A process that had no session may wait for its host as it likes. */
	if (r > 0 && gp_amd_stands_still(pid) > 0)
		return fail_still(pid, err);
	r = judge(pid, r, err);
	return r ? r : n;
}

int gp_amd_undo(const struct gp_undo *undo, struct gp_error *err)
{
	if (gp_process_gone(undo->pid, undo->start_time))
		return -ESRCH;
	if (undo->owner == getpid())
		return 0;
	if (undo->owner && gp_process_lives(undo->owner, undo->owner_start_time))
		return take_from(undo, err);
	return end_of_dead(undo, err);
}
