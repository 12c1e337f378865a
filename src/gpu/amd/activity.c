/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is there, and who works: from sysfs, and from the pointers that each queue keeps in the
 * memory of its process. A packet that the hardware has not taken is work; so is one that came
 * since the last look, and so are compute units that a process occupies, where the driver counts
 * them (gfx9). On other chips a kernel that was taken cannot be seen: it is believed to run for
 * GP_AMD_LINGER_NS.
 * Whose memory does not come when it is read is not looked at for a while (glance.h).
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/log.h"
#include "base/process.h"
#include "gpu/amd/memory_reader.h"

#define QUEUES_MAX 1024
#define STUCK_NS   (10 * GP_NS_PER_S) /* the first time, then twice as long */

/* Who reads the memory of others. */
struct eyes {
	struct gp_amd_readers readers;
	struct gp_amd_task **task; /* that it looks at */
	unsigned capacity;
};

/* ---- who is there ------------------------------------------------------------------------------
 */

/* One look at all processes. Made without the lock, and handed over with it. */
struct scan {
	struct gp_kfd_thread *kfd_thread;
	unsigned ngpus;
	uint32_t gpu_id[GP_AMD_OPEN_MAX];
	struct list {
		struct gp_amd_seen *seen;
		unsigned n, capacity;
	} list[GP_AMD_OPEN_MAX];
	struct gp_amd_sysfs_queue queue[QUEUES_MAX];
};

static void add_seen(struct scan *scan, unsigned i, const struct gp_amd_seen *seen)
{
	struct list *l = &scan->list[i];

	if (l->n == l->capacity) {
		unsigned capacity = l->capacity ? 2 * l->capacity : 32;
		struct gp_amd_seen *s = realloc(l->seen, capacity * sizeof *s);

		if (!s)
			return; /* it comes with the next look */
		l->seen = s;
		l->capacity = capacity;
	}
	l->seen[l->n++] = *seen;
}

/* Serial numbers that are near each other are far apart in a sum of these. */
static uint64_t spread(uint64_t serial)
{
	serial *= 0x9e3779b97f4a7c15ull;
	return (serial ^ serial >> 32) * 0x9e3779b97f4a7c15ull;
}

/* Which of the queues belong to the task. */
static void count(const struct scan *scan, unsigned n, struct gp_amd_seen *seen, uint32_t gpu_id)
{
	seen->queues = 0;
	seen->mark = 0;
	for (unsigned k = 0; k < n; k++) {
		const struct gp_amd_sysfs_queue *q = &scan->queue[k];

		if (q->gpu_id != gpu_id || q->type != KFD_SYSFS_QUEUE_COMPUTE ||
		    !gp_amd_is_of(scan->kfd_thread, seen->is.key, seen->is.queue, gpu_id, q->id))
			continue;
		seen->queues++;
		seen->mark += spread(q->serial);
	}
}

