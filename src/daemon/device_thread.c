/* SPDX-License-Identifier: Apache-2.0 */
/* Start and stop of a device thread, and what the control thread reads of it. */
#include "daemon/device_thread.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "daemon/device_thread_state.h"

#define EVENTS_MAX 1024

static void free_device_thread(struct gp_device_thread *h)
{
	if (h->engine)
		gp_engine_free(h->engine); /* puts all tasks back */
	h->gpu->ops->close(h->gpu);
	gp_undo_close(h->undo);
	if (h->command_fd >= 0)
		close(h->command_fd);
	if (h->timer_fd >= 0)
		close(h->timer_fd);
	gp_ring_free(&h->commands);
	gp_ring_free(&h->answers);
	gp_ring_free(&h->device_event);
	gp_snapshots_free(&h->snapshots);
	gp_backlog_free(&h->backlog);
	free(h);
}

static int make_device_thread(struct gp_device_thread *h, struct gp_error *err)
{
	int r = 0;

	h->command_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	h->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (h->command_fd < 0 || h->timer_fd < 0)
		return -errno;
	r = gp_ring_init(&h->commands, sizeof(struct gp_command), GP_COMMANDS_MAX);
	if (!r)
		r = gp_ring_init(&h->answers, sizeof(struct gp_answer), GP_COMMANDS_MAX);
	if (!r)
		r = gp_ring_init(&h->device_event, sizeof(struct gp_device_event), EVENTS_MAX);
	if (!r && h->config.undo)
		r = gp_undo_open(&h->undo, true, err);
	return r ? r : gp_device_thread_make_engine(h, err);
}

int gp_device_thread_start(const struct gp_device_thread_config *config,
                           struct gp_device_thread **thread, struct gp_error *err)
{
	struct gp_device_thread *h = calloc(1, sizeof *h);
	int r;

	*thread = NULL;
	if (!h) {
		config->gpu->ops->close(config->gpu);
		return -ENOMEM;
	}
	h->config = *config;
	h->gpu = config->gpu;
	h->command_fd = h->timer_fd = -1;
	h->since_ns = gp_monotonic_ns();
	gp_hist_init(&h->lag_ns);
	h->backlog.size = sizeof(struct gp_command);
	gp_snapshots_init(&h->snapshots);
	atomic_init(&h->due_ns, h->since_ns);
	r = make_device_thread(h, err);
	if (!r)
		r = -pthread_create(&h->thread, NULL, gp_device_thread_run, h);
	if (r) {
		gp_fail(err, r, "cannot schedule %s: %s", h->gpu->info.name, gp_error_name(r));
		free_device_thread(h); /* closes the device, so its name is no longer valid */
		return r;
	}
	*thread = h;
	return 0;
}

void gp_device_thread_stop(struct gp_device_thread *h)
{
	atomic_store_explicit(&h->stop, true, memory_order_release);
	eventfd_write(h->command_fd, 1);
	pthread_join(h->thread, NULL);
	free_device_thread(h);
}

bool gp_device_thread_next_event(struct gp_device_thread *h, struct gp_device_event *device_event)
{
	return gp_ring_take(&h->device_event, device_event);
}

uint64_t gp_device_thread_lost_events(struct gp_device_thread *h)
{
	return atomic_exchange_explicit(&h->lost, 0, memory_order_acquire);
}

void gp_device_thread_want(struct gp_device_thread *h, uint32_t kinds)
{
	atomic_store_explicit(&h->wanted, kinds, memory_order_relaxed);
}

const struct gp_snapshot *gp_device_thread_snapshot(struct gp_device_thread *h)
{
	return gp_snapshots_newest(&h->snapshots);
}

const struct gp_gpu_info *gp_device_thread_info(const struct gp_device_thread *h)
{
	return &h->gpu->info;
}

const char *gp_device_thread_backend(const struct gp_device_thread *h)
{
	return h->gpu->ops->name;
}

uint32_t gp_device_thread_caps(const struct gp_device_thread *h)
{
	return h->gpu->info.caps | GP_CAP_REQUEST_MARKS;
}

uint64_t gp_device_thread_overdue_ns(const struct gp_device_thread *h, uint64_t now_ns)
{
	uint64_t due_ns = atomic_load_explicit(&h->due_ns, memory_order_relaxed);

	return now_ns > due_ns ? now_ns - due_ns : 0;
}
