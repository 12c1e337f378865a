/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader threads. A field is written into the question as soon as it is known, with the lock
 * held. A reader that finds its question taken away was abandoned, and ends.
 */
#include "procinfo/read.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include "base/clock.h"
#include "base/process.h"
#include "procinfo/pool.h"

#define STACK_SIZE ((size_t)1 << 19)

/*
 * Returns the answer to fill in and locks the pool. Returns NULL, without the lock, if the reader
 * was abandoned.
 */
static struct gp_procinfo *open_answer(struct gp_procinfo_reader *r)
{
	pthread_mutex_lock(&r->pool->lock);
	if (r->question)
		return &r->question->info;
	pthread_mutex_unlock(&r->pool->lock);
	return NULL;
}

/* The same; frees `value`, which was read, if the reader was abandoned. */
static struct gp_procinfo *open_answer_or_free(struct gp_procinfo_reader *r, void *value)
{
	struct gp_procinfo *f = open_answer(r);

	if (!f)
		free(value);
	return f;
}

static void close_answer(struct gp_procinfo_reader *r, uint32_t known)
{
	r->question->info.known |= known;
	pthread_mutex_unlock(&r->pool->lock);
}

static void read_user(struct gp_procinfo_reader *r)
{
	struct gp_procinfo_user user;
	struct gp_procinfo *f;

	if (gp_procinfo_read_user(r->pid, &user))
		return;
	f = open_answer_or_free(r, user.group);
	if (!f)
		return;
	memcpy(f->uid, user.uid, sizeof user.uid);
	f->gid = user.gid;
	f->ngroups = user.ngroups;
	f->group = user.group;
	f->other_pidns = user.other_pidns;
	close_answer(r, GP_PROCINFO_USER);
}

static void read_comm(struct gp_procinfo_reader *r)
{
	char comm[64];
	ssize_t n = gp_procinfo_read_file(r->pid, "comm", comm, sizeof comm);
	struct gp_procinfo *f = n > 0 ? open_answer(r) : NULL;

	if (!f)
		return;
	comm[n - 1] = '\0'; /* removes the line feed */
	memcpy(f->comm, comm, sizeof f->comm - 1);
	close_answer(r, GP_PROCINFO_COMM);
}

static void read_cgroup(struct gp_procinfo_reader *r)
{
	struct gp_procinfo *f;
	bool trusted;
	char *path;

	if (gp_procinfo_read_cgroup(r->pid, &path, &trusted))
		return;
	f = open_answer_or_free(r, path);
	if (!f)
		return;
	f->cgroup = path;
	f->cgroup_trusted = trusted;
	close_answer(r, GP_PROCINFO_CGROUP);
}

static void read_exe(struct gp_procinfo_reader *r)
{
	struct gp_procinfo *f;
	bool trusted;
	char *path;

	if (gp_procinfo_read_exe(r->pid, &path, &trusted))
		return;
	f = open_answer_or_free(r, path);
	if (!f)
		return;
	f->exe = path;
	f->exe_trusted = trusted;
	close_answer(r, GP_PROCINFO_EXE);
}

static void read_cmdline(struct gp_procinfo_reader *r)
{
	struct gp_procinfo *f;
	char *words;

	if (gp_procinfo_read_cmdline(r->pid, &words))
		return;
	f = open_answer_or_free(r, words);
	if (!f)
		return;
	f->cmdline = words;
	close_answer(r, GP_PROCINFO_CMDLINE);
}

static void read_environ(struct gp_procinfo_reader *r)
{
	struct gp_procinfo *f;
	char *environment;
	size_t size;

	if (gp_procinfo_read_environ(r->pid, &environment, &size))
		return;
	f = open_answer_or_free(r, environment);
	if (!f)
		return;
	f->environ = environment;
	f->environ_size = size;
	close_answer(r, GP_PROCINFO_ENVIRON);
}

static bool is_distrusted(const struct gp_procinfo_pool *p, uid_t uid)
{
	uint64_t now = gp_monotonic_ns();

	for (unsigned i = 0; i < GP_PROCINFO_DISTRUSTED_MAX; i++)
		if (p->distrusted[i].uid == uid && p->distrusted[i].until_ns > now)
			return true;
	return false;
}

/* False if a process of this user blocked a reader recently, or if too many readers are blocked. */
static bool may_touch_memory(struct gp_procinfo_reader *r)
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

/* Fields that cannot block come first. */
static void read_all(struct gp_procinfo_reader *r)
{
	static const struct {
		uint32_t field;
		void (*read)(struct gp_procinfo_reader *r);
	} info[] = {
		{GP_PROCINFO_USER, read_user},       {GP_PROCINFO_COMM, read_comm},
		{GP_PROCINFO_CGROUP, read_cgroup},   {GP_PROCINFO_EXE, read_exe},
		{GP_PROCINFO_CMDLINE, read_cmdline}, {GP_PROCINFO_ENVIRON, read_environ},
	};
	const uint32_t memory = GP_PROCINFO_CMDLINE | GP_PROCINFO_ENVIRON;

	if (gp_process_start_time(r->pid) != r->start_time)
		return;
	for (unsigned i = 0; i < sizeof info / sizeof *info; i++)
		if (r->want & info[i].field && (!(info[i].field & memory) || may_touch_memory(r)))
			info[i].read(r);
}

static void begin(struct gp_procinfo_reader *r, struct gp_procinfo_question *q)
{
	struct gp_procinfo_pool *p = r->pool;
	struct gp_procinfo_reader **last = &p->busy;
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
		gp_procinfo_set_timer(p);
}

/* Hands in the answer. Returns false if the reader was abandoned. Caller holds the lock. */
static bool finish(struct gp_procinfo_reader *r, bool gone)
{
	struct gp_procinfo_pool *p = r->pool;
	struct gp_procinfo_question *q = r->question;
	struct gp_procinfo_reader **at = &p->busy;

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
	gp_procinfo_append(&p->answered, q);
	eventfd_write(p->event_fd, 1);
	return true;
}

/*
 * Answers questions until the reader is abandoned (false) or the pool closes (true). Caller holds
 * the lock, which is released while reading.
 */
static bool answer_questions(struct gp_procinfo_reader *r)
{
	struct gp_procinfo_pool *p = r->pool;

	while (!p->closing) {
		struct gp_procinfo_question *q = gp_procinfo_take_first(&p->waiting);
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
	struct gp_procinfo_reader r = {.pool = arg};
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
		gp_procinfo_destroy(p);
	return NULL;
}

int gp_procinfo_start_reader(struct gp_procinfo_pool *p)
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
