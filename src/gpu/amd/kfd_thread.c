/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The KFD thread makes the calls to amdkfd. It does requests in order, then waits for requests, for
 * events of its targets, and for their end. A request costs three system calls (wake-up, driver
 * call, notification) and no allocation.
 *
 * A process has one KFD thread for all its devices: the driver identifies a debugger by its
 * process, and a session covers all GPUs of its target.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "gpu/amd/memory_reader.h"

#define EVENTS_MAX 16
#define TICK_NS                                                                          \
	(2 * GP_NS_PER_MS) /* while a target is traced: its signals wait for this thread \
			    */

static pthread_mutex_t only_lock = PTHREAD_MUTEX_INITIALIZER;
static struct gp_kfd_thread *only;

void gp_amd_notify(struct gp_amd_gpu *gpu)
{
	eventfd_write(gpu->event_fd, 1);
}

/* A task has at most four requests under way: prepare, unprepare, hold and release. */
int gp_amd_make_room(struct gp_kfd_thread *h)
{
	unsigned tasks = 1, capacity;

	for (unsigned i = 0; i < h->ngpus; i++)
		tasks += h->gpu[i]->ntasks;
	capacity = 4 * tasks;
	return capacity <= h->requests.capacity ? 0
						: gp_requests_reserve(&h->requests, 2 * capacity);
}

bool gp_amd_ask(struct gp_kfd_thread *h, enum gp_amd_request_kind kind, struct gp_amd_task *task)
{
	if (!gp_requests_put(&h->requests, (struct gp_request){.kind = kind, .task = task}))
		return false;
	task->queued++;
	return true;
}

/* Whether the same driver call can do both requests: a call takes queues of one process. Few calls
 * are better, because each may stop the whole device for a moment. */
static bool goes_with(const struct gp_request *first, const struct gp_request *r)
{
	const struct gp_amd_task *a = first->task, *b = r->task;

	return r->kind == first->kind && r->kind >= GP_AMD_HOLD && b->pid == a->pid &&
	       b->start_time == a->start_time && b->grace == a->grace;
}

/* Takes the oldest request and those that the same driver call can do. */
static unsigned take(struct gp_kfd_thread *h, struct gp_request request[GP_AMD_BATCH_MAX])
{
	const struct gp_request *next;
	unsigned n = 0;

	pthread_mutex_lock(&h->requests.lock);
	while ((next = gp_requests_first(&h->requests)) && n < GP_AMD_BATCH_MAX &&
	       (!n || goes_with(&request[0], next))) {
		request[n++] = *next;
		gp_requests_drop_first(&h->requests);
	}
	pthread_mutex_unlock(&h->requests.lock);
	return n;
}

static bool act(struct gp_kfd_thread *h)
{
	struct gp_request r[GP_AMD_BATCH_MAX];
	struct gp_amd_task *task[GP_AMD_BATCH_MAX];
	unsigned n = take(h, r);
	bool proven = false, wake;
	int failed = 0;

	for (unsigned i = 0; i < n; i++)
		task[i] = r[i].task;
	if (!n)
		return false;
	if (r[0].kind == GP_AMD_PREPARE)
		gp_amd_prepare(h, task[0]);
	else if (r[0].kind == GP_AMD_UNPREPARE)
		gp_amd_unprepare_idle(h, task[0]);
	else if (r[0].kind == GP_AMD_HOLD)
		failed = gp_amd_hold(h, task, n);
	else
		failed = gp_amd_release(h, task, n, &proven);
	pthread_mutex_lock(&h->requests.lock);
	for (unsigned i = 0; i < n; i++) {
		task[i]->queued--;
		if (r[0].kind < GP_AMD_HOLD)
			continue;
		task[i]->failed = failed;
		/* The end of a session has begun the proof already. */
		if (task[i]->target)
			gp_amd_proof_begin(task[i], r[0].kind == GP_AMD_HOLD, proven || failed,
					   gp_monotonic_ns());
	}
	if (task[0]->target)
		gp_amd_publish(h, task[0]->target, false);
	wake = h->activity_sleeps && r[0].kind >= GP_AMD_HOLD && !proven && !failed;
	pthread_mutex_unlock(&h->requests.lock);
	for (unsigned i = 0; i < n; i++)
		if (!i || task[i]->gpu != task[i - 1]->gpu)
			gp_amd_notify(task[i]->gpu);
	if (wake)
		eventfd_write(h->activity_fd, 1); /* looks for the effect */
	if (task[0]->target && task[0]->target->session.changed)
		gp_amd_settle(h, task[0]->target);
	return true;
}

