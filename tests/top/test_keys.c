/* SPDX-License-Identifier: Apache-2.0 */
/* Keys and their commands, with a daemon that the test plays. */
#include <json-c/json.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "made_up.h"

static struct {
	char folder[64], path[96];
	int listener, fd; /* -1: no daemon, no client */
	struct gp_top *top;
	uint64_t now_ns;
	char lines[65536];
	size_t used;
} w;

static void start_daemon(void)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};

	snprintf(a.sun_path, sizeof a.sun_path, "%s", w.path);
	w.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(w.listener, (const struct sockaddr *)&a, sizeof a), 0);
	assert_int_equal(listen(w.listener, 4), 0);
}

static void stop_daemon(void)
{
	if (w.fd >= 0)
		close(w.fd);
	if (w.listener >= 0)
		close(w.listener);
	unlink(w.path);
	w.fd = w.listener = -1;
	w.used = 0;
}

/* The next request; NULL: there is none. */
static struct json_object *request(void)
{
	struct pollfd p = {.fd = w.fd, .events = POLLIN};
	struct json_object *json;
	char *end;

	if (w.fd < 0)
		w.fd = accept(w.listener, NULL, NULL);
	p.fd = w.fd;
	assert_true(w.fd >= 0);
	while (!(end = memchr(w.lines, '\n', w.used)) && poll(&p, 1, 0) == 1) {
		ssize_t n = read(w.fd, w.lines + w.used, sizeof w.lines - w.used);

		if (n <= 0)
			return NULL;
		w.used += (size_t)n;
	}
	if (!end)
		return NULL;
	*end = 0;
	json = json_tokener_parse(w.lines);
	w.used -= (size_t)(end + 1 - w.lines);
	memmove(w.lines, end + 1, w.used);
	assert_non_null(json);
	return json;
}

static void answer(struct json_object *to, const char *key, const char *text)
{
	char line[4096];
	int n = snprintf(line, sizeof line, "{\"jsonrpc\":\"2.0\",\"id\":%ld,\"%s\":%s}\n",
			 (long)json_object_get_int64(json_object_object_get(to, "id")), key, text);

	assert_int_equal(write(w.fd, line, (size_t)n), n);
}

static bool asks(struct json_object *json, const char *method)
{
	return !strcmp(json_object_get_string(json_object_object_get(json, "method")), method);
}

static void work(void)
{
	gp_top_work(w.top, w.now_ns);
}

#define TWO_DEVICES                                                                               \
	"{\"daemon\":{},\"devices\":[{\"device\":0,\"policy\":\"rr\",\"state\":\"ok\",\"stats\":" \
	"{}},{\"device\":1,\"policy\":\"rr\",\"state\":\"ok\",\"stats\":{}}]}"
#define ONE_TASK                                                                             \
	"{\"now_ns\":1,\"tasks\":[{\"device\":%d,\"task\":1,\"pid\":4711,\"start_time\":17," \
	"\"name\":\"train\",\"user\":\"bob\",\"class\":\"be\",\"priority\":14}]}"

/* Answers the requests of a snapshot until none is left. Returns the first other request, for the
 * test to answer. */
static struct json_object *serve(void)
{
	struct json_object *json;
	char text[512];

	for (work(); (json = request()); work()) {
		if (asks(json, "hello")) {
			answer(json, "result", "{\"server\":\"gpreemptd 9.9\"}");
		} else if (asks(json, "stats")) {
			answer(json, "result", TWO_DEVICES);
		} else if (asks(json, "tasks")) {
			struct json_object *params = json_object_object_get(json, "params");

			snprintf(text, sizeof text, ONE_TASK,
				 json_object_get_int(json_object_object_get(params, "device")));
			answer(json, "result", text);
		} else {
			return json;
		}
		json_object_put(json);
	}
	return NULL;
}

static int begin(void **state)
{
	(void)state;
	strcpy(w.folder, "/tmp/gp-top-XXXXXX");
	assert_non_null(mkdtemp(w.folder));
	snprintf(w.path, sizeof w.path, "%s/sock", w.folder);
	setenv("GPREEMPT_SOCKET", w.path, 1);
	w.fd = w.listener = -1;
	w.used = 0;
	w.now_ns = 1000 * S;
	w.top = malloc(sizeof *w.top);
	assert_non_null(w.top);
	gp_top_init(w.top, S, -1);
	start_daemon();
	return 0;
}

/* The first snapshot has come, too. */
static int begin_shown(void **state)
{
	begin(state);
	assert_null(serve());
	return 0;
}

static int end(void **state)
{
	(void)state;
	stop_daemon();
	gp_top_free(w.top);
	free(w.top);
	rmdir(w.folder);
	return 0;
}

