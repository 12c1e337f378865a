/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/sim/sweep.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli/cli.h"
#include "cli/lib/grid.h"
#include "cli/sim/sim_report.h"
#include "yaml/value.h"

/* Parses --sweep NAME=A:B:N into values. Uses integer arithmetic, so that 0.1 stays 0.1. */
#define SCALE 1000000000ull /* a number without a unit is stored multiplied by this */

/* A or B. */
struct end {
	bool is_time;
	uint64_t value; /* ns, or SCALE times the number */
	uint64_t step;  /* value of 1 in its last digit */
};

static uint64_t unit_of(const char *unit)
{
	uint64_t ns;
	char one[16];

	if (!*unit)
		return SCALE;
	snprintf(one, sizeof one, "1%s", unit);
	return gp_value_duration(one, &ns) ? 0 : ns;
}

static int parse_end(const char *text, struct end *end)
{
	const char *unit = text + strspn(text, "0123456789."), *point = strchr(text, '.');
	const char *rest = "";
	int r;

	end->is_time = *unit != '\0';
	end->step = unit_of(unit);
	if (end->is_time)
		r = gp_value_duration(text, &end->value);
	else
		r = gp_value_decimal(text, SCALE, &end->value, &rest);
	if (r || !end->step || (!end->is_time && *rest))
		return -EINVAL;
	for (const char *digit = point ? point + 1 : unit; digit < unit && end->step > 1; digit++)
		end->step /= 10;
	return 0;
}

static uint64_t between(const struct end *a, const struct end *b, unsigned i, unsigned n)
{
	uint64_t step = a->step < b->step ? a->step : b->step;
	__int128 from = a->value, to = b->value, value = from + (to - from) * i / (n - 1);

	if (!i || i == n - 1) /* A and B are not rounded */
		return i ? b->value : a->value;
	return (uint64_t)((value + step / 2) / step * step);
}

static void fill_values(struct gp_sweep *s, const struct end *a, const struct end *b, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		uint64_t value = between(a, b, i, n);
		struct gp_value_text shown = a->is_time ? gp_value_show_duration(value)
							: gp_value_show_decimal(value, SCALE);

		if (s->n && !strcmp(s->value[s->n - 1], shown.text))
			continue;
		memcpy(s->value[s->n++], shown.text, sizeof shown.text);
	}
}

static int wrong(const char *text, struct gp_error *err)
{
	return gp_fail(err, -EINVAL,
		       "--sweep takes NAME=A:B:N, as inference.rate=100:1000:10 or "
		       "device.switch=50us:500us:4, not '%s'",
		       text);
}

static int parse_values(struct gp_sweep *s, char *values, const char *text, struct gp_error *err)
{
	char *from = strsep(&values, ":"), *to = strsep(&values, ":"), *count = values;
	struct end a, b;
	uint64_t n;

	if (!to || !count || parse_end(from, &a) || parse_end(to, &b) ||
	    !gp_cli_number(count, UINT64_MAX, &n))
		return wrong(text, err);
	if (a.is_time != b.is_time)
		return gp_fail(err, -EINVAL, "--sweep %s: either both ends need a unit or neither",
			       s->name);
	if (n < 2 || n > GP_SWEEP_MAX)
		return gp_fail(err, -EINVAL,
			       "--sweep %s: the number of values must be from 2 to %d, not %s",
			       s->name, GP_SWEEP_MAX, count);
	if (a.value == b.value)
		return gp_fail(err, -EINVAL, "--sweep %s: the two ends are the same", s->name);
	fill_values(s, &a, &b, (unsigned)n);
	return 0;
}

int gp_sweep_parse(struct gp_sweep *s, const char *text, struct gp_error *err)
{
	const char *equals = strchr(text, '='), *dot;
	size_t length = equals ? (size_t)(equals - text) : 0;
	char *values;
	int r;

	*s = (struct gp_sweep){0};
	if (!length || length >= sizeof s->name)
		return wrong(text, err);
	memcpy(s->name, text, length);
	dot = strrchr(s->name, '.');
	if (dot && ((size_t)(dot - s->name) >= sizeof s->of || dot == s->name))
		return wrong(text, err);
	if (dot)
		memcpy(s->of, s->name, (size_t)(dot - s->name));
	dot = dot ? dot + 1 : s->name;
	if (!*dot || strlen(dot) >= sizeof s->key)
		return wrong(text, err);
	memcpy(s->key, dot, strlen(dot));
	values = strdup(equals + 1);
	r = values ? parse_values(s, values, text, err)
		   : gp_fail(err, -ENOMEM, "no memory for --sweep");
	free(values);
	return r;
}

