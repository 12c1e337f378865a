/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/amd/ptrace_link.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/process.h"

#define UNLINK_TRIES    200
#define UNLINK_PAUSE_US 50
#define SEIZE_TRIES     10
#define SEIZE_PAUSE_US  5000

/* A number in /proc/PID/status; 0: not readable. */
static pid_t status_of(pid_t pid, const char *key)
{
	char path[48], line[128];
	pid_t value = 0;
	FILE *f;

	snprintf(path, sizeof path, "/proc/%d/status", pid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	while (fgets(line, sizeof line, f))
		if (!strncmp(line, key, strlen(key)))
			value = (pid_t)strtol(line + strlen(key), NULL, 10);
	fclose(f);
	return value;
}

pid_t gp_amd_tracer_of(pid_t pid)
{
	return status_of(pid, "TracerPid:");
}

pid_t gp_amd_tracing_process(pid_t pid)
{
	pid_t tracer = gp_amd_tracer_of(pid);

	return tracer ? status_of(tracer, "Tgid:") : 0;
}

static int explain(const struct gp_amd_session *s, int code, struct gp_error *err)
{
	pid_t tracer = gp_amd_tracing_process(s->pid);
	char name[32];

	if (gp_pidfd_ended(s->pidfd)) /* a zombie cannot be traced */
		return gp_fail(err, -ESRCH, "there is no process %d", s->pid);
	if (code == -ESRCH)
		return gp_fail(err, -EIO,
			       "the kernel does not find process %d to attach to (ESRCH), although "
			       "it runs; try again",
			       s->pid);
	if (tracer)
		return gp_fail(
			err, -EBUSY,
			"process %d is traced by %s (process %d), and a process has one tracer "
			"only: end that first",
			s->pid, gp_process_name(tracer, name, sizeof name), tracer);
	return gp_process_denied(err, s->pid, code);
}

/* The keeper and other commands of gpreempt trace a process only for a moment. A scheduler on a
 * kernel before 6.12.103 stays its tracer. */
static int seize(pid_t pid)
{
	int r = -EPERM;

	for (int i = 0; i < SEIZE_TRIES && r == -EPERM; i++) {
		pid_t tracer = i ? gp_amd_tracing_process(pid) : 0;

		if (i && (!tracer || tracer == getpid() || !gp_process_is_gpreempt(tracer)))
			break;
		if (i)
			usleep(SEIZE_PAUSE_US);
		r = ptrace(PTRACE_SEIZE, pid, NULL, NULL) ? -errno : 0;
	}
	return r;
}

int gp_amd_link(struct gp_amd_session *s, struct gp_error *err)
{
	int r;

	/* The link to a process in execve would wait for the end of the call. */
	if (gp_process_read_start_time(s->pid, &(uint64_t){0}) == -ETIMEDOUT)
		return gp_process_silent(err, s->pid, -ETIMEDOUT);
	r = seize(s->pid);
	/* A link whose unlink is not complete is used again; its interrupt is ignored. */
	if (r && gp_amd_tracer_of(s->pid) != gettid())
		return explain(s, r, err);
	s->link = GP_AMD_LINKED;
	s->is_child = status_of(s->pid, "PPid:") == getpid();
	/* While the process of the pidfd lives, the pid cannot belong to another process. */
	if (!gp_pidfd_ended(s->pidfd))
		return 0;
	gp_amd_unlink_now(s);
	return gp_fail(err, -ESRCH, "process %d has ended", s->pid);
}

void gp_amd_unlink(struct gp_amd_session *s)
{
	if (s->link != GP_AMD_LINKED)
		return;
	s->link = GP_AMD_UNLINKING;
	if (ptrace(PTRACE_INTERRUPT, s->pid, NULL, NULL) && gp_amd_tracer_of(s->pid) != gettid())
		s->link = GP_AMD_UNLINKED;
}

static bool is_event_stop(const siginfo_t *info)
{
	return info->si_code >> 8 == PTRACE_EVENT_STOP;
}

/* Stopped by a SIGSTOP of another process: the target must stay stopped. */
static bool is_group_stop(const siginfo_t *info)
{
	int signal = info->si_signo;

	return is_event_stop(info) &&
	       (signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU);
}

/* The target stopped for the interrupt of gp_amd_unlink, or for a signal, which is delivered. */
static void continue_target(struct gp_amd_session *s, const siginfo_t *info)
{
	uintptr_t signal = is_event_stop(info) ? 0 : (uintptr_t)info->si_signo;

	if (s->link == GP_AMD_UNLINKING) {
		if (!ptrace(PTRACE_DETACH, s->pid, NULL, signal) &&
		    gp_amd_tracer_of(s->pid) != gettid())
			s->link = GP_AMD_UNLINKED;
	} else if (is_group_stop(info)) {
		ptrace(PTRACE_LISTEN, s->pid, NULL, NULL);
	} else {
		ptrace(PTRACE_CONT, s->pid, NULL, signal);
	}
}

/* The kernel notifies the parent of a traced process after its tracer has waited for it. */
static void collect_end(struct gp_amd_session *s)
{
	siginfo_t ignored;

	if (!s->is_child)
		waitid(P_PID, (id_t)s->pid, &ignored, WEXITED | __WALL | WNOHANG);
	s->link = GP_AMD_UNLINKED;
}

/* Asks the target itself and not wait(2): other code of this process may have called wait(2). */
void gp_amd_session_tick(struct gp_amd_session *s)
{
	siginfo_t info;

	if (s->link != GP_AMD_UNLINKED && gp_pidfd_ended(s->pidfd))
		collect_end(s);
	if (s->link != GP_AMD_UNLINKED && !ptrace(PTRACE_GETSIGINFO, s->pid, NULL, &info))
		continue_target(s, &info);
	else if (s->link ==
		 GP_AMD_UNLINKING) /* not stopped yet: a second interrupt changes nothing */
		ptrace(PTRACE_INTERRUPT, s->pid, NULL, NULL);
	if (s->link == GP_AMD_UNLINKED && s->kfd < 0 && s->pidfd >= 0) {
		close(s->pidfd); /* the session was closed before */
		s->pidfd = -1;
	}
}

/* The main thread of the target is stopped from the interrupt to the detach: checks often. */
void gp_amd_unlink_now(struct gp_amd_session *s)
{
	gp_amd_unlink(s);
	for (int i = 0; i < UNLINK_TRIES && s->link != GP_AMD_UNLINKED; i++) {
		if (i)
			usleep(UNLINK_PAUSE_US);
		gp_amd_session_tick(s);
	}
}

struct probe {
	int kfd;
	pid_t pid;
	int result;
};

static void *call_as_other_thread(void *arg)
{
	struct probe *p = arg;

	p->result = gp_kfd_has_session(p->kfd, p->pid);
	return NULL;
}

enum gp_amd_rule gp_amd_find_rule(int kfd, pid_t pid)
{
	struct probe p = {.kfd = kfd, .pid = pid};
	pthread_t thread;

	if (pthread_create(&thread, NULL, call_as_other_thread, &p))
		return GP_AMD_RULE_UNKNOWN;
	pthread_join(thread, NULL);
	return p.result > 0         ? GP_AMD_RULE_DEBUGGER
	       : p.result == -EPERM ? GP_AMD_RULE_TRACER
				    : GP_AMD_RULE_UNKNOWN;
}
