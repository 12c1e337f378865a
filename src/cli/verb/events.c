/* SPDX-License-Identifier: Apache-2.0 */
/* gpreempt events: prints the events of the daemon as they happen. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/cli.h"
#include "cli/ask/ask.h"
#include "cli/lib/stop.h"

static const char *const kinds[] = {
	"task_in",       "task_out", "held",    "released", "policy",  "ejected",
	"action_failed", "undone",   "refused", "admitted", "evicted", "restored",
	"limit",         "attr",     "config",  "keeper",
};
#define KINDS (sizeof kinds / sizeof *kinds)

static struct {
	bool json;
	uint64_t for_ns;
	struct json_object *kinds; /* NULL = all */
} env = {.for_ns = GP_NEVER};

static void add_kind(struct argp_state *state, const char *word, size_t length)
{
	char list[256] = "";

	for (size_t i = 0; i < KINDS; i++) {
		if (strlen(kinds[i]) == length && !strncmp(kinds[i], word, length)) {
			env.kinds = env.kinds ? env.kinds : json_object_new_array();
			json_object_array_add(env.kinds, json_object_new_string(kinds[i]));
			return;
		}
		snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", i ? ", " : "",
			 kinds[i]);
	}
	argp_error(state, "there is no kind of event '%.*s'; the kinds are %s", (int)length, word,
		   list);
}

static void add_kinds(struct argp_state *state, char *list)
{
	for (const char *word = list; word; word = strchr(word, ',')) {
		word += word != list;
		add_kind(state, word, strcspn(word, ","));
	}
}

static const struct gp_option options[] = {
	{"kind", 'k', "KIND[,KIND...]", "Only these kinds, such as task_in, held, released",
	 .call = add_kinds},
	{"for", 'f', "TIME", "End after this time, such as 500ms, 10s or 2m (default: at Ctrl-C)",
	 .time_ns = &env.for_ns},
	{"json", 'j', NULL, "Write JSON: one object per line for each event", .flag = &env.json},
	{0},
};

static void print_time(struct json_object *event)
{
	uint64_t ns;
	time_t seconds;
	struct tm tm;
	char text[16];

	if (!gp_field_number(event, "at_ns", &ns))
		return;
	seconds = (time_t)(ns / GP_NS_PER_S);
	localtime_r(&seconds, &tm);
	strftime(text, sizeof text, "%H:%M:%S", &tm);
	printf("%s.%06llu  ", text, (unsigned long long)(ns % GP_NS_PER_S / 1000));
}

/* `words` is NULL if the list is empty. */
static void print_words(const char *key, const char *words)
{
	if (words)
		printf("  %s %s", key, words);
}

/* The other fields, in the daemon's order. A newer daemon may have fields that are unknown here. */
static void print_rest(struct json_object *event)
{
	static const char *const known[] = {"event", "at_ns", "mono_ns", "device",
					    "task",  "pid",   "name"};

	json_object_object_foreach(event, key, value)
	{
		bool given = false;
		char words[128];

		for (size_t i = 0; i < sizeof known / sizeof *known; i++)
			given |= !strcmp(known[i], key);
		if (given || !value)
			continue;
		if (!strcmp(key, "text"))
			printf("  %s", json_object_get_string(value));
		else if (json_object_is_type(value, json_type_array))
			print_words(key, gp_field_words(event, key, words, sizeof words));
		else if (json_object_is_type(value, json_type_boolean))
			printf("%s%s", json_object_get_boolean(value) ? "  " : "  not ", key);
		else
			printf("  %s %s", key, json_object_get_string(value));
	}
	putchar('\n');
}

static void print_event(struct json_object *event)
{
	const char *name = gp_field_text(event, "name"), *kind = gp_field_text(event, "event");
	uint64_t value;

	print_time(event);
	printf("%-13s", kind ? kind : "?");
	if (gp_field_number(event, "device", &value))
		printf("  device %llu", (unsigned long long)value);
	if (gp_field_number(event, "pid", &value))
		printf("  %llu (%s)", (unsigned long long)value, name ? name : "?");
	print_rest(event);
	fflush(stdout);
}

/* A notification: an event, or the number of events lost because this program was slow. */
static void show(struct json_object *notification)
{
	const char *method = gp_field_text(notification, "method");
	struct json_object *params = gp_field(notification, "params");

	if (!method || !params)
		return;
	if (!strcmp(method, "lost") && env.json)
		json_object_object_add(params, "event", json_object_new_string("lost"));
	if (env.json)
		gp_print_json(params);
	else if (!strcmp(method, "lost"))
		printf("(%llu events were lost: they came faster than they were read)\n",
		       (unsigned long long)gp_field_number_or(params, "count", 0));
	else
		print_event(params);
}

static int subscribe(struct gp_client *client, struct gp_error *err)
{
	struct json_object *params = json_object_new_object();

	if (env.kinds)
		json_object_object_add(params, "events", env.kinds);
	return gp_client_call(client, "subscribe", params, NULL, err);
}

/* Prints all pending events. 0, or -errno: the daemon has ended. */
static int drain(struct gp_client *client, struct gp_error *err)
{
	struct json_object *event;
	int r;

	while (!(r = gp_client_next(client, 0, &event, err)) && !ferror(stdout)) {
		show(event);
		json_object_put(event);
		if (gp_stop_asked())
			return 0;
	}
	return r == -EAGAIN ? 0 : r;
}

static int follow(struct gp_client *client, struct gp_error *err)
{
	uint64_t end_ns = gp_time_add(gp_monotonic_ns(), env.for_ns), now_ns;
	int r = drain(client, err);

	while (!r && !ferror(stdout) && !gp_stop_asked() && (now_ns = gp_monotonic_ns()) < end_ns) {
		struct timespec left = gp_timespec(end_ns - now_ns);
		struct pollfd p[3] = {{.fd = gp_stop_fd(), .events = POLLIN},
				      {.fd = gp_client_fd(client), .events = POLLIN},
				      {.fd = STDOUT_FILENO}};

		if (ppoll(p, 3, env.for_ns == GP_NEVER ? NULL : &left, NULL) > 0)
			r = drain(client, err);
		if (p[2].revents & POLLERR)
			break; /* the reader has gone */
	}
	return r;
}

static int run(struct gp_error *err)
{
	struct gp_client *client = NULL;
	int r;

	gp_stop_open();
	r = gp_client_connect(NULL, &client, err);
	if (!r)
		r = subscribe(client, err);
	if (!r)
		r = follow(client, err);
	gp_client_close(client);
	return r;
}

const struct gp_verb gp_verb_events = {
	.name = "events",
	.summary = "follow the events of the daemon",
	.options = options,
	.doc = "Print the events of the daemon: tasks that come and go, holds, releases, changes "
	       "of policy, failures.\v"
	       "Examples:\n"
	       "  gpreempt events\n"
	       "  gpreempt events --kind held,released --for 10s --json\n",
	.run = run,
};
