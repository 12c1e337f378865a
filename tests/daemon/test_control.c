/* SPDX-License-Identifier: Apache-2.0 */
/* The control thread: what it says holds, also where a device refuses, is late or loses count. */
#include "control_world.h"

#include <sys/resource.h>

TEST(a_policy_that_a_device_refuses_is_not_kept)
{
	struct json_object *answer;
	struct world w;

	world_begin(&w, 0, 0); /* cannot hold anybody */
	answer = world_ask(&w, "policy", "{\"policy\":\"edf\"}");
	assert_non_null(json_object_object_get(answer, "error"));
	json_object_put(answer);
	assert_string_equal(gp_assignments_policy(w.c.assignments)->text,
			    ""); /* a restart would not start */
	assert_string_equal(w.c.policy[0].ops->name, "none");
	answer = world_ask(&w, "policy", "{\"policy\":\"rr\"}");
	assert_null(json_object_object_get(answer, "error"));
	json_object_put(answer);
	assert_string_equal(gp_assignments_policy(w.c.assignments)->text, "rr");
	assert_string_equal(w.c.policy[0].ops->name, "rr");
	world_end(&w);
}

static bool has_no_task(struct world *w)
{
	return !w->c.procs.first || !w->c.procs.first->ntasks;
}

static bool has_all_tasks(struct world *w)
{
	return w->c.procs.first && w->c.procs.first->ntasks == STILL_MAX;
}

/* More than fit: whoever is not told of one that left must not keep him for ever. */
TEST(many_tasks_that_come_and_go_at_once_are_all_heard_of)
{
	struct world w;

	world_begin(&w, STILL_MAX, GP_CAP_HOLD);
	assert_true(world_until(&w, has_all_tasks));
	w.gpu->tasks = 0;
	assert_true(world_until(&w, has_no_task));
	w.gpu->tasks = STILL_MAX;
	assert_true(world_until(&w, has_all_tasks));
	world_end(&w);
}

static bool all_are(struct world *w, bool held)
{
	bool all = true;

	pthread_mutex_lock(&w->gpu->gate);
	for (unsigned i = 0; i < STILL_MAX; i++)
		all &= w->gpu->held[i] == held;
	pthread_mutex_unlock(&w->gpu->gate);
	return all;
}

static void expect_done(struct world *w, const char *method, unsigned tasks)
{
	struct json_object *answer = world_ask(w, method, "{}"), *result;

	if (!json_object_object_get_ex(answer, "result", &result))
		fail_msg("%s: %s", method, json_object_to_json_string(answer));
	assert_int_equal(json_object_get_int(json_object_object_get(result, "tasks")), tasks);
	json_object_put(answer);
}

/* More than can be on their way to a device at one time. */
TEST(a_process_of_very_many_tasks_is_held_and_released_as_a_whole)
{
	struct world w;

	world_begin(&w, STILL_MAX, GP_CAP_HOLD);
	assert_true(world_until(&w, has_all_tasks));
	expect_done(&w, "hold", STILL_MAX);
	assert_true(all_are(&w, true));
	expect_done(&w, "release_all", STILL_MAX);
	assert_true(all_are(&w, false));
	world_end(&w);
}

static bool has_one_task(struct world *w)
{
	return w->c.procs.first && w->c.procs.first->ntasks == 1;
}

static bool has_two_tasks(struct world *w)
{
	return w->c.procs.first && w->c.procs.first->ntasks == 2;
}

TEST(a_hold_that_failed_is_not_for_tasks_that_come_later)
{
	struct json_object *answer;
	struct world w;

	world_begin(&w, 1, GP_CAP_HOLD);
	w.gpu->holds_nobody = true;
	assert_true(world_until(&w, has_one_task));
	answer = world_ask(&w, "hold", "{}");
	assert_non_null(json_object_object_get(answer, "error"));
	json_object_put(answer);
	w.gpu->holds_nobody = false;
	w.gpu->tasks = 2;
	assert_true(world_until(&w, has_two_tasks));
	assert_true(w.c.procs.first->held_by == GP_NO_UID);
	answer = world_ask(&w, "policy", "{\"policy\":\"rr\"}"); /* orders before it are done */
	json_object_put(answer);
	pthread_mutex_lock(&w.gpu->gate);
	assert_false(w.gpu->held[0] || w.gpu->held[1]);
	pthread_mutex_unlock(&w.gpu->gate);
	world_end(&w);
}

