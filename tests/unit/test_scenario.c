/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scenario files: the meaning of each key, its default, and that each mistake gives one message
 * with file and line that names the correct form.
 */
#include "support/test.h"

#include <glob.h>

#include "sim/scenario/scenario.h"

#define MIB  ((size_t)1 << 20)

#define TASK "tasks:\n- load: idle\n"

static struct gp_scenario accepted;

/* The scenario is freed by the next call. */
static struct gp_scenario accept(const char *text)
{
	struct gp_error err = {0};

	gp_scenario_free(&accepted);
	if (gp_scenario_parse(&accepted, "dir/good.yaml", text, strlen(text), &err))
		fail_msg("%s", err.text);
	return accepted;
}

static void refuse_bytes(const char *text, size_t length, unsigned line, const char *a,
			 const char *b)
{
	struct gp_error err = {0};
	struct gp_scenario s;
	char place[32];

	snprintf(place, sizeof place, "bad.yaml:%u: ", line);
	assert_int_equal(gp_scenario_parse(&s, "bad.yaml", text, length, &err), -EINVAL);
	assert_int_equal(err.code, -EINVAL);
	if (strncmp(err.text, place, strlen(place)) != 0 || !strstr(err.text, a) ||
	    !strstr(err.text, b) || strpbrk(err.text, "\n\033"))
		fail_msg("%s (wanted: %s ... %s ... %s)", err.text, place, a, b);
}

/* Both `a` and `b` must be in the message. */
static void refuse(const char *text, unsigned line, const char *a, const char *b)
{
	refuse_bytes(text, strlen(text), line, a, b);
}

/* The meaning of keys. */

TEST(what_is_not_said_is_an_h200_for_ten_seconds_and_the_files_name)
{
	struct gp_scenario s = accept(TASK);
	assert_string_equal(s.name, "good");
	assert_string_equal(s.about, "");
	assert_int_equal(s.duration_ns, 10 * GP_NS_PER_S);
	assert_int_equal(s.seed, 1);
	assert_memory_equal(&s.device, &gp_sim_h200, sizeof s.device);
	assert_int_equal(s.ntasks, 1);
	assert_string_equal(s.task[0].name, "task1");
	assert_int_equal(s.task[0].load, GP_LOAD_IDLE);
	assert_int_equal(s.task[0].start_ns, 0);
	assert_true(s.task[0].stop_ns == GP_NEVER);
	assert_int_equal(s.task[0].slice_us, 0);
	assert_memory_equal(&s.attr[0], &GP_TASK_ATTR_DEFAULT, sizeof s.attr[0]);
}

TEST(every_key_of_a_scenario_and_its_device_has_its_place)
{
	struct gp_scenario s = accept("name: all\n"
				      "about: one sentence\n"
				      "duration: 24h\n"
				      "seed: 18446744073709551615\n"
				      "device:\n"
				      "  model: runlist\n"
				      "  switch: 1us\n"
				      "  refill: 2us\n"
				      "  slice: 3us\n"
				      "  launch: 4us\n"
				      "  launch_jitter: 6.3us\n"
				      "  launch_hinted: 62.5\n"
				      "  hold: 5us\n"
				      "  release: 6us\n"
				      "  set_slice: 7us\n"
				      "  slices: false\n"
				      "  max_held: 0\n"
				      "  activity: events\n"
				      "  activity_window: 8ms\n" TASK);
	const struct gp_sim_device *d = &s.device;
	assert_string_equal(s.name, "all");
	assert_string_equal(s.about, "one sentence");
	assert_true(s.duration_ns == 86400 * GP_NS_PER_S);
	assert_true(s.seed == UINT64_MAX);
	assert_int_equal(d->switch_ns, 1000);
	assert_int_equal(d->refill_ns, 2000);
	assert_int_equal(d->slice_us, 3);
	assert_int_equal(d->launch_ns, 4000);
	assert_int_equal(d->launch_jitter_ns, 6300);
	assert_int_equal(d->launch_hinted_permille, 625);
	assert_int_equal(d->hold_ns, 5000);
	assert_int_equal(d->release_ns, 6000);
	assert_int_equal(d->set_slice_ns, 7000);
	assert_false(d->slices);
	assert_int_equal(d->max_held, 0);
	assert_int_equal(d->activity, GP_ACTIVITY_EVENTS);
	assert_int_equal(d->activity_window_ns, 8 * GP_NS_PER_MS);
}

