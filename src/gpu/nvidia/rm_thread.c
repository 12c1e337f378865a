/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The RM thread makes the driver calls. Calls that reach the GPU's firmware take 0.3 to 0.8 ms on
 * an H200 and can take seconds, so the engine never waits for them. Requests are done in order;
 * consecutive holds, or releases, become one call. Housekeeping runs when there is no request.
 */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/log.h"
#include "base/process.h"
#include "gpu/nvidia/nvidia_backend.h"
#include "gpu/nvidia/nvidia_device.h"

#define BATCH_MAX     32
#define REFS_MAX      256
#define DROP_ENDED_NS (20 * GP_NS_PER_MS) /* between two checks for ended processes */

void gp_nv_notify(struct gp_nv_gpu *d)
{
	eventfd_write(d->event_fd, 1);
}

static uint64_t now(void)
{
	return gp_monotonic_ns();
}

bool gp_nv_is_of_task(const struct gp_nv_gpu *d, const struct gp_nv_process *p,
		      const struct gp_nv_group *g, uint32_t queue)
{
	if (!g->compute || g->gpu_id != d->gpu_id)
		return false;
	if (queue != GP_QUEUE_ALL)
		return g->tsg_id == queue;
	for (unsigned i = 0; i < p->nsplits; i++)
		if (p->split[i] == g->tsg_id)
			return false;
	return true;
}

/* The slice to report: the requested one if every group has it, else one that differs. */
static uint32_t slice_of(const struct gp_nv_gpu *d, const struct gp_nv_process *p,
			 const struct gp_nv_task *t)
{
	for (unsigned i = 0; i < p->target.ngroups; i++) {
		const struct gp_nv_group *g = &p->target.group[i];
		uint32_t want_us = t->slice_want_us ? t->slice_want_us : g->slice_found_us;

		if (gp_nv_is_of_task(d, p, g, t->queue) && g->slice_us != want_us)
			return g->slice_us == g->slice_found_us ? 0 : g->slice_us;
	}
	return t->slice_want_us;
}

/* Records when the task was free to run: the sampler takes an inactive task of that time as idle.
 */
static void note_released(struct gp_nv_task *t)
{
	if (t->held && t->released_since_ns != GP_NEVER) {
		t->released_from_ns = t->released_since_ns;
		t->released_until_ns = now();
		t->released_since_ns = GP_NEVER;
	} else if (!t->held && t->released_since_ns == GP_NEVER) {
		t->released_since_ns = now();
	}
}

void gp_nv_describe_task(const struct gp_nv_gpu *d, const struct gp_nv_process *p,
			 struct gp_nv_task *t)
{
	unsigned groups = 0, disabled = 0;

	t->unsure = false;
	t->held_known = true;
	t->untold = false;
	t->draws = gp_nv_draws(&p->target);
	for (unsigned i = 0; i < p->target.ngroups; i++) {
		const struct gp_nv_group *g = &p->target.group[i];

		if (!gp_nv_is_of_task(d, p, g, t->queue))
			continue;
		groups++;
		disabled += g->disabled;
		t->unsure |= g->doubtful;
		t->untold |= g->untold;
		t->held_known &= !g->unread;
	}
	t->pid = p->target.pid;
	t->read_ns = p->read_ns;
	t->has_groups = groups;
	/* If only some groups are disabled, the hold or release has not taken effect yet. */
	t->held = groups && (t->hold_want ? disabled == groups : disabled > 0);
	t->slice_us = slice_of(d, p, t);
	note_released(t);
	gp_nv_undo_record(&p->target, d->gpu_id, &t->undo);
	/* A process on two GPUs has an undo record for each GPU. */
	t->undo.key = t->key ^ (uint64_t)d->gpu_id << 32;
}

/* Maps the ids in the records of context switches to the task. */
static void note_contexts(struct gp_nv_gpu *d, const struct gp_nv_process *p,
			  const struct gp_nv_task *t)
{
	for (unsigned i = 0; i < p->target.ngroups; i++) {
		const struct gp_nv_group *g = &p->target.group[i];

		for (unsigned k = 0; gp_nv_is_of_task(d, p, g, t->queue) && k < g->ncontexts; k++)
			gp_table_put(&d->by_context, g->context_id[k],
				     (uint64_t)t->generation << 32 | (uint64_t)(t - d->task));
	}
}

