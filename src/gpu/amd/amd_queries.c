/* SPDX-License-Identifier: Apache-2.0 */
/* Queries of commands about one process: find, split, queues. These functions may block. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/process.h"
#include "gpu/amd/memory_reader.h"

#define QUEUES_MAX 1024

static struct gp_amd_gpu *of(struct gp_gpu *gpu)
{
	return (struct gp_amd_gpu *)gpu; /* `base` is the first member */
}

/* Finds a task in a new scan. Tries twice: the first scan may have begun before the process had its
 * queues. */
static int scan_for(struct gp_amd_gpu *d, uint64_t key, struct gp_seen *seen)
{
	struct gp_kfd_thread *h = d->kfd_thread;
	int r = -ENODEV;

	pthread_mutex_lock(&h->requests.lock);
	for (int i = 0; i < 2 && r; i++) {
		d->scanned = false;
		eventfd_write(h->activity_fd, 1);
		while (!d->scanned)
			pthread_cond_wait(&h->requests.changed, &h->requests.lock);
		for (unsigned k = 0; k < d->nseen; k++)
			if (d->seen[k].is.key == key) {
				*seen = d->seen[k].is;
				r = 0;
			}
	}
	pthread_mutex_unlock(&h->requests.lock);
	return r;
}

/* Whether the process has queues here that only copy, which are no task. */
static bool only_copies(const struct gp_amd_gpu *d, pid_t pid, uint64_t start_time,
			struct gp_seen *seen)
{
	struct gp_amd_sysfs_queue queue[QUEUES_MAX];
	int n = gp_amd_sysfs_queues(pid, queue, QUEUES_MAX);

	for (int i = 0; i < n && i < QUEUES_MAX; i++)
		if (queue[i].gpu_id == d->node.gpu_id && queue[i].type != KFD_SYSFS_QUEUE_COMPUTE) {
			*seen = (struct gp_seen){.key = gp_process_key(start_time, pid),
						 .pid = pid,
						 .queue = GP_QUEUE_ALL,
						 .start_time = start_time,
						 .memory = gp_amd_memory(pid, d->node.gpu_id)};
			gp_process_name(pid, seen->name, sizeof seen->name);
			return true;
		}
	return false;
}

int gp_amd_find(struct gp_gpu *gpu, pid_t pid, struct gp_seen *seen, struct gp_error *err)
{
	uint64_t start_time;
	int r = gp_process_find(pid, &start_time, err);

	if (r)
		return r;
	r = gp_amd_sysfs_queues(pid, NULL, 0);
	if (r == -ESRCH)
		return gp_amd_not_a_user(pid, -ENODEV, err);
	r = scan_for(of(gpu), gp_process_key(start_time, pid), seen);
	if (r && only_copies(of(gpu), pid, start_time, seen))
		return gp_fail(
			err, -ENODATA,
			"process %d has no compute queue on this GPU, only queues that copy; "
			"gpreempt queues %d lists them",
			pid, pid);
	return r ? gp_fail(err, r,
			   "process %d has no compute queue on this GPU; gpreempt ps lists those "
			   "that have one",
			   pid)
		 : 0;
}

/* The key of the task of a queue, new or existing. 0: too many splits. */
static uint64_t split_key(struct gp_amd_gpu *d, uint64_t process, uint32_t queue)
{
	struct gp_kfd_thread *h = d->kfd_thread;
	struct gp_amd_split *list;
	unsigned number = 1;

	for (unsigned i = 0; i < h->nsplits; i++) {
		struct gp_amd_split *s = &h->split[i];

		if (gp_amd_process_of(s->key) != process || s->gpu_id != d->node.gpu_id)
			continue;
		if (s->queue == queue)
			return s->key;
		number++;
	}
	list = realloc(h->split, (h->nsplits + 1) * sizeof *list);
	if (!list || number > GP_AMD_SPLITS_MAX)
		return 0;
	h->split = list;
	list[h->nsplits++] = (struct gp_amd_split){
		.key = process | number, .gpu_id = d->node.gpu_id, .queue = queue};
	return process | number;
}

/* A queue that is split off while its process is held would never be released. */
static bool is_held(const struct gp_amd_gpu *d, uint64_t process)
{
	for (unsigned i = 0; i < d->ntasks; i++) {
		const struct gp_amd_task *t = d->task[i];

		if (t && t->key == process && !t->leaving && (t->held || t->queued))
			return true;
	}
	return false;
}

