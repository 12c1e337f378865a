/* SPDX-License-Identifier: Apache-2.0 */
#include "hold/devices.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

#define SCAN_WAIT_NS  (5 * GP_NS_PER_S)
#define SCAN_PAUSE_US 20000
#define MISSING_NS    GP_NS_PER_S /* for a process that has just begun */

/* Keeps the first missing item that the back end's doctor reports. */
static void note_missing(void *arg, const struct gp_finding *finding)
{
	struct gp_error *err = arg;

	if (finding->level == GP_FINDING_MISSING && !*err->text)
		gp_fail(err, 0, "%s", finding->text);
}

static int cannot_open(const struct gp_gpu_ops *ops, int code, struct gp_error *err)
{
	struct gp_error why = {0};

	gp_backend_doctor(ops, note_missing, &why);
	if (*why.text)
		return gp_fail(err, code, "%s", why.text);
	return gp_fail(err, code, "the GPUs cannot be used (%s): %s; see gpreempt doctor",
		       ops->name, gp_error_name(code));
}

static int open_backend(struct gp_devices *devices, const struct gp_gpu_ops *ops, unsigned flags,
			struct gp_error *err)
{
	int n = ops->probe ? ops->probe() : 0, r = 0;

	if (n < 0)
		return cannot_open(ops, n, err);
	for (int i = 0; i < n && devices->n < GP_DEVICES_MAX; i++) {
		struct gp_device *d = &devices->device[devices->n];
		int code = ops->open((unsigned)i, flags, &d->gpu);

		d->index = (unsigned)i;
		if (!code)
			devices->n++;
		else if (!r)
			r = cannot_open(ops, code, err);
	}
	return r;
}

/* It is used only where it is asked for, also if a daemon used it before. */
static bool simulated_runs(void)
{
	const struct gp_gpu_ops *sim = gp_backend_find("sim");

	return sim && sim->probe && sim->probe() > 0;
}

int gp_devices_open(struct gp_devices *devices, unsigned flags, struct gp_error *err)
{
	int r = 0;

	*devices = (struct gp_devices){0};
	for (const struct gp_gpu_ops *const *b = gp_backends; *b; b++) {
		int code = open_backend(devices, *b, flags, err);

		r = r ? r : code;
	}
	if (devices->n)
		return 0;
	if (r)
		return r;
	/* The only back end in use was chosen by the user: its reason is the answer. */
	if (gp_backends[0] && !gp_backends[1])
		return cannot_open(gp_backends[0], -ENODEV, err);
	return gp_fail(err, -ENODEV, "no GPU was found that can be scheduled; %s",
		       simulated_runs()
			       ? "a simulated GPU runs here: set GPREEMPT_GPU=sim to use it"
			       : "gpreempt doctor says why");
}

void gp_devices_close(struct gp_devices *devices)
{
	for (unsigned i = 0; i < devices->n; i++)
		devices->device[i].gpu->ops->close(devices->device[i].gpu);
	devices->n = 0;
}

/* Ranks error codes: the code with the highest rank explains the most. */
static int rank_of(int code)
{
	switch (code) {
	case -ESRCH: return 4;
	case -EPERM:
	case -EACCES: return 3;
	case -ENODEV: return 1;
	case 0: return 0;
	default: return 2;
	}
}

static int find_on(const struct gp_device *d, pid_t pid, struct gp_seen *seen, struct gp_error *err)
{
	int r = gp_gpu_find(d->gpu, pid, seen, err);

	if (gp_error_is_local(r))
		return gp_fail(err, r, "gpreempt itself cannot examine process %d: %s", pid,
			       gp_error_name(r));
	return r ? gp_fail(err, r, "process %d cannot be inspected: %s", pid, gp_error_name(r)) : 0;
}

static int find(const struct gp_devices *devices, pid_t pid, bool any, struct gp_task_ref *ref,
		unsigned max, struct gp_error *err)
{
	struct gp_error worst = {0};
	unsigned n = 0;

	for (unsigned i = 0; i < devices->n; i++) {
		const struct gp_device *d = &devices->device[i];
		struct gp_error why = {0};
		struct gp_seen seen;

		if (find_on(d, pid, &seen, &why) && !(any && why.code == -ENODATA)) {
			if (why.code == -ENODATA)
				why.code = -ENODEV;
			if (rank_of(why.code) > rank_of(worst.code))
				worst = why;
		} else {
			if (n < max)
				ref[n] = (struct gp_task_ref){
					.device = i, .gpu = d->gpu, .seen = seen};
			n++;
		}
	}
	if (n)
		return (int)n;
	if (worst.code == -ENODEV && devices->n > 1)
		return gp_fail(err, -ENODEV,
			       "process %d has no queues on any of the %u GPUs here; gpreempt ps "
			       "lists processes that have",
			       pid, devices->n);
	return gp_fail(err, worst.code, "%s", worst.text);
}

