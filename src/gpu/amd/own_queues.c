/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holds the queues of the calling program from inside, with UPDATE_QUEUE: a percentage of 0 saves
 * the waves of a queue and takes it off the hardware, 100 puts it back. It needs no debugger, no
 * ptrace and no support of the runtime, and works beside a debugger: a queue runs if neither has
 * stopped it and the driver has not evicted it.
 *
 * The call sets all properties, so ring, size and priority must be passed unchanged. Only the
 * snapshot of a debug session has the ring. For new queues the program therefore debugs itself for
 * one snapshot, which the driver allows without a link, or uses the session of its debugger. Only
 * debugfs has the priority.
 *
 * The answer to a hold is compared with the read pointers: a queue that goes on taking packets is
 * not held. A queue without waiting packets shows nothing. A release is believed: a program that
 * waits for its host looks like one that was not released, and a debugger may hold it.
 *
 * A queue that is destroyed while it is held loses its work: the driver does not wait, as it does
 * for a debugger. A new queue with the same id has another serial and is not changed.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "gpu/amd/amd_device.h"

#define MQDS_MAX        256
#define TRIES           3
#define PERCENT_ON      100
#define PRIORITY_NORMAL 7 /* ROCm's default */

/* See proof.c. */
#define LOOK_NS   (20 * GP_NS_PER_MS)
#define STALL_NS  (1 * GP_NS_PER_MS)
#define PAUSE_US  200
#define MOVES_MIN 2

struct gp_amd_own_queue {
	struct kfd_queue_snapshot_entry is;
	uint64_t serial;
	uint32_t priority; /* UINT32_MAX = not known */
	bool held;

	/* Since the hold. */
	uint64_t taken; /* the read pointer, as last read */
	unsigned moves; /* of it; UINT_MAX: not read yet */
};

/* The queues of this process in sysfs, read once. */
struct own_list {
	int n;
	struct gp_amd_sysfs_queue queue[KFD_DBG_QUEUES_MAX];
};

/* The caller frees the result; NULL: no memory. */
static struct own_list *list_own(void)
{
	struct own_list *list = malloc(sizeof *list);

	if (!list)
		return NULL;
	list->n = gp_amd_sysfs_queues(getpid(), list->queue, KFD_DBG_QUEUES_MAX);
	if (list->n > (int)KFD_DBG_QUEUES_MAX)
		list->n = (int)KFD_DBG_QUEUES_MAX;
	return list;
}

/* 0: no queue has this id. */
static uint64_t serial_of(const struct own_list *list, uint32_t id)
{
	for (int i = 0; i < list->n; i++)
		if (list->queue[i].id == id)
			return list->queue[i].serial;
	return 0;
}

static struct gp_amd_own_queue *find(struct gp_amd_self *self, uint32_t id, uint64_t serial)
{
	for (unsigned i = 0; i < self->n; i++)
		if (self->own[i].is.queue_id == id && self->own[i].serial == serial)
			return &self->own[i];
	return NULL;
}

static bool knows_all(struct gp_amd_self *self, const struct own_list *list)
{
	for (int i = 0; i < list->n; i++)
		if (list->queue[i].type == KFD_SYSFS_QUEUE_COMPUTE &&
		    !find(self, list->queue[i].id, list->queue[i].serial))
			return false;
	return true;
}

static void forget_gone(struct gp_amd_self *self, const struct own_list *list)
{
	for (unsigned i = self->n; i-- > 0;)
		if (serial_of(list, self->own[i].is.queue_id) != self->own[i].serial)
			self->own[i] = self->own[--self->n];
}

/* Adds a new queue. A queue that is newer than `list` is added by the next call. */
static int add(struct gp_amd_self *self, const struct own_list *list,
	       const struct kfd_queue_snapshot_entry *entry)
{
	uint64_t serial = serial_of(list, entry->queue_id);
	struct gp_amd_own_queue *own;

	if (!serial || !gp_amd_computes(entry) || find(self, entry->queue_id, serial))
		return 0;
	own = realloc(self->own, (self->n + 1) * sizeof *own);
	if (!own)
		return -ENOMEM;
	self->own = own;
	own[self->n++] =
		(struct gp_amd_own_queue){.is = *entry, .serial = serial, .priority = UINT32_MAX};
	return 0;
}

/* Reads the queues in a session of this process. -EBUSY: a debugger attached meanwhile. */
static int learn_alone(struct gp_amd_self *self, int kfd, const struct own_list *list,
		       struct gp_error *err)
{
	enum gp_amd_rule none = GP_AMD_RULE_TRACER;
	struct gp_amd_session session;
	int r = gp_amd_session_open(&session, kfd, getpid(), &none, err);

	if (r && !session.enabled)
		return r;
	for (unsigned i = 0; i < session.nqueues && !r; i++)
		r = add(self, list, &session.queue[i].is);
	/* A session that does not end is used by the next call, and suspends nothing. */
	(void)gp_amd_session_close(&session);
	return r;
}

