/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc_world.h"

#include "support/test.h"

#include <sys/eventfd.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "rpc/params.h"
#include "rpc/server/target_process.h"

struct json_object *object(const char *text)
{
	struct json_object *json = json_tokener_parse(text);

	assert_non_null(json);
	return json;
}

uint64_t number(struct json_object *json, const char *key)
{
	struct json_object *value = json_object_object_get(json, key);

	assert_true(json_object_is_type(value, json_type_int));
	return json_object_get_uint64(value);
}

static void put_number(struct json_object *json, const char *key, uint64_t value)
{
	json_object_object_add(json, key, json_object_new_uint64(value));
}

static int echo(void *arg, struct gp_rpc_call *call, struct json_object *params)
{
	(void)arg;
	return gp_rpc_reply(call, json_object_get(params));
}

static int keep(void *arg, struct gp_rpc_call *call, struct json_object *params)
{
	struct world *w = arg;

	(void)params;
	if (w->nkept == KEPT_MAX)
		return -EBUSY;
	w->kept[w->nkept++] = call;
	return 0;
}

static void let_go_of(struct world *w, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		gp_rpc_reply(w->kept[i], json_object_new_int((int)i));
	w->nkept -= n;
	for (unsigned i = 0; i < w->nkept; i++)
		w->kept[i] = w->kept[i + n];
}

static int let_go(void *arg, struct gp_rpc_call *call, struct json_object *params)
{
	struct world *w = arg;
	uint64_t n = 0;
	int r = gp_params_u64(params, "count", 0, w->nkept, &n, NULL, gp_rpc_error(call));

	if (r)
		return r;
	let_go_of(w, (unsigned)n);
	return gp_rpc_reply(call, NULL);
}

static int counters(void *arg, struct gp_rpc_call *call, struct json_object *params)
{
	struct world *w = arg;
	struct json_object *result = json_object_new_object();
	struct gp_rpc_counters c;
	uint64_t iterations = 0;

	(void)params;
	gp_rpc_server_counters(w->server, &c);
	put_number(result, "clients", c.clients);
	put_number(result, "accepted", c.accepted);
	put_number(result, "refused", c.refused);
	put_number(result, "requests", c.requests);
	put_number(result, "errors", c.errors);
	put_number(result, "cut_off", c.cut_off);
	put_number(result, "idle", c.idle);
	put_number(result, "paused", c.paused);
	put_number(result, "sent", c.sent);
	put_number(result, "lost", c.lost);
	put_number(result, "output", c.output);
	sd_event_get_iteration(w->event, &iterations);
	put_number(result, "iterations", iterations);
	put_number(result, "kept", w->nkept);
	put_number(result, "gone", c.accepted - c.refused - c.clients);
	put_number(result, "hints", w->hints);
	put_number(result, "with_files", c.with_files);
	return gp_rpc_reply(call, result);
}

static int hint(void *arg, struct gp_rpc_call *call, struct json_object *params)
{
	struct world *w = arg;

	(void)params;
	w->hints++;
	return gp_rpc_reply(call, NULL);
}

static int hints(void *arg, struct gp_rpc_call *call, struct json_object *params)
{
	struct world *w = arg;

	(void)params;
	return gp_rpc_reply(call, json_object_new_int((int)w->hints));
}

static int target(void *arg, struct gp_rpc_call *call, struct json_object *params)
{
	struct json_object *result;
	struct gp_target t;
	int r = gp_target_param(call, params, &t, gp_rpc_error(call));

	(void)arg;
	if (r)
		return r;
	result = json_object_new_object();
	put_number(result, "pid", (uint64_t)t.pid);
	put_number(result, "start_time", t.start_time);
	put_number(result, "uid", gp_rpc_peer(call)->uid);
	put_number(result, "groups", gp_rpc_peer(call)->ngroups);
	return gp_rpc_reply(call, result);
}

static int subscribe(void *arg, struct gp_rpc_call *call, struct json_object *params)
{
	uint64_t bits = 0;
	int r = gp_params_u64(params, "bits", 0, UINT64_MAX, &bits, NULL, gp_rpc_error(call));

	(void)arg;
	if (r)
		return r;
	gp_rpc_subscribe(call, bits);
	return gp_rpc_reply(call, NULL);
}