TEST(the_defaults_of_a_device_are_those_of_its_model)
{
	struct gp_scenario s = accept("device: {model: cwsr}\n" TASK);

	assert_memory_equal(&s.device, &gp_sim_mi300x, sizeof s.device);
	s = accept("device:\n"
		   "  xccs: 4\n" /* the model may come after keys that depend on it */
		   "  scheduler: mes\n"
		   "  save_area: 43.9\n"
		   "  save_bandwidth: 960.5\n"
		   "  grace: 50us\n"
		   "  unmap: 1us\n"
		   "  map: 2us\n"
		   "  detection: 100us\n"
		   "  run_time: true\n"
		   "  model: cwsr\n" TASK);
	assert_int_equal(s.device.model, GP_SIM_CWSR);
	assert_int_equal(s.device.xccs, 4);
	assert_int_equal(s.device.scheduler, GP_SIM_MES);
	assert_int_equal(s.device.save_area_kb, 43900);
	assert_int_equal(s.device.save_mb_per_s, 960500);
	assert_int_equal(s.device.grace_ns, 50000);
	assert_int_equal(s.device.unmap_ns, 1000);
	assert_int_equal(s.device.map_ns, 2000);
	assert_int_equal(s.device.detect_ns, 100000);
	assert_false(s.device.hides_run);
	assert_int_equal(s.device.hold_ns, gp_sim_mi300x.hold_ns);
}

TEST(a_key_of_the_other_model_is_refused)
{
	refuse("device:\n  xccs: 8\n" TASK, 2, "'xccs' does not apply to model 'runlist'", "");
	refuse("device:\n  slices: true\n  model: cwsr\n" TASK, 2,
	       "'slices' does not apply to model 'cwsr'", "");
	refuse("device:\n  model: cwsr\n  map: 1us\n  slice: 1ms\n" TASK, 4, "'slice'", "'cwsr'");
}

TEST(every_key_of_a_task_has_its_place)
{
	struct gp_scenario s = accept("tasks:\n"
				      "  - name: inference\n"
				      "    class: lc\n"
				      "    priority: 15\n"
				      "    weight: 10000\n"
				      "    share: 12.5\n"
				      "    load: periodic\n"
				      "    every: 3ms\n"
				      "    phase: 24h\n"
				      "    kernel: 100us\n"
				      "    hint: 200us\n"
				      "    start: 1s\n"
				      "    stop: 5s\n"
				      "    slice: 1ms\n"
				      "  - {class: be, load: closed, kernel: 13.6ms, gap: 1us}\n"
				      "  - load: trace\n"
				      "    arrivals: [0s, 1ms, 1ms, 24h]\n"
				      "    kernel: 7us\n"
				      "    width: 12.5\n"
				      "    wave: 3us\n"
				      "    kernels: 40\n"
				      "    kernel_gap: 30us\n"
				      "    prepare: 200us\n"
				      "    request_marks: true\n");
	assert_int_equal(s.ntasks, 3);
	assert_int_equal(s.task[2].load, GP_LOAD_TRACE);
	assert_int_equal(s.task[2].arrivals, 4);
	assert_int_equal(s.task[2].arrival_ns[0], 0);
	assert_int_equal(s.task[2].arrival_ns[2], GP_NS_PER_MS);
	assert_int_equal(s.task[2].arrival_ns[3], 86400 * GP_NS_PER_S);
	assert_int_equal(s.task[2].width_permille, 125);
	assert_int_equal(s.task[2].wave_ns, 3000);
	assert_int_equal(s.task[2].kernels, 40);
	assert_int_equal(s.task[2].kernel_gap_ns, 30000);
	assert_int_equal(s.task[2].prepare_ns, 200000);
	assert_true(s.task[2].request_marks);
	assert_string_equal(s.task[0].name, "inference");
	assert_int_equal(s.task[0].load, GP_LOAD_PERIODIC);
	assert_int_equal(s.task[0].every_ns, 3 * GP_NS_PER_MS);
	assert_int_equal(s.task[0].phase_ns, 86400 * GP_NS_PER_S);
	assert_int_equal(s.task[0].kernel_ns, 100000);
	assert_int_equal(s.task[0].hint_ns, 200000);
	assert_int_equal(s.task[0].start_ns, GP_NS_PER_S);
	assert_int_equal(s.task[0].stop_ns, 5 * GP_NS_PER_S);
	assert_int_equal(s.task[0].slice_us, 1000);
	assert_int_equal(s.attr[0].class, GP_LATENCY_CRITICAL);
	assert_int_equal(s.attr[0].priority, 15);
	assert_int_equal(s.attr[0].weight, 10000);
	assert_int_equal(s.attr[0].share_permille, 125);
	assert_string_equal(s.task[1].name, "task2");
	assert_int_equal(s.task[1].load, GP_LOAD_CLOSED);
	assert_int_equal(s.task[1].kernel_ns, 13600000);
	assert_int_equal(s.task[1].gap_ns, 1000);
	assert_int_equal(s.attr[1].class, GP_BEST_EFFORT);
}

