/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/amd/link.h"

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

/* The thread that traces a process; 0: none, or not to be seen. */
static pid_t tracer_of(pid_t pid)
{
	char path[48], line[128];
	pid_t tracer = 0;
	FILE *f;

	snprintf(path, sizeof path, "/proc/%d/status", pid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	while (fgets(line, sizeof line, f))
		if (!strncmp(line, "TracerPid:", 10))
			tracer = (pid_t)strtol(line + 10, NULL, 10);
	fclose(f);
	return tracer;
}

static int explain(const struct gp_amd_session *s, int code, struct gp_error *err)
{
	pid_t tracer = tracer_of(s->pid);
	char name[32];

	if (code == -ESRCH)
		return gp_fail(err, code, "there is no process %d", s->pid);
	if (tracer)
		return gp_fail(
			err, -EBUSY,
			"process %d is traced by %s (process %d), and only one can: end that "
			"first",
			s->pid, gp_process_name(tracer, name, sizeof name), tracer);
	return gp_process_denied(err, s->pid, code);
}

int gp_amd_link(struct gp_amd_session *s, struct gp_error *err)
{
	if (ptrace(PTRACE_SEIZE, s->pid, NULL, NULL))
		return explain(s, -errno, err);
	s->link = GP_AMD_LINKED;
	/* While what the pidfd stands for lives, nobody else has the number. */
	if (!gp_pidfd_ended(s->pidfd))
		return 0;
	gp_amd_unlink_now(s);
	return gp_fail(err, -ESRCH, "process %d has ended", s->pid);
}

void gp_amd_unlink(struct gp_amd_session *s)
{
	if (s->link != GP_AMD_LINKED)
		return;
	s->link = ptrace(PTRACE_INTERRUPT, s->pid, NULL, NULL) ? GP_AMD_UNLINKED : GP_AMD_UNLINKING;
}

/* Stopped by somebody's SIGSTOP, not by us, and to stay so. */
static bool is_group_stop(int status)
{
	int signal = WSTOPSIG(status);

	return status >> 16 == PTRACE_EVENT_STOP &&
	       (signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU);
}

/* It stopped: by our interrupt, or because it has a signal, which it gets. */
static void let_go_on(struct gp_amd_session *s, int status)
{
	uintptr_t signal = status >> 16 == PTRACE_EVENT_STOP ? 0 : (uintptr_t)WSTOPSIG(status);

	if (s->link == GP_AMD_UNLINKING) {
		if (!ptrace(PTRACE_DETACH, s->pid, NULL, signal))
			s->link = GP_AMD_UNLINKED;
	} else if (is_group_stop(status)) {
		ptrace(PTRACE_LISTEN, s->pid, NULL, NULL);
	} else {
		ptrace(PTRACE_CONT, s->pid, NULL, signal);
	}
}

void gp_amd_session_tick(struct gp_amd_session *s)
{
	int status;
	pid_t pid;

	while (s->link != GP_AMD_UNLINKED) {
		pid = waitpid(s->pid, &status, __WALL | WNOHANG);
		if (!pid)
			return;
		if (pid < 0 && errno == EINTR)
			continue;
		if (pid < 0 || !WIFSTOPPED(status))
			s->link = GP_AMD_UNLINKED; /* it has ended */
		else
			let_go_on(s, status);
	}
}

/* Its leader stands still from the interrupt to the detach: look often. */
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

static void *ask_as_stranger(void *arg)
{
	struct probe *p = arg;

	p->result = gp_kfd_snapshot(p->kfd, p->pid, 0, NULL, 0);
	return NULL;
}

enum gp_amd_rule gp_amd_find_rule(int kfd, pid_t pid)
{
	struct probe p = {.kfd = kfd, .pid = pid};
	pthread_t thread;

	if (pthread_create(&thread, NULL, ask_as_stranger, &p))
		return GP_AMD_RULE_UNKNOWN;
	pthread_join(thread, NULL);
	return p.result >= 0        ? GP_AMD_RULE_DEBUGGER
	       : p.result == -EPERM ? GP_AMD_RULE_TRACER
	                            : GP_AMD_RULE_UNKNOWN;
}
