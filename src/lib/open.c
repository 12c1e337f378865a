/* SPDX-License-Identifier: Apache-2.0 */
/* Handles. A handle stands for one process. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/process.h"
#include "lib/lib.h"

#define FLAGS_KNOWN (GPREEMPT_FROM_AFAR | GPREEMPT_FORCE)

/* Checks that the process may be inspected on at least one GPU. A process without queues is no
 * error. */
static int check_access(struct gpreempt *g)
{
	struct gp_lib_call call;
	struct gp_task_ref *ref = NULL;
	int r = gp_lib_enter(&call, g);

	if (!r)
		r = gp_lib_find_tasks(g, &ref);
	free(ref);
	return gp_lib_leave(&call, r < 0 ? r : 0);
}

static int open_handle(pid_t pid, unsigned flags, struct gpreempt **out, struct gp_error *err)
{
	struct gpreempt *g;
	int r;

	if (flags & ~(unsigned)FLAGS_KNOWN)
		return gp_fail(err, -EINVAL, "unknown flags 0x%x", flags & ~(unsigned)FLAGS_KNOWN);
	g = calloc(1, sizeof *g);
	if (!g)
		return gp_fail(err, -ENOMEM, "not enough memory");
	g->owner = getpid();
	g->pid = pid;
	g->flags = flags;
	g->start_time = pid > 0 ? gp_process_start_time(pid) : 0;
	r = g->start_time ? gp_lib_machine_join(g, err)
			  : gp_fail(err, -ESRCH, "there is no process %d", pid);
	if (r) {
		free(g);
		return r;
	}
	r = check_access(g);
	if (r) {
		gp_fail(err, r, "%s", g->err.text);
		gp_lib_machine_leave(g);
		free(g);
		return r;
	}
	*out = g;
	return 0;
}

int gpreempt_open(pid_t pid, unsigned flags, struct gpreempt **g, char *why, size_t size)
{
	struct gp_error err = {0};
	int saved = errno, r;

	if (!g)
		return -EINVAL;
	*g = NULL;
	r = open_handle(pid, flags, g, &err);
	if (why && size)
		snprintf(why, size, "%s", err.text);
	errno = saved;
	return r;
}

/* Closes the copy in a forked child: only memory and files. */
static void close_copy(struct gpreempt *g)
{
	for (unsigned i = 0; i < g->nattachments; i++)
		if (g->attachment[i].hold.pidfd >= 0)
			close(g->attachment[i].hold.pidfd);
	gp_undo_close(g->undo);
	free(g->attachment);
	free(g);
}

void gpreempt_close(struct gpreempt *g)
{
	struct gp_lib_call call;
	int saved = errno;

	if (!g)
		return;
	if (g->owner != getpid()) {
		close_copy(g);
	} else {
		if (!gp_lib_enter(&call, g))
			gp_lib_drop_all(g);
		gp_lib_leave(&call, 0);
		gp_lib_machine_leave(g);
		free(g);
	}
	errno = saved;
}

const char *gpreempt_why(const struct gpreempt *g)
{
	return g ? g->err.text : "no handle was given";
}

const char *gpreempt_device_name(const struct gpreempt *g, unsigned device)
{
	/* The list of devices does not change while a handle is open, so no lock is needed. */
	if (!g || g->owner != getpid() || device >= g->machine->devices.n)
		return NULL;
	return g->machine->devices.device[device].gpu->info.name;
}
