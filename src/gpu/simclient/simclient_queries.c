/* SPDX-License-Identifier: Apache-2.0 */
/* The functions for commands: find, queues, undo, release_process and doctor. They may wait. */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process.h"
#include "gpu/finding.h"
#include "gpu/simclient/simclient_device.h"

#define PATIENCE_NS (5 * GP_NS_PER_S)
#define CHECK_MS    100 /* without an event: a server that is gone sends none */

int gp_simclient_find(struct gp_gpu *gpu, pid_t pid, struct gp_seen *seen, struct gp_error *err)
{
	struct gp_simclient_gpu *d = gp_simclient_of(gpu);
	uint64_t start_time = pid > 0 ? gp_process_start_time(pid) : 0;
	struct gp_simgpu_context c;

	if (gp_simclient_is_lost(d))
		return gp_fail(err, -EIO, "the simulated GPU at %s is gone", d->path);
	if (!start_time)
		return gp_fail(err, -ESRCH, "there is no process %d", pid);
	if (gp_simclient_find_process(d, pid, start_time, &c) == GP_SIMGPU_CONTEXTS)
		return gp_fail(err, -ENODEV, "process %d has no context on %s", pid,
			       d->base.info.name);
	gp_simclient_describe(&c, seen);
	return 0;
}

int gp_simclient_queues(struct gp_gpu *gpu, uint64_t key, bool closely, struct gp_queue *queue,
			unsigned max, struct gp_error *err)
{
	struct gp_simclient_gpu *d = gp_simclient_of(gpu);
	struct gp_simgpu_context c;
	uint32_t slot =
		gp_simclient_is_lost(d) ? GP_SIMGPU_CONTEXTS : gp_simclient_find_key(d, key, &c);

	(void)closely;
	if (slot == GP_SIMGPU_CONTEXTS)
		return gp_fail(err, -ESRCH, "the process has no context on %s any more",
			       d->base.info.name);
	if (!max)
		return 1;
	queue[0] = (struct gp_queue){
		.id = slot,
		.channels = 1,
		.slice_us = c.slice_us ? c.slice_us : c.own_slice_us,
		.interleave = UINT32_MAX,
		.held = c.held,
		.type = "compute",
		.pending = c.known & GP_KNOWN_PENDING ? c.pending : UINT64_MAX,
		.priority = UINT32_MAX,
		.serial = c.key,
	};
	return 1;
}

#define RECORD_VERSION 1

struct record {
	uint32_t version;
	uint32_t device;
	char path[GP_SIMGPU_PATH_SIZE];
};

_Static_assert(sizeof(struct record) <= sizeof(((struct gp_undo *)0)->data), "fits an undo record");

int gp_simclient_undo_record(struct gp_gpu *gpu, uint32_t handle, struct gp_undo *undo)
{
	const struct gp_simclient_gpu *d = gp_simclient_of(gpu);
	const struct gp_simclient_task *t = &d->task[handle];
	struct record record = {.version = RECORD_VERSION, .device = d->index};

	if (d->lost)
		return -EIO;
	memcpy(record.path, d->path, sizeof record.path);
	*undo = (struct gp_undo){.key = t->key,
				 .pid = t->last.pid,
				 .start_time = t->last.start_time,
				 .size = sizeof record};
	memcpy(undo->data, &record, sizeof record);
	return 0;
}

/* 0: the context is restored; -ESRCH: it is gone; -EAGAIN: not yet. */
static int check_restored(struct gp_simclient_gpu *d, uint32_t slot, uint64_t key)
{
	struct gp_simgpu_context c;

	if (gp_simclient_is_lost(d))
		return -ESRCH;
	if (gp_simclient_answered(d) < d->serial)
		return -EAGAIN;
	if (!gp_simclient_read(d, slot, &c) || c.key != key)
		return -ESRCH;
	if (c.under_way)
		return -EAGAIN;
	if (!c.held && !c.slice_us)
		return 0;
	return c.hold_failed ? c.hold_failed : c.slice_failed ? c.slice_failed : -EIO;
}