/* The arguments of gp_sweep_run. */
struct sweeping {
	const struct gp_sweep *sweep;
	const char *path;
	const uint64_t *seed;
	const struct gp_runs *base;
	bool of_policy; /* the swept value is a parameter of a policy, not of the scenario */
	struct gp_sweep_result *result;
};

static bool is_swept(const struct sweeping *s, unsigned series)
{
	return !s->of_policy || !strcmp(s->base->policy[series].ops->name, s->sweep->of);
}

/* Adds the policies to run for one value. A policy that does not depend on the value runs once, for
 * the first value. */
static int add_policies(const struct sweeping *s, unsigned step, struct gp_runs *runs,
			unsigned series[GP_RUNS_MAX], struct gp_error *err)
{
	char text[512];
	int r = 0;

	for (unsigned i = 0; i < s->base->n && !r; i++) {
		if (!is_swept(s, i) && step)
			continue;
		if (s->of_policy && is_swept(s, i))
			snprintf(text, sizeof text, "%s:%s=%s", s->base->label[i], s->sweep->key,
				 s->sweep->value[step]);
		else
			snprintf(text, sizeof text, "%s", s->base->label[i]);
		series[runs->n] = i;
		r = gp_runs_add(runs, text, err);
	}
	return r;
}

static int load(const struct sweeping *s, unsigned step, struct gp_scenario *scenario,
		struct gp_error *err)
{
	struct gp_scenario_change change = {
		.of = s->sweep->of, .key = s->sweep->key, .value = s->sweep->value[step]};
	int r = gp_scenario_load_changed(scenario, s->path, s->of_policy ? NULL : &change, err);

	if (!r && s->seed)
		scenario->seed = *s->seed;
	return r;
}

static struct gp_sweep_point *add_point(struct gp_sweep_result *result)
{
	if (result->n == result->capacity) {
		unsigned capacity = result->capacity ? 2 * result->capacity : 64;
		struct gp_sweep_point *point = reallocarray(result->point, capacity, sizeof *point);

		if (!point)
			return NULL;
		result->point = point;
		result->capacity = capacity;
	}
	return &result->point[result->n++];
}

static void fill_point(struct gp_sweep_point *p, const struct gp_report *report, unsigned i)
{
	const struct gp_run *run = &report->run[i];

	p->ran = !gp_report_cannot(report, i);
	if (!p->ran)
		return;
	p->lc = gp_compare_lc(report, i);
	p->ejected = run->ejections != 0;
	p->has_be = gp_compare_be_work(report, i, &p->be_work);
	p->switch_pct = 100 * (double)run->device.switch_ns / (double)run->duration_ns;
}

static void add_json(struct json_object *list, const struct gp_sweep_point *p,
		     struct json_object *run)
{
	struct json_object *o = gp_list_object(list);

	json_object_object_add(o, "value", p->value[0] ? json_object_new_string(p->value) : NULL);
	json_object_object_add(o, "run", run);
}

static int keep(const struct sweeping *s, unsigned step, const struct gp_report *report,
		const unsigned series[], struct gp_error *err)
{
	for (unsigned i = 0; i < report->nruns; i++) {
		struct gp_sweep_point *p = add_point(s->result);

		if (!p)
			return gp_fail(err, -ENOMEM, "no memory for the sweep");
		*p = (struct gp_sweep_point){.series = series[i]};
		if (is_swept(s, series[i]))
			memcpy(p->value, s->sweep->value[step], sizeof p->value);
		fill_point(p, report, i);
		add_json(s->result->json, p, gp_run_to_json(report, i));
	}
	return 0;
}

static int run_step(const struct sweeping *s, unsigned step, struct gp_error *err)
{
	struct gp_runs *runs = calloc(1, sizeof *runs);
	unsigned series[GP_RUNS_MAX] = {0};
	struct gp_scenario scenario;
	struct gp_report report;
	int r;

	if (!runs)
		return gp_fail(err, -ENOMEM, "no memory for the sweep");
	r = add_policies(s, step, runs, series, err);
	if (!r)
		r = load(s, step, &scenario, err);
	if (r)
		goto cleanup;
	memcpy(s->result->scenario, scenario.name, sizeof s->result->scenario);
	s->result->duration_ns = scenario.duration_ns;
	s->result->seed = scenario.seed;
	r = gp_runs_simulate(runs, &scenario, NULL, false, err);
	report = gp_runs_report(runs, &scenario);
	if (!r)
		r = keep(s, step, &report, series, err);
	gp_scenario_free(&scenario);
cleanup:
	gp_runs_free(runs);
	free(runs);
	return r;
}

