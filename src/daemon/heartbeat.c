/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Periodic work of the control thread: the heartbeat for the keeper and the watchdog, and checks
 * that no event triggers.
 */
#include <systemd/sd-daemon.h>

#include "base/log.h"
#include "daemon/control.h"
#include "undo/undo.h"

#define HEARTBEAT_NS         (200 * GP_NS_PER_MS)
#define HEARTBEATS_PER_CHECK 5 /* how often GPU memory and the keeper are checked */

/*
 * A device thread that does not tick, or whose back end hangs in the driver, releases nothing, so
 * the heartbeat stops and the keeper acts (GP_STUCK_NS in gpu/gpu.h). A long call that is no hang
 * has the same effect: afterwards the heartbeat is back, and the engine holds its tasks again. If
 * the whole daemon or machine was suspended, the threads have until the next heartbeat.
 */
static bool all_threads_tick(struct gp_control *c, uint64_t now_ns)
{
	bool stuck = false,
	     was_away = c->heartbeat_ns && now_ns - c->heartbeat_ns > GP_STUCK_NS / 2;

	c->heartbeat_ns = now_ns;
	if (was_away)
		return !c->stuck;
	for (unsigned i = 0; i < c->nthreads; i++) {
		bool late = gp_device_thread_overdue_ns(c->thread[i], now_ns) > GP_STUCK_NS;

		if (late && !c->stuck)
			gp_log(GP_LOG_ERROR, "device.stuck", "device=%u", i);
		stuck |= late;
	}
	c->stuck = stuck;
	return !stuck;
}

static void check_keeper(struct gp_control *c, uint64_t now_ns)
{
	struct gp_undo_scheduler keeper;
	struct json_object *event;
	bool gone;

	gp_undo_keeper(c->undo, &keeper);
	gone = !keeper.pid || !keeper.lives || now_ns > keeper.heartbeat_ns + 5 * GP_NS_PER_S;
	if (gone == c->keeper_gone)
		return;
	c->keeper_gone = gone;
	gp_log(gone ? GP_LOG_WARN : GP_LOG_INFO, gone ? "keeper.gone" : "keeper.running", "pid=%d",
	       keeper.pid);
	event = gp_event_new(c, GP_TOPIC_KEEPER);
	if (!event)
		return;
	gp_json_add(event, "keeper", json_object_new_string(gone ? "gone" : "back"));
	gp_events_publish(c, GP_TOPIC_KEEPER, event);
}

/* If the undo file was removed, replaced or truncated, uses the new one. Device threads do the same
 * and write their records into it. */
static void follow_undo_file(struct gp_control *c)
{
	struct gp_undo_file *file;
	struct gp_error err = {0};
	char why[300];

	if (gp_undo_is_current(c->undo))
		return;
	if (gp_undo_open(&file, true, &err) || gp_undo_scheduler_begin(file, &err)) {
		gp_log(GP_LOG_ERROR, "undo.file-gone", "why=%s",
		       gp_log_quote(why, sizeof why, err.text));
		return;
	}
	gp_undo_close(c->undo);
	c->undo = file;
}

static int on_heartbeat(sd_event_source *source, uint64_t usec, void *arg)
{
	struct gp_control *c = arg;
	uint64_t now_ns = gp_monotonic_ns();

	(void)usec;
	follow_undo_file(c);
	if (all_threads_tick(c, now_ns)) {
		gp_undo_heartbeat(c->undo, now_ns);
		sd_notify(0, "WATCHDOG=1");
	}
	gp_events_catch_up(c);
	gp_leases_expire(c, now_ns);
	for (unsigned i = 0; i < c->nthreads; i++)
		gp_device_thread_push(c->thread[i]);
	if (!(c->heartbeats++ % HEARTBEATS_PER_CHECK)) {
		gp_procs_retry(&c->procs);
		gp_events_check_limits(c);
		gp_rules_retry(c, now_ns);
		check_keeper(c, now_ns);
		gp_events_want(c); /* subscribers may have disconnected */
	}
	sd_event_source_set_time_relative(source, HEARTBEAT_NS / 1000);
	sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
	return 0;
}

int gp_run_before_clients(sd_event_source *source)
{
	int r = sd_event_source_set_priority(source, SD_EVENT_PRIORITY_IMPORTANT);

	sd_event_source_set_floating(source, true);
	sd_event_source_unref(source);
	return r;
}

int gp_heartbeat_begin(struct gp_control *c)
{
	sd_event_source *heartbeat;
	int r = sd_event_add_time_relative(c->loop, &heartbeat, CLOCK_MONOTONIC, 0, 1000,
					   on_heartbeat, c);

	return r < 0 ? r
		     : gp_run_before_clients(heartbeat); /* so that busy clients cannot delay it */
}
