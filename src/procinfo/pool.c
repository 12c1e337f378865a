/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Questions, answers and readers. All of it runs in the thread of the caller, who waits for the
 * pool's epoll file: sockets of busy readers, pidfds of all readers, and a timer for the first
 * deadline.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/helper.h"
#include "base/log.h"
#include "base/process.h"
#include "procinfo/reader.h"

#define DISTRUSTED_MAX 16u
#define NO_USER        ((uid_t)-1)

struct question {
	struct gp_procinfo info; /* first member: the caller drops the question by it */
	uint32_t want;
	uint64_t token;
	struct question *next;
};

struct questions {
	struct question *first, *last;
};

struct reader {
	struct gp_helper child;
	struct question *question; /* NULL: idle or stuck */
	bool stuck;                /* was killed and has not ended */
	uid_t user;                /* of a stuck reader: the user who blocked it, or NO_USER */
	uint64_t deadline_ns;
	struct reader *next;
};

struct gp_procinfo_pool {
	struct gp_procinfo_limits limits;
	struct questions waiting, answered;
	uint32_t questions; /* asked and not yet taken */
	struct reader *readers;
	bool limited; /* the last permission was refused because of stuck readers of all users */
	struct {
		uid_t user;
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
	free(info); /* first member of struct question: frees that */
}

/* NULL without memory; the field is unknown then. */
static void *copy(const void *bytes, size_t size)
{
	void *out = malloc(size ? size : 1);

	if (out)
		memcpy(out, bytes, size);
	return out;
}

/* Copies what the reader knows so far. */
static void fill(struct gp_procinfo *info, const struct gp_procinfo_area *a)
{
	uint32_t known = atomic_load(&a->known);

	if (known & GP_PROCINFO_USER) {
		memcpy(info->uid, a->uid, sizeof info->uid);
		info->gid = a->gid;
		info->ngroups = a->ngroups;
		info->group = copy(a->group, a->ngroups * sizeof *a->group);
		info->other_pidns = a->other_pidns;
	}
	memcpy(info->comm, a->comm, sizeof info->comm);
	info->cgroup = known & GP_PROCINFO_CGROUP ? copy(a->cgroup, strlen(a->cgroup) + 1) : NULL;
	info->cgroup_trusted = a->cgroup_trusted;
	info->exe = known & GP_PROCINFO_EXE ? copy(a->exe, strlen(a->exe) + 1) : NULL;
	info->exe_trusted = a->exe_trusted;
	if (known & GP_PROCINFO_CMDLINE)
		info->cmdline = copy(a->cmdline, strlen(a->cmdline) + 1);
	if (known & GP_PROCINFO_ENVIRON) {
		info->environ = copy(a->environ, a->environ_size + 1);
		info->environ_size = a->environ_size;
	}
	info->known = (known & GP_PROCINFO_COMM) | (info->group ? GP_PROCINFO_USER : 0) |
		      (info->cgroup ? GP_PROCINFO_CGROUP : 0) | (info->exe ? GP_PROCINFO_EXE : 0) |
		      (info->cmdline ? GP_PROCINFO_CMDLINE : 0) |
		      (info->environ ? GP_PROCINFO_ENVIRON : 0);
}

static void set_timer(const struct gp_procinfo_pool *p)
{
	struct itimerspec at = {0}; /* never */
	uint64_t first = UINT64_MAX;

	for (const struct reader *r = p->readers; r; r = r->next)
		if (r->question && r->deadline_ns < first)
			first = r->deadline_ns;
	if (first != UINT64_MAX)
		at.it_value = gp_timespec(first);
	timerfd_settime(p->timer_fd, TFD_TIMER_ABSTIME, &at, NULL);
}

/* Replaces the entry that expires first. */
static void distrust(struct gp_procinfo_pool *p, uid_t user)
{
	unsigned oldest = 0;

	for (unsigned i = 0; i < DISTRUSTED_MAX; i++)
		if (p->distrusted[i].until_ns < p->distrusted[oldest].until_ns)
			oldest = i;
	p->distrusted[oldest].user = user;
	p->distrusted[oldest].until_ns = gp_time_add(gp_monotonic_ns(), p->limits.distrust_ns);
}

static bool is_distrusted(const struct gp_procinfo_pool *p, uid_t user)
{
	uint64_t now = gp_monotonic_ns();

	for (unsigned i = 0; i < DISTRUSTED_MAX; i++)
		if (p->distrusted[i].user == user && p->distrusted[i].until_ns > now)
			return true;
	return false;
}

static uint32_t count_stuck(const struct gp_procinfo_pool *p, uid_t user)
{
	uint32_t n = 0;

	for (const struct reader *r = p->readers; r; r = r->next)
		n += r->stuck && (user == NO_USER || r->user == user);
	return n;
}

static uid_t account(const struct gp_procinfo_pool *p, uid_t uid)
{
	return p->limits.account ? p->limits.account(p->limits.arg, uid) : uid;
}

/* What of the wanted fields may be read of a process of this user. */
static uint32_t permission(struct gp_procinfo_pool *p, uid_t user, uint32_t want)
{
	bool limited = count_stuck(p, NO_USER) >= p->limits.stuck;

	want &= GP_PROCINFO_RISKY;
	if (limited && !p->limited)
		gp_log(GP_LOG_WARN, "procinfo.limited",
		       "stuck=%u; executable, command line and environment of processes are not "
		       "read, and rules that match them are not applied, until readers return",
		       p->limits.stuck);
	p->limited = limited;
	if (limited || count_stuck(p, user) >= p->limits.stuck_per_user)
		return 0;
	return is_distrusted(p, user) ? want & ~(GP_PROCINFO_MEMORY) : want;
}

static const char *field_name(uint32_t field)
{
	return field == GP_PROCINFO_EXE       ? "executable"
	       : field == GP_PROCINFO_CMDLINE ? "command-line"
	       : field == GP_PROCINFO_ENVIRON ? "environment"
					      : "other";
}

static void gone(struct question *q)
{
	q->info.gone = -ESRCH;
	q->info.known = 0;
}

/*
 * Kills a reader that is late. Its question is answered with the fields that are known by now. If
 * the reader hangs in a field that the user controls, the user is not trusted for a while.
 */
static void abandon(struct gp_procinfo_pool *p, struct reader *r)
{
	struct question *q = r->question;
	const struct gp_procinfo_area *a = r->child.shared;
	uint32_t reading = atomic_load(&a->reading);

	fill(&q->info, a);
	r->user = NO_USER;
	if (reading & GP_PROCINFO_RISKY && q->info.known & GP_PROCINFO_USER) {
		r->user = account(p, q->info.uid[0]);
		distrust(p, r->user);
	}
	gp_log(GP_LOG_WARN, "procinfo.reader-abandoned",
	       "pid=%d uid=%d reading=%s; rules may not match processes of this user for %u s",
	       q->info.pid, (int)r->user, field_name(reading),
	       (unsigned)(p->limits.distrust_ns / GP_NS_PER_S));
	epoll_ctl(p->epoll_fd, EPOLL_CTL_DEL, r->child.fd, NULL);
	gp_helper_kill(&r->child);
	r->question = NULL;
	r->stuck = true;
	if (gp_process_gone(q->info.pid, q->info.start_time))
		gone(q);
	append(&p->answered, q);
}

/*
 * A check this late means that the daemon was suspended, and its readers with it. They get a new
 * deadline.
 */
static void extend_after_suspension(struct gp_procinfo_pool *p, uint64_t now)
{
	uint64_t first = UINT64_MAX;

	for (const struct reader *r = p->readers; r; r = r->next)
		if (r->question && r->deadline_ns < first)
			first = r->deadline_ns;
	if (now < gp_time_add(first, p->limits.deadline_ns))
		return;
	for (struct reader *r = p->readers; r; r = r->next)
		r->deadline_ns = gp_time_add(now, p->limits.deadline_ns);
}

static void check_deadlines(struct gp_procinfo_pool *p)
{
	uint64_t expired, now = gp_monotonic_ns();

	if (read(p->timer_fd, &expired, sizeof expired) < 0)
		return; /* not yet */
	extend_after_suspension(p, now);
	for (struct reader *r = p->readers; r; r = r->next)
		if (r->question && r->deadline_ns <= now)
			abandon(p, r);
	set_timer(p);
}

static void receive(struct gp_procinfo_pool *p, struct reader *r)
{
	struct gp_procinfo_area *a = r->child.shared;
	struct question *q = r->question;
	uint32_t may = 0;
	char message;

	if (recv(r->child.fd, &message, 1, MSG_DONTWAIT) != 1)
		return; /* nothing came, or the child has ended: the pidfd says so, too */
	if (message == GP_PROCINFO_MAY_I) {
		if (atomic_load(&a->known) & GP_PROCINFO_USER)
			may = permission(p, account(p, a->uid[0]), q->want);
		(void)!send(r->child.fd, &may, sizeof may, MSG_NOSIGNAL | MSG_DONTWAIT);
		return;
	}
	fill(&q->info, a);
	if (message == GP_PROCINFO_GONE)
		gone(q);
	r->question = NULL;
	append(&p->answered, q);
}

/* Frees readers that have ended. One that ended by itself answers with what it knew. */
static void reap(struct gp_procinfo_pool *p)
{
	struct reader **at = &p->readers;

	while (*at) {
		struct reader *r = *at;

		if (!gp_pidfd_ended(r->child.pidfd)) {
			at = &r->next;
			continue;
		}
		if (r->question)
			abandon(p, r);
		else if (!r->stuck)
			gp_helper_kill(&r->child);
		gp_helper_reap(&r->child, true); /* epoll forgets the pidfd */
		*at = r->next;
		free(r);
	}
}

/* NULL: cannot be started. */
static struct reader *start_reader(struct gp_procinfo_pool *p)
{
	struct epoll_event readable = {.events = EPOLLIN};
	struct reader *r = calloc(1, sizeof *r);
	int e = r ? gp_helper_start(&r->child, GP_HELPER_CHILD, sizeof(struct gp_procinfo_area),
				    gp_procinfo_serve)
		  : -ENOMEM;

