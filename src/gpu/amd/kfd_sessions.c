/* SPDX-License-Identifier: Apache-2.0 */
/* The host thread's work: sessions with processes, and what becomes of them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/process.h"
#include "gpu/amd/amd_device.h"

#define MQDS_MAX     256
#define SETTLE_TRIES 3
#define BLAMED_MAX   8   /* that are named in a sentence */
#define HELD_MAX     256 /* tasks of one process: on each GPU, and its queues that are tasks */

/* ---- what is known goes to the tasks -----------------------------------------------------------
 */

/* Under the lock. */
static bool is_of(const void *arg, const struct kfd_queue_snapshot_entry *queue)
{
	const struct gp_amd_task *task = arg;

	return queue->gpu_id == task->gpu->node.gpu_id && gp_amd_computes(queue) &&
	       gp_amd_is_of(task->gpu->kfd_thread, task->key, task->queue, queue->gpu_id,
	                    queue->queue_id);
}

static struct gp_amd_pointers pointers_of(const struct kfd_queue_snapshot_entry *is)
{
	return (struct gp_amd_pointers){
		.read_address = is->read_pointer_address,
		.write_address = is->write_pointer_address,
		/* AQL counts packets for ever, PM4 dwords in the ring. */
		.mask = is->queue_type == KFD_QUEUE_COMPUTE_AQL ? UINT64_MAX
	                                                        : is->ring_size / 4 - 1,
	};
}

static void publish_pointers(struct gp_amd_task *task, const struct gp_amd_session *s)
{
	struct gp_amd_pointers *pointer;
	unsigned n = 0;

	for (unsigned i = 0; i < s->nqueues; i++)
		n += is_of(task, &s->queue[i].is);
	pointer = realloc(task->pointer, (n + 1) * sizeof *pointer);
	if (!pointer)
		return; /* as before; the next change tries again */
	task->pointer = pointer;
	task->npointers = 0;
	for (unsigned i = 0; i < s->nqueues; i++)
		if (is_of(task, &s->queue[i].is))
			pointer[task->npointers++] = pointers_of(&s->queue[i].is);
	task->has_pointers = task->new_pointers = true;
}

static void publish_held(struct gp_amd_task *task, const struct gp_amd_session *s)
{
	unsigned queues = 0, suspended = 0;

	for (unsigned i = 0; i < s->nqueues; i++)
		if (is_of(task, &s->queue[i].is)) {
			queues++;
			suspended += s->queue[i].suspended;
		}
	/* Between the two, a hold is not there yet, and a release not either. */
	task->held = queues && (task->hold_want ? suspended == queues : suspended > 0);
}

void gp_amd_publish(struct gp_kfd_thread *h, struct gp_amd_target *target, bool queues_changed)
{
	for (unsigned i = 0; i < h->ngpus; i++)
		for (unsigned k = 0; k < h->gpu[i]->ntasks; k++) {
			struct gp_amd_task *task = h->gpu[i]->task[k];

			if (!task || task->target != target)
				continue;
			if (queues_changed || !task->has_pointers)
				publish_pointers(task, &target->session);
			publish_held(task, &target->session);
		}
	if (queues_changed)
		eventfd_write(h->watch_fd, 1);
}

static void tell_all(struct gp_kfd_thread *h)
{
	pthread_mutex_lock(&h->requests.lock);
	for (unsigned i = 0; i < h->ngpus; i++)
		gp_amd_notify(h->gpu[i]);
	pthread_mutex_unlock(&h->requests.lock);
}

/* Tasks of one process. */
struct some {
	struct gp_amd_task *const *task;
	unsigned n;
};

/* For the session, which is asked without the lock: splits come from other threads. */
static bool is_meant(const void *arg, const struct kfd_queue_snapshot_entry *queue)
{
	const struct some *some = arg;
	struct gp_kfd_thread *h = some->task[0]->gpu->kfd_thread;
	bool meant = false;

	pthread_mutex_lock(&h->requests.lock);
	for (unsigned i = 0; i < some->n && !meant; i++)
		meant = is_of(some->task[i], queue);
	pthread_mutex_unlock(&h->requests.lock);
	return meant;
}

