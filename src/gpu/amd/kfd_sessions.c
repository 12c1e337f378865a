/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions with processes. Runs on the KFD thread. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/log.h"
#include "base/process.h"
#include "gpu/amd/amd_device.h"

#define MQDS_MAX         256
#define SETTLE_TRIES     3
#define RESUME_TRIES     3                   /* before the session is ended */
#define END_PAUSE_NS     (10 * GP_NS_PER_MS) /* before a session that did not end is ended again */
#define END_PAUSE_MAX_NS (1 * GP_NS_PER_S)
#define BLAMED_MAX       8   /* failed queues named in a message */
#define HELD_MAX         256 /* tasks of one process, on all GPUs */

/* Caller holds requests.lock. */
static bool is_of(const void *arg, const struct kfd_queue_snapshot_entry *queue)
{
	const struct gp_amd_task *task = arg;

	return queue->gpu_id == task->gpu->node.gpu_id && gp_amd_computes(queue) &&
	       gp_amd_is_of(task->gpu->kfd_thread, task->key, task->queue, queue->gpu_id,
			    queue->queue_id);
}

struct gp_amd_pointers gp_amd_pointers_of(const struct kfd_queue_snapshot_entry *is)
{
	return (struct gp_amd_pointers){
		.read_address = is->read_pointer_address,
		.write_address = is->write_pointer_address,
		/* AQL counts packets without wrapping, PM4 dwords in the ring. */
		.mask = is->queue_type == KFD_QUEUE_COMPUTE_AQL ? UINT64_MAX
								: is->ring_size / 4 - 1,
	};
}

/* Keeps what was seen of a queue that is still there: a program that creates and destroys queues
 * all the time must not end the look at the others. */
static void keep_evidence(const struct gp_amd_task *task, struct gp_amd_pointers *p)
{
	for (unsigned i = 0; i < task->npointers; i++) {
		const struct gp_amd_pointers *q = &task->pointer[i];

		if (q->read_address != p->read_address)
			continue;
		p->taken = q->taken;
		p->waited_ns = q->waited_ns;
		p->still_ns = q->still_ns;
		p->still_number = q->still_number;
		p->longest_ns = q->longest_ns;
	}
}

static void publish_pointers(struct gp_amd_task *task, const struct gp_amd_session *s)
{
	struct gp_amd_pointers *pointer;
	unsigned n = 0;

	for (unsigned i = 0; i < s->nqueues; i++)
		n += is_of(task, &s->queue[i].is);
	pointer = calloc(n + 1, sizeof *pointer);
	if (!pointer)
		return; /* the next change tries again */
	n = 0;
	for (unsigned i = 0; i < s->nqueues; i++) {
		if (!is_of(task, &s->queue[i].is))
			continue;
		pointer[n] = gp_amd_pointers_of(&s->queue[i].is);
		keep_evidence(task, &pointer[n++]);
	}
	free(task->pointer);
	task->pointer = pointer;
	task->npointers = n;
	task->has_pointers = task->new_pointers = true;
}

static void publish_held(struct gp_amd_task *task, const struct gp_amd_session *s)
{
	unsigned queues = 0, suspended = 0, doubtful = 0;

	for (unsigned i = 0; i < s->nqueues; i++)
		if (is_of(task, &s->queue[i].is)) {
			queues++;
			suspended += s->queue[i].suspended;
			doubtful += s->queue[i].doubtful;
		}
	/* If only some queues are suspended, the task is neither held nor released. If the list is
	 * old, a queue may be missing. */
	task->held = queues && suspended == queues;
	task->unsure = doubtful || (suspended && (suspended < queues || s->outdated.code));
}

void gp_amd_publish(struct gp_kfd_thread *h, struct gp_amd_target *target, bool queues_changed)
{
	for (unsigned i = 0; i < h->ngpus; i++)
		for (unsigned k = 0; k < h->gpu[i]->ntasks; k++) {
			struct gp_amd_task *task = h->gpu[i]->task[k];

			if (!task || task->target != target)
				continue;
			if (queues_changed || !task->has_pointers || task->nsplits != h->nsplits)
				publish_pointers(task, &target->session);
			task->nsplits = h->nsplits;
			publish_held(task, &target->session);
		}
	if (queues_changed)
		eventfd_write(h->activity_fd, 1);
}