static void publish_task(struct gp_nv_gpu *d, struct gp_nv_process *p, struct gp_nv_task *t)
{
	gp_nv_describe_task(d, p, t);
	note_contexts(d, p, t);
}

void gp_nv_publish_process(struct gp_nv_gpu *d, struct gp_nv_process *p)
{
	pthread_mutex_lock(&d->requests.lock);
	for (unsigned i = 0; i < d->ntasks; i++)
		if (d->task[i].used && gp_nv_find_process(d, d->task[i].key) == p)
			publish_task(d, p, &d->task[i]);
	pthread_mutex_unlock(&d->requests.lock);
	gp_nv_notify(d);
}

/* Publishes newly attached tasks, so that the sampler finds them. */
static bool publish_attached(struct gp_nv_gpu *d)
{
	bool fresh;

	pthread_mutex_lock(&d->requests.lock);
	fresh = d->fresh;
	d->fresh = false;
	for (unsigned i = 0; fresh && i < d->ntasks; i++) {
		struct gp_nv_process *p =
			d->task[i].used ? gp_nv_find_process(d, d->task[i].key) : NULL;

		if (p)
			publish_task(d, p, &d->task[i]);
	}
	pthread_mutex_unlock(&d->requests.lock);
	if (fresh)
		gp_nv_notify(d);
	return fresh;
}

/* A request, with key and queue of its task at the time when it was taken. */
struct action {
	struct gp_request request;
	uint64_t key;
	uint32_t queue;
	struct gp_nv_process *process;
	uint32_t status;
	uint64_t begun_ns;
};

/* Takes the oldest requests of one kind. Returns their number. */
static unsigned take_batch(struct gp_nv_gpu *d, struct action *batch)
{
	const struct gp_request *r;
	unsigned n = 0;

	pthread_mutex_lock(&d->requests.lock);
	while ((r = gp_requests_first(&d->requests)) && n < BATCH_MAX) {
		if (n && r->kind != batch[0].request.kind)
			break;
		batch[n++] = (struct action){.request = *r,
					     .begun_ns = now(),
					     .key = d->task[r->handle].key,
					     .queue = d->task[r->handle].queue};
		gp_requests_drop_first(&d->requests);
	}
	pthread_mutex_unlock(&d->requests.lock);
	return n;
}

/* Finds the processes and borrows their files. Sets the status of those that are unreachable. */
static void borrow(struct gp_nv_gpu *d, struct action *batch, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct gp_nv_process *p = batch[i].process = gp_nv_find_process(d, batch[i].key);
		int r = p ? gp_nv_target_borrow(&p->target) : -ESRCH;

		if (r)
			batch[i].status = GP_RM_ERRNO | (uint32_t)-r;
		else
			p->touched = true;
	}
}

static void give_back(struct action *batch, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (batch[i].process)
			gp_nv_target_give_back(&batch[i].process->target);
}

/* In a turn of a rotation the GPU is idle between the hold of one task and the release of the next.
 * Housekeeping reads the other channels 2 ms after the last request. */
static bool release_waits(void *gpu)
{
	struct gp_nv_gpu *d = gpu;
	const struct gp_request *next;
	bool waits;

	pthread_mutex_lock(&d->requests.lock);
	next = gp_requests_first(&d->requests);
	waits = next && next->kind == GP_NV_RELEASE;
	pthread_mutex_unlock(&d->requests.lock);
	return waits;
}

