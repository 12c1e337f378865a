/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a scenario: the simulated device drives the engine in virtual time, as the daemon does with
 * a real device. */
#include <stdlib.h>
#include <string.h>

#include "sim/scenario/scenario.h"

/*
 * Counts inversions from the events of the device. This count is exact. The engine's own count is
 * not, because the engine sees the device only at ticks.
 */
struct observer {
	const struct gp_scenario *scenario;
	const struct gp_run_options *options;
	struct gp_run *run;
	struct gp_engine *engine;
	struct seen {
		bool ready, running;
	} * seen;            /* by task */
	uint32_t lc_waiting; /* ready and not running */
	uint32_t be_running;
	bool inverted;
	uint64_t since_ns;
};

/* Adds a task to the counts, or removes it. */
static void count(struct observer *o, uint32_t task, int change)
{
	const struct seen *seen = &o->seen[task];
	uint8_t class = o->scenario->attr[task].class;

	if (class == GP_LATENCY_CRITICAL && seen->ready && !seen->running)
		o->lc_waiting += (uint32_t)change;
	if (class == GP_BEST_EFFORT && seen->running)
		o->be_running += (uint32_t)change;
}

/* An inversion that begins and ends at the same instant is not counted. */
static void count_inversion(struct observer *o, uint64_t now_ns)
{
	o->run->inversions += now_ns > o->since_ns;
	o->run->inversion_ns += now_ns - o->since_ns;
}

static void note_inversion(struct observer *o, uint64_t now_ns)
{
	bool inverted = o->lc_waiting && o->be_running;

	if (inverted == o->inverted)
		return;
	o->inverted = inverted;
	if (inverted)
		o->since_ns = now_ns;
	else
		count_inversion(o, now_ns);
}

static void count_missed(struct observer *o, const struct gp_sim_event *event)
{
	uint64_t deadline_ns = o->scenario->attr[event->task].deadline_ns;

	if (deadline_ns && event->now_ns - event->arrival_ns > deadline_ns)
		o->run->task[event->task].missed++;
}

static void observe(void *arg, const struct gp_sim_event *event)
{
	struct observer *o = arg;
	uint32_t t = event->task;

	count(o, t, -1);
	switch (event->what) {
	case GP_SIM_READY: o->seen[t].ready = true; break;
	case GP_SIM_DONE: o->seen[t].ready = false; break;
	case GP_SIM_RUN: o->seen[t].running = true; break;
	case GP_SIM_STOP: o->seen[t].running = false; break;
	case GP_SIM_BEGIN:
	case GP_SIM_END: /* a mark of a task that was not found yet is lost, as in reality */
		gp_engine_mark(o->engine, event->now_ns, t + 1u, event->what == GP_SIM_BEGIN);
		break;
	case GP_SIM_REQUEST: count_missed(o, event); break;
	default: break;
	}
	count(o, t, 1);
	note_inversion(o, event->now_ns);
	if (o->options && o->options->watch)
		o->options->watch(o->options->watch_arg, event);
}

static void classify(void *arg, const struct gp_seen *seen, struct gp_task_attr *attr)
{
	const struct observer *o = arg;

	*attr = o->scenario->attr[seen->key - 1];
}

struct progress {
	const struct gp_run_options *options;
	uint64_t before_ns; /* simulated time of the finished devices */
	uint64_t end_ns;    /* simulated time of all devices */
	unsigned reported;
};

/* Reports once per thousandth of the time. */
static void report_progress(struct progress *p, uint64_t now_ns)
{
	uint64_t step_ns = p->end_ns / 1000 ? p->end_ns / 1000 : 1;
	unsigned permille = (unsigned)((p->before_ns + now_ns) / step_ns);

	if (!p->options || !p->options->progress || permille == p->reported)
		return;
	p->reported = permille;
	p->options->progress(p->options->progress_arg, permille);
}

static void drive(struct gp_sim *sim, struct gp_engine *engine, uint64_t end_ns, struct progress *p)
{
	uint64_t now_ns = gp_sim_advance(sim, 0);
	bool rescan;

	for (;;) {
		uint64_t to_ns = gp_engine_next_ns(engine);

		if (to_ns <= now_ns) {
			gp_engine_step(engine, now_ns);
			continue;
		}
		report_progress(p, now_ns);
		if (now_ns >= end_ns)
			return;
		now_ns = gp_sim_advance(sim, to_ns < end_ns ? to_ns : end_ns);
		if (gp_sim_take_signal(sim, &rescan))
			gp_engine_trigger(engine, rescan);
	}
}

