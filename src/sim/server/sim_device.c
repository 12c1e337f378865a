/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "sim/server/sim_server.h"

#define EVENTS_MAX 10000 /* events of the model in one go, so that other devices are served */

/* Publishing. */

/* The model's time begins at 0; 0 also means unknown. */
static uint64_t real_ns(const struct device *d, uint64_t model_ns)
{
	return model_ns ? model_ns + d->origin_ns : 0;
}

static void describe_program(const struct device *d, uint32_t slot, struct gp_simgpu_context *out)
{
	const struct context_slot *p = &d->slots[slot];

	out->key = p->key;
	out->pid = p->program->pid;
	out->start_time = p->program->start_time;
	out->memory = p->memory;
	out->hold_failed = p->hold_failed;
	out->slice_failed = p->slice_failed;
	out->own_slice_us = p->own_slice_us;
	memcpy(out->name, p->name, sizeof out->name);
}

static void describe_work(const struct device *d, uint32_t slot, struct gp_simgpu_context *out)
{
	struct gp_observation o = {.handle = slot};
	const struct context_slot *p = &d->slots[slot];

	gp_gpu_observe(gp_sim_gpu(d->sim), 0, &o, 1);
	out->known = o.known;
	out->active = o.active;
	out->running = o.running;
	out->held = o.held;
	out->under_way = o.under_way;
	if (p->to_restore)
		out->under_way = GP_UNDER_WAY_HOLD | GP_UNDER_WAY_SLICE;
	out->slice_us = o.slice_us;
	out->run_source = o.run_source;
	out->pending = o.pending;
	out->active_since_ns = real_ns(d, o.active_since_ns);
	out->run_ns = o.run_ns;
	out->run_at_ns = real_ns(d, o.run_at_ns);
	if (!(o.known & GP_KNOWN_RUNNING))
		return; /* if `running` is not visible, these fields are not, either */
	out->runs_until_ns = gp_time_add(gp_sim_runs_until_ns(d->sim), d->origin_ns);
	out->scheduled = p->scheduled;
	out->on_at_ns = real_ns(d, p->on_at_ns);
	out->off_at_ns = real_ns(d, p->off_at_ns);
}

/* For each of the two copies: directs readers to the other copy, then changes this copy. */
static void write_context(struct gp_sim_slot *place, const struct gp_simgpu_context *from)
{
	const uint64_t *source = (const uint64_t *)from;

	for (unsigned copy = 0; copy < 2; copy++) {
		uint64_t *target = (uint64_t *)&place->copy[copy];

		__atomic_store_n(&place->sequence, place->sequence + 1, __ATOMIC_RELEASE);
		__atomic_thread_fence(__ATOMIC_RELEASE);
		for (size_t i = 0; i < sizeof *from / sizeof *source; i++)
			__atomic_store_n(&target[i], source[i], __ATOMIC_RELAXED);
	}
}

static void publish_context(struct device *d, uint32_t slot)
{
	struct gp_simgpu_context c = {0};

	if (d->slots[slot].program) {
		describe_program(d, slot, &c);
		describe_work(d, slot, &c);
	}
	if (slot >= d->state->used)
		__atomic_store_n(&d->state->used, slot + 1ull, __ATOMIC_RELAXED);
	write_context(&d->state->place[slot], &c);
}

/* Calls. */

static void note_status(struct device *d, const struct gp_action *a, bool is_slice)
{
	struct context_slot *p = &d->slots[a->handle];

	*(is_slice ? &p->slice_failed : &p->hold_failed) =
		a->status == -EINPROGRESS ? 0 : a->status;
	d->wake_controllers |= a->status != -EINPROGRESS;
}

void gp_sim_device_act(struct device *d, enum gp_simgpu_kind kind, struct gp_action *action,
		       unsigned n)
{
	struct gp_gpu *gpu = gp_sim_gpu(d->sim);

	if (!n)
		return;
	gp_gpu_act(gpu, 0,
		   kind == GP_SIMGPU_HOLD      ? GP_ACT_HOLD
		   : kind == GP_SIMGPU_RELEASE ? GP_ACT_RELEASE
					       : GP_ACT_SLICE,
		   action, n);
	*(kind == GP_SIMGPU_HOLD      ? &d->counts.holds
	  : kind == GP_SIMGPU_RELEASE ? &d->counts.releases
				      : &d->counts.slices) += n;
	for (unsigned i = 0; i < n; i++)
		note_status(d, &action[i], kind == GP_SIMGPU_SLICE);
}

/* Calls that change nothing are omitted, because driver calls take time. If there is no room for
 * more calls, they are made later, because the client will not ask again. */
void gp_sim_device_restore(struct device *d, uint32_t slot)
{
	struct gp_observation o = {.handle = slot};
	struct gp_action release = {.handle = slot}, slice = {.handle = slot};
	struct context_slot *p = &d->slots[slot];

	gp_gpu_observe(gp_sim_gpu(d->sim), 0, &o, 1);
	if (o.held || o.under_way & GP_UNDER_WAY_HOLD)
		gp_sim_device_act(d, GP_SIMGPU_RELEASE, &release, 1);
	if (o.slice_us || o.under_way & GP_UNDER_WAY_SLICE)
		gp_sim_device_act(d, GP_SIMGPU_SLICE, &slice, 1);
	d->to_restore -= p->to_restore;
	p->to_restore = release.status == -EAGAIN || slice.status == -EAGAIN;
	d->to_restore += p->to_restore;
}