int gp_devices_find(const struct gp_devices *devices, pid_t pid, struct gp_task_ref *ref,
		    unsigned max, struct gp_error *err)
{
	return find(devices, pid, false, ref, max, err);
}

int gp_devices_find_any(const struct gp_devices *devices, pid_t pid, struct gp_task_ref *ref,
			unsigned max, struct gp_error *err)
{
	return find(devices, pid, true, ref, max, err);
}

static int missing(struct gp_gpu *gpu, struct gp_error *err)
{
	int r = gp_gpu_missing(gpu, err);

	return r == -ENOTSUP ? 0 : r;
}

/* -EAGAIN: the back end still looks for tasks. */
static int count_tasks(struct gp_gpu *gpu)
{
	uint64_t begin_ns = gp_monotonic_ns();

	for (;;) {
		int n = gp_gpu_scan(gpu, gp_monotonic_ns(), NULL, 0);
		int r = n < 0 ? n : missing(gpu, NULL);
		uint64_t limit_ns = r == -EAGAIN ? SCAN_WAIT_NS : n < 0 ? 0 : MISSING_NS;

		if (!r || gp_monotonic_ns() >= begin_ns + limit_ns)
			return n;
		usleep(SCAN_PAUSE_US);
	}
}

int gp_devices_missing(const struct gp_devices *devices, struct gp_error *err)
{
	int r = 0;

	for (unsigned i = 0; i < devices->n && !r; i++)
		r = missing(devices->device[i].gpu, err);
	return r;
}

/* Appends the tasks of one device to the `n` tasks in *ref. Returns the new number. */
static int scan_device(const struct gp_devices *devices, unsigned device, struct gp_task_ref **ref,
		       unsigned n)
{
	struct gp_gpu *gpu = devices->device[device].gpu;
	uint64_t now_ns = gp_monotonic_ns();
	int count = count_tasks(gpu), got;
	struct gp_task_ref *p;
	struct gp_seen *seen;

	if (count <= 0)
		return count < 0 ? count : (int)n;
	seen = calloc((unsigned)count, sizeof *seen);
	p = realloc(*ref, (n + (unsigned)count) * sizeof *p);
	if (p)
		*ref = p;
	if (!seen || !p) {
		free(seen);
		return -ENOMEM;
	}
	/* The next scan finds tasks that appear after the first call. */
	got = gp_gpu_scan(gpu, now_ns, seen, (unsigned)count);
	for (int i = 0; i < got && i < count; i++)
		p[n++] = (struct gp_task_ref){.device = device, .gpu = gpu, .seen = seen[i]};
	free(seen);
	return got < 0 ? got : (int)n;
}

int gp_devices_scan(const struct gp_devices *devices, unsigned only, struct gp_task_ref **ref,
		    struct gp_error *err)
{
	int n = 0;

	*ref = NULL;
	for (unsigned i = 0; i < devices->n; i++) {
		int r = only < GP_DEVICES_MAX && only != i
				? n
				: scan_device(devices, i, ref, (unsigned)n);

		if (r < 0) {
			free(*ref);
			*ref = NULL;
			return gp_fail(err, r, "cannot list the processes that use %s: %s",
				       devices->device[i].gpu->info.name, gp_error_name(r));
		}
		n = r;
	}
	return n;
}

int gp_refuse_shared(const struct gp_seen *seen, pid_t pid, bool force, const char *why,
		     struct gp_error *err)
{
	if (!(seen->flags & GP_SEEN_SHARED) || force)
		return 0;
	return gp_fail(err, -EPERM, "process %d (%s) %s", pid, seen->name, why);
}

int gp_task_ref_queues(const struct gp_task_ref *ref, bool closely, struct gp_queue **queue,
		       struct gp_error *err)
{
	struct gp_gpu *gpu = ref->gpu;
	unsigned capacity = 16;

	*queue = NULL;
	if (!gp_gpu_commands(gpu)->queues)
		return gp_fail(err, -ENOTSUP, "%s does not list queues", gpu->info.name);
	for (;;) {
		struct gp_queue *q = realloc(*queue, capacity * sizeof *q);
		int n = q ? gp_gpu_queues(gpu, ref->seen.key, closely, q, capacity, err)
			  : gp_fail(err, -ENOMEM, "not enough memory");

		*queue = q ? q : *queue;
		if (n <= (int)capacity) {
			if (n < 0) {
				free(*queue);
				*queue = NULL;
			}
			return n;
		}
		capacity = (unsigned)n + 16;
	}
}

bool gp_task_ref_looks_changed(const struct gp_task_ref *ref)
{
	struct gp_queue *queue = NULL;
	int n = gp_task_ref_queues(ref, false, &queue, NULL);
	bool changed = false;

	for (int i = 0; queue && i < n; i++)
		changed |= queue[i].held || (!queue[i].copies && queue[i].slice_us &&
					     queue[i].slice_us <= GP_TINY_SLICE_US);
	free(queue);
	return changed;
}
