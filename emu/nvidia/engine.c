/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "engine.h"
#include "sim/model/sim_gpu.h"

/* Copy engines have little state to save. Not measured. */
#define COPY_SWITCH_NS (10 * GP_NS_PER_US)

/* RM's own slice; CUDA sets 2,048 us on its compute groups afterwards. */
#define DEFAULT_SLICE_US 1024u

/* What hardware holds: eight bits, shifted left by at most fifteen. */
#define SLICE_MANTISSA  255u
#define SLICE_SHIFT_MAX 15u

static bool channel_is_runnable(const struct channel *c)
{
	if (c->in_kernel)
		return c->enabled || c->finishing;
	return c->enabled && c->queue;
}

static bool group_is_runnable(const struct group *g)
{
	for (const struct channel *c = g->channels; c; c = c->next)
		if (channel_is_runnable(c))
			return true;
	return false;
}

/* Something of it would have to be saved. */
static bool group_has_work(const struct group *g)
{
	for (const struct channel *c = g->channels; c; c = c->next)
		if (c->in_kernel || c->queue)
			return true;
	return false;
}

bool group_is_held(const struct group *g)
{
	for (const struct channel *c = g->channels; c; c = c->next)
		if (c->enabled)
			return false;
	return g->channels != NULL;
}

static void start_kernel(struct channel *c)
{
	struct batch *batch = c->queue;

	c->in_kernel = true;
	c->left_ns = batch->kernel_ns;
	c->ran_ns = 0;
	if (--batch->kernels)
		return;
	c->queue = batch->next;
	free(batch);
}

/* Behind the current one, round the end of the list. */
static struct channel *next_runnable(const struct group *g)
{
	for (struct channel *c = g->current ? g->current->next : NULL; c; c = c->next)
		if (channel_is_runnable(c))
			return c;
	for (struct channel *c = g->channels; c; c = c->next)
		if (channel_is_runnable(c))
			return c;
	return NULL;
}

/* The kernel that was interrupted, or the next channel's, round robin. The group is runnable. */
static void choose_channel(struct group *g)
{
	struct channel *c = g->current;

	if (!c || !c->in_kernel || !channel_is_runnable(c)) {
		c = next_runnable(g);
		assert(c);
		g->current = c;
	}
	if (!c->in_kernel)
		start_kernel(c);
}

/* The first that is ready behind the one loaded last, round the end of the list. */
static struct group *line_next(const struct runlist *r)
{
	struct group *first = NULL, *behind = NULL;

	for (struct group *g = r->groups; g; g = g->next) {
		if (!g->ready)
			continue;
		if (!first || g->order < first->order)
			first = g;
		if (g->order > r->place && (!behind || g->order < behind->order))
			behind = g;
	}
	return behind ? behind : first;
}

/* Brings time and progress of the current phase up to now. */
static void keep_books(struct runlist *r)
{
	uint64_t took_ns = r->now_ns - r->phase_ns;
	struct group *g = r->loaded;

	r->phase_ns = r->now_ns;
	if (r->phase != PHASE_RUN)
		return;
	g->run_ns += took_ns;
	g->current->run_ns += took_ns;
	if (took_ns <= r->refill_ns) {
		r->refill_ns -= took_ns;
		return;
	}
	took_ns -= r->refill_ns;
	r->refill_ns = 0;
	g->work_ns += took_ns;
	g->current->left_ns -= took_ns;
	g->current->ran_ns += took_ns;
}

/* When the running group must give way to those in line. */
static uint64_t slice_end(const struct runlist *r)
{
	uint64_t slice_ns = r->loaded->slice_us * GP_NS_PER_US;
	uint64_t slices = (r->now_ns - r->turn_ns + slice_ns - 1) / slice_ns;

	return r->turn_ns + (slices ? slices : 1) * slice_ns;
}