static int resume(struct gp_amd_task *const *task, unsigned n)
{
	struct some some = {.task = task, .n = n};
	struct gp_amd_choice choice = {.is_meant = is_meant, .arg = &some};

	return gp_amd_session_resume(&task[0]->target->session, &choice);
}

/* ---- sessions ----------------------------------------------------------------------------------
 */

static struct gp_amd_target *find_target(struct gp_kfd_thread *h, pid_t pid, uint64_t start_time)
{
	for (unsigned i = 0; i < h->ntargets; i++)
		if (h->target[i]->session.pid == pid &&
		    h->target[i]->session.start_time == start_time && !h->target[i]->parting)
			return h->target[i];
	return NULL;
}

static int listen_to(struct gp_kfd_thread *h, struct gp_amd_target *target)
{
	struct epoll_event news = {.events = EPOLLIN, .data.ptr = target};
	struct epoll_event end = {.events = EPOLLIN, .data.ptr = (void *)((uintptr_t)target | 1)};

	if (epoll_ctl(h->epoll_fd, EPOLL_CTL_ADD, target->session.event_fd, &news) ||
	    epoll_ctl(h->epoll_fd, EPOLL_CTL_ADD, target->session.pidfd, &end))
		return -errno;
	return 0;
}

static void forget(struct gp_kfd_thread *h, struct gp_amd_target *target)
{
	for (unsigned i = 0; i < h->ntargets; i++)
		if (h->target[i] == target)
			h->target[i] = h->target[--h->ntargets];
	if (target->session.pidfd >= 0)
		close(target->session.pidfd);
	free(target);
}

/* With its files epoll forgets them. One that cannot be unlinked yet stays, without a session. */
static void drop_target(struct gp_kfd_thread *h, struct gp_amd_target *target)
{
	gp_amd_session_close(&target->session);
	target->parting = target->session.link != GP_AMD_UNLINKED;
	if (!target->parting)
		forget(h, target);
}

/* A link of ours that has not ended yet shall not: the new session has it. */
static void take_over_link(struct gp_kfd_thread *h, pid_t pid)
{
	for (unsigned i = h->ntargets; i-- > 0;)
		if (h->target[i]->parting && h->target[i]->session.pid == pid)
			forget(h, h->target[i]);
}

/* Another process that we are attached to; 0: none. */
static pid_t other_than(const struct gp_kfd_thread *h, const struct gp_amd_target *target)
{
	for (unsigned i = 0; i < h->ntargets; i++)
		if (h->target[i] != target && h->target[i]->session.enabled)
			return h->target[i]->session.pid;
	return 0;
}

static struct gp_amd_target *make_target(struct gp_kfd_thread *h, pid_t pid, uint64_t start_time,
                                         struct gp_error *err)
{
	struct gp_amd_target **list =
		realloc(h->target, (h->ntargets + 1) * sizeof(struct gp_amd_target *));
	struct gp_amd_target *target = calloc(1, sizeof *target);
	int r;

	if (list)
		h->target = list;
	if (!list || !target) {
		free(target);
		gp_fail(err, -ENOMEM, "no memory");
		return NULL;
	}
	take_over_link(h, pid);
	r = gp_amd_session_open(&target->session, h->kfd, pid, &h->rule, err);
	h->target[h->ntargets++] = target;
	if (r) {
		drop_target(h, target);
		return NULL;
	}
	r = gp_amd_session_check(&target->session, other_than(h, target), err);
	if (!r && target->session.start_time != start_time)
		r = gp_fail(err, -ESRCH, "process %d has ended", pid);
	if (!r) {
		r = listen_to(h, target);
		if (r)
			gp_fail(err, r, "cannot listen to process %d: %s", pid, gp_error_name(r));
	}
	if (!r)
		return target;
	drop_target(h, target);
	return NULL;
}

/* Under the lock. Who lives is tried again at once: a keeper that took it has let go by then. */
static void note_loss(struct gp_amd_task *task, bool ended)
{
	task->why = (struct gp_error){0};
	if (ended) {
		gp_fail(&task->why, -ESRCH, "process %d has ended", task->pid);
		return;
	}
	gp_fail(&task->why, -EBUSY, "somebody took process %d from us, or it began another program",
	        task->pid);
	task->tried_ns = 0;
}