static struct json_object *filler(uint64_t bytes)
{
	char *text = malloc(bytes + 1);
	struct json_object *json;

	memset(text, 'x', bytes);
	text[bytes] = 0;
	json = json_object_new_string(text);
	free(text);
	return json;
}

static int emit(void *arg, struct gp_rpc_call *call, struct json_object *params)
{
	struct world *w = arg;
	uint64_t bits = 1, count = 1, bytes = 0;
	struct gp_error *err = gp_rpc_error(call);
	bool has;
	int r = gp_params_u64(params, "bits", 0, UINT64_MAX, &bits, &has, err);

	if (!r)
		r = gp_params_u64(params, "count", 1, 100000, &count, &has, err);
	if (!r)
		r = gp_params_u64(params, "bytes", 0, 1 << 20, &bytes, &has, err);
	if (r)
		return r;
	for (uint64_t i = 0; i < count; i++) {
		struct json_object *event = json_object_new_object();

		put_number(event, "number", i);
		put_number(event, "serial", w->emitted++);
		json_object_object_add(event, "filler", filler(bytes));
		gp_rpc_notify(w->server, bits, "event", event);
	}
	return gp_rpc_reply(call, NULL);
}

static int blob(void *arg, struct gp_rpc_call *call, struct json_object *params)
{
	uint64_t bytes = 0;
	int r = gp_params_u64(params, "bytes", 0, 64u << 20, &bytes, NULL, gp_rpc_error(call));

	(void)arg;
	return r ? r : gp_rpc_reply(call, filler(bytes));
}

static int refuse(void *arg, struct gp_rpc_call *call, struct json_object *params)
{
	uint64_t code = 0;
	int r = gp_params_u64(params, "errno", 1, 133, &code, NULL, gp_rpc_error(call));

	(void)arg;
	errno = (int)code;
	return r ? r : gp_rpc_fail(call, 0, -(int)code, "it failed, as you asked");
}

static int ticket(void *arg, struct gp_rpc_call *call, struct json_object *params)
{
	struct world *w = arg;

	(void)params;
	return gp_rpc_reply(call, json_object_new_int((int)w->tickets++));
}

static int stall(void *arg, struct gp_rpc_call *call, struct json_object *params)
{
	struct world *w = arg;
	eventfd_t value;

	(void)params;
	eventfd_read(w->gate, &value);
	return gp_rpc_reply(call, NULL);
}

static int toil(void *arg, struct gp_rpc_call *call, struct json_object *params)
{
	uint64_t until_ns = gp_monotonic_ns() + 2 * GP_NS_PER_MS;
	struct world *w = arg;

	(void)params;
	w->toils++;
	while (gp_monotonic_ns() < until_ns)
		;
	return gp_rpc_reply(call, NULL);
}

