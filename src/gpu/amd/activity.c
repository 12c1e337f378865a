/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The activity thread: lists the tasks (from sysfs) and finds the active ones (from the read and
 * write pointers that each queue has in the memory of its process).
 *
 * A task is active if a packet waits, if a packet was added since the last reading, or if the
 * process occupies compute units, which the driver counts on gfx9. On other chips a running kernel
 * is not visible: a packet that was taken is assumed to run for GP_AMD_LINGER_NS.
 * A process whose memory cannot be read in time is not read for a while (memory_reader.h).
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
#define PROOF_NS   (200 * GP_NS_PER_US) /* between readings that look for the effect of a hold */
#define STUCK_NS   (10 * GP_NS_PER_S)   /* the first time; doubled each time */

/* Reads the memory of the tasks. */
struct observer {
	struct gp_amd_readers readers;
	struct gp_amd_task **task; /* the tasks of the current reading */
	unsigned capacity;
};

/* A scan of all processes. It is made without the lock and published with it. */
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
			return; /* the next scan adds it */
		l->seen = s;
		l->capacity = capacity;
	}
	l->seen[l->n++] = *seen;
}

/* A hash: close serials must give different sums. */
static uint64_t spread(uint64_t serial)
{
	serial *= 0x9e3779b97f4a7c15ull;
	return (serial ^ serial >> 32) * 0x9e3779b97f4a7c15ull;
}

/* Counts the queues of the task. Caller holds requests.lock. */
static void count_queues(const struct scan *scan, unsigned n, struct gp_amd_seen *seen,
			 uint32_t gpu_id)
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

/* Adds the main task of a process on a GPU, and its queues that are tasks of their own. */
static void add_tasks(struct scan *scan, unsigned i, unsigned n, const struct gp_seen *process)
{
	struct gp_kfd_thread *h = scan->kfd_thread;
	struct gp_amd_seen s = {.is = *process};

	s.is.memory = gp_amd_memory(process->pid, scan->gpu_id[i]);
	pthread_mutex_lock(&h->requests.lock);
	count_queues(scan, n, &s, scan->gpu_id[i]);
	if (s.queues)
		add_seen(scan, i, &s);
	for (unsigned k = 0; k < h->nsplits; k++) {
		s.is.key = h->split[k].key;
		s.is.queue = h->split[k].queue;
		if (gp_amd_process_of(s.is.key) != process->key ||
		    h->split[k].gpu_id != scan->gpu_id[i])
			continue;
		count_queues(scan, n, &s, scan->gpu_id[i]);
		if (s.queues)
			add_seen(scan, i, &s);
	}
	pthread_mutex_unlock(&h->requests.lock);
}

static int add_process(void *arg, pid_t pid)
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
		add_tasks(scan, i, (unsigned)(n < QUEUES_MAX ? n : QUEUES_MAX), &process);
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

/* Without a session the pointers are those of the queues that it had. */
static void note_mark(struct gp_amd_task *t, uint64_t mark)
{
	t->queues_mark = mark;
	if (t->has_pointers && !t->target && t->wants_hold && t->pointers_mark != mark)
		gp_amd_proof_lose_pointers(t);
}

static void note_queues(struct gp_amd_gpu *gpu, const struct list *l)
{
	for (unsigned i = 0; i < gpu->ntasks; i++)
		for (unsigned k = 0; gpu->task[i] && k < l->n; k++)
			if (gpu->task[i]->key == l->seen[k].is.key)
				note_mark(gpu->task[i], l->seen[k].mark);
}

/* Copies the list: a device may be open twice. */
static void publish_list(struct gp_amd_gpu *gpu, const struct list *l)
{
	bool changed = !is_same(gpu, l);

	if (l->n > gpu->seen_capacity) {
		struct gp_amd_seen *seen = realloc(gpu->seen, l->n * sizeof *seen);

		if (!seen)
			return; /* the next scan tries again */
		gpu->seen = seen;
		gpu->seen_capacity = l->n;
	}
	if (l->n)
		memcpy(gpu->seen, l->seen, l->n * sizeof *l->seen);
	gpu->nseen = l->n;
	gpu->scanned = true;
	note_queues(gpu, l);
	if (changed)
		gp_amd_notify(gpu);
}

/* Returns with requests.lock held, so that the list is still valid. */
static void scan_all(struct gp_kfd_thread *h, struct scan *scan)
{
	unsigned nsplits;

	pthread_mutex_lock(&h->requests.lock);
	do { /* repeated if a queue was split off meanwhile */
		nsplits = h->nsplits;
		scan->ngpus = h->ngpus;
		for (unsigned i = 0; i < h->ngpus; i++) {
			scan->gpu_id[i] = h->gpu[i]->node.gpu_id;
			scan->list[i].n = 0;
		}
		pthread_mutex_unlock(&h->requests.lock);
		gp_amd_each_process(add_process, scan);
		pthread_mutex_lock(&h->requests.lock);
	} while (nsplits != h->nsplits);
}

