/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpreemptd is stopped for 10 s: everything it holds is released through the keeper, and stays so.
 * When it goes on it notices, and schedules again, with new records; also what a user holds is held
 * again.
 */
#include <signal.h>
#include <stdio.h>

#include "base/clock.h"
#include "emu/common/emulator.h"
#include "world.h"

#define STOP_NS (10 * GP_NS_PER_S)
#define HELD    4    /* by a user */
#define WAIT_MS 5000 /* for what has no limit of its own */
#define UNDO_MS 1700 /* the keeper's patience, and a second */

static bool is_held(struct world *w, unsigned i)
{
	const struct gpu_task *task;
	struct gpu_look look;

	read_targets(w);
	w->gpu->look(&look);
	task = gpu_look_find(&look, w->target[i].load.pid);
	return task && task->held;
}

static bool user_hold_is_on(struct world *w)
{
	return is_held(w, HELD);
}

static bool has_records(struct world *w)
{
	return count_records(w, w->daemon) > 0;
}

static bool listener_was_told(struct world *w)
{
	return atomic_load(&w->shared->undone) > 0;
}

static void wait_until(struct world *w, bool (*is_so)(struct world *w), const char *what)
{
	struct limit limit = limit_begin(w, WAIT_MS);

	while (!is_so(w)) {
		if (limit_is_over(w, &limit))
			fail(w, "%s", what);
		emulator_sleep_ms(10);
	}
}

/* From the first release by the keeper to the end of the stop. */
static void stays_untouched(struct world *w, uint64_t until_ns)
{
	while (gp_monotonic_ns() < until_ns) {
		struct limit limit = limit_begin(w, LIMIT_MS);

		mark_progress(w);
		settle_untouched(w, &limit);
		emulator_sleep_ms(200);
	}
}

/* The client that steers would lift the hold. */
static void begin(struct world *w)
{
	struct limit limit = limit_begin(w, WAIT_MS);

	kill_now(w, &w->client[STEERER]);
	steer(w, "release_all", TARGETS);
	mark_progress(w);
	settle(w, &limit);
	steer(w, "hold", HELD);
	wait_until(w, user_hold_is_on, "the user's hold has no effect");
	wait_until(w, has_records, "gpreemptd schedules, and writes no records");
}

void case_stopped(struct world *w)
{
	uint64_t until_ns;
	struct limit limit;

	begin(w);
	w->doing = "gpreemptd is stopped";
	until_ns = gp_monotonic_ns() + STOP_NS;
	kill(w->daemon, SIGSTOP);
	limit = limit_begin(w, UNDO_MS);
	mark_progress(w);
	printf("stopped: all is as before after %llu ms\n",
	       (unsigned long long)settle_untouched(w, &limit) / GP_NS_PER_MS);
	stays_untouched(w, until_ns);

	w->doing = "gpreemptd goes on";
	kill(w->daemon, SIGCONT);
	limit = limit_begin(w, LIMIT_MS);
	wait_until(w, has_records, "there are no new records");
	wait_until(w, user_hold_is_on, "what a user holds is not held again");
	wait_until(w, listener_was_told, "there was no event 'undone'");
	steer(w, "release", HELD);
	limit = limit_begin(w, LIMIT_MS);
	mark_progress(w);
	printf("continued, released: all is well after %llu ms\n",
	       (unsigned long long)settle(w, &limit) / GP_NS_PER_MS);
	check_log(w, "device.stuck"); /* it was all of it that stood still */
	start_client(w, STEERER);
	settle_report();
}