bool gp_amd_is_of(const struct gp_kfd_thread *h, uint64_t key, uint32_t queue, uint32_t gpu_id,
		  uint32_t id)
{
	if (queue != GP_QUEUE_ALL)
		return id == queue;
	for (unsigned i = 0; i < h->nsplits; i++)
		if (gp_amd_process_of(h->split[i].key) == key && h->split[i].gpu_id == gpu_id &&
		    h->split[i].queue == id)
			return false;
	return true;
}

static struct gp_amd_task *find_leaving(struct gp_kfd_thread *h)
{
	for (unsigned i = 0; i < h->ngpus; i++)
		for (unsigned k = 0; k < h->gpu[i]->ntasks; k++) {
			struct gp_amd_task *t = h->gpu[i]->task[k];

			if (t && t->leaving && !t->gone && !t->queued)
				return t;
		}
	return NULL;
}

static bool finish_detach(struct gp_kfd_thread *h)
{
	struct gp_amd_task *task;

	pthread_mutex_lock(&h->requests.lock);
	task = h->leaving ? find_leaving(h) : NULL;
	pthread_mutex_unlock(&h->requests.lock);
	if (!task)
		return false;
	gp_amd_unprepare(h, task);
	pthread_mutex_lock(&h->requests.lock);
	h->leaving--;
	task->gone = true;
	pthread_mutex_unlock(&h->requests.lock);
	eventfd_write(h->activity_fd, 1); /* the activity thread frees it */
	return true;
}

static bool answer(struct gp_kfd_thread *h)
{
	struct gp_question *question = gp_requests_question(&h->requests);

	if (!question)
		return false;
	gp_amd_list_queues(h, (struct gp_amd_call *)question); /* its first member */
	gp_requests_answered(&h->requests);
	return true;
}

/* Whether a target needs gp_amd_session_tick. */
static bool needs_ticks(const struct gp_kfd_thread *h)
{
	for (unsigned i = 0; i < h->ntargets; i++)
		if (h->target[i]->session.link != GP_AMD_UNLINKED || h->target[i]->session.again ||
		    h->target[i]->ending)
			return true;
	return false;
}

/* `about` is NULL for wake_fd, else the pointer to a target. Bit 0 of the pointer is set if the
 * process of the target has exited. */
static void take_event(struct gp_kfd_thread *h, void *about)
{
	struct gp_amd_target *target = (void *)((uintptr_t)about & ~(uintptr_t)1);

	for (unsigned i = 0; i < h->ntargets; i++)
		if (h->target[i] == target) {
			if ((uintptr_t)about & 1)
				gp_amd_lose(h, target);
			else
				gp_amd_target_events(h, target);
			return;
		}
}

static void wait_for_work(struct gp_kfd_thread *h)
{
	struct epoll_event event[EVENTS_MAX];
	bool ticks = needs_ticks(h);
	uint64_t now_ns;
	int n;

	gp_requests_note_work(&h->requests, false);
	n = epoll_wait(h->epoll_fd, event, EVENTS_MAX, ticks ? (int)(TICK_NS / GP_NS_PER_MS) : -1);
	now_ns = ticks ? gp_monotonic_ns() : 0;
	for (int i = 0; i < n; i++) {
		gp_requests_note_work(&h->requests, true);
		take_event(h, event[i].data.ptr);
	}
	if (ticks && now_ns >= h->tick_ns + TICK_NS) {
		h->tick_ns = now_ns;
		gp_amd_tick(h);
	}
}

static void *run(void *arg)
{
	struct gp_kfd_thread *h = arg;

	for (;;) {
		gp_requests_note_work(&h->requests, true);
		if (act(h) || finish_detach(h))
			continue;
		if (gp_requests_must_quit(&h->requests))
			break;
		if (answer(h))
			continue;
		wait_for_work(h);
	}
	gp_amd_forget_targets(h);
	return NULL;
}