static uint64_t duration_of(const char *value)
{
	char text[128];

	snprintf(text, sizeof text, "duration: %s\n" TASK, value);
	return accept(text).duration_ns;
}

TEST(a_duration_is_exact_in_every_unit)
{
	assert_int_equal(duration_of("1000001ns"), 1000001);
	assert_int_equal(duration_of("1000.001us"), 1000001);
	assert_int_equal(duration_of("1.1ms"), 1100000);
	assert_int_equal(duration_of("0.3s"), 300000000);
	assert_int_equal(duration_of("1.000000001s"), 1000000001);
	assert_int_equal(duration_of("0.5m"), 30 * GP_NS_PER_S);
	assert_int_equal(duration_of("1.5h"), 5400 * GP_NS_PER_S);
	assert_int_equal(duration_of("001.500000000000000ms"), 1500000);
	assert_int_equal(duration_of("'10s'"), 10 * GP_NS_PER_S);
}

static uint64_t period_of(const char *rate)
{
	char text[128];

	snprintf(text, sizeof text, "tasks: [{load: poisson, kernel: 1us, rate: %s}]\n", rate);
	return accept(text).task[0].every_ns;
}

TEST(a_rate_is_a_period_rounded_to_the_next_nanosecond)
{
	assert_int_equal(period_of("100"), 10 * GP_NS_PER_MS);
	assert_int_equal(period_of("0.5"), 2 * GP_NS_PER_S);
	assert_int_equal(period_of("0.0001"), 10000 * GP_NS_PER_S);
	assert_int_equal(period_of("1000000"), 1000);
	assert_int_equal(period_of("3"), 333333333);
	assert_int_equal(period_of("1.5"), 666666667);
}

TEST(count_makes_numbered_copies)
{
	struct gp_scenario s =
		accept("tasks:\n"
		       "- {name: job, load: closed, kernel: 1ms, weight: 7, count: 3}\n"
		       "- {load: idle, count: 1}\n"
		       "- {load: idle, count: 2}\n");
	assert_int_equal(s.ntasks, 6);
	assert_string_equal(s.task[0].name, "job-1");
	assert_string_equal(s.task[2].name, "job-3");
	assert_string_equal(s.task[3].name, "task2");
	assert_string_equal(s.task[5].name, "task3-2");
	assert_int_equal(s.task[2].kernel_ns, GP_NS_PER_MS);
	assert_int_equal(s.attr[2].weight, 7);
}

TEST(a_hundred_thousand_tasks_are_the_most)
{
	struct gp_scenario s = accept("tasks:\n- {load: idle, count: 99999}\n- {load: idle}\n");
	assert_int_equal(s.ntasks, 100000);
	assert_string_equal(s.task[99998].name, "task1-99999");
	refuse("tasks:\n- {load: idle, count: 99999}\n- {load: idle, count: 2}\n", 3, "100000",
	       "tasks");
	refuse("tasks:\n- {load: idle, count: 100001}\n", 2, "'count'", "from 1 to 100000");
}

TEST(tasks_that_name_the_same_gang_are_one)
{
	struct gp_scenario s = accept("tasks:\n"
				      "- {load: idle, gang: mpi, count: 2}\n"
				      "- {load: idle}\n"
				      "- {load: idle, gang: nccl}\n"
				      "- {load: idle, gang: mpi}\n");
	const uint64_t gang[] = {1, 1, 0, 2, 1};
	assert_int_equal(s.ntasks, 5);
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(s.attr[i].gang, gang[i]);
}