/* Reads the queues in the session of a debugger. -EINVAL: there is none. */
static int learn_beside(struct gp_amd_self *self, int kfd, const struct own_list *list)
{
	struct kfd_queue_snapshot_entry *entry = calloc(KFD_DBG_QUEUES_MAX, sizeof *entry);
	int n, r = 0;

	if (!entry)
		return -ENOMEM;
	/* Clears nothing: the debugger has to see new queues. */
	n = gp_kfd_snapshot(kfd, getpid(), 0, entry, KFD_DBG_QUEUES_MAX);
	for (int i = 0; i < n && i < (int)KFD_DBG_QUEUES_MAX && !r; i++)
		r = add(self, list, &entry[i]);
	free(entry);
	return n < 0 ? n : r;
}

static int learn(struct gp_amd_self *self, int kfd, const struct own_list *list,
		 struct gp_error *err)
{
	int r = -EBUSY;

	for (int i = 0; i < TRIES && r == -EBUSY; i++) {
		*err = (struct gp_error){0};
		r = learn_beside(self, kfd, list);
		if (r == -EINVAL)
			r = learn_alone(self, kfd, list, err);
	}
	return r ? gp_fail(err, r, "the program's own queues cannot be read: %s", gp_error_name(r))
		 : 0;
}

static int refresh(struct gp_amd_self *self, int kfd, struct gp_error *err)
{
	struct own_list *list = list_own();
	int r = 0;

	if (!list)
		return gp_fail(err, -ENOMEM, "no memory");
	if (list->n < 0 && list->n != -ESRCH) {
		r = gp_fail(err, list->n, "%s cannot be read: %s", gp_amd_sysfs(),
			    gp_error_name(list->n));
	} else {
		forget_gone(self, list);
		if (!knows_all(self, list))
			r = learn(self, kfd, list, err);
	}
	free(list);
	return r;
}

static void read_priorities(struct gp_amd_self *self, uint32_t gpu_id)
{
	struct gp_amd_mqd mqd[MQDS_MAX];
	int n = gp_amd_read_mqds(getpid(), gpu_id, mqd, MQDS_MAX);

	for (unsigned i = 0; i < self->n; i++)
		for (int k = 0; k < n && k < MQDS_MAX; k++)
			if (self->own[i].is.gpu_id == gpu_id &&
			    self->own[i].is.ring_base_address == mqd[k].ring_address)
				self->own[i].priority = mqd[k].priority;
}

/* Whether the queue could be put back unchanged. */
static int check(const struct gp_amd_gpu *d, struct gp_amd_own_queue *own, unsigned flags,
		 struct gp_error *err)
{
	if (own->is.queue_type == KFD_QUEUE_COMPUTE && d->node.xccs > 1)
		return gp_fail(err, -ENOTSUP,
			       "queue %u cannot be held from inside: it takes PM4 packets on a GPU "
			       "with several XCCs, and the XCC of the queue is not known",
			       own->is.queue_id);
	if (own->priority > KFD_QUEUE_PRIORITY_MAX && flags & GP_SELF_NORMAL_PRIORITY)
		own->priority = PRIORITY_NORMAL;
	if (own->priority <= KFD_QUEUE_PRIORITY_MAX)
		return 0;
	return gp_fail(err, -ENODATA,
		       "the priority of queue %u would be lost: %s/mqds, which has it, cannot be "
		       "read",
		       own->is.queue_id, gp_amd_debugfs());
}

static int set_percent(int kfd, const struct gp_amd_own_queue *own, uint32_t percent)
{
	return gp_kfd_update_queue(
		kfd, &(struct kfd_update_queue){.ring_base_address = own->is.ring_base_address,
						.queue_id = own->is.queue_id,
						.ring_size = own->is.ring_size,
						.queue_percentage = percent,
						.queue_priority = own->priority});
}

/* A destroyed queue is not held. */
static bool is_gone(const struct gp_amd_own_queue *own)
{
	return gp_amd_queue_serial(getpid(), own->is.queue_id) != own->serial;
}

/* 0 or the first failure. */
static int release_own(struct gp_amd_self *self, const struct gp_amd_gpu *d, unsigned *n)
{
	int failed = 0;

	for (unsigned i = 0; i < self->n; i++) {
		struct gp_amd_own_queue *own = &self->own[i];
		int r;

		if (!own->held || own->is.gpu_id != d->node.gpu_id)
			continue;
		own->held = !is_gone(own);
		if (!own->held)
			continue;
		r = set_percent(d->kfd_thread->kfd, own, PERCENT_ON);
		*n += !r;
		own->held = r && !is_gone(own);
		if (own->held && !failed)
			failed = r;
	}
	return failed;
}

/* Returns the number of held queues, or -errno of the first failure. The failed queue may be off
 * the hardware: the driver records the percentage before it fails. */