static void switch_tasks(struct gp_nv_gpu *d, struct action *batch, unsigned n, bool disable)
{
	struct gp_nv_group_ref ref[REFS_MAX];
	unsigned whose[REFS_MAX], refs = 0;

	for (unsigned i = 0; i < n; i++) {
		struct gp_nv_process *p = batch[i].process;
		unsigned before = refs;

		for (unsigned k = 0; !batch[i].status && k < p->target.ngroups; k++) {
			if (!gp_nv_is_of_task(d, p, &p->target.group[k], batch[i].queue))
				continue;
			if (refs == REFS_MAX) {
				batch[i].status = NV_ERR_INSUFFICIENT_RESOURCES;
				break;
			}
			whose[refs] = i;
			ref[refs++] = (struct gp_nv_group_ref){.target = &p->target,
							       .group = &p->target.group[k]};
		}
		if (!batch[i].status && refs == before)
			batch[i].status = NV_ERR_OBJECT_NOT_FOUND;
	}
	gp_nv_switch_in_turn(ref, refs, disable, disable ? release_waits : NULL, d);
	for (unsigned k = 0; k < refs; k++)
		if (ref[k].status)
			batch[whose[k]].status = ref[k].status;
	/* A task that could not be held completely is released again. */
	for (unsigned k = 0; disable && k < refs; k++)
		if (!ref[k].status && batch[whose[k]].status)
			gp_nv_switch(&ref[k], 1, false);
}

/* The log says if the program's own slice, which is restored later, is not known. */
static uint32_t set_slice(struct gp_nv_target *t, struct gp_nv_group *g, uint32_t slice_us)
{
	bool was_ours = g->slice_is_ours, was_corrected = g->slice_corrected;
	uint32_t read_us = g->slice_us, status = gp_nv_set_slice(t, g, slice_us);
	bool was_tiny = !status && !was_ours && g->slice_us != read_us &&
			gp_nv_own_slice(read_us) != read_us;

	if (was_tiny || (status == GP_RM_NO_EFFECT && !was_corrected))
		gp_log(GP_LOG_WARN, "slice.unknown", "pid=%d set_us=%u read_us=%u assumed_us=%u",
		       t->pid, slice_us, was_tiny ? read_us : g->slice_us, g->slice_found_us);
	return status;
}

static void set_each(struct gp_nv_gpu *d, struct action *a)
{
	struct gp_nv_target *t = &a->process->target;
	bool any = false;

	for (unsigned k = 0; k < t->ngroups; k++) {
		struct gp_nv_group *g = &t->group[k];
		uint32_t slice_us = a->request.value ? a->request.value : g->slice_found_us, status;

		if (!gp_nv_is_of_task(d, a->process, g, a->queue))
			continue;
		any = true;
		status = a->request.kind == GP_NV_MODE ? gp_nv_set_mode(t, g, a->request.value)
						       : set_slice(t, g, slice_us);
		if (status)
			a->status = status;
	}
	if (!any)
		a->status = NV_ERR_OBJECT_NOT_FOUND;
}

static void note_outcome(struct gp_nv_task *t, const struct action *a)
{
	int failed = a->status ? gp_rm_errno(a->status) : 0;
	uint32_t unproven = gp_rm_is_unproven(a->status) ? a->status : 0;
	uint32_t code = unproven || a->status & GP_RM_ERRNO ? 0 : a->status;

	if (a->request.kind == GP_NV_SLICE) {
		t->slices_queued--;
		t->slice_failed = failed;
		t->slice_code = code;
	} else if (a->request.kind != GP_NV_MODE) {
		t->holds_queued--;
		t->hold_want = a->request.kind == GP_NV_HOLD;
		t->hold_failed = failed;
		t->hold_code = code;
		t->unproven = unproven;
		gp_nv_proof_begin(t, a->begun_ns, now());
	}
}

/* Publishes the outcome of a batch and the new state of its tasks. */
static void publish_outcome(struct gp_nv_gpu *d, struct action *batch, unsigned n)
{
	pthread_mutex_lock(&d->requests.lock);
	for (unsigned i = 0; i < n; i++) {
		struct gp_nv_task *t = &d->task[batch[i].request.handle];

		note_outcome(t, &batch[i]);
		t->touched = true;
		if (batch[i].request.kind == GP_NV_SLICE && !batch[i].status)
			t->slice_want_us = batch[i].request.value;
		if (!batch[i].process)
			continue;
		publish_task(d, batch[i].process, t);
		gp_nv_refresh_soon(batch[i].process, batch[i].status,
				   batch[i].request.kind == GP_NV_HOLD ||
					   batch[i].request.kind == GP_NV_RELEASE);
	}
	pthread_mutex_unlock(&d->requests.lock);
	gp_nv_notify(d);
}

