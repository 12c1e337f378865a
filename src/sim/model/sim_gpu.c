/* SPDX-License-Identifier: Apache-2.0 */
/* Creates a simulated GPU and advances its time. */
#include <stdlib.h>
#include <string.h>

#include "sim/model/model.h"

const struct gp_sim_device gp_sim_h200 = {
	.switch_ns = 168 * GP_NS_PER_US,
	.switch_idle_ns = 132 * GP_NS_PER_US,
	.refill_ns = 36 * GP_NS_PER_US,
	.launch_ns = 22 * GP_NS_PER_US,
	.launch_jitter_ns = 6300,
	.launch_hinted_permille = 600,
	.hold_ns = 578 * GP_NS_PER_US,
	.release_ns = 352 * GP_NS_PER_US,
	.set_slice_ns = 273 * GP_NS_PER_US,
	.slice_us = 2048,
	.slices = true,
	.max_held = 1024,
	.activity = GP_ACTIVITY_SAMPLED,
	.activity_window_ns = 167 * GP_NS_PER_MS,
};

/*
 * The save area is the Linux driver's value for this chip, 22.1 MiB per XCC. The rate is 70 % of
 * the chip's memory bandwidth of 5.3 TB/s. The other values are assumptions. They are chosen so
 * that taking work off the device takes about 0.2 ms, as measured on an MI100.
 */
const struct gp_sim_device gp_sim_mi300x = {
	.model = GP_SIM_CWSR,
	.scheduler = GP_SIM_HWS,
	.xccs = 8,
	.save_area_kb = 23200,
	.save_mb_per_s = 3700000,
	.unmap_ns = 60 * GP_NS_PER_US,
	.map_ns = 60 * GP_NS_PER_US,
	.launch_ns = 22 * GP_NS_PER_US,
	.launch_jitter_ns = 6300,
	.launch_hinted_permille = 600,
	.hold_ns = 20 * GP_NS_PER_US,
	.release_ns = 20 * GP_NS_PER_US,
	.max_held = 1024,
	.activity = GP_ACTIVITY_EVENTS,
	.activity_window_ns = 167 * GP_NS_PER_MS,
	.detect_ns = 1 * GP_NS_PER_MS,
	.hides_run = true,
};

static const struct gp_sim_model_ops *const models[] = {
	[GP_SIM_RUNLIST] = &gp_sim_runlist,
	[GP_SIM_CWSR] = &gp_sim_cwsr,
};

/* 146 years. Sums of longer times could overflow. */
#define TIME_MAX (UINT64_MAX / 4)

static bool trace_is_valid(const struct gp_sim_task *t)
{
	for (uint32_t i = 0; i < t->arrivals; i++)
		if (t->arrival_ns[i] > TIME_MAX || (i && t->arrival_ns[i] < t->arrival_ns[i - 1]))
			return false;
	return true;
}

static bool task_is_valid(const struct gp_sim_task *t)
{
	const uint64_t time[] = {t->every_ns,      t->phase_ns, t->kernel_ns,
				 t->kernel_gap_ns, t->wave_ns,  t->gap_ns,
				 t->prepare_ns,    t->hint_ns,  t->start_ns};
	bool arrives = t->load == GP_LOAD_PERIODIC || t->load == GP_LOAD_POISSON;

	for (unsigned i = 0; i < sizeof time / sizeof *time; i++)
		if (time[i] > TIME_MAX)
			return false;
	if (t->width_permille > 1000 || (t->load == GP_LOAD_TRACE && !trace_is_valid(t)))
		return false;
	return t->load == GP_LOAD_IDLE || t->load == GP_LOAD_EXTERNAL ||
	       (t->kernel_ns && (!arrives || t->every_ns));
}

static bool device_is_valid(const struct gp_sim_device *d)
{
	if (d->activity == GP_ACTIVITY_SAMPLED && !d->activity_window_ns)
		return false;
	switch (d->model) {
	case GP_SIM_RUNLIST: return d->slice_us;
	case GP_SIM_CWSR: return d->xccs && d->save_mb_per_s >= d->xccs && !d->slices;
	default: return false;
	}
}

static bool config_is_valid(const struct gp_sim_config *c)
{
	if (!device_is_valid(&c->device))
		return false;
	for (uint32_t i = 0; i < c->ntasks; i++)
		if (!task_is_valid(&c->task[i]))
			return false;
	return true;
}

static bool has_histogram(const struct gp_sim_task *t)
{
	return t->load != GP_LOAD_IDLE && t->load != GP_LOAD_EXTERNAL;
}

/* Histograms are large. Only tasks that make requests have one; slots for external programs have
 * none. */
