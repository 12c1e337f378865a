/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the processes that use the GPU: from RM's list of computing processes, and, for processes
 * that RM does not list, by a sweep over all processes of the machine.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/process.h"
#include "gpu/nvidia/processes.h"

#define PIDS_NS         (20 * GP_NS_PER_MS)
#define SWEEP_NS        (250 * GP_NS_PER_MS)
#define SWEEP_SELDOM_NS (2 * GP_NS_PER_S) /* if RM lists the computing processes */
#define FIRST_SEARCH_NS (2 * GP_NS_PER_S) /* shorter than GP_STUCK_NS; RM takes 4 us an index */
#define SWEEP_STEP_NS   (GP_NS_PER_MS / 2)
#define SWEEPS_PER_FULL 16 /* every 16th sweep examines all processes again */

static uint64_t open_files(pid_t pid)
{
	char path[64];
	struct stat s;

	snprintf(path, sizeof path, "/proc/%d/fd", pid);
	return stat(path, &s) ? 0 : (uint64_t)s.st_size; /* 0 before Linux 6.2 */
}

/* Whether it is certain that a process cannot be added. Other errors can be temporary. */
static bool is_final(int error)
{
	return error == -ESRCH || error == -ENODEV || error == -EPERM || error == -EACCES;
}

static void note_error(struct gp_nv_gpu *d, pid_t pid, int error)
{
	bool lives = error && (!kill(pid, 0) || errno != ESRCH);

	/* A process that does not answer is in execve, without a thread that could use the GPU. The
	 * sweep counts as complete without it: its owner decides how long that lasts. */
	if (!lives || is_final(error) || error == -ETIMEDOUT || d->sweep_error)
		return;
	d->sweep_error = error;
	d->sweep_missing = pid;
}

/* Whether the process is to be examined in this sweep. */
static bool is_of_interest(struct gp_nv_gpu *d, pid_t pid, uint64_t files)
{
	uint64_t before;

	if (pid == d->self || gp_nv_find_pid(d, pid))
		return false;
	if (files && gp_table_get(&d->examined, (uint64_t)pid, &before) && before == files)
		return false;
	return !gp_process_is_our_fork(pid);
}

/* Examines a process until the given time. false: not complete, call again. */
static bool examine_pid(struct gp_nv_gpu *d, pid_t pid, uint64_t until_ns)
{
	struct gp_nv_listing *l = &d->listing;
	uint64_t files = open_files(pid);
	int r = 0;

	if (!l->under_way && !is_of_interest(d, pid, files))
		return true;
	if (!l->under_way)
		r = gp_nv_listing_begin(l, pid);
	if (!r && gp_nv_listing_step(l, until_ns))
		return false;
	if (!r && !gp_nv_find_pid(d, pid)) /* RM may have listed it meanwhile */
		r = l->n       ? gp_nv_add_process(d, pid, false, l, NULL)
		    : l->error ? l->error
			       : -ENODEV;
	note_error(d, pid, r);
	if (is_final(r) && files)
		gp_table_put(&d->examined, (uint64_t)pid, files);
	gp_nv_listing_end(l);
	return true;
}

static int note_pid(void *arg, pid_t pid)
{
	struct gp_nv_gpu *d = arg;
	pid_t *list;

	if (d->nto_sweep == d->to_sweep_capacity) {
		unsigned capacity = d->to_sweep_capacity ? 2 * d->to_sweep_capacity : 1024;

		list = realloc(d->to_sweep, capacity * sizeof(*list));
		if (!list)
			return -ENOMEM;
		d->to_sweep = list;
		d->to_sweep_capacity = capacity;
	}
	d->to_sweep[d->nto_sweep++] = pid;
	return 0;
}

/* -errno: the process was not found. RM lists it as computing, and does not name its groups. It may
 * have just begun, or its client may be old: then many indices have to be searched. The caller of
 * the first scan() waits for that, because it may be a command, which has no later scan. */
static int find_groups_of(struct gp_nv_gpu *d, struct gp_nv_process *p, uint64_t until_ns)
{
	if (p->leader || gp_nv_computes(&p->target) || gp_rm_lists(&d->rm, p->target.pid) <= 0)
		return 0;
	p->rescan_ns = 0;
	gp_nv_refresh(d, p, gp_monotonic_ns());
	if (!d->swept)
		gp_nv_search_until_found(d, p, until_ns);
	if (gp_nv_computes(&p->target) || gp_nv_has_left(p))
		return 0;
	return p->searching ? -EAGAIN : -EIO;
}

/* Goes on after a process that is not found: the caller of scan() gets the others. */
static void find_unnamed(struct gp_nv_gpu *d)
{
	uint64_t until_ns = gp_monotonic_ns() + FIRST_SEARCH_NS;

	for (unsigned i = 0; i < d->nprocesses; i++) {
		int error = find_groups_of(d, d->process[i], until_ns);

		if (!error || d->sweep_error)
			continue;
		d->sweep_error = error;
		d->sweep_missing = d->process[i]->target.pid;
	}
}