void gp_amd_lose(struct gp_kfd_thread *h, struct gp_amd_target *target)
{
	bool ended = gp_pidfd_ended(target->session.pidfd);

	pthread_mutex_lock(&h->requests.lock);
	for (unsigned i = 0; i < h->ngpus; i++)
		for (unsigned k = 0; k < h->gpu[i]->ntasks; k++) {
			struct gp_amd_task *task = h->gpu[i]->task[k];

			if (!task || task->target != target)
				continue;
			task->target = NULL;
			task->held = task->has_pointers = false;
			task->looked = task->active = false; /* the watch cannot look any more */
			task->npointers = 0;
			note_loss(task, ended);
		}
	pthread_mutex_unlock(&h->requests.lock);
	drop_target(h, target);
	tell_all(h);
}

/* A session for the task: the process's, or a new one. 0 or -errno. */
static int get_session(struct gp_kfd_thread *h, struct gp_amd_task *task)
{
	struct gp_error err = {0};
	struct gp_amd_target *target = task->target;

	if (target)
		return 0;
	target = find_target(h, task->pid, task->start_time);
	if (!target)
		target = make_target(h, task->pid, task->start_time, &err);
	pthread_mutex_lock(&h->requests.lock);
	task->tried_ns = gp_monotonic_ns();
	task->why = err;
	if (target) {
		target->users++;
		task->target = target;
		gp_amd_publish(h, target, true);
	}
	pthread_mutex_unlock(&h->requests.lock);
	return target ? 0 : err.code ? err.code : -EIO;
}

void gp_amd_prepare(struct gp_kfd_thread *h, struct gp_amd_task *task)
{
	bool wanted;

	pthread_mutex_lock(&h->requests.lock);
	wanted = task->wants_hold;
	pthread_mutex_unlock(&h->requests.lock);
	if (wanted) /* one that will not be held is watched without, where that is possible */
		get_session(h, task);
}

void gp_amd_unprepare(struct gp_kfd_thread *h, struct gp_amd_task *task)
{
	struct gp_amd_target *target = task->target;

	if (!target)
		return;
	if (target->users > 1)
		resume(&task, 1);
	pthread_mutex_lock(&h->requests.lock);
	task->target = NULL;
	pthread_mutex_unlock(&h->requests.lock);
	if (!--target->users)
		drop_target(h, target);
}

/* ---- actions -----------------------------------------------------------------------------------
 */

static int suspend(struct gp_amd_task *const *task, unsigned n)
{
	struct some some = {.task = task, .n = n};
	struct gp_amd_choice choice = {.is_meant = is_meant, .arg = &some};
	uint32_t grace;

	pthread_mutex_lock(&task[0]->gpu->kfd_thread->requests.lock);
	grace = task[0]->grace;
	pthread_mutex_unlock(&task[0]->gpu->kfd_thread->requests.lock);
	return gp_amd_session_suspend(&task[0]->target->session, &choice, grace);
}

/* "queue 2" or "queues 0, 1, 5": those of the task whose fault it was. */
static const char *name_blamed(const struct gp_amd_task *task, char *out, size_t size)
{
	const struct gp_amd_session *s = &task->target->session;
	char list[BLAMED_MAX * 12] = "";
	size_t length = 0;
	unsigned n = 0;

	for (unsigned i = s->nqueues; i-- > 0;) { /* the oldest first */
		if (!s->queue[i].blamed || !is_of(task, &s->queue[i].is) || ++n > BLAMED_MAX)
			continue;
		length += (size_t)snprintf(list + length, sizeof list - length, "%s%u",
		                           n == 1 ? "" : ", ", s->queue[i].is.queue_id);
	}
	if (!n) /* another task's, in the same call */
		snprintf(out, size, "some queues");
	else if (n > BLAMED_MAX)
		snprintf(out, size, "queues %s and %u more", list, n - BLAMED_MAX);
	else
		snprintf(out, size, "queue%s %s", n == 1 ? "" : "s", list);
	return out;
}

