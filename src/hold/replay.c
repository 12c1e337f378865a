/* SPDX-License-Identifier: Apache-2.0 */
#include "hold/replay.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/process.h"
#include "gpu/backends.h"
#include "hold/devices.h"

#define OTHERS_NS (2 * GP_NS_PER_S) /* for other processes to finish undoing */
#define PAUSE_US  5000

bool gp_record_process_lives(const struct gp_undo_entry *entry)
{
	return entry->undo.pid > 0 && gp_process_lives(entry->undo.pid, entry->undo.start_time);
}

bool gp_records_find(const struct gp_undo_file *file, pid_t pid, uint64_t start_time,
		     struct gp_undo_entry *entry)
{
	struct gp_undo_entry e;
	bool found = false;

	for (unsigned i = 0; file && i < GP_UNDO_SLOTS; i++) {
		if (!gp_undo_get(file, i, &e) || e.undo.pid != pid ||
		    e.undo.start_time != start_time)
			continue;
		*entry = e;
		found = true;
		if (gp_undo_owner_lives(&e))
			break;
	}
	return found;
}

static int undo(const struct gp_undo_entry *entry, struct gp_error *err)
{
	const struct gp_gpu_ops *ops = gp_backend_find(entry->backend);

	return ops ? gp_backend_undo(ops, &entry->undo, err) : -ENOTSUP;
}

int gp_record_undo(const struct gp_undo_entry *entry, struct gp_error *err)
{
	int r = undo(entry, err);

	return r == -ESRCH ? 0 : r; /* a process that has ended is not held */
}

struct gp_undo_entry gp_record_to_take(const struct gp_undo_entry *entry)
{
	struct gp_undo_entry e = *entry;

	e.undo.owner = e.owner;
	e.undo.owner_start_time = e.owner_start_time;
	return e;
}

/* The result of an undo in a child process. */
struct result {
	int code;
	struct gp_error err;
};

static void undo_in_child(const struct gp_undo_entry *entry, int out)
{
	struct result result = {0};

	result.code = undo(entry, &result.err);
	_exit(write(out, &result, sizeof result) != sizeof result);
}

int gp_record_undo_within(const struct gp_undo_entry *entry, uint64_t limit_ns,
			  struct gp_error *err)
{
	struct result result = {.code = -EIO};
	struct pollfd done;
	int ends[2];
	pid_t child;

	if (pipe2(ends, O_CLOEXEC))
		return gp_fail(err, -errno, "cannot create a pipe: %s", gp_error_name(-errno));
	child = fork();
	if (!child)
		undo_in_child(entry, ends[1]);
	close(ends[1]);
	done = (struct pollfd){.fd = ends[0], .events = POLLIN};
	if (child > 0 && poll(&done, 1, (int)(limit_ns / GP_NS_PER_MS)) <= 0) {
		result.code =
			gp_fail(&result.err, -ETIMEDOUT, "the driver has not answered for %u s",
				(unsigned)(limit_ns / GP_NS_PER_S));
		kill(child, SIGKILL);
		waitpid(child, NULL, WNOHANG); /* it may hang in the driver */
	} else if (child > 0) {
		if (read(ends[0], &result, sizeof result) != sizeof result)
			gp_fail(&result.err, -EIO, "the process that undoes it has crashed");
		waitpid(child, NULL, 0);
	} else {
		result.code = gp_fail(&result.err, -errno, "cannot start a process: %s",
				      gp_error_name(-errno));
	}
	close(ends[0]);
	return result.code ? gp_fail(err, result.code, "%s", result.err.text) : 0;
}

/* Whether another process is undoing this record. */
static bool is_being_undone(const struct gp_undo_entry *e)
{
	return e->claimed && e->owner != getpid() && gp_undo_owner_lives(e);
}

static unsigned count_being_undone(const struct gp_undo_file *file)
{
	struct gp_undo_entry e;
	unsigned n = 0;

	for (unsigned i = 0; i < GP_UNDO_SLOTS; i++)
		n += gp_undo_get(file, i, &e) && is_being_undone(&e);
	return n;
}

/* The record of an owner that hangs in the kernel stays: its last call can still take effect. */
static void replay_one(struct gp_undo_file *file, unsigned slot, struct gp_undo_entry *e)
{
	if (gp_undo_owner_lives(e) && !gp_undo_owner_can_run(e)) {
		struct gp_undo_entry taken = gp_record_to_take(e);

		gp_record_undo(&taken, NULL);
		return;
	}
	if (!gp_undo_claim(file, slot, e))
		return;
	if (gp_record_undo(e, NULL))
		gp_undo_give_back(file, slot, e); /* for a process that can undo it */
	else
		gp_undo_drop_same(file, slot, e);
}

