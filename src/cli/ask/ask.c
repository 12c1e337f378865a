/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/ask/ask.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process.h"
#include "cli/cli.h"
#include "cli/lib/stop.h"
#include "task/json/task_json.h"

struct gp_client *gp_ask_if_there(void)
{
	struct gp_client *client = NULL;
	struct gp_error err = {0};
	int r = gp_client_connect_within(NULL, GP_ASK_SHORT_MS, &client, &err);

	if (!r)
		gp_client_set_timeout(client, GP_CLIENT_TIMEOUT_MS);
	if (r && r != -ECONNREFUSED)
		fprintf(stderr, "gpreempt: %s; going on without the daemon\n", err.text);
	return r ? NULL : client;
}

int gp_ask_about(struct gp_client *client, const char *method, pid_t pid,
		 struct json_object *params, struct json_object **result, struct gp_error *err)
{
	struct json_object *target = json_object_new_object();
	uint64_t start_time;
	int r = gp_process_read_start_time(pid, &start_time);

	params = params ? params : json_object_new_object();
	json_object_object_add(params, "target", target);
	if (r) {
		json_object_put(params);
		return r == -ETIMEDOUT ? gp_process_silent(err, pid, -EAGAIN)
				       : gp_fail(err, -ESRCH, "there is no process %d", pid);
	}
	if (pid == getpid()) { /* works from every pid namespace */
		json_object_object_add(target, "self", json_object_new_boolean(true));
	} else {
		gp_field_put(target, "pid", (uint64_t)pid);
		gp_field_put(target, "start_time", start_time);
	}
	return gp_client_call(client, method, params, result, err);
}

int gp_ask_devices(struct gp_client *client, struct json_object **devices, struct gp_error *err)
{
	struct json_object *answer;
	int r = gp_client_call(client, "devices", NULL, &answer, err);

	if (r)
		return r;
	*devices = json_object_get(gp_field(answer, "devices"));
	json_object_put(answer);
	if (!json_object_is_type(*devices, json_type_array)) {
		json_object_put(*devices);
		return gp_fail(
			err, -EPROTO,
			"the daemon's answer has no devices; restart gpreemptd if it is older than "
			"this program");
	}
	return 0;
}

static int add_tasks(struct gp_client *client, uint64_t device, struct json_object *tasks,
		     struct gp_error *err)
{
	struct json_object *params = json_object_new_object(), *answer;
	int r;

	gp_field_put(params, "device", device);
	r = gp_client_call(client, "tasks", params, &answer, err);
	if (r)
		return r;
	for (size_t i = 0; i < gp_field_count(answer, "tasks"); i++)
		json_object_array_add(tasks, json_object_get(json_object_array_get_idx(
						     gp_field(answer, "tasks"), i)));
	json_object_put(answer);
	return 0;
}

int gp_ask_tasks(struct gp_client *client, struct json_object *devices, struct json_object **tasks,
		 struct gp_error *err)
{
	int r = 0;

	*tasks = json_object_new_array();
	for (size_t i = 0; i < json_object_array_length(devices) && !r; i++) {
		struct json_object *device = json_object_array_get_idx(devices, i);

		r = add_tasks(client, gp_field_number_or(device, "device", i), *tasks, err);
	}
	if (r)
		json_object_put(*tasks);
	return r;
}

/* Attributes as parameters of a call, and as text. */
void gp_ask_put_attrs(struct json_object *params, const struct gp_given_attrs *given)
{
	const struct gp_task_attr *a = &given->attr;

	if (given->given & GP_GIVEN_CLASS)
		json_object_object_add(params, "class",
				       json_object_new_string(gp_class_name(a->class)));
	if (given->given & GP_GIVEN_PRIORITY)
		gp_field_put(params, "priority", a->priority);
	if (given->given & GP_GIVEN_WEIGHT)
		gp_field_put(params, "weight", a->weight);
	if (given->given & GP_GIVEN_SHARE)
		gp_field_put(params, "share_permille", a->share_permille);
	if (given->given & GP_GIVEN_CEILING)
		gp_field_put(params, "ceiling_permille", a->ceiling_permille);
	if (given->given & GP_GIVEN_DEADLINE)
		gp_field_put(params, "deadline_ns", a->deadline_ns);
	if (given->given & GP_GIVEN_BUDGET)
		gp_field_put(params, "budget_ns", a->budget_ns);
	if (given->given & GP_GIVEN_GANG)
		json_object_object_add(params, "gang", json_object_new_string(given->gang));
}