static void set_run_event(struct runlist *r)
{
	uint64_t refilled_ns = r->now_ns + r->refill_ns;
	uint64_t end_ns = refilled_ns + r->loaded->current->left_ns;

	r->event_ns = end_ns;
	if (!line_next(r) || r->loaded->mode == MODE_WFI)
		return; /* no group waits, or kernels cannot be interrupted */
	if (slice_end(r) < end_ns)
		r->event_ns = slice_end(r) > refilled_ns ? slice_end(r) : refilled_ns;
}

static void run_loaded(struct runlist *r)
{
	struct group *g = r->loaded;

	choose_channel(g);
	r->phase = PHASE_RUN;
	r->phase_ns = r->turn_ns = r->now_ns;
	r->refill_ns = g->cut ? r->refill_cost_ns : 0;
	g->cut = false;
	g->scheduled++;
	set_run_event(r);
}

/* The next group in line, or NULL. */
static void give_to_next(struct runlist *r)
{
	struct group *g = line_next(r);
	bool idle = !r->loaded || !group_has_work(r->loaded);

	if (!g) {
		r->phase = PHASE_IDLE;
		r->event_ns = GP_NEVER;
		return;
	}
	g->ready = false;
	if (g == r->loaded) {
		run_loaded(r);
		return;
	}
	r->phase = PHASE_SWITCH;
	r->target = g;
	r->switches++;
	r->event_ns = r->now_ns + (idle ? r->switch_idle_ns : r->switch_ns);
}

/* Takes the running group off the hardware, whatever it has left. */
static void take_off(struct runlist *r)
{
	struct group *g = r->loaded;
	struct channel *c = g->current;

	g->cut = c->in_kernel && c->ran_ns;
	g->preempted++;
	c->finishing = false;
	g->ready = group_is_runnable(g);
	give_to_next(r);
}

static void finish_switch(struct runlist *r)
{
	struct group *g = r->target;

	r->target = NULL;
	r->loaded = g;
	if (g) {
		r->place = g->order;
		if (group_is_runnable(g)) {
			run_loaded(r);
			return;
		}
	}
	give_to_next(r);
}

static void finish_kernel(struct runlist *r)
{
	struct group *g = r->loaded;
	struct channel *c = g->current;

	c->in_kernel = false;
	c->finishing = false;
	c->done++;
	c->digest = emu_digest(c->digest, c->ran_ns);
	if (!group_is_runnable(g)) {
		give_to_next(r);
		return;
	}
	if (line_next(r) && r->now_ns - r->turn_ns >= g->slice_us * GP_NS_PER_US) {
		take_off(r);
		return;
	}
	choose_channel(g); /* goes on in its slice */
	set_run_event(r);
}

static void take_event(struct runlist *r)
{
	keep_books(r);
	if (r->phase == PHASE_SWITCH)
		finish_switch(r);
	else if (!r->loaded->current->left_ns)
		finish_kernel(r);
	else
		take_off(r);
}

static void runlist_advance(struct runlist *r, uint64_t now_ns)
{
	while (r->event_ns <= now_ns) {
		r->now_ns = r->event_ns;
		take_event(r);
	}
	r->now_ns = now_ns;
	keep_books(r);
}

/* Something about the group changed: what it can run, or its slice. */
static void reconsider(struct group *g)
{
	struct runlist *r = g->runlist;

	keep_books(r);
	if (r->phase == PHASE_RUN && r->loaded == g) {
		if (channel_is_runnable(g->current))
			set_run_event(r);
		else
			take_off(r);
		return;
	}
	if (r->target == g)
		return; /* looked at again when the switch is done */
	g->ready = group_is_runnable(g);
	if (r->phase == PHASE_IDLE)
		give_to_next(r);
	else if (r->phase == PHASE_RUN)
		set_run_event(r);
}

