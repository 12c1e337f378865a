/* SPDX-License-Identifier: Apache-2.0 */
/* What goes right: calls, answers that come later, errors with a name, events, versions. */
#include "support/test.h"

#include <poll.h>
#include <sys/socket.h>

#include "rpc/connect.h"
#include "rpc_world.h"

WORLD_TEST(a_call_is_answered)
{
	struct gp_client *client = client_of(w);
	struct json_object *result =
		ask(client, "echo", object("{\"a\":[1,2,{\"b\":\"\\u00e9\"}]}"));

	assert_string_equal(gp_json_text(result, NULL), "{\"a\":[1,2,{\"b\":\"\xc3\xa9\"}]}");
	json_object_put(result);
	result = ask(client, "hello", object("{\"version\":1}"));
	assert_string_equal(json_object_get_string(json_object_object_get(result, "server")),
			    "world 1.0");
	json_object_put(result);
}

WORLD_TEST(an_answer_of_a_megabyte_arrives)
{
	struct gp_client *client = client_of(w);
	struct json_object *result = ask(client, "blob", object("{\"bytes\":1048576}"));

	assert_int_equal(json_object_get_string_len(result), 1 << 20);
	json_object_put(result);
}

WORLD_TEST(answers_may_come_later_and_in_any_order)
{
	struct gp_client *other = client_of(w);
	int fd = raw_connect(w->path);
	struct json_object *json;

	raw_say(fd, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"keep\"}");
	raw_say(fd, "{\"jsonrpc\":\"2.0\",\"id\":\"two\",\"method\":\"echo\"}");
	json = raw_hear(fd);
	assert_string_equal(gp_json_text(json, NULL),
			    "{\"jsonrpc\":\"2.0\",\"id\":\"two\",\"result\":{}}");
	json_object_put(json);
	await_counter(other, "kept", 1);
	json_object_put(ask(other, "let_go", object("{\"count\":1}")));
	raw_hear_result(fd, 1);
}

WORLD_TEST(errors_come_back_with_their_name_and_sentence)
{
	static const struct {
		int error, code;
	} table[] = {
		{EPERM, GP_RPC_NOT_PERMITTED}, {ESRCH, GP_RPC_NO_PROCESS},
		{ENODEV, GP_RPC_NO_DEVICE},    {EINVAL, GP_RPC_INVALID_PARAMS},
		{EBUSY, GP_RPC_BUSY},          {ENOTSUP, GP_RPC_NOT_SUPPORTED},
		{EIO, GP_RPC_FAILED},          {ENOMEM, GP_RPC_LIMIT},
	};
	struct gp_client *client = client_of(w);
	int fd = raw_connect(w->path);

	for (unsigned i = 0; i < sizeof table / sizeof *table; i++) {
		struct gp_error err = {0};
		struct json_object *params = json_object_new_object();
		char line[128];

		json_object_object_add(params, "errno", json_object_new_int(table[i].error));
		assert_int_equal(gp_client_call(client, "fail", params, NULL, &err),
				 -table[i].error);
		assert_string_equal(err.text, "it failed, as you asked");
		snprintf(line, sizeof line,
			 "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"fail\",\"params\":"
			 "{\"errno\":%d}}",
			 table[i].error);
		raw_say(fd, line);
		assert_error(fd, table[i].code);
	}
}

WORLD_TEST(a_wrong_name_gets_a_suggestion)
{
	struct gp_client *client = client_of(w);
	struct gp_error err = {0};

	assert_int_equal(gp_client_call(client, "ecko", NULL, NULL, &err), -ENOSYS);
	assert_string_equal(err.text, "method 'ecko' is not known; perhaps 'echo' is meant");
	err = (struct gp_error){0};
	assert_int_equal(gp_client_call(client, "reboot", NULL, NULL, &err), -ENOSYS);
	assert_string_equal(err.text,
			    "method 'reboot' is not known; hello lists the available methods");
}

WORLD_TEST(other_versions_are_refused_with_those_there_are)
{
	int fd = raw_connect(w->path);
	struct json_object *json, *data;

	raw_say(fd,
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"hello\",\"params\":{\"version\":2}}");
	json = raw_hear_error(fd, GP_RPC_VERSION_UNKNOWN);
	data = json_object_object_get(json_object_object_get(json, "error"), "data");
	assert_string_equal(gp_json_text(data, NULL),
			    "{\"versions\":[1],\"errno\":\"EPROTONOSUPPORT\"}");
	json_object_put(json);
	raw_say(fd,
		"{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"hello\",\"params\":{\"version\":1}}");
	raw_hear_result(fd, 2);
	raw_say(fd, "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"hello\"}");
	assert_error(fd, GP_RPC_INVALID_PARAMS);
}

WORLD_TEST(only_hints_may_come_without_an_id)
{
	struct gp_client *client = client_of(w);
	int fd = raw_connect(w->path);

	raw_say(fd, "{\"jsonrpc\":\"2.0\",\"method\":\"hint\"}");
	raw_say(fd, "{\"jsonrpc\":\"2.0\",\"method\":\"echo\"}");
	assert_error(fd, GP_RPC_INVALID_REQUEST); /* the first one got no answer */
	raw_say(fd, "{\"jsonrpc\":\"2.0\",\"method\":\"hint\",\"params\":{}}");
	await_counter(client, "hints", 2);
}

WORLD_TEST(hints_that_were_sent_before_leaving_count)
{
	struct gp_client *client = client_of(w);
	int fd = raw_connect(w->path);

	for (unsigned i = 0; i < 300; i++) /* more than are taken in one turn, and than the burst */
		raw_say(fd, "{\"jsonrpc\":\"2.0\",\"method\":\"hint\"}");
	raw_close(fd);
	await_counter(client, "hints", 300);
	await_counter(client, "gone", 1);
}