static bool has_queue(pid_t pid, uint32_t gpu_id, uint32_t id)
{
	struct gp_amd_sysfs_queue queue[256];
	int n = gp_amd_sysfs_queues(pid, queue, 256);

	for (int i = 0; i < n && i < 256; i++)
		if (queue[i].id == id && queue[i].gpu_id == gpu_id &&
		    queue[i].type == KFD_SYSFS_QUEUE_COMPUTE)
			return true;
	return false;
}

static struct gp_amd_seen *find_seen(struct gp_amd_gpu *d, uint64_t key)
{
	for (unsigned i = 0; i < d->nseen; i++)
		if (d->seen[i].is.key == key)
			return &d->seen[i];
	return NULL;
}

/* Adds the split to the list, as the next scan will do. Caller holds requests.lock. false: the
 * process is not known, or there is no memory. */
static bool add_split(struct gp_amd_gpu *d, uint64_t key, uint32_t queue, struct gp_seen *seen)
{
	struct gp_amd_seen *found = find_seen(d, key), split;

	if (!found) {
		found = find_seen(d, gp_amd_process_of(key));
		if (!found)
			return false;
		split = *found;
		split.is.key = key;
		split.is.queue = queue;
		split.queues = 1;
		if (d->nseen == d->seen_capacity) {
			found = realloc(d->seen, (d->nseen + 16) * sizeof *found);
			if (!found)
				return false;
			d->seen = found;
			d->seen_capacity = d->nseen + 16;
		}
		found = &d->seen[d->nseen++];
		*found = split;
	}
	*seen = found->is;
	return true;
}

int gp_amd_split(struct gp_gpu *gpu, pid_t pid, uint32_t queue, struct gp_seen *seen,
		 struct gp_error *err)
{
	struct gp_amd_gpu *d = of(gpu);
	uint64_t start_time, key;
	bool held, known = false;
	int r = gp_process_find(pid, &start_time, err);

	if (r)
		return r;
	if (!has_queue(pid, d->node.gpu_id, queue))
		return gp_fail(err, -ENOENT,
			       "process %d has no compute queue %u on this GPU; gpreempt queues %d "
			       "lists those that it has",
			       pid, queue, pid);
	pthread_mutex_lock(&d->kfd_thread->requests.lock);
	held = is_held(d, gp_process_key(start_time, pid));
	key = held ? 0 : split_key(d, gp_process_key(start_time, pid), queue);
	if (key)
		known = add_split(d, key, queue, seen);
	pthread_mutex_unlock(&d->kfd_thread->requests.lock);
	if (held)
		return gp_fail(err, -EBUSY, "process %d is held as a whole; release it first", pid);
	if (!key)
		return gp_fail(
			err, -ENOSPC,
			"at most %d single queues of process %d can be held; hold it as a whole",
			GP_AMD_SPLITS_MAX, pid);
	r = known ? 0 : scan_for(d, key, seen);
	return r ? gp_fail(err, -ENOENT, "process %d has no compute queue %u any more", pid, queue)
		 : 0;
}

int64_t gp_amd_process_evicted_ms(struct gp_gpu *gpu, pid_t pid)
{
	return gp_amd_evicted_ms(pid, of(gpu)->node.gpu_id);
}

/* Reads the queues from sysfs, without attaching. */
static int queues_from_sysfs(const struct gp_amd_gpu *d, pid_t pid, struct gp_queue *queue,
			     unsigned max)
{
	struct gp_amd_sysfs_queue list[QUEUES_MAX];
	int all = gp_amd_sysfs_queues(pid, list, QUEUES_MAX), n = 0;

	for (int i = 0; i < all && i < QUEUES_MAX; i++) {
		bool computes = list[i].type == KFD_SYSFS_QUEUE_COMPUTE;

		if (list[i].gpu_id != d->node.gpu_id)
			continue;
		if ((unsigned)n < max) {
			queue[n] = (struct gp_queue){.id = list[i].id,
						     .interleave = UINT32_MAX,
						     .copies = !computes,
						     .ring_bytes = list[i].size,
						     .pending = UINT64_MAX,
						     .priority = UINT32_MAX,
						     .serial = list[i].serial};
			snprintf(queue[n].type, sizeof queue[n].type, "%s",
				 computes ? "compute" : "sdma");
		}
		n++;
	}
	return all < 0 ? all : n;
}

