/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread that drops undo records of processes that have ended. It has its own thread because it
 * may call a driver: queues of a process can outlive it in a child. If the undo file was lost, the
 * thread also releases the tasks that are held without a record.
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
	struct gp_undo_file *undo; /* owned by the thread */
	/* Look for tasks that are held without a record: no daemon has used the undo file before,
	 * or the driver or /proc did not answer the last time. */
	bool unrecorded_due;
	pthread_t thread;
	int stop_fd;
};

/* Uses the new file if the undo file was removed, replaced or truncated. */
static void follow_undo_file(struct gp_sweeper *s)
{
	struct gp_undo_file *file;

	if (gp_undo_is_current(s->undo) || gp_undo_open(&file, true, NULL))
		return;
	gp_undo_close(s->undo);
	s->undo = file;
	s->unrecorded_due = true; /* the device threads have written theirs again */
}

static void release_unrecorded(struct gp_sweeper *s)
{
	if (s->unrecorded_due)
		s->unrecorded_due = gp_records_release_unrecorded(s->undo);
}

static void *sweep(void *arg)
{
	struct gp_sweeper *s = arg;
	struct pollfd p = {.fd = s->stop_fd, .events = POLLIN};

	pthread_setname_np(pthread_self(), "sweeper");
	release_unrecorded(s);
	while (poll(&p, 1, SWEEP_EVERY_MS) <= 0) {
		follow_undo_file(s);
		release_unrecorded(s);
		gp_records_drop_ended(s->undo);
	}
	return NULL;
}

int gp_sweeper_begin(struct gp_control *c, struct gp_error *err)
{
	struct gp_sweeper *s = calloc(1, sizeof *s);
	int r;

	if (!s)
		return -ENOMEM;
	s->unrecorded_due = gp_undo_is_first_scheduler(c->undo);
	s->stop_fd = eventfd(0, EFD_CLOEXEC);
	r = s->stop_fd < 0 ? -errno : gp_undo_open(&s->undo, true, err);
	if (!r)
		r = -pthread_create(&s->thread, NULL, sweep, s);
	if (r) {
		gp_undo_close(s->undo);
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
	gp_undo_close(s->undo);
	close(s->stop_fd);
	free(s);
	c->sweeper = NULL;
}
