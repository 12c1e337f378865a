/* SPDX-License-Identifier: Apache-2.0 */
/* A host's life, and what the control thread reads of it. */
#include "daemon/device_thread.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "daemon/device_thread_state.h"

#define NEWS_MAX 1024

static void free_host(struct gp_host *h)
{
	if (h->engine)
		gp_engine_free(h->engine); /* puts everything back */
	h->gpu->ops->close(h->gpu);
	gp_undo_close(h->undo);
	if (h->order_fd >= 0)
		close(h->order_fd);
	if (h->timer_fd >= 0)
		close(h->timer_fd);
	gp_ring_free(&h->orders);
	gp_ring_free(&h->answers);
	gp_ring_free(&h->news);
	gp_shots_free(&h->shots);
	gp_backlog_free(&h->late);
	free(h);
}

static int make_host(struct gp_host *h, struct gp_error *err)
{
	int r = 0;

	h->order_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	h->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (h->order_fd < 0 || h->timer_fd < 0)
		return -errno;
	r = gp_ring_init(&h->orders, sizeof(struct gp_order), GP_ORDERS_MAX);
	if (!r)
		r = gp_ring_init(&h->answers, sizeof(struct gp_answer), GP_ORDERS_MAX);
	if (!r)
		r = gp_ring_init(&h->news, sizeof(struct gp_news), NEWS_MAX);
	if (!r && h->config.undo)
		r = gp_undo_open(&h->undo, true, err);
	return r ? r : gp_host_make_engine(h, err);
}

int gp_host_start(const struct gp_host_config *config, struct gp_host **host, struct gp_error *err)
{
	struct gp_host *h = calloc(1, sizeof *h);
	int r;

	*host = NULL;
	if (!h) {
		config->gpu->ops->close(config->gpu);
		return -ENOMEM;
	}
	h->config = *config;
	h->gpu = config->gpu;
	h->order_fd = h->timer_fd = -1;
	h->since_ns = gp_now_ns(&gp_clock_monotonic);
	gp_hist_init(&h->lag_ns);
	h->late.size = sizeof(struct gp_order);
	gp_shots_init(&h->shots);
	atomic_init(&h->due_ns, h->since_ns);
	r = make_host(h, err);
	if (!r)
		r = -pthread_create(&h->thread, NULL, gp_host_run, h);
	if (r) {
		gp_fail(err, r, "cannot schedule %s: %s", h->gpu->info.name, gp_error_name(r));
		free_host(h); /* with the device, and its name */
		return r;
	}
	*host = h;
	return 0;
}

void gp_host_stop(struct gp_host *h)
{
	atomic_store_explicit(&h->stop, true, memory_order_release);
	eventfd_write(h->order_fd, 1);
	pthread_join(h->thread, NULL);
	free_host(h);
}

bool gp_host_next_news(struct gp_host *h, struct gp_news *news)
{
	return gp_ring_take(&h->news, news);
}

uint64_t gp_host_lost_news(struct gp_host *h)
{
	return atomic_exchange_explicit(&h->lost, 0, memory_order_acquire);
}

void gp_host_want(struct gp_host *h, uint32_t kinds)
{
	atomic_store_explicit(&h->wanted, kinds, memory_order_relaxed);
}

const struct gp_shot *gp_host_shot(struct gp_host *h)
{
	return gp_shots_look(&h->shots);
}

const struct gp_gpu_info *gp_host_info(const struct gp_host *h)
{
	return &h->gpu->info;
}

const char *gp_host_backend(const struct gp_host *h)
{
	return h->gpu->ops->name;
}

uint32_t gp_host_caps(const struct gp_host *h)
{
	return h->gpu->info.caps | GP_CAP_BRACKETS;
}

uint64_t gp_host_overdue_ns(const struct gp_host *h, uint64_t now_ns)
{
	uint64_t due_ns = atomic_load_explicit(&h->due_ns, memory_order_relaxed);

	return now_ns > due_ns ? now_ns - due_ns : 0;
}
