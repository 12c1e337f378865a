/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The devices are open once, however many handles there are: each brings threads and looks at all
 * processes, and a scheduler has a handle for every process.
 */
#include "lib/lib.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

#define EXIT_NS (2 * GP_NS_PER_S) /* how long exit() waits for calls to end */

/* Held while the machine is made and ended; before the machine's own lock. */
static pthread_mutex_t life = PTHREAD_MUTEX_INITIALIZER;
static struct gp_lib_machine *machine;
static _Atomic pid_t machine_owner; /* who has one: a fork has only a copy; 0 = nobody */

/* What back ends have to say in a log is for programs that have one. */
static void say_nothing(void *arg, enum gp_log_level level, const char *line)
{
	(void)arg;
	(void)level;
	(void)line;
}

__attribute__((constructor)) static void be_silent(void)
{
	gp_log_set_sink(say_nothing, NULL);
}

/* ---- one for all handles ------------------------------------------------------------------------
 */

static int make_machine(struct gp_error *err)
{
	struct gp_lib_machine *m = calloc(1, sizeof *m);
	pthread_condattr_t monotonic;
	int r;

	if (!m)
		return gp_fail(err, -ENOMEM, "no memory");
	machine_owner = getpid();
	/* Nobody asks here who uses a GPU how much: without that, looking costs its work nothing.
	 */
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
	gp_lib_stop_keeping(m);
	gp_devices_close(&m->devices);
	pthread_cond_destroy(&m->wake);
	pthread_mutex_destroy(&m->lock);
	free(m->split);
	free(m);
	machine = NULL;
	machine_owner = 0;
}

int gp_lib_machine_join(struct gpreempt *g, struct gp_error *err)
{
	pid_t owner = machine_owner;
	int r;

	/* Before any lock: a thread that is not here may hold it. */
	if (owner && owner != getpid())
		return gp_fail(err, -EBUSY,
		               "this process was forked by one that uses the library: call "
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

void gp_lib_machine_leave(struct gpreempt *g)
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

/* ---- calls --------------------------------------------------------------------------------------
 */

int gp_lib_enter(struct gp_lib_call *call, struct gpreempt *g)
{
	*call = (struct gp_lib_call){.saved_errno = errno};
	if (!g)
		return -EINVAL;
	if (g->owner != getpid()) {
		g->err = (struct gp_error){0};
		return gp_fail(&g->err, -EBADF,
		               "this process was forked by the one that opened the handle");
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
			g->err = (struct gp_error){0}; /* what failed on the way was made good */
		pthread_mutex_unlock(&g->machine->lock);
	}
	errno = call->saved_errno;
	return r;
}

/* ---- exit ---------------------------------------------------------------------------------------
 */

/* Another thread may be in a call, or the one that keeps holds at its work: they get a while. */
static int lock_soon(pthread_mutex_t *lock)
{
	struct timespec until = gp_timespec(gp_monotonic_ns() + EXIT_NS);

	return pthread_mutex_clocklock(lock, CLOCK_MONOTONIC, &until);
}

/* A program that calls exit() leaves nothing held. If a call does not end (it may be this thread's
 * own, under a signal handler), the undo records have to do, as when the program is killed. */
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