TEST(a_long_text_may_be_folded)
{
	struct gp_scenario s = accept("about: >\n  one\n  sentence\n" TASK);
	assert_string_equal(s.about, "one sentence");
}

TEST(windows_line_ends_and_a_byte_order_mark_do_no_harm)
{
	struct gp_scenario s = accept("\xef\xbb\xbf# text\r\ntasks:\r\n  - load: idle\r\n");
	assert_int_equal(s.ntasks, 1);
}

/* Mistakes. */

TEST(an_unknown_key_is_told_with_the_nearest_known_one)
{
	refuse("durations: 1s\n" TASK, 1, "unknown key 'durations'", "'duration'");
	refuse("tasks:\n- load: idle\n  prioritty: 1\n", 3, "'prioritty' in a task",
	       "perhaps 'priority'");
	refuse("device:\n  lunch: 1us\n" TASK, 2, "'lunch' in the device", "'launch'");
	refuse(TASK "  kernle: 1ms\n", 3, "'kernle'", "'kernel'");
}

TEST(an_unknown_key_like_no_other_is_told_with_all_of_them)
{
	refuse("gpu: h200\n" TASK, 1, "unknown key 'gpu'",
	       "name, about, duration, seed, devices, device, tasks");
	refuse(TASK "  zz: 1\n", 3, "'zz'", "gpreempt-scenario(5)");
	refuse("'': 1\n" TASK, 1, "unknown key ''", "tasks");
}

TEST(a_key_may_stand_only_once)
{
	refuse("seed: 1\nname: a\nseed: 2\n" TASK, 3, "'seed'", "line 1");
	refuse(TASK "  load: idle\n", 3, "'load'", "line 2");
}

TEST(a_key_is_a_word)
{
	refuse("? [a, b]\n: 1\n" TASK, 1, "a key must be a word", "a list");
	refuse("{{a: b}: 1}\n", 1, "a key must be a word", "a set of keys");
}

TEST(a_value_of_the_wrong_type_is_told_with_the_right_one)
{
	refuse("duration: [1s]\n" TASK, 1, "'duration' must be a time", "not a list");
	refuse("name: {a: b}\n" TASK, 1, "'name' must be one line of text", "not a set of keys");
	refuse("device: h200\n" TASK, 1, "the device must be keys with values", "'h200'");
	refuse("device:\n" TASK, 1, "the device must be keys with values", "nothing");
	refuse("seed: one\n" TASK, 1, "'seed' must be a whole number", "'one'");
	refuse("seed: 1.5\n" TASK, 1, "'seed' must be a whole number", "'1.5'");
	refuse("seed:\n" TASK, 1, "'seed' must be a whole number", "nothing");
	refuse("tasks: 3\n", 1, "'tasks' must be a list", "'3'");
	refuse("tasks:\n  load: idle\n", 2, "'tasks' must be a list", "a set of keys");
	refuse("tasks:\n- idle\n", 2, "a task must be keys with values", "'idle'");
	refuse("tasks:\n- - load: idle\n", 2, "a task must be keys with values", "a list");
	refuse("- load: idle\n", 1, "a scenario must be keys with values", "a list");
	refuse("device: {slices: yes}\n" TASK, 1, "'slices' must be true or false", "'yes'");
}

TEST(a_time_needs_a_unit_that_there_is)
{
	refuse("tasks:\n- load: periodic\n  every: 3\n", 3, "'every' needs a unit, as in 3ms",
	       "us");
	refuse("duration: 0\n" TASK, 1, "'duration' needs a unit", "3ms");
	refuse("duration: 3.5\n" TASK, 1, "'duration' needs a unit", "3ms");
	refuse("duration: 3sec\n" TASK, 1, "'duration' must be a time", "'3sec'");
	refuse("duration: 3 s\n" TASK, 1, "'duration' must be a time", "'3 s'");
	refuse("duration: s\n" TASK, 1, "'duration' must be a time", "'s'");
	refuse("duration: 1.2.3s\n" TASK, 1, "'duration' must be a time", "'1.2.3s'");
	refuse("duration: 1.s\n" TASK, 1, "'duration' must be a time", "'1.s'");
	refuse("duration: .5s\n" TASK, 1, "'duration' must be a time", "'.5s'");
	refuse("duration: 1e3s\n" TASK, 1, "'duration' must be a time", "'1e3s'");
	refuse("duration: +1s\n" TASK, 1, "'duration' must be a time", "'+1s'");
}

