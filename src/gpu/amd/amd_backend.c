/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of functions for AMD GPUs. They return the state that the other threads found. */
#include "gpu/amd/amd_backend.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/process.h"
#include "gpu/amd/amd_device.h"

#define TRY_AGAIN_NS GP_NS_PER_S
#define HELD_MAX     65536

static struct gp_amd_gpu *of(struct gp_gpu *gpu)
{
	return (struct gp_amd_gpu *)gpu; /* `base` is the first member */
}

static int probe(void)
{
	struct gp_amd_node node[GP_AMD_NODES_MAX];
	int n;

	if (access(gp_kfd_path(), F_OK))
		return 0;
	n = gp_amd_nodes(node, GP_AMD_NODES_MAX);
	if (n <= 0)
		return 0;
	n = n < GP_AMD_NODES_MAX ? n : GP_AMD_NODES_MAX;
	if (access(gp_kfd_path(), R_OK | W_OK))
		return -errno;
	return n;
}

static void fill_info(struct gp_amd_gpu *d, unsigned index)
{
	struct gp_gpu_info *info = &d->base.info;
	char gfx[16];

	snprintf(info->name, sizeof info->name, "AMD %s #%u",
		 gp_amd_gfx_name(&d->node, gfx, sizeof gfx), index);
	info->caps = GP_CAP_ACTIVITY | GP_CAP_EVENTS;
	if (gp_amd_can_suspend(&d->node)) {
		info->caps |= GP_CAP_HOLD;
		if (!gp_amd_has_mes(&d->node)) /* MES ignores a grace and stops single queues */
			info->caps |= GP_CAP_PREEMPT_MODE | GP_CAP_STOPS_ALL;
		info->max_held = gp_amd_debugs_many(&d->node) ? HELD_MAX : 1;
	}
	/* The cost of a hold depends on the running work, so it is not known in advance. */
	info->sample_period_ns = GP_AMD_DETECT_NS;
	info->notice_ns = GP_AMD_DETECT_NS;
}

static int amd_open(unsigned index, unsigned flags, struct gp_gpu **gpu)
{
	struct gp_amd_node node[GP_AMD_NODES_MAX];
	int n = gp_amd_nodes(node, GP_AMD_NODES_MAX), r;
	struct gp_amd_gpu *d;

	(void)flags; /* observation costs the GPU nothing */
	if (!gp_amd_sees_host_pids())
		return -EPERM;
	if (n < 0 || index >= (unsigned)n || index >= GP_AMD_NODES_MAX)
		return n < 0 ? n : -ENODEV;
	d = calloc(1, sizeof *d);
	if (!d)
		return -ENOMEM;
	d->base.ops = &gp_amd_ops;
	d->node = node[index];
	fill_info(d, index);
	d->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r = d->event_fd < 0 ? -errno : gp_kfd_thread_join(d, NULL);
	if (r) {
		if (d->event_fd >= 0)
			close(d->event_fd);
		free(d);
		return r;
	}
	*gpu = &d->base;
	return 0;
}

static void amd_close(struct gp_gpu *gpu)
{
	struct gp_amd_gpu *d = of(gpu);

	gp_amd_release_self(gpu, NULL);
	gp_kfd_thread_leave(d);
	close(d->event_fd);
	free(d->task);
	free(d->seen);
	free(d);
}

/* The first call waits until the activity thread has listed all processes once. */
static int amd_scan(struct gp_gpu *gpu, uint64_t now_ns, struct gp_seen *seen, unsigned max)
{
	struct gp_amd_gpu *d = of(gpu);
	struct gp_kfd_thread *h = d->kfd_thread;
	int n;

	(void)now_ns;
	pthread_mutex_lock(&h->requests.lock);
	if (!d->scanned)
		eventfd_write(h->activity_fd, 1);
	while (!d->scanned)
		pthread_cond_wait(&h->requests.changed, &h->requests.lock);
	n = (int)d->nseen;
	for (unsigned i = 0; i < d->nseen && i < max; i++)
		seen[i] = d->seen[i].is;
	pthread_mutex_unlock(&h->requests.lock);
	return n;
}