static int restore(struct gp_simclient_gpu *d, uint32_t slot, uint64_t key, struct gp_error *err)
{
	uint64_t until_ns = gp_monotonic_ns() + PATIENCE_NS, ignored;
	struct pollfd p = {.fd = d->event_fd, .events = POLLIN};
	int r;

	d->packet.target[0] = (struct gp_simgpu_target){.key = key, .slot = slot};
	r = gp_simclient_send(d, GP_SIMGPU_RESTORE, 1, true);
	if (r == -EIO)
		r = -ESRCH; /* the device and all its contexts are gone */
	else if (!r)
		r = check_restored(d, slot, key);
	while (r == -EAGAIN && gp_monotonic_ns() < until_ns) {
		/* Restoring an unchanged context raises no event, so the state is polled, too. */
		if (poll(&p, 1, gp_simclient_answered(d) < d->serial ? 1 : CHECK_MS) > 0 &&
		    read(d->event_fd, &ignored, sizeof ignored) < 0)
			continue;
		r = check_restored(d, slot, key);
	}
	if (r == -EAGAIN)
		r = -ETIMEDOUT;
	if (r && r != -ESRCH)
		return gp_fail(err, r, "%s did not undo the changes to context %u: %s",
			       d->base.info.name, slot, gp_error_name(r));
	return r;
}

int gp_simclient_undo(const struct gp_undo *undo, struct gp_error *err)
{
	struct gp_simgpu_context c;
	struct record record;
	struct gp_simclient_gpu *d;
	uint32_t slot;
	int r;

	if (undo->size != sizeof record)
		return gp_fail(err, -EINVAL, "the record of process %d is of another version",
			       undo->pid);
	memcpy(&record, undo->data, sizeof record);
	record.path[sizeof record.path - 1] = 0;
	if (record.version != RECORD_VERSION)
		return gp_fail(err, -EINVAL, "the record of process %d is of another version",
			       undo->pid);
	r = gp_simclient_open(record.path, record.device, &d, err);
	if (r == -ENODEV)
		return gp_fail(err, -ESRCH, "the simulated GPU of process %d is gone", undo->pid);
	if (r)
		return r;
	slot = gp_simclient_find_key(d, undo->key, &c);
	r = slot == GP_SIMGPU_CONTEXTS ? -ESRCH : restore(d, slot, undo->key, err);
	gp_simclient_close(d);
	return r;
}

int gp_simclient_release_process(pid_t pid, bool *released, struct gp_error *err)
{
	uint64_t start_time = pid > 0 ? gp_process_start_time(pid) : 0;
	char path[GP_SIMGPU_PATH_SIZE];
	int devices = gp_simgpu_devices(gp_simgpu_path(path, sizeof path), err), reached = 0;

	(void)released;
	if (devices < 0)
		return devices;
	if (!start_time)
		return gp_fail(err, -ESRCH, "there is no process %d", pid);
	for (int i = 0; i < devices; i++) {
		struct gp_simgpu_context c;
		struct gp_simclient_gpu *d;
		uint32_t slot;
		int r = gp_simclient_open(path, (unsigned)i, &d, err);

		if (r)
			return r;
		slot = gp_simclient_find_process(d, pid, start_time, &c);
		r = slot == GP_SIMGPU_CONTEXTS ? -ESRCH : restore(d, slot, c.key, err);
		gp_simclient_close(d);
		if (r && r != -ESRCH)
			return r;
		reached += !r;
	}
	return reached ? reached
		       : gp_fail(err, -ENODEV, "process %d has no context on a simulated GPU", pid);
}

static const char *activity_of(const struct gp_gpu_info *info)
{
	if (!(info->caps & GP_CAP_ACTIVITY))
		return "does not report active tasks";
	if (info->caps & GP_CAP_EVENTS)
		return "announces active tasks";
	return info->sample_period_ns ? "reports active tasks by samples" : "reports active tasks";
}

void gp_simclient_doctor(gp_finding_fn *say, void *arg)
{
	struct gp_reporter to = {.say = say, .arg = arg};
	struct gp_error err = {0};
	char path[GP_SIMGPU_PATH_SIZE];
	int n = gp_simgpu_devices(gp_simgpu_path(path, sizeof path), &err);

	if (n < 0) {
		gp_report(&to, GP_FINDING_MISSING, "gpu",
			  n == -ENODEV ? "start one: gpreempt-simgpu &" : NULL, "%s", err.text);
		return;
	}
	gp_report(&to, GP_FINDING_OK, "server", NULL, "gpreempt-simgpu answers at %s", path);
	for (int i = 0; i < n; i++) {
		struct gp_simclient_gpu *d;

		err = (struct gp_error){0};
		if (gp_simclient_open(path, (unsigned)i, &d, &err)) {
			gp_report(&to, GP_FINDING_MISSING, "rights", NULL, "%s", err.text);
			return;
		}
		gp_report(&to, GP_FINDING_OK, "gpu", NULL, "%s, which %s", d->base.info.name,
			  activity_of(&d->base.info));
		gp_simclient_close(d);
	}
}
