/* SPDX-License-Identifier: Apache-2.0 */
#include "stop.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

static int fd = -1;
static int seen;
static sigset_t before;

int stop_init(void)
{
	sigset_t set;

	signal(SIGPIPE, SIG_IGN); /* a child that is gone is noticed by its pidfd */
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	if (sigprocmask(SIG_BLOCK, &set, &before))
		return -errno;
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? -errno : 0;
}

int stop_fd(void)
{
	return fd;
}

/* It stays readable: every wait after the first one returns at once, too. */
int stop_signal(void)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	if (!seen && fd >= 0 && poll(&p, 1, 0) > 0) {
		struct signalfd_siginfo info;

		seen = SIGTERM;
		if (read(fd, &info, sizeof info) == (ssize_t)sizeof info)
			seen = (int)info.ssi_signo;
		raise(SIGTERM); /* blocked, so it only makes the descriptor readable again */
	}
	return seen;
}

void stop_forget(void)
{
	signal(SIGPIPE, SIG_DFL);
	sigprocmask(SIG_SETMASK, &before, NULL);
}
