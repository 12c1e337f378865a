/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/sim/policy_runs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli/cli.h"

static bool counts(const struct gp_tails *t, uint32_t task)
{
	enum gp_sim_load load = t->scenario->task[task].load;

	if (t->lc_only)
		return t->scenario->attr[task].class == GP_LATENCY_CRITICAL;
	return load != GP_LOAD_CLOSED && load != GP_LOAD_IDLE;
}

/* Latency-critical tasks count. Without any, all tasks at which requests arrive count. */
static void begin_tails(struct gp_tails *t, const struct gp_scenario *scenario)
{
	*t = (struct gp_tails){.scenario = scenario, .devices = 1};
	for (uint32_t i = 0; i < scenario->ntasks; i++)
		t->lc_only |= scenario->attr[i].class == GP_LATENCY_CRITICAL;
	for (uint32_t i = 0; i < scenario->ntasks; i++) {
		if (!counts(t, i))
			continue;
		if (t->n < GP_TAILS)
			t->task[t->n++] = i;
		else
			t->more++;
	}
}

static void watch_tails(struct gp_tails *t, const struct gp_sim_event *event)
{
	uint64_t took_ns = event->now_ns - event->arrival_ns;

	if (event->device >= t->devices)
		t->devices = event->device + 1;
	if (event->what != GP_SIM_REQUEST || !counts(t, event->task))
		return;
	if (!t->any || took_ns > t->slow_end_ns - t->slow_arrival_ns) {
		t->any = true;
		t->slow_device = event->device;
		t->slow_task = event->task;
		t->slow_arrival_ns = event->arrival_ns;
		t->slow_end_ns = event->now_ns;
	}
}

int gp_runs_add(struct gp_runs *runs, const char *text, struct gp_error *err)
{
	unsigned i = runs->n;
	int r;

	if (i == GP_RUNS_MAX)
		return gp_fail(err, -EINVAL, "too many policies: at most %d can be compared",
			       GP_RUNS_MAX);
	r = gp_policy_parse(text, &runs->policy[i], err);
	if (r)
		return r;
	runs->label[i] = strdup(text);
	if (!runs->label[i])
		return gp_fail(err, -ENOMEM, "no memory for policy %s", text);
	runs->n++;
	return 0;
}

/* Shown if a run takes longer than a second. */
struct progress {
	const char *label;
	uint64_t begin_ns;
};

static void show_progress(void *arg, unsigned permille)
{
	const struct progress *p = arg;

	if (gp_monotonic_ns() - p->begin_ns >= GP_NS_PER_S)
		gp_progress("%s: %u %%", p->label, permille / 10);
}

/* The receivers of simulation events; each may be NULL. */
struct watchers {
	struct gp_trace *trace;
	struct gp_tails *tails;
};

static void watch(void *arg, const struct gp_sim_event *event)
{
	struct watchers *w = arg;

	if (w->trace)
		gp_trace_watch(w->trace, event);
	if (w->tails)
		watch_tails(w->tails, event);
}

static int run_one(struct gp_runs *runs, unsigned i, struct gp_scenario *scenario,
		   const struct watchers *watchers, struct progress *progress, struct gp_error *err)
{
	struct watchers w = *watchers;
	struct gp_run_options options = {.watch = w.trace || w.tails ? watch : NULL,
					 .watch_arg = &w,
					 .progress = show_progress,
					 .progress_arg = progress};
	int r = 0;

	progress->label = runs->label[i];
	if (w.tails) {
		w.tails = &runs->tails[i];
		begin_tails(w.tails, scenario);
	}
	if (w.trace)
		r = gp_trace_begin(w.trace, scenario, runs->label[i]);
	if (r)
		gp_fail(err, r, "no memory for the trace");
	else
		r = gp_scenario_run(scenario, &runs->policy[i], &options, &runs->run[i], err);
	if (w.trace)
		gp_trace_end(w.trace);
	return r;
}

int gp_runs_simulate(struct gp_runs *runs, struct gp_scenario *scenario, struct gp_trace *trace,
		     bool with_tails, struct gp_error *err)
{
	struct progress progress = {.begin_ns = gp_monotonic_ns()};
	struct watchers watchers = {trace, with_tails ? runs->tails : NULL};
	unsigned ran = 0;
	int r = 0;

	for (unsigned i = 0; i < runs->n && !r; i++) {
		struct gp_error why = {0};

		r = run_one(runs, i, scenario, &watchers, &progress, &why);
		if (r)
			*err = why;
		if (r == -ENOTSUP) { /* compare the other policies without it */
			runs->cannot[i] = strdup(why.text);
			r = runs->cannot[i] ? 0 : -ENOMEM;
		} else {
			ran++;
		}
	}
	gp_progress_end();
	return r || ran ? r : err->code;
}

struct gp_report gp_runs_report(const struct gp_runs *runs, const struct gp_scenario *scenario)
{
	return (struct gp_report){.scenario = scenario,
				  .run = runs->run,
				  .label = (const char *const *)runs->label,
				  .cannot = (const char *const *)runs->cannot,
				  .nruns = runs->n};
}

void gp_runs_free(struct gp_runs *runs)
{
	for (unsigned i = 0; i < runs->n; i++) {
		gp_run_free(&runs->run[i]);
		free(runs->label[i]);
		free(runs->cannot[i]);
	}
	runs->n = 0;
}
