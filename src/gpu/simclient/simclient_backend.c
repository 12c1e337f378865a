/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of functions for simulated GPUs. Observations come from the mapped state. Actions are
 * packets, whose results appear in the state. So no function blocks, and one system call for each
 * tick checks that the server is still there.
 */
#include "gpu/simclient/simclient_device.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"

#define REOPEN_NS (1 * GP_NS_PER_S) /* between attempts to open a device whose server had ended */
#define ANSWER_NS (2 * GP_NS_PER_S) /* for a server to answer one */

/* A missing server is an error: this back end is used only when it was selected. */
static int probe(void)
{
	char path[GP_SIMGPU_PATH_SIZE];
	int n = gp_simgpu_devices(gp_simgpu_path(path, sizeof path), NULL);

	return n == -ENODEV ? 0 : n; /* no server runs, so there is no device */
}

static int open_device(unsigned index, unsigned flags, struct gp_gpu **gpu)
{
	char path[GP_SIMGPU_PATH_SIZE];
	struct gp_simclient_gpu *d = NULL;
	int r = gp_simclient_open(gp_simgpu_path(path, sizeof path), index, &d, NULL);

	(void)flags;
	if (!r)
		*gpu = &d->base;
	return r;
}

/* Sends RESTORE for detached tasks, until the socket is full. */
static void send_leaving(struct gp_simclient_gpu *d, bool wait)
{
	for (unsigned i = 0; i < d->top && d->leaving; i++) {
		struct gp_simclient_task *t = &d->task[i];

		if (!t->leaving)
			continue;
		d->packet.target[0] = (struct gp_simgpu_target){.key = t->key, .slot = t->slot};
		if (gp_simclient_send(d, GP_SIMGPU_RESTORE, 1, wait) == -EAGAIN)
			return;
		*t = (struct gp_simclient_task){0};
		d->leaving--;
	}
}

void gp_simclient_close(struct gp_simclient_gpu *d)
{
	for (unsigned i = 0; i < d->top; i++) {
		struct gp_simclient_task *t = &d->task[i];

		if (t->used && t->touched && !t->leaving) {
			t->leaving = true;
			d->leaving++;
		}
	}
	send_leaving(d, true);
	gp_simclient_free(d);
}

static void close_device(struct gp_gpu *gpu)
{
	gp_simclient_close(gp_simclient_of(gpu));
}

static void try_reopen(struct gp_simclient_gpu *d, bool anew)
{
	int r = gp_simclient_reopen(d, anew);

	if (!r)
		gp_log(GP_LOG_INFO, "device.back", "name=\"%s\"", d->base.info.name);
	if (r == -EXDEV && !d->other)
		gp_log(GP_LOG_WARN, "device.other",
		       "name=\"%s\" text=\"the server at %s has another device now; restart this "
		       "program to use it\"",
		       d->base.info.name, d->path);
	d->other |= r == -EXDEV;
}

/* The device is opened again only after a scan without tasks, so no task of the old server is
 * attached any more. */
static void follow_server(struct gp_simclient_gpu *d, uint64_t now_ns)
{
	if (!gp_simclient_is_lost(d))
		return;
	if (!d->reopen_ns)
		gp_log(GP_LOG_WARN, "device.gone", "name=\"%s\"", d->base.info.name);
	else if (now_ns >= d->reopen_ns || d->asked_fd >= 0)
		try_reopen(d, now_ns >= d->reopen_ns);
	if (!d->lost)
		d->reopen_ns = 0;
	else if (now_ns >= d->reopen_ns)
		d->reopen_ns = now_ns + (d->asked_fd < 0 ? REOPEN_NS : ANSWER_NS);
}

static bool is_gone(const struct gp_gpu *gpu)
{
	return ((const struct gp_simclient_gpu *)gpu)->lost;
}

static int scan(struct gp_gpu *gpu, uint64_t now_ns, struct gp_seen *seen, unsigned max)
{
	struct gp_simclient_gpu *d = gp_simclient_of(gpu);
	struct gp_simgpu_context c;
	uint32_t slots;
	unsigned n = 0;

	follow_server(d, now_ns);
	slots = d->lost ? 0 : gp_simclient_tasks_seen(d);
	send_leaving(d, false);
	for (uint32_t i = 0; i < slots; i++) {
		if (!gp_simclient_read(d, i, &c))
			continue;
		if (n < max)
			gp_simclient_describe(&c, &seen[n]);
		n++;
	}
	return (int)n;
}