	if (e) {
		free(r);
		return NULL;
	}
	epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, r->child.fd, &readable);
	epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, r->child.pidfd, &readable);
	r->next = p->readers;
	p->readers = r;
	return r;
}

/* An idle reader, or a new one; NULL: none is free now. */
static struct reader *free_reader(struct gp_procinfo_pool *p)
{
	uint32_t busy = 0;

	for (struct reader *r = p->readers; r; r = r->next) {
		if (!r->question && !r->stuck)
			return r;
		busy += r->question != NULL;
	}
	return busy < p->limits.readers ? start_reader(p) : NULL;
}

static void hand_out(struct gp_procinfo_pool *p)
{
	struct reader *r;

	while (p->waiting.first && (r = free_reader(p))) {
		struct question *q = take_first(&p->waiting);
		struct gp_procinfo_request request = {q->info.pid, q->info.start_time, q->want};
		struct gp_procinfo_area *a = r->child.shared;

		atomic_store(&a->known, 0);
		memset(a->comm, 0, sizeof a->comm);
		(void)!send(r->child.fd, &request, sizeof request, MSG_NOSIGNAL | MSG_DONTWAIT);
		r->question = q;
		r->deadline_ns = gp_time_add(gp_monotonic_ns(), p->limits.deadline_ns);
	}
	set_timer(p);
}