/* A free handle; -1: no memory. */
static int find_handle(struct gp_amd_gpu *d)
{
	struct gp_amd_task **task;

	for (unsigned i = 0; i < d->ntasks; i++)
		if (!d->task[i])
			return (int)i;
	task = realloc(d->task, (d->ntasks + 1) * sizeof(struct gp_amd_task *));
	if (!task)
		return -1;
	d->task = task;
	d->task[d->ntasks] = NULL;
	return (int)d->ntasks++;
}

static struct gp_amd_task *make_task(struct gp_amd_gpu *d, const struct gp_amd_seen *found)
{
	struct gp_amd_task *t = calloc(1, sizeof *t);
	uid_t uid[3];

	if (!t)
		return NULL;
	t->gpu = d;
	t->key = found->is.key;
	t->pid = found->is.pid;
	t->start_time = found->is.start_time;
	t->uid = gp_process_uids(t->pid, uid) ? uid[0] : (uid_t)-1;
	t->queue = found->is.queue;
	t->queues_mark = found->mark;
	t->grace = KFD_GRACE_DEFAULT;
	return t;
}

static int amd_attach(struct gp_gpu *gpu, uint64_t key, uint32_t *handle)
{
	struct gp_amd_gpu *d = of(gpu);
	const struct gp_amd_seen *found = NULL;
	int free_handle = -1, r = 0;

	pthread_mutex_lock(&d->kfd_thread->requests.lock);
	for (unsigned i = 0; i < d->nseen; i++)
		if (d->seen[i].is.key == key)
			found = &d->seen[i];
	for (unsigned i = 0; i < d->ntasks; i++)
		if (d->task[i] && d->task[i]->key == key && !d->task[i]->leaving)
			r = -EBUSY;
	if (!found)
		r = -ESRCH;
	if (!r) {
		free_handle = find_handle(d);
		r = free_handle < 0 ? -ENOMEM : gp_amd_make_room(d->kfd_thread);
	}
	if (!r) {
		d->task[free_handle] = make_task(d, found);
		r = d->task[free_handle] ? 0 : -ENOMEM;
		*handle = (uint32_t)free_handle;
	}
	pthread_mutex_unlock(&d->kfd_thread->requests.lock);
	return r;
}

static void amd_detach(struct gp_gpu *gpu, uint32_t handle)
{
	struct gp_amd_gpu *d = of(gpu);

	pthread_mutex_lock(&d->kfd_thread->requests.lock);
	d->task[handle]->leaving = true;
	d->kfd_thread->leaving++;
	pthread_mutex_unlock(&d->kfd_thread->requests.lock);
	gp_requests_wake(&d->kfd_thread->requests);
}

static void amd_prepare_task(struct gp_gpu *gpu, uint32_t handle, bool will_be_held)
{
	struct gp_amd_gpu *d = of(gpu);
	struct gp_amd_task *t;

	pthread_mutex_lock(&d->kfd_thread->requests.lock);
	t = d->task[handle];
	t->prepare = true;
	t->wants_hold |= will_be_held;
	if (will_be_held && !t->target)
		gp_amd_ask(d->kfd_thread, GP_AMD_PREPARE, t);
	pthread_mutex_unlock(&d->kfd_thread->requests.lock);
	gp_requests_wake(&d->kfd_thread->requests);
	eventfd_write(d->kfd_thread->activity_fd, 1);
}

static void amd_unprepare_task(struct gp_gpu *gpu, uint32_t handle)
{
	struct gp_amd_gpu *d = of(gpu);
	struct gp_amd_task *t;

	pthread_mutex_lock(&d->kfd_thread->requests.lock);
	t = d->task[handle];
	t->prepare = t->wants_hold = false;
	if (t->target || t->queued)
		gp_amd_ask(d->kfd_thread, GP_AMD_UNPREPARE, t);
	pthread_mutex_unlock(&d->kfd_thread->requests.lock);
	gp_requests_wake(&d->kfd_thread->requests);
}

