/* SPDX-License-Identifier: Apache-2.0 */
/* The control thread: what it says holds, also where a device refuses, is late or loses count. */
#include "control_world.h"

#include <sys/resource.h>

#include "base/log.h"

/* cannot hold anybody */
CONTROL_TEST(a_policy_that_a_device_refuses_is_not_kept, 0, 0)
{
	world_expect_error(w, "policy", "{\"policy\":\"edf\"}", "");
	assert_string_equal(gp_assignments_policy(w->c.assignments)->text,
			    ""); /* a restart would not start */
	assert_string_equal(w->c.policy[0].ops->name, "none");
	world_expect_result(w, "policy", "{\"policy\":\"rr\"}");
	assert_string_equal(gp_assignments_policy(w->c.assignments)->text, "rr");
	assert_string_equal(w->c.policy[0].ops->name, "rr");
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
CONTROL_TEST(many_tasks_that_come_and_go_at_once_are_all_heard_of, STILL_MAX, GP_CAP_HOLD)
{
	assert_true(world_until(w, has_all_tasks));
	w->gpu->tasks = 0;
	assert_true(world_until(w, has_no_task));
	w->gpu->tasks = STILL_MAX;
	assert_true(world_until(w, has_all_tasks));
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
CONTROL_TEST(a_process_of_very_many_tasks_is_held_and_released_as_a_whole, STILL_MAX, GP_CAP_HOLD)
{
	assert_true(world_until(w, has_all_tasks));
	expect_done(w, "hold", STILL_MAX);
	assert_true(all_are(w, true));
	expect_done(w, "release_all", STILL_MAX);
	assert_true(all_are(w, false));
}

static bool has_one_task(struct world *w)
{
	return w->c.procs.first && w->c.procs.first->ntasks == 1;
}

static struct world *starting;
static bool is_ready, had_task;

static void watch_log(void *arg, enum gp_log_level level, const char *line)
{
	(void)arg;
	(void)level;
	if (!strstr(line, "daemon.ready"))
		return;
	is_ready = true;
	had_task = has_one_task(starting);
	sd_event_exit(starting->c.loop, 0);
}

static int let_the_device_go_on(sd_event_source *source, uint64_t at_us, void *arg)
{
	(void)source;
	(void)at_us;
	pthread_mutex_unlock(&((struct world *)arg)->gpu->gate);
	return 0;
}

/* A client that asks at once must not hear that the process has no queues. */
CONTROL_TEST(the_daemon_is_ready_when_every_device_has_been_looked_at, 0, GP_CAP_HOLD)
{
	int r;

	gp_device_thread_stop(w->c.thread[0]);
	w->gpu = still_new(1, GP_CAP_HOLD);
	pthread_mutex_lock(&w->gpu->gate);
	assert_int_equal(
		still_start(w->gpu, w->c.assignments, w->c.wake_fd, "none", &w->c.thread[0], NULL),
		0);
	starting = w;
	assert_true(sd_event_add_time_relative(w->c.loop, NULL, CLOCK_MONOTONIC, 50000, 1000,
					       let_the_device_go_on, w) >= 0);
	gp_log_set_sink(watch_log, NULL);
	r = gp_control_run(&w->c, NULL);
	gp_log_set_sink(NULL, NULL);
	assert_int_equal(r, 0);
	assert_true(is_ready && had_task);
}

/* The state of a task that was held for `held_ms` of the last second, released without a proof for
 * `unproven_ms` of it, and is held now or not. NULL: none is said. */
static void expect_state(struct world *w, unsigned held_ms, unsigned unproven_ms, bool held,
			 const char *state)
{
	const char *is;
	static struct gp_snapshot snapshot;
	struct gp_task_stats task = {.id = 4711,
				     .attr.class = GP_BEST_EFFORT,
				     .held = held,
				     .held_by = held ? GP_HELD_BY_POLICY : 0,
				     .known = GP_KNOWN_ACTIVE,
				     .active = true};
	struct gp_recent recent = {.over_ns = GP_NS_PER_S,
				   .held_ns = held_ms * GP_NS_PER_MS,
				   .unproven_ns = unproven_ms * GP_NS_PER_MS};
	struct json_object *o;

	snapshot.task = &task;
	snapshot.recent = &recent;
	o = gp_render_task(&w->c, 0, &snapshot, 0);
	is = json_object_get_string(json_object_object_get(o, "state"));
	assert_string_equal(is ? is : "unknown", state ? state : "unknown");
	json_object_put(o);
}

CONTROL_TEST(the_state_of_a_task_is_what_prevailed_in_the_last_second, 0, GP_CAP_HOLD)
{
	expect_state(w, 60, 0, true, "active"); /* just now, but seldom */
	expect_state(w, 60, 0, false, "active");
	expect_state(w, 940, 0, false, "held");
	expect_state(w, 940, 0, true, "held");
}

/* A driver may say so of a task that it left held. */
CONTROL_TEST(the_state_of_a_task_that_was_released_without_a_proof_is_unknown, 0, GP_CAP_HOLD)
{
	expect_state(w, 60, 900, false, NULL);
	expect_state(w, 60, 900, true, NULL);
	expect_state(w, 60, 300, false, "active");
	expect_state(w, 400, 500, true, NULL); /* each release failed for some time */
	expect_state(w, 450, 50, true, "active");
	expect_state(w, 600, 390, false, "held");
}

static bool has_two_tasks(struct world *w)
{
	return w->c.procs.first && w->c.procs.first->ntasks == 2;
}

CONTROL_TEST(a_hold_that_failed_is_not_for_tasks_that_come_later, 1, GP_CAP_HOLD)
{
	w->gpu->holds_nobody = true;
	assert_true(world_until(w, has_one_task));
	world_expect_error(w, "hold", "{}", "");
	w->gpu->holds_nobody = false;
	w->gpu->tasks = 2;
	assert_true(world_until(w, has_two_tasks));
	assert_true(w->c.procs.first->held_by == GP_NO_UID);
	/* orders before it are done */
	world_expect_result(w, "policy", "{\"policy\":\"rr\"}");
	assert_true(all_are(w, false));
}

CONTROL_TEST(a_hold_that_failed_in_part_is_taken_back_as_a_whole, 2, GP_CAP_HOLD)
{
	w->gpu->spares_first = true;
	assert_true(world_until(w, has_two_tasks));
	world_expect_error(w, "hold", "{}", "the driver of still 0");
	assert_true(w->c.procs.first->held_by == GP_NO_UID);
	assert_true(all_are(w, false));
	w->gpu->spares_first = false;
	expect_done(w, "hold", 2);
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
CONTROL_TEST(a_hold_or_release_that_is_overtaken_is_answered, 1, GP_CAP_HOLD)
{
	char line[1024];

	assert_true(world_until(w, has_one_task));
	ask_and_be_overtaken(w, "hold", GP_COMMAND_RELEASE, line);
	assert_non_null(strstr(line, "ECANCELED"));
	world_expect_result(w, "hold", "{}");
	ask_and_be_overtaken(w, "release", GP_COMMAND_HOLD, line);
	assert_non_null(strstr(line, "\"result\""));
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

CONTROL_TEST(who_cannot_be_watched_is_steered_later_not_taken_for_dead, 0, GP_CAP_HOLD)
{
	struct rlimit files;

	/* so that it has been let in */
	world_expect_result(w, "devices", "{}");
	files = leave_no_files(w);
	w->gpu->tasks = 1;
	assert_true(world_until(w, has_one_task));
	world_expect_error(w, "hold", "{}", "EAGAIN");
	setrlimit(RLIMIT_NOFILE, &files);
	expect_done(w, "hold", 1);
}

static bool is_to_be_asked_again(struct world *w)
{
	return has_one_task(w) && w->c.procs.first->again_ns;
}

static bool fits_a_rule(struct world *w)
{
	return w->c.procs.first->source == GP_ATTR_BY_RULE;
}

CONTROL_TEST(rules_are_for_those_too_who_could_not_be_read_at_first, 0, GP_CAP_HOLD)
{
	static const char rules[] = "rules: [{match: {comm: \"*\"}, class: be}]\n";
	struct rlimit files;

	gp_config_free(w->c.config);
	assert_int_equal(gp_config_parse("rules", rules, sizeof rules - 1, &gp_config_system_names,
					 &w->c.config, NULL),
			 0);
	assert_int_equal(gp_rules_begin(&w->c, NULL), 0);
	files = leave_no_files(w);
	w->gpu->tasks = 1;
	assert_true(world_until(w, is_to_be_asked_again));
	assert_false(fits_a_rule(w));
	setrlimit(RLIMIT_NOFILE, &files);
	gp_rules_retry(&w->c, w->c.procs.first->again_ns);
	assert_true(world_until(w, fits_a_rule));
}
