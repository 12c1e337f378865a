/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sampler thread: which tasks were active. It combines two incomplete sources:
 *
 *   The firmware's records of context switches (ctxsw.h) give true run times. But an idle context
 *   stays on the engine until another context needs it, so being on the engine proves no work.
 *   NVML's utilisation by process counts only running kernels, but it is updated every 0.2 s and
 *   can be 0.5 s old (GP_NV_USE_NS, GP_NV_USE_AGE_NS).
 *
 * A task that was put on the engine had work. A task that was not, although it was free to run and
 * the others took turns or the GPU had time, had none. NVML decides for a task that stays on the
 * engine, or that was on it before gpreempt attached. Otherwise the activity is unknown.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <time.h>

#include "gpu/nvidia/nvidia_device.h"

#define SILENT_MAX   3
#define MEMORY_NS    (2 * GP_NS_PER_S)
#define CLOCK_NS     GP_NS_PER_S
#define FREE_PERCENT 98 /* a GPU that is less busy had time for every task */

static void take_event(struct gp_nv_gpu *d, const struct gp_ctxsw_event *event)
{
	uint64_t handle, at_ns = (uint64_t)((int64_t)event->at_ns + d->clock_offset_ns);
	struct gp_nv_task *t;

	if (!gp_table_get(&d->by_context, event->context_id, &handle) ||
	    (uint32_t)handle >= d->ntasks)
		return;
	t = &d->task[(uint32_t)handle];
	if (!t->used || t->generation != handle >> 32)
		return;
	if (event->on) {
		t->scheduled++;
		t->on_at_ns = t->on_since_ns = t->worked_ns = at_ns;
		return;
	}
	if (t->on_since_ns && at_ns > t->on_since_ns)
		t->run_ns += at_ns - t->on_since_ns;
	t->on_since_ns = 0;
	t->off_at_ns = at_ns;
}

static uint64_t overlap(uint64_t from, uint64_t until, uint64_t begin, uint64_t end)
{
	uint64_t first = from > begin ? from : begin, last = until < end ? until : end;

	return last > first ? last - first : 0;
}

/* Whether the task was released for at least a quarter of the window. NVML's windows are old: the
 * task may be held again by now. */
static bool was_free(const struct gp_nv_task *t, uint64_t begin_ns, uint64_t end_ns)
{
	uint64_t free_ns = overlap(t->released_from_ns, t->released_until_ns, begin_ns, end_ns);

	if (t->released_since_ns != GP_NEVER)
		free_ns += overlap(t->released_since_ns, GP_NEVER, begin_ns, end_ns);
	return free_ns >= (end_ns - begin_ns) / 4;
}

/* The task counts as idle until there is other evidence. */
static void assume_idle(struct gp_nv_task *t)
{
	t->active_known = true;
	t->active = false;
}

/* Judges by a window of context switches. `turns`: several tasks took turns in it. */
static void judge_by_switches(const struct gp_nv_gpu *d, struct gp_nv_task *t, bool turns,
			      uint64_t now_ns)
{
	bool worked = t->scheduled != t->window_scheduled;
	bool free =
		t->released_since_ns < now_ns && now_ns - t->released_since_ns >= GP_NV_WINDOW_NS;
	/* NVML's windows are older and longer, so the task must have been free then. */
	bool seen_idle = !t->percent && d->has_use && d->busy < FREE_PERCENT &&
			 was_free(t, t->percent_ns, t->percent_ns + GP_NV_USE_NS);

	t->window_scheduled = t->scheduled;
	t->run_at_ns = now_ns;
	t->sampled = true;
	if (worked)
		t->active_known = t->active = true;
	else if (t->on_since_ns && t->percent_ns >= t->on_since_ns)
		t->active = t->percent; /* it had work when it was put on; NVML sampled it since */
	else if (!t->on_since_ns && ((free && turns) || seen_idle))
		assume_idle(t);
}

/* Whether two tasks were put on the engine, and one of them twice: then each waiting task had its
 * turn. */
static bool took_turns(const struct gp_nv_gpu *d)
{
	unsigned came = 0;
	bool twice = false;

	for (unsigned i = 0; i < d->ntasks; i++) {
		uint64_t times = d->task[i].scheduled - d->task[i].window_scheduled;

		came += d->task[i].used && times > 0;
		twice |= d->task[i].used && times > 1;
	}
	return came >= 2 && twice;
}

/* Records were lost: the task on the engine is not known any more. */
static void forget_positions(struct gp_nv_gpu *d)
{
	d->lost = d->ctxsw.ring.lost;
	for (unsigned i = 0; i < d->ntasks; i++) {
		d->task[i].position_known = false;
		d->task[i].on_since_ns = 0;
	}
}

static void read_switches(struct gp_nv_gpu *d)
{
	struct gp_ctxsw_event event;
	uint64_t now_ns = gp_monotonic_ns();
	bool any = false, turns; /* any: a task without a record is known to be off the engine */

	if (now_ns >= d->clock_ns + CLOCK_NS && gp_rm_clock_offset(&d->rm, &d->clock_offset_ns))
		d->clock_ns = now_ns;
	gp_ctxsw_flush(&d->ctxsw);
	pthread_mutex_lock(&d->requests.lock);
	now_ns = gp_monotonic_ns();
	while (gp_ctxsw_next(&d->ctxsw.ring, &event)) {
		if (d->ctxsw.ring.lost != d->lost)
			forget_positions(d);
		take_event(d, &event);
		any = true;
	}
	turns = took_turns(d);
	for (unsigned i = 0; i < d->ntasks; i++)
		if (d->task[i].used && (d->task[i].position_known |= any))
			judge_by_switches(d, &d->task[i], turns, now_ns);
	pthread_mutex_unlock(&d->requests.lock);
}