static int on_heartbeat(sd_event_source *source, uint64_t usec, void *arg)
{
	struct world *w = arg;

	(void)usec;
	if (w->toils > w->most_toils)
		w->most_toils = w->toils;
	w->toils = 0;
	sd_event_source_set_time_relative(source, 10000);
	return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static void add_heartbeat(struct world *w)
{
	sd_event_source *heartbeat;

	sd_event_add_time_relative(w->event, &heartbeat, CLOCK_MONOTONIC, 0, 1, on_heartbeat, w);
	sd_event_source_set_priority(heartbeat, SD_EVENT_PRIORITY_IMPORTANT);
	sd_event_source_set_floating(heartbeat, 1);
	sd_event_source_unref(heartbeat);
}

static int most_toils(void *arg, struct gp_rpc_call *call, struct json_object *params)
{
	struct world *w = arg;
	unsigned most = w->most_toils;

	(void)params;
	if (!w->heartbeats)
		add_heartbeat(w);
	w->heartbeats = true;
	w->toils = w->most_toils = 0;
	return gp_rpc_reply(call, json_object_new_int((int)most));
}

static const struct gp_rpc_method control_methods[] = {
	{"ticket", ticket, 0},
	{"stall", stall, 0},
	{"echo", echo, 0},
	{"keep", keep, 0},
	{"let_go", let_go, 0},
	{"counters", counters, 0},
	{"hint", hint, GP_RPC_MAY_NOTIFY},
	{"target", target, 0},
	{"emit", emit, 0},
	{"subscribe", subscribe, 0},
	{"fail", refuse, 0},
	{"blob", blob, 0},
	{"toil", toil, 0},
	{"most_toils", most_toils, 0},
};
static const struct gp_rpc_method hint_methods[] = {
	{"hint", hint, GP_RPC_MAY_NOTIFY},
	{"hints", hints, 0},
};

static int on_stop(sd_event_source *source, int fd, uint32_t events, void *arg)
{
	(void)fd;
	(void)events;
	(void)arg;
	return sd_event_exit(sd_event_source_get_event(source), 0);
}

/* The limits that the server requires, where the test has not set them. */
static struct gp_rpc_limits complete(struct gp_rpc_limits l)
{
	l.clients = l.clients ? l.clients : 1024;
	l.per_user = l.per_user ? l.per_user : 256;
	l.line = l.line ? l.line : WORLD_LINE_MAX;
	l.rate = l.rate ? l.rate : 1000;
	l.idle_s = l.idle_s ? l.idle_s : 300;
	return l;
}

static void *serve(void *arg)
{
	struct world *w = arg;
	char path[sizeof w->path], hint_path[sizeof w->hint_path];
	struct gp_rpc_socket sockets[] = {
		{.path = w->fd > 0 ? NULL : path,
		 .fd = w->fd,
		 .mode = 0600,
		 .gid = (gid_t)-1,
		 .method = control_methods,
		 .nmethods = sizeof control_methods / sizeof *control_methods,
		 .limits = complete(w->limits)},
		{.path = hint_path,
		 .mode = 0666,
		 .gid = (gid_t)-1,
		 .method = hint_methods,
		 .nmethods = sizeof hint_methods / sizeof *hint_methods,
		 .limits = complete((struct gp_rpc_limits){0})},
	};
	struct gp_rpc_config config = {.name = "world 1.0",
				       .socket = sockets,
				       .nsockets = 2,
				       .account = w->account,
				       .arg = w};

	memcpy(path, w->path, sizeof path);
	memcpy(hint_path, w->hint_path, sizeof hint_path);
	sd_event_new(&w->event);
	sd_event_add_io(w->event, NULL, w->stop, 1 /* EPOLLIN */, on_stop, w);
	w->result = gp_rpc_server_new(w->event, &config, &w->server, &w->err);
	/* It has its own. */
	memset(path, 'x', sizeof path - 1);
	memset(hint_path, 'x', sizeof hint_path - 1);
	memset(sockets, 0xff, sizeof sockets);
	pthread_barrier_wait(&w->ready);
	if (!w->result)
		sd_event_loop(w->event);
	gp_rpc_server_free(w->server);
	let_go_of(w, w->nkept);
	sd_event_unref(w->event);
	return NULL;
}

int world_try_start(struct world *w)
{
	if (!w->folder[0]) {
		strcpy(w->folder, "/tmp/gp-rpc-XXXXXX");
		assert_non_null(mkdtemp(w->folder));
		snprintf(w->path, sizeof w->path, "%s/control.sock", w->folder);
		snprintf(w->hint_path, sizeof w->hint_path, "%s/hint.sock", w->folder);
	}
	w->stop = eventfd(0, EFD_CLOEXEC);
	w->gate = eventfd(0, EFD_CLOEXEC);
	pthread_barrier_init(&w->ready, NULL, 2);
	assert_int_equal(pthread_create(&w->thread, NULL, serve, w), 0);
	pthread_barrier_wait(&w->ready);
	return w->result;
}

void world_start(struct world *w)
{
	assert_int_equal(world_try_start(w), 0);
}

void world_stop(struct world *w)
{
	eventfd_write(w->stop, 1);
	pthread_join(w->thread, NULL);
	pthread_barrier_destroy(&w->ready);
	close(w->stop);
	close(w->gate);
	rmdir(w->folder); /* the server has removed its sockets */
}

int world_setup(void **state)
{
	struct world *w = calloc(1, sizeof *w);

	world_start(w);
	*state = w;
	return 0;
}

int world_teardown(void **state)
{
	close_all_clients();
	world_stop(*state);
	free(*state);
	return 0;
}
