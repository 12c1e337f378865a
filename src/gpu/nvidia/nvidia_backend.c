/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of functions for NVIDIA GPUs. They return the state that the other threads found. */
#include "gpu/nvidia/nvidia_backend.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/process.h"
#include "gpu/nvidia/nvidia_device.h"

/* Measured on an H200 with driver 580.159.04. `gpreempt bench PID` measures other GPUs. */
#define HOLD_COST_NS    (620 * GP_NS_PER_US)
#define RELEASE_COST_NS (300 * GP_NS_PER_US)
#define SLICE_COST_NS   (273 * GP_NS_PER_US)
#define SWITCH_COST_NS  (168 * GP_NS_PER_US)
#define SLICE_MAX_US    1000000
#define HELD_MAX        65536

static struct gp_nv_gpu *of(struct gp_gpu *gpu)
{
	return (struct gp_nv_gpu *)gpu; /* `base` is the first member */
}

/* A loaded driver has a GPU: an empty list is a failure. */
static int probe(void)
{
	uint32_t id[32];
	struct gp_rm rm;
	int n = gp_rm_open(&rm, NULL);

	if (n)
		return n == -ENODEV ? 0 : n;
	n = gp_rm_gpus(&rm, id);
	gp_rm_close(&rm);
	return n ? n : -EIO;
}

/* Records of context switches make each switch a few microseconds longer. */
static bool wants_records(unsigned flags)
{
	const char *records = secure_getenv("GPREEMPT_NVIDIA_RECORDS");

	return records ? *records != '0' : !(flags & GP_OPEN_QUIET);
}

static void open_sources(struct gp_nv_gpu *d, unsigned flags)
{
	char why[128];

	if (gp_rm_open_gpu(&d->rm, d->gpu_id, NULL) == 0 && wants_records(flags) &&
	    gp_rm_clock_offset(&d->rm, &d->clock_offset_ns))
		d->has_ctxsw = !gp_ctxsw_open(&d->ctxsw, &d->rm, NULL);
	d->nvml = gp_nvml_open(why, sizeof why);
	if (d->nvml)
		d->nvml_device = gp_nvml_device(d->nvml, d->pci);
	if (d->nvml && !d->nvml_device) {
		gp_nvml_close(d->nvml);
		d->nvml = NULL;
	}
	d->has_use = d->nvml && gp_nvml_use(d->nvml, d->nvml_device, 0, NULL, 0) >= 0;
}

static void fill_info(struct gp_nv_gpu *d, unsigned index)
{
	struct gp_gpu_info *info = &d->base.info;
	char name[48];

	if (!d->nvml || !gp_nvml_name(d->nvml, d->nvml_device, name, sizeof name))
		snprintf(name, sizeof name, "NVIDIA GPU");
	snprintf(info->name, sizeof info->name, "%s #%u", name, index);
	memcpy(info->bus, d->pci, sizeof info->bus);
	info->caps = GP_CAP_HOLD | GP_CAP_SLICE | GP_CAP_PREEMPT_MODE |
		     (d->has_ctxsw || d->has_use ? GP_CAP_ACTIVITY : 0);
	info->max_held = HELD_MAX;
	info->slice_default_us = GP_NV_SLICE_DEFAULT_US;
	info->slice_min_us = 1;
	info->slice_max_us = SLICE_MAX_US;
	info->hold_cost_ns = HOLD_COST_NS;
	info->release_cost_ns = RELEASE_COST_NS;
	info->slice_cost_ns = SLICE_COST_NS;
	info->switch_cost_ns = SWITCH_COST_NS;
	info->sample_period_ns = d->has_ctxsw ? GP_NV_WINDOW_NS : d->has_use ? GP_NV_USE_AGE_NS : 0;
}

static void release_sources(struct gp_nv_gpu *d)
{
	if (d->has_ctxsw)
		gp_ctxsw_close(&d->ctxsw);
	gp_nvml_close(d->nvml);
	gp_rm_close(&d->rm);
	if (d->event_fd >= 0)
		close(d->event_fd);
	if (d->stop_fd >= 0)
		close(d->stop_fd);
	gp_table_free(&d->memory);
	gp_table_free(&d->by_context);
	gp_requests_close(&d->requests);
	free(d->task);
	free(d->seen);
	free(d->seen_task);
	free(d);
}

