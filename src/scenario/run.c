/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated device drives the engine in virtual time, as the daemon does with a real one. */
#include <stdlib.h>
#include <string.h>

#include "scenario/scenario.h"

/* Counts inversions from what happens on the device: exact, where the engine only sees looks. */
struct observer {
	const struct gp_scenario *scenario;
	const struct gp_run_options *options;
	struct gp_run *run;
	struct gp_engine *engine;
	bool *ready;
	int64_t running;     /* task index; -1 = nobody */
	uint32_t lc_waiting; /* ready and not running */
	bool inverted;
	uint64_t since_ns;
};

static bool is_lc(const struct observer *o, uint32_t task)
{
	return o->scenario->attr[task].class == GP_LATENCY_CRITICAL;
}

static void note_inversion(struct observer *o, uint64_t now_ns)
{
	bool inverted = o->lc_waiting && o->running >= 0 &&
	                o->scenario->attr[o->running].class == GP_BEST_EFFORT;

	if (inverted == o->inverted)
		return;
	o->inverted = inverted;
	if (inverted) {
		o->run->inversions++;
		o->since_ns = now_ns;
	} else {
		o->run->inversion_ns += now_ns - o->since_ns;
	}
}

static void observe(void *arg, const struct gp_sim_event *event)
{
	struct observer *o = arg;
	uint32_t t = event->task;

	switch (event->what) {
	case GP_SIM_READY:
		o->ready[t] = true;
		o->lc_waiting += is_lc(o, t);
		break;
	case GP_SIM_DONE:
		o->ready[t] = false;
		o->lc_waiting -= is_lc(o, t) && o->running != (int64_t)t;
		break;
	case GP_SIM_RUN:
		o->running = (int64_t)t;
		o->lc_waiting -= is_lc(o, t);
		break;
	case GP_SIM_STOP:
		o->running = -1;
		o->lc_waiting += is_lc(o, t) && o->ready[t];
		break;
	case GP_SIM_BEGIN:
	case GP_SIM_END: /* of a task that was not found yet it is lost, as in real life */
		gp_engine_bracket(o->engine, event->now_ns, t + 1u, event->what == GP_SIM_BEGIN);
		break;
	default: break;
	}
	note_inversion(o, event->now_ns);
	if (o->options && o->options->watch)
		o->options->watch(o->options->watch_arg, event);
}

static void classify(void *arg, const struct gp_seen *seen, struct gp_task_attr *attr)
{
	const struct observer *o = arg;

	*attr = o->scenario->attr[seen->key - 1];
}

/* At each thousandth of the way, which is often enough and costs nothing. */
static void report_progress(const struct gp_run_options *options, uint64_t now_ns, uint64_t end_ns,
                            unsigned *reported)
{
	unsigned permille = (unsigned)(now_ns / (end_ns / 1000 ? end_ns / 1000 : 1));

	if (!options || !options->progress || permille == *reported)
		return;
	*reported = permille;
	options->progress(options->progress_arg, permille);
}

static void drive(struct gp_sim *sim, struct gp_engine *engine, uint64_t end_ns,
                  const struct gp_run_options *options)
{
	uint64_t now_ns = gp_sim_advance(sim, 0);
	unsigned reported = 0;
	bool rescan;

	for (;;) {
		uint64_t to_ns = gp_engine_next_ns(engine);

		if (to_ns <= now_ns) {
			gp_engine_step(engine, now_ns);
			continue;
		}
		report_progress(options, now_ns, end_ns, &reported);
		if (now_ns >= end_ns)
			return;
		now_ns = gp_sim_advance(sim, to_ns < end_ns ? to_ns : end_ns);
		if (gp_sim_take_signal(sim, &rescan))
			gp_engine_trigger(engine, rescan);
	}
}

/* What each task gets done with the device to itself: the measure of what sharing costs it. */
static int run_alone(const struct gp_scenario *s, uint32_t task, uint64_t *work_ns)
{
	struct gp_sim_config config = {
		.device = s->device,
		.task = &s->task[task],
		.ntasks = 1,
		.seed = s->seed,
		.first_stream = task, /* the same arrivals as in company */
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

/* Once for all policies. */
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
			r = run_alone(s, i, &s->alone_ns[i]);
	return r;
}

static void collect(const struct gp_scenario *s, const struct gp_sim *sim,
                    const struct gp_engine *engine, struct gp_run *run)
{
	const struct gp_ejection *ejection = gp_engine_ejection(engine);

	run->device = *gp_sim_totals(sim);
	run->ejections = gp_engine_stats(engine)->ejections;
	if (ejection)
		memcpy(run->ejected, ejection->text, sizeof run->ejected);
	for (uint32_t i = 0; i < s->ntasks; i++) {
		const struct gp_sim_result *result = gp_sim_result(sim, i);
		struct gp_run_task *t = &run->task[i];

		t->alone_ns = s->alone_ns[i];
		t->finished = result->finished;
		t->left = result->left;
		t->work_ns = result->work_ns;
		t->has_response = result->response.count != 0;
		t->p50_ns = gp_hist_quantile(&result->response, 500000);
		t->p99_ns = gp_hist_quantile(&result->response, 990000);
		t->p999_ns = gp_hist_quantile(&result->response, 999000);
		t->max_ns = result->response.max;
	}
}

int gp_scenario_run(struct gp_scenario *s, const struct gp_policy_choice *policy,
                    const struct gp_run_options *options, struct gp_run *run, struct gp_error *err)
{
	struct gp_sim_config config = {
		.device = s->device, .task = s->task, .ntasks = s->ntasks, .seed = s->seed};
	struct observer o = {.scenario = s, .options = options, .run = run, .running = -1};
	struct gp_engine_config engine_config = {.classify = classify, .arg = &o};
	struct gp_engine *engine = NULL;
	struct gp_sim *sim = NULL;
	int r;

	*run = (struct gp_run){
		.policy = policy->ops, .duration_ns = s->duration_ns, .ntasks = s->ntasks};
	run->task = calloc(s->ntasks ? s->ntasks : 1, sizeof *run->task);
	o.ready = calloc(s->ntasks ? s->ntasks : 1, sizeof *o.ready);
	r = run->task && o.ready ? measure_alone(s) : -ENOMEM;
	if (!r)
		r = gp_sim_new(&config, &sim);
	if (r)
		goto cleanup;
	engine_config.gpu = gp_sim_gpu(sim);
	for (uint32_t i = 0; i < s->ntasks; i++)
		engine_config.brackets |= s->task[i].bracket;
	gp_sim_set_watch(sim, observe, &o);
	r = gp_engine_new(&engine_config, &engine);
	o.engine = engine;
	if (!r)
		r = gp_engine_set_policy(engine, 0, policy, err);
	if (r)
		goto cleanup;
	drive(sim, engine, s->duration_ns, options);
	gp_sim_finish(sim, s->duration_ns);
	if (o.inverted)
		run->inversion_ns += s->duration_ns - o.since_ns;
	collect(s, sim, engine, run);
	gp_sim_set_watch(sim, NULL, NULL); /* freeing the engine puts tasks back: not part of it */
cleanup:
	if (r) {
		gp_fail(err, r, "the simulation cannot run: %s", gp_error_name(r));
		gp_run_free(run);
	}
	gp_engine_free(engine);
	gp_sim_free(sim);
	free(o.ready);
	return r;
}

void gp_run_free(struct gp_run *run)
{
	free(run->task);
	run->task = NULL;
}
