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

enum gp_evidence gp_record_look(const struct gp_undo_entry *entry, uint64_t limit_ns)
{
	const struct gp_gpu_ops *ops = gp_backend_find(entry->backend);
	bool works = false;

	if (!ops || !gp_backend_commands(ops)->see_work || !gp_record_process_lives(entry))
		return GP_EVIDENCE_ENOUGH;
	gp_backend_commands(ops)->see_work(&entry->undo.pid, &works, 1, limit_ns);
	return works ? GP_EVIDENCE_ENOUGH : GP_EVIDENCE_DRIVER;
}

struct gp_undo_entry gp_record_to_take(const struct gp_undo_entry *entry)
{
	struct gp_undo_entry e = *entry;

	e.undo.owner = e.owner;
	e.undo.owner_start_time = e.owner_start_time;
	return e;
}

/* Does `work` in a child process, because a driver call can hang. The child writes `size` bytes, at
 * most PIPE_BUF. 0, -ETIMEDOUT: it hung and was killed, or another -errno. */
static int do_in_child(void (*work)(void *arg, int out), void *arg, void *result, size_t size,
		       uint64_t limit_ns)
{
	struct pollfd done;
	int ends[2], r = 0;
	pid_t child;

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	child = fork();
	if (!child) {
		work(arg, ends[1]);
		_exit(0);
	}
	r = child < 0 ? -errno : 0;
	close(ends[1]);
	done = (struct pollfd){.fd = ends[0], .events = POLLIN};
	if (!r && poll(&done, 1, (int)(limit_ns / GP_NS_PER_MS)) <= 0) {
		r = -ETIMEDOUT;
		kill(child, SIGKILL);
		waitpid(child, NULL, WNOHANG); /* it may hang in the driver */
	} else if (!r) {
		r = read(ends[0], result, size) == (ssize_t)size ? 0 : -EIO;
		waitpid(child, NULL, 0);
	}
	close(ends[0]);
	return r;
}

/* An undo in a child process, and its result. */
struct child_undo {
	const struct gp_undo_entry *entry;
	int code;
	struct gp_error err;
};

static void undo_in_child(void *arg, int out)
{
	struct child_undo *u = arg;

	u->code = undo(u->entry, &u->err);
	_exit(write(out, u, sizeof *u) != sizeof *u);
}

int gp_record_undo_within(const struct gp_undo_entry *entry, uint64_t limit_ns,
			  struct gp_error *err)
{
	struct child_undo u = {.entry = entry};
	int r = do_in_child(undo_in_child, &u, &u, sizeof u, limit_ns);

	if (r == -ETIMEDOUT)
		return gp_fail(err, r, "the driver has not answered for %u s",
			       (unsigned)(limit_ns / GP_NS_PER_S));
	if (r == -EIO)
		return gp_fail(err, r, "the process that undoes it has crashed");
	if (r)
		return gp_fail(err, r, "cannot start a process: %s", gp_error_name(r));
	return u.code ? gp_fail(err, u.code, "%s", u.err.text) : 0;
}

/* A look for work in a child process. */
struct child_look {
	const struct gp_gpu_ops *ops;
	const pid_t *pid;
	unsigned n;
	uint64_t limit_ns;
};

static void look_in_child(void *arg, int out)
{
	const struct child_look *l = arg;
	bool works[GP_SEE_WORK_MAX] = {0};

	gp_backend_commands(l->ops)->see_work(l->pid, works, l->n, l->limit_ns);
	_exit(write(out, works, sizeof works) != sizeof works);
}

void gp_see_work_within(const struct gp_gpu_ops *ops, const pid_t *pid, bool *works, unsigned n,
			uint64_t limit_ns)
{
	struct child_look l = {
		.ops = ops, .pid = pid, .n = n < GP_SEE_WORK_MAX ? n : GP_SEE_WORK_MAX};
	bool seen[GP_SEE_WORK_MAX] = {0};

	l.limit_ns = limit_ns;
	if (!gp_backend_commands(ops)->see_work ||
	    do_in_child(look_in_child, &l, seen, sizeof seen, limit_ns + OTHERS_NS))
		return;
	memcpy(works, seen, l.n * sizeof *works);
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