/* A task counts as refused if it was refused on at least one device. */
static void collect_refused(const struct gp_engine *engine, struct gp_run *run)
{
	struct gp_task_stats stats;

	for (unsigned i = 0; i < gp_engine_tasks(engine); i++) {
		gp_engine_task_stats(engine, i, &stats);
		run->task[stats.key - 1].refused |= stats.refused;
	}
}

/* Adds the results of one device to those of the devices before it. */
static void collect(struct gp_run *run, const struct gp_sim *sim, const struct gp_engine *engine)
{
	const struct gp_ejection *ejection = gp_engine_ejection(engine);
	const struct gp_sim_totals *totals = gp_sim_totals(sim);

	run->device.busy_ns += totals->busy_ns;
	run->device.switch_ns += totals->switch_ns;
	run->device.switches += totals->switches;
	run->device.preemptions += totals->preemptions;
	run->device.events += totals->events;
	run->ejections += gp_engine_stats(engine)->ejections;
	if (ejection)
		memcpy(run->ejected, ejection->text, sizeof run->ejected);
	for (uint32_t i = 0; i < run->ntasks; i++) {
		const struct gp_sim_result *result = gp_sim_result(sim, i);

		run->task[i].finished += result->finished;
		run->task[i].left += result->left;
		run->task[i].work_ns += result->work_ns;
	}
	collect_refused(engine, run);
}

static void summarise(const struct gp_scenario *s, struct gp_run *run)
{
	for (uint32_t i = 0; i < run->ntasks; i++) {
		struct gp_run_task *t = &run->task[i];

		t->alone_ns = s->alone_ns[i];
		t->has_response = t->response && t->response->count;
		if (!t->has_response)
			continue;
		t->mean_ns = gp_hist_mean(t->response);
		t->p50_ns = gp_hist_quantile(t->response, 500000);
		t->p99_ns = gp_hist_quantile(t->response, 990000);
		t->p999_ns = gp_hist_quantile(t->response, 999000);
		t->max_ns = t->response->max;
	}
}

/* Each task that makes requests has one histogram, for all devices. */
static int prepare(const struct gp_scenario *s, struct gp_run *run, struct gp_hist **response)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->ntasks; i++)
		n += s->task[i].load != GP_LOAD_IDLE;
	run->task = calloc(s->ntasks ? s->ntasks : 1, sizeof *run->task);
	run->hist = calloc(n ? n : 1, sizeof *run->hist);
	if (!run->task || !run->hist)
		return -ENOMEM;
	n = 0;
	for (uint32_t i = 0; i < s->ntasks; i++) {
		if (s->task[i].load == GP_LOAD_IDLE)
			continue;
		response[i] = &run->hist[n++];
		gp_hist_init(response[i]);
		run->task[i].response = response[i];
	}
	return 0;
}

/* Runs one device; the devices run one after the other. */
static int run_device(const struct gp_scenario *s, struct observer *o,
		      const struct gp_policy_choice *policy, const struct gp_sim_config *config,
		      struct progress *p, struct gp_error *err)
{
	struct gp_engine_config engine_config = {.classify = classify, .arg = o};
	struct gp_engine *engine = NULL;
	struct gp_sim *sim;
	int r = gp_sim_new(config, &sim);

	if (r)
		return r;
	engine_config.gpu = gp_sim_gpu(sim);
	for (uint32_t i = 0; i < s->ntasks; i++)
		engine_config.request_marks |= s->task[i].request_marks;
	gp_sim_set_watch(sim, observe, o);
	r = gp_engine_new(&engine_config, &engine);
	o->engine = engine;
	if (!r)
		r = gp_engine_set_policy(engine, 0, policy, err);
	if (!r) {
		drive(sim, engine, s->duration_ns, p);
		gp_sim_finish(sim, s->duration_ns);
		if (o->inverted)
			count_inversion(o, s->duration_ns);
		collect(o->run, sim, engine);
	}
	gp_sim_set_watch(sim, NULL,
			 NULL); /* freeing the engine restores tasks; that is not part of the run */
	gp_engine_free(engine);
	gp_sim_free(sim);
	return r;
}

