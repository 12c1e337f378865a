/* SPDX-License-Identifier: Apache-2.0 */
/* gpreempt suspend, when a daemon answers: it holds, and goes on doing so until a resume. */
#include <errno.h>

#include "base/clock.h"
#include "base/process.h"
#include "cli/cli.h"
#include "cli/ask/ask.h"
#include "cli/ask/with_daemon.h"
#include "cli/lib/stop.h"

#define TICK_NS (100 * GP_NS_PER_MS)

struct held {
	const struct gp_targets *targets;
	unsigned n; /* the first of them that are held */
	char name[GP_TARGETS_MAX][32];
	uint64_t start_time[GP_TARGETS_MAX];
	uint64_t since_ns;
	bool json;
};

/* As suspend says it without a daemon. `format` takes the process and a duration. */
static void say(const struct held *h, unsigned i, const char *event, const char *key, uint64_t ns,
                const char *format)
{
	char process[64], duration[32];

	if (h->json) {
		printf("{\"event\":\"%s\",\"pid\":%d,\"name\":", event, h->targets->pid[i]);
		gp_json_string(stdout, h->name[i]);
		printf(",\"%s\":%.1f}\n", key, (double)ns / 1e3);
	} else {
		snprintf(process, sizeof process, "%d (%s)", h->targets->pid[i], h->name[i]);
		printf(format, process, gp_cli_duration(duration, sizeof duration, ns));
		putchar('\n');
	}
	fflush(stdout); /* somebody waits for it, perhaps through a pipe */
}

/* Those of whom the daemon said nothing may be held, now or soon: they count. */
static int hold_all(struct gp_client *client, struct held *h, bool force, struct gp_error *err)
{
	int r = 0;

	for (; h->n < h->targets->n && !r; h->n += !r || r == -ETIMEDOUT || r == -ECONNRESET) {
		pid_t pid = h->targets->pid[h->n];
		uint64_t asked_ns = gp_monotonic_ns();
		struct json_object *params = json_object_new_object(), *answer = NULL;

		if (force)
			json_object_object_add(params, "force", json_object_new_boolean(true));

		gp_process_name(pid, h->name[h->n], sizeof h->name[h->n]);
		h->start_time[h->n] = gp_process_start_time(pid);
		r = gp_ask_about(client, "hold", pid, params, &answer, err);
		if (!r && !gp_field_number_or(answer, "tasks", 1))
			r = gp_fail(err, -ENODEV, "process %d has no queues to hold", pid);
		if (!r)
			say(h, h->n, "held", "took_us", gp_monotonic_ns() - asked_ns,
			    "held %s in %s");
		json_object_put(answer);
	}
	return r;
}

static bool has_ended(const struct held *h, unsigned i)
{
	return gp_process_start_time(h->targets->pid[i]) != h->start_time[i];
}

static bool any_left(const struct held *h)
{
	for (unsigned i = 0; i < h->n; i++)
		if (!has_ended(h, i))
			return true;
	return false;
}

static void release(struct gp_client *client, const struct held *h, unsigned i, int *exit)
{
	uint64_t held_ns = gp_monotonic_ns() - h->since_ns;
	struct json_object *answer = NULL;
	struct gp_error err = {0};
	int r = has_ended(h, i)
	                ? -ESRCH
	                : gp_ask_about(client, "release", h->targets->pid[i], NULL, &answer, &err);

	if (r == -ESRCH) {
		say(h, i, "ended", "held_us", held_ns, "%s has ended, held for %s");
	} else if (r) {
		gp_error_prefix(&err, "process %d may still be held (gpreempt resume %d)",
		                h->targets->pid[i], h->targets->pid[i]);
		*exit = gp_cli_fail(&err);
	} else if (gp_field_number_or(answer, "tasks", 1)) {
		say(h, i, "released", "held_us", held_ns, "released %s after %s");
	} else {
		say(h, i, "resumed", "held_us", held_ns, "%s was resumed by somebody after %s");
	}
	json_object_put(answer);
}

/* Over a connection of its own: the daemon closes one that says nothing for long. */
static int release_all(const struct held *h)
{
	struct gp_client *client;
	struct gp_error err = {0};
	int exit = GP_EXIT_DONE;

	if (gp_client_connect(NULL, &client, &err)) {
		gp_error_prefix(&err, "cannot release (gpreempt resume --all does)");
		return gp_cli_fail(&err);
	}
	for (unsigned i = 0; i < h->n; i++)
		release(client, h, i, &exit);
	gp_client_close(client);
	return exit;
}

static void wait_for_end(const struct held *h, uint64_t end_ns)
{
	uint64_t now_ns;

	while (!gp_stop_asked() && any_left(h) && (now_ns = gp_monotonic_ns()) < end_ns)
		gp_stop_sleep(end_ns - now_ns < TICK_NS ? end_ns : now_ns + TICK_NS);
}

/* If one of several cannot be held, none is. */
bool gp_daemon_suspend(const struct gp_targets *targets, uint64_t for_ns, bool force, bool json,
                       int *exit)
{
	struct gp_client *client = gp_ask_if_there();
	static struct held h;
	struct gp_error err = {0};
	int r;

	if (!client)
		return false;
	h = (struct held){.targets = targets, .json = json, .since_ns = gp_monotonic_ns()};
	r = hold_all(client, &h, force, &err);
	gp_client_close(client);
	*exit = r ? gp_cli_fail(&err) : GP_EXIT_DONE;
	if (!r && for_ns == GP_NEVER && !gp_stop_asked()) {
		if (!json)
			puts("gpreempt resume releases");
		return true;
	}
	if (!r)
		wait_for_end(&h, gp_time_add(gp_monotonic_ns(), for_ns));
	if (h.n) {
		int code = release_all(&h);

		*exit = *exit ? *exit : code;
	}
	return true;
}
