/* SPDX-License-Identifier: Apache-2.0 */
#include "control_world.h"

static void world_serve(struct world *w)
{
	struct gp_rpc_socket listens = {.path = w->socket,
					.fd = -1,
					.method = gp_control_methods,
					.nmethods = gp_control_nmethods,
					.limits = {.clients = 1024,
						   .per_user = 256,
						   .line = 64u << 10,
						   .rate = 1000,
						   .idle_s = 300}};
	struct gp_rpc_config config = {
		.name = "test", .socket = &listens, .nsockets = 1, .arg = &w->c};
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	assert_int_equal(gp_rpc_server_new(w->c.loop, &config, &w->c.server, NULL), 0);
	memcpy(address.sun_path, w->socket, strlen(w->socket) + 1);
	w->client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(w->client, (const struct sockaddr *)&address, sizeof address), 0);
}

void world_begin(struct world *w, unsigned tasks, uint32_t caps)
{
	*w = (struct world){.c = {.wake_fd = -1, .group = (gid_t)-1},
			    .folder = "/tmp/gpreempt-control-XXXXXX"};
	assert_non_null(mkdtemp(w->folder));
	snprintf(w->assignments, sizeof w->assignments, "%s/assignments", w->folder);
	snprintf(w->socket, sizeof w->socket, "%s/socket", w->folder);
	assert_true(sd_event_new(&w->c.loop) >= 0);
	assert_int_equal(gp_config_default(&w->c.config), 0);
	assert_int_equal(gp_assignments_open(w->assignments, &w->c.assignments, NULL), 0);
	assert_true(gp_events_begin(&w->c) >= 0);
	gp_procs_init(&w->c.procs, w->c.loop, NULL, NULL);
	world_serve(w);
	w->gpu = still_new(tasks, caps);
	assert_int_equal(gp_policy_parse("none", &w->c.policy[0], NULL), 0);
	assert_int_equal(
		still_start(w->gpu, w->c.assignments, w->c.wake_fd, "none", &w->c.thread[0], NULL),
		0);
	w->c.nthreads = 1;
}

void world_end(struct world *w)
{
	gp_device_thread_stop(w->c.thread[0]);
	gp_gathers_end(&w->c);
	gp_rpc_server_free(w->c.server);
	close(w->client);
	gp_procinfo_free(w->c.info);
	gp_procs_free(&w->c.procs);
	gp_assignments_close(w->c.assignments);
	gp_config_free(w->c.config);
	close(w->c.wake_fd);
	sd_event_unref(w->c.loop);
	unlink(w->assignments);
	assert_int_equal(rmdir(w->folder), 0);
}

bool world_until(struct world *w, bool (*is_so)(struct world *w))
{
	uint64_t until_ns = gp_monotonic_ns() + PATIENCE_NS;

	while (!is_so(w)) {
		if (gp_monotonic_ns() > until_ns)
			return false;
		errno = ENOMEM; /* of a failure before; answers do not depend on it */
		sd_event_run(w->c.loop, 10000);
	}
	return true;
}

bool world_has_reply(struct world *w)
{
	char byte;

	return recv(w->client, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

struct json_object *world_ask(struct world *w, const char *method, const char *params)
{
	char line[1024];
	struct json_object *answer;
	int n = snprintf(line, sizeof line,
			 "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\",\"params\":%s}\n", method,
			 params);

	assert_int_equal(send(w->client, line, (size_t)n, 0), n);
	assert_true(world_until(w, world_has_reply));
	n = (int)recv(w->client, line, sizeof line - 1, 0);
	assert_true(n > 0);
	line[n] = 0;
	answer = json_tokener_parse(line);
	assert_non_null(answer);
	return answer;
}

void world_expect_result(struct world *w, const char *method, const char *params)
{
	struct json_object *answer = world_ask(w, method, params);

	assert_null(json_object_object_get(answer, "error"));
	json_object_put(answer);
}

void world_expect_error(struct world *w, const char *method, const char *params, const char *part)
{
	struct json_object *answer = world_ask(w, method, params);
	struct json_object *error = json_object_object_get(answer, "error");

	assert_non_null(error);
	if (!strstr(json_object_to_json_string(error), part))
		fail_msg("%s", json_object_to_json_string(answer));
	json_object_put(answer);
}
