/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two clients, each a process of its own: one listens to all events, the other sets, holds and
 * releases all the time. Both come back when the daemon does.
 */
#include <errno.h>
#include <json-c/json.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "emu/common/emulator.h"
#include "rpc/client.h"
#include "world.h"

#define AGAIN_MS       20 /* until the next attempt to reach a daemon */
#define KEEPER_AT_WORK "traced by gpreempt-undo"
#define PATIENCE_MS    20000 /* with a daemon that is stopped for a while */

static struct gp_client *connect_again(void)
{
	struct gp_client *client;

	while (gp_client_connect(NULL, &client, NULL))
		emulator_sleep_ms(AGAIN_MS);
	gp_client_set_timeout(client, PATIENCE_MS);
	return client;
}

/* The daemon has gone, in whatever way. */
static bool is_broken(int r)
{
	return r == -ECONNRESET || r == -EPIPE || r == -ECONNREFUSED || r == -ESHUTDOWN;
}

static struct json_object *target_params(pid_t pid, uint64_t start_time)
{
	struct json_object *params = json_object_new_object(), *target = json_object_new_object();

	json_object_object_add(target, "pid", json_object_new_int(pid));
	json_object_object_add(target, "start_time", json_object_new_uint64(start_time));
	json_object_object_add(params, "target", target);
	return params;
}

static void note_odd(struct shared *s, const char *what, int r, const char *text)
{
	if (!atomic_fetch_add(&s->odd, 1))
		snprintf(s->odd_text, sizeof s->odd_text, "%s: %d: %s", what, r, text);
}

static void count_event(struct shared *s, struct json_object *note)
{
	struct json_object *params, *kind;

	atomic_fetch_add(&s->events, 1);
	if (json_object_object_get_ex(note, "params", &params) &&
	    json_object_object_get_ex(params, "event", &kind) &&
	    !strcmp(json_object_get_string(kind), "undone"))
		atomic_fetch_add(&s->undone, 1);
}

__attribute__((noreturn)) static void listen_to_events(struct shared *s)
{
	for (;;) {
		struct gp_client *client = connect_again();
		struct gp_error err = {0};
		struct json_object *note;
		int r = gp_client_call(client, "subscribe", NULL, NULL, &err);

		if (r && !is_broken(r))
			note_odd(s, "subscribe", r, err.text);
		while (!r) {
			r = gp_client_next(client, -1, &note, &err);
			if (!r) {
				count_event(s, note);
				json_object_put(note);
			}
		}
		gp_client_close(client);
	}
}

struct steerer {
	struct shared *shared;
	struct gp_client *client; /* NULL: the daemon has gone */
	unsigned turns;
};

/* 0: done. What the target's end explains, or a keeper that has it in its hands, is no failure. */
static int call(struct steerer *s, const char *method, struct json_object *params)
{
	struct gp_error err = {0};
	int r = gp_client_call(s->client, method, params, NULL, &err);

	if (!r)
		return 0;
	if (is_broken(r)) {
		atomic_fetch_add(&s->shared->broken, 1);
		gp_client_close(s->client);
		s->client = NULL;
	} else if (r == -ESRCH || r == -ECANCELED || r == -EBUSY ||
		   strstr(err.text, KEEPER_AT_WORK)) {
		atomic_fetch_add(&s->shared->refusals, 1);
	} else {
		note_odd(s->shared, method, r, err.text);
	}
	return r;
}

static void change_weight(struct steerer *s)
{
	struct shared *shared = s->shared;
	pid_t pid = atomic_load(&shared->target[STEERED].pid);
	uint64_t start_time = atomic_load(&shared->target[STEERED].start_time);
	uint64_t next = atomic_load(&shared->asked) + 1;
	struct json_object *params;

	if (!pid)
		return;
	if ((pid_t)(next >> 32) != pid)
		next = (uint64_t)pid << 32 | (WEIGHT_FIRST + 1);
	if ((uint32_t)next > 10000)
		return;
	atomic_store(&shared->asked, next);
	params = target_params(pid, start_time);
	json_object_object_add(params, "weight", json_object_new_uint64((uint32_t)next));
	if (call(s, "set", params))
		return;
	atomic_store(&shared->answered, next);
	atomic_fetch_add(&shared->sets, 1);
}

static void hold_for_a_moment(struct steerer *s)
{
	unsigned i = s->turns % TARGETS; /* but the one that nobody manages */
	pid_t pid = atomic_load(&s->shared->target[i].pid);
	uint64_t start_time = atomic_load(&s->shared->target[i].start_time);

	if (!pid || i == UNMANAGED)
		return;
	if (!call(s, "hold", target_params(pid, start_time))) {
		atomic_fetch_add(&s->shared->holds, 1);
		emulator_sleep_ms(5);
	}
	if (s->client)
		call(s, "release", target_params(pid, start_time));
}

/* Begins with what one before it, that was killed, may have left. */
__attribute__((noreturn)) static void steer_for_ever(struct shared *shared)
{
	struct steerer s = {.shared = shared};

	for (;; s.turns++) {
		if (!s.client)
			s.client = connect_again();
		if (!(s.turns % TARGETS))
			call(&s, "release_all", NULL);
		if (s.client)
			change_weight(&s);
		if (s.client)
			hold_for_a_moment(&s);
		emulator_sleep_ms(15);
	}
}

void start_client(struct world *w, enum client which)
{
	pid_t pid = fork();

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (which == LISTENER)
			listen_to_events(w->shared);
		steer_for_ever(w->shared);
	}
	if (pid < 0)
		fail(w, "fork: %d", errno);
	w->client[which] = pid;
}

/* The daemon may have been killed a moment ago, and be on its way back. */
static void ask(struct world *w, const char *method, struct json_object *params)
{
	struct gp_client *client = NULL;
	struct gp_error err = {0};
	int r = -ETIMEDOUT;

	for (unsigned i = 0; r && i < PATIENCE_MS / AGAIN_MS; i++) {
		r = gp_client_connect(NULL, &client, &err);
		if (r)
			emulator_sleep_ms(AGAIN_MS);
	}
	if (!r)
		r = gp_client_call(client, method, params, NULL, &err);
	gp_client_close(client);
	if (r)
		fail(w, "%s: %s", method, err.text);
}

void set_class(struct world *w, unsigned i)
{
	struct target *t = &w->target[i];
	struct json_object *params = target_params(t->load.pid, t->start_time);

	json_object_object_add(params, "class", json_object_new_string(t->class));
	ask(w, "set", params);
}

void steer(struct world *w, const char *method, unsigned i)
{
	struct json_object *params = NULL;

	if (i < TARGETS)
		params = target_params(w->target[i].load.pid, w->target[i].start_time);
	ask(w, method, params);
}