static void explain(struct gp_amd_task *task, int code, bool hold)
{
	char blamed[BLAMED_MAX * 12 + 32];

	task->why = (struct gp_error){0};
	if (code == -EIO)
		gp_fail(&task->why, code,
		        "the GPU did not %s %s of process %d in time: it may be about to be reset",
		        hold ? "stop" : "start", name_blamed(task, blamed, sizeof blamed),
		        task->pid);
	else if (code == -EPERM || code == -EINVAL)
		gp_fail(&task->why, code,
		        "process %d has ended its runtime, or runs another program", task->pid);
	else
		gp_fail(&task->why, code, "the driver says no to process %d: %s", task->pid,
		        gp_error_name(code));
}

static int note_failure(struct gp_kfd_thread *h, struct gp_amd_task *const *task, unsigned n,
                        int code, bool hold)
{
	if (code >= 0)
		return 0;
	pthread_mutex_lock(&h->requests.lock);
	for (unsigned i = 0; i < n; i++)
		explain(task[i], code, hold);
	pthread_mutex_unlock(&h->requests.lock);
	/* Somebody ended the session, or the program is another: the next try begins anew. */
	if (code == -EINVAL || code == -ESRCH)
		gp_amd_lose(h, task[0]->target);
	return code;
}

int gp_amd_hold(struct gp_kfd_thread *h, struct gp_amd_task *const *task, unsigned n)
{
	int r = 0;

	for (unsigned i = 0; i < n && !r; i++)
		r = get_session(h, task[i]);
	if (r)
		return r;
	for (unsigned i = 0; i < n; i++)
		task[i]->hold_want = true;
	r = suspend(task, n);
	for (unsigned i = 0; i < n && r < 0; i++)
		task[i]->hold_want = false; /* what comes later is not held for it */
	return note_failure(h, task, n, r, true);
}

/* Who has no session has nothing suspended. */
int gp_amd_release(struct gp_kfd_thread *h, struct gp_amd_task *const *task, unsigned n)
{
	struct gp_amd_task *mine[GP_AMD_BATCH_MAX];
	unsigned nmine = 0;

	for (unsigned i = 0; i < n; i++) {
		task[i]->hold_want = false;
		if (task[i]->target)
			mine[nmine++] = task[i];
	}
	return nmine ? note_failure(h, mine, nmine, resume(mine, nmine), false) : 0;
}

/* ---- what targets do ---------------------------------------------------------------------------
 */

/* The tasks of a process that are to be held. */
static unsigned find_held(struct gp_kfd_thread *h, const struct gp_amd_target *target,
                          struct gp_amd_task *held[HELD_MAX])
{
	unsigned n = 0;

	pthread_mutex_lock(&h->requests.lock);
	for (unsigned i = 0; i < h->ngpus; i++)
		for (unsigned k = 0; k < h->gpu[i]->ntasks; k++) {
			struct gp_amd_task *task = h->gpu[i]->task[k];

			if (task && task->target == target && task->hold_want && !task->leaving &&
			    n < HELD_MAX)
				held[n++] = task;
		}
	pthread_mutex_unlock(&h->requests.lock);
	return n;
}

/* The queues that came while their task is held are held with it. */
static void hold_arrivals(struct gp_kfd_thread *h, struct gp_amd_target *target)
{
	struct gp_amd_task *held[HELD_MAX];
	unsigned n = find_held(h, target, held);

	for (unsigned i = 0; i < n; i++) /* only this thread lets tasks go */
		suspend(&held[i], 1);
}

void gp_amd_settle(struct gp_kfd_thread *h, struct gp_amd_target *target)
{
	for (int i = 0; i < SETTLE_TRIES && target->session.changed; i++) {
		target->session.changed = false;
		hold_arrivals(h, target); /* which may find others */
	}
	pthread_mutex_lock(&h->requests.lock);
	gp_amd_publish(h, target, true);
	pthread_mutex_unlock(&h->requests.lock);
	tell_all(h);
}

