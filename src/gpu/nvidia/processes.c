/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The known processes: their groups are found, examined again for new groups and changed settings,
 * and handed to a child when their process ends.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/process.h"
#include "gpu/nvidia/processes.h"

#define RESCAN_TOUCHED_NS (50 * GP_NS_PER_MS)
#define RESCAN_NS         (500 * GP_NS_PER_MS)
#define RESCANS_PER_FULL  20
#define SETTLE_NS         (100 * GP_NS_PER_MS) /* CUDA sets the slice of a new group sooner */
#define RESCAN_SETTLE_NS  (2 * GP_NS_PER_MS)
#define VERIFY_NS         (2 * GP_NS_PER_MS)  /* after an action; the next action goes first */
#define READ_BACK_NS      GP_NS_PER_S         /* of each task: other programs may hold it */
#define LEFT_PAUSE_NS     (20 * GP_NS_PER_MS) /* for the search for heirs */
#define REOPEN_NS         GP_NS_PER_S         /* first pause, then twice as long, up to */
#define REOPEN_MAX_NS     (32 * GP_NS_PER_S)
#define SEARCH_PAUSE_NS   (5 * GP_NS_PER_MS) /* between steps of a long search: 10 % of a core */
#define SEARCH_STEP       256                /* indices between two checks for other work */
#define COMPLETE_TRIES    3
#define LISTING_STEP_NS   (GP_NS_PER_MS / 2)

struct gp_nv_process *gp_nv_find_process(struct gp_nv_gpu *d, uint64_t key)
{
	for (unsigned i = 0; i < d->nprocesses; i++)
		if (d->process[i]->key == (key & ~(uint64_t)63))
			return d->process[i];
	return NULL;
}

struct gp_nv_process *gp_nv_find_pid(struct gp_nv_gpu *d, pid_t pid)
{
	for (unsigned i = 0; i < d->nprocesses; i++)
		if (d->process[i]->target.pid == pid)
			return d->process[i];
	return NULL;
}

bool gp_nv_has_task(const struct gp_nv_gpu *d, const struct gp_nv_process *p, uint32_t queue)
{
	for (unsigned i = 0; i < p->target.ngroups; i++)
		if (gp_nv_is_of_task(d, p, &p->target.group[i], queue))
			return true;
	return false;
}

void gp_nv_describe_seen(struct gp_nv_gpu *d, const struct gp_nv_process *p, unsigned split,
			 struct gp_seen *out)
{
	uint64_t memory = 0;

	gp_table_get(&d->memory, (uint64_t)p->target.pid, &memory);
	*out = (struct gp_seen){
		.key = p->key | split,
		.pid = p->target.pid,
		.queue = split ? p->split[split - 1] : GP_QUEUE_ALL,
		.flags = p->target.is_mps ? GP_SEEN_SHARED : 0,
		.start_time = p->target.start_time,
		.memory = memory,
	};
	memcpy(out->name, p->target.name, sizeof out->name);
}

/*
 * CUDA sets the slice of a group shortly after it creates the group. The undo record of a process
 * found in between would hold the driver's default slice. Such a process is not a task yet.
 */
static bool is_settled(const struct gp_nv_process *p)
{
	uint64_t now_ns = gp_monotonic_ns();

	for (unsigned i = 0; i < p->target.ngroups; i++) {
		const struct gp_nv_group *g = &p->target.group[i];

		if (g->compute && g->slice_us != GP_NV_SLICE_DEFAULT_US &&
		    now_ns < gp_time_add(g->since_ns, SETTLE_NS))
			return false;
	}
	return gp_nv_computes(&p->target);
}

/* A settled process stays settled: the undo record gives later contexts the slice of the first. */
static bool note_settled(struct gp_nv_process *p)
{
	bool was = p->settled;

	p->settled = was || is_settled(p);
	if (!p->settled && gp_nv_computes(&p->target))
		p->rescan_ns = gp_monotonic_ns() + RESCAN_SETTLE_NS;
	return p->settled != was;
}

