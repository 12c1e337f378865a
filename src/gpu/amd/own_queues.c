/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program's own queues, from inside: with a percentage of 0 the driver takes a queue off the
 * hardware, its waves saved, and with 100 puts it back (UPDATE_QUEUE). That takes no debugger, no
 * ptrace and no consent of the runtime, and works beside a debugger: a queue runs when neither has
 * stopped it, and the driver has not evicted it.
 *
 * The call sets everything anew: ring, size and priority must be given as they are. The ring stands
 * in the snapshot of a debug session only; so when there are queues that were not seen before, the
 * program debugs itself for the moment of one, which the driver allows without a link. Where it has
 * a debugger, its session does. The priority stands in debugfs only.
 *
 * A queue that is destroyed while it is held is gone, with all that it had: the driver does not
 * wait for us, as it would for a debugger. One that is made under its id has another serial number,
 * and is not touched.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "gpu/amd/amd_device.h"

#define MQDS_MAX        256
#define TRIES           3
#define PERCENT_ON      100
#define PRIORITY_NORMAL 7 /* with which ROCm makes every queue */

struct amd_own {
	struct kfd_queue_snapshot_entry is;
	uint64_t serial;
	uint32_t priority; /* UINT32_MAX: not known */
	bool held;
};

/* What sysfs shows, read once. */
struct sight {
	int n;
	struct gp_amd_sysfs_queue queue[KFD_DBG_QUEUES_MAX];
};

/* ---- which there are ---------------------------------------------------------------------------
 */

/* To be freed; NULL: no memory. */
static struct sight *look(void)
{
	struct sight *sight = malloc(sizeof *sight);

	if (!sight)
		return NULL;
	sight->n = gp_amd_sysfs_queues(getpid(), sight->queue, KFD_DBG_QUEUES_MAX);
	if (sight->n > (int)KFD_DBG_QUEUES_MAX)
		sight->n = (int)KFD_DBG_QUEUES_MAX;
	return sight;
}

/* 0: it is not there. */
static uint64_t serial_of(const struct sight *sight, uint32_t id)
{
	for (int i = 0; i < sight->n; i++)
		if (sight->queue[i].id == id)
			return sight->queue[i].serial;
	return 0;
}

static struct amd_own *find(struct gp_amd_self *self, uint32_t id, uint64_t serial)
{
	for (unsigned i = 0; i < self->n; i++)
		if (self->own[i].is.queue_id == id && self->own[i].serial == serial)
			return &self->own[i];
	return NULL;
}

static bool knows_all(struct gp_amd_self *self, const struct sight *sight)
{
	for (int i = 0; i < sight->n; i++)
		if (sight->queue[i].type == KFD_SYSFS_QUEUE_COMPUTE &&
		    !find(self, sight->queue[i].id, sight->queue[i].serial))
			return false;
	return true;
}

static void forget_gone(struct gp_amd_self *self, const struct sight *sight)
{
	for (unsigned i = self->n; i-- > 0;)
		if (serial_of(sight, self->own[i].is.queue_id) != self->own[i].serial)
			self->own[i] = self->own[--self->n];
}

/* Adds what is new. One that came after `sight` was taken is for the next time. */
static int add(struct gp_amd_self *self, const struct sight *sight,
               const struct kfd_queue_snapshot_entry *entry)
{
	uint64_t serial = serial_of(sight, entry->queue_id);
	struct amd_own *own;

	if (!serial || !gp_amd_computes(entry) || find(self, entry->queue_id, serial))
		return 0;
	own = realloc(self->own, (self->n + 1) * sizeof *own);
	if (!own)
		return -ENOMEM;
	self->own = own;
	own[self->n++] = (struct amd_own){.is = *entry, .serial = serial, .priority = UINT32_MAX};
	return 0;
}

/* In a session of our own. -EBUSY: another's has begun meanwhile. */
static int learn_alone(struct gp_amd_self *self, int kfd, const struct sight *sight,
                       struct gp_error *err)
{
	enum gp_amd_rule none = GP_AMD_RULE_TRACER;
	struct gp_amd_session session;
	int r = gp_amd_session_open(&session, kfd, getpid(), &none, err);

	if (r)
		return r;
	for (unsigned i = 0; i < session.nqueues && !r; i++)
		r = add(self, sight, &session.queue[i].is);
	gp_amd_session_close(&session);
	return r;
}

