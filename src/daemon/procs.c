/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/procs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/log.h"
#include "base/process.h"
#include "daemon/usernames.h"

#define TASK_KEY(device, task) ((uint64_t)(device) << 56 | (task))

void gp_procs_init(struct gp_procs *procs, sd_event *loop,
		   void (*on_end)(void *arg, struct gp_proc *proc), void *arg)
{
	*procs = (struct gp_procs){.loop = loop, .on_end = on_end, .arg = arg};
	gp_table_init(&procs->by_key);
	gp_table_init(&procs->by_task);
	gp_table_init(&procs->set_by);
}

static bool is_counted(const struct gp_proc *p)
{
	return p->source == GP_ATTR_BY_USER && !p->ended;
}

/* If there is no memory for a new user, its processes are not counted. */
static void count(struct gp_proc *p, int change)
{
	uint64_t n = 0, key = p->account;

	if (!is_counted(p))
		return;
	gp_table_get(&p->procs->set_by, key, &n);
	if (change > 0)
		gp_table_put(&p->procs->set_by, key, n + 1);
	else if (n > 1)
		gp_table_put(&p->procs->set_by, key, n - 1);
	else
		gp_table_remove(&p->procs->set_by, key);
}

static uid_t account_of(const struct gp_procs *procs, uid_t uid)
{
	return procs->accounts ? gp_account_of(procs->accounts, uid) : uid;
}

void gp_proc_assign(struct gp_proc *p, enum gp_attr_source source, uid_t by)
{
	count(p, -1);
	p->source = source;
	p->set_by = by;
	p->account = account_of(p->procs, by);
	count(p, 1);
}

uint32_t gp_procs_set_by(const struct gp_procs *procs, uid_t uid)
{
	uint64_t n = 0;

	gp_table_get(&procs->set_by, account_of(procs, uid), &n);
	return (uint32_t)n;
}

static void unwatch(struct gp_proc *p)
{
	sd_event_source_disable_unref(p->watch);
	p->watch = NULL;
	if (p->pidfd >= 0)
		close(p->pidfd);
	p->pidfd = -1;
}

static void remove_proc(struct gp_procs *procs, struct gp_proc *p)
{
	count(p, -1);
	gp_table_remove(&procs->by_key, gp_process_key(p->start_time, p->pid));
	for (unsigned i = 0; i < p->ntasks; i++)
		gp_table_remove(&procs->by_task, TASK_KEY(p->task[i].device, p->task[i].id));
	if (p->prev)
		p->prev->next = p->next;
	else
		procs->first = p->next;
	if (p->next)
		p->next->prev = p->prev;
	procs->n--;
	procs->unwatched -= p->unwatched;
	unwatch(p);
	free(p->task);
	free(p);
}

void gp_procs_free(struct gp_procs *procs)
{
	while (procs->first)
		remove_proc(procs, procs->first);
	gp_table_free(&procs->by_key);
	gp_table_free(&procs->by_task);
	gp_table_free(&procs->set_by);
}

static struct gp_proc *get(const struct gp_table *table, uint64_t key)
{
	uint64_t value;

	return gp_table_get(table, key, &value) ? (struct gp_proc *)(uintptr_t)value : NULL;
}

struct gp_proc *gp_procs_find(const struct gp_procs *procs, pid_t pid, uint64_t start_time)
{
	return get(&procs->by_key, gp_process_key(start_time, pid));
}

struct gp_proc *gp_procs_of_task(const struct gp_procs *procs, unsigned device, uint64_t task)
{
	return get(&procs->by_task, TASK_KEY(device, task));
}

static void end(struct gp_proc *p)
{
	struct gp_procs *procs = p->procs;

	unwatch(p);
	count(p, -1);
	p->ended = true;
	procs->on_end(procs->arg, p);
	if (!p->ntasks)
		remove_proc(procs, p);
}

static int on_pidfd(sd_event_source *source, int fd, uint32_t events, void *arg)
{
	(void)source;
	(void)fd;
	(void)events;
	end(arg);
	return 0;
}

static int on_gone(sd_event_source *source, void *arg)
{
	(void)source;
	end(arg);
	return 0;
}

/* Opens a pidfd. -ESRCH: the process is gone or its pid was reused. Any other error: unknown. */
static int open_pidfd(const struct gp_proc *p)
{
	int fd = gp_pidfd_open(p->pid), r;
	uint64_t start_time;

	if (fd < 0) /* the pid may belong to a thread now */
		return fd == -EINVAL || fd == -ENOENT ? -ESRCH : fd;
	start_time = gp_process_start_time(p->pid);
	if (start_time == p->start_time)
		return fd;
	/* A living process has a start time, unless it does not answer or no file descriptor was
	 * free to read it. */
	r = start_time || gp_pidfd_ended(fd) ? -ESRCH : -EAGAIN;
	close(fd);
	return r;
}

