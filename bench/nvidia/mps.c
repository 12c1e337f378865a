/* SPDX-License-Identifier: Apache-2.0 */
#include "mps.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "stop.h"

static int set_paths(struct mps *m, const char *control, const char *directory,
                     struct gp_error *err)
{
	m->control = control;
	snprintf(m->pipes, sizeof m->pipes, "%s/mps", directory);
	snprintf(m->logs, sizeof m->logs, "%s/mps-log", directory);
	snprintf(m->errors, sizeof m->errors, "%s/mps.err", directory);
	snprintf(m->pipe_env, sizeof m->pipe_env, "CUDA_MPS_PIPE_DIRECTORY=%s", m->pipes);
	snprintf(m->log_env, sizeof m->log_env, "CUDA_MPS_LOG_DIRECTORY=%s", m->logs);
	if ((mkdir(m->pipes, 0700) && errno != EEXIST) || (mkdir(m->logs, 0700) && errno != EEXIST))
		return gp_fail(err, -errno, "cannot make %s: %s", m->pipes, strerror(errno));
	return 0;
}

int mps_start(struct mps *m, const char *control, const char *directory, struct gp_error *err)
{
	const char *argv[] = {control, "-f", NULL};
	struct child_spec spec = {.name = "the MPS daemon",
	                          .argv = argv,
	                          .stderr_path = m->errors,
	                          .death_signal = SIGTERM};
	struct child *daemon = &m->daemon;
	char pipe[300];
	int rc = set_paths(m, control, directory, err);

	if (rc)
		return rc;
	snprintf(pipe, sizeof pipe, "%s/control", m->pipes);
	unlink(pipe); /* left by the last one: it must not look like this one's */
	spec.env[0] = m->pipe_env;
	spec.env[1] = m->log_env;
	rc = child_start(daemon, &spec, err);
	for (int tries = 0; !rc && access(pipe, F_OK); tries++) {
		uint64_t soon_ns = gp_monotonic_ns() + 50 * GP_NS_PER_MS;

		if (tries == 200)
			return gp_fail(err, -ETIMEDOUT, "the MPS daemon opened no pipe in 10 s");
		rc = child_watch(&daemon, 1, NULL, soon_ns, err);
	}
	return rc;
}

/* `quit` is a command of the control program, read from its stdin. */
static void say_quit(struct mps *m)
{
	const char *argv[] = {m->control, NULL};
	struct child_spec spec = {.name = "MPS quit",
	                          .argv = argv,
	                          .env = {m->pipe_env, m->log_env},
	                          .stderr_path = m->errors,
	                          .death_signal = SIGKILL};
	struct child quit;

	if (child_start(&quit, &spec, NULL))
		return;
	child_tell(&quit, "quit");
	child_end(&quit, false, 10000, NULL);
}

void mps_stop(struct mps *m)
{
	if (!m->daemon.pid)
		return;
	if (!m->daemon.ended)
		say_quit(m);
	child_end(&m->daemon, false, 5000, NULL);
	child_end_orphans(); /* its server */
	m->daemon.pid = 0;
}
