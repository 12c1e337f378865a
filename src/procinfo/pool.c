/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pool: questions, reader threads and answers. Only gp_procinfo_free waits for readers, at most
 * until the deadline. A blocked reader keeps the pool allocated until it returns.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process.h"
#include "procinfo/read.h"

#define STACK_SIZE     ((size_t)1 << 19)

#define DISTRUSTED_MAX 16u

struct question {
	struct gp_procinfo info; /* first member: the caller drops the question by it */
	uint32_t want;
	uint64_t token;
	struct question *next;
};

struct questions {
	struct question *first, *last;
};

/* State of one reader thread, on its stack. An abandoned reader has no question any more. */
struct reader {
	struct gp_procinfo_pool *pool;
	struct question *question;
	pid_t pid; /* copied from the question; these three belong to the reader thread */
	uint64_t start_time;
	uint32_t want;
	bool in_memory; /* is reading the memory of the process */
	uint64_t deadline_ns;
	struct reader *next;
};

struct gp_procinfo_pool {
	pthread_mutex_t lock;   /* protects all members below and the questions in the lists */
	pthread_cond_t changed; /* a question was added, the pool closes, or a reader has ended */
	struct gp_procinfo_limits limits;
	struct questions waiting, answered;
	uint32_t unread;     /* length of `waiting` */
	struct reader *busy; /* in order of their start, so the first has the first deadline */
	uint32_t questions;  /* asked and not yet taken */
	uint32_t readers, idle;
	uint32_t stuck; /* abandoned; not counted in `readers` */
	bool closing, orphaned;
	struct {
		uid_t uid;
		uint64_t until_ns;
	} distrusted[DISTRUSTED_MAX]; /* users who blocked a reader */
	int epoll_fd, event_fd, timer_fd;
};

static void append(struct questions *list, struct question *q)
{
	q->next = NULL;
	if (list->last)
		list->last->next = q;
	else
		list->first = q;
	list->last = q;
}

static struct question *take_first(struct questions *list)
{
	struct question *q = list->first;

	if (q) {
		list->first = q->next;
		if (!q->next)
			list->last = NULL;
	}
	return q;
}

static void drop_all(struct questions *list)
{
	struct question *q;

	while ((q = take_first(list)))
		gp_procinfo_drop(&q->info);
}

/* Frees what the fields point to. */
static void clear_info(const struct gp_procinfo *info)
{
	/* The pool allocated them; `const` is for the caller. */
	free((void *)(uintptr_t)info->group);
	free((void *)(uintptr_t)info->cgroup);
	free((void *)(uintptr_t)info->exe);
	free((void *)(uintptr_t)info->cmdline);
	free((void *)(uintptr_t)info->environ);
}

void gp_procinfo_drop(struct gp_procinfo *info)
{
	if (info)
		clear_info(info);
	free(info); /* first member of struct question: frees that */
}

/* Sets the timer to the first deadline. Caller holds p->lock. */
static void set_timer(struct gp_procinfo_pool *p)
{
	struct itimerspec at = {0}; /* never */

	if (p->busy)
		at.it_value = gp_timespec(p->busy->deadline_ns);
	timerfd_settime(p->timer_fd, TFD_TIMER_ABSTIME, &at, NULL);
}

