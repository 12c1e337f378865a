/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Questions and answers of the pool, as its caller sees them. Only gp_procinfo_free waits for
 * readers, at most until the deadline. A blocked reader keeps the pool allocated until it returns.
 */
#include "procinfo/pool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process.h"

static uint64_t now_ns(void)
{
	return gp_monotonic_ns();
}

void gp_procinfo_append(struct gp_procinfo_questions *list, struct gp_procinfo_question *q)
{
	q->next = NULL;
	if (list->last)
		list->last->next = q;
	else
		list->first = q;
	list->last = q;
}

struct gp_procinfo_question *gp_procinfo_take_first(struct gp_procinfo_questions *list)
{
	struct gp_procinfo_question *q = list->first;

	if (q) {
		list->first = q->next;
		if (!q->next)
			list->last = NULL;
	}
	return q;
}

static void drop_all(struct gp_procinfo_questions *list)
{
	struct gp_procinfo_question *q;

	while ((q = gp_procinfo_take_first(list)))
		gp_procinfo_drop(&q->info);
}

void gp_procinfo_drop(struct gp_procinfo *info)
{
	if (!info)
		return;
	/* The pool allocated them; `const` is for the caller. */
	free((void *)(uintptr_t)info->group);
	free((void *)(uintptr_t)info->cgroup);
	free((void *)(uintptr_t)info->exe);
	free((void *)(uintptr_t)info->cmdline);
	free((void *)(uintptr_t)info->environ);
	free(info); /* first member of struct gp_procinfo_question: frees that */
}

void gp_procinfo_set_timer(struct gp_procinfo_pool *p)
{
	struct itimerspec at = {0}; /* never */

	if (p->busy)
		at.it_value = gp_timespec(p->busy->deadline_ns);
	timerfd_settime(p->timer_fd, TFD_TIMER_ABSTIME, &at, NULL);
}

/* Replaces the entry that expires first. */
static void distrust(struct gp_procinfo_pool *p, uid_t uid)
{
	unsigned oldest = 0;

	for (unsigned i = 0; i < GP_PROCINFO_DISTRUSTED_MAX; i++)
		if (p->distrusted[i].until_ns < p->distrusted[oldest].until_ns)
			oldest = i;
	p->distrusted[oldest].uid = uid;
	p->distrusted[oldest].until_ns = gp_time_add(now_ns(), p->limits.distrust_ns);
}

/* Gives up on the first busy reader. Returns its question, with the fields that are known by now.
 */
static struct gp_procinfo_question *abandon(struct gp_procinfo_pool *p,
					    struct gp_procinfo_reader *r)
{
	struct gp_procinfo_question *q = r->question;

	p->busy = r->next; /* `r` is the first */
	r->question = NULL;
	p->readers--;
	p->stuck++;
	if (r->in_memory && q->info.known & GP_PROCINFO_USER)
		distrust(p, q->info.uid[0]);
	if (gp_process_gone(q->info.pid, q->info.start_time)) {
		q->info.gone = -ESRCH;
		q->info.known = 0;
	}
	return q;
}

/*
 * A check this late means that the daemon was suspended, and its readers with it. They get a new
 * deadline.
 */
static void extend_after_suspension(struct gp_procinfo_pool *p, uint64_t now)
{
	if (!p->busy || now < gp_time_add(p->busy->deadline_ns, p->limits.deadline_ns))
		return;
	for (struct gp_procinfo_reader *r = p->busy; r; r = r->next)
		r->deadline_ns = gp_time_add(now, p->limits.deadline_ns);
}

static void check_deadlines(struct gp_procinfo_pool *p)
{
	uint64_t expired, now = now_ns();

	if (read(p->timer_fd, &expired, sizeof expired) < 0)
		return; /* not yet */
	extend_after_suspension(p, now);
	while (p->busy && p->busy->deadline_ns <= now)
		gp_procinfo_append(&p->answered, abandon(p, p->busy));
	gp_procinfo_set_timer(p);
	while (p->unread > p->idle && p->readers < p->limits.readers)
		if (gp_procinfo_start_reader(p))
			break;
}