static int attach(struct gp_gpu *gpu, uint64_t key, uint32_t *handle)
{
	struct gp_simclient_gpu *d = gp_simclient_of(gpu);
	uint32_t free_at = d->top, slot;
	struct gp_simgpu_context c;
	uint64_t ignored;

	for (uint32_t i = 0; i < d->top; i++) {
		if (d->task[i].used && !d->task[i].leaving && d->task[i].key == key)
			return -EBUSY;
		if (!d->task[i].used && free_at == d->top)
			free_at = i;
	}
	if (d->lost)
		return -EIO;
	slot = gp_simclient_find_key(d, key, &c);
	if (slot == GP_SIMGPU_CONTEXTS)
		return -ESRCH;
	if (free_at == GP_SIMCLIENT_TASKS)
		return -ENOSPC;
	d->task[free_at] = (struct gp_simclient_task){
		.used = true,
		.slot = slot,
		.key = key,
		.base_run_ns = gp_simclient_run_ns(&c, gp_monotonic_ns(), &ignored),
		.base_scheduled = c.scheduled,
		.last = c,
	};
	if (free_at == d->top)
		d->top++;
	*handle = free_at;
	return 0;
}

/* A task that was not changed needs no RESTORE. */
static void detach(struct gp_gpu *gpu, uint32_t handle)
{
	struct gp_simclient_gpu *d = gp_simclient_of(gpu);
	struct gp_simclient_task *t = &d->task[handle];

	if (!t->touched || d->lost) {
		*t = (struct gp_simclient_task){0};
		return;
	}
	t->leaving = true;
	d->leaving++;
	send_leaving(d, false);
}

static uint64_t not_after(uint64_t at_ns, uint64_t now_ns)
{
	return at_ns < now_ns ? at_ns : now_ns;
}

static void observe_run(struct gp_simclient_task *t, uint64_t now_ns, struct gp_observation *o)
{
	uint64_t ran_ns = gp_simclient_run_ns(&t->last, now_ns, &o->run_at_ns);

	o->run_source = GP_RUN_MEASURED;
	o->run_ns = ran_ns > t->base_run_ns ? ran_ns - t->base_run_ns : 0;
	/* The end of a run is reported late; the reported value must not fall. */
	if (o->run_ns < t->reported_run_ns)
		o->run_ns = t->reported_run_ns;
	t->reported_run_ns = o->run_ns;
}

static void observe_task(const struct gp_simclient_gpu *d, struct gp_simclient_task *t,
			 uint64_t answered, uint64_t now_ns, struct gp_observation *o)
{
	struct gp_simgpu_context c;
	uint32_t handle = o->handle;

	*o = (struct gp_observation){.handle = handle};
	if (gp_simclient_read(d, t->slot, &c) && c.key == t->key) {
		t->last = c;
	} else {
		o->failed = -ESRCH; /* the next scan does not find it */
		return;
	}
	o->known = c.known;
	o->active = c.active;
	o->running = c.running;
	o->held = c.held;
	o->slice_us = c.slice_us;
	o->pending = c.pending;
	o->active_since_ns = not_after(c.active_since_ns, now_ns);
	o->under_way = (uint8_t)(c.under_way | (t->hold_serial > answered ? GP_UNDER_WAY_HOLD : 0) |
				 (t->slice_serial > answered ? GP_UNDER_WAY_SLICE : 0));
	o->failed = c.hold_failed ? c.hold_failed : c.slice_failed;
	o->scheduled = c.scheduled > t->base_scheduled ? c.scheduled - t->base_scheduled : 0;
	o->on_at_ns = not_after(c.on_at_ns, now_ns);
	o->off_at_ns = not_after(c.off_at_ns, now_ns);
	if (c.known & GP_KNOWN_RUN)
		observe_run(t, now_ns, o);
}