static int allocate_histograms(struct gp_sim *s, const struct gp_sim_config *config)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->ntasks; i++)
		n += has_histogram(&config->task[i]);
	if (!config->response && n) {
		s->own_response = calloc(n, sizeof *s->own_response);
		if (!s->own_response)
			return -ENOMEM;
	}
	n = 0;
	for (uint32_t i = 0; i < s->ntasks; i++) {
		struct gp_hist **response = &s->task[i].result.response;

		if (config->response) {
			*response = config->response[i];
		} else if (has_histogram(&config->task[i])) {
			*response = &s->own_response[n++];
			gp_hist_init(*response);
		}
	}
	return 0;
}

int gp_sim_new(const struct gp_sim_config *config, struct gp_sim **sim)
{
	struct gp_sim *s;
	int r;

	if (!config_is_valid(config))
		return -EINVAL;
	s = calloc(1, sizeof *s);
	if (!s)
		return -ENOMEM;
	s->device = config->device;
	s->number = config->number;
	s->ntasks = config->ntasks;
	s->task = calloc(s->ntasks ? s->ntasks : 1, sizeof *s->task);
	s->model = models[s->device.model];
	r = s->task ? s->model->init(s) : -ENOMEM;
	if (!r)
		r = allocate_histograms(s, config);
	if (!r) /* three timers per task, and four of the device */
		r = gp_heap_init(&s->heap, 3 * (size_t)s->ntasks + 4);
	if (!r)
		r = gp_sim_backend_init(s);
	if (r) {
		gp_sim_free(s);
		return r;
	}
	for (uint32_t i = 0; i < s->ntasks; i++) {
		s->task[i].config = config->task[i];
		s->task[i].index = i;
		gp_sim_program_init(s, &s->task[i], config->seed, config->first_stream + i);
	}
	r = gp_sim_external_init(s);
	if (r) {
		gp_sim_free(s);
		return r;
	}
	*sim = s;
	return 0;
}

void gp_sim_free(struct gp_sim *s)
{
	if (!s)
		return;
	s->model->free(s);
	free(s->queue);
	free(s->own_response);
	free(s->external);
	free(s->changed);
	gp_heap_free(&s->heap);
	free(s->task);
	free(s);
}

struct gp_gpu *gp_sim_gpu(struct gp_sim *s)
{
	return &s->base;
}

void gp_sim_set_watch(struct gp_sim *s, gp_sim_watch *watch, void *arg)
{
	s->watch = watch;
	s->watch_arg = arg;
}

uint64_t gp_sim_next_ns(const struct gp_sim *s)
{
	const struct gp_timer *first = gp_heap_first(&s->heap);

	return first ? first->at_ns : GP_NEVER;
}

/* Timers are members of the objects they belong to, so the address tells which one fired. */
static void fire(struct gp_sim *s, struct gp_timer *timer)
{
	struct gp_sim_task_state *t;

	if (timer == &s->timer) {
		s->model->timer(s);
	} else if (timer == &s->control_timer) {
		gp_sim_backend_control_timer(s);
	} else if (timer == &s->window_timer) {
		gp_sim_backend_window_timer(s);
	} else if (timer == &s->detect_timer) {
		gp_sim_backend_detect_timer(s);
	} else {
		t = &s->task[(size_t)((char *)timer - (char *)s->task) / sizeof *s->task];
		if (timer == &t->timer)
			gp_sim_program_timer(s, t);
		else if (timer == &t->mark_timer)
			gp_sim_program_begin_request(s, t);
		else
			gp_sim_program_stop(s, t);
	}
	s->totals.events++;
}

uint64_t gp_sim_advance(struct gp_sim *s, uint64_t to_ns)
{
	struct gp_timer *first;

	while ((first = gp_heap_first(&s->heap)) && first->at_ns <= to_ns) {
		if (s->signalled && first->at_ns > s->now_ns)
			return s->now_ns;
		s->now_ns = first->at_ns;
		gp_heap_cancel(&s->heap, first);
		fire(s, first);
	}
	if (!s->signalled && to_ns > s->now_ns)
		s->now_ns = to_ns;
	return s->now_ns;
}

bool gp_sim_take_signal(struct gp_sim *s, bool *rescan)
{
	bool signalled = s->signalled;

	*rescan = signalled && s->rescan;
	s->signalled = false;
	s->rescan &= !*rescan;
	return signalled;
}

void gp_sim_finish(struct gp_sim *s, uint64_t end_ns)
{
	s->model->update_accounts(s);
	for (uint32_t i = 0; i < s->ntasks; i++)
		gp_sim_program_count_left(&s->task[i], end_ns);
}

const struct gp_sim_result *gp_sim_result(const struct gp_sim *s, uint32_t task)
{
	return &s->task[task].result;
}

const struct gp_sim_totals *gp_sim_totals(const struct gp_sim *s)
{
	return &s->totals;
}

size_t gp_sim_bytes_per_task(void)
{
	/* The task, its three entries in the heap and its four in the control queue. */
	return sizeof(struct gp_sim_task_state) + sizeof(struct gp_hist) +
	       3 * sizeof(struct gp_timer *) + 4 * sizeof(struct control);
}