static uint32_t percent_of(const struct gp_nvml_use *use, int n, pid_t pid, uint64_t *at_us)
{
	uint32_t percent = 0;

	for (int i = 0; i < n; i++)
		if (use[i].pid == (uint32_t)pid && use[i].at_us >= *at_us) {
			percent = use[i].percent;
			*at_us = use[i].at_us;
		}
	return percent;
}

/* Without records of switches the same rules apply to NVML's windows. */
static void judge_by_use(const struct gp_nv_gpu *d, struct gp_nv_task *t, uint64_t window_ns)
{
	bool free = was_free(t, t->percent_ns, t->percent_ns + window_ns);

	t->run_ns += window_ns / 100 * t->percent;
	t->run_at_ns = t->percent_ns + window_ns;
	t->sampled = true;
	if (t->percent)
		t->active_known = t->active = true;
	else if (free && (d->busy < FREE_PERCENT || d->workers >= 2))
		assume_idle(t);
}

uint64_t gp_nv_begin_of_window(uint64_t at_us, uint64_t now_ns)
{
	struct timespec real;
	uint64_t age_ns;

	clock_gettime(CLOCK_REALTIME, &real);
	age_ns = (uint64_t)real.tv_sec * GP_NS_PER_S + (uint64_t)real.tv_nsec - at_us * 1000;
	return age_ns < GP_NS_PER_S ? now_ns - age_ns - GP_NV_USE_NS : 0;
}

/* A window may be longer than the usual one. */
static void note_work(const struct gp_nv_gpu *d, struct gp_nv_task *t, uint64_t at_us,
		      uint64_t now_ns)
{
	uint64_t began_ns = t->percent ? gp_nv_begin_of_window(at_us, now_ns) : 0;

	if (began_ns > t->worked_ns + GP_NV_USE_NS && gp_nv_proof_counts_use(d, t))
		t->worked_ns = began_ns - GP_NV_USE_NS;
}

static void read_use(struct gp_nv_gpu *d, uint64_t now_ns)
{
	struct gp_nvml_use use[256];
	int n = gp_nvml_use(d->nvml, d->nvml_device, d->use_us, use, 256);
	uint64_t newest_us = d->use_us, window_ns, began_ns;

	/* One read without a sample proves nothing; an unused GPU never has samples. */
	d->silent = n ? 0 : d->silent + 1;
	if (n < 0 || (!n && d->silent < SILENT_MAX))
		return;
	if (!n)
		d->use_us = newest_us = 0; /* the wall clock may have been set back */
	for (int i = 0; i < n; i++)
		if (use[i].at_us > newest_us)
			newest_us = use[i].at_us;
	window_ns = !n ? GP_NV_USE_NS : d->use_us ? (newest_us - d->use_us) * 1000 : 0;
	if (window_ns > GP_NS_PER_S)
		window_ns = 0;
	d->use_us = newest_us;
	began_ns = n ? gp_nv_begin_of_window(newest_us, now_ns) : now_ns - GP_NV_USE_NS;
	pthread_mutex_lock(&d->requests.lock);
	d->busy = d->workers = 0;
	for (unsigned i = 0; i < d->ntasks; i++) {
		struct gp_nv_task *t = &d->task[i];
		uint64_t at_us = 0;

		if (!t->used)
			continue;
		t->percent = percent_of(use, n, t->pid, &at_us);
		t->percent_ns = began_ns;
		if (!t->sampled_ns)
			t->sampled_ns = began_ns + GP_NV_USE_NS;
		note_work(d, t, at_us, now_ns);
		d->busy += t->percent;
		d->workers += t->percent > 0;
	}
	/* The first sample, and the first after a pause, has a window of unknown length. */
	for (unsigned i = 0; window_ns && i < d->ntasks; i++)
		if (d->task[i].used && !d->task[i].position_known)
			judge_by_use(d, &d->task[i], window_ns);
	pthread_mutex_unlock(&d->requests.lock);
	gp_nv_notify(d);
}

static void read_memory(struct gp_nv_gpu *d)
{
	struct gp_nvml_memory memory[256];
	int n = gp_nvml_memory(d->nvml, d->nvml_device, memory, 256);

	if (n < 0)
		return;
	pthread_mutex_lock(&d->requests.lock);
	gp_table_clear(&d->memory);
	for (int i = 0; i < n; i++)
		gp_table_put(&d->memory, memory[i].pid, memory[i].bytes);
	pthread_mutex_unlock(&d->requests.lock);
}

static void sample(struct gp_nv_gpu *d)
{
	uint64_t now_ns = gp_monotonic_ns();

	if (d->nvml && now_ns >= d->memory_ns) {
		d->memory_ns = now_ns + MEMORY_NS;
		read_memory(d);
	}
	if (d->has_use && now_ns >= d->use_ns) {
		d->use_ns = now_ns + GP_NV_USE_NS;
		read_use(d, now_ns);
	}
	if (d->has_ctxsw)
		read_switches(d);
}

void *gp_nv_sampler(void *gpu)
{
	struct gp_nv_gpu *d = gpu;
	struct pollfd stop = {.fd = d->stop_fd, .events = POLLIN};
	int period_ms = (int)((d->has_ctxsw ? GP_NV_WINDOW_NS : GP_NV_USE_NS) / GP_NS_PER_MS);

	for (;;) {
		int r = poll(&stop, 1, period_ms);

		if (r > 0 || (r < 0 && errno != EINTR))
			return NULL;
		sample(d);
	}
}