static void mark_unwatched(struct gp_proc *p, int why)
{
	if (!p->procs->logged_unwatched)
		gp_log(GP_LOG_WARN, "process.unwatched",
		       "pid=%d errno=%d; its end cannot be noticed; watching is tried again",
		       p->pid, -why);
	p->procs->logged_unwatched = true;
	unwatch(p);
	p->unwatched = true;
	p->procs->unwatched++;
}

/* A process that is already gone ends at the next iteration of the loop. */
static void watch(struct gp_proc *p)
{
	sd_event *loop = p->procs->loop;
	int fd = open_pidfd(p), r;

	p->pidfd = fd < 0 ? -1 : fd;
	if (fd >= 0)
		r = sd_event_add_io(loop, &p->watch, fd, EPOLLIN, on_pidfd, p);
	else if (fd == -ESRCH)
		r = sd_event_add_defer(loop, &p->watch, on_gone, p);
	else
		r = fd;
	if (r < 0) {
		mark_unwatched(p, r);
		return;
	}
	/* Before requests: an ended process no longer counts for the limit of its user. */
	sd_event_source_set_priority(p->watch, SD_EVENT_PRIORITY_IMPORTANT);
	count(p, -1);
	p->ended = fd < 0;
	count(p, 1);
	p->procs->logged_unwatched &= p->procs->unwatched > 0;
}

/*
 * Reads uid and name. Called before the pidfd is opened, which then confirms that they belong to
 * this process.
 */
static void read_identity(struct gp_proc *p)
{
	char user[32];

	if (!gp_process_uid(p->pid, &p->uid))
		p->uid = GP_NO_UID;
	else
		gp_user_name(p->uid, user, sizeof user); /* starts the lookup of the name */
	gp_process_name(p->pid, p->name, sizeof p->name);
}

static void watch_again(struct gp_proc *p)
{
	p->unwatched = false;
	p->procs->unwatched--;
	read_identity(p);
	watch(p);
}

void gp_procs_retry(struct gp_procs *procs)
{
	for (struct gp_proc *p = procs->first; procs->unwatched && p; p = p->next)
		if (p->unwatched)
			watch_again(p);
}

bool gp_proc_ended(const struct gp_proc *p)
{
	return p->ended || (p->pidfd >= 0 && gp_pidfd_ended(p->pidfd));
}

struct gp_proc *gp_procs_get(struct gp_procs *procs, pid_t pid, uint64_t start_time)
{
	struct gp_proc *p = gp_procs_find(procs, pid, start_time);

	if (p && p->unwatched) {
		watch_again(p);
		return p;
	}
	if (p) {
		/* Some programs drop root rights only after they have created their queues. */
		if (!gp_proc_ended(p))
			gp_process_uid(pid, &p->uid);
		return p;
	}
	p = calloc(1, sizeof *p);
	if (!p)
		return NULL;
	p->procs = procs;
	p->pid = pid;
	p->start_time = start_time;
	p->attr = p->given = GP_TASK_ATTR_DEFAULT;
	p->held_by = GP_NO_UID;
	if (gp_table_put(&procs->by_key, gp_process_key(start_time, pid), (uintptr_t)p)) {
		free(p);
		return NULL;
	}
	read_identity(p);
	watch(p);
	p->next = procs->first;
	if (p->next)
		p->next->prev = p;
	procs->first = p;
	procs->n++;
	return p;
}

void gp_procs_drop_unused(struct gp_procs *procs, struct gp_proc *p)
{
	if (!p->ntasks && p->source == GP_ATTR_BY_DEFAULT)
		remove_proc(procs, p);
}

int gp_procs_task_in(struct gp_procs *procs, struct gp_proc *p, unsigned device, uint64_t task,
		     uint64_t key)
{
	if (p->ntasks == p->capacity) {
		unsigned capacity = p->capacity ? 2 * p->capacity : 2;
		struct gp_proc_task *more = realloc(p->task, capacity * sizeof *more);

		if (!more)
			return -ENOMEM;
		p->task = more;
		p->capacity = capacity;
	}
	if (gp_table_put(&procs->by_task, TASK_KEY(device, task), (uintptr_t)p))
		return -ENOMEM;
	p->task[p->ntasks++] = (struct gp_proc_task){.device = device, .id = task, .key = key};
	return 0;
}

void gp_procs_task_out(struct gp_procs *procs, unsigned device, uint64_t task)
{
	struct gp_proc *p = gp_procs_of_task(procs, device, task);

	if (!p)
		return;
	gp_table_remove(&procs->by_task, TASK_KEY(device, task));
	for (unsigned i = 0; i < p->ntasks; i++)
		if (p->task[i].device == device && p->task[i].id == task)
			p->task[i--] = p->task[--p->ntasks];
	if (!p->ntasks && (p->ended || p->source == GP_ATTR_BY_DEFAULT))
		remove_proc(procs, p);
}