TEST(a_value_out_of_range_is_told_with_the_range)
{
	refuse("duration: 999us\n" TASK, 1, "'duration'", "from 1ms to 24h");
	refuse("duration: 24.1h\n" TASK, 1, "'duration'", "from 1ms to 24h");
	refuse("duration: -1s\n" TASK, 1, "'duration'", "from 1ms to 24h");
	refuse("duration: 99999999999999999999999h\n" TASK, 1, "'duration'", "from 1ms to 24h");
	refuse("duration: 5124095577h\n" TASK, 1, "'duration'", "from 1ms to 24h");
	refuse("duration: 1.0000000001s\n" TASK, 1, "'duration'", "steps of 1ns");
	refuse("duration: 1.00000000000001s\n" TASK, 1, "'duration'", "steps of 1ns");
	refuse("duration: 1.000000000001m\n" TASK, 1, "'duration'", "steps of 1ns");
	refuse("seed: 18446744073709551616\n" TASK, 1, "'seed'", "18446744073709551615");
	refuse("seed: -1\n" TASK, 1, "'seed'", "'-1'");
	refuse("device: {slice: 0us}\n" TASK, 1, "'slice'", "from 1us to 10s");
	refuse("device: {slice: 1.5us}\n" TASK, 1, "'slice'", "whole us");
	refuse("device: {slice: 11s}\n" TASK, 1, "'slice'", "from 1us to 10s");
	refuse("device: {launch_hinted: 100.1}\n" TASK, 1, "'launch_hinted'", "0 to 100 percent");
	refuse("device: {launch_hinted: 60%}\n" TASK, 1, "'launch_hinted'", "'60%'");
	refuse("device: {activity_window: 0s}\n" TASK, 1, "'activity_window'", "from 1ms to 1m");
	refuse(TASK "  priority: 16\n", 3, "'priority'", "from 0 to 15");
	refuse(TASK "  weight: 0\n", 3, "'weight'", "from 1 to 10000");
	refuse(TASK "  share: 101\n", 3, "'share'", "0 to 100 percent");
	refuse(TASK "  rate: -1\n", 3, "'rate'", "from 0.0001 to 1000000 requests per second");
	refuse(TASK "  rate: 0\n", 3, "'rate'", "from 0.0001 to 1000000");
	refuse(TASK "  rate: 1000000.1\n", 3, "'rate'", "from 0.0001 to 1000000");
	refuse(TASK "  rate: 1e5\n", 3, "'rate'", "'1e5'");
	refuse(TASK "  count: 0\n", 3, "'count'", "from 1");
	refuse(TASK "  kernel: 0us\n", 3, "'kernel'", "from 1us");
	refuse(TASK "  every: 0us\n", 3, "'every'", "from 1us");
}

TEST(an_unknown_word_is_told_with_all_of_them)
{
	refuse("device: {model: mps}\n" TASK, 1, "'model' must be one of runlist, cwsr", "'mps'");
	refuse("device: {activity: some}\n" TASK, 1, "none, sampled, exact, events", "'some'");
	refuse(TASK "  class: LC\n", 3, "one of unmanaged, be, lc", "'LC'");
	refuse("tasks:\n- load: open\n", 2, "periodic, poisson, closed, idle", "'open'");
}

TEST(a_name_fits_its_place_and_one_line)
{
	refuse("name: a123456789b123456789c123456789d123456789e123456789f123456789g123\n" TASK, 1,
	       "'name'", "at most 63 bytes");
	refuse(TASK "  name: a123456789b123456789c123456789d1\n", 3, "'name'", "at most 31 bytes");
	refuse(TASK "  name: \"a\\nb\"\n", 3, "'name' must be one line", "'a?b'");
	refuse(TASK "  name: \"\\e[2J\\x85\"\n", 3, "'name' must be one line", "'?[2J?'");
	refuse(TASK "  name: ''\n", 3, "'name'", "nothing");
	refuse(TASK "  gang: \"\\t\"\n", 3, "'gang'", "'?'");
	refuse("about: |\n  two\n  lines\n" TASK, 1, "'about' must be one line", "'two?lines?'");
}

