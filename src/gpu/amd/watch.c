/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is there, and who works: from sysfs, and from the pointers that each queue keeps in the
 * memory of its process. A packet that the hardware has not taken is work; so are compute units
 * that a process occupies, where the driver counts them (gfx9). On other chips the last kernel of a
 * queue cannot be seen: it looks idle while that runs.
 *
 * Reading somebody's memory can take as long as he likes (he may serve its page faults himself):
 * this thread may hang for it, the one that acts does not.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/process.h"
#include "gpu/amd/device.h"

#define QUEUES_MAX   1024
#define POINTERS_MAX 256                 /* of one task; more are not looked at */
#define MQDS_NS      (50 * GP_NS_PER_MS) /* between two looks for pointers */

/* ---- who is there ------------------------------------------------------------------------------
 */

/* One look at all processes. Made without the lock, and handed over with it. */
struct scan {
	struct amd_host *host;
	unsigned ngpus;
	uint32_t gpu_id[AMD_OPEN_MAX];
	struct list {
		struct amd_seen *seen;
		unsigned n, capacity;
	} list[AMD_OPEN_MAX];
	struct gp_amd_sysfs_queue queue[QUEUES_MAX];
};

static void add_seen(struct scan *scan, unsigned i, const struct amd_seen *seen)
{
	struct list *l = &scan->list[i];

	if (l->n == l->capacity) {
		unsigned capacity = l->capacity ? 2 * l->capacity : 32;
		struct amd_seen *s = realloc(l->seen, capacity * sizeof *s);

		if (!s)
			return; /* it comes with the next look */
		l->seen = s;
		l->capacity = capacity;
	}
	l->seen[l->n++] = *seen;
}

/* How many of the queues belong to the task. */
static unsigned count(const struct scan *scan, unsigned n, const struct gp_seen *seen,
                      uint32_t gpu_id)
{
	unsigned queues = 0;

	for (unsigned k = 0; k < n; k++)
		queues += scan->queue[k].gpu_id == gpu_id &&
		          scan->queue[k].type == KFD_SYSFS_QUEUE_COMPUTE &&
		          amd_is_of(scan->host, seen->key, seen->queue, gpu_id, scan->queue[k].id);
	return queues;
}

/* The process on a GPU, and those of its queues there that are tasks of their own. */
static void see_on(struct scan *scan, unsigned i, unsigned n, const struct gp_seen *process)
{
	struct amd_host *h = scan->host;
	struct amd_seen s = {.is = *process};

	s.is.memory = gp_amd_memory(process->pid, scan->gpu_id[i]);
	pthread_mutex_lock(&h->lock);
	s.queues = count(scan, n, &s.is, scan->gpu_id[i]);
	if (s.queues)
		add_seen(scan, i, &s);
	for (unsigned k = 0; k < h->nsplits; k++) {
		s.is.key = h->split[k].key;
		s.is.queue = h->split[k].queue;
		if ((s.is.key & ~(uint64_t)AMD_SPLITS_MAX) != process->key ||
		    h->split[k].gpu_id != scan->gpu_id[i])
			continue;
		s.queues = count(scan, n, &s.is, scan->gpu_id[i]);
		if (s.queues)
			add_seen(scan, i, &s);
	}
	pthread_mutex_unlock(&h->lock);
}

static int see(void *arg, pid_t pid)
{
	struct scan *scan = arg;
	int n = pid == getpid() ? 0 : gp_amd_sysfs_queues(pid, scan->queue, QUEUES_MAX);
	struct gp_seen process = {.pid = pid, .queue = GP_QUEUE_ALL};

	if (n <= 0)
		return 0;
	process.start_time = gp_process_start_time(pid);
	if (!process.start_time)
		return 0;
	process.key = gp_process_key(process.start_time, pid);
	gp_process_name(pid, process.name, sizeof process.name);
	for (unsigned i = 0; i < scan->ngpus; i++)
		see_on(scan, i, (unsigned)(n < QUEUES_MAX ? n : QUEUES_MAX), &process);
	return 0;
}

static bool is_same(const struct amd_gpu *gpu, const struct list *l)
{
	if (!gpu->scanned || gpu->nseen != l->n)
		return false;
	for (unsigned i = 0; i < l->n; i++)
		if (gpu->seen[i].is.key != l->seen[i].is.key)
			return false;
	return true;
}

static void note_queues(struct amd_gpu *gpu, const struct list *l)
{
	for (unsigned i = 0; i < gpu->ntasks; i++)
		for (unsigned k = 0; gpu->task[i] && k < l->n; k++)
			if (gpu->task[i]->key == l->seen[k].is.key)
				gpu->task[i]->nqueues = l->seen[k].queues;
}

/* Copied: a device may be open twice. */
static void hand_over(struct amd_gpu *gpu, const struct list *l)
{
	bool news = !is_same(gpu, l);

	if (l->n > gpu->seen_capacity) {
		struct amd_seen *seen = realloc(gpu->seen, l->n * sizeof *seen);

		if (!seen)
			return; /* as before; the next look tries again */
		gpu->seen = seen;
		gpu->seen_capacity = l->n;
	}
	if (l->n)
		memcpy(gpu->seen, l->seen, l->n * sizeof *l->seen);
	gpu->nseen = l->n;
	gpu->scanned = true;
	note_queues(gpu, l);
	if (news)
		amd_tell(gpu);
}