/* Frees the pool; no thread uses it any more. */
static void destroy(struct gp_procinfo_pool *p)
{
	pthread_cond_destroy(&p->changed);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

/* The reader threads. A field is written into the question as soon as it is known, with the lock
 * held. A reader that finds its question taken away was abandoned, and ends. */

/*
 * Returns the answer to fill in and locks the pool. Returns NULL, without the lock, if the reader
 * was abandoned.
 */
static struct gp_procinfo *open_answer(struct reader *r)
{
	pthread_mutex_lock(&r->pool->lock);
	if (r->question)
		return &r->question->info;
	pthread_mutex_unlock(&r->pool->lock);
	return NULL;
}

static void close_answer(struct reader *r, uint32_t known)
{
	r->question->info.known |= known;
	pthread_mutex_unlock(&r->pool->lock);
}

static bool is_distrusted(const struct gp_procinfo_pool *p, uid_t uid)
{
	uint64_t now = gp_monotonic_ns();

	for (unsigned i = 0; i < DISTRUSTED_MAX; i++)
		if (p->distrusted[i].uid == uid && p->distrusted[i].until_ns > now)
			return true;
	return false;
}

/* False if a process of this user blocked a reader recently, or if too many readers are blocked. */
static bool may_touch_memory(struct reader *r)
{
	const struct gp_procinfo *f = open_answer(r);
	bool may;

	if (!f)
		return false;
	may = f->known & GP_PROCINFO_USER && r->pool->stuck < r->pool->limits.stuck &&
	      !is_distrusted(r->pool, f->uid[0]);
	r->in_memory = may;
	close_answer(r, 0);
	return may;
}

/* The members of struct gp_procinfo that a field consists of. */
#define MEMBERS(first, last)                 \
	offsetof(struct gp_procinfo, first), \
		offsetof(struct gp_procinfo, last) + sizeof(((struct gp_procinfo *)0)->last)

/* Fields that cannot block come first. */
static const struct field {
	uint32_t field;
	gp_procinfo_read *read;
	size_t from, to;
} fields[] = {
	{GP_PROCINFO_USER, gp_procinfo_read_user, MEMBERS(uid, other_pidns)},
	{GP_PROCINFO_COMM, gp_procinfo_read_comm, MEMBERS(comm, comm)},
	{GP_PROCINFO_CGROUP, gp_procinfo_read_cgroup, MEMBERS(cgroup, cgroup_trusted)},
	{GP_PROCINFO_EXE, gp_procinfo_read_exe, MEMBERS(exe, exe_trusted)},
	{GP_PROCINFO_CMDLINE, gp_procinfo_read_cmdline, MEMBERS(cmdline, cmdline)},
	{GP_PROCINFO_ENVIRON, gp_procinfo_read_environ, MEMBERS(environ, environ_size)},
};

static void read_field(struct reader *r, const struct field *field)
{
	struct gp_procinfo part = {0}, *f;

	if (field->read(r->pid, &part))
		return;
	f = open_answer(r);
	if (!f) {
		clear_info(&part);
		return;
	}
	memcpy((char *)f + field->from, (char *)&part + field->from, field->to - field->from);
	close_answer(r, field->field);
}

static void read_all(struct reader *r)
{
	const uint32_t memory = GP_PROCINFO_CMDLINE | GP_PROCINFO_ENVIRON;

	if (gp_process_start_time(r->pid) != r->start_time)
		return;
	for (unsigned i = 0; i < sizeof fields / sizeof *fields; i++)
		if (r->want & fields[i].field &&
		    (!(fields[i].field & memory) || may_touch_memory(r)))
			read_field(r, &fields[i]);
}

static void begin(struct reader *r, struct question *q)
{
	struct gp_procinfo_pool *p = r->pool;
	struct reader **last = &p->busy;
	bool first = !p->busy;

	r->question = q;
	r->pid = q->info.pid;
	r->start_time = q->info.start_time;
	r->want = q->want;
	r->in_memory = false;
	r->deadline_ns = gp_time_add(gp_monotonic_ns(), p->limits.deadline_ns);
	r->next = NULL;
	while (*last)
		last = &(*last)->next;
	*last = r;
	if (first)
		set_timer(p);
}

/* Hands in the answer. Returns false if the reader was abandoned. Caller holds the lock. */
static bool finish(struct reader *r, bool gone)
{
	struct gp_procinfo_pool *p = r->pool;
	struct question *q = r->question;
	struct reader **at = &p->busy;

	if (!q)
		return false;
	while (*at != r)
		at = &(*at)->next;
	*at = r->next;
	r->question = NULL;
	if (gone) {
		q->info.gone = -ESRCH;
		q->info.known = 0;
	}
	append(&p->answered, q);
	eventfd_write(p->event_fd, 1);
	return true;
}

/*
 * Answers questions until the reader is abandoned (false) or the pool closes (true). Caller holds
 * the lock, which is released while reading.
 */
static bool answer_questions(struct reader *r)
{
	struct gp_procinfo_pool *p = r->pool;

	while (!p->closing) {
		struct question *q = take_first(&p->waiting);
		bool gone;

		if (!q) {
			p->idle++;
			pthread_cond_wait(&p->changed, &p->lock);
			p->idle--;
			continue;
		}
		p->unread--;
		begin(r, q);
		pthread_mutex_unlock(&p->lock);
		read_all(r);
		gone = gp_process_gone(r->pid, r->start_time);
		pthread_mutex_lock(&p->lock);
		if (!finish(r, gone))
			return false;
	}
	return true;
}

static void *run(void *arg)
{
	struct reader r = {.pool = arg};
	struct gp_procinfo_pool *p = arg;
	bool last;

	pthread_mutex_lock(&p->lock);
	if (answer_questions(&r))
		p->readers--;
	else
		p->stuck--;
	last = p->orphaned && !p->readers && !p->stuck;
	pthread_cond_broadcast(&p->changed);
	pthread_mutex_unlock(&p->lock);
	if (last)
		destroy(p);
	return NULL;
}

/* 0 or -errno. Caller holds p->lock. */
static int start_reader(struct gp_procinfo_pool *p)
{
	sigset_t all, before;
	pthread_attr_t attr;
	pthread_t thread;
	int r = pthread_attr_init(&attr);

	if (r)
		return -r;
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, STACK_SIZE);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&thread, &attr, run, p);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	if (!r)
		p->readers++;
	return -r;
}