static void restore_pending(struct device *d)
{
	for (uint32_t i = 0; i < GP_SIMGPU_CONTEXTS && d->to_restore; i++)
		if (d->slots[i].to_restore)
			gp_sim_device_restore(d, i);
}

/* Time. */

uint64_t gp_sim_device_next_ns(const struct device *d)
{
	return gp_time_add(gp_sim_next_ns(d->sim), d->origin_ns);
}

void gp_sim_device_advance(struct device *d)
{
	uint64_t to_ns = gp_monotonic_ns() - d->origin_ns, reached_ns = 0;
	bool rescan;

	d->touched = true;
	for (unsigned i = 0; i < EVENTS_MAX && reached_ns < to_ns; i++) {
		uint64_t next_ns = gp_sim_next_ns(d->sim);

		reached_ns = gp_sim_advance(d->sim, next_ns < to_ns ? next_ns : to_ns);
		d->wake_controllers |= gp_sim_take_signal(d->sim, &rescan);
	}
	/* Programs can request more work per second than can be computed. Then the model's clock
	 * falls behind, and no client waits for it. */
	if (reached_ns < to_ns) {
		d->origin_ns += to_ns - reached_ns;
		d->slipped_ns += to_ns - reached_ns;
	}
}

static void answer_controllers(struct device *d)
{
	for (unsigned i = 0; i < GP_SIMGPU_CONTROLLERS; i++) {
		struct client *c = d->controller[i];

		if (c && !c->is_answered) {
			c->is_answered = true;
			__atomic_store_n(&d->state->answered[i], c->serial, __ATOMIC_RELEASE);
		}
		if (c && d->wake_controllers)
			eventfd_write(c->event_fd, 1); /* a full eventfd is readable already */
	}
}

void gp_sim_device_publish(struct device *d)
{
	bool rescan;
	uint32_t slot;

	restore_pending(d);
	d->wake_controllers |= gp_sim_take_signal(d->sim, &rescan);
	while (gp_sim_take_changed(d->sim, &slot))
		publish_context(d, slot);
	answer_controllers(d);
	d->wake_controllers = false;
	d->touched = false;
}

static void watch(void *arg, const struct gp_sim_event *event)
{
	struct device *d = arg;
	struct context_slot *p = &d->slots[event->task];
	const struct gp_sim_done *done;

	if (!p->program)
		return;
	switch (event->what) {
	case GP_SIM_RUN:
		p->scheduled++;
		p->on_at_ns = event->now_ns;
		break;
	case GP_SIM_STOP: p->off_at_ns = event->now_ns; break;
	case GP_SIM_REQUEST:
		done = gp_sim_done(d->sim, event->task);
		d->counts.requests++;
		gp_sim_client_send(
			p->program,
			&(struct gp_simgpu_done){.kind = GP_SIMGPU_DONE,
						 .tag = done->tag,
						 .value = done->value,
						 .submitted_ns = real_ns(d, done->submitted_ns),
						 .done_ns = real_ns(d, done->done_ns)},
			sizeof(struct gp_simgpu_done));
		break;
	default: break;
	}
}

/* Setup. */

/*
 * After sealing, only this mapping can write. The file cannot be truncated while clients read it.
 */
static int map_state(struct device *d)
{
	d->state_fd = memfd_create("gpreempt-simgpu", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (d->state_fd < 0 || ftruncate(d->state_fd, sizeof *d->state))
		return -errno;
	d->state = mmap(NULL, sizeof *d->state, PROT_READ | PROT_WRITE, MAP_SHARED, d->state_fd, 0);
	if (d->state == MAP_FAILED) {
		d->state = NULL;
		return -errno;
	}
	if (fcntl(d->state_fd, F_ADD_SEALS,
		  F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL))
		return -errno;
	return 0;
}

static int make_model(struct device *d)
{
	const struct gp_sim_server_config *config = &d->server->config;
	struct gp_sim_task *task = calloc(GP_SIMGPU_CONTEXTS, sizeof *task);
	struct gp_sim_config sim = {.device = *config->model,
				    .task = task,
				    .ntasks = GP_SIMGPU_CONTEXTS,
				    .seed = config->seed,
				    .first_stream = (uint64_t)d->number * GP_SIMGPU_CONTEXTS,
				    .number = d->number};
	int r;

	if (!task)
		return -ENOMEM;
	for (uint32_t i = 0; i < GP_SIMGPU_CONTEXTS; i++)
		task[i].load = GP_LOAD_EXTERNAL;
	r = gp_sim_new(&sim, &d->sim);
	free(task);
	if (!r)
		gp_sim_set_watch(d->sim, watch, d);
	return r;
}

int gp_sim_device_init(struct device *d, struct server *s, uint32_t number, struct gp_error *err)
{
	int r;

	d->server = s;
	d->number = number;
	d->origin_ns = s->began_ns;
	d->state_fd = -1;
	r = make_model(d);
	if (!r)
		r = map_state(d);
	if (r || !d->state)
		return gp_fail(err, r, "cannot create device %u: %s", number, gp_error_name(r));
	d->state->info = gp_sim_gpu(d->sim)->info;
	snprintf(d->state->info.name, sizeof d->state->info.name, "simulated %s #%u",
		 s->config.model_name, number);
	d->state->device = number;
	d->state->size = sizeof *d->state;
	d->state->version = GP_SIMGPU_VERSION;
	d->state->magic = GP_SIMGPU_MAGIC;
	return 0;
}

void gp_sim_device_free(struct device *d)
{
	if (d->state)
		munmap(d->state, sizeof *d->state);
	if (d->state_fd >= 0)
		close(d->state_fd);
	gp_sim_free(d->sim);
}