/* Caller holds d->requests.lock. Without memory the task is added by a later call. */
static void add_seen(struct gp_nv_gpu *d, const struct gp_nv_process *p, unsigned split)
{
	if (d->nseen == d->seen_capacity) {
		unsigned capacity = d->seen_capacity ? 2 * d->seen_capacity : 32;
		struct gp_seen *s = realloc(d->seen, capacity * sizeof *s);
		struct gp_nv_task *t;

		if (!s)
			return;
		d->seen = s;
		t = realloc(d->seen_task, capacity * sizeof *t);
		if (!t)
			return;
		d->seen_task = t;
		d->seen_capacity = capacity;
	}
	gp_nv_describe_seen(d, p, split, &d->seen[d->nseen]);
	d->seen_task[d->nseen] = (struct gp_nv_task){
		.used = true,
		.key = d->seen[d->nseen].key,
		.queue = d->seen[d->nseen].queue,
		.released_since_ns = gp_monotonic_ns(),
	};
	gp_nv_describe_task(d, p, &d->seen_task[d->nseen++]);
}

void gp_nv_publish_seen(struct gp_nv_gpu *d)
{
	pthread_mutex_lock(&d->requests.lock);
	d->nseen = 0;
	for (unsigned i = 0; i < d->nprocesses; i++) {
		const struct gp_nv_process *p = d->process[i];

		if (p->leader || !p->settled)
			continue;
		for (unsigned split = 0; split <= p->nsplits; split++)
			if (gp_nv_has_task(d, p, split ? p->split[split - 1] : GP_QUEUE_ALL))
				add_seen(d, p, split);
	}
	pthread_mutex_unlock(&d->requests.lock);
}

static bool has_client(const struct gp_nv_process *p, uint32_t client)
{
	for (unsigned i = 0; i < p->target.nclients; i++)
		if (p->target.client[i].handle == client)
			return true;
	return false;
}

/* A process that reaches the same client has the same open file: the two are related by fork. The
 * client of this process is excluded: its children reach it between fork and exec. */
static struct gp_nv_process *find_sharer(struct gp_nv_gpu *d, const struct gp_nv_process *p)
{
	for (unsigned i = 0; i < d->nprocesses; i++) {
		struct gp_nv_process *q = d->process[i];

		for (unsigned k = 0; q != p && !q->leader && k < q->target.nclients; k++)
			if (q->target.client[k].handle != d->rm.client &&
			    has_client(p, q->target.client[k].handle))
				return q;
	}
	return NULL;
}

/* `leader` represents `q` from now on, and the processes that `q` represented. */
static void follow(struct gp_nv_gpu *d, struct gp_nv_process *q, struct gp_nv_process *leader)
{
	for (unsigned i = 0; i < d->nprocesses; i++)
		if (d->process[i]->leader == q)
			d->process[i]->leader = leader;
	q->leader = leader;
}

/* The process that started first represents both. */
static void note_sharer(struct gp_nv_gpu *d, struct gp_nv_process *p)
{
	struct gp_nv_process *q = p->leader ? NULL : find_sharer(d, p);

	if (!q)
		return;
	/* The process that RM lists made the client; a scheduler that borrowed the file did not. */
	if (q->computes != p->computes ? q->computes : q->target.start_time <= p->target.start_time)
		follow(d, p, q);
	else
		follow(d, q, p);
}

/* The process has, or will have, a compute group. */
static bool wants_to_compute(const struct gp_nv_process *p)
{
	return p->target.uses_cuda || p->computes;
}

/* RM left a question about the objects open: it is asked again. */
static void complete(struct gp_nv_target *t)
{
	unsigned doubtful = t->doubtful;

	for (int i = 0; i < COMPLETE_TRIES && gp_nv_has_open_questions(t); i++)
		gp_nv_rescan(t, true);
	t->doubtful |= doubtful;
}

static void search(struct gp_nv_gpu *d, struct gp_nv_process *p, uint32_t indices, bool until_found)
{
	bool more = gp_nv_search(&p->target, indices, until_found);

	complete(&p->target);

	/* A computing process has a group, however old its client. Other processes and further
	 * groups do not justify a long search: a process makes its clients at about the same
	 * time. */
	p->searching = more && (p->target.searched < GP_NV_SEARCH_QUICK ||
				(wants_to_compute(p) && !gp_nv_computes(&p->target)));
	p->search_ns = 0;
	/* The search for a known task pauses: other processes have ended or are unexamined. So does
	 * a search that RM does not answer. */
	if (p->target.doubtful || p->target.searched >= GP_NV_SEARCH_QUICK ||
	    gp_nv_computes(&p->target))
		p->search_ns = gp_monotonic_ns() + SEARCH_PAUSE_NS;
	note_sharer(d, p);
}

