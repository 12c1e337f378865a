/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/real_time.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <unistd.h>

/* Waits until `next_ns` or an event. Returns 0: timeout, 1: stop, 2: event of the back end, or
 * -errno. */
static int wait_until(uint64_t next_ns, int stop_fd, int event_fd)
{
	struct pollfd p[2] = {{.fd = stop_fd, .events = POLLIN},
			      {.fd = event_fd, .events = POLLIN}};
	uint64_t now_ns = gp_monotonic_ns();
	uint64_t wait_ns = next_ns > now_ns ? next_ns - now_ns : 0;
	struct timespec timeout = gp_timespec(wait_ns);
	uint64_t ignored;

	if (ppoll(p, event_fd >= 0 ? 2 : 1, &timeout, NULL) < 0)
		return errno == EINTR ? 0 : -errno;
	if (p[0].revents)
		return 1;
	if (event_fd < 0 || !p[1].revents)
		return 0;
	if (read(event_fd, &ignored, sizeof ignored) < 0 && errno != EAGAIN)
		return -errno;
	return 2;
}

int gp_drive(struct gp_engine *engine, struct gp_gpu *gpu, int stop_fd,
	     int (*after_tick)(void *arg, uint64_t now_ns), void *arg)
{
	int event_fd = gp_gpu_event_fd(gpu);

	for (;;) {
		uint64_t now_ns = gp_monotonic_ns();
		uint64_t next_ns = gp_engine_step(engine, now_ns);
		int r = after_tick ? after_tick(arg, now_ns) : 0;

		if (r)
			return r;
		r = wait_until(gp_engine_next_ns(engine) ? next_ns : 0, stop_fd, event_fd);
		if (r < 0 || r == 1)
			return r < 0 ? r : 0;
		if (r == 2)
			gp_engine_trigger(engine, true); /* a scan is cheap: it copies data */
	}
}
