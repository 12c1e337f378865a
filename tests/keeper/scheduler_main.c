/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A scheduler that is small enough to be killed all day: the engine on every device, undo records,
 * and a heartbeat while the device threads run. It holds the processes with the given pids. s:PID
 * gets another slice instead, on devices with slices.
 *
 * Says `ready` whenever all of it is in force, and `lost` when it is no longer. Exit 3: there is
 * another scheduler. SIGTERM ends it, and all is as it was.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/real_time.h"
#include "hold/devices.h"
#include "hold/replay.h"

#define SLICE_US     700
#define HEARTBEAT_US 100000
#define NAMED        16

struct device {
	struct gp_gpu *gpu;
	struct gp_engine *engine;
	pthread_t thread;
	atomic_ulong looks;
	atomic_uint wrong; /* named tasks that are not as they should be */
	atomic_uint seen;  /* named tasks that are here */
};

static struct {
	pid_t pid;
	bool slice;
} named[NAMED];
static unsigned nnamed;
static struct gp_undo_file *undo;
static int stop_fd;

/* Priority 1 is held, 0 has a slice. */
static int decide(const struct gp_view *view, struct gp_plan *plan)
{
	for (uint32_t i = 0; i < view->n; i++) {
		const struct gp_task_view *t = &view->task[i];

		if (t->class == GP_UNMANAGED)
			continue;
		plan->task[i].want = t->priority ? GP_HOLD : GP_RUN;
		plan->task[i].slice_us = t->priority || !(view->caps & GP_CAP_SLICE) ? 0 : SLICE_US;
	}
	return 0;
}

static const struct gp_policy_ops always = {
	.name = "always", .summary = "the same for ever", .decide = decide};

static void classify(void *arg, const struct gp_seen *seen, struct gp_task_attr *attr)
{
	(void)arg;
	for (unsigned i = 0; i < nnamed; i++)
		if (named[i].pid == seen->pid) {
			attr->class = GP_BEST_EFFORT;
			attr->priority = !named[i].slice;
		}
}

static int before_change(void *arg, const struct gp_undo *record)
{
	struct device *d = arg;
	int slot = gp_undo_put(undo, d->gpu->ops->name, record);

	return slot < 0 ? slot : 0;
}

static uint64_t epoch(void *arg)
{
	(void)arg;
	return gp_undo_epoch(undo);
}

static int after_look(void *arg, uint64_t now_ns)
{
	struct device *d = arg;
	unsigned wrong = 0, seen = 0;

	(void)now_ns;
	for (unsigned i = 0; i < gp_engine_tasks(d->engine); i++) {
		struct gp_task_stats t;

		gp_engine_task_stats(d->engine, i, &t);
		if (t.attr.class == GP_UNMANAGED)
			continue;
		seen++;
		wrong += t.attr.priority
				 ? !t.held
				 : (d->gpu->info.caps & GP_CAP_SLICE) && t.slice_us != SLICE_US;
	}
	d->wrong = wrong;
	d->seen = seen;
	d->looks++;
	return 0;
}

static void *drive(void *arg)
{
	struct device *d = arg;

	gp_drive(d->engine, d->gpu, stop_fd, after_look, d);
	return NULL;
}

static int begin(struct device *d, struct gp_gpu *gpu)
{
	struct gp_engine_config config = {.gpu = gpu,
					  .classify = classify,
					  .before_change = before_change,
					  .epoch = epoch,
					  .scan_every_ns = 20 * GP_NS_PER_MS,
					  .arg = d};
	struct gp_policy_choice choice;

	d->gpu = gpu;
	gp_policy_defaults(&always, &choice);
	if (gp_engine_new(&config, &d->engine) ||
	    gp_engine_set_policy(d->engine, gp_monotonic_ns(), &choice, NULL))
		return -1;
	return pthread_create(&d->thread, NULL, drive, d);
}

static void say(const char *word)
{
	char line[16];
	int n = snprintf(line, sizeof line, "%s\n", word);

	if (write(STDOUT_FILENO, line, (size_t)n) < 0)
		exit(1);
}

/* Until a signal. Beats when every device has looked since the last time. */
static void watch(struct device *device, unsigned n, const sigset_t *end)
{
	static unsigned long looks[GP_DEVICES_MAX];
	struct timespec pause = gp_timespec(HEARTBEAT_US * GP_NS_PER_US / 10);
	bool ready = false;

	for (unsigned turn = 0; sigtimedwait(end, NULL, &pause) < 0; turn++) {
		unsigned wrong = 0, seen = 0, alive = 0;

		for (unsigned i = 0; i < n; i++) {
			wrong += device[i].wrong;
			seen += device[i].seen;
			alive += device[i].looks != looks[i];
		}
		if (turn % 10 == 0 && alive == n) {
			gp_undo_heartbeat(undo, gp_monotonic_ns());
			for (unsigned i = 0; i < n; i++)
				looks[i] = device[i].looks;
		}
		if (ready != (seen >= nnamed && !wrong)) {
			ready = !ready;
			say(ready ? "ready" : "lost");
		}
	}
}

static void drop_own(void)
{
	struct gp_undo_entry e;

	for (unsigned i = 0; i < GP_UNDO_SLOTS; i++)
		if (gp_undo_get(undo, i, &e) && e.owner == getpid())
			gp_undo_drop_same(undo, i, &e);
}

int main(int argc, char **argv)
{
	static struct device device[GP_DEVICES_MAX];
	struct gp_devices devices;
	struct gp_error err = {0};
	sigset_t end;

	for (int i = 1; i < argc && nnamed < NAMED; i++, nnamed++) {
		named[nnamed].slice = !strncmp(argv[i], "s:", 2);
		named[nnamed].pid = atoi(argv[i] + (named[nnamed].slice ? 2 : 0));
	}
	sigemptyset(&end);
	sigaddset(&end, SIGTERM);
	sigprocmask(SIG_BLOCK, &end, NULL);
	gp_log_set_level(GP_LOG_ERROR);
	stop_fd = eventfd(0, EFD_CLOEXEC);
	if (gp_undo_open(&undo, true, &err) || gp_undo_scheduler_begin(undo, &err)) {
		fprintf(stderr, "%s\n", err.text);
		return err.code == -EBUSY ? 3 : 1;
	}
	gp_undo_heartbeat(undo, gp_monotonic_ns());
	gp_records_replay_dead(undo);
	if (gp_devices_open(&devices, 0, &err)) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	for (unsigned i = 0; i < devices.n; i++)
		if (begin(&device[i], devices.device[i].gpu))
			return 1;
	watch(device, devices.n, &end);
	eventfd_write(stop_fd, 1);
	for (unsigned i = 0; i < devices.n; i++) {
		pthread_join(device[i].thread, NULL);
		gp_engine_free(device[i].engine);
	}
	gp_devices_close(&devices);
	drop_own();
	gp_undo_scheduler_end(undo);
	gp_undo_close(undo);
	return 0;
}