int gp_nv_add_process(struct gp_nv_gpu *d, pid_t pid, bool computes, struct gp_nv_listing *listing,
		      struct gp_error *err)
{
	struct gp_nv_process **list =
		realloc(d->process, (d->nprocesses + 1) * sizeof(struct gp_nv_process *));
	struct gp_nv_process *p;
	uint32_t newest;
	int r;

	if (!list)
		return -ENOMEM;
	d->process = list;
	if (gp_process_is_gpreempt(pid)) /* its files of a GPU program are borrowed */
		return gp_fail(err, -ENODEV, "process %d does not use an NVIDIA GPU", pid);
	p = calloc(1, sizeof *p);
	if (!p)
		return -ENOMEM;
	r = gp_nv_target_open(&p->target, pid, listing, err);
	if (!r) {
		r = gp_nv_target_borrow(&p->target);
		if (r == -EPERM || r == -EACCES)
			gp_process_denied(err, pid, r);
	}
	if (r) {
		gp_nv_target_close(&p->target);
		free(p);
		return r;
	}
	p->key = gp_process_key(p->target.start_time, pid);
	p->computes = computes;
	p->target.rm = &d->rm;
	d->process[d->nprocesses++] = p;
	newest = gp_rm_newest(&d->rm);
	gp_nv_search_begin(&p->target, newest ? newest : d->rm.client);
	search(d, p, GP_NV_SEARCH_QUICK, true);
	gp_nv_verify(d, p); /* another program may hold it */
	gp_nv_target_give_back(&p->target);
	p->rescan_ns = gp_time_add(gp_monotonic_ns(), RESCAN_NS);
	note_settled(p);
	return 0;
}

/* New clients have indices above the newest one that was searched. `again`: asks once more for the
 * newest indices. RM may have denied clients that exist. */
static void search_newer(struct gp_nv_gpu *d, struct gp_nv_process *p, bool again)
{
	uint32_t top = p->target.search_top, searched = p->target.searched;
	uint32_t newest = gp_rm_newest(&d->rm);
	uint32_t newer = (newest - NV_CLIENT_BASE - top) % NV_CLIENT_COUNT;

	if (!newest)
		return;
	searched = searched + newer > NV_CLIENT_COUNT ? NV_CLIENT_COUNT : searched + newer;
	if (again && newer < GP_NV_SEARCH_QUICK)
		newer = GP_NV_SEARCH_QUICK;
	gp_nv_search_begin(&p->target, newest);
	gp_nv_search(&p->target, newer, false);
	if (p->target.doubtful) { /* RM does not answer: the search begins again, in steps */
		p->searching = true;
		p->search_ns = gp_monotonic_ns() + SEARCH_PAUSE_NS;
		return;
	}
	p->target.searched = searched > newer ? searched : newer;
	note_sharer(d, p);
}

void gp_nv_verify(struct gp_nv_gpu *d, struct gp_nv_process *p)
{
	p->verify = false;
	p->read_ns = gp_monotonic_ns();
	p->verify_ns = p->read_ns + READ_BACK_NS;
	for (unsigned i = 0; i < p->target.ngroups; i++) {
		struct gp_nv_group *g = &p->target.group[i];

		if (!g->compute || g->gpu_id != d->gpu_id)
			continue;
		g->unread |= !p->touched; /* an old reading says nothing about other programs */
		gp_nv_read_back(&p->target, g);
	}
}

/* Whether a group was found or changed since its state was read back. */
static bool has_unread(const struct gp_nv_gpu *d, const struct gp_nv_process *p)
{
	for (unsigned i = 0; i < p->target.ngroups; i++) {
		const struct gp_nv_group *g = &p->target.group[i];

		if (g->compute && g->gpu_id == d->gpu_id && (g->unread || g->doubtful))
			return true;
	}
	return false;
}