void gp_amd_target_events(struct gp_kfd_thread *h, struct gp_amd_target *target)
{
	int r = gp_amd_session_events(&target->session);

	if (r == -ESRCH || r == -EINVAL || r == -EPERM)
		gp_amd_lose(h, target);
	else if (r > 0 || target->session.changed)
		gp_amd_settle(h, target);
}

static void tick(struct gp_kfd_thread *h, struct gp_amd_target *target)
{
	gp_amd_session_tick(&target->session);
	if (target->parting && target->session.link == GP_AMD_UNLINKED)
		forget(h, target);
	else if (target->session.again)
		gp_amd_target_events(h, target);
}

void gp_amd_tick(struct gp_kfd_thread *h)
{
	for (unsigned i = h->ntargets; i-- > 0;)
		tick(h, h->target[i]);
}

/* The end of this thread ends the links that are left. */
void gp_amd_forget_targets(struct gp_kfd_thread *h)
{
	while (h->ntargets) {
		struct gp_amd_target *target = h->target[0];

		if (!target->parting)
			gp_amd_session_close(&target->session);
		forget(h, target);
	}
}

/* ---- questions ---------------------------------------------------------------------------------
 */

static const char *const type_names[] = {
	[KFD_QUEUE_COMPUTE] = "pm4",
	[KFD_QUEUE_SDMA] = "sdma",
	[KFD_QUEUE_COMPUTE_AQL] = "aql",
	[KFD_QUEUE_SDMA_XGMI] = "sdma-xgmi",
	[KFD_QUEUE_SDMA_BY_ENG_ID] = "sdma-engine",
};

static const char *type_name(uint32_t type)
{
	return type < sizeof type_names / sizeof type_names[0] ? type_names[type] : "unknown";
}

static struct gp_queue describe_queue(const struct gp_amd_queue *q, const struct gp_amd_node *node,
                                      const struct gp_amd_mqd *mqd, int nmqds)
{
	struct gp_queue out = {
		.id = q->is.queue_id,
		.held = q->suspended,
		.copies = !gp_amd_computes(&q->is),
		.interleave = UINT32_MAX,
		.ring_address = q->is.ring_base_address,
		.ring_bytes = q->is.ring_size,
		.save_address = q->is.ctx_save_restore_address,
		/* The driver says what one XCC needs; each has its own, one behind the other. */
		.save_bytes = (uint64_t)q->is.ctx_save_restore_area_size * node->xccs,
		.pending = UINT64_MAX,
		.priority = UINT32_MAX,
	};

	snprintf(out.type, sizeof out.type, "%s", type_name(q->is.queue_type));
	for (int i = 0; i < nmqds; i++)
		if (mqd[i].ring_address == q->is.ring_base_address)
			out.priority = mqd[i].priority;
	return out;
}

/* A session that is made for it stays: who looks once looks again. */
void gp_amd_list_queues(struct gp_kfd_thread *h, struct gp_amd_call *call)
{
	uint32_t gpu_id = call->gpu->node.gpu_id;
	struct gp_amd_target *target = find_target(h, call->pid, call->start_time);
	struct gp_amd_mqd mqd[MQDS_MAX];
	int nmqds, n = 0;

	if (target) {
		gp_amd_session_refresh(&target->session);
	} else {
		target = make_target(h, call->pid, call->start_time, call->err);
		if (!target) {
			call->question.result = call->err->code;
			return;
		}
		target->users = 1;
	}
	nmqds = gp_amd_read_mqds(call->pid, gpu_id, mqd, MQDS_MAX);
	for (unsigned i = 0; i < target->session.nqueues; i++) {
		const struct gp_amd_queue *q = &target->session.queue[i];

		if (q->is.gpu_id != gpu_id)
			continue;
		if ((unsigned)n < call->max) {
			call->queue[n] = describe_queue(q, &call->gpu->node, mqd,
			                                nmqds < MQDS_MAX ? nmqds : MQDS_MAX);
			call->pointer[n] = pointers_of(&q->is);
		}
		n++;
	}
	if (target->session.changed)
		gp_amd_settle(h, target);
	call->question.result = n;
}