static int run_devices(const struct gp_scenario *s, struct observer *o,
		       const struct gp_policy_choice *policy, struct gp_hist *const *response,
		       struct gp_error *err)
{
	struct progress p = {.options = o->options, .end_ns = s->devices * s->duration_ns};
	int r = 0;

	for (uint32_t i = 0; i < s->devices && !r; i++) {
		const struct gp_sim_config config = {.device = s->device,
						     .task = s->task,
						     .ntasks = s->ntasks,
						     .seed = s->seed,
						     .first_stream = (uint64_t)i * s->ntasks,
						     .number = i,
						     .response = response};

		memset(o->seen, 0, s->ntasks * sizeof *o->seen);
		o->lc_waiting = o->be_running = 0;
		o->inverted = false;
		r = run_device(s, o, policy, &config, &p, err);
		p.before_ns += s->duration_ns;
	}
	return r;
}

/* The work of each task with the device to itself: the reference for the cost of sharing. */

static int run_alone(const struct gp_scenario *s, uint32_t task, uint32_t device, uint64_t *work_ns)
{
	struct gp_hist *const nowhere = NULL; /* response times are not needed */
	struct gp_sim_config config = {
		.device = s->device,
		.task = &s->task[task],
		.ntasks = 1,
		.seed = s->seed,
		/* the same arrivals as together with the other tasks */
		.first_stream = (uint64_t)device * s->ntasks + task,
		.response = &nowhere,
	};
	struct gp_sim *sim;
	int r = gp_sim_new(&config, &sim);
	bool rescan;

	if (r)
		return r;
	while (gp_sim_advance(sim, s->duration_ns) < s->duration_ns ||
	       gp_sim_take_signal(sim, &rescan))
		gp_sim_take_signal(sim, &rescan);
	gp_sim_finish(sim, s->duration_ns);
	*work_ns = gp_sim_result(sim, 0)->work_ns;
	gp_sim_free(sim);
	return 0;
}

/* A closed loop has no randomness: the result is the same on every device. */
static int measure_task(const struct gp_scenario *s, uint32_t task, uint64_t *alone_ns)
{
	bool same = s->task[task].load == GP_LOAD_CLOSED;
	uint32_t runs = same ? 1 : s->devices;
	uint64_t work_ns;
	int r = 0;

	for (uint32_t i = 0; i < runs && !r; i++) {
		r = run_alone(s, task, i, &work_ns);
		if (!r)
			*alone_ns += same ? work_ns * s->devices : work_ns;
	}
	return r;
}

/* Fills in s->alone_ns unless it is set already, so it is computed once for all policies. */
static int measure_alone(struct gp_scenario *s)
{
	int r = 0;

	if (s->alone_ns && s->alone_seed == s->seed)
		return 0;
	free(s->alone_ns);
	s->alone_seed = s->seed;
	s->alone_ns = calloc(s->ntasks ? s->ntasks : 1, sizeof *s->alone_ns);
	if (!s->alone_ns)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->ntasks && !r; i++)
		if (s->task[i].load != GP_LOAD_IDLE)
			r = measure_task(s, i, &s->alone_ns[i]);
	return r;
}

int gp_scenario_run(struct gp_scenario *s, const struct gp_policy_choice *policy,
		    const struct gp_run_options *options, struct gp_run *run, struct gp_error *err)
{
	struct observer o = {.scenario = s, .options = options, .run = run};
	uint32_t n = s->ntasks ? s->ntasks : 1;
	struct gp_hist **response = calloc(n, sizeof(struct gp_hist *));
	int r = -ENOMEM;

	*run = (struct gp_run){.policy = policy->ops,
			       .duration_ns = s->devices * s->duration_ns,
			       .ntasks = s->ntasks};
	o.seen = calloc(n, sizeof *o.seen);
	if (response && o.seen)
		r = prepare(s, run, response);
	if (!r)
		r = measure_alone(s);
	if (!r)
		r = run_devices(s, &o, policy, response, err);
	if (!r)
		summarise(s, run);
	free(o.seen);
	free((void *)response);
	if (r) {
		gp_run_free(run);
		return gp_fail(err, r, "the simulation cannot run: %s", gp_error_name(r));
	}
	return 0;
}

void gp_run_free(struct gp_run *run)
{
	free(run->task);
	free(run->hist);
	run->task = NULL;
	run->hist = NULL;
}