void gp_nv_refresh(struct gp_nv_gpu *d, struct gp_nv_process *p, uint64_t now_ns)
{
	bool full = ++p->rescans % RESCANS_PER_FULL == 0 || !p->rescan_ns;
	bool had = gp_nv_has_task(d, p, GP_QUEUE_ALL), changed = p->files_changed;

	p->rescan_ns = gp_time_add(now_ns, p->touched ? RESCAN_TOUCHED_NS : RESCAN_NS);
	p->files_changed = false;
	if (full || !had || p->unreachable)
		changed |= gp_nv_target_refresh_files(&p->target, now_ns + LISTING_STEP_NS);
	p->unreachable = gp_nv_target_borrow(&p->target);
	if (gp_nv_has_left(p))
		p->rescan_ns = now_ns + LEFT_PAUSE_NS;
	if (p->unreachable)
		return;
	/* A new client has a new file, or belongs to a program that is starting. */
	if (changed || (wants_to_compute(p) && !gp_nv_computes(&p->target)))
		search_newer(d, p, full && !p->target.nclients);
	changed |= gp_nv_rescan(&p->target, full);
	if (p->verify || has_unread(d, p) || now_ns >= p->verify_ns)
		gp_nv_verify(d, p);
	gp_nv_release_again(d, p);
	gp_nv_target_give_back(&p->target);
	changed |= note_settled(p);
	gp_nv_publish_process(d, p);
	if (changed || had != gp_nv_has_task(d, p, GP_QUEUE_ALL))
		gp_nv_publish_seen(d);
}

void gp_nv_refresh_soon(struct gp_nv_process *p, bool failed, bool with_verify)
{
	uint64_t soon_ns = gp_monotonic_ns() + VERIFY_NS;

	p->verify |= with_verify;
	if (failed)
		p->rescan_ns = 0;
	else if (p->verify && p->rescan_ns > soon_ns)
		p->rescan_ns = soon_ns;
}

/* Continues a list of files that was not complete after its first step. */
static void list_on(struct gp_nv_process *p, uint64_t until_ns)
{
	if (!gp_nv_target_refresh_files(&p->target, until_ns))
		return;
	p->files_changed = true;
	p->rescan_ns = gp_monotonic_ns();
}

static void search_on(struct gp_nv_gpu *d, struct gp_nv_process *p)
{
	bool had = gp_nv_has_task(d, p, GP_QUEUE_ALL);

	if (gp_nv_target_borrow(&p->target)) {
		p->searching = false;
		return;
	}
	search(d, p, SEARCH_STEP, false);
	if (has_unread(d, p))
		gp_nv_verify(d, p);
	gp_nv_target_give_back(&p->target);
	note_settled(p);
	if (had != gp_nv_has_task(d, p, GP_QUEUE_ALL) || !p->searching) {
		gp_nv_publish_process(d, p);
		gp_nv_publish_seen(d);
	}
}

void gp_nv_search_until_found(struct gp_nv_gpu *d, struct gp_nv_process *p, uint64_t until_ns)
{
	if (p->target.listing.under_way) {
		list_on(p, GP_NEVER);
		gp_nv_refresh(d, p, gp_monotonic_ns());
	}
	while (p->searching && wants_to_compute(p) && !gp_nv_computes(&p->target) &&
	       !gp_nv_is_doubtful(&p->target) && gp_monotonic_ns() < until_ns)
		search_on(d, p);
}

void gp_nv_refresh_sharer(struct gp_nv_gpu *d, struct gp_nv_process *p, uint64_t now_ns)
{
	bool shares = false;

	p->rescan_ns = gp_time_add(now_ns, RESCAN_NS);
	gp_nv_target_refresh_files(&p->target, now_ns + LISTING_STEP_NS);
	if (gp_nv_target_borrow(&p->target) && !gp_nv_has_left(p))
		return;
	gp_nv_rescan(&p->target, true);
	gp_nv_target_give_back(&p->target);
	for (unsigned i = 0; i < p->target.nclients; i++)
		shares |= has_client(p->leader, p->target.client[i].handle);
	if (shares)
		return;
	p->leader = NULL;
	p->rescan_ns = 0;
	gp_nv_publish_seen(d);
}