static void scan_tasks(struct gp_kfd_thread *h, struct scan *scan)
{
	scan->kfd_thread = h;
	scan_all(h, scan);
	for (unsigned i = 0; i < h->ngpus; i++)
		for (unsigned k = 0; k < scan->ngpus; k++)
			if (h->gpu[i]->node.gpu_id == scan->gpu_id[k])
				publish_list(h->gpu[i], &scan->list[k]);
	pthread_cond_broadcast(&h->requests.changed);
	pthread_mutex_unlock(&h->requests.lock);
}

/* A task that was active when it was held still has work. While a request is under way, the driver
 * may have suspended it. */
static bool is_active(const struct gp_amd_task *t, const struct gp_amd_reading *g, uint64_t now_ns)
{
	bool may_be_held = t->held || t->queued;

	return g->work == GP_AMD_WORK_SEEN || (may_be_held && t->activity_known && t->active) ||
	       (g->work == GP_AMD_WORK_MAYBE && now_ns < t->worked_ns + GP_AMD_LINGER_NS);
}

static bool note_activity(struct gp_amd_task *t, const struct gp_amd_reading *g, uint64_t now_ns)
{
	bool active = g->known && is_active(t, g, now_ns);
	bool changed = g->known != t->activity_known || active != t->active;

	/* The program or its queues have changed. A session would report new pointers. */
	if (!g->known && !t->target)
		gp_amd_proof_lose_pointers(t);
	if (active && !t->active)
		t->active_since_ns = now_ns;
	if (active && (g->work == GP_AMD_WORK_SEEN || t->held))
		t->worked_ns = now_ns;
	t->activity_known = g->known;
	t->active = active;
	t->pending = g->pending;
	t->written = g->written;
	changed |= gp_amd_proof_note(t, g, now_ns);
	return changed;
}

/* `all`: also tasks whose activity is not needed now. */
static bool is_readable(const struct gp_amd_task *t, bool all, uint64_t now_ns)
{
	return t && !t->gone && now_ns >= t->stuck_until_ns &&
	       (t->prepare || all || gp_amd_proof_is_open(t, now_ns)) && t->has_pointers;
}

static void reading_of(struct gp_amd_task *t, struct gp_amd_reading *g)
{
	g->pid = t->pid;
	g->key = gp_process_key(t->start_time, t->pid);
	g->uid = t->uid;
	g->gpu_id = t->gpu->node.gpu_id;
	g->was_idle = t->activity_known && !t->active && !t->new_pointers;
	g->has_occupancy = gp_amd_has_occupancy(&t->gpu->node) && gp_amd_is_whole(t);
	g->wants_occupancy = gp_amd_proof_wants_occupancy(t);
	g->proof_number = t->proof.number;
	if (t->new_pointers) /* of other queues: there is nothing to compare with */
		t->proof.read_ns = 0;
	g->knows_written = t->activity_known && !t->new_pointers;
	g->written_before = t->written;
	t->new_pointers = false;
	g->n = t->npointers < GP_AMD_POINTERS_MAX ? t->npointers : GP_AMD_POINTERS_MAX;
	memcpy(g->pointer, t->pointer, g->n * sizeof *g->pointer);
}

/* Writes up to `max` tasks to read and returns their number. Caller holds requests.lock. Only this
 * thread frees tasks. */
static unsigned choose(const struct gp_kfd_thread *h, struct observer *observer, bool all,
		       struct gp_amd_task **task, unsigned max)
{
	uint64_t now_ns = gp_monotonic_ns();
	unsigned n = 0;

	for (unsigned i = 0; i < h->ngpus; i++)
		for (unsigned k = 0; k < h->gpu[i]->ntasks; k++) {
			struct gp_amd_task *t = h->gpu[i]->task[k];

			if (!is_readable(t, all, now_ns) ||
			    gp_amd_readers_refuse(&observer->readers, t->uid))
				continue;
			if (n < max)
				task[n] = t;
			n++;
		}
	return n < max ? n : max ? max : n;
}

/* Makes room for `n` tasks and starts a reader if there is none. NULL: no memory or no reader. */
static struct gp_amd_reading *prepare_reading(struct observer *observer, unsigned n)
{
	if (n > observer->capacity) {
		struct gp_amd_task **task =
			realloc(observer->task, n * sizeof(struct gp_amd_task *));

		if (!task)
			return NULL;
		observer->task = task;
		observer->capacity = n;
	}
	return gp_amd_readers_room(&observer->readers, n);
}

/* Reading the memory of the task did not return: its activity is unknown for a while. If its
 * account keeps too many readers, or all readers are stuck, the activity of the account's tasks, or
 * of all tasks, is unknown until a reader returns. */
static void give_up(struct gp_kfd_thread *h, struct observer *observer, struct gp_amd_task *t)
{
	struct gp_amd_readers *readers = &observer->readers;
	bool blind = readers->nout == GP_AMD_READERS_MAX;

	t->stuck_for_ns = t->stuck_for_ns ? 2 * t->stuck_for_ns : STUCK_NS;
	t->stuck_until_ns = gp_monotonic_ns() + t->stuck_for_ns;
	t->activity_known = t->active = false;
	for (unsigned i = 0; i < h->ngpus; i++)
		for (unsigned k = 0; k < h->gpu[i]->ntasks; k++) {
			struct gp_amd_task *other = h->gpu[i]->task[k];

			if (other && (blind || gp_amd_readers_refuse(readers, other->uid)))
				other->activity_known = other->active = false;
		}
	gp_log(GP_LOG_ERROR, "memory.stuck", "pid=%d uid=%u%s", t->pid, t->uid,
	       blind                                    ? " no-process-is-read"
	       : gp_amd_readers_refuse(readers, t->uid) ? " user-is-not-read"
							: "");
	gp_amd_notify(t->gpu);
}