static int amd_observe(struct gp_gpu *gpu, uint64_t now_ns, struct gp_observation *seen, unsigned n)
{
	struct gp_amd_gpu *d = of(gpu);
	uint64_t at_ns = gp_monotonic_ns();

	(void)now_ns;
	pthread_mutex_lock(&d->kfd_thread->requests.lock);
	for (unsigned i = 0; i < n; i++) {
		const struct gp_amd_task *t = d->task[seen[i].handle];
		struct gp_observation *o = &seen[i];

		/* A suspend by another process is not visible here. */
		o->known = GP_KNOWN_HELD;
		o->held = t->held;
		o->unsure = t->unsure || t->proof.disproved;
		o->unproven = gp_amd_proof_is_open(t, at_ns);
		o->in_part = !t->proof.of_hold && t->proof.seen && !t->proof.seen_all;
		o->evidence = gp_amd_proof_evidence(t);
		o->under_way = t->queued ? GP_UNDER_WAY_HOLD : 0;
		o->failed = t->failed;
		o->evicted_ns = gp_amd_evicted_ns(t, &o->evicted_by_reset);
		o->eviction_lost = gp_amd_eviction_lost(t);
		if (!t->activity_known)
			continue;
		o->known |= GP_KNOWN_ACTIVE | GP_KNOWN_PENDING;
		o->active = t->active;
		o->pending = t->pending;
		if (t->active) {
			o->known |= GP_KNOWN_ACTIVE_SINCE;
			o->active_since_ns = t->active_since_ns;
		}
	}
	pthread_mutex_unlock(&d->kfd_thread->requests.lock);
	return 0;
}

static int amd_act(struct gp_gpu *gpu, uint64_t now_ns, enum gp_act_kind kind, struct gp_action *a,
		   unsigned n)
{
	enum gp_amd_request_kind request = kind == GP_ACT_HOLD ? GP_AMD_HOLD : GP_AMD_RELEASE;
	struct gp_amd_gpu *d = of(gpu);

	(void)now_ns;
	if (kind == GP_ACT_SLICE)
		return -ENOTSUP;
	pthread_mutex_lock(&d->kfd_thread->requests.lock);
	for (unsigned i = 0; i < n; i++)
		a[i].status = gp_amd_ask(d->kfd_thread, request, d->task[a[i].handle])
				      ? -EINPROGRESS
				      : -EAGAIN;
	pthread_mutex_unlock(&d->kfd_thread->requests.lock);
	gp_requests_wake(&d->kfd_thread->requests);
	return 0;
}

static const struct gp_preempt_type *amd_preempt_types(const struct gp_gpu *gpu, unsigned *n)
{
	static const struct gp_preempt_type type[] = {
		GP_PREEMPT_TYPE_SAVE,
		{.name = "drain",
		 .summary = "let short waves finish first",
		 .value = GP_AMD_DRAIN,
		 .grace_max = GP_AMD_DRAIN},
	};

	*n = gpu->info.caps & GP_CAP_PREEMPT_MODE ? 2 : 1;
	return type;
}

static int amd_set_preempt_type(struct gp_gpu *gpu, uint32_t handle, unsigned mode)
{
	struct gp_amd_gpu *d = of(gpu);

	if (mode > GP_AMD_DRAIN)
		return -EINVAL;
	if (mode != GP_AMD_SAVE && !(d->base.info.caps & GP_CAP_PREEMPT_MODE))
		return -ENOTSUP;
	pthread_mutex_lock(&d->kfd_thread->requests.lock);
	d->task[handle]->grace = mode == GP_AMD_SAVE ? KFD_GRACE_DEFAULT : mode;
	pthread_mutex_unlock(&d->kfd_thread->requests.lock);
	return 0;
}

static int amd_event_fd(struct gp_gpu *gpu)
{
	return of(gpu)->event_fd;
}