struct sentence {
	char *out;
	size_t size, used;
};

/* Appends text, after `between` if there is text already. */
__attribute__((format(printf, 3, 4))) static void append(struct sentence *s, const char *between,
							 const char *format, ...)
{
	va_list args;

	if (s->used)
		s->used += (size_t)snprintf(s->out + s->used, s->size - s->used, "%s", between);
	if (s->used >= s->size)
		s->used = s->size - 1;
	va_start(args, format);
	s->used += (size_t)vsnprintf(s->out + s->used, s->size - s->used, format, args);
	va_end(args);
	if (s->used >= s->size)
		s->used = s->size - 1;
}

static void add_permille(struct sentence *s, struct json_object *attr, const char *key,
			 const char *name)
{
	uint64_t value = gp_field_number_or(attr, key, 0);

	if (value)
		append(s, ", ", "%s %g %%", name, (double)value / 10);
}

static void add_time(struct sentence *s, struct json_object *attr, const char *key,
		     const char *name)
{
	uint64_t ns = gp_field_number_or(attr, key, 0);

	if (ns)
		append(s, ", ", "%s %s", name, gp_cli_duration(ns).text);
}

const char *gp_ask_attr_text(struct json_object *attr, char *out, size_t size)
{
	struct sentence s = {.out = out, .size = size};
	const char *class = gp_field_text(attr, "class"), *gang = gp_field_text(attr, "gang");
	uint64_t value;

	*out = 0;
	if (class)
		append(&s, ", ", "class %s", class);
	if (gp_field_number(attr, "priority", &value))
		append(&s, ", ", "priority %llu", (unsigned long long)value);
	if (gp_field_number(attr, "weight", &value))
		append(&s, ", ", "weight %llu", (unsigned long long)value);
	add_permille(&s, attr, "share_permille", "share");
	add_permille(&s, attr, "ceiling_permille", "ceiling");
	add_time(&s, attr, "deadline_ns", "deadline");
	add_time(&s, attr, "budget_ns", "budget");
	if (gang && *gang)
		append(&s, ", ", "gang %s", gang);
	return out;
}

/* The attributes by GP_GIVEN_*: name in the daemon's list, key of the answer, and default. */
static const struct {
	const char *name, *key;
	uint64_t usual;
} attributes[] = {
	{"class", "class", 0},
	{"priority", "priority", 0},
	{"weight", "weight", 100},
	{"share", "share_permille", 0},
	{"ceiling", "ceiling_permille", 0},
	{"deadline", "deadline_ns", 0},
	{"budget", "budget_ns", 0},
	{"gang", "gang", 0},
};
#define ATTRIBUTES (sizeof attributes / sizeof *attributes)

static bool has_word(struct json_object *list, const char *word)
{
	for (size_t i = 0; list && i < json_object_array_length(list); i++)
		if (!strcmp(json_object_get_string(json_object_array_get_idx(list, i)), word))
			return true;
	return false;
}

/*
 * The attributes (GP_GIVEN_*) that the effect is told of: those that were given, and those that
 * differ from the default. Class be has an effect under every policy: the process is managed.
 */
static unsigned chosen_attributes(struct json_object *attr, unsigned given)
{
	const char *class = gp_field_text(attr, "class");
	unsigned chosen = 0;

	if (class && !strcmp(class, gp_class_name(GP_LATENCY_CRITICAL)))
		chosen |= GP_GIVEN_CLASS;
	for (unsigned i = 1; i < ATTRIBUTES; i++) {
		struct json_object *value = gp_field(attr, attributes[i].key);

		if (value &&
		    (given & 1u << i || json_object_get_uint64(value) != attributes[i].usual))
			chosen |= 1u << i;
	}
	return chosen;
}