/* The sampler's buffer of context switches keeps the driver loaded, and belongs to the old client.
 */
static bool is_open(const struct gp_nv_gpu *d)
{
	return d->rm.diag && (!d->rm.dead || d->has_ctxsw);
}

static void open_new_driver(struct gp_nv_gpu *d)
{
	struct gp_rm fresh;

	if (gp_rm_open(&fresh, NULL))
		return;
	gp_rm_open_gpu(&fresh, d->gpu_id, NULL);
	gp_rm_close(&d->rm);
	d->rm = fresh;
	d->pids_ns = 0;
	gp_log(GP_LOG_WARN, "driver.reopened", "gpu=%s", d->pci);
}

/* Asks again for what RM refused: the list of processes and the state of channels come from it. */
static bool reopen(struct gp_nv_gpu *d, uint64_t now_ns)
{
	struct gp_rm *rm = &d->rm;

	if (is_open(d) || now_ns < d->reopen_ns)
		return false;
	d->reopen_after_ns = d->reopen_after_ns ? 2 * d->reopen_after_ns : REOPEN_NS;
	if (d->reopen_after_ns > REOPEN_MAX_NS)
		d->reopen_after_ns = REOPEN_MAX_NS;
	d->reopen_ns = now_ns + d->reopen_after_ns;
	if (rm->dead) {
		open_new_driver(d);
		return true;
	}
	if (rm->subdevice) {
		gp_rm_alloc(rm->fd, rm->client, rm->subdevice, &rm->diag, NV20_SUBDEVICE_DIAG, NULL,
			    0);
		return true;
	}
	if (rm->gpu_fd >= 0)
		close(rm->gpu_fd);
	if (rm->device)
		gp_rm_free(rm->fd, rm->client, rm->client, rm->device);
	rm->device = 0;
	gp_rm_open_gpu(rm, d->gpu_id, NULL);
	if (rm->subdevice)
		d->pids_ns = 0;
	return true;
}

static bool all_settled(struct gp_nv_gpu *d)
{
	bool all = true;

	for (unsigned i = 0; i < d->nprocesses; i++) {
		struct gp_nv_process *p = d->process[i];

		if (p->leader || !gp_nv_computes(&p->target))
			continue;
		note_settled(p);
		all &= p->settled;
	}
	return all;
}

/* The caller of the first scan() may be a command, which has no later scan: a process that is not
 * settled would be missing. After SETTLE_NS only groups that came since then can be unsettled. */
static void end_first_scan(struct gp_nv_gpu *d, uint64_t now_ns)
{
	if (d->listed || !d->swept || (!all_settled(d) && now_ns < d->swept_ns + SETTLE_NS))
		return;
	gp_nv_publish_seen(d);
	pthread_mutex_lock(&d->requests.lock);
	d->listed = true;
	pthread_cond_broadcast(&d->requests.changed);
	pthread_mutex_unlock(&d->requests.lock);
	gp_nv_notify(d);
}

bool gp_nv_housekeeping(struct gp_nv_gpu *d, uint64_t now_ns)
{
	end_first_scan(d, now_ns);
	if (reopen(d, now_ns))
		return true;
	if (gp_nv_list_computing(d, now_ns))
		return true;
	if (!d->swept || d->sweep_urgent) /* the first scan() waits for the first sweep */
		return gp_nv_sweep_some(d, now_ns);
	for (unsigned i = 0; i < d->nprocesses; i++) {
		struct gp_nv_process *p = d->process[i];

		if (now_ns >= p->rescan_ns) {
			if (p->leader)
				gp_nv_refresh_sharer(d, p, now_ns);
			else
				gp_nv_refresh(d, p, now_ns);
			return true;
		}
		if (p->target.listing.under_way) {
			list_on(p, now_ns + LISTING_STEP_NS);
			return true;
		}
		if (!p->leader && p->searching && now_ns >= p->search_ns) {
			search_on(d, p);
			return true;
		}
	}
	return gp_nv_sweep_some(d, now_ns);
}