static int hold_own(struct gp_amd_self *self, const struct gp_amd_gpu *d)
{
	int n = 0;

	for (unsigned i = 0; i < self->n; i++) {
		struct gp_amd_own_queue *own = &self->own[i];
		int r = 0;

		if (own->is.gpu_id != d->node.gpu_id)
			continue;
		if (!own->held)
			r = set_percent(d->kfd_thread->kfd, own, 0);
		own->held = !r || !is_gone(own);
		if (own->held && r)
			return r;
		n += own->held;
	}
	return n;
}

static bool read_number(int memory, uint64_t address, uint64_t *out)
{
	return pread(memory, out, sizeof *out, (off_t)address) == (ssize_t)sizeof *out;
}

/* What one reading shows of the held queues. */
struct own_look {
	bool any_waits, all_wait;
	const struct gp_amd_own_queue *works; /* although it is held; NULL: none */
};

/* The queue may be destroyed at any moment, and its memory with it. */
static void look_at(struct gp_amd_own_queue *own, int memory, struct own_look *look)
{
	struct gp_amd_pointers p = gp_amd_pointers_of(&own->is);
	uint64_t taken, written;
	bool waits;

	if (!read_number(memory, p.read_address, &taken) ||
	    !read_number(memory, p.write_address, &written))
		return;
	waits = (written - taken) & p.mask;
	look->any_waits |= waits;
	look->all_wait &= waits;
	own->moves = own->moves == UINT_MAX ? 0 : own->moves + (own->taken != taken);
	own->taken = taken;
	if (own->moves >= MOVES_MIN && !is_gone(own))
		look->works = own;
}

/* A held queue that goes on working; NULL: none was seen. */
static const struct gp_amd_own_queue *find_working(struct gp_amd_self *self,
						   const struct gp_amd_gpu *d)
{
	int memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	uint64_t end_ns = gp_monotonic_ns() + LOOK_NS, stalled_ns = 0, now_ns;
	struct own_look look = {.any_waits = memory >= 0};

	for (unsigned i = 0; i < self->n; i++)
		self->own[i].moves = UINT_MAX;
	while (look.any_waits && !look.works && (now_ns = gp_monotonic_ns()) < end_ns) {
		look = (struct own_look){.all_wait = true};
		for (unsigned i = 0; i < self->n; i++)
			if (self->own[i].held && self->own[i].is.gpu_id == d->node.gpu_id)
				look_at(&self->own[i], memory, &look);
		if (!look.all_wait || gp_amd_occupancy(getpid(), d->node.gpu_id))
			stalled_ns = 0;
		else if (!stalled_ns)
			stalled_ns = now_ns;
		else if (now_ns >= stalled_ns + STALL_NS)
			break;
		usleep(PAUSE_US);
	}
	if (memory >= 0)
		close(memory);
	return look.works;
}

static int check_hold(struct gp_amd_self *self, const struct gp_amd_gpu *d, struct gp_error *err)
{
	const struct gp_amd_own_queue *works = find_working(self, d);

	return works ? gp_fail(err, -EREMOTEIO,
			       "the driver says that queue %u of this program is held, but it goes "
			       "on working",
			       works->is.queue_id)
		     : 0;
}

static int cannot(struct gp_error *err, int code, const char *what)
{
	return gp_fail(err, code, "the program's own queues cannot be %s: %s%s", what,
		       gp_error_name(code), code == -EACCES ? " (one of them was reset)" : "");
}

int gp_amd_hold_self(struct gp_gpu *gpu, unsigned flags, struct gp_error *err)
{
	struct gp_amd_gpu *d = (struct gp_amd_gpu *)gpu;
	struct gp_amd_self *self = &d->kfd_thread->self;
	int r, disproved;

	pthread_mutex_lock(&self->lock);
	r = refresh(self, d->kfd_thread->kfd, err);
	if (!r)
		read_priorities(self, d->node.gpu_id);
	for (unsigned i = 0; i < self->n && !r; i++)
		if (self->own[i].is.gpu_id == d->node.gpu_id && !self->own[i].held)
			r = check(d, &self->own[i], flags, err);
	if (!r) {
		r = hold_own(self, d);
		if (r < 0)
			cannot(err, r, "held");
	}
	disproved = r > 0 ? check_hold(self, d, err) : 0;
	pthread_mutex_unlock(&self->lock);
	return disproved ? disproved : r;
}

int gp_amd_release_self(struct gp_gpu *gpu, struct gp_error *err)
{
	struct gp_amd_gpu *d = (struct gp_amd_gpu *)gpu;
	struct gp_amd_self *self = &d->kfd_thread->self;
	unsigned n = 0;
	int r;

	pthread_mutex_lock(&self->lock);
	r = release_own(self, d, &n);
	pthread_mutex_unlock(&self->lock);
	return r ? cannot(err, r, "released") : (int)n;
}