static void gpu_init(struct gpu *gpu, uint32_t index, uint64_t now_ns)
{
	gpu->index = index;
	gpu->bus = 0x18 + 0x20 * index;
	gpu->gpu_id = gpu->bus << 8;
	gpu->window_ns = now_ns;
	for (uint32_t i = 0; i < RUNLISTS; i++) {
		struct runlist *r = &gpu->runlist[i];

		*r = (struct runlist){.gpu = gpu,
				      .switch_ns = i ? COPY_SWITCH_NS : gp_sim_h200.switch_ns,
				      .switch_idle_ns =
					      i ? COPY_SWITCH_NS : gp_sim_h200.switch_idle_ns,
				      .refill_cost_ns = i ? 0 : gp_sim_h200.refill_ns,
				      .now_ns = now_ns,
				      .phase_ns = now_ns,
				      .event_ns = GP_NEVER};
	}
}

void engine_init(struct engine *engine, uint32_t ngpus, uint64_t now_ns)
{
	pthread_condattr_t attr;

	engine->ngpus = ngpus;
	for (uint32_t i = 0; i < ngpus; i++)
		gpu_init(&engine->gpu[i], i, now_ns);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&engine->changed, &attr);
	pthread_condattr_destroy(&attr);
}

static void add_usage(struct gpu *gpu, pid_t pid, uint32_t percent)
{
	for (uint32_t i = 0; i < gpu->nusage; i++)
		if (gpu->usage[i].pid == pid) {
			gpu->usage[i].sm_percent += percent;
			return;
		}
	if (gpu->nusage < EMU_MAX_PROCESSES)
		gpu->usage[gpu->nusage++] = (struct usage){pid, percent};
}

/* The end of a window of utilisation: what each process had of the compute engine. */
static void take_samples(struct gpu *gpu, uint64_t window_ns)
{
	struct timespec wall;

	gpu->nusage = 0;
	for (struct group *g = gpu->runlist[0].groups; g; g = g->next) {
		uint64_t ran_ns = g->run_ns - g->window_run_ns;

		g->window_run_ns = g->run_ns;
		if (ran_ns * 100 >= window_ns)
			add_usage(gpu, g->pid, (uint32_t)(ran_ns * 100 / window_ns));
	}
	clock_gettime(CLOCK_REALTIME, &wall);
	gpu->sample_us = (uint64_t)wall.tv_sec * 1000000 + (uint64_t)wall.tv_nsec / 1000;
}

static void gpu_advance(struct gpu *gpu, uint64_t now_ns)
{
	uint64_t window_ns = gp_sim_h200.activity_window_ns;

	while (gpu->window_ns + window_ns <= now_ns) {
		gpu->window_ns += window_ns;
		for (uint32_t i = 0; i < RUNLISTS; i++)
			runlist_advance(&gpu->runlist[i], gpu->window_ns);
		take_samples(gpu, window_ns);
	}
	for (uint32_t i = 0; i < RUNLISTS; i++)
		runlist_advance(&gpu->runlist[i], now_ns);
}

void engine_advance(struct engine *engine, uint64_t now_ns)
{
	for (uint32_t i = 0; i < engine->ngpus; i++)
		gpu_advance(&engine->gpu[i], now_ns);
}

bool engine_type_is_valid(uint32_t type)
{
	return type == NV2080_ENGINE_TYPE_GR0 ||
	       (type >= NV2080_ENGINE_TYPE_COPY0 && type <= NV2080_ENGINE_TYPE_COPY9);
}

/* The lowest that is free: ids are used again. */
static bool take_tsg_id(struct gpu *gpu, uint32_t *id)
{
	for (uint32_t i = 0; i < 32; i++)
		if (~gpu->tsg_ids[i]) {
			uint32_t bit = (uint32_t)__builtin_ctzll(~gpu->tsg_ids[i]);

			gpu->tsg_ids[i] |= 1ull << bit;
			*id = i * 64 + bit;
			return true;
		}
	return false;
}

struct group *group_new(struct gpu *gpu, uint32_t engine_type, pid_t pid)
{
	bool copies = engine_type >= NV2080_ENGINE_TYPE_COPY0;
	uint32_t number = copies ? 1 + engine_type - NV2080_ENGINE_TYPE_COPY0 : 0;
	struct runlist *r = &gpu->runlist[number];
	struct group *g = calloc(1, sizeof(*g)), **end = &r->groups;