TEST(a_copys_name_must_fit_with_its_number)
{
	struct gp_scenario s =
		accept("tasks: [{name: a123456789b123456789c12345678, load: idle, count: 9}]\n");
	assert_string_equal(s.task[8].name, "a123456789b123456789c12345678-9");
	refuse("\ntasks: [{name: a123456789b123456789c12345678, load: idle, count: 10}]\n", 2,
	       "at most 31 bytes", "'-10'");
}

TEST(a_missing_key_is_told_with_the_line_of_the_task)
{
	refuse("tasks:\n- load: idle\n- name: a\n  weight: 1\n", 3, "needs 'load'",
	       "periodic, poisson, closed, idle, trace");
	refuse("tasks:\n- name: a\n  load: closed\n", 2, "needs 'kernel'", "'closed'");
	refuse("tasks:\n- name: a\n  load: poisson\n  kernel: 1ms\n", 2, "'every' or 'rate'",
	       "'poisson'");
	refuse("name: a\n", 1, "a scenario needs 'tasks'", "list");
	refuse("\n\ntasks: []\n", 3, "'tasks' is empty", "at least one task");
}

TEST(every_and_rate_exclude_each_other)
{
	refuse("tasks:\n- load: poisson\n  kernel: 1ms\n  every: 1ms\n  rate: 1000\n", 5,
	       "'every' and 'rate'", "remove one");
}

#define CLOSED   "tasks:\n- load: closed\n  kernel: 1ms\n"
#define PERIODIC "tasks:\n- load: periodic\n  kernel: 1ms\n  every: 3ms\n"
#define TRACE    "tasks:\n- load: trace\n  kernel: 1ms\n"

TEST(a_key_that_means_nothing_for_the_load_is_refused)
{
	refuse(CLOSED "  hint: 1us\n", 4, "'hint' does not apply to load 'closed'",
	       "periodic, poisson and trace");
	refuse(CLOSED "  prepare: 1us\n", 4, "'prepare' does not apply to load 'closed'", "trace");
	refuse(CLOSED "  arrivals: [1ms]\n", 4, "'arrivals' does not apply to load 'closed'",
	       "it applies to trace");
	refuse(TASK "  request_marks: true\n", 3, "'request_marks' does not apply to load 'idle'",
	       "closed");
	refuse(CLOSED "  every: 1ms\n", 4, "'every' does not apply to load 'closed'",
	       "periodic and poisson");
	refuse(CLOSED "  rate: 1\n", 4, "'rate' does not apply to load 'closed'",
	       "periodic and poisson");
	refuse(TASK "  kernel: 1ms\n", 3, "'kernel' does not apply to load 'idle'", "closed");
	refuse(PERIODIC "  gap: 0us\n", 5, "'gap' does not apply to load 'periodic'",
	       "it applies to closed");
	refuse("tasks:\n- load: poisson\n  kernel: 1ms\n  every: 3ms\n  phase: 1us\n", 5,
	       "'phase' does not apply to load 'poisson'", "it applies to periodic");
	refuse(PERIODIC "  phase: 0us\n", 5, "'phase'", "from 1us");
}

TEST(what_lies_between_kernels_needs_two_of_them)
{
	refuse(CLOSED "  kernel_gap: 1us\n", 4, "'kernel_gap'", "2 or more");
}

TEST(a_trace_needs_its_arrivals_once_and_in_order)
{
	refuse(TRACE, 2, "'arrivals' or 'trace'", "'trace'");
	refuse(TRACE "  arrivals: [1s]\n  trace: x\n", 5, "'arrivals' and 'trace'", "remove one");
	refuse(TRACE "  arrivals:\n  - 2ms\n  - 1ms\n", 6, "must be in order", "");
	refuse(TRACE "  arrivals: [1]\n", 4, "needs a unit", "");
	refuse(TRACE "  arrivals: 1ms\n", 4, "must be a list", "");
	refuse(TRACE "  trace: ../x\n", 4, "'trace'", "without a path");
}

TEST(a_task_stops_after_it_starts)
{
	refuse(TASK "  start: 2s\n  stop: 2s\n", 4, "'stop' must be later than 'start'", "");
	refuse(TASK "  stop: 0s\n", 3, "'stop' must be later than 'start'", "");
}