static bool has_reader(const struct gp_procinfo_pool *p)
{
	for (const struct reader *r = p->readers; r; r = r->next)
		if (!r->stuck)
			return true;
	return false;
}

int gp_procinfo_ask(struct gp_procinfo_pool *p, pid_t pid, uint64_t start_time, uint32_t want,
		    uint64_t token)
{
	struct question *q;

	if (p->questions >= p->limits.questions)
		return -EAGAIN;
	/* A reader would wait for it, and the others' questions for the reader. */
	if (gp_process_read_start_time(pid, &(uint64_t){0}) == -ETIMEDOUT)
		return -ETIMEDOUT;
	q = calloc(1, sizeof *q);
	if (!q)
		return -ENOMEM;
	q->info.pid = pid;
	q->info.start_time = start_time;
	q->want = want | GP_PROCINFO_USER; /* the user decides whether the memory may be read */
	q->token = token;
	append(&p->waiting, q);
	hand_out(p);
	if (!has_reader(p)) { /* then no other question waits, either */
		take_first(&p->waiting);
		free(q);
		return -EAGAIN;
	}
	p->questions++;
	return 0;
}

int gp_procinfo_take(struct gp_procinfo_pool *p, struct gp_procinfo **info, uint64_t *token)
{
	struct question *q;
	eventfd_t times;

	if (!p->answered.first) {
		for (struct reader *r = p->readers; r; r = r->next)
			if (r->question)
				receive(p, r);
		reap(p);
		check_deadlines(p);
		hand_out(p);
	}
	q = take_first(&p->answered);
	if (p->answered.first)
		eventfd_write(p->event_fd, 1); /* readable until all answers were taken */
	else
		eventfd_read(p->event_fd, &times);
	if (!q)
		return -EAGAIN;
	p->questions--;
	*info = &q->info;
	*token = q->token;
	return 0;
}

uint32_t gp_procinfo_stuck(struct gp_procinfo_pool *p)
{
	reap(p);
	return count_stuck(p, NO_USER);
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

static void set_limits(struct gp_procinfo_limits *l)
{
	l->deadline_ns = l->deadline_ns ? l->deadline_ns : GP_NS_PER_S;
	l->readers = l->readers ? l->readers : 4;
	l->stuck = l->stuck ? l->stuck : 32;
	l->stuck_per_user = l->stuck_per_user ? l->stuck_per_user : 2;
	l->distrust_ns = l->distrust_ns ? l->distrust_ns : 60 * GP_NS_PER_S;
	l->questions = l->questions ? l->questions : 65536;
}

int gp_procinfo_new(const struct gp_procinfo_limits *limits, struct gp_procinfo_pool **pool,
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
	*pool = p;
	*fd = p->epoll_fd;
	return 0;
}

void gp_procinfo_free(struct gp_procinfo_pool *p)
{
	if (!p)
		return;
	while (p->readers) {
		struct reader *r = p->readers;
		bool idle = !r->question && !r->stuck;

		p->readers = r->next;
		if (!r->stuck)
			gp_helper_kill(&r->child);
		if (!gp_helper_reap(&r->child, idle))
			close(r->child.pidfd);
		if (r->question)
			gp_procinfo_drop(&r->question->info);
		free(r);
	}
	drop_all(&p->waiting);
	drop_all(&p->answered);
	close_files(p);
	free(p);
}