int gp_procinfo_ask(struct gp_procinfo_pool *p, pid_t pid, uint64_t start_time, uint32_t want,
		    uint64_t token)
{
	struct gp_procinfo_question *q = calloc(1, sizeof *q);
	int r = 0;

	if (!q)
		return -ENOMEM;
	q->info.pid = pid;
	q->info.start_time = start_time;
	q->want = want | GP_PROCINFO_USER; /* the user decides whether the memory may be read */
	q->token = token;
	pthread_mutex_lock(&p->lock);
	if (p->questions >= p->limits.questions)
		r = -EAGAIN;
	else if (p->unread >= p->idle && p->readers < p->limits.readers)
		r = gp_procinfo_start_reader(p);
	if (r && r != -EAGAIN)
		r = p->readers ? 0 : r; /* an existing reader will take it */
	if (!r) {
		gp_procinfo_append(&p->waiting, q);
		p->unread++;
		p->questions++;
		pthread_cond_signal(&p->changed);
	}
	pthread_mutex_unlock(&p->lock);
	if (r)
		free(q);
	return r;
}

int gp_procinfo_take(struct gp_procinfo_pool *p, struct gp_procinfo **info, uint64_t *token)
{
	struct gp_procinfo_question *q;
	eventfd_t times;

	pthread_mutex_lock(&p->lock);
	check_deadlines(p);
	q = gp_procinfo_take_first(&p->answered);
	if (q)
		p->questions--;
	if (!p->answered.first)
		eventfd_read(p->event_fd, &times); /* not readable until the next answer */
	else
		eventfd_write(p->event_fd,
			      1); /* answers of expired deadlines did not signal the eventfd */
	pthread_mutex_unlock(&p->lock);
	if (!q)
		return -EAGAIN;
	*info = &q->info;
	*token = q->token;
	return 0;
}

uint32_t gp_procinfo_stuck(struct gp_procinfo_pool *p)
{
	uint32_t stuck;

	pthread_mutex_lock(&p->lock);
	stuck = p->stuck;
	pthread_mutex_unlock(&p->lock);
	return stuck;
}

static int open_files(struct gp_procinfo_pool *p)
{
	struct epoll_event readable = {.events = EPOLLIN};

	p->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	p->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	p->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (p->event_fd < 0 || p->timer_fd < 0 || p->epoll_fd < 0 ||
	    epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, p->event_fd, &readable) ||
	    epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, p->timer_fd, &readable))
		return -errno;
	return 0;
}

static void close_files(const struct gp_procinfo_pool *p)
{
	const int fds[] = {p->epoll_fd, p->event_fd, p->timer_fd};

	for (unsigned i = 0; i < sizeof fds / sizeof *fds; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

static void init_lock(struct gp_procinfo_pool *p)
{
	pthread_condattr_t attr;

	pthread_mutex_init(&p->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&p->changed, &attr);
	pthread_condattr_destroy(&attr);
}

static void set_limits(struct gp_procinfo_limits *l)
{
	l->deadline_ns = l->deadline_ns ? l->deadline_ns : GP_NS_PER_S;
	l->readers = l->readers ? l->readers : 4;
	l->stuck = l->stuck ? l->stuck : 8;
	l->distrust_ns = l->distrust_ns ? l->distrust_ns : 60 * GP_NS_PER_S;
	l->questions = l->questions ? l->questions : 65536;
}

int gp_procinfo_new_limited(const struct gp_procinfo_limits *limits, struct gp_procinfo_pool **pool,
			    int *fd)
{
	struct gp_procinfo_pool *p = calloc(1, sizeof *p);
	int r;

	if (!p)
		return -ENOMEM;
	p->limits = *limits;
	set_limits(&p->limits);
	r = open_files(p);
	if (r) {
		close_files(p);
		free(p);
		return r;
	}
	init_lock(p);
	*pool = p;
	*fd = p->epoll_fd;
	return 0;
}

int gp_procinfo_new(struct gp_procinfo_pool **pool, int *fd)
{
	return gp_procinfo_new_limited(&(struct gp_procinfo_limits){0}, pool, fd);
}

void gp_procinfo_destroy(struct gp_procinfo_pool *p)
{
	pthread_cond_destroy(&p->changed);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

void gp_procinfo_free(struct gp_procinfo_pool *p)
{
	struct timespec until;
	bool last;

	if (!p)
		return;
	until = gp_timespec(gp_time_add(now_ns(), p->limits.deadline_ns));
	pthread_mutex_lock(&p->lock);
	p->closing = true;
	pthread_cond_broadcast(&p->changed);
	while (p->readers && !pthread_cond_timedwait(&p->changed, &p->lock, &until))
		;
	while (p->busy)
		gp_procinfo_append(&p->answered, abandon(p, p->busy));
	drop_all(&p->waiting);
	drop_all(&p->answered);
	close_files(p);
	p->orphaned = true;
	last = !p->readers && !p->stuck;
	pthread_mutex_unlock(&p->lock);
	if (last)
		gp_procinfo_destroy(p);
}