TEST(an_empty_file_is_told_to_be_empty)
{
	refuse("", 1, "the file is empty", "'tasks'");
	refuse("# nothing\n\n", 1, "the file is empty", "'tasks'");
	refuse_bytes(NULL, 0, 1, "the file is empty", "'tasks'");
	refuse("---\n", 2, "a scenario must be keys", "nothing");
}

TEST(one_file_is_one_document)
{
	accept("---\n" TASK "...\n");
	refuse(TASK "---\nname: b\n", 3, "a second document begins here", "one scenario");
}

TEST(what_is_not_yaml_is_told_in_libyamls_words)
{
	refuse("name: a\ntasks: [\n", 3, "this is not YAML", "did not find expected node content");
	refuse("name: 'a\n", 2, "this is not YAML", "unexpected end of stream");
	refuse("name: a\n name: b\n", 2, "this is not YAML", "mapping values are not allowed");
	refuse("name: \xff\n", 1, "this is not YAML", "invalid leading UTF-8 octet");
	refuse("seed: 1\nname: a\x01\n", 2, "this is not YAML", "control characters");
}

TEST(a_tab_that_indents_is_told_to_be_one)
{
	refuse("device:\n\tslice: 1us\n" TASK, 2, "a tab indents this line", "spaces");
	refuse("tasks:\n  \t- load: idle\n", 2, "a tab indents this line", "spaces");
}

TEST(anchors_aliases_tags_and_directives_are_refused)
{
	refuse("tasks:\n- &a {load: idle}\n- *a\n", 2, "anchors and aliases",
	       "write the value out");
	refuse("tasks:\n- load: *a\n", 2, "anchors and aliases", "write the value out");
	refuse("name: &n x\n" TASK, 1, "anchors and aliases", "");
	refuse("name: !!str x\n" TASK, 1, "tags (!)", "");
	refuse("tasks: !x\n- load: idle\n", 1, "tags (!)", "");
	refuse("tasks:\n- !x\n  load: idle\n", 2, "tags (!)", "");
	refuse("# a\n%YAML 1.1\n---\n" TASK, 2, "directives (%)", "");
}

TEST(a_nul_is_refused_as_a_byte_and_as_an_escape)
{
	const char text[] = "name: a\n\0\n" TASK;
	refuse_bytes(text, sizeof text - 1, 2, "NUL byte", "UTF-8");
	refuse("name: \"a\\0b\"\n" TASK, 1, "NUL character", "");
	refuse("\"tasks\\0\":\n- load: idle\n", 1, "NUL character", "");
}

TEST(a_file_of_more_than_a_mebibyte_is_refused_and_one_of_just_that_is_read)
{
	char *text = malloc(MIB + 1);
	struct gp_scenario s;

	assert_non_null(text);
	memset(text, '#', MIB + 1);
	memcpy(text, TASK, sizeof TASK - 1);
	refuse_bytes(text, MIB + 1, 1, "larger than 1 MiB", "");
	assert_int_equal(gp_scenario_parse(&s, "large.yaml", text, MIB, NULL), 0);
	gp_scenario_free(&s);
	free(text);
}

TEST(a_long_path_leaves_room_for_the_sentence)
{
	struct gp_error err = {0};
	struct gp_scenario s;
	char path[300];

	memset(path, 'd', sizeof path);
	memcpy(path + sizeof path - sizeof "/bad.yaml", "/bad.yaml", sizeof "/bad.yaml");
	assert_int_equal(gp_scenario_parse(&s, path, "a: 1\n", 5, &err), -EINVAL);
	assert_non_null(strstr(err.text, "/bad.yaml:1: unknown key 'a'"));
}

TEST(deep_nesting_ends_at_the_first_level_that_is_too_deep)
{
	const size_t n = 100000;
	const char start[] = "tasks: ";
	char *text = malloc(n);

	assert_non_null(text);
	memset(text, '[', n);
	memcpy(text, start, sizeof start - 1);
	refuse_bytes(text, n, 1, "a task must be keys with values", "a list");
	free(text);
}

/* Files. */

