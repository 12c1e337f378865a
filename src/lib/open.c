/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles, each of which stands for one process, and the devices, which are opened once for all
 * handles: each device has threads and scans all processes, and a scheduler has a handle for every
 * process.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/process.h"
#include "build_config.h"
#include "gpreempt.h"
#include "lib/lib.h"

#define EXIT_NS (2 * GP_NS_PER_S) /* how long exit() waits for calls in progress */

/* Held while the machine is created and destroyed. Taken before the machine's own lock. */
static pthread_mutex_t life = PTHREAD_MUTEX_INITIALIZER;
static struct gp_lib_machine *machine;
/* the process that owns it, as a forked child has only a copy; 0: none */
static _Atomic pid_t machine_owner;

/* Back ends log for programs that have a log. The library must not write to the caller's stderr. */
static void drop_line(void *arg, enum gp_log_level level, const char *line)
{
	(void)arg;
	(void)level;
	(void)line;
}

__attribute__((constructor)) static void silence_log(void)
{
	gp_log_set_sink(drop_line, NULL);
}

static int make_machine(struct gp_error *err)
{
	struct gp_lib_machine *m = calloc(1, sizeof *m);
	pthread_condattr_t monotonic;
	int r;

	if (!m)
		return gp_fail(err, -ENOMEM, "not enough memory");
	machine_owner = getpid();
	/* GP_OPEN_QUIET: the library does not report utilisation, and without it observing costs
	 * the GPU's work nothing. */
	r = gp_backends_select_by_environment(err);
	if (!r)
		r = gp_devices_open(&m->devices, GP_OPEN_QUIET, err);
	if (r) {
		machine_owner = 0;
		free(m);
		return r;
	}
	pthread_mutex_init(&m->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&m->wake, &monotonic);
	pthread_condattr_destroy(&monotonic);
	machine = m;
	return 0;
}

static void end_machine(struct gp_lib_machine *m)
{
	gp_lib_stop_watching(m);
	gp_devices_close(&m->devices);
	pthread_cond_destroy(&m->wake);
	pthread_mutex_destroy(&m->lock);
	free(m->split);
	free(m);
	machine = NULL;
	machine_owner = 0;
}

/* Adds the handle; opens the devices for the first handle. Returns 0 or -errno. */
static int join_machine(struct gpreempt *g, struct gp_error *err)
{
	pid_t owner = machine_owner;
	int r;

	/* Before any lock: a thread that does not exist in this child may hold it. */
	if (owner && owner != getpid())
		return gp_fail(err, -EBUSY,
			       "this process was forked by a process that uses the library; call "
			       "execve first");
	pthread_mutex_lock(&life);
	r = machine ? 0 : make_machine(err);
	if (!r) {
		pthread_mutex_lock(&machine->lock);
		g->machine = machine;
		g->next = machine->first;
		machine->first = g;
		machine->handles++;
		pthread_mutex_unlock(&machine->lock);
	}
	pthread_mutex_unlock(&life);
	return r;
}

/* Removes the handle; closes the devices after the last one. */
static void leave_machine(struct gpreempt *g)
{
	struct gp_lib_machine *m = g->machine;
	bool last;

	pthread_mutex_lock(&life);
	pthread_mutex_lock(&m->lock);
	for (struct gpreempt **p = &m->first; *p; p = &(*p)->next)
		if (*p == g) {
			*p = g->next;
			break;
		}
	last = !--m->handles;
	pthread_mutex_unlock(&m->lock);
	if (last)
		end_machine(m);
	pthread_mutex_unlock(&life);
}

int gp_lib_enter(struct gp_lib_call *call, struct gpreempt *g)
{
	*call = (struct gp_lib_call){.saved_errno = errno};
	if (!g || !g->machine)
		return -EINVAL;
	if (g->owner != getpid()) {
		g->err = (struct gp_error){0};
		return gp_fail(&g->err, -EBADF,
			       "the handle was opened by the parent process; open one after fork");
	}
	pthread_mutex_lock(&g->machine->lock);
	call->locked = g;
	g->err = (struct gp_error){0};
	return 0;
}

int gp_lib_leave(struct gp_lib_call *call, int r)
{
	struct gpreempt *g = call->locked;

	if (g) {
		if (r < 0)
			gp_fail(&g->err, r, "%s", gp_error_name(r));
		else
			g->err = (struct gp_error){0}; /* failures on the way were handled */
		pthread_mutex_unlock(&g->machine->lock);
	}
	errno = call->saved_errno;
	return r;
}

/* Other threads may be in a call, and the watching thread may be at work: they get some time. */
static int lock_soon(pthread_mutex_t *lock)
{
	struct timespec until = gp_timespec(gp_monotonic_ns() + EXIT_NS);

	return pthread_mutex_clocklock(lock, CLOCK_MONOTONIC, &until);
}

/*
 * A program that calls exit() leaves no queue held. If a call does not end (it may be this thread's
 * own, interrupted by a signal handler), the undo records remain, as if the program had been
 * killed.
 */
__attribute__((destructor)) static void release_at_exit(void)
{
	if (machine_owner != getpid() || lock_soon(&life))
		return;
	if (machine && !lock_soon(&machine->lock)) {
		for (struct gpreempt *g = machine->first; g; g = g->next)
			gp_lib_drop_all(g);
		pthread_mutex_unlock(&machine->lock);
	}
	pthread_mutex_unlock(&life);
}

#define FLAGS_KNOWN (GPREEMPT_FROM_AFAR | GPREEMPT_FORCE)

/* Handles. */

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
	r = pid > 0 ? gp_process_find(pid, &g->start_time, err)
		    : gp_fail(err, -ESRCH, "there is no process %d", pid);
	if (!r)
		r = join_machine(g, err);
	if (r) {
		free(g);
		return r;
	}
	r = check_access(g);
	if (r) {
		gp_fail(err, r, "%s", g->err.text);
		leave_machine(g);
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
		leave_machine(g);
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

/* The sizes that programs were compiled with. They never change; see `Growth` in gpreempt.h. */
static_assert(sizeof(struct gpreempt_queue) == 160, "queue");
static_assert(sizeof(struct gpreempt_snapshot) == 56, "snapshot");
static_assert(sizeof(struct gpreempt_history) == 48, "history");
static_assert(sizeof(struct gpreempt_count) == 24, "count");
static_assert(sizeof(struct gpreempt_series) == 64, "series");
static_assert(sizeof(struct gpreempt_sighting) == 64, "sighting");
static_assert(sizeof(struct gpreempt_statistics) == 88, "statistics");

const char *gpreempt_version(void)
{
	return GP_VERSION;
}

const char *gpreempt_error_text(int code)
{
	return gp_error_name(code);
}
