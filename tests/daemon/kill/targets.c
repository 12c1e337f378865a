/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/process.h"
#include "world.h"

#define DRAIN_MS 60000 /* what a load has queued takes a moment, more so when others go first */

static void publish(struct world *w, unsigned i)
{
	struct target *t = &w->target[i];

	atomic_store(&w->shared->target[i].start_time, t->start_time);
	atomic_store(&w->shared->target[i].pid, t->load.pid);
}

void start_target(struct world *w, unsigned i)
{
	struct target *t = &w->target[i];
	int r;

	if (t->source == BY_RULE)
		setenv("KILL_TEST_CLASS", t->class, 1);
	else
		unsetenv("KILL_TEST_CLASS");
	r = w->gpu->load(&t->load, t->busy);
	if (r)
		fail(w, "target %u cannot be started: %d", i, r);
	fcntl(t->load.out, F_SETFL, O_NONBLOCK);
	t->start_time = gp_process_start_time(t->load.pid);
	t->mark_ns = 0;
	if (t->source == BY_USER)
		set_class(w, i);
	publish(w, i);
}

static void forget(struct world *w, unsigned i)
{
	close(w->target[i].load.out);
	w->target[i].load = (struct load){.out = -1};
}

void kill_target(struct world *w, unsigned i)
{
	atomic_store(&w->shared->target[i].pid, 0);
	kill_now(w, &w->target[i].load.pid);
	forget(w, i);
}

void read_targets(struct world *w)
{
	char text[4096];

	for (unsigned i = 0; i < TARGETS; i++)
		while (w->target[i].load.pid > 0 &&
		       read(w->target[i].load.out, text, sizeof text) > 0)
			;
}

void end_target(struct world *w, unsigned i)
{
	struct load *load = &w->target[i].load;
	pid_t pid = load->pid;
	char text[1025] = "";
	ssize_t n;
	int status;

	atomic_store(&w->shared->target[i].pid, 0);
	read_targets(w);
	kill(pid, SIGTERM);
	status = wait_for(&load->pid, DRAIN_MS);
	n = read(load->out, text, sizeof text - 1);
	if (n > 0)
		text[n] = 0;
	if (status)
		fail(w, "target %u (pid %d) lost work, status %d: %s", i, pid, status, text);
	forget(w, i);
}

void mark_progress(struct world *w)
{
	struct gpu_look look;

	w->gpu->look(&look);
	for (unsigned i = 0; i < TARGETS; i++) {
		const struct gpu_task *t = gpu_look_find(&look, w->target[i].load.pid);

		w->target[i].mark_ns = t ? t->run_ns : 0;
	}
}