WORLD_TEST(the_hint_socket_takes_hints_only)
{
	int fd = raw_connect(w->hint_path);

	raw_say(fd, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\"}");
	assert_error(fd, GP_RPC_UNKNOWN_METHOD);
	raw_say(fd, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"hint\"}");
	raw_hear_result(fd, 2);
}

WORLD_TEST(half_a_connection_is_still_answered)
{
	struct gp_client *other = client_of(w);
	int fd = raw_connect(w->path);

	raw_say(fd, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"keep\"}");
	raw_say(fd, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"echo\"}");
	shutdown(fd, SHUT_WR);
	raw_hear_result(fd, 2);
	await_counter(other, "kept", 1);
	json_object_put(ask(other, "let_go", object("{\"count\":1}")));
	raw_hear_result(fd, 1);
	raw_hear_end(fd);
}

WORLD_TEST(events_go_to_those_who_want_them)
{
	struct gp_client *wants = client_of(w), *other = client_of(w);
	struct json_object *event;
	struct gp_error err = {0};

	json_object_put(ask(wants, "subscribe", object("{\"bits\":6}")));
	json_object_put(ask(other, "subscribe", object("{\"bits\":8}")));
	json_object_put(ask(other, "emit", object("{\"bits\":2}")));
	json_object_put(ask(other, "emit", object("{\"bits\":1}")));
	json_object_put(ask(other, "emit", object("{\"bits\":4,\"count\":2}")));
	json_object_put(ask(wants, "echo", NULL)); /* events that come before the answer wait */
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(gp_client_next(wants, WAIT_MS, &event, &err), 0);
		assert_string_equal(json_object_get_string(json_object_object_get(event, "method")),
				    "event");
		assert_int_equal(number(json_object_object_get(event, "params"), "number"), i == 2);
		json_object_put(event);
	}
	assert_int_equal(gp_client_next(wants, 0, &event, &err), -EAGAIN);
	assert_int_equal(gp_client_next(other, 0, &event, &err), -EAGAIN);
}

WORLD_TEST(a_call_that_takes_too_long_ends)
{
	struct gp_client *client = client_of(w);
	struct gp_error err = {0};

	gp_client_set_timeout(client, 50);
	assert_int_equal(gp_client_call(client, "keep", NULL, NULL, &err), -ETIMEDOUT);
	assert_non_null(strstr(err.text, "does not answer"));
}

/* Waits for the next answer as a polling client does. */
static struct gp_client_answer next_answer(struct gp_client *client)
{
	struct pollfd p = {.fd = gp_client_fd(client), .events = POLLIN};
	struct gp_client_answer answer;
	struct gp_error err = {0};
	int r;

	while ((r = gp_client_answer(client, &answer, &err)) == -EAGAIN)
		if (poll(&p, 1, WAIT_MS) != 1)
			fail_msg("no answer came");
	assert_int_equal(r, 0);
	return answer;
}

WORLD_TEST(who_does_not_wait_is_answered_in_any_order)
{
	struct gp_client *other = client_of(w), *client;
	struct gp_client_answer answer;
	struct gp_error err = {0};
	int64_t hello, kept, failed;

	assert_int_equal(gp_client_begin(w->path, &client, &err), 0);
	assert_int_equal(gp_client_answer(client, &answer, &err), -EAGAIN);
	assert_int_equal(gp_client_ask(client, "hello", object("{\"version\":1}"), &hello, &err),
			 0);
	assert_int_equal(gp_client_ask(client, "keep", NULL, &kept, &err), 0);
	assert_int_equal(gp_client_ask(client, "fail", object("{\"errno\":1}"), &failed, &err), 0);
	answer = next_answer(client);
	assert_int_equal(answer.id, hello);
	assert_int_equal(answer.err.code, 0);
	assert_non_null(answer.result);
	json_object_put(answer.result);
	answer = next_answer(client);
	assert_int_equal(answer.id, failed);
	assert_int_equal(answer.err.code, -EPERM);
	assert_string_equal(answer.err.text, "it failed, as you asked");
	assert_null(answer.result);
	await_counter(other, "kept", 1);
	json_object_put(ask(other, "let_go", object("{\"count\":1}")));
	answer = next_answer(client);
	assert_int_equal(answer.id, kept);
	json_object_put(answer.result);
	gp_client_close(client);
}

TEST(who_does_not_wait_is_told_at_once_that_nobody_is_there)
{
	struct gp_client *client;
	struct gp_error err = {0};

	assert_int_equal(gp_client_begin("/nowhere/at.all", &client, &err), -ECONNREFUSED);
	assert_null(client);
	assert_non_null(strstr(err.text, "/nowhere/at.all"));
}

TEST(without_a_daemon_it_says_how_to_start_one)
{
	struct gp_client *client;
	struct gp_error err = {0};
	char path[128];

	setenv("GPREEMPT_SOCKET", "/nowhere/at.all", 1);
	assert_string_equal(gp_daemon_connect_path(path, sizeof path), "/nowhere/at.all");
	assert_int_equal(gp_client_connect(NULL, &client, &err), -ECONNREFUSED);
	assert_non_null(strstr(err.text, "systemctl start gpreemptd"));
	assert_null(client);
	unsetenv("GPREEMPT_SOCKET");
	setenv("GPREEMPT_RUN", "/some/run", 1);
	assert_string_equal(gp_daemon_connect_path(path, sizeof path), "/some/run/gpreemptd.sock");
	unsetenv("GPREEMPT_RUN");
}