static void fill_reading(const struct gp_amd_call *call, uid_t uid, int n, struct gp_amd_reading *g)
{
	*g = (struct gp_amd_reading){
		.pid = call->pid, .key = gp_process_key(call->start_time, call->pid), .uid = uid};
	for (int i = 0; i < n && g->n < GP_AMD_POINTERS_MAX; i++)
		if (!call->queue[i].copies) /* SDMA pointers have other units */
			g->pointer[g->n++] = call->pointer[i];
}

/* Caller holds query_lock. */
static void read_with(struct gp_amd_readers *readers, const struct gp_amd_call *call, uid_t uid,
		      int n)
{
	struct gp_amd_reading *g =
		gp_amd_readers_refuse(readers, uid) ? NULL : gp_amd_readers_room(readers, 1);

	if (!g)
		return;
	fill_reading(call, uid, n, g);
	if (gp_amd_readers_run(readers, 1) != GP_AMD_READ_ALL)
		return;
	for (unsigned i = 0, k = 0; k < g->n; i++)
		if (!call->queue[i].copies)
			call->queue[i].pending = g->pointer[k++].pending;
}

/* Not on the KFD thread: a read can take until the time limit. What cannot be read in time stays
 * unknown. */
static void read_pending(const struct gp_amd_call *call, int n)
{
	struct gp_kfd_thread *h = call->gpu->kfd_thread;
	uid_t uid[3];

	if (!gp_process_uids(call->pid, uid))
		return;
	pthread_mutex_lock(&h->query_lock);
	if (!h->query_readers) {
		h->query_readers = malloc(sizeof *h->query_readers);
		if (h->query_readers)
			gp_amd_readers_init(h->query_readers);
	}
	if (h->query_readers)
		read_with(h->query_readers, call, uid[0], n);
	pthread_mutex_unlock(&h->query_lock);
}

/* Read after the session: a queue that was created again meanwhile gets its new serial one sample
 * too early, which is harmless. */
static void read_serials(const struct gp_amd_call *call, int n)
{
	struct gp_amd_sysfs_queue list[QUEUES_MAX];
	int all = gp_amd_sysfs_queues(call->pid, list, QUEUES_MAX);

	for (int i = 0; i < n; i++)
		for (int k = 0; k < all && k < QUEUES_MAX; k++)
			if (list[k].id == call->queue[i].id)
				call->queue[i].serial = list[k].serial;
}

static int queues_from_session(struct gp_amd_gpu *d, struct gp_amd_call *call)
{
	int n;

	gp_requests_ask(&d->kfd_thread->requests, &call->question);
	n = call->question.result < (int)call->max ? call->question.result : (int)call->max;
	if (n > 0) {
		read_pending(call, n);
		read_serials(call, n);
	}
	return call->question.result;
}

/* A search for a process by key: a process that only copies is not in the list of tasks. */
struct search {
	uint64_t key;
	pid_t pid; /* 0: not found */
	uint64_t start_time;
};

static int has_key(void *arg, pid_t pid)
{
	struct search *search = arg;
	uint64_t start_time = gp_process_start_time(pid);

	if (!start_time || gp_process_key(start_time, pid) != search->key)
		return 0;
	search->pid = pid;
	search->start_time = start_time;
	return 1;
}

int gp_amd_queues(struct gp_gpu *gpu, uint64_t key, bool closely, struct gp_queue *queue,
		  unsigned max, struct gp_error *err)
{
	struct gp_amd_gpu *d = of(gpu);
	struct gp_error why = {0};
	struct gp_amd_call call = {.gpu = d, .queue = queue, .max = max, .err = err ? err : &why};
	struct search search = {.key = key};
	int r;

	pthread_mutex_lock(&d->kfd_thread->requests.lock);
	for (unsigned i = 0; i < d->nseen; i++)
		if (d->seen[i].is.key == key) {
			search.pid = d->seen[i].is.pid;
			search.start_time = d->seen[i].is.start_time;
		}
	pthread_mutex_unlock(&d->kfd_thread->requests.lock);
	if (!search.pid)
		gp_amd_each_process(has_key, &search);
	call.pid = search.pid;
	call.start_time = search.start_time;
	if (!call.pid)
		return gp_fail(err, -ESRCH, "the process has ended");
	if (!closely)
		return queues_from_sysfs(d, call.pid, queue, max);
	call.pointer = calloc(max + 1, sizeof *call.pointer);
	if (!call.pointer)
		return gp_fail(err, -ENOMEM, "no memory");
	r = queues_from_session(d, &call);
	free(call.pointer);
	return r;
}