uint64_t gp_nv_next_housekeeping_ns(const struct gp_nv_gpu *d)
{
	uint64_t next_ns = gp_nv_next_sweep_ns(d);

	if (!is_open(d) && d->reopen_ns < next_ns)
		next_ns = d->reopen_ns;
	if (d->swept && !d->listed && d->swept_ns + SETTLE_NS < next_ns)
		next_ns = d->swept_ns + SETTLE_NS;
	for (unsigned i = 0; i < d->nprocesses; i++) {
		const struct gp_nv_process *p = d->process[i];

		if (p->target.listing.under_way)
			return 0;
		if (!p->leader && p->searching && p->search_ns < next_ns)
			next_ns = p->search_ns;
		if (p->rescan_ns < next_ns)
			next_ns = p->rescan_ns;
	}
	return next_ns;
}

static void drop_process(struct gp_nv_gpu *d, struct gp_nv_process *p)
{
	for (unsigned i = 0; i < d->nprocesses; i++)
		if (d->process[i] == p)
			d->process[i] = d->process[--d->nprocesses];
	gp_nv_target_close(&p->target);
	free(p);
}

/* Copies the original settings by group: the rescan of the child saw the changed ones. */
static void inherit_groups(struct gp_nv_target *child, const struct gp_nv_target *parent)
{
	for (unsigned i = 0; i < child->ngroups; i++)
		for (unsigned k = 0; k < parent->ngroups; k++) {
			struct gp_nv_group *c = &child->group[i];
			const struct gp_nv_group *g = &parent->group[k];

			if (c->client != g->client || c->handle != g->handle ||
			    c->tsg_id != g->tsg_id)
				continue;
			c->slice_found_us = g->slice_found_us;
			c->slice_corrected = g->slice_corrected;
			c->slice_is_ours = g->slice_is_ours;
			c->mode_is_ours = g->mode_is_ours;
			c->disabled = g->disabled;
			c->doubtful = g->doubtful;
			c->contradicted = g->contradicted;
			c->untold = g->untold;
		}
}

bool gp_nv_has_left(const struct gp_nv_process *p)
{
	const struct gp_nv_target *t = &p->target;

	return gp_pidfd_ended(t->pidfd) || (!t->nfiles && !t->list_error);
}

/* A child with the same open file; NULL: none is known. */
static struct gp_nv_process *find_heir(struct gp_nv_gpu *d, const struct gp_nv_process *p)
{
	for (unsigned i = 0; i < d->nprocesses; i++)
		if (d->process[i]->leader == p && !gp_nv_has_left(d->process[i]))
			return d->process[i];
	return NULL;
}

/* The heir keeps the queues alive and replaces the parent. */
static void hand_over(struct gp_nv_gpu *d, struct gp_nv_process *p, struct gp_nv_process *heir)
{
	struct gp_nv_target target;

	if (!gp_nv_target_borrow(&heir->target)) {
		gp_nv_rescan(&heir->target, true);
		gp_nv_target_give_back(&heir->target);
	}
	inherit_groups(&heir->target, &p->target);
	target = p->target;
	p->target = heir->target;
	heir->target = target;
	heir->leader = NULL;
	p->heir_sweep = 0;
	drop_process(d, heir);
}

bool gp_nv_process_ended(struct gp_nv_gpu *d, struct gp_nv_process *p)
{
	struct gp_nv_process *heir = p->leader ? NULL : find_heir(d, p);

	if (!heir && !p->leader && p->touched && !gp_nv_sweep_since(d, &p->heir_sweep))
		return false;
	if (heir) {
		hand_over(d, p, heir);
		gp_nv_publish_process(d, p);
	} else {
		for (unsigned i = 0; i < d->nprocesses; i++)
			if (d->process[i]->leader == p)
				d->process[i]->leader = NULL;
		drop_process(d, p);
	}
	gp_nv_publish_seen(d);
	gp_nv_notify(d);
	return true;
}

void gp_nv_forget_processes(struct gp_nv_gpu *d)
{
	while (d->nprocesses)
		drop_process(d, d->process[0]);
	free(d->process);
	d->process = NULL;
	gp_nv_listing_end(&d->listing);
	gp_table_free(&d->examined);
	free(d->to_sweep);
}