void gp_records_replay_dead(struct gp_undo_file *file)
{
	uint64_t until_ns = gp_monotonic_ns() + OTHERS_NS;
	struct gp_undo_entry e;

	for (int ended = 0; ended <= 1; ended++)
		for (unsigned i = 0; i < GP_UNDO_SLOTS; i++)
			if (gp_undo_get(file, i, &e) && gp_record_process_lives(&e) == !ended)
				replay_one(file, i, &e);
	while (count_being_undone(file) && gp_monotonic_ns() < until_ns)
		usleep(PAUSE_US);
}

void gp_records_drop_ended(struct gp_undo_file *file)
{
	struct gp_undo_entry e;

	for (unsigned i = 0; i < GP_UNDO_SLOTS; i++)
		if (gp_undo_get(file, i, &e) && e.owner == getpid() && !e.claimed &&
		    !gp_record_process_lives(&e) && !gp_record_undo(&e, NULL))
			gp_undo_drop_same(file, i, &e);
}

int gp_records_release_unrecorded(const struct gp_undo_file *file)
{
	struct gp_devices devices;
	struct gp_task_ref *ref = NULL;
	struct gp_undo_entry e;
	int n, r = gp_devices_open(&devices, GP_OPEN_QUIET, NULL), error = 0;

	if (r)
		return r == -ENODEV ? 0 : r; /* without a device nothing is held */
	n = gp_devices_scan(&devices, GP_DEVICES_MAX, &ref, NULL);
	for (int i = 0; i < n; i++) {
		const struct gp_seen *seen = &ref[i].seen;

		if (!gp_task_ref_looks_changed(&ref[i]) ||
		    gp_records_find(file, seen->pid, seen->start_time, &e))
			continue;
		r = gp_backend_release_process(ref[i].gpu->ops, seen->pid, NULL, NULL);
		gp_log(r < 0 ? GP_LOG_ERROR : GP_LOG_WARN,
		       r < 0 ? "unrecorded.still-held" : "unrecorded.released", "pid=%d errno=%d",
		       seen->pid, r < 0 ? -r : 0);
		if (r < 0 && r != -ESRCH && r != -ENODEV)
			error = r;
	}
	free(ref);
	if (!error)
		error = gp_devices_missing(&devices, NULL);
	gp_devices_close(&devices);
	return n < 0 ? n : error;
}

bool gp_record_is_daemons(const struct gp_undo_file *file, const struct gp_undo_entry *entry)
{
	struct gp_undo_scheduler daemon;

	gp_undo_scheduler(file, &daemon);
	return daemon.pid && entry->owner == daemon.pid &&
	       entry->owner_start_time == daemon.start_time;
}

int gp_records_check_free(const struct gp_undo_file *file, pid_t pid, uint64_t start_time,
			  struct gp_error *err)
{
	struct gp_undo_entry e;
	char name[32];

	if (!gp_records_find(file, pid, start_time, &e) || e.owner == getpid() ||
	    !gp_undo_owner_can_run(&e))
		return 0;
	if (gp_record_is_daemons(file, &e)) /* which goes on after a resume */
		return gp_fail(
			err, -EBUSY,
			"process %d is scheduled or held by the daemon (%d); run gpreempt "
			"set %d --class unmanaged, and gpreempt resume %d if a user holds it",
			pid, e.owner, pid, pid);
	return gp_fail(err, -EBUSY,
		       "process %d is already held or scheduled by process %d (%s); end that "
		       "process, or run gpreempt resume %d",
		       pid, e.owner, gp_process_name(e.owner, name, sizeof name), pid);
}

int gp_records_settle(struct gp_undo_file *file, struct gp_error *err)
{
	struct gp_undo_entry e;
	int first = 0;

	for (unsigned i = 0; i < GP_UNDO_SLOTS; i++) {
		int r;

		if (!gp_undo_get(file, i, &e) || e.owner != getpid())
			continue;
		r = gp_record_undo(&e, err);
		if (!r)
			gp_undo_drop_same(file, i, &e);
		else if (!first)
			first = r;
	}
	return first;
}
