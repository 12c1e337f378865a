/* SPDX-License-Identifier: Apache-2.0 */
/* What goes right: calls, answers that come later, errors with a name, events, versions. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
/* after those it needs */
#include <cmocka.h>

#include "rpc_world.h"

static void a_call_is_answered(void **state)
{
	struct world *w = *state;
	struct gp_client *client = client_of(w);
	struct json_object *result =
		ask(client, "echo", object("{\"a\":[1,2,{\"b\":\"\\u00e9\"}]}"));

	assert_string_equal(gp_json_text(result, NULL), "{\"a\":[1,2,{\"b\":\"\xc3\xa9\"}]}");
	assert_string_equal(gp_client_server_name(client), "world 1.0");
	json_object_put(result);
	gp_client_close(client);
}

static void answers_may_come_later_and_in_any_order(void **state)
{
	struct world *w = *state;
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
	json = raw_hear(fd);
	assert_int_equal(number(json, "id"), 1);
	json_object_put(json);
	close(fd);
	gp_client_close(other);
}

static int start(void **state)
{
	static struct world w;

	w = (struct world){0};
	world_start(&w);
	*state = &w;
	return 0;
}

static int stop(void **state)
{
	world_stop(*state);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_call_is_answered, start, stop),
		cmocka_unit_test_setup_teardown(answers_may_come_later_and_in_any_order, start,
	                                        stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