static int find_policy(struct sweeping *s, struct gp_error *err)
{
	if (!gp_policy_find(s->sweep->of))
		return 0;
	s->of_policy = true;
	for (unsigned i = 0; i < s->base->n; i++)
		if (is_swept(s, i))
			return 0;
	return gp_fail(err, -EINVAL,
		       "--sweep changes policy %s, which is not in the comparison; add it with "
		       "--policy",
		       s->sweep->of);
}

int gp_sweep_run(const struct gp_sweep *sweep, const char *path, const uint64_t *seed,
		 const struct gp_runs *base, struct gp_sweep_result *result, struct gp_error *err)
{
	struct sweeping s = {
		.sweep = sweep, .path = path, .seed = seed, .base = base, .result = result};
	int r;

	*result = (struct gp_sweep_result){
		.sweep = sweep, .nseries = base->n, .series = (const char *const *)base->label};
	result->json = json_object_new_array();
	r = find_policy(&s, err);
	for (unsigned i = 0; i < sweep->n && !r; i++) {
		r = run_step(&s, i, err);
		if (r)
			gp_error_prefix(err, "--sweep %s=%s", sweep->name, sweep->value[i]);
	}
	return r;
}

void gp_sweep_free(struct gp_sweep_result *result)
{
	free(result->point);
	json_object_put(result->json);
	result->point = NULL;
	result->json = NULL;
}

static void add_time(struct gp_grid *grid, bool known, uint64_t ns)
{
	gp_grid_cell_if(grid, known, "%s", gp_cli_duration(ns).text);
}

static void add_row(struct gp_grid *grid, const struct gp_sweep_result *r,
		    const struct gp_sweep_point *p)
{
	gp_grid_text(grid, p->value[0] ? p->value : NULL);
	gp_grid_text(grid, r->series[p->series]);
	add_time(grid, p->lc.has_response, p->lc.p50_ns);
	add_time(grid, p->lc.has_response, p->lc.p99_ns);
	add_time(grid, p->lc.has_response, p->lc.p999_ns);
	gp_grid_cell_if(grid, p->lc.has_response, "%llu", (unsigned long long)p->lc.left);
	gp_grid_cell_if(grid, p->lc.has_deadline, "%llu", (unsigned long long)p->lc.missed);
	gp_grid_cell_if(grid, p->has_be, "%.1f", p->be_work);
	gp_grid_cell_if(grid, p->ran, "%.1f", p->switch_pct);
	gp_grid_text(grid, !p->ran ? "cannot run" : p->ejected ? "ejected" : NULL);
}

void gp_sweep_table(FILE *out, const struct gp_sweep_result *r)
{
	const struct gp_column columns[] = {
		{r->sweep->name, GP_COLUMN_ALWAYS},
		{"policy", GP_COLUMN_LEFT | GP_COLUMN_ALWAYS},
		{"lc p50", 0},
		{"lc p99", 0},
		{"lc p99.9", 0},
		{"left over", 0},
		{"missed", 0},
		{"be work %", 0},
		{"switching %", 0},
		{NULL, GP_COLUMN_LEFT},
	};
	struct gp_grid grid;

	fprintf(out, "%s, %s simulated, seed %llu\n\n", r->scenario,
		gp_cli_duration(r->duration_ns).text, (unsigned long long)r->seed);
	gp_grid_begin(&grid, columns, sizeof columns / sizeof *columns);
	for (unsigned i = 0; i < r->n; i++)
		add_row(&grid, r, &r->point[i]);
	gp_grid_end(&grid, out);
}

void gp_sweep_json(const struct gp_sweep_result *r)
{
	struct json_object *o = json_object_new_object();

	gp_field_put_text(o, "scenario", r->scenario);
	gp_field_put(o, "seed", r->seed);
	gp_field_put_text(o, "sweep", r->sweep->name);
	json_object_object_add(o, "points", json_object_get(r->json));
	gp_print_json_once(o);
}