static void notify_all(struct gp_kfd_thread *h)
{
	pthread_mutex_lock(&h->requests.lock);
	for (unsigned i = 0; i < h->ngpus; i++)
		gp_amd_notify(h->gpu[i]);
	pthread_mutex_unlock(&h->requests.lock);
}

/* Tasks of one process. */
struct task_list {
	struct gp_amd_task *const *task;
	unsigned n;
};

/* For the session, which runs without the lock: other threads make splits. */
static bool is_meant(const void *arg, const struct kfd_queue_snapshot_entry *queue)
{
	const struct task_list *list = arg;
	struct gp_kfd_thread *h = list->task[0]->gpu->kfd_thread;
	bool meant = false;

	pthread_mutex_lock(&h->requests.lock);
	for (unsigned i = 0; i < list->n && !meant; i++)
		meant = is_of(list->task[i], queue);
	pthread_mutex_unlock(&h->requests.lock);
	return meant;
}

static int resume(struct gp_amd_task *const *task, unsigned n)
{
	struct task_list list = {.task = task, .n = n};
	struct gp_amd_choice choice = {.is_meant = is_meant, .arg = &list};

	return gp_amd_session_resume(&task[0]->target->session, &choice);
}

static struct gp_amd_target *find_target(struct gp_kfd_thread *h, pid_t pid, uint64_t start_time)
{
	for (unsigned i = 0; i < h->ntargets; i++)
		if (h->target[i]->session.pid == pid &&
		    h->target[i]->session.start_time == start_time && !h->target[i]->parting)
			return h->target[i];
	return NULL;
}