/* No reader could be started, or it was killed: an earlier reading shows nothing of now. */
static void note_unread(struct gp_kfd_thread *h)
{
	pthread_mutex_lock(&h->requests.lock);
	for (unsigned i = 0; i < h->ngpus; i++)
		for (unsigned k = 0; k < h->gpu[i]->ntasks; k++) {
			struct gp_amd_task *t = h->gpu[i]->task[k];

			if (!t || !t->activity_known)
				continue;
			t->activity_known = t->active = false;
			gp_amd_notify(h->gpu[i]);
		}
	pthread_mutex_unlock(&h->requests.lock);
}

/* Returns the time until the next reading. */
static uint64_t read_activity(struct gp_kfd_thread *h, bool all, struct observer *observer)
{
	struct gp_amd_reading *reading;
	bool any_open = false;
	uint64_t now_ns;
	unsigned n;
	int late;

	pthread_mutex_lock(&h->requests.lock);
	n = choose(h, observer, all, NULL, 0);
	h->activity_sleeps = !n;
	pthread_mutex_unlock(&h->requests.lock);
	reading = n ? prepare_reading(observer, n) : NULL;
	if (n && !reading)
		note_unread(h);
	if (!reading)
		return GP_AMD_SCAN_NS;
	pthread_mutex_lock(&h->requests.lock);
	n = choose(h, observer, all, observer->task, n);
	for (unsigned i = 0; i < n; i++)
		reading_of(observer->task[i], &reading[i]);
	pthread_mutex_unlock(&h->requests.lock);
	late = gp_amd_readers_run(&observer->readers, n);
	now_ns = gp_monotonic_ns();
	if (late == GP_AMD_READ_NONE)
		note_unread(h);
	pthread_mutex_lock(&h->requests.lock);
	if (late >= 0)
		give_up(h, observer, observer->task[late]);
	for (unsigned i = 0; late == GP_AMD_READ_ALL && i < n; i++) {
		if (note_activity(observer->task[i], &reading[i], now_ns))
			gp_amd_notify(observer->task[i]->gpu);
		any_open |= observer->task[i]->proof.of_hold &&
			    gp_amd_proof_is_open(observer->task[i], now_ns);
	}
	pthread_mutex_unlock(&h->requests.lock);
	return any_open ? PROOF_NS : n ? GP_AMD_DETECT_NS : GP_AMD_SCAN_NS;
}

static void free_task(struct gp_amd_task *task)
{
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

/* A scan() or find() waits for a new list. */
static bool scan_is_requested(struct gp_kfd_thread *h)
{
	bool asked = false;

	pthread_mutex_lock(&h->requests.lock);
	for (unsigned i = 0; i < h->ngpus; i++)
		asked |= !h->gpu[i]->scanned;
	pthread_mutex_unlock(&h->requests.lock);
	return asked;
}

/* Waits for the time or for activity_fd. true: the thread must end. */
static bool wait_or_quit(struct gp_kfd_thread *h, uint64_t for_ns)
{
	struct pollfd p = {.fd = h->activity_fd, .events = POLLIN};
	struct timespec timeout = {.tv_nsec = (long)for_ns};
	eventfd_t ignored;
	bool quit;

	if (ppoll(&p, 1, &timeout, NULL) > 0)
		eventfd_read(h->activity_fd, &ignored);
	pthread_mutex_lock(&h->requests.lock);
	quit = h->activity_quit;
	pthread_mutex_unlock(&h->requests.lock);
	return quit;
}

void *gp_amd_activity_thread(void *kfd_thread)
{
	struct gp_kfd_thread *h = kfd_thread;
	struct scan *scan = calloc(1, sizeof *scan);
	struct observer observer = {0};
	uint64_t scan_ns = 0, wait_ns;

	gp_amd_readers_init(&observer.readers);
	do {
		uint64_t now_ns = gp_monotonic_ns();
		bool all = now_ns >= scan_ns;

		free_gone(h);
		if (all)
			gp_amd_smi_read(h);
		if (scan && (all || scan_is_requested(h))) {
			scan_tasks(h, scan);
			gp_amd_find_pointers(h, now_ns);
			scan_ns = now_ns + GP_AMD_SCAN_NS;
		}
		wait_ns = read_activity(h, all, &observer);
	} while (!wait_or_quit(h, wait_ns));
	for (unsigned i = 0; scan && i < GP_AMD_OPEN_MAX; i++)
		free(scan->list[i].seen);
	free(scan);
	gp_amd_readers_end(&observer.readers);
	free(observer.task);
	return NULL;
}