TEST(a_file_that_cannot_be_read_gives_the_systems_code_and_a_sentence)
{
	struct gp_error err = {0};
	struct gp_scenario s;
	assert_int_equal(gp_scenario_load(&s, "/nowhere/x.yaml", &err), -ENOENT);
	assert_string_equal(err.text, "cannot read /nowhere/x.yaml: No such file or directory");
	err = (struct gp_error){0};
	assert_int_equal(gp_scenario_load(&s, "/", &err), -EISDIR);
	assert_string_equal(err.text, "cannot read /: Is a directory");
}

TEST(a_file_is_read_as_its_text)
{
	char path[] = "/tmp/gpreempt-test-XXXXXX.yaml";
	int fd = mkstemps(path, 5);
	struct gp_error err = {0};
	struct gp_scenario s;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, TASK, strlen(TASK)), strlen(TASK));
	assert_int_equal(gp_scenario_load(&s, path, &err), 0);
	assert_int_equal(s.ntasks, 1);
	assert_memory_equal(s.name, "gpreempt-test-", 14);
	assert_null(strstr(s.name, ".yaml"));
	gp_scenario_free(&s);

	assert_int_equal(ftruncate(fd, (off_t)MIB + 1), 0);
	assert_int_equal(gp_scenario_load(&s, path, &err), -EINVAL);
	assert_non_null(strstr(err.text, "larger than 1 MiB"));
	close(fd);
	unlink(path);
}

static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

#define TRACED TRACE "  trace: times\n  count: 2\n"

TEST(a_trace_is_read_from_beside_the_scenario)
{
	char folder[] = "/tmp/gpreempt-test-XXXXXX", scenario[64], times[64];
	struct gp_error err = {0};
	struct gp_scenario s;

	assert_non_null(mkdtemp(folder));
	snprintf(scenario, sizeof scenario, "%s/s.yaml", folder);
	snprintf(times, sizeof times, "%s/times", folder);
	write_file(scenario, TRACED);
	write_file(times, "# a comment\n1ms\n\n  2.5ms # another\r\n2.5ms");
	assert_int_equal(gp_scenario_load(&s, scenario, &err), 0);
	assert_int_equal(s.ntasks, 2);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(s.task[i].arrivals, 3);
		assert_int_equal(s.task[i].arrival_ns[0], GP_NS_PER_MS);
		assert_int_equal(s.task[i].arrival_ns[2], 2500 * GP_NS_PER_US);
	}
	gp_scenario_free(&s);
	unlink(times);
	unlink(scenario);
	rmdir(folder);
}

/* Each is one message that names the trace and the line in it. */
TEST(what_is_wrong_in_a_trace_is_told_with_its_line)
{
	static const char *const wrong[][2] = {
		{"1ms\n\n0.5ms\n", "/times:3: the times must be in order"},
		{"1ms\n7\n", "/times:2: the time needs a unit"},
		{"1ms\nsoon\n", "/times:2: a line must be a time"},
		{"25h\n", "/times:1: a line must be a time of at most 24h"},
		{"# nothing\n", "/times: the file has no arrival time"},
		{NULL, "/times: No such file"},
	};
	char folder[] = "/tmp/gpreempt-test-XXXXXX", scenario[64], times[64];

	assert_non_null(mkdtemp(folder));
	snprintf(scenario, sizeof scenario, "%s/s.yaml", folder);
	snprintf(times, sizeof times, "%s/times", folder);
	for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		struct gp_error err = {0};
		struct gp_scenario s;

		write_file(scenario, TRACED);
		if (wrong[i][0])
			write_file(times, wrong[i][0]);
		assert_true(gp_scenario_load(&s, scenario, &err) < 0);
		if (!strstr(err.text, wrong[i][1]))
			fail_msg("%s (wanted: %s)", err.text, wrong[i][1]);
		unlink(times);
	}
	unlink(scenario);
	rmdir(folder);
}

TEST(every_scenario_that_is_shipped_loads)
{
	const char *source = getenv("SRC");
	char pattern[4096];
	glob_t found;

	if (!source)
		skip();
	snprintf(pattern, sizeof pattern, "%s/scenarios/*.yaml", source);
	assert_int_equal(glob(pattern, 0, NULL, &found), 0);
	assert_true(found.gl_pathc >= 13);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		struct gp_error err = {0};
		struct gp_scenario s;

		if (gp_scenario_load(&s, found.gl_pathv[i], &err))
			fail_msg("%s", err.text);
		assert_true(s.about[0] != '\0');
		gp_scenario_free(&s);
	}
	globfree(&found);
}