static int start_threads(struct gp_nv_gpu *d)
{
	sigset_t all, before;
	int r;

	d->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	d->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (d->event_fd < 0 || d->stop_fd < 0)
		return -errno;
	/* Signals are for the threads of the program that uses the library. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&d->worker, NULL, gp_nv_rm_thread, d);
	if (!r && (d->has_ctxsw || d->nvml))
		d->has_sampler = !pthread_create(&d->sampler, NULL, gp_nv_sampler, d);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -r;
}

static int nv_open(unsigned index, unsigned flags, struct gp_gpu **gpu)
{
	struct gp_nv_gpu *d = calloc(1, sizeof *d);
	uint32_t id[32];
	int n, r, ready;

	if (!d)
		return -ENOMEM;
	d->base.ops = &gp_nvidia_ops;
	d->self = getpid();
	d->event_fd = d->stop_fd = -1;
	ready = gp_requests_open(&d->requests);
	r = gp_rm_open(&d->rm, NULL);
	if (!r)
		r = ready;
	if (!r) {
		n = gp_rm_gpus(&d->rm, id);
		r = n < 0 ? n : index >= (unsigned)n ? -ENODEV : 0;
	}
	if (!r) {
		d->gpu_id = id[index];
		gp_rm_pci(&d->rm, d->gpu_id, d->pci);
		open_sources(d, flags);
		fill_info(d, index);
		r = start_threads(d);
	}
	if (r) {
		release_sources(d);
		return r;
	}
	*gpu = &d->base;
	return 0;
}

/* The RM thread does all requests first and puts all attached tasks back. */
static void nv_close(struct gp_gpu *gpu)
{
	struct gp_nv_gpu *d = of(gpu);

	eventfd_write(d->stop_fd, 1);
	pthread_mutex_lock(&d->requests.lock);
	for (unsigned i = 0; i < d->ntasks; i++)
		d->task[i].leaving = d->task[i].used;
	pthread_mutex_unlock(&d->requests.lock);
	gp_requests_quit(&d->requests);
	pthread_join(d->worker, NULL);
	if (d->has_sampler)
		pthread_join(d->sampler, NULL);
	release_sources(d);
}

/* The first call waits until the RM thread has examined every process once, and until those that
 * have just been found are settled. */
static int nv_scan(struct gp_gpu *gpu, uint64_t now_ns, struct gp_seen *seen, unsigned max)
{
	struct gp_nv_gpu *d = of(gpu);
	int n;

	(void)now_ns;
	pthread_mutex_lock(&d->requests.lock);
	while (!d->listed)
		pthread_cond_wait(&d->requests.changed, &d->requests.lock);
	n = d->nseen ? (int)d->nseen : d->scan_error;
	for (unsigned i = 0; i < d->nseen && i < max; i++)
		seen[i] = d->seen[i];
	pthread_mutex_unlock(&d->requests.lock);
	return n;
}

/* A free handle, with room in the ring for the requests of all tasks. -1: no memory. */
static int find_handle(struct gp_nv_gpu *d)
{
	struct gp_nv_task *task;

	for (unsigned i = 0; i < d->ntasks; i++)
		if (!d->task[i].used)
			return (int)i;
	if (gp_requests_reserve(&d->requests, 8 * (d->ntasks + 8)))
		return -1;
	task = realloc(d->task, (d->ntasks + 1) * sizeof *task);
	if (!task)
		return -1;
	d->task = task;
	d->task[d->ntasks] = (struct gp_nv_task){0};
	return (int)d->ntasks++;
}

static int nv_attach(struct gp_gpu *gpu, uint64_t key, uint32_t *handle)
{
	struct gp_nv_gpu *d = of(gpu);
	const struct gp_nv_task *found = NULL;
	int free_handle, r = 0;

	pthread_mutex_lock(&d->requests.lock);
	for (unsigned i = 0; i < d->nseen; i++)
		if (d->seen[i].key == key)
			found = &d->seen_task[i];
	for (unsigned i = 0; i < d->ntasks; i++)
		if (d->task[i].used && d->task[i].key == key)
			r = -EBUSY;
	if (!found)
		r = -ESRCH;
	free_handle = r ? -1 : find_handle(d);
	if (!r && free_handle < 0)
		r = -ENOMEM;
	if (!r) {
		d->task[free_handle] = *found;
		d->task[free_handle].generation = ++d->generation;
		d->fresh = true;
		*handle = (uint32_t)free_handle;
	}
	pthread_mutex_unlock(&d->requests.lock);
	gp_requests_wake(&d->requests);
	return r;
}

static void nv_detach(struct gp_gpu *gpu, uint32_t handle)
{
	struct gp_nv_gpu *d = of(gpu);

	pthread_mutex_lock(&d->requests.lock);
	d->task[handle].leaving = true;
	pthread_mutex_unlock(&d->requests.lock);
	gp_requests_wake(&d->requests);
}

static void describe_use(struct gp_nv_task *t, uint64_t now_ns, struct gp_observation *o)
{
	if (!t->sampled)
		return;
	o->known |= GP_KNOWN_RUN;
	o->run_source = GP_RUN_MEASURED;
	o->run_ns = t->run_ns;
	o->run_at_ns = t->run_at_ns < now_ns ? t->run_at_ns : now_ns;
	if (t->on_since_ns && t->run_at_ns > t->on_since_ns)
		o->run_ns += t->run_at_ns - t->on_since_ns;
	/* A late record can shorten the current run; the reported value must not fall. */
	if (o->run_ns < t->run_reported_ns)
		o->run_ns = t->run_reported_ns;
	t->run_reported_ns = o->run_ns;
	o->scheduled = t->scheduled;
	o->on_at_ns = t->on_at_ns;
	o->off_at_ns = t->off_at_ns;
	/* The activity of a held task is not known: it cannot run. */
	if (t->active_known && !t->held && !o->unproven) {
		o->known |= GP_KNOWN_ACTIVE;
		o->active = t->active;
	}
}

static int nv_observe(struct gp_gpu *gpu, uint64_t now_ns, struct gp_observation *seen, unsigned n)
{
	struct gp_nv_gpu *d = of(gpu);

	pthread_mutex_lock(&d->requests.lock);
	for (unsigned i = 0; i < n; i++) {
		struct gp_nv_task *t = &d->task[seen[i].handle];
		struct gp_observation *o = &seen[i];

		o->known = t->has_groups ? GP_KNOWN_SLICE : 0;
		if (t->has_groups && t->held_known)
			o->known |= GP_KNOWN_HELD;
		o->held = t->held;
		o->unsure = t->unsure;
		o->slice_us = t->slice_us;
		o->under_way = (uint8_t)((t->holds_queued ? GP_UNDER_WAY_HOLD : 0) |
					 (t->slices_queued ? GP_UNDER_WAY_SLICE : 0));
		o->failed = t->hold_failed ? t->hold_failed : t->slice_failed;
		o->driver_code = t->hold_failed ? t->hold_code : t->slice_code;
		gp_nv_proof_describe(d, t, now_ns, o);
		describe_use(t, now_ns, o);
	}
	pthread_mutex_unlock(&d->requests.lock);
	return 0;
}

static void ask(struct gp_nv_gpu *d, enum gp_nv_request_kind kind, struct gp_action *a)
{
	struct gp_nv_task *t = &d->task[a->handle];

	if (kind == GP_NV_SLICE && a->slice_us > SLICE_MAX_US) {
		a->status = -EINVAL;
		return;
	}
	if (!gp_requests_put(
		    &d->requests,
		    (struct gp_request){.kind = kind, .handle = a->handle, .value = a->slice_us})) {
		a->status = -EAGAIN;
		return;
	}
	if (kind == GP_NV_SLICE)
		t->slices_queued++;
	else if (kind != GP_NV_MODE)
		t->holds_queued++;
	a->status = -EINPROGRESS;
}

static int ask_all(struct gp_gpu *gpu, enum gp_nv_request_kind kind, struct gp_action *a,
		   unsigned n)
{
	struct gp_nv_gpu *d = of(gpu);

	pthread_mutex_lock(&d->requests.lock);
	for (unsigned i = 0; i < n; i++)
		ask(d, kind, &a[i]);
	pthread_mutex_unlock(&d->requests.lock);
	gp_requests_wake(&d->requests);
	return 0;
}

static int nv_act(struct gp_gpu *gpu, uint64_t now_ns, enum gp_act_kind kind, struct gp_action *a,
		  unsigned n)
{
	static const enum gp_nv_request_kind request[] = {[GP_ACT_HOLD] = GP_NV_HOLD,
							  [GP_ACT_RELEASE] = GP_NV_RELEASE,
							  [GP_ACT_SLICE] = GP_NV_SLICE};

	(void)now_ns;
	return ask_all(gpu, request[kind], a, n);
}

/* Modes below CILP are not offered as preemption types: RM does not report the mode that was set
 * before, so an undo record could not restore it after a crash. */
static int nv_set_preempt_type(struct gp_gpu *gpu, uint32_t handle, unsigned mode)
{
	struct gp_action a = {.handle = handle, .slice_us = mode};

	if (mode > GP_NV_CILP)
		return -EINVAL;
	return ask_all(gpu, GP_NV_MODE, &a, 1) ? -EIO : a.status == -EINPROGRESS ? 0 : a.status;
}

static int nv_event_fd(struct gp_gpu *gpu)
{
	return of(gpu)->event_fd;
}

static uint64_t nv_busy_ns(const struct gp_gpu *gpu, uint64_t now_ns)
{
	return gp_requests_busy_ns(&((const struct gp_nv_gpu *)gpu)->requests, now_ns);
}

static int nv_undo_record(struct gp_gpu *gpu, uint32_t handle, struct gp_undo *undo)
{
	struct gp_nv_gpu *d = of(gpu);

	pthread_mutex_lock(&d->requests.lock);
	*undo = d->task[handle].undo;
	pthread_mutex_unlock(&d->requests.lock);
	return 0;
}

static int nv_find(struct gp_gpu *gpu, pid_t pid, struct gp_seen *seen, struct gp_error *err)
{
	struct gp_nv_call call = {.kind = GP_NV_CALL_FIND, .pid = pid, .seen = seen, .err = err};

	return gp_requests_ask(&of(gpu)->requests, &call.question);
}

static int nv_missing(struct gp_gpu *gpu, struct gp_error *err)
{
	struct gp_nv_gpu *d = of(gpu);
	char name[32];
	pid_t pid;
	int r;

	pthread_mutex_lock(&d->requests.lock);
	r = d->scan_error;
	pid = d->scan_missing;
	for (unsigned i = 0; i < d->nseen; i++)
		if (pid && d->seen[i].pid == pid)
			r = 0; /* it was found since */
	pthread_mutex_unlock(&d->requests.lock);
	if (!r)
		return 0;
	if (!pid)
		return gp_fail(err, r, "not all processes could be examined: %s", gp_error_name(r));
	return gp_fail(err, r, "process %d (%s) may use %s, and its queues were not found: %s", pid,
		       gp_process_name(pid, name, sizeof name), gpu->info.name, gp_error_name(r));
}

static int nv_split(struct gp_gpu *gpu, pid_t pid, uint32_t queue, struct gp_seen *seen,
		    struct gp_error *err)
{
	struct gp_nv_call call = {
		.kind = GP_NV_CALL_SPLIT, .pid = pid, .queue_id = queue, .seen = seen, .err = err};

	return gp_requests_ask(&of(gpu)->requests, &call.question);
}

static int nv_queues(struct gp_gpu *gpu, uint64_t key, bool closely, struct gp_queue *queue,
		     unsigned max, struct gp_error *err)
{
	struct gp_nv_call call = {
		.kind = GP_NV_CALL_QUEUES, .key = key, .queue = queue, .max = max, .err = err};

	(void)closely;
	return gp_requests_ask(&of(gpu)->requests, &call.question);
}

static void nv_why(struct gp_gpu *gpu, uint32_t handle, struct gp_error *err)
{
	struct gp_nv_gpu *d = of(gpu);
	struct gp_observation o = {0};
	struct gp_nv_task *t;

	pthread_mutex_lock(&d->requests.lock);
	t = &d->task[handle];
	gp_nv_proof_describe(d, t, gp_monotonic_ns(), &o);
	if (t->unproven)
		gp_fail(err, -EIO, "process %d: %s", t->pid, gp_rm_status_name(t->unproven));
	else if (o.failed == -EREMOTEIO)
		gp_fail(err, o.failed,
			"the driver says that process %d is held, but it goes on working", t->pid);
	else if (o.failed)
		gp_fail(err, o.failed, "process %d: %s", t->pid, gp_rm_status_name(GP_RM_UNSEEN));
	pthread_mutex_unlock(&d->requests.lock);
}

static int nv_put_back(struct gp_gpu *gpu, uint32_t handle, struct gp_error *err)
{
	struct gp_nv_gpu *d = of(gpu);
	struct gp_nv_call call = {.kind = GP_NV_CALL_PUT_BACK, .handle = handle, .err = err};

	pthread_mutex_lock(&d->requests.lock);
	call.pid = d->task[handle].pid;
	pthread_mutex_unlock(&d->requests.lock);
	return gp_requests_ask(&d->requests, &call.question);
}

/* Reads the UUID of a GPU from the driver's /proc file. */
static int read_uuid(const char *bus, char *uuid, size_t size)
{
	char path[96], line[128];
	FILE *f;

	snprintf(path, sizeof path, "/proc/driver/nvidia/gpus/%s/information", bus);
	f = fopen(path, "re");
	if (!f)
		return -errno;
	*uuid = 0;
	while (fgets(line, sizeof line, f))
		if (!strncmp(line, "GPU UUID:", 9)) {
			const char *begin = line + 9 + strspn(line + 9, " \t");

			snprintf(uuid, size, "%.*s", (int)strcspn(begin, " \t\n"), begin);
		}
	fclose(f);
	return *uuid ? 0 : -ENOENT;
}

/* CUDA's numbers depend on the driver and on the GPUs that a container shows; the UUID does not. */
static int make_visible(unsigned index, const char *name, const char *bus, struct gp_error *err)
{
	char uuid[64];
	int r = bus ? read_uuid(bus, uuid, sizeof uuid) : -ENOENT;

	(void)index;
	if (r)
		return gp_fail(err, -ENOTSUP,
			       "the id of %s cannot be read (%s); set CUDA_VISIBLE_DEVICES instead "
			       "of --gpu",
			       name, gp_error_name(r));
	return setenv("CUDA_VISIBLE_DEVICES", uuid, 1) ? -errno : 0;
}

static const struct gp_gpu_command_ops commands = {
	.find = nv_find,
	.missing = nv_missing,
	.queues = nv_queues,
	.split = nv_split,
	.why = nv_why,
	.set_preempt_type = nv_set_preempt_type,
	.put_back = nv_put_back,
	.undo = gp_nv_undo_replay,
	.release_process = gp_nv_release_process,
	.see_work = gp_nv_see_work,
	.make_visible = make_visible,
	.doctor = gp_nv_doctor,
};

const struct gp_gpu_ops gp_nvidia_ops = {
	.name = "nvidia",
	.command = &commands,
	.probe = probe,
	.open = nv_open,
	.close = nv_close,
	.scan = nv_scan,
	.attach = nv_attach,
	.detach = nv_detach,
	.observe = nv_observe,
	.act = nv_act,
	.event_fd = nv_event_fd,
	.busy_ns = nv_busy_ns,
	.undo_record = nv_undo_record,
};
