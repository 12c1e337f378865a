/* SPDX-License-Identifier: Apache-2.0 */
/* KFD processes: from the first open of the device (or a debugger's ENABLE) to their death. */
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>

#include "kfd.h"

#define LOOK_MS 20

static int watched = -1; /* epoll: their pidfds */
static int stop_event = -1;
static pthread_t watcher;

struct process *process_find(pid_t pid)
{
	for (struct process *p = kfd.processes; p; p = p->next)
		if (p->pid == pid && !p->dead && !program_is_gone(p)) {
			p->refs++;
			return p;
		}
	return NULL;
}

struct process *process_by_serial(uint64_t serial)
{
	struct process *p = kfd.processes;

	while (p && p->serial != serial)
		p = p->next;
	return p;
}

struct device *device_find(uint32_t gpu_id)
{
	for (uint32_t i = 0; i < kfd.ndevices; i++)
		if (kfd.device[i].gpu_id == gpu_id)
			return &kfd.device[i];
	return NULL;
}

struct queue *process_queue(const struct process *p, uint32_t id)
{
	for (struct queue *q = p->queues; q; q = q->next)
		if (q->id == id)
			return q;
	return NULL;
}

static bool any_reset(void)
{
	for (uint32_t i = 0; i < kfd.ndevices; i++)
		if (kfd.device[i].in_reset)
			return true;
	return false;
}

static int watch(struct process *p)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = p};
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)p->pid);
	p->memory = open(path, O_RDWR | O_CLOEXEC);
	p->pidfd = (int)syscall(SYS_pidfd_open, p->pid, 0);
	if (p->memory < 0 || p->pidfd < 0)
		return -EINVAL;
	return epoll_ctl(watched, EPOLL_CTL_ADD, p->pidfd, &event) ? -errno : 0;
}

static void process_free(struct process *p)
{
	if (p->pidfd >= 0)
		close(p->pidfd);
	if (p->memory >= 0)
		close(p->memory);
	free(p);
}

struct process *process_create(pid_t pid, int *error)
{
	static uint64_t serial;
	struct process *p = process_find(pid);

	*error = 0;
	if (p)
		return p;
	p = any_reset() ? NULL : calloc(1, sizeof(*p));
	if (!p) {
		*error = -EINVAL;
		return NULL;
	}
	p->serial = ++serial;
	p->pid = pid;
	p->event_fd = -1;
	p->pasid = kfd.next_pasid++;
	p->refs = 2; /* the table's, the caller's */
	*error = watch(p);
	if (*error) {
		process_free(p);
		return NULL;
	}
	p->next = kfd.processes;
	kfd.processes = p;
	return p;
}

void process_put(struct process *p)
{
	if (!--p->refs)
		process_free(p);
}

void process_lock(struct process *p)
{
	for (;;) {
		uint64_t now = kfd_now_ns();

		if (now < p->held_until_ns) {
			kfd_delay_ns(p->held_until_ns - now);
			p->held_until_ns = 0;
		} else if (p->locked)
			pthread_cond_wait(&kfd.changed, &kfd.lock);
		else
			break;
	}
	p->locked = true;
}

void process_unlock(struct process *p)
{
	p->locked = false;
	kfd_changed();
}

static struct process *debugged_by(const struct process *p)
{
	for (struct process *target = kfd.processes; target; target = target->next)
		if (target != p && target->debugged && target->debugger == p->serial)
			return target;
	return NULL;
}

/*
 * Ends the sessions that the process has with others. If its ENABLE failed, it has no session to
 * end, even if it replaced the debugger: that session stays.
 */
static void let_go(struct process *p)
{
	struct process *target;

	while (p->debugging > 0 && (target = debugged_by(p))) {
		target->refs++;
		process_lock(target);
		if (target->debugger == p->serial)
			session_disable(target);
		process_unlock(target);
		process_put(target);
	}
}

static void unlink_process(const struct process *p)
{
	struct process **at = &kfd.processes;

	while (*at && *at != p)
		at = &(*at)->next;
	if (*at)
		*at = p->next;
}

static void bury(struct process *p)
{
	p->dead = true;
	epoll_ctl(watched, EPOLL_CTL_DEL, p->pidfd, NULL);
	let_go(p);
	process_lock(p);
	session_disable(p);
	queues_remove_all(p);
	process_unlock(p);
	unlink_process(p);
	count_add("deaths", 1);
	process_put(p);
	kfd_changed();
}

static struct process *first_gone(void)
{
	struct process *p = kfd.processes;

	while (p && !p->dead && !program_is_gone(p))
		p = p->next;
	return p;
}

void processes_bury(void)
{
	struct process *p;

	while ((p = first_gone()))
		if (p->dead)
			pthread_cond_wait(&kfd.changed, &kfd.lock); /* another thread is at it */
		else
			bury(p);
}

/* An exec is not told by anything: it is looked for. */
static void *watch_deaths(void *arg)
{
	struct epoll_event event;

	(void)arg;
	for (;;) {
		int n = epoll_wait(watched, &event, 1, LOOK_MS);

		if (n == 1 && !event.data.ptr)
			return NULL;
		kfd_lock();
		processes_bury();
		kfd_unlock();
	}
}

int processes_start(void)
{
	struct epoll_event event = {.events = EPOLLIN};

	watched = epoll_create1(EPOLL_CLOEXEC);
	stop_event = eventfd(0, EFD_CLOEXEC);
	if (watched < 0 || stop_event < 0 || epoll_ctl(watched, EPOLL_CTL_ADD, stop_event, &event))
		return -errno;
	return -pthread_create(&watcher, NULL, watch_deaths, NULL);
}

void processes_stop(void)
{
	if (eventfd_write(stop_event, 1))
		return;
	pthread_join(watcher, NULL);
	kfd_lock();
	while (kfd.processes) {
		struct process *p = kfd.processes;

		if (p->event_fd >= 0)
			close(p->event_fd);
		while (p->queues) {
			struct queue *q = p->queues;

			p->queues = q->next;
			free(q);
		}
		kfd.processes = p->next;
		process_put(p);
	}
	kfd_unlock();
	close(watched);
	close(stop_event);
}
