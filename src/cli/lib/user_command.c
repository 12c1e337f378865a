/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/lib/user_command.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process.h"
#include "cli/lib/stop.h"

/* The command's output goes to standard error, because standard output may be JSON. SIGPIPE, which
 * this program ignores, has its default action again. 0 or an errno. */
static int spawn(const char *command, pid_t *pid)
{
	char shell[] = "sh", option[] = "-c", text[4096];
	char *argv[] = {shell, option, text, NULL};
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	sigset_t pipe_only;
	int r;

	if (strlen(command) >= sizeof text)
		return E2BIG;
	memcpy(text, command, strlen(command) + 1);
	sigemptyset(&pipe_only);
	sigaddset(&pipe_only, SIGPIPE);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigdefault(&attributes, &pipe_only);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
	r = posix_spawn(pid, "/bin/sh", &files, &attributes, argv, environ);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&attributes);
	return r;
}

/* Waits for the end of the command. A signal to this program ends the command, too. */
static void wait_for(pid_t pid)
{
	int pidfd = gp_pidfd_open(pid);
	struct pollfd p[2] = {{.fd = pidfd, .events = POLLIN},
			      {.fd = gp_stop_fd(), .events = POLLIN}};

	while (pidfd >= 0 && poll(p, 2, -1) < 0 && errno == EINTR)
		;
	if (p[1].revents)
		kill(pid, SIGTERM);
	if (pidfd >= 0)
		close(pidfd);
}

int gp_online_run(const char *command, struct gp_online_run *run, struct gp_error *err)
{
	uint64_t begin_ns = gp_monotonic_ns();
	int status = 0, r;
	pid_t pid;

	r = spawn(command, &pid);
	if (r)
		return gp_fail(err, -EIO, "cannot run the command: %s", strerror(r));
	wait_for(pid);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	run->took_ns = gp_monotonic_ns() - begin_ns;
	run->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	run->done = !gp_stop_asked();
	return 0;
}