#define SHOWN_TEST(function) TEST_WITH(function, begin_shown, end)

static void press(const char *keys)
{
	for (; *keys; keys++)
		gp_top_press(w.top, (unsigned char)*keys, w.now_ns);
}

/* Checks that the next command has this method, target and parameter, and answers it. */
static void expect(const char *method, const char *param, const char *value, const char *key,
		   const char *text)
{
	struct json_object *json = serve(), *params, *target;

	assert_non_null(json);
	params = json_object_object_get(json, "params");
	assert_true(asks(json, method));
	if (strcmp(method, "policy") != 0) {
		target = json_object_object_get(params, "target");
		assert_int_equal(json_object_get_int(json_object_object_get(target, "pid")), 4711);
		assert_int_equal(json_object_get_int(json_object_object_get(target, "start_time")),
				 17);
	}
	if (param)
		assert_string_equal(json_object_get_string(json_object_object_get(params, param)),
				    value);
	answer(json, key, text);
	json_object_put(json);
	assert_null(serve());
}

SHOWN_TEST(a_snapshot_has_all_devices_and_tasks)
{
	assert_int_equal(w.top->link.snapshot.ndevices, 2);
	assert_int_equal(w.top->link.snapshot.ntasks, 2);
	assert_string_equal(w.top->link.snapshot.daemon, "gpreemptd 9.9");
	assert_int_equal(w.top->history.n, 1);
	w.now_ns += 900 * MS;
	assert_null(serve());
	assert_int_equal(w.top->history.n, 1); /* not yet */
	w.now_ns += 100 * MS;
	assert_null(serve());
	assert_int_equal(w.top->history.n, 2);
}

SHOWN_TEST(keys_send_commands_and_answers_are_shown)
{
	press("cl");
	expect("set", "class", "lc", "result", "{}");
	assert_string_equal(w.top->message, "4711 train: class lc");
	assert_false(w.top->refused);
	press("cb");
	expect("set", "class", "be", "result", "{}");
	press("cu");
	expect("set", "class", "unmanaged", "result", "{}");
	press("h");
	expect("hold", NULL, NULL, "result", "{\"tasks\":1}");
	assert_string_equal(w.top->message, "4711 train: held until r is pressed");
	press("r");
	expect("release", NULL, NULL, "result", "{}");
	press("-");
	expect("set", "priority", "13", "result", "{}");
	assert_string_equal(w.top->message, "4711 train: priority 13");
}

SHOWN_TEST(a_refusal_is_shown_in_the_words_of_the_daemon)
{
	press("h");
	expect("hold", NULL, NULL, "error",
	       "{\"code\":-32001,\"message\":\"you may not\",\"data\":{\"errno\":\"EPERM\"}}");
	assert_string_equal(w.top->message, "4711 train: you may not");
	assert_true(w.top->refused);
	w.now_ns += 10 * S;
	assert_null(serve());
	assert_string_equal(w.top->message, ""); /* the time of the message is over */
}

SHOWN_TEST(plus_continues_from_the_last_plus_and_ends_at_15)
{
	struct json_object *json;

	press("+");
	json = serve(); /* not answered yet */
	assert_non_null(json);
	json_object_put(json);
	press("+");
	assert_string_equal(w.top->message, "the priority must be from 0 to 15");
	assert_true(w.top->refused);
	assert_null(serve());
}

SHOWN_TEST(the_class_is_set_for_the_task_selected_when_c_was_pressed)
{
	press("c");
	gp_top_snapshot_clear(&w.top->link.snapshot); /* the task ends meanwhile */
	gp_top_view_update(&w.top->view, &w.top->link.snapshot, 10);
	press("l");
	expect("set", "class", "lc", "result", "{}");
	press("c\033");
	assert_null(serve());
	assert_int_equal(w.top->mode, GP_TOP_BROWSE);
}

SHOWN_TEST(a_policy_is_chosen_from_a_list)
{
	press("p");
	assert_int_equal(w.top->mode, GP_TOP_POLICY); /* begins at the policy in force, rr */
	press("jk\033");
	assert_null(serve());
	press("pj\n");
	expect("policy", "policy", "fair", "result", "{}");
	assert_string_equal(w.top->message, "policy: fair");
	press("pkkkkkkkkkkkkkkkkk\n");
	expect("policy", "policy", "none", "result", "{}");
	press("pjjjjjjjjjjjjjjjjjjjjjjjjj\n");
	expect("policy", "policy", "qos", "error", "{\"message\":\"it cannot run here\"}");
	assert_string_equal(w.top->message, "policy: it cannot run here");
}