/* The process on a GPU, and those of its queues there that are tasks of their own. */
static void see_on(struct scan *scan, unsigned i, unsigned n, const struct gp_seen *process)
{
	struct gp_kfd_thread *h = scan->kfd_thread;
	struct gp_amd_seen s = {.is = *process};

	s.is.memory = gp_amd_memory(process->pid, scan->gpu_id[i]);
	pthread_mutex_lock(&h->requests.lock);
	count(scan, n, &s, scan->gpu_id[i]);
	if (s.queues)
		add_seen(scan, i, &s);
	for (unsigned k = 0; k < h->nsplits; k++) {
		s.is.key = h->split[k].key;
		s.is.queue = h->split[k].queue;
		if (gp_amd_process_of(s.is.key) != process->key ||
		    h->split[k].gpu_id != scan->gpu_id[i])
			continue;
		count(scan, n, &s, scan->gpu_id[i]);
		if (s.queues)
			add_seen(scan, i, &s);
	}
	pthread_mutex_unlock(&h->requests.lock);
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

static bool is_same(const struct gp_amd_gpu *gpu, const struct list *l)
{
	if (!gpu->scanned || gpu->nseen != l->n)
		return false;
	for (unsigned i = 0; i < l->n; i++)
		if (gpu->seen[i].is.key != l->seen[i].is.key)
			return false;
	return true;
}

static void note_queues(struct gp_amd_gpu *gpu, const struct list *l)
{
	for (unsigned i = 0; i < gpu->ntasks; i++)
		for (unsigned k = 0; gpu->task[i] && k < l->n; k++)
			if (gpu->task[i]->key == l->seen[k].is.key)
				gpu->task[i]->queues_mark = l->seen[k].mark;
}

/* Copied: a device may be open twice. */
static void hand_over(struct gp_amd_gpu *gpu, const struct list *l)
{
	bool news = !is_same(gpu, l);

	if (l->n > gpu->seen_capacity) {
		struct gp_amd_seen *seen = realloc(gpu->seen, l->n * sizeof *seen);

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
		gp_amd_notify(gpu);
}

/* Returns with the lock: what was found is true then. */
static void scan_all(struct gp_kfd_thread *h, struct scan *scan)
{
	unsigned nsplits;

	pthread_mutex_lock(&h->requests.lock);
	do { /* a queue that became a task meanwhile may not be in the list */
		nsplits = h->nsplits;
		scan->ngpus = h->ngpus;
		for (unsigned i = 0; i < h->ngpus; i++) {
			scan->gpu_id[i] = h->gpu[i]->node.gpu_id;
			scan->list[i].n = 0;
		}
		pthread_mutex_unlock(&h->requests.lock);
		gp_amd_each_process(see, scan);
		pthread_mutex_lock(&h->requests.lock);
	} while (nsplits != h->nsplits);
}

static void look_around(struct gp_kfd_thread *h, struct scan *scan)
{
	scan->kfd_thread = h;
	scan_all(h, scan);
	for (unsigned i = 0; i < h->ngpus; i++)
		for (unsigned k = 0; k < scan->ngpus; k++)
			if (h->gpu[i]->node.gpu_id == scan->gpu_id[k])
				hand_over(h->gpu[i], &scan->list[k]);
	pthread_cond_broadcast(&h->requests.changed);
	pthread_mutex_unlock(&h->requests.lock);
}

/* ---- who works ---------------------------------------------------------------------------------
 */

/* What a held task had begun when it was held, it has still to end. */
static bool is_active(const struct gp_amd_task *t, const struct gp_amd_reading *g, uint64_t now_ns)
{
	return g->work == GP_AMD_WORK_SEEN || (t->held && t->looked && t->active) ||
	       (g->work == GP_AMD_WORK_MAYBE && now_ns < t->worked_ns + GP_AMD_LINGER_NS);
}

/* They could not be read: another program is there, or other queues. */
static void doubt_pointers(struct gp_amd_task *t)
{
	if (t->mem_fd >= 0)
		close(t->mem_fd);
	t->mem_fd = -1;
	if (!t->target) /* whose session says which there are */
		t->has_pointers = false;
}

static bool note_activity(struct gp_amd_task *t, const struct gp_amd_reading *g, uint64_t now_ns)
{
	bool active = g->known && is_active(t, g, now_ns);
	bool news = g->known != t->looked || active != t->active;

	t->mem_fd = g->mem_fd;
	if (!g->known)
		doubt_pointers(t);
	if (active && !t->active)
		t->active_since_ns = now_ns;
	if (active && (g->work == GP_AMD_WORK_SEEN || t->held))
		t->worked_ns = now_ns;
	t->looked = g->known;
	t->active = active;
	t->pending = g->pending;
	t->written = g->written;
	return news;
}

/* `all`: also those that nobody is waiting for. */
static bool is_to_be_seen(const struct gp_amd_task *t, bool all, uint64_t now_ns)
{
	return t && !t->gone && now_ns >= t->stuck_until_ns && (t->prepare || all) &&
	       t->has_pointers;
}

static void reading_of(struct gp_amd_task *t, struct gp_amd_reading *g)
{
	g->pid = t->pid;
	g->gpu_id = t->gpu->node.gpu_id;
	g->mem_fd = t->mem_fd;
	g->was_idle = t->looked && !t->active && !t->new_pointers;
	g->has_occupancy = gp_amd_has_occupancy(&t->gpu->node) && gp_amd_is_whole(t);
	g->knows_written = t->looked && !t->new_pointers;
	g->written_before = t->written;
	t->new_pointers = false;
	g->n = t->npointers < GP_AMD_POINTERS_MAX ? t->npointers : GP_AMD_POINTERS_MAX;
	memcpy(g->pointer, t->pointer, g->n * sizeof *g->pointer);
}

/* Tasks whose activity matters and whose pointers are known: how many, the first `max` written.
 * Under the lock; a task is freed by this thread only. */
static unsigned choose(const struct gp_kfd_thread *h, bool all, struct gp_amd_task **task,
                       unsigned max)
{
	uint64_t now_ns = gp_monotonic_ns();
	unsigned n = 0;

	for (unsigned i = 0; i < h->ngpus; i++)
		for (unsigned k = 0; k < h->gpu[i]->ntasks; k++) {
			struct gp_amd_task *t = h->gpu[i]->task[k];

			if (!is_to_be_seen(t, all, now_ns))
				continue;
			if (n < max)
				task[n] = t;
			n++;
		}
	return n < max ? n : max ? max : n;
}

/* Room for `n` tasks, and somebody to look at them. NULL: it cannot be. */
static struct gp_amd_reading *open_eyes(struct eyes *eyes, unsigned n)
{
	if (n > eyes->capacity) {
		struct gp_amd_task **task = realloc(eyes->task, n * sizeof(struct gp_amd_task *));

		if (!task)
			return NULL;
		eyes->task = task;
		eyes->capacity = n;
	}
	return gp_amd_readers_room(&eyes->readers, n);
}

/* Its memory does not come: nothing is known of it for a while. When nobody is left to look,
 * nothing is known of anybody, until one of those who went comes back. */
static void give_up(struct gp_kfd_thread *h, const struct eyes *eyes, struct gp_amd_task *t)
{
	bool blind = eyes->readers.nout == GP_AMD_READERS_MAX;

	t->stuck_for_ns = t->stuck_for_ns ? 2 * t->stuck_for_ns : STUCK_NS;
	t->stuck_until_ns = gp_monotonic_ns() + t->stuck_for_ns;
	t->looked = t->active = false;
	for (unsigned i = 0; i < h->ngpus && blind; i++)
		for (unsigned k = 0; k < h->gpu[i]->ntasks; k++)
			if (h->gpu[i]->task[k])
				h->gpu[i]->task[k]->looked = h->gpu[i]->task[k]->active = false;
	gp_log(GP_LOG_ERROR, "memory.stuck", "pid=%d", t->pid);
	gp_amd_notify(t->gpu);
}

/* Returns how many were looked at. */
static unsigned look_who_works(struct gp_kfd_thread *h, bool all, struct eyes *eyes)
{
	struct gp_amd_reading *reading;
	uint64_t now_ns;
	unsigned n;
	int late;

	pthread_mutex_lock(&h->requests.lock);
	n = choose(h, all, NULL, 0);
	pthread_mutex_unlock(&h->requests.lock);
	reading = n ? open_eyes(eyes, n) : NULL;
	if (!reading)
		return 0;
	pthread_mutex_lock(&h->requests.lock);
	n = choose(h, all, eyes->task, n);
	for (unsigned i = 0; i < n; i++)
		reading_of(eyes->task[i], &reading[i]);
	pthread_mutex_unlock(&h->requests.lock);
	late = gp_amd_readers_run(&eyes->readers, n);
	now_ns = gp_monotonic_ns();
	pthread_mutex_lock(&h->requests.lock);
	if (late >= 0)
		give_up(h, eyes, eyes->task[late]);
	for (unsigned i = 0; late < 0 && i < n; i++)
		if (note_activity(eyes->task[i], &reading[i], now_ns))
			gp_amd_notify(eyes->task[i]->gpu);
	pthread_mutex_unlock(&h->requests.lock);
	return n;
}

/* ---- the loop ----------------------------------------------------------------------------------
 */

static void free_task(struct gp_amd_task *task)
{
	if (task->mem_fd >= 0)
		close(task->mem_fd);
	free(task->pointer);
	free(task);
}

static void free_gone(struct gp_kfd_thread *h)
{
	pthread_mutex_lock(&h->requests.lock);
	for (unsigned i = 0; i < h->ngpus; i++)
		for (unsigned k = 0; k < h->gpu[i]->ntasks; k++) {
			struct gp_amd_task **t = &h->gpu[i]->task[k];

			if (!*t || !(*t)->gone)
				continue;
			free_task(*t);
			*t = NULL;
			pthread_cond_broadcast(&h->requests.changed);
		}
	pthread_mutex_unlock(&h->requests.lock);
}

/* Somebody waits for a look. */
static bool is_asked(struct gp_kfd_thread *h)
{
	bool asked = false;

	pthread_mutex_lock(&h->requests.lock);
	for (unsigned i = 0; i < h->ngpus; i++)
		asked |= !h->gpu[i]->scanned;
	pthread_mutex_unlock(&h->requests.lock);
	return asked;
}

/* Until the time, or somebody has a word for us. True: to end. */
static bool rest(struct gp_kfd_thread *h, uint64_t for_ns)
{
	struct pollfd p = {.fd = h->watch_fd, .events = POLLIN};
	struct timespec timeout = {.tv_nsec = (long)for_ns};
	eventfd_t ignored;
	bool quit;

	if (ppoll(&p, 1, &timeout, NULL) > 0)
		eventfd_read(h->watch_fd, &ignored);
	pthread_mutex_lock(&h->requests.lock);
	quit = h->watch_quit;
	pthread_mutex_unlock(&h->requests.lock);
	return quit;
}

void *gp_amd_watch(void *kfd_thread)
{
	struct gp_kfd_thread *h = kfd_thread;
	struct scan *scan = calloc(1, sizeof *scan);
	struct eyes eyes = {0};
	unsigned looked = 0;
	uint64_t scan_ns = 0;

	do {
		uint64_t now_ns = gp_monotonic_ns();
		bool all = now_ns >= scan_ns;

		free_gone(h);
		if (scan && (all || is_asked(h))) {
			look_around(h, scan);
			gp_amd_find_pointers(h, now_ns);
			scan_ns = now_ns + GP_AMD_SCAN_NS;
		}
		looked = look_who_works(h, all, &eyes);
	} while (!rest(h, looked ? GP_AMD_DETECT_NS : GP_AMD_SCAN_NS));
	for (unsigned i = 0; scan && i < GP_AMD_OPEN_MAX; i++)
		free(scan->list[i].seen);
	free(scan);
	gp_amd_readers_end(&eyes.readers);
	free(eyes.task);
	return NULL;
}