TEST(a_hold_that_failed_in_part_is_taken_back_as_a_whole)
{
	struct json_object *answer, *error;
	struct world w;

	world_begin(&w, 2, GP_CAP_HOLD);
	w.gpu->spares_first = true;
	assert_true(world_until(&w, has_two_tasks));
	answer = world_ask(&w, "hold", "{}");
	error = json_object_object_get(answer, "error");
	assert_non_null(error);
	assert_non_null(strstr(json_object_to_json_string(error), "the driver of still 0"));
	json_object_put(answer);
	assert_true(w.c.procs.first->held_by == GP_NO_UID);
	pthread_mutex_lock(&w.gpu->gate);
	assert_false(w.gpu->held[0] || w.gpu->held[1]);
	pthread_mutex_unlock(&w.gpu->gate);
	w.gpu->spares_first = false;
	expect_done(&w, "hold", 2);
	world_end(&w);
}

/* Asks, and gives the device the order `kind` before it has looked. The answer is in `line`. */
static void ask_and_be_overtaken(struct world *w, const char *method, enum gp_command_kind kind,
				 char line[1024])
{
	struct gp_command command = {.kind = kind, .task = 1};
	char call[128];
	size_t length;
	ssize_t n;

	length = (size_t)snprintf(
		call, sizeof call,
		"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"%s\",\"params\":{}}\n", method);
	pthread_mutex_lock(&w->gpu->gate);
	assert_true(world_until(w, world_device_waits));
	assert_int_equal(send(w->client, call, length, 0), length);
	for (unsigned i = 0; !w->c.gathers && i < 1000; i++)
		sd_event_run(w->c.loop, 10000);
	assert_int_equal(gp_device_thread_command(w->c.thread[0], &command), 0);
	pthread_mutex_unlock(&w->gpu->gate);
	assert_true(world_until(w, world_has_reply));
	n = recv(w->client, line, 1023, 0);
	assert_true(n > 0);
	line[n] = 0;
}

/* Who waits for a hold that somebody takes back is told so, not let wait until he gives up; and so
 * is who waits for a release after which somebody held it again. */
TEST(a_hold_or_release_that_is_overtaken_is_answered)
{
	struct json_object *answer;
	char line[1024];
	struct world w;

	world_begin(&w, 1, GP_CAP_HOLD);
	assert_true(world_until(&w, has_one_task));
	ask_and_be_overtaken(&w, "hold", GP_COMMAND_RELEASE, line);
	assert_non_null(strstr(line, "ECANCELED"));
	answer = world_ask(&w, "hold", "{}");
	assert_null(json_object_object_get(answer, "error"));
	json_object_put(answer);
	ask_and_be_overtaken(&w, "release", GP_COMMAND_HOLD, line);
	assert_non_null(strstr(line, "\"result\""));
	world_end(&w);
}

/* No more files can be opened from now on. Returns what was allowed before. */
static struct rlimit leave_no_files(const struct world *w)
{
	int next = dup(w->client);
	struct rlimit before, none;

	assert_true(next >= 0);
	close(next);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit){.rlim_cur = (rlim_t)next, .rlim_max = before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	return before;
}

TEST(who_cannot_be_watched_is_steered_later_not_taken_for_dead)
{
	struct json_object *answer;
	struct rlimit files;
	struct world w;

	world_begin(&w, 0, GP_CAP_HOLD);
	answer = world_ask(&w, "devices", "{}"); /* so that it has been let in */
	json_object_put(answer);
	files = leave_no_files(&w);
	w.gpu->tasks = 1;
	assert_true(world_until(&w, has_one_task));
	answer = world_ask(&w, "hold", "{}");
	setrlimit(RLIMIT_NOFILE, &files);
	if (!strstr(json_object_to_json_string(answer), "EAGAIN"))
		fail_msg("%s", json_object_to_json_string(answer));
	json_object_put(answer);
	expect_done(&w, "hold", 1);
	world_end(&w);
}

static bool is_to_be_asked_again(struct world *w)
{
	return has_one_task(w) && w->c.procs.first->again_ns;
}

static bool fits_a_rule(struct world *w)
{
	return w->c.procs.first->source == GP_ATTR_BY_RULE;
}

TEST(rules_are_for_those_too_who_could_not_be_read_at_first)
{
	static const char rules[] = "rules: [{match: {comm: \"*\"}, class: be}]\n";
	struct rlimit files;
	struct world w;

	world_begin(&w, 0, GP_CAP_HOLD);
	gp_config_free(w.c.config);
	assert_int_equal(gp_config_parse("rules", rules, sizeof rules - 1, &gp_config_system_names,
					 &w.c.config, NULL),
			 0);
	assert_int_equal(gp_rules_begin(&w.c, NULL), 0);
	files = leave_no_files(&w);
	w.gpu->tasks = 1;
	assert_true(world_until(&w, is_to_be_asked_again));
	assert_false(fits_a_rule(&w));
	setrlimit(RLIMIT_NOFILE, &files);
	gp_rules_retry(&w.c, w.c.procs.first->again_ns);
	assert_true(world_until(&w, fits_a_rule));
	world_end(&w);
}