SHOWN_TEST(a_filter_is_typed_kept_and_dropped)
{
	press("fBOQ\177");
	assert_string_equal(w.top->view.filter, "BO");
	assert_int_equal(w.top->view.n, 2);
	press("x");
	assert_int_equal(w.top->view.n, 0);
	press("\177\n");
	assert_int_equal(w.top->mode, GP_TOP_BROWSE);
	press("fzzz\033");
	assert_string_equal(w.top->view.filter, "BO");
	press("f\303\251");
	assert_string_equal(w.top->view.filter, "BO\303\251");
	press("\177"); /* removes both bytes of the character */
	assert_string_equal(w.top->view.filter, "BO");
	press("\177\177\177\n");
	assert_string_equal(w.top->view.filter, "");
	press("h"); /* letters are keys again */
	expect("hold", NULL, NULL, "result", "{}");
}

SHOWN_TEST(the_other_keys_do_what_help_says)
{
	press("?");
	assert_int_equal(w.top->mode, GP_TOP_HELP);
	press("q"); /* any key */
	assert_false(w.top->done);
	press("s");
	assert_int_equal(w.top->view.sort, GP_COL_P50);
	press("Z");
	assert_true(w.top->refused);
	gp_top_press(w.top, GP_KEY_DOWN, w.now_ns);
	assert_int_equal(w.top->view.place, 1);
	press("k");
	assert_int_equal(w.top->view.place, 0);
	gp_top_press(w.top, GP_KEY_END, w.now_ns);
	assert_int_equal(w.top->view.place, 1);
	press("q");
	assert_true(w.top->done);
}

SHOWN_TEST(a_lost_daemon_is_reported_and_found_again)
{
	press("h");
	stop_daemon();
	work();
	assert_int_equal(w.top->link.trouble.code, -ECONNRESET);
	assert_string_equal(w.top->message, "4711 train: the connection to the daemon was lost "
					    "before it answered; the result is not known");
	assert_int_equal(w.top->history.n, 0); /* another daemon counts from 0 */
	press("h");
	assert_string_equal(w.top->message, "not connected to the daemon; is gpreemptd running?");
	w.now_ns += S;
	work();
	assert_int_equal(w.top->link.trouble.code, -ECONNREFUSED);
	start_daemon();
	w.now_ns += 500 * MS;
	work();
	assert_int_equal(gp_top_connection_fd(&w.top->link), -1); /* it tries once a second */
	w.now_ns += 500 * MS;
	assert_null(serve());
	assert_int_equal(w.top->link.trouble.code, 0);
	assert_int_equal(w.top->history.n, 1);
}

SHOWN_TEST(a_daemon_that_does_not_answer_does_not_block)
{
	struct json_object *json;

	w.now_ns += S;
	work();
	json = request();
	assert_true(asks(json, "stats"));
	w.now_ns += 2 * S;
	work();
	assert_int_equal(w.top->link.trouble.code, 0);
	w.now_ns += 5 * S;
	work();
	assert_string_equal(w.top->link.trouble.text, "the daemon has not answered for 7 s");
	assert_null(request()); /* no second request meanwhile */
	press("h");             /* keys still work */
	answer(json, "result", TWO_DEVICES);
	json_object_put(json);
	expect("hold", NULL, NULL, "result", "{}");
	assert_int_equal(w.top->link.trouble.code, 0);
}

SHOWN_TEST(unanswered_commands_are_limited)
{
	for (unsigned i = 0; i < 3 * GP_TOP_COMMANDS; i++)
		press("h");
	assert_int_equal(w.top->link.ncommands, GP_TOP_COMMANDS);
	assert_non_null(strstr(w.top->message, "has not answered"));
}

TEST_WITH(one_device_is_shown_alone, begin, end)
{
	w.top->link.device = 1;
	assert_null(serve());
	assert_int_equal(w.top->link.snapshot.ndevices, 1);
	assert_int_equal(w.top->link.snapshot.device[0].number, 1);
	assert_int_equal(w.top->link.snapshot.ntasks, 1);
	press("p\n");
	expect("policy", "device", "1", "result", "{}");
}

TEST_WITH(a_missing_device_is_reported, begin, end)
{
	w.top->link.device = 7;
	serve();
	assert_int_equal(w.top->link.trouble.code, -ENODEV);
	assert_non_null(strstr(w.top->link.trouble.text, "there is no device 7"));
}

TEST_WITH(a_server_that_is_no_daemon_is_disconnected, begin, end)
{
	struct json_object *json;

	work();
	json = request();
	assert_true(asks(json, "hello"));
	json_object_put(json);
	assert_int_equal(write(w.fd, "HTTP/1.0 400\n", 13), 13);
	work();
	assert_int_equal(w.top->link.trouble.code, -EPROTO);
	assert_false(w.top->link.had_snapshot);
}
