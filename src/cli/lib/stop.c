/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/lib/stop.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"

#define PATIENCE_NS (2 * GP_NS_PER_S)

static int stop_fd = -1;
static _Atomic uint64_t first_ns; /* when the first signal came; 0 = none yet */

/*
 * Uses a handler, not a signalfd: threads of the back ends can receive signals, too. A second
 * signal right after the first is ignored: timeout(1) sends one to the process and one to its
 * group.
 */
static void on_signal(int number)
{
	const uint64_t one = 1, now_ns = gp_monotonic_ns();
	int saved = errno;
	ssize_t n;

	if (!first_ns)
		first_ns = now_ns;
	if (now_ns - first_ns > PATIENCE_NS) {
		signal(number, SIG_DFL);
		raise(number);
	}
	n = write(stop_fd, &one, sizeof one); /* full: it is readable already */
	(void)n;
	errno = saved;
}

int gp_stop_open(void)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};

	stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (stop_fd < 0)
		return -errno;
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
		struct sigaction was;

		/* stays ignored, as nohup(1) wants it */
		if (sigaction(numbers[i], NULL, &was) || was.sa_handler == SIG_IGN)
			continue;
		sigaction(numbers[i], &action, NULL);
	}
	signal(SIGPIPE, SIG_IGN);
	return stop_fd;
}

int gp_stop_begin(struct gp_error *err)
{
	int r = gp_stop_open();

	return r < 0 ? gp_fail(err, r, "cannot wait for signals: %s", gp_error_name(r)) : 0;
}

int gp_stop_fd(void)
{
	return stop_fd;
}

bool gp_stop_sleep(uint64_t until_ns)
{
	struct pollfd p = {.fd = stop_fd, .events = POLLIN};
	uint64_t now_ns;

	while ((now_ns = gp_monotonic_ns()) < until_ns) {
		uint64_t wait_ns = until_ns - now_ns;
		struct timespec timeout = gp_timespec(wait_ns);

		if (ppoll(&p, 1, &timeout, NULL) == 1)
			return true;
	}
	return gp_stop_asked();
}

bool gp_stop_asked(void)
{
	struct pollfd p = {.fd = stop_fd, .events = POLLIN};

	return stop_fd >= 0 && poll(&p, 1, 0) == 1;
}