static void look_around(struct amd_host *h, struct scan *scan)
{
	scan->host = h;
	pthread_mutex_lock(&h->lock);
	scan->ngpus = h->ngpus;
	for (unsigned i = 0; i < h->ngpus; i++) {
		scan->gpu_id[i] = h->gpu[i]->node.gpu_id;
		scan->list[i].n = 0;
	}
	pthread_mutex_unlock(&h->lock);
	gp_amd_each_process(see, scan);
	pthread_mutex_lock(&h->lock);
	for (unsigned i = 0; i < h->ngpus; i++)
		for (unsigned k = 0; k < scan->ngpus; k++)
			if (h->gpu[i]->node.gpu_id == scan->gpu_id[k])
				hand_over(h->gpu[i], &scan->list[k]);
	pthread_cond_broadcast(&h->changed);
	pthread_mutex_unlock(&h->lock);
}

/* ---- who works ---------------------------------------------------------------------------------
 */

/* A task to be looked at, as it was when the lock was held. It is freed by this thread only. */
struct glance {
	struct amd_task *task;
	unsigned n;
	struct amd_pointers pointer[POINTERS_MAX];

	bool known;
	bool active;
	uint64_t pending;
};

static bool read_pointer(int fd, uint64_t address, uint64_t *value)
{
	return pread(fd, value, sizeof *value, (off_t)address) == sizeof *value;
}

int amd_open_memory(pid_t pid)
{
	char path[32];

	snprintf(path, sizeof path, "/proc/%d/mem", pid);
	return open(path, O_RDONLY | O_CLOEXEC);
}

uint64_t amd_read_pending(int fd, const struct amd_pointers *p)
{
	uint64_t read_at, write_at;

	if (!read_pointer(fd, p->read_address, &read_at) ||
	    !read_pointer(fd, p->write_address, &write_at))
		return UINT64_MAX;
	return (write_at - read_at) & p->mask;
}

static void read_pending(struct glance *g)
{
	g->known = g->n > 0;
	g->pending = 0;
	if (g->task->mem_fd < 0)
		g->task->mem_fd = amd_open_memory(g->task->pid);
	for (unsigned i = 0; i < g->n && g->known; i++) {
		uint64_t pending = amd_read_pending(g->task->mem_fd, &g->pointer[i]);

		g->known = pending != UINT64_MAX;
		g->pending += pending;
	}
}

/* Work that the hardware has taken cannot be seen in the pointers. */
static void read_activity(struct glance *g, bool was_active)
{
	read_pending(g);
	g->active = g->known && g->pending;
	if (g->known && !g->active && was_active && gp_amd_has_occupancy(&g->task->gpu->node))
		g->active = gp_amd_occupancy(g->task->pid, g->task->gpu->node.gpu_id) > 0;
}

/* What a held task had begun when it was held, it has still to end. */
static bool note_activity(struct glance *g, uint64_t now_ns)
{
	struct amd_task *t = g->task;
	bool active = g->active || (t->held && t->looked && t->active);
	bool news = g->known != t->looked || (g->known && active != t->active);

	if (g->known && active && (!t->looked || !t->active))
		t->active_since_ns = now_ns;
	t->looked = g->known;
	t->active = g->known && active;
	t->pending = g->pending;
	return news;
}

/* Tasks whose activity matters and whose pointers are known. How many. */
static unsigned choose(struct amd_host *h, struct glance **glance, unsigned *capacity)
{
	unsigned n = 0;

	for (unsigned i = 0; i < h->ngpus; i++)
		for (unsigned k = 0; k < h->gpu[i]->ntasks; k++) {
			struct amd_task *t = h->gpu[i]->task[k];
			struct glance *g;

			if (!t || t->gone || !t->prepare || !t->has_pointers)
				continue;
			if (n == *capacity) {
				g = realloc(*glance, (*capacity + 8) * sizeof *g);
				if (!g)
					return n;
				*glance = g;
				*capacity += 8;
			}
			g = &(*glance)[n++];
			g->task = t;
			g->n = t->npointers < POINTERS_MAX ? t->npointers : POINTERS_MAX;
			memcpy(g->pointer, t->pointer, g->n * sizeof *g->pointer);
			g->active = t->looked && t->active;
		}
	return n;
}

static unsigned look_who_works(struct amd_host *h, struct glance **glance, unsigned *capacity)
{
	uint64_t now_ns;
	unsigned n;

	pthread_mutex_lock(&h->lock);
	n = choose(h, glance, capacity);
	pthread_mutex_unlock(&h->lock);
	for (unsigned i = 0; i < n; i++)
		read_activity(&(*glance)[i], (*glance)[i].active);
	now_ns = gp_now_ns(&gp_clock_monotonic);
	pthread_mutex_lock(&h->lock);
	for (unsigned i = 0; i < n; i++)
		if (note_activity(&(*glance)[i], now_ns))
			amd_tell((*glance)[i].task->gpu);
	pthread_mutex_unlock(&h->lock);
	return n;
}