static void end_sweep(struct gp_nv_gpu *d)
{
	find_unnamed(d);
	d->nto_sweep = d->next_to_sweep = 0;
	d->sweeps_done = d->sweeps;
	d->sweep_urgent = false;
	d->drop_ended_ns = 0; /* heirs are known now */
	d->sweep_ns = gp_time_add(gp_monotonic_ns(),
				  d->has_pids && !d->sweep_error ? SWEEP_SELDOM_NS : SWEEP_NS);
	gp_nv_publish_seen(d);
	if (!d->swept)
		d->swept_ns = gp_monotonic_ns();
	d->swept = true;
	pthread_mutex_lock(&d->requests.lock);
	d->scan_error = d->sweep_error;
	d->scan_missing = d->sweep_missing;
	pthread_mutex_unlock(&d->requests.lock);
	gp_nv_notify(d);
}

/* Lists the processes in /proc. They are examined step by step, so that actions do not wait. */
static void begin_sweep(struct gp_nv_gpu *d)
{
	if (d->sweeps++ % SWEEPS_PER_FULL == 0)
		gp_table_clear(&d->examined);
	d->nto_sweep = d->next_to_sweep = 0;
	d->sweep_error = gp_process_each(note_pid, d);
	d->sweep_missing = 0;
	d->sweep_ns = GP_NEVER; /* until this sweep has ended */
	if (!d->nto_sweep)
		end_sweep(d); /* no memory: a waiting scan() must not wait for ever */
}

static void sweep_step(struct gp_nv_gpu *d)
{
	uint64_t until_ns = gp_monotonic_ns() + SWEEP_STEP_NS;

	while (d->next_to_sweep < d->nto_sweep && gp_monotonic_ns() < until_ns)
		d->next_to_sweep += examine_pid(d, d->to_sweep[d->next_to_sweep], until_ns);
	if (d->next_to_sweep == d->nto_sweep)
		end_sweep(d);
}

bool gp_nv_sweep_some(struct gp_nv_gpu *d, uint64_t now_ns)
{
	if (now_ns >= d->sweep_ns)
		begin_sweep(d);
	if (!d->nto_sweep)
		return false;
	sweep_step(d);
	return true;
}

bool gp_nv_sweep_since(struct gp_nv_gpu *d, unsigned *sweep)
{
	if (!*sweep)
		*sweep = d->sweeps + 1;
	if (d->sweeps_done >= *sweep)
		return true;
	d->sweep_urgent = true;
	if (!d->nto_sweep)
		d->sweep_ns = 0;
	return false;
}

/* A process that cannot be added (no permission) is not tried again. */
static bool try_to_add(struct gp_nv_gpu *d, pid_t pid)
{
	uint64_t key = (uint64_t)(uint32_t)pid | (uint64_t)1 << 32,
		 start_time = gp_process_start_time(pid), before;
	int r;

	if (pid <= 0 || pid == d->self || !start_time ||
	    (gp_table_get(&d->examined, key, &before) && before == start_time))
		return false;
	r = gp_nv_add_process(d, pid, true, NULL, NULL);
	note_error(d, pid, r);
	if (is_final(r))
		gp_table_put(&d->examined, key, start_time);
	return !r;
}

/* RM lists a process soon after it has made its first group. */
static void read_pids(struct gp_nv_gpu *d)
{
	struct nv2080_pids pids;
	int n = gp_rm_pids(&d->rm, &pids);
	bool came = false;

	d->has_pids = n >= 0;
	for (int i = 0; i < n; i++) {
		pid_t pid = (pid_t)pids.pid[i];
		struct gp_nv_process *p = gp_nv_find_pid(d, pid);

		if (!p)
			came |= try_to_add(d, pid);
		if (p && !p->leader && !p->computes) {
			p->computes = true;
			p->rescan_ns = 0;
		}
	}
	if (!came)
		return;
	gp_nv_publish_seen(d);
	gp_nv_notify(d);
}

bool gp_nv_list_computing(struct gp_nv_gpu *d, uint64_t now_ns)
{
	if (now_ns < d->pids_ns)
		return false;
	read_pids(d);
	d->pids_ns = d->has_pids ? gp_time_add(now_ns, PIDS_NS) : GP_NEVER;
	return true;
}

bool gp_nv_may_compute(struct gp_nv_gpu *d, pid_t pid)
{
	return gp_rm_lists(&d->rm, pid);
}

uint64_t gp_nv_next_sweep_ns(const struct gp_nv_gpu *d)
{
	if (d->nto_sweep)
		return 0;
	return d->sweep_ns < d->pids_ns ? d->sweep_ns : d->pids_ns;
}