void gp_nv_release_again(struct gp_nv_gpu *d, struct gp_nv_process *p)
{
	uint32_t queue[GP_NV_SPLITS_MAX + 1];
	bool first = false;
	unsigned n = 0;

	pthread_mutex_lock(&d->requests.lock);
	for (unsigned i = 0; i < d->ntasks && n < GP_NV_SPLITS_MAX; i++) {
		struct gp_nv_task *t = &d->task[i];

		if (!t->used || gp_nv_find_process(d, t->key) != p ||
		    !gp_nv_proof_wants_release(t, now()))
			continue;
		first |= t->repeated == 1;
		queue[n++] = t->queue;
	}
	pthread_mutex_unlock(&d->requests.lock);
	for (unsigned i = 0; i < n; i++)
		for (unsigned k = 0; k < p->target.ngroups; k++) {
			struct gp_nv_group_ref ref = {.target = &p->target,
						      .group = &p->target.group[k]};

			if (gp_nv_is_of_task(d, p, ref.group, queue[i]))
				gp_nv_switch(&ref, 1, false);
		}
	if (first)
		gp_log(GP_LOG_INFO, "release.no-work", "pid=%d", p->target.pid);
}

static bool act(struct gp_nv_gpu *d)
{
	struct action batch[BATCH_MAX];
	unsigned n = take_batch(d, batch);

	if (!n)
		return false;
	if (batch[0].request.kind == GP_NV_HOLD || batch[0].request.kind == GP_NV_RELEASE) {
		borrow(d, batch, n);
		switch_tasks(d, batch, n, batch[0].request.kind == GP_NV_HOLD);
		give_back(batch, n);
	}
	for (unsigned i = 0; i < n && batch[0].request.kind > GP_NV_RELEASE; i++) {
		gp_requests_note_work(&d->requests, true);
		borrow(d, &batch[i],
		       1); /* one at a time: a borrowed file keeps a dead process's memory */
		if (!batch[i].status)
			set_each(d, &batch[i]);
		give_back(&batch[i], 1);
	}
	publish_outcome(d, batch, n);
	return true;
}

#define PUT_BACK_TRIES    5
#define PUT_BACK_PAUSE_US 20000

/* Whether the group may be disabled, by what was last read back. A release that RM accepted without
 * a reading is repeated. */
static bool may_be_held(struct gp_nv_process *p, struct gp_nv_group *g)
{
	if (g->unread)
		gp_nv_read_back(&p->target, g);
	return g->disabled || g->doubtful || g->unread || g->untold || g->asked_disable;
}

/* Restores slices and modes, and enables all groups that may be disabled. Where all is as it was,
 * no call is made: it could only do harm. Returns the first error. */
static uint32_t put_back(struct gp_nv_gpu *d, struct gp_nv_process *p, uint32_t queue)
{
	uint32_t bad = NV_OK;

	for (unsigned i = 0; i < p->target.ngroups; i++) {
		struct gp_nv_group *g = &p->target.group[i];
		struct gp_nv_group_ref ref = {.target = &p->target, .group = g};
		uint32_t status = NV_OK;

		if (!gp_nv_is_of_task(d, p, g, queue))
			continue;
		if (may_be_held(p, g)) /* also a group that got channels while it was held */
			gp_nv_switch(&ref, 1, false);
		if (g->slice_is_ours)
			status = gp_nv_set_slice(&p->target, g, g->slice_found_us);
		if (!status && g->mode_is_ours)
			status = gp_nv_set_mode(&p->target, g, GP_NV_CILP); /* CUDA's default */
		bad = bad ? bad : ref.status ? ref.status : status;
	}
	return bad;
}

/* Tries several times: after a failure the task would stay changed. */
static uint32_t put_back_surely(struct gp_nv_gpu *d, struct gp_nv_process *p, uint32_t queue)
{
	uint32_t status = NV_OK;

	for (int i = 0; i < PUT_BACK_TRIES; i++) {
		int r;

		if (i)
			usleep(PUT_BACK_PAUSE_US);
		r = gp_nv_target_borrow(&p->target);
		status = r ? GP_RM_ERRNO | (uint32_t)-r : NV_OK;
		if (!r) {
			gp_nv_rescan(&p->target, false); /* reads the current slices */
			status = put_back(d, p, queue);
			gp_nv_target_give_back(&p->target);
		}
		if (r == -ESRCH || (!r && !status))
			return NV_OK;
	}
	gp_log(GP_LOG_ERROR, "put-back.failed", "pid=%d", p->target.pid);
	return status;
}