static int start_threads(struct gp_kfd_thread *h)
{
	/* Edge-triggered: the eventfd is never read. */
	struct epoll_event wake = {.events = EPOLLIN | EPOLLET};
	sigset_t all, before;
	int r;

	h->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	h->activity_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (h->epoll_fd < 0 || h->activity_fd < 0 ||
	    epoll_ctl(h->epoll_fd, EPOLL_CTL_ADD, h->requests.wake_fd, &wake))
		return -errno;
	/* Signals are for the threads of the program that uses the library. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&h->thread, NULL, run, h);
	if (!r) {
		r = pthread_create(&h->activity, NULL, gp_amd_activity_thread, h);
		if (r) {
			gp_requests_quit(&h->requests);
			pthread_join(h->thread, NULL);
		}
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -r;
}

static void free_thread(struct gp_kfd_thread *h)
{
	int fd[] = {h->kfd, h->activity_fd, h->epoll_fd};

	for (unsigned i = 0; i < sizeof fd / sizeof fd[0]; i++)
		if (fd[i] >= 0)
			close(fd[i]);
	gp_requests_close(&h->requests);
	pthread_mutex_destroy(&h->self.lock);
	pthread_mutex_destroy(&h->smi_lock);
	pthread_mutex_destroy(&h->query_lock);
	if (h->query_readers)
		gp_amd_readers_end(h->query_readers);
	free(h->query_readers);
	gp_amd_smi_close(h);
	free(h->self.own);
	free(h->split);
	free(h->target);
	free(h);
}

static int make_thread(struct gp_kfd_thread **kfd_thread, struct gp_error *err)
{
	struct gp_kfd_thread *h = calloc(1, sizeof *h);
	int r, ready;

	if (!h)
		return gp_fail(err, -ENOMEM, "no memory");
	h->activity_fd = h->epoll_fd = -1;
	ready = gp_requests_open(&h->requests);
	pthread_mutex_init(&h->self.lock, NULL);
	pthread_mutex_init(&h->smi_lock, NULL);
	pthread_mutex_init(&h->query_lock, NULL);
	h->kfd = gp_kfd_open(err);
	r = h->kfd < 0 ? h->kfd : gp_amd_make_room(h);
	if (!r) {
		r = ready ? ready : start_threads(h);
		if (r)
			gp_fail(err, r, "cannot start the thread for amdkfd: %s", gp_error_name(r));
	}
	if (r) {
		free_thread(h);
		return r;
	}
	*kfd_thread = h;
	return 0;
}

int gp_kfd_thread_join(struct gp_amd_gpu *gpu, struct gp_error *err)
{
	int r = 0;

	pthread_mutex_lock(&only_lock);
	if (!only)
		r = make_thread(&only, err);
	if (!r) {
		gpu->stream = gp_amd_smi_open(only, gpu->node.gpu_id);
		pthread_mutex_lock(&only->requests.lock);
		if (only->ngpus < GP_AMD_OPEN_MAX) {
			gpu->kfd_thread = only;
			only->gpu[only->ngpus++] = gpu;
		} else {
			r = gp_fail(err, -EMFILE, "too many AMD devices are open (at most %d)",
				    GP_AMD_OPEN_MAX);
		}
		pthread_mutex_unlock(&only->requests.lock);
	}
	pthread_mutex_unlock(&only_lock);
	return r;
}

/* The other threads have freed all tasks of the device. */
static bool is_empty(const struct gp_amd_gpu *gpu)
{
	for (unsigned i = 0; i < gpu->ntasks; i++)
		if (gpu->task[i])
			return false;
	return true;
}

static void end_threads(struct gp_kfd_thread *h)
{
	gp_requests_quit(&h->requests);
	pthread_join(h->thread, NULL);
	pthread_mutex_lock(&h->requests.lock);
	h->activity_quit = true;
	pthread_mutex_unlock(&h->requests.lock);
	eventfd_write(h->activity_fd, 1);
	pthread_join(h->activity, NULL);
}

void gp_kfd_thread_leave(struct gp_amd_gpu *gpu)
{
	struct gp_kfd_thread *h = gpu->kfd_thread;

	pthread_mutex_lock(&only_lock);
	pthread_mutex_lock(&h->requests.lock);
	for (unsigned i = 0; i < gpu->ntasks; i++)
		if (gpu->task[i] && !gpu->task[i]->leaving) {
			gpu->task[i]->leaving = true;
			h->leaving++;
		}
	gp_requests_wake(&h->requests);
	while (!is_empty(gpu))
		pthread_cond_wait(&h->requests.changed, &h->requests.lock);
	for (unsigned i = 0; i < h->ngpus; i++)
		if (h->gpu[i] == gpu)
			h->gpu[i] = h->gpu[--h->ngpus];
	pthread_mutex_unlock(&h->requests.lock);
	if (!h->ngpus) {
		end_threads(h);
		free_thread(h);
		only = NULL;
	}
	pthread_mutex_unlock(&only_lock);
}