/* The KFD thread serves all devices, so all of them are busy at once. */
static uint64_t amd_busy_ns(const struct gp_gpu *gpu, uint64_t now_ns)
{
	const struct gp_amd_gpu *d = (const struct gp_amd_gpu *)gpu;

	return gp_requests_busy_ns(&d->kfd_thread->requests, now_ns);
}

/* Requests a session for a task that has none. After a failure it tries again once a second. Caller
 * holds requests.lock. 0, -EAGAIN, or the failure. */
static int want_session(struct gp_amd_gpu *d, struct gp_amd_task *t)
{
	t->wants_hold = t->prepare = true;
	if (t->target)
		return 0; /* a session that has to end is reported by the next hold */
	if (t->queued)
		return -EAGAIN;
	if (t->tried_ns && t->why.code && gp_monotonic_ns() < t->tried_ns + TRY_AGAIN_NS)
		return t->why.code;
	return gp_amd_ask(d->kfd_thread, GP_AMD_PREPARE, t) ? -EAGAIN : -ENOMEM;
}

/* The driver resumes all queues when this process ends. The record shows the owner of the hold to
 * other processes. Removing the record tells the owner to release the task. */
static int amd_undo_record(struct gp_gpu *gpu, uint32_t handle, struct gp_undo *undo)
{
	struct gp_amd_gpu *d = of(gpu);
	const struct gp_amd_task *t;
	int r;

	pthread_mutex_lock(&d->kfd_thread->requests.lock);
	t = d->task[handle];
	*undo = (struct gp_undo){.key = t->key ^ (uint64_t)d->node.gpu_id << 32,
				 .pid = t->pid,
				 .start_time = t->start_time};
	r = want_session(d, d->task[handle]);
	pthread_mutex_unlock(&d->kfd_thread->requests.lock);
	if (r == -EAGAIN)
		gp_requests_wake(&d->kfd_thread->requests);
	return r;
}

static void amd_why(struct gp_gpu *gpu, uint32_t handle, struct gp_error *err)
{
	struct gp_amd_gpu *d = of(gpu);

	pthread_mutex_lock(&d->kfd_thread->requests.lock);
	if (d->task[handle]->why.code)
		*err = d->task[handle]->why;
	pthread_mutex_unlock(&d->kfd_thread->requests.lock);
}

/* The runtimes number GPUs by the driver's nodes, as this back end does. */
static int make_visible(unsigned index, const char *name, const char *bus, struct gp_error *err)
{
	char text[16];

	(void)name;
	(void)bus;
	(void)err;
	/* HIP_VISIBLE_DEVICES selects among the GPUs that ROCR_VISIBLE_DEVICES leaves. */
	unsetenv("HIP_VISIBLE_DEVICES");
	snprintf(text, sizeof text, "%u", index);
	return setenv("ROCR_VISIBLE_DEVICES", text, 1) ? -errno : 0;
}

static const struct gp_gpu_command_ops commands = {
	.find = gp_amd_find,
	.queues = gp_amd_queues,
	.split = gp_amd_split,
	.why = amd_why,
	.evicted_ms = gp_amd_process_evicted_ms,
	.preempt_types = amd_preempt_types,
	.set_preempt_type = amd_set_preempt_type,
	.hold_self = gp_amd_hold_self,
	.release_self = gp_amd_release_self,
	.undo = gp_amd_undo,
	.see_work = gp_amd_see_work,
	.release_process = gp_amd_release_process,
	.make_visible = make_visible,
	.doctor = gp_amd_doctor,
};

const struct gp_gpu_ops gp_amd_ops = {
	.name = "amd",
	.command = &commands,
	.probe = probe,
	.open = amd_open,
	.close = amd_close,
	.scan = amd_scan,
	.attach = amd_attach,
	.detach = amd_detach,
	.prepare = amd_prepare_task,
	.unprepare = amd_unprepare_task,
	.observe = amd_observe,
	.act = amd_act,
	.event_fd = amd_event_fd,
	.busy_ns = amd_busy_ns,
	.undo_record = amd_undo_record,
};
