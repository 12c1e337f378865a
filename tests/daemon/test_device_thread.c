/* SPDX-License-Identifier: Apache-2.0 */
/* A device and its thread: what it is told is done, and what it tells arrives, in any crowd. */
#include "still_gpu.h"

#include <sys/eventfd.h>

struct world {
	struct still_gpu *gpu;
	struct gp_assignments *assignments;
	struct gp_device_thread *thread;
	int wake_fd;
};

static int begin(struct world *w, unsigned tasks, uint32_t caps, const char *policy,
		 struct gp_error *err)
{
	*w = (struct world){.gpu = still_new(tasks, caps),
			    .wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
	assert_int_equal(gp_assignments_open(NULL, &w->assignments, NULL), 0);
	return still_start(w->gpu, w->assignments, w->wake_fd, policy, &w->thread, err);
}

static void end(struct world *w)
{
	if (w->thread)
		gp_device_thread_stop(w->thread);
	gp_assignments_close(w->assignments);
	close(w->wake_fd);
}

/* Where memory is watched: the sentence is made while there is a device. */
TEST(a_device_that_cannot_do_what_the_policy_needs_is_named)
{
	struct gp_error err = {0};
	struct world w;

	assert_int_equal(begin(&w, 1, 0, "edf", &err), -ENOTSUP);
	assert_null(w.thread);
	assert_non_null(strstr(err.text, "still 0"));
	end(&w);
}
