/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread that drops undo records of processes that have ended. It has its own thread because it
 * may call a driver: queues of a process can outlive it in a child.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "daemon/control.h"
#include "hold/replay.h"
#include "undo/undo.h"

#define SWEEP_EVERY_MS 5000

struct gp_sweeper {
	struct gp_undo_file *undo;
	pthread_t thread;
	int stop_fd;
};

static void *sweep(void *arg)
{
	const struct gp_sweeper *s = arg;
	struct pollfd p = {.fd = s->stop_fd, .events = POLLIN};

	pthread_setname_np(pthread_self(), "sweeper");
	while (poll(&p, 1, SWEEP_EVERY_MS) <= 0)
		gp_records_drop_ended(s->undo);
	return NULL;
}

int gp_sweeper_begin(struct gp_control *c, struct gp_error *err)
{
	struct gp_sweeper *s = calloc(1, sizeof *s);
	int r;

	if (!s)
		return -ENOMEM;
	s->undo = c->undo;
	s->stop_fd = eventfd(0, EFD_CLOEXEC);
	r = s->stop_fd < 0 ? -errno : -pthread_create(&s->thread, NULL, sweep, s);
	if (r) {
		if (s->stop_fd >= 0)
			close(s->stop_fd);
		free(s);
		return gp_fail(err, r, "cannot start the sweeper thread: %s", gp_error_name(r));
	}
	c->sweeper = s;
	return 0;
}

void gp_sweeper_end(struct gp_control *c)
{
	struct gp_sweeper *s = c->sweeper;

	if (!s)
		return;
	eventfd_write(s->stop_fd, 1);
	pthread_join(s->thread, NULL);
	close(s->stop_fd);
	free(s);
	c->sweeper = NULL;
}
