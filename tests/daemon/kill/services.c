/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "emu/common/emulator.h"
#include "world.h"

#define WORDS_MAX 16
#define END_MS    20000

/* Its output is added to the log. It dies with the test. */
static void become(const struct world *w, char **words)
{
	int fd = open(w->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (w->hostile)
		setenv("LD_PRELOAD", HOSTILE_SHIM, 1);
	dup2(fd, STDOUT_FILENO);
	dup2(fd, STDERR_FILENO);
	execv(words[0], words);
	perror(words[0]);
	_exit(127);
}

pid_t spawn(struct world *w, const char *program, ...)
{
	char *words[WORDS_MAX + 1] = {(char *)(uintptr_t)program};
	va_list list;
	pid_t pid;

	va_start(list, program);
	for (unsigned n = 1; n < WORDS_MAX && (words[n] = va_arg(list, char *)); n++)
		;
	va_end(list);
	pid = fork();
	if (!pid)
		become(w, words);
	if (pid < 0)
		fail(w, "fork: %d", errno);
	return pid;
}

void start_daemon(struct world *w)
{
	w->daemon = spawn(w, GPREEMPTD, "--gpu", w->gpu->kind, "--config", w->config, NULL);
}

void start_keeper(struct world *w)
{
	w->keeper = spawn(w, KEEPER, "--timeout", KEEPER_LIMIT, NULL);
}

pid_t start_after_stop(struct world *w)
{
	return spawn(w, KEEPER, "--once", NULL);
}

void kill_now(struct world *w, pid_t *pid)
{
	int status;

	if (*pid <= 0)
		return;
	kill(*pid, SIGKILL);
	if (waitpid(*pid, &status, 0) != *pid || !WIFSIGNALED(status) ||
	    WTERMSIG(status) != SIGKILL) {
		pid_t was = *pid;

		*pid = 0;
		fail(w, "process %d had ended before it was killed (status 0x%x)", was, status);
	}
	*pid = 0;
}

int wait_for(pid_t *pid, unsigned limit_ms)
{
	int status = -1;

	for (unsigned i = 0; i < limit_ms / 5; i++) {
		if (waitpid(*pid, &status, WNOHANG) == *pid) {
			*pid = 0;
			return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
		}
		emulator_sleep_ms(5);
	}
	return -1;
}

int end_orderly(pid_t *pid)
{
	kill(*pid, SIGTERM);
	return wait_for(pid, SANITIZED ? 3 * END_MS : END_MS);
}

static const char *role(const struct world *w, pid_t pid)
{
	if (pid == w->daemon)
		return "gpreemptd";
	if (pid == w->keeper)
		return "gpreempt-keeper";
	if (pid == w->client[LISTENER] || pid == w->client[STEERER])
		return "a client";
	if (pid == w->timer)
		return "the control";
	for (unsigned i = 0; i < TARGETS; i++)
		if (pid == w->target[i].load.pid)
			return "a target";
	return NULL;
}

void reap_orphans(struct world *w)
{
	siginfo_t info = {0};

	while (!waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) && info.si_pid) {
		const char *who = role(w, info.si_pid);

		if (who)
			fail(w, "%s, process %d, ended by itself (%s %d)", who, info.si_pid,
			     info.si_code == CLD_EXITED ? "status" : "signal", info.si_status);
		waitpid(info.si_pid, NULL, 0);
		info.si_pid = 0;
	}
}

bool nobody_is_left(struct world *w, unsigned limit_ms)
{
	for (unsigned i = 0; i < limit_ms / 10; i++) {
		reap_orphans(w);
		if (waitid(P_ALL, 0, &(siginfo_t){0}, WEXITED | WNOHANG | WNOWAIT) &&
		    errno == ECHILD)
			return true;
		emulator_sleep_ms(10);
	}
	return false;
}