uint32_t gp_nv_put_task_back(struct gp_nv_gpu *d, uint32_t handle)
{
	struct gp_nv_process *p;
	struct gp_nv_task task;
	uint32_t status = NV_OK;

	pthread_mutex_lock(&d->requests.lock);
	task = d->task[handle];
	pthread_mutex_unlock(&d->requests.lock);
	p = task.touched ? gp_nv_find_process(d, task.key) : NULL;
	if (p) {
		status = put_back_surely(d, p, task.queue);
		gp_nv_publish_process(d, p);
	}
	pthread_mutex_lock(&d->requests.lock);
	d->task[handle].touched = status != NV_OK;
	pthread_mutex_unlock(&d->requests.lock);
	return status;
}

static bool finish_detach(struct gp_nv_gpu *d)
{
	unsigned i;
	bool found;

	pthread_mutex_lock(&d->requests.lock);
	for (i = 0; i < d->ntasks; i++)
		if (d->task[i].used && d->task[i].leaving)
			break;
	found = i < d->ntasks;
	pthread_mutex_unlock(&d->requests.lock);
	if (!found)
		return false;
	gp_nv_put_task_back(d, i);
	pthread_mutex_lock(&d->requests.lock);
	d->task[i] = (struct gp_nv_task){0};
	pthread_mutex_unlock(&d->requests.lock);
	return true;
}

static bool answer(struct gp_nv_gpu *d)
{
	struct gp_question *question = gp_requests_question(&d->requests);

	if (!question)
		return false;
	gp_nv_answer(d, (struct gp_nv_call *)question); /* its first member */
	gp_requests_answered(&d->requests);
	return true;
}

/* Starts again after each process: handling an end can change the list. */
static void drop_ended(struct gp_nv_gpu *d)
{
	d->drop_ended_ns = now() + DROP_ENDED_NS;
	for (unsigned i = 0; i < d->nprocesses; i++)
		if (gp_nv_has_left(d->process[i]) && gp_nv_process_ended(d, d->process[i]))
			i = (unsigned)-1;
}

/* Waits for a request, the end of a process, or the next housekeeping step. */
static void wait_for_work(struct gp_nv_gpu *d)
{
	unsigned n = d->nprocesses;
	struct pollfd *p = calloc(n + 1, sizeof *p);
	uint64_t next_ns = gp_nv_next_housekeeping_ns(d), at_ns = now();
	uint64_t wait_ns = next_ns > at_ns ? next_ns - at_ns : 0;
	struct timespec timeout = gp_timespec(wait_ns);
	eventfd_t ignored;
	int ready;

	if (!p) {
		usleep(1000);
		return;
	}
	p[n] = (struct pollfd){.fd = d->requests.wake_fd, .events = POLLIN};
	for (unsigned i = 0; i < n; i++)
		p[i] = (struct pollfd){.fd = d->process[i]->target.pidfd, .events = POLLIN};
	gp_requests_note_work(&d->requests, false);
	ready = ppoll(p, n + 1, &timeout, NULL);
	gp_requests_note_work(&d->requests, true);
	if (ready > !!p[n].revents)
		drop_ended(d);
	if (p[n].revents)
		eventfd_read(d->requests.wake_fd, &ignored);
	free(p);
}

void *gp_nv_rm_thread(void *gpu)
{
	struct gp_nv_gpu *d = gpu;

	for (;;) {
		gp_requests_note_work(&d->requests, true);
		if (publish_attached(d) || act(d) || finish_detach(d))
			continue;
		if (gp_requests_must_quit(&d->requests))
			break;
		if (!answer(d) && !gp_nv_housekeeping(d, now()))
			wait_for_work(d);
		else if (now() >= d->drop_ended_ns)
			drop_ended(d); /* also when there is always other work */
	}
	gp_nv_forget_processes(d);
	return NULL;
}
