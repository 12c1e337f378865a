/* SPDX-License-Identifier: Apache-2.0 */
/* The caller's own queues, held from inside: without a debugger, an undo record or a watching
 * thread. */
#include <errno.h>
#include <unistd.h>

#include "lib/lib.h"

#define FLAGS_KNOWN GPREEMPT_NORMAL_PRIORITY

/* The held state belongs to the process, not to a handle: so only one handle at a time has it. */
static int check(struct gpreempt *g)
{
	const struct gp_lib_machine *m = g->machine;

	if (g->pid != getpid())
		return gp_fail(
			&g->err, -EINVAL,
			"process %d is not the caller; use gpreempt_suspend_queues() to hold it",
			g->pid);
	if (m->holds_self && m->holds_self != g)
		return gp_fail(&g->err, -EBUSY,
			       "another handle of this program already holds its own queues");
	return 0;
}

/* Releases the queues on all devices. Returns their number, or the first failure. */
static int release_all(struct gpreempt *g, struct gp_error *err)
{
	const struct gp_devices *devices = &g->machine->devices;
	int n = 0, failed = 0;

	for (unsigned i = 0; i < devices->n; i++) {
		struct gp_gpu *gpu = devices->device[i].gpu;
		int r = gp_gpu_release_self(gpu, err);

		n += r > 0 ? r : 0;
		if (r < 0 && r != -ENOTSUP && !failed)
			failed = r;
	}
	if (!failed)
		g->machine->holds_self = NULL;
	return failed ? failed : n;
}

/* After a failure no queue is held, not even one that was held before: holding only some of the
 * queues is worse than holding all or none. */
static int hold_all(struct gpreempt *g, unsigned flags)
{
	const struct gp_devices *devices = &g->machine->devices;
	unsigned how = flags & GPREEMPT_NORMAL_PRIORITY ? GP_SELF_NORMAL_PRIORITY : 0;
	bool can = false;
	int n = 0, r = 0;

	g->machine->holds_self = g;
	for (unsigned i = 0; i < devices->n && r >= 0; i++) {
		struct gp_gpu *gpu = devices->device[i].gpu;

		if (!gp_gpu_commands(gpu)->hold_self)
			continue;
		can = true;
		r = gp_gpu_hold_self(gpu, how, &g->err);
		n += r > 0 ? r : 0;
	}
	if (r >= 0 && n)
		return n;
	release_all(g, NULL);
	if (r < 0)
		return r;
	if (!can)
		return gp_fail(
			&g->err, -ENOTSUP,
			"no GPU of this machine lets a program hold its own queues from inside");
	return gp_fail(&g->err, -ENODEV, "this program has no queues that compute");
}

void gp_lib_release_self(struct gpreempt *g)
{
	if (g->machine->holds_self != g)
		return;
	release_all(g, NULL);
	g->machine->holds_self = NULL; /* closing the devices tries again */
}

int gpreempt_hold_self(struct gpreempt *g, unsigned flags)
{
	struct gp_lib_call call;
	int r = gp_lib_enter(&call, g);

	if (!r)
		r = flags & ~(unsigned)FLAGS_KNOWN ? -EINVAL : check(g);
	if (!r)
		r = hold_all(g, flags);
	return gp_lib_leave(&call, r);
}

int gpreempt_release_self(struct gpreempt *g)
{
	struct gp_lib_call call;
	int r = gp_lib_enter(&call, g);

	if (!r)
		r = check(g);
	if (!r && g->machine->holds_self)
		r = release_all(g, &g->err);
	return gp_lib_leave(&call, r);
}