/* In the session of whoever debugs us. -EINVAL: nobody does. */
static int learn_beside(struct gp_amd_self *self, int kfd, const struct sight *sight)
{
	struct kfd_queue_snapshot_entry *entry = calloc(KFD_DBG_QUEUES_MAX, sizeof *entry);
	int n, r = 0;

	if (!entry)
		return -ENOMEM;
	/* Nothing is cleared: what is new is new for him. */
	n = gp_kfd_snapshot(kfd, getpid(), 0, entry, KFD_DBG_QUEUES_MAX);
	for (int i = 0; i < n && i < (int)KFD_DBG_QUEUES_MAX && !r; i++)
		r = add(self, sight, &entry[i]);
	free(entry);
	return n < 0 ? n : r;
}

static int learn(struct gp_amd_self *self, int kfd, const struct sight *sight, struct gp_error *err)
{
	int r = -EBUSY;

	for (int i = 0; i < TRIES && r == -EBUSY; i++) {
		*err = (struct gp_error){0};
		r = learn_beside(self, kfd, sight);
		if (r == -EINVAL)
			r = learn_alone(self, kfd, sight, err);
	}
	return r ? gp_fail(err, r, "the program's own queues cannot be read: %s", gp_error_name(r))
	         : 0;
}

static int refresh(struct gp_amd_self *self, int kfd, struct gp_error *err)
{
	struct sight *sight = look();
	int r = 0;

	if (!sight)
		return gp_fail(err, -ENOMEM, "no memory");
	if (sight->n < 0 && sight->n != -ESRCH) {
		r = gp_fail(err, sight->n, "%s cannot be read: %s", gp_amd_sysfs(),
		            gp_error_name(sight->n));
	} else {
		forget_gone(self, sight);
		if (!knows_all(self, sight))
			r = learn(self, kfd, sight, err);
	}
	free(sight);
	return r;
}

/* ---- what must be known of them ----------------------------------------------------------------
 */

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

/* Whether it could be put back as it was. */
static int check(const struct gp_amd_gpu *d, struct amd_own *own, unsigned flags,
                 struct gp_error *err)
{
	if (own->is.queue_type == KFD_QUEUE_COMPUTE && d->node.xccs > 1)
		return gp_fail(err, -ENOTSUP,
		               "queue %u takes PM4 packets on a GPU with several XCCs: which of "
		               "them it uses is not known",
		               own->is.queue_id);
	if (own->priority > KFD_QUEUE_PRIORITY_MAX && flags & GP_SELF_NORMAL_PRIORITY)
		own->priority = PRIORITY_NORMAL;
	if (own->priority <= KFD_QUEUE_PRIORITY_MAX)
		return 0;
	return gp_fail(
		err, -ENODATA,
		"the priority of queue %u would be lost: %s/mqds, where it stands, cannot be "
		"read",
		own->is.queue_id, gp_amd_debugfs());
}

/* ---- holding and releasing ---------------------------------------------------------------------
 */

static int set_percent(int kfd, const struct amd_own *own, uint32_t percent)
{
	return gp_kfd_update_queue(
		kfd, &(struct kfd_update_queue){.ring_base_address = own->is.ring_base_address,
	                                        .queue_id = own->is.queue_id,
	                                        .ring_size = own->is.ring_size,
	                                        .queue_percentage = percent,
	                                        .queue_priority = own->priority});
}

/* One that is gone by now is not held. */
static bool is_gone(const struct amd_own *own)
{
	return gp_amd_queue_serial(getpid(), own->is.queue_id) != own->serial;
}

/* 0 or the first failure. */
static int release_own(struct gp_amd_self *self, const struct gp_amd_gpu *d, unsigned *n)
{
	int failed = 0;

	for (unsigned i = 0; i < self->n; i++) {
		struct amd_own *own = &self->own[i];
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

/* How many are, or -errno: the first that failed. That one may be off all the same: the driver has
 * noted what it could not do. */
static int hold_own(struct gp_amd_self *self, const struct gp_amd_gpu *d)
{
	int n = 0;

	for (unsigned i = 0; i < self->n; i++) {
		struct amd_own *own = &self->own[i];
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

static int cannot(struct gp_error *err, int code, const char *what)
{
	return gp_fail(err, code, "the program's own queues cannot be %s: %s%s", what,
	               gp_error_name(code), code == -EACCES ? " (one of them was reset)" : "");
}

int gp_amd_hold_self(struct gp_gpu *gpu, unsigned flags, struct gp_error *err)
{
	struct gp_amd_gpu *d = (struct gp_amd_gpu *)gpu;
	struct gp_amd_self *self = &d->kfd_thread->self;
	int r;

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
	pthread_mutex_unlock(&self->lock);
	return r;
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
