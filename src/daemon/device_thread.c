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

static void free_device_thread(struct gp_device_thread *dt)
{
	if (dt->engine)
		gp_engine_free(dt->engine); /* puts all tasks back */
	dt->gpu->ops->close(dt->gpu);
	gp_undo_close(dt->undo);
	if (dt->command_fd >= 0)
		close(dt->command_fd);
	if (dt->timer_fd >= 0)
		close(dt->timer_fd);
	gp_ring_free(&dt->commands);
	gp_ring_free(&dt->answers);
	gp_ring_free(&dt->device_event);
	gp_snapshots_free(&dt->snapshots);
	gp_backlog_free(&dt->backlog);
	free(dt);
}

static int make_device_thread(struct gp_device_thread *dt, struct gp_error *err)
{
	int r = 0;

	dt->command_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	dt->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (dt->command_fd < 0 || dt->timer_fd < 0)
		return -errno;
	r = gp_ring_init(&dt->commands, sizeof(struct gp_command), GP_COMMANDS_MAX);
	if (!r)
		r = gp_ring_init(&dt->answers, sizeof(struct gp_answer), GP_COMMANDS_MAX);
	if (!r)
		r = gp_ring_init(&dt->device_event, sizeof(struct gp_device_event), EVENTS_MAX);
	if (!r && dt->config.undo)
		r = gp_undo_open(&dt->undo, true, err);
	return r ? r : gp_device_thread_make_engine(dt, err);
}

int gp_device_thread_start(const struct gp_device_thread_config *config,
			   struct gp_device_thread **thread, struct gp_error *err)
{
	struct gp_device_thread *dt = calloc(1, sizeof *dt);
	int r;

	*thread = NULL;
	if (!dt) {
		config->gpu->ops->close(config->gpu);
		return -ENOMEM;
	}
	dt->config = *config;
	dt->gpu = config->gpu;
	dt->command_fd = dt->timer_fd = -1;
	dt->since_ns = gp_monotonic_ns();
	gp_hist_init(&dt->lag_ns);
	dt->backlog.size = sizeof(struct gp_command);
	gp_snapshots_init(&dt->snapshots);
	atomic_init(&dt->due_ns, dt->since_ns);
	r = make_device_thread(dt, err);
	if (!r)
		r = -pthread_create(&dt->thread, NULL, gp_device_thread_run, dt);
	if (r) {
		gp_fail(err, r, "cannot schedule %s: %s", dt->gpu->info.name, gp_error_name(r));
		free_device_thread(dt); /* closes the device, so its name is no longer valid */
		return r;
	}
	*thread = dt;
	return 0;
}

void gp_device_thread_stop(struct gp_device_thread *dt)
{
	atomic_store_explicit(&dt->stop, true, memory_order_release);
	eventfd_write(dt->command_fd, 1);
	pthread_join(dt->thread, NULL);
	free_device_thread(dt);
}

bool gp_device_thread_next_event(struct gp_device_thread *dt, struct gp_device_event *device_event)
{
	return gp_ring_take(&dt->device_event, device_event);
}

uint64_t gp_device_thread_lost_events(struct gp_device_thread *dt)
{
	return atomic_exchange_explicit(&dt->lost, 0, memory_order_acquire);
}

void gp_device_thread_want(struct gp_device_thread *dt, uint32_t kinds)
{
	atomic_store_explicit(&dt->wanted, kinds, memory_order_relaxed);
}

const struct gp_snapshot *gp_device_thread_snapshot(struct gp_device_thread *dt)
{
	return gp_snapshots_newest(&dt->snapshots);
}

bool gp_device_thread_has_ticked(struct gp_device_thread *dt)
{
	return gp_snapshots_newest(&dt->snapshots)->now_ns;
}

const struct gp_gpu_info *gp_device_thread_info(const struct gp_device_thread *dt)
{
	return &dt->gpu->info;
}

const char *gp_device_thread_backend(const struct gp_device_thread *dt)
{
	return dt->gpu->ops->name;
}

uint32_t gp_device_thread_caps(const struct gp_device_thread *dt)
{
	return dt->gpu->info.caps | GP_CAP_REQUEST_MARKS;
}

bool gp_device_thread_is_gone(const struct gp_device_thread *dt)
{
	return atomic_load_explicit(&dt->gone, memory_order_relaxed);
}

uint64_t gp_device_thread_overdue_ns(const struct gp_device_thread *dt, uint64_t now_ns)
{
	uint64_t due_ns = atomic_load_explicit(&dt->due_ns, memory_order_relaxed);
	uint64_t late_ns = now_ns > due_ns ? now_ns - due_ns : 0;
	uint64_t busy_ns = gp_gpu_busy_ns(dt->gpu, now_ns);

	return late_ns > busy_ns ? late_ns : busy_ns;
}