/* Questions and answers, as the caller sees them. */

/* Replaces the entry that expires first. */
static void distrust(struct gp_procinfo_pool *p, uid_t uid)
{
	unsigned oldest = 0;

	for (unsigned i = 0; i < DISTRUSTED_MAX; i++)
		if (p->distrusted[i].until_ns < p->distrusted[oldest].until_ns)
			oldest = i;
	p->distrusted[oldest].uid = uid;
	p->distrusted[oldest].until_ns = gp_time_add(gp_monotonic_ns(), p->limits.distrust_ns);
}

/* Gives up on the first busy reader. Returns its question, with the fields that are known by now.
 */
static struct question *abandon(struct gp_procinfo_pool *p, struct reader *r)
{
	struct question *q = r->question;

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
	for (struct reader *r = p->busy; r; r = r->next)
		r->deadline_ns = gp_time_add(now, p->limits.deadline_ns);
}

static void check_deadlines(struct gp_procinfo_pool *p)
{
	uint64_t expired, now = gp_monotonic_ns();

	if (read(p->timer_fd, &expired, sizeof expired) < 0)
		return; /* not yet */
	extend_after_suspension(p, now);
	while (p->busy && p->busy->deadline_ns <= now)
		append(&p->answered, abandon(p, p->busy));
	set_timer(p);
	while (p->unread > p->idle && p->readers < p->limits.readers)
		if (start_reader(p))
			break;
}

int gp_procinfo_ask(struct gp_procinfo_pool *p, pid_t pid, uint64_t start_time, uint32_t want,
		    uint64_t token)
{
	struct question *q = calloc(1, sizeof *q);
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
		r = start_reader(p);
	if (r && r != -EAGAIN)
		r = p->readers ? 0 : r; /* an existing reader will take it */
	if (!r) {
		append(&p->waiting, q);
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
	struct question *q;
	eventfd_t times;

	pthread_mutex_lock(&p->lock);
	check_deadlines(p);
	q = take_first(&p->answered);
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

void gp_procinfo_free(struct gp_procinfo_pool *p)
{
	struct timespec until;
	bool last;

	if (!p)
		return;
	until = gp_timespec(gp_time_add(gp_monotonic_ns(), p->limits.deadline_ns));
	pthread_mutex_lock(&p->lock);
	p->closing = true;
	pthread_cond_broadcast(&p->changed);
	while (p->readers && !pthread_cond_timedwait(&p->changed, &p->lock, &until))
		;
	while (p->busy)
		append(&p->answered, abandon(p, p->busy));
	drop_all(&p->waiting);
	drop_all(&p->answered);
	close_files(p);
	p->orphaned = true;
	last = !p->readers && !p->stuck;
	pthread_mutex_unlock(&p->lock);
	if (last)
		destroy(p);
}