static int observe(struct gp_gpu *gpu, uint64_t now_ns, struct gp_observation *seen, unsigned n)
{
	struct gp_simclient_gpu *d = gp_simclient_of(gpu);
	uint64_t answered;

	if (gp_simclient_is_lost(d))
		return -EIO;
	send_leaving(d, false);
	answered =
		gp_simclient_answered(d); /* read first: the contexts read afterwards are newer */
	for (unsigned i = 0; i < n; i++)
		observe_task(d, &d->task[seen[i].handle], answered, now_ns, &seen[i]);
	return 0;
}

static bool is_possible(const struct gp_simclient_gpu *d, enum gp_act_kind kind,
			const struct gp_action *a)
{
	const struct gp_gpu_info *info = &d->base.info;

	if (kind != GP_ACT_SLICE)
		return info->caps & GP_CAP_HOLD;
	return info->caps & GP_CAP_SLICE && (!a->slice_us || (a->slice_us >= info->slice_min_us &&
							      a->slice_us <= info->slice_max_us));
}

/* All targets go into one packet: the device does them in one call. */
static int act(struct gp_gpu *gpu, uint64_t now_ns, enum gp_act_kind kind, struct gp_action *a,
	       unsigned n)
{
	static const enum gp_simgpu_kind packet[] = {[GP_ACT_HOLD] = GP_SIMGPU_HOLD,
						     [GP_ACT_RELEASE] = GP_SIMGPU_RELEASE,
						     [GP_ACT_SLICE] = GP_SIMGPU_SLICE};
	struct gp_simclient_gpu *d = gp_simclient_of(gpu);
	unsigned targets = 0;
	int r = 0;

	(void)now_ns;
	if (n > GP_SIMGPU_CONTEXTS)
		return -E2BIG;
	for (unsigned i = 0; i < n; i++) {
		struct gp_simclient_task *t = &d->task[a[i].handle];

		a[i].driver_code = 0;
		a[i].status = is_possible(d, kind, &a[i]) ? -EINPROGRESS : -EINVAL;
		if (a[i].status != -EINPROGRESS)
			continue;
		d->packet.target[targets++] = (struct gp_simgpu_target){
			.key = t->key, .slot = t->slot, .slice_us = a[i].slice_us};
	}
	if (targets)
		r = gp_simclient_send(d, packet[kind], targets, false);
	for (unsigned i = 0; i < n; i++) {
		struct gp_simclient_task *t = &d->task[a[i].handle];

		if (a[i].status != -EINPROGRESS)
			continue;
		if (r)
			a[i].status = r;
		else
			*(kind == GP_ACT_SLICE ? &t->slice_serial : &t->hold_serial) = d->serial;
		t->touched |= !r;
	}
	return 0;
}

static int event_fd(struct gp_gpu *gpu)
{
	return gp_simclient_of(gpu)->event_fd;
}

static void why(struct gp_gpu *gpu, uint32_t handle, struct gp_error *err)
{
	const struct gp_simclient_gpu *d = gp_simclient_of(gpu);
	const struct gp_simgpu_context *c = &d->task[handle].last;
	int code = c->hold_failed ? c->hold_failed : c->slice_failed;

	if (d->lost)
		gp_fail(err, -EIO, "the simulated GPU at %s is gone", d->path);
	else if (code)
		gp_fail(err, code, "%s refuses the last action on process %d: %s",
			d->base.info.name, c->pid, gp_error_name(code));
}

static int make_visible(unsigned index, const char *name, const char *bus, struct gp_error *err)
{
	char text[16];

	(void)name;
	(void)bus;
	(void)err;
	snprintf(text, sizeof text, "%u", index);
	return setenv("GPREEMPT_SIM_DEVICE", text, 1) ? -errno : 0;
}

static const struct gp_gpu_command_ops commands = {
	.find = gp_simclient_find,
	.queues = gp_simclient_queues,
	.why = why,
	.undo = gp_simclient_undo,
	.release_process = gp_simclient_release_process,
	.make_visible = make_visible,
	.doctor = gp_simclient_doctor,
};

const struct gp_gpu_ops gp_simgpu_ops = {
	.name = "sim",
	.command = &commands,
	.probe = probe,
	.open = open_device,
	.close = close_device,
	.scan = scan,
	.attach = attach,
	.detach = detach,
	.observe = observe,
	.is_gone = is_gone,
	.act = act,
	.event_fd = event_fd,
	.undo_record = gp_simclient_undo_record,
};