/* ---- tasks without a session -------------------------------------------------------------------
 */

/* One whose activity matters, that nobody is attached to, and whose queues have changed. */
static struct amd_task *find_unknown(struct amd_host *h, uint64_t now_ns)
{
	for (unsigned i = 0; i < h->ngpus; i++)
		for (unsigned k = 0; k < h->gpu[i]->ntasks; k++) {
			struct amd_task *t = h->gpu[i]->task[k];

			if (t && !t->leaving && t->prepare && !t->wants_hold && !t->target &&
			    (!t->has_pointers || t->npointers != t->nqueues) &&
			    now_ns >= t->mqds_ns + MQDS_NS)
				return t;
		}
	return NULL;
}

static void set_pointers(struct amd_task *t, const struct amd_mqd *mqd, unsigned n)
{
	struct amd_pointers *pointer = realloc(t->pointer, (n + 1) * sizeof *pointer);

	if (!pointer)
		return;
	t->pointer = pointer;
	for (unsigned i = 0; i < n; i++)
		pointer[i] = (struct amd_pointers){.read_address = mqd[i].read_address,
		                                   .write_address = mqd[i].write_address,
		                                   .mask = UINT64_MAX};
	t->npointers = n;
	t->has_pointers = n > 0;
}

/* Where the kernel's debug files tell, nobody needs to be attached. Otherwise a session tells,
 * unless it would take the only place from a task that is to be held. */
static void find_pointers(struct amd_host *h, uint64_t now_ns)
{
	struct amd_mqd mqd[POINTERS_MAX];
	struct amd_task *t;
	int n;

	pthread_mutex_lock(&h->lock);
	t = find_unknown(h, now_ns);
	if (t)
		t->mqds_ns = now_ns;
	pthread_mutex_unlock(&h->lock);
	if (!t)
		return;
	n = amd_read_mqds(t->pid, t->gpu->node.gpu_id, mqd, POINTERS_MAX);
	pthread_mutex_lock(&h->lock);
	if (n > 0 && !t->target)
		set_pointers(t, mqd, (unsigned)n < POINTERS_MAX ? (unsigned)n : POINTERS_MAX);
	if (n < 0 && gp_amd_debugs_many(&t->gpu->node) && !t->leaving && amd_ask(h, AMD_PREPARE, t))
		t->wants_hold = true;
	pthread_mutex_unlock(&h->lock);
	if (n < 0)
		amd_wake(h);
}

/* ---- the loop ----------------------------------------------------------------------------------
 */

void amd_free_task(struct amd_task *task)
{
	if (task->mem_fd >= 0)
		close(task->mem_fd);
	free(task->pointer);
	free(task);
}

static void free_gone(struct amd_host *h)
{
	pthread_mutex_lock(&h->lock);
	for (unsigned i = 0; i < h->ngpus; i++)
		for (unsigned k = 0; k < h->gpu[i]->ntasks; k++) {
			struct amd_task **t = &h->gpu[i]->task[k];

			if (!*t || !(*t)->gone)
				continue;
			amd_free_task(*t);
			*t = NULL;
			pthread_cond_broadcast(&h->changed);
		}
	pthread_mutex_unlock(&h->lock);
}

/* Somebody waits for a look. */
static bool is_asked(struct amd_host *h)
{
	bool asked = false;

	pthread_mutex_lock(&h->lock);
	for (unsigned i = 0; i < h->ngpus; i++)
		asked |= !h->gpu[i]->scanned;
	pthread_mutex_unlock(&h->lock);
	return asked;
}

/* Until the time, or somebody has a word for us. True: to end. */
static bool rest(struct amd_host *h, uint64_t for_ns)
{
	struct pollfd p = {.fd = h->watch_fd, .events = POLLIN};
	struct timespec timeout = {.tv_nsec = (long)for_ns};
	eventfd_t ignored;
	bool quit;

	if (ppoll(&p, 1, &timeout, NULL) > 0)
		eventfd_read(h->watch_fd, &ignored);
	pthread_mutex_lock(&h->lock);
	quit = h->watch_quit;
	pthread_mutex_unlock(&h->lock);
	return quit;
}

void *amd_watch(void *host)
{
	struct amd_host *h = host;
	struct scan *scan = calloc(1, sizeof *scan);
	struct glance *glance = NULL;
	unsigned capacity = 0, looked = 0;
	uint64_t scan_ns = 0;

	do {
		uint64_t now_ns = gp_now_ns(&gp_clock_monotonic);

		free_gone(h);
		if (scan && (now_ns >= scan_ns || is_asked(h))) {
			look_around(h, scan);
			find_pointers(h, now_ns);
			scan_ns = now_ns + AMD_SCAN_NS;
		}
		looked = look_who_works(h, &glance, &capacity);
	} while (!rest(h, looked ? AMD_DETECT_NS : AMD_SCAN_NS));
	for (unsigned i = 0; scan && i < AMD_OPEN_MAX; i++)
		free(scan->list[i].seen);
	free(scan);
	free(glance);
	return NULL;
}
