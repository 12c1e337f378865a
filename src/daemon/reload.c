/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the configuration again, in a thread: looking up users and groups may need the network.
 * Until it is read and found correct, the old one applies. A request during a reload waits for the
 * next reload.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/control.h"

struct gp_reload {
	struct gp_reading reading; /* owned by the thread until `read` is set */
	_Atomic bool read;
	int done_fd;
	sd_event_source *done;
	bool again;
	struct gp_rpc_call *
		*call; /* waiting calls: `ncalls` for this reload, the rest for the next */
	unsigned ncalls, nall;
};

static int keep_call(struct gp_reload *r, struct gp_rpc_call *call)
{
	struct gp_rpc_call **list = realloc(r->call, (r->nall + 1) * sizeof(struct gp_rpc_call *));

	if (!list)
		return -ENOMEM;
	r->call = list;
	list[r->nall++] = call;
	return 0;
}

static void answer(struct gp_reload *r, int code, const char *text)
{
	for (unsigned i = 0; i < r->ncalls; i++)
		if (code)
			gp_rpc_fail(r->call[i], 0, code, "%s", text);
		else
			gp_rpc_reply(r->call[i], gp_json_begin());
	r->nall -= r->ncalls;
	if (r->nall)
		memmove(r->call, r->call + r->ncalls, r->nall * sizeof(struct gp_rpc_call *));
	r->ncalls = 0;
}

static void publish_config_event(struct gp_control *c, const char *text)
{
	struct json_object *event = gp_event_new(c, GP_TOPIC_CONFIG);

	if (!event)
		return;
	gp_json_add(event, "text", json_object_new_string(text));
	gp_events_publish(c, GP_TOPIC_CONFIG, event);
}

/*
 * The devices, the settings of their threads, sockets, clients and the metrics address stay
 * unchanged until a restart.
 */
static void apply(struct gp_control *c, const struct gp_reading *reading)
{
	if (!c->initial_config)
		c->initial_config = c->config;
	else
		gp_config_free(c->config);
	gp_configuration_use(c, reading);
	gp_warn_restart_needed(c->initial_config, c->config);
	gp_policy_reload(c);
	c->reload->again |= !gp_bounds_set(c, reading->user, reading->limit, reading->nusers);
	gp_rules_reapply(c);
	gp_log(GP_LOG_INFO, "config.loaded", "file=%s rules=%u", c->config_path, c->config->nrules);
	publish_config_event(c, "loaded");
}

static void finish(struct gp_control *c)
{
	struct gp_reload *r = c->reload;
	struct gp_reading *reading = &r->reading;
	const char *why;

	r->done = sd_event_source_disable_unref(r->done);
	close(r->done_fd);
	r->done_fd = -1;
	sd_notify(0, "READY=1");
	why = *reading->err.text ? reading->err.text : gp_error_name(reading->code);
	if (reading->code) {
		gp_log(GP_LOG_ERROR, "config.rejected", "%s; the old configuration stays", why);
		publish_config_event(c, why);
	} else {
		apply(c, reading);
	}
	answer(r, reading->code, why);
	free(reading->user);
	free(reading->limit);
}

static void *read_thread(void *arg)
{
	struct gp_reload *r = arg;

	gp_configuration_read(&r->reading);
	atomic_store_explicit(&r->read, true, memory_order_release);
	eventfd_write(r->done_fd, 1);
	return NULL;
}

static int on_done(sd_event_source *source, int fd, uint32_t events, void *arg);

/* 0, or -errno: nothing was started. */
static int begin(struct gp_control *c)
{
	struct gp_reload *r = c->reload;
	pthread_attr_t attr;
	pthread_t thread;
	int code;

	r->read = false;
	r->reading = (struct gp_reading){.option = c->options.config, .had_file = *c->config_path};
	code = gp_bounds_users(c, &r->reading);
	if (code)
		return code;
	r->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	code = r->done_fd < 0 ? -errno
			      : sd_event_add_io(c->loop, &r->done, r->done_fd, EPOLLIN, on_done, c);
	if (code >= 0) {
		/*
		 * Detached: the thread uses only its own data, so the end of the daemon does not
		 * wait for it.
		 */
		pthread_attr_init(&attr);
		pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
		code = -pthread_create(&thread, &attr, read_thread, r);
		pthread_attr_destroy(&attr);
	}
	if (!code) {
		r->ncalls = r->nall;
		sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%llu",
			   (unsigned long long)(gp_monotonic_ns() / 1000));
		return 0;
	}
	r->done = sd_event_source_disable_unref(r->done);
	if (r->done_fd >= 0)
		close(r->done_fd);
	r->done_fd = -1;
	free(r->reading.user);
	free(r->reading.limit);
	return code;
}

static void begin_or_fail(struct gp_control *c)
{
	int code = begin(c);

	if (!code)
		return;
	gp_log(GP_LOG_ERROR, "config.read-failed", "errno=%d", -code);
	c->reload->ncalls = c->reload->nall;
	answer(c->reload, code, gp_error_name(code));
}

static int on_done(sd_event_source *source, int fd, uint32_t events, void *arg)
{
	struct gp_control *c = arg;
	eventfd_t ignored;

	(void)source;
	(void)events;
	eventfd_read(fd, &ignored);
	if (!atomic_load_explicit(&c->reload->read, memory_order_acquire))
		return 0;
	finish(c);
	if (c->reload->again) {
		c->reload->again = false;
		begin_or_fail(c);
	}
	return 0;
}

int gp_control_reload(struct gp_control *c, struct gp_rpc_call *call)
{
	if (!c->reload) {
		c->reload = calloc(1, sizeof *c->reload);
		if (!c->reload)
			return -ENOMEM;
		c->reload->done_fd = -1;
	}
	if (call && keep_call(c->reload, call))
		return -ENOMEM;
	if (c->reload->done_fd >= 0)
		c->reload->again = true;
	else
		begin_or_fail(c);
	return 0;
}

/* A thread that is still reading keeps its data until the program ends. */
void gp_reload_end(struct gp_control *c)
{
	struct gp_reload *r = c->reload;

	if (!r)
		return;
	r->ncalls = r->nall;
	answer(r, -ECANCELED, "the daemon is shutting down");
	free(r->call);
	r->call = NULL;
	r->done = sd_event_source_disable_unref(r->done);
	if (r->done_fd < 0)
		free(r);
	c->reload = NULL;
}