/* Which attributes of `chosen` have no effect on a device. */
static unsigned without_effect(struct json_object *device, unsigned chosen)
{
	struct json_object *in_force = gp_field(device, "in_force");
	unsigned unused = 0;

	for (unsigned i = 0; i < ATTRIBUTES && in_force; i++)
		if (chosen & 1u << i && !has_word(in_force, attributes[i].name))
			unused |= 1u << i;
	return unused;
}

/* One clause for each policy that does not use all of `chosen`. */
static void append_unused(struct sentence *s, struct json_object *answer, unsigned chosen)
{
	const char *class = gp_field_text(gp_field(answer, "attr"), "class"), *told = "";

	for (size_t i = 0; i < gp_field_count(answer, "devices"); i++) {
		struct json_object *device =
			json_object_array_get_idx(gp_field(answer, "devices"), i);
		const char *policy = gp_field_text(device, "policy"), *between = " ";
		unsigned unused = without_effect(device, chosen);

		if (!unused || !policy || !strcmp(policy, told))
			continue;
		if (class && !strcmp(class, gp_class_name(GP_UNMANAGED))) {
			append(s, "; ", "an unmanaged process is left alone");
			return;
		}
		told = policy;
		append(s, "; ", "policy %s does not use", policy);
		for (unsigned k = 0; k < ATTRIBUTES; k++)
			if (unused & 1u << k) {
				append(s, between, k ? "%s" : "%s lc", attributes[k].name);
				between = ", ";
			}
	}
}

const char *gp_ask_unused_text(struct json_object *answer, const struct gp_given_attrs *given,
			       char *out, size_t size)
{
	struct sentence s = {.out = out, .size = size};
	unsigned chosen = chosen_attributes(gp_field(answer, "attr"), given->given);

	*out = 0;
	append_unused(&s, answer, chosen & given->given);
	return out;
}

/* One clause for each device on which actions for the process fail. */
static void append_failing(struct sentence *s, struct json_object *answer)
{
	for (size_t i = 0; i < gp_field_count(answer, "devices"); i++) {
		struct json_object *device =
			json_object_array_get_idx(gp_field(answer, "devices"), i);
		const char *reason = gp_field_text(device, "not_in_force");

		if (reason)
			append(s, "; ", "%snot in force on device %llu: %s",
			       s->used ? "" : "accepted, ",
			       (unsigned long long)gp_field_number_or(device, "device", 0), reason);
	}
}

const char *gp_ask_effect_text(struct json_object *answer, const struct gp_given_attrs *given,
			       char *out, size_t size)
{
	struct sentence s = {.out = out, .size = size};
	struct json_object *devices = gp_field(answer, "devices");
	uint64_t tasks = gp_field_number_or(answer, "tasks", 0);
	unsigned chosen = chosen_attributes(gp_field(answer, "attr"), given->given);
	unsigned asked = chosen & given->given;
	size_t n = gp_field_count(answer, "devices"), idle = 0;

	for (size_t i = 0; i < n && asked && !(given->given & GP_GIVEN_CLASS); i++)
		idle += without_effect(json_object_array_get_idx(devices, i), asked) == asked;
	*out = 0;
	append_failing(&s, answer);
	if (s.used)
		; /* the reason was given */
	else if (n && idle == n)
		append(&s, "", "kept without effect");
	else if (tasks)
		append(&s, "", "in force on %llu device%s", (unsigned long long)tasks,
		       tasks == 1 ? "" : "s");
	else
		append(&s, "", "not seen on a GPU yet; takes effect as soon as it is");
	append_unused(&s, answer, chosen);
	return out;
}

/* The tasks of the daemon, with the share of the GPU that they had, for gpreempt ps and stats. */
static uint64_t number(struct json_object *object, const char *key)
{
	return gp_field_number_or(object, key, 0);
}

static int compare(const void *a, const void *b)
{
	static const char *const keys[] = {"device", "pid", "task"};
	struct json_object *p = *(struct json_object *const *)a;
	struct json_object *q = *(struct json_object *const *)b;

	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		if (number(p, keys[i]) != number(q, keys[i]))
			return number(p, keys[i]) < number(q, keys[i]) ? -1 : 1;
	return 0;
}

static struct json_object *device_of(struct json_object *devices, struct json_object *task)
{
	for (size_t i = 0; i < json_object_array_length(devices); i++) {
		struct json_object *d = json_object_array_get_idx(devices, i);

		if (number(d, "device") == number(task, "device"))
			return d;
	}
	return NULL;
}