static int watch_target(struct gp_kfd_thread *h, struct gp_amd_target *target)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = target};
	struct epoll_event end = {.events = EPOLLIN, .data.ptr = (void *)((uintptr_t)target | 1)};

	if (epoll_ctl(h->epoll_fd, EPOLL_CTL_ADD, target->session.event_fd, &event) ||
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

/* Ends the session. -errno: it exists, and is ended later. */
static int end_session(struct gp_amd_target *target)
{
	int r = gp_amd_session_end(&target->session);

	target->ending = r != 0;
	if (!r)
		return 0;
	if (!target->pause_ns)
		gp_log(GP_LOG_ERROR, "session.not-ended", "pid=%d errno=%d", target->session.pid,
		       -r);
	target->pause_ns = target->pause_ns ? 2 * target->pause_ns : END_PAUSE_NS;
	if (target->pause_ns > END_PAUSE_MAX_NS)
		target->pause_ns = END_PAUSE_MAX_NS;
	target->end_ns = gp_monotonic_ns() + target->pause_ns;
	return r;
}

/* Closing the files removes them from epoll. A target that is still linked, or whose session does
 * not end, stays in the list. */
static void drop_target(struct gp_kfd_thread *h, struct gp_amd_target *target)
{
	if (end_session(target))
		return;
	gp_amd_session_close(&target->session);
	target->parting = target->session.link != GP_AMD_UNLINKED;
	if (!target->parting)
		forget(h, target);
}

/* The new session reuses a link of this thread whose unlink is not complete. */
static void take_over_link(struct gp_kfd_thread *h, pid_t pid)
{
	for (unsigned i = h->ntargets; i-- > 0;)
		if (h->target[i]->parting && h->target[i]->session.pid == pid)
			forget(h, h->target[i]);
}

/* Another process with a session of this process; 0: none. */
static pid_t other_than(const struct gp_kfd_thread *h, const struct gp_amd_target *target)
{
	for (unsigned i = 0; i < h->ntargets; i++)
		if (h->target[i] != target && h->target[i]->session.enabled)
			return h->target[i]->session.pid;
	return 0;
}

/* A program that was just executed has none, and is not attached to. */
static bool has_queues(pid_t pid)
{
	return gp_amd_sysfs_queues(pid, NULL, 0) > 0;
}

/* The driver was loaded anew: the file of the old one is dead. The new file gets the same number.
 * The next attempt uses it. */
static void reopen_driver(struct gp_kfd_thread *h)
{
	struct kfd_version version;
	int r = gp_kfd_version(h->kfd, &version), kfd;

	if (r != -ENOTCONN && r != -ENODEV)
		return;
	kfd = gp_kfd_open(NULL);
	if (kfd < 0)
		return;
	dup3(kfd, h->kfd, O_CLOEXEC);
	close(kfd);
	gp_amd_smi_reopen(h);
	gp_log(GP_LOG_WARN, "driver.reopened", "path=%s", gp_kfd_path());
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
	if (!has_queues(pid)) {
		free(target);
		gp_fail(err, -ESRCH,
			"process %d has no queues on any GPU any more: it has ended its GPU work "
			"or "
			"has executed another program",
			pid);
		return NULL;
	}
	take_over_link(h, pid);
	r = gp_amd_session_open(&target->session, h->kfd, pid, &h->rule, err);
	h->target[h->ntargets++] = target;
	if (r) {
		if (r == -ENOTCONN || r == -ENODEV)
			reopen_driver(h);
		drop_target(h, target);
		return NULL;
	}
	r = gp_amd_session_check(&target->session, other_than(h, target), err);
	if (!r && target->session.start_time != start_time)
		r = gp_fail(err, -ESRCH, "process %d has ended", pid);
	if (!r) {
		r = watch_target(h, target);
		if (r)
			gp_fail(err, r, "cannot wait for events of process %d: %s", pid,
				gp_error_name(r));
	}
	if (!r)
		return target;
	drop_target(h, target);
	return NULL;
}

/* Caller holds requests.lock. */
static void note_stuck(struct gp_amd_task *task, int code)
{
	task->why = (struct gp_error){0};
	gp_fail(&task->why, code,
		"the driver does not end the debug session of process %d (%s), so its queues may "
		"stay suspended; this is tried again until the driver does it",
		task->pid, gp_error_name(code));
}

/* Caller holds requests.lock. A live process is tried again at once: a keeper that ended the
 * session has released the process by then. */
static void note_loss(struct gp_amd_task *task, bool ended)
{
	task->why = (struct gp_error){0};
	if (ended) {
		gp_fail(&task->why, -ESRCH, "process %d has ended", task->pid);
		return;
	}
	gp_fail(&task->why, -EBUSY,
		"the session with process %d was ended by another process, or the process started "
		"another program",
		task->pid);
	task->tried_ns = 0;
}

/* Caller holds requests.lock. */
static void forget_pointers(struct gp_amd_task *task)
{
	task->has_pointers = task->activity_known = task->active = false;
	task->npointers = 0;
}

/* Caller holds requests.lock. `over`: the driver says that the session has ended; else it is not
 * known. `same`: the process has the same queues as before, so they show whether it works. */
static void take_session_away(struct gp_amd_task *task, bool over, bool same)
{
	bool was_held = task->held || task->unsure || task->proof.disproved;

	task->held = false;
	task->hold_want = false; /* a later session must not hold it without a request */
	task->unsure = !over;
	task->pointers_mark = task->queues_mark;
	if (!same)
		forget_pointers(task);
	if (over)
		task->target = NULL;
	gp_amd_proof_begin(task, false, !over || !was_held, gp_monotonic_ns());
	task->proof.ends += over && was_held;
}

/* Ends the session and takes it from its tasks. `ours`: this process wants the end. -errno: the
 * session exists; its tasks keep it, and the thread tries again. */
static int end_target(struct gp_kfd_thread *h, struct gp_amd_target *target, bool ours)
{
	bool ended = gp_pidfd_ended(target->session.pidfd);
	int r = ended ? 0 : end_session(target);

	pthread_mutex_lock(&h->requests.lock);
	for (unsigned i = 0; i < h->ngpus; i++)
		for (unsigned k = 0; k < h->gpu[i]->ntasks; k++) {
			struct gp_amd_task *task = h->gpu[i]->task[k];

			if (!task || task->target != target)
				continue;
			take_session_away(task, !r, ours && !ended);
			if (r)
				note_stuck(task, r);
			else if (!ours)
				note_loss(task, ended);
			else
				task->tried_ns = 0;
		}
	pthread_mutex_unlock(&h->requests.lock);
	if (!r)
		drop_target(h, target);
	notify_all(h);
	return r;
}

void gp_amd_lose(struct gp_kfd_thread *h, struct gp_amd_target *target)
{
	end_target(h, target, target->ending);
}

static int fail_ending(pid_t pid, struct gp_error *err)
{
	return gp_fail(
		err, -EBUSY,
		"an earlier debug session of process %d has not ended: the driver refuses to "
		"end it; this is tried again until the driver does it",
		pid);
}

/* Gives the task the session of its process, or a new one. 0 or -errno. */
static int get_session(struct gp_kfd_thread *h, struct gp_amd_task *task)
{
	struct gp_error err = {0};
	struct gp_amd_target *target = task->target;

	if (target && target->ending)
		return -EBUSY; /* `why` says so */
	if (target)
		return 0;
	target = find_target(h, task->pid, task->start_time);
	if (target && target->ending) {
		fail_ending(task->pid, &err);
		target = NULL;
	} else if (!target)
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
	if (wanted) /* a task that is not held needs no session if debugfs shows its queues */
		get_session(h, task);
}

/* Resumes the queues of the tasks, and tries again after a failure. */
static int resume_surely(struct gp_amd_task *const *task, unsigned n)
{
	int r = -EIO;

	for (int i = 0; i < RESUME_TRIES && r < 0; i++)
		r = resume(task, n);
	return r < 0 ? r : 0;
}

void gp_amd_unprepare(struct gp_kfd_thread *h, struct gp_amd_task *task)
{
	struct gp_amd_target *target = task->target;

	if (!target)
		return;
	/* Other tasks use the session, unless the queues of this one cannot be resumed. */
	if (target->users > 1 && !target->ending && resume_surely(&task, 1))
		end_target(h, target, true);
	if (task->target != target)
		return;
	pthread_mutex_lock(&h->requests.lock);
	task->target = NULL;
	task->proof.state = GP_AMD_PROOF_DONE;
	pthread_mutex_unlock(&h->requests.lock);
	if (!--target->users)
		drop_target(h, target);
}

void gp_amd_unprepare_idle(struct gp_kfd_thread *h, struct gp_amd_task *task)
{
	bool wanted;

	pthread_mutex_lock(&h->requests.lock);
	wanted = task->wants_hold;
	pthread_mutex_unlock(&h->requests.lock);
	if (!wanted && !task->hold_want)
		gp_amd_unprepare(h, task);
}

static int suspend(struct gp_amd_task *const *task, unsigned n)
{
	struct task_list list = {.task = task, .n = n};
	struct gp_amd_choice choice = {.is_meant = is_meant, .arg = &list};
	uint32_t grace;

	pthread_mutex_lock(&task[0]->gpu->kfd_thread->requests.lock);
	grace = task[0]->grace;
	pthread_mutex_unlock(&task[0]->gpu->kfd_thread->requests.lock);
	return gp_amd_session_suspend(&task[0]->target->session, &choice, grace);
}

/* "queue 2" or "queues 0, 1, 5": the queues of the task that failed. */
static const char *name_blamed(const struct gp_amd_task *task, char *out, size_t size)
{
	const struct gp_amd_session *s = &task->target->session;
	char list[BLAMED_MAX * 12] = "";
	size_t length = 0;
	unsigned n = 0;

	for (unsigned i = s->nqueues; i-- > 0;) { /* oldest first */
		if (!s->queue[i].blamed || !is_of(task, &s->queue[i].is) || ++n > BLAMED_MAX)
			continue;
		length += (size_t)snprintf(list + length, sizeof list - length, "%s%u",
					   n == 1 ? "" : ", ", s->queue[i].is.queue_id);
	}
	if (!n) /* the failed queues belong to another task of the same call */
		snprintf(out, size, "some queues");
	else if (n > BLAMED_MAX)
		snprintf(out, size, "queues %s and %u more", list, n - BLAMED_MAX);
	else
		snprintf(out, size, "queue%s %s", n == 1 ? "" : "s", list);
	return out;
}

static void explain(struct gp_amd_task *task, int code, bool hold)
{
	const struct gp_amd_session *s = &task->target->session;
	char blamed[BLAMED_MAX * 12 + 32];

	task->why = (struct gp_error){0};
	if ((code == -EPROTO || code == -EBADMSG) && s->outdated.code == code)
		task->why = s->outdated;
	else if (code == -EIO && gp_amd_in_reset(task->gpu))
		gp_fail(&task->why, code,
			"the driver is resetting %s, so %s of process %d cannot be %s; programs "
			"that use it now have to be restarted after the reset",
			task->gpu->base.info.name, name_blamed(task, blamed, sizeof blamed),
			task->pid, hold ? "suspended" : "resumed");
	else if (code == -EIO)
		gp_fail(&task->why, code,
			"the GPU did not %s %s of process %d in time; the driver may reset it",
			hold ? "stop" : "start", name_blamed(task, blamed, sizeof blamed),
			task->pid);
	else if (code == -EPROTO && hold && s->untrue)
		gp_fail(&task->why, code,
			"the driver refuses to suspend process %d (%s), although its debug session "
			"exists; its queues were resumed to be sure",
			task->pid, gp_error_name(s->untrue));
	else if (code == -EPROTO)
		gp_fail(&task->why, code,
			"the driver was asked to %s process %d and answered for %u of its %u "
			"queues: the state of the process is not known",
			hold ? "suspend" : "resume", task->pid, s->answered, s->expected);
	else if (code == -EAGAIN)
		gp_fail(&task->why, code,
			"the driver refuses to %s %s of process %d, as if it were new or being "
			"destroyed; this is tried again",
			hold ? "suspend" : "resume", name_blamed(task, blamed, sizeof blamed),
			task->pid);
	else if (code == -EPERM || code == -EINVAL)
		gp_fail(&task->why, code,
			"process %d has shut down its ROCm runtime or has executed another program",
			task->pid);
	else
		gp_fail(&task->why, code, "the driver refuses to %s process %d: %s",
			hold ? "suspend" : "resume", task->pid, gp_error_name(code));
}

/* Whether the driver does not know this process any more as the debugger. A runtime that has shut
 * down does not prevent a look. */
static bool is_taken(const struct gp_kfd_thread *h, const struct gp_amd_task *task)
{
	return gp_kfd_has_session(h->kfd, task->pid) == -EPERM;
}

static int note_failure(struct gp_kfd_thread *h, struct gp_amd_task *const *task, unsigned n,
			int code, bool hold)
{
	if (code >= 0)
		return 0;
	gp_amd_smi_read(h);
	pthread_mutex_lock(&h->requests.lock);
	for (unsigned i = 0; i < n; i++)
		explain(task[i], code, hold);
	pthread_mutex_unlock(&h->requests.lock);
	/* The session was ended or taken, or the target runs another program: the next try opens a
	 * new session. */
	if (code == -EINVAL || code == -ESRCH || (code == -EPERM && is_taken(h, task[0])))
		gp_amd_lose(h, task[0]->target);
	else if (code == -EPERM && hold && gp_amd_session_is_doubtful(&task[0]->target->session))
		end_target(h, task[0]->target, true); /* queues may be suspended */
	return code;
}

/* Activity may have shown that the last answer of the driver was wrong. True: that the release of a
 * task had no effect, this one or one before the last hold. */
static bool doubt_disproved(struct gp_kfd_thread *h, struct gp_amd_task *const *task, unsigned n)
{
	bool not_released = false;

	for (unsigned i = 0; i < n; i++) {
		struct task_list list = {.task = &task[i], .n = 1};
		struct gp_amd_choice choice = {.is_meant = is_meant, .arg = &list};
		bool disproved;

		pthread_mutex_lock(&h->requests.lock);
		disproved = task[i]->proof.disproved;
		not_released |= (disproved && !task[i]->proof.of_hold) || task[i]->proof.end_due;
		pthread_mutex_unlock(&h->requests.lock);
		if (disproved && task[i]->target)
			gp_amd_session_doubt(&task[i]->target->session, &choice);
	}
	return not_released;
}

int gp_amd_hold(struct gp_kfd_thread *h, struct gp_amd_task *const *task, unsigned n)
{
	int r = 0;

	for (unsigned i = 0; i < n && !r; i++)
		r = get_session(h, task[i]);
	if (r)
		return r;
	doubt_disproved(h, task, n);
	for (unsigned i = 0; i < n; i++)
		task[i]->hold_want = true;
	r = suspend(task, n);
	/* Nothing was left to suspend. Another process may have ended the session meanwhile. */
	if (!r && gp_kfd_has_session(h->kfd, task[0]->pid) == 0)
		r = -EINVAL;
	for (unsigned i = 0; i < n && r < 0; i++)
		task[i]->hold_want = false; /* new queues are not held */
	return note_failure(h, task, n, r, true);
}

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

/* Whether a release is asked for again that only the driver has confirmed. Its RESUME may have had
 * no effect on a queue that has no packets: it is made again. */
static bool doubt_unproven(struct gp_kfd_thread *h, struct gp_amd_task *const *task, unsigned n)
{
	bool any = false;

	for (unsigned i = 0; i < n; i++) {
		struct task_list list = {.task = &task[i], .n = 1};
		struct gp_amd_choice choice = {.is_meant = is_meant, .arg = &list};
		bool again;

		pthread_mutex_lock(&h->requests.lock);
		again = !task[i]->held && !task[i]->unsure && !task[i]->failed &&
			!task[i]->proof.of_hold &&
			gp_amd_proof_evidence(task[i]) == GP_EVIDENCE_DRIVER;
		task[i]->unsure |= again;
		pthread_mutex_unlock(&h->requests.lock);
		if (again)
			gp_amd_session_doubt(&task[i]->target->session, &choice);
		any |= again;
	}
	return any;
}

/*
 * Releases tasks with the session `target`. If the driver has failed to resume its queues several
 * times, or if a release that only the driver confirms is asked for again, the session is ended:
 * then the driver resumes all of them, and the next hold attaches again.
 */
static int release(struct gp_kfd_thread *h, struct gp_amd_target *target,
		   struct gp_amd_task *const *task, unsigned n, bool *proven)
{
	struct gp_amd_task *held[HELD_MAX];
	int r;

	*proven = true; /* except for a resume that the driver confirms */
	if (target->ending)
		return end_target(h, target, true);
	if (doubt_disproved(h, task, n)) {
		gp_log(GP_LOG_WARN, "session.ended-to-release", "pid=%d reason=no-progress",
		       target->session.pid);
		return end_target(h, target, true);
	}
	if (doubt_unproven(h, task, n) && !find_held(h, target, held)) {
		gp_log(GP_LOG_INFO, "session.ended-to-release", "pid=%d reason=asked-again",
		       target->session.pid);
		return end_target(h, target, true);
	}
	r = resume(task, n);
	*proven = r == 0;
	if (r >= 0) {
		target->resume_failures = 0;
		return 0;
	}
	if (++target->resume_failures < RESUME_TRIES)
		return note_failure(h, task, n, r, false);
	gp_log(GP_LOG_WARN, "session.ended-to-release", "pid=%d errno=%d tries=%u",
	       target->session.pid, -r, target->resume_failures);
	return end_target(h, target, true);
}

static void set_why(struct gp_kfd_thread *h, struct gp_amd_task *const *task, unsigned n,
		    const struct gp_error *why)
{
	pthread_mutex_lock(&h->requests.lock);
	for (unsigned i = 0; i < n; i++)
		task[i]->why = *why;
	pthread_mutex_unlock(&h->requests.lock);
}

/* Begins a session and ends it, which makes the driver resume all queues. 0 or -errno. */
static int begin_and_end(struct gp_kfd_thread *h, const struct gp_amd_task *task,
			 struct gp_error *err)
{
	struct gp_amd_target *target = find_target(h, task->pid, task->start_time);
	int r;

	if (target && target->ending)
		return fail_ending(task->pid, err);
	if (target)
		return end_target(h, target, true);
	target = make_target(h, task->pid, task->start_time, err);
	if (!target)
		return err->code;
	r = end_target(h, target, true);
	return r ? fail_ending(task->pid, err) : 0;
}

/* The end of the session had no effect that was seen: see proof.c. */
static int release_again(struct gp_kfd_thread *h, struct gp_amd_task *const *task, unsigned n)
{
	struct gp_error err = {0};
	bool gave_up = false, disproved = false;
	int r;

	pthread_mutex_lock(&h->requests.lock);
	for (unsigned i = 0; i < n; i++) {
		disproved |= task[i]->proof.disproved;
		gave_up |= gp_amd_proof_gave_up(task[i]);
	}
	pthread_mutex_unlock(&h->requests.lock);
	if (gave_up || !disproved)
		return gave_up ? -ETIME : 0;
	r = begin_and_end(h, task[0], &err);
	if (r)
		set_why(h, task, n, &err);
	pthread_mutex_lock(&h->requests.lock);
	for (unsigned i = 0; i < n; i++) {
		if (!r)
			gp_amd_proof_begin(task[i], false, false, gp_monotonic_ns());
		task[i]->proof.ends++; /* also if it failed: the tries are bounded */
	}
	pthread_mutex_unlock(&h->requests.lock);
	return r;
}

/* That the driver does not find a process with queues does not mean that they run. */
static int believe_gone(const struct gp_amd_task *task, int code)
{
	if (code != -ESRCH || gp_process_gone(task->pid, task->start_time) ||
	    !has_queues(task->pid))
		return code;
	return -EIO;
}

/* A task without a session has no suspended queues, unless its work shows the contrary. */
int gp_amd_release(struct gp_kfd_thread *h, struct gp_amd_task *const *task, unsigned n,
		   bool *proven)
{
	struct gp_amd_task *mine[GP_AMD_BATCH_MAX];
	unsigned nmine = 0;
	int r;

	for (unsigned i = 0; i < n; i++) {
		task[i]->hold_want = false;
		if (task[i]->target)
			mine[nmine++] = task[i];
	}
	*proven = true;
	r = nmine ? release(h, mine[0]->target, mine, nmine, proven) : release_again(h, task, n);
	return believe_gone(task[0], r);
}

/* Holds new queues of held tasks. */
static void hold_arrivals(struct gp_kfd_thread *h, struct gp_amd_target *target)
{
	struct gp_amd_task *held[HELD_MAX];
	unsigned n = target->session.runtime_state == KFD_RUNTIME_ENABLED
			     ? find_held(h, target, held)
			     : 0;

	for (unsigned i = 0; i < n; i++) /* held[] stays valid: only this thread detaches tasks */
		suspend(&held[i], 1);
}

void gp_amd_settle(struct gp_kfd_thread *h, struct gp_amd_target *target)
{
	for (int i = 0; i < SETTLE_TRIES && target->session.changed; i++) {
		target->session.changed = false;
		hold_arrivals(h, target); /* may find new queues */
	}
	pthread_mutex_lock(&h->requests.lock);
	gp_amd_publish(h, target, true);
	pthread_mutex_unlock(&h->requests.lock);
	notify_all(h);
}

static void publish_state(struct gp_kfd_thread *h, struct gp_amd_target *target)
{
	pthread_mutex_lock(&h->requests.lock);
	gp_amd_publish(h, target, false);
	pthread_mutex_unlock(&h->requests.lock);
}

static void set_handles_events(struct gp_kfd_thread *h, bool handles)
{
	pthread_mutex_lock(&h->requests.lock);
	h->handles_events = handles;
	pthread_mutex_unlock(&h->requests.lock);
}

void gp_amd_target_events(struct gp_kfd_thread *h, struct gp_amd_target *target)
{
	int r;

	set_handles_events(h, true);
	r = gp_amd_session_events(&target->session);
	if (r == -ESRCH || r == -EINVAL || r == -EPERM)
		gp_amd_lose(h, target);
	else if (r > 0 || target->session.changed)
		gp_amd_settle(h, target);
	else if (r < 0)
		publish_state(h, target);
	set_handles_events(h, false);
}

static void tick(struct gp_kfd_thread *h, struct gp_amd_target *target)
{
	gp_amd_session_tick(&target->session);
	if (target->parting && target->session.link == GP_AMD_UNLINKED)
		forget(h, target);
	else if (target->ending && gp_monotonic_ns() >= target->end_ns)
		end_target(h, target, true);
	else if (target->session.again)
		gp_amd_target_events(h, target);
}

void gp_amd_tick(struct gp_kfd_thread *h)
{
	for (unsigned i = h->ntargets; i-- > 0;) {
		gp_requests_note_work(&h->requests, true);
		tick(h, h->target[i]);
	}
}

/* The end of this thread ends the remaining links. */
void gp_amd_forget_targets(struct gp_kfd_thread *h)
{
	while (h->ntargets) {
		struct gp_amd_target *target = h->target[0];

		if (!target->parting)
			gp_amd_session_close(&target->session);
		forget(h, target);
	}
}

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
		.unsure = q->doubtful,
		.copies = !gp_amd_computes(&q->is),
		.interleave = UINT32_MAX,
		.ring_address = q->is.ring_base_address,
		.ring_bytes = q->is.ring_size,
		.save_address = q->is.ctx_save_restore_address,
		/* The driver gives the size for one XCC; the areas of all XCCs are adjacent. */
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

/* The session stays open: a command that reads the queues once usually reads them again. */
void gp_amd_list_queues(struct gp_kfd_thread *h, struct gp_amd_call *call)
{
	uint32_t gpu_id = call->gpu->node.gpu_id;
	struct gp_amd_target *target = find_target(h, call->pid, call->start_time);
	struct gp_amd_mqd mqd[MQDS_MAX];
	int nmqds, n = 0;

	if (target) { /* also one that is to end: its queues may be suspended, as last seen */
		if (!target->ending)
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
			call->pointer[n] = gp_amd_pointers_of(&q->is);
		}
		n++;
	}
	if (target->session.changed && !target->ending)
		gp_amd_settle(h, target);
	call->question.result = n;
}