	if (!g || !take_tsg_id(gpu, &g->tsg_id)) {
		free(g);
		return NULL;
	}
	g->runlist = r;
	g->pid = pid;
	g->order = ++r->next_order;
	g->engine_type = engine_type;
	g->asked_us = g->slice_us = DEFAULT_SLICE_US;
	g->interleave = 1;
	g->mode = MODE_CTA;
	while (*end)
		end = &(*end)->next;
	*end = g;
	return g;
}

void group_free(struct group *g)
{
	struct runlist *r = g->runlist;
	struct group **at = &r->groups;

	g->ready = false;
	if (r->target == g)
		r->target = NULL;
	if (r->loaded == g)
		r->loaded = NULL;
	while (*at != g)
		at = &(*at)->next;
	*at = g->next;
	r->gpu->tsg_ids[g->tsg_id / 64] &= ~(1ull << g->tsg_id % 64);
	free(g);
}

struct channel *channel_new(struct group *g)
{
	struct channel *c = calloc(1, sizeof(*c)), **end = &g->channels;

	if (!c)
		return NULL;
	c->group = g;
	c->id = ++g->runlist->gpu->next_channel_id;
	c->enabled = true;
	c->digest = EMU_DIGEST_START;
	while (*end)
		end = &(*end)->next;
	*end = c;
	return c;
}

static void forget_queue(struct channel *c)
{
	while (c->queue) {
		struct batch *batch = c->queue;

		c->queue = batch->next;
		free(batch);
	}
}

void channel_free(struct channel *c)
{
	struct group *g = c->group;
	struct channel **at = &g->channels;

	keep_books(g->runlist);
	forget_queue(c);
	c->in_kernel = false;
	c->finishing = false;
	reconsider(g);
	if (g->current == c)
		g->current = NULL;
	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	free(c);
}

void group_set_slice(struct group *g, uint64_t us)
{
	uint32_t shift = 0;

	g->asked_us = us;
	while (us >> shift > SLICE_MANTISSA && shift < SLICE_SHIFT_MAX)
		shift++;
	g->slice_us = us >> shift > SLICE_MANTISSA ? SLICE_MANTISSA : us >> shift;
	g->slice_us <<= shift;
	if (!g->slice_us)
		g->slice_us = 1; /* 0 is accepted; what it does is not known */
	keep_books(g->runlist);
	if (g->runlist->loaded == g)
		g->runlist->turn_ns = g->runlist->now_ns; /* the slice begins anew */
	reconsider(g);
}

void group_preempt(struct group *g)
{
	struct runlist *r = g->runlist;

	keep_books(r);
	if (r->phase == PHASE_RUN && r->loaded == g && g->mode != MODE_WFI)
		take_off(r);
}

int channel_submit(struct channel *c, uint64_t kernels, uint64_t kernel_ns)
{
	struct batch *batch, **end = &c->queue;

	if (!kernels)
		return 0;
	batch = malloc(sizeof(*batch));
	if (!batch)
		return -ENOMEM;
	*batch = (struct batch){.kernels = kernels, .kernel_ns = kernel_ns};
	while (*end)
		end = &(*end)->next;
	*end = batch;
	c->submitted += kernels;
	reconsider(c->group);
	return 0;
}

void channel_enable(struct channel *c)
{
	c->enabled = true;
	c->finishing = false;
	reconsider(c->group);
}

void channel_disable(struct channel *c, bool finish, bool rewind)
{
	struct runlist *r = c->group->runlist;
	bool on_hardware = r->phase == PHASE_RUN && r->loaded == c->group &&
			   c->group->current == c && c->in_kernel;

	keep_books(r);
	if (rewind)
		forget_queue(c);
	c->enabled = false;
	c->finishing = on_hardware && (finish || c->group->mode == MODE_WFI);
	reconsider(c->group);
}

uint64_t channel_next_ns(const struct channel *c)
{
	return c->group->runlist->event_ns;
}