/* The change since `before`; NULL: the task has come since. */
static void put_change(struct json_object *task, struct json_object *before, uint64_t over_ns)
{
	uint64_t now_ns, then_ns, snapshot_ns;

	/* The daemon's snapshots are up to 0.1 s older than its answers, and have a time stamp: the
	 * interval is the difference of two time stamps. */
	if (gp_field_number(task, "mono_ns", &now_ns) &&
	    gp_field_number(before, "mono_ns", &snapshot_ns) && now_ns > snapshot_ns)
		over_ns = now_ns - snapshot_ns;
	json_object_object_del(task, "ran_ns"); /* of the last second */
	json_object_object_del(task, "gpu_pct");
	gp_field_put(task, "over_ns", over_ns);
	gp_field_put(task, "preempted",
		     number(task, "preemptions") - number(before, "preemptions"));
	if (!gp_field_number(task, "run_ns", &now_ns))
		return;
	then_ns = number(before, "run_ns");
	if (now_ns < then_ns)
		return;
	gp_field_put(task, "ran_ns", now_ns - then_ns);
	gp_share_to_json(task, now_ns - then_ns, over_ns);
}

static void put_shares(struct json_object *devices, struct json_object *tasks,
		       struct json_object *before, uint64_t over_ns)
{
	for (size_t i = 0; i < json_object_array_length(tasks); i++) {
		struct json_object *t = json_object_array_get_idx(tasks, i);
		struct json_object *device = device_of(devices, t);
		struct json_object *name = gp_field(device, "name");

		json_object_object_add(t, "device_name", json_object_get(name));
		if (before)
			put_change(t, json_object_array_bsearch(t, before, compare), over_ns);
	}
}

/*
 * Asks for the tasks, ordered by device and process, and adds `device_name` to each. Where run
 * times are known it adds `gpu_pct`: the share of `for_ns`, during which this function waits (or
 * until a signal, see stop.h). With `for_ns` 0 it is the share of the time since the daemon knows
 * the task. With `for_ns` it also adds `over_ns`, the length of the interval, and the changes in
 * it: `ran_ns` and `preempted`. The caller puts the array.
 */
static int ask_run_times(struct gp_client *client, struct json_object *devices, uint64_t for_ns,
			 struct json_object **tasks, struct gp_error *err)
{
	struct json_object *before = NULL;
	uint64_t begin_ns = gp_monotonic_ns();
	int r = for_ns ? gp_ask_tasks(client, devices, &before, err) : 0;

	if (r)
		return r;
	if (before) {
		json_object_array_sort(before, compare);
		gp_stop_sleep(gp_time_add(begin_ns, for_ns));
	}
	r = gp_ask_tasks(client, devices, tasks, err);
	if (!r) {
		put_shares(devices, *tasks, before, gp_monotonic_ns() - begin_ns);
		json_object_array_sort(*tasks, compare);
	}
	json_object_put(before);
	return r;
}

static int ask_all(struct gp_client *client, uint64_t for_ns, bool counters,
		   struct json_object **answer, struct gp_error *err)
{
	struct json_object *devices = NULL, *tasks = NULL;
	int r = gp_ask_devices(client, &devices, err);

	if (r)
		return r;
	r = ask_run_times(client, devices, for_ns, &tasks, err);
	if (!r && counters) {
		r = gp_client_call(client, "stats", NULL, answer, err);
	} else if (!r) {
		*answer = json_object_new_object();
		json_object_object_add(*answer, "devices", json_object_get(devices));
	}
	if (!r)
		json_object_object_add(*answer, "tasks", json_object_get(tasks));
	json_object_put(tasks);
	json_object_put(devices);
	return r;
}

bool gp_daemon_tasks(uint64_t for_ns, bool counters, struct json_object **answer, int *exit)
{
	struct gp_client *client = gp_ask_if_there();
	struct gp_error err = {0};

	*answer = NULL;
	if (!client)
		return false;
	*exit = ask_all(client, for_ns, counters, answer, &err) ? gp_cli_fail(&err) : GP_EXIT_DONE;
	gp_client_close(client);
	return true;
}
