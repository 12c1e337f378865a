/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's part of gpreempt suspend: the daemon keeps the hold until a resume. */
#include <errno.h>

#include "base/clock.h"
#include "base/process.h"
#include "cli/cli.h"
#include "cli/ask/ask.h"
#include "cli/ask/with_daemon.h"
#include "cli/lib/hold_event.h"
#include "cli/lib/stop.h"

#define TICK_NS (100 * GP_NS_PER_MS)

struct held {
	const struct gp_targets *targets;
	unsigned n; /* the first n targets are held */
	char name[GP_TARGETS_MAX][32];
	uint64_t start_time[GP_TARGETS_MAX];
	uint64_t since_ns, for_ns;
	bool json;
};

static void print_event(const struct held *h, unsigned i, enum gp_hold_event_kind kind, uint64_t ns)
{
	const struct gp_hold_event event = {
		.kind = kind,
		.pid = h->targets->pid[i],
		.name = h->name[i],
		.device = -1,
		.ns = ns,
		.lifetime = h->for_ns == GP_NEVER ? GP_HOLD_UNTIL_RESUME : GP_HOLD_FOR_TIME,
		.for_ns = h->for_ns,
	};

	gp_hold_event_print(&event, h->json);
}

/* A target counts as held also where the daemon did not answer: it may be held, now or soon. */
static int hold_all(struct gp_client *client, struct held *h, bool force, struct gp_error *err)
{
	int r = 0;

	for (; h->n < h->targets->n && !r; h->n += !r || r == -ETIMEDOUT || r == -ECONNRESET) {
		pid_t pid = h->targets->pid[h->n];
		uint64_t asked_ns = gp_monotonic_ns();
		struct json_object *params = json_object_new_object(), *answer = NULL;

		if (force)
			gp_field_put_bool(params, "force", true);
		gp_process_name(pid, h->name[h->n], sizeof h->name[h->n]);
		h->start_time[h->n] = gp_process_start_time(pid);
		r = gp_ask_about(client, "hold", pid, params, &answer, err);
		if (!r && !gp_field_number_or(answer, "tasks", 1))
			r = gp_fail(err, -ENODEV, "process %d has no queues to hold", pid);
		if (!r)
			print_event(h, h->n, GP_HOLD_BEGAN, gp_monotonic_ns() - asked_ns);
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
		print_event(h, i, GP_HOLD_ENDED, held_ns);
	} else if (r) {
		gp_error_prefix(&err, "process %d may still be held (gpreempt resume %d)",
				h->targets->pid[i], h->targets->pid[i]);
		*exit = gp_cli_fail(&err);
	} else if (gp_field_number_or(answer, "tasks", 1)) {
		print_event(h, i, GP_HOLD_RELEASED, held_ns);
	} else {
		print_event(h, i, GP_HOLD_RESUMED, held_ns);
	}
	json_object_put(answer);
}

/* Uses a new connection: the daemon closes one that is silent for long. */
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

/* If one of several targets cannot be held, all are released. */
bool gp_daemon_suspend(const struct gp_targets *targets, uint64_t for_ns, bool force, bool json,
		       int *exit)
{
	struct gp_client *client = gp_ask_if_there();
	static struct held h;
	struct gp_error err = {0};
	int r;

	if (!client)
		return false;
	h = (struct held){
		.targets = targets, .json = json, .for_ns = for_ns, .since_ns = gp_monotonic_ns()};
	r = hold_all(client, &h, force, &err);
	gp_client_close(client);
	*exit = r ? gp_cli_fail(&err) : GP_EXIT_DONE;
	if (!r && for_ns == GP_NEVER && !gp_stop_asked())
		return true;
	if (!r)
		wait_for_end(&h, gp_time_add(gp_monotonic_ns(), for_ns));
	if (h.n) {
		int code = release_all(&h);

		*exit = *exit ? *exit : code;
	}
	return true;
}
