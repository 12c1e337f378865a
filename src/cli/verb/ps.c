/* SPDX-License-Identifier: Apache-2.0 */
/* gpreempt ps: lists the processes that have queues on the GPUs, and their share of them. */
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process.h"
#include "cli/ask/ask.h"
#include "cli/cli.h"
#include "cli/lib/local_tasks.h"
#include "cli/lib/grid.h"
#include "task/json/task_json.h"

static struct {
	bool json;
	bool no_daemon;
	bool has_time;
	uint64_t for_ns;
} env = {.for_ns = 500 * GP_NS_PER_MS};

static const struct gp_option options[] = {
	{"for", 'f', "TIME", "Observe for this time to measure shares (500ms)",
	 .time_ns = &env.for_ns, .given = &env.has_time},
	{"no-daemon", 0, NULL, "Ask the GPUs directly, also if a daemon runs",
	 .flag = &env.no_daemon},
	{"json", 'j', NULL, "Write JSON", .flag = &env.json},
	{0},
};

static void print_devices(struct json_object *devices)
{
	putchar('\n');
	for (size_t i = 0; i < json_object_array_length(devices); i++) {
		gp_show_device(json_object_array_get_idx(devices, i));
		putchar('\n');
		gp_show_ejection(json_object_array_get_idx(devices, i));
	}
}

static void print_servers(struct json_object *tasks)
{
	for (size_t i = 0; i < json_object_array_length(tasks); i++) {
		struct json_object *t = json_object_array_get_idx(tasks, i);

		if (gp_field_true(t, "shared"))
			printf("process %llu works for many programs; a hold would stop them all, "
			       "so it "
			       "is left alone\n",
			       (unsigned long long)gp_field_number_or(t, "pid", 0));
	}
}

/* Whether a policy, a user or an unknown process holds the task. */
static bool is_held(struct json_object *task)
{
	const char *state = gp_field_text(task, "state");

	return state && (!strcmp(state, gp_task_state_name(GP_TASK_HELD)) ||
			 !strcmp(state, gp_task_state_name(GP_TASK_SUSPENDED)));
}

/* Held tasks with little evidence. A task that takes turns may have been released a moment ago. */
static void print_unproven(struct json_object *tasks)
{
	for (size_t i = 0; i < json_object_array_length(tasks); i++) {
		struct json_object *t = json_object_array_get_idx(tasks, i);
		enum gp_evidence evidence = gp_field_evidence(t);
		const char *name = gp_field_text(t, "name");

		if (evidence == GP_EVIDENCE_ENOUGH || !is_held(t))
			continue;
		printf("process %llu (%s): %s\n",
		       (unsigned long long)gp_field_number_or(t, "pid", 0), name ? name : "?",
		       evidence == GP_EVIDENCE_DRIVER
			       ? "only the driver confirms its last hold or release; its work was "
				 "not seen to stand still or to go on"
			       : "its last hold or release is not confirmed; the driver accepted "
				 "it, and does not tell the state of queues");
	}
}

/* Some drivers show the processes of all users to every user. */
static bool shows_others(struct json_object *tasks)
{
	uint64_t uid;

	for (size_t i = 0; i < json_object_array_length(tasks); i++)
		if (gp_field_number(json_object_array_get_idx(tasks, i), "uid", &uid) &&
		    uid != geteuid())
			return true;
	return gp_have_ptrace();
}

static void print_all(struct json_object *tasks, struct json_object *devices, bool from_daemon)
{
	gp_task_table_print(tasks, gp_ps_columns);
	if (from_daemon || json_object_array_length(tasks))
		print_devices(devices);
	print_servers(tasks);
	print_unproven(tasks);
	if (!from_daemon && !shows_others(tasks))
		puts("processes of other users are not shown; root sees them");
}

/* Without --for it waits longer for shares that are not known by then. */
static int run(struct gp_error *err)
{
	struct json_object *answer = NULL;
	int r = GP_EXIT_DONE;
	bool from_daemon = !env.no_daemon &&
			   gp_daemon_tasks(env.has_time ? env.for_ns : 0, false, &answer, &r);

	if (!from_daemon)
		r = gp_local_tasks(env.for_ns, !env.has_time, &answer, err);
	if (answer && env.json)
		gp_print_json(gp_field(answer, "tasks"));
	else if (answer)
		print_all(gp_field(answer, "tasks"), gp_field(answer, "devices"), from_daemon);
	json_object_put(answer);
	return r;
}

const struct gp_verb gp_verb_ps = {
	.name = "ps",
	.summary = "processes with queues on the GPUs, and what they use of them",
	.options = options,
	.doc = "List the processes that have queues on the GPUs: class, slice, state, share of the "
	       "GPU, memory. If a daemon runs, the list is the daemon's.\v"
	       "A value that is not known is a dash, and absent from JSON. A share with <= is an "
	       "upper limit: the slices that the task was granted.\n\n"
	       "Examples:\n"
	       "  gpreempt ps\n"
	       "  gpreempt ps --for 2s --json\n",
	.run = run,
};
