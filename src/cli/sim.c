/* SPDX-License-Identifier: Apache-2.0 */
/* gpreempt sim: policies side by side on a scenario, in virtual time. */
#include <argp.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/cli.h"
#include "cli/report.h"
#include "cli/trace.h"
#include "config.h"

#define RUNS_MAX 32

static struct {
	const char *path;
	const char *trace;
	bool json;
	bool has_seed, has_from, has_for;
	uint64_t seed;
	uint64_t from_ns, for_ns; /* the window of pictures and traces */
	unsigned nruns;
	char *label[RUNS_MAX];
	struct gp_policy_choice policy[RUNS_MAX];
	char *cannot[RUNS_MAX]; /* why it cannot run on the scenario's device */
} env;

static const struct argp_option options[] = {
	{"policy", 'p', "NAME[:PARAM=VALUE...],...", 0,
         "Policies to compare, as none,priority:quantum=50 (default: none,priority)", 0},
	{"all", 'a', NULL, 0, "All policies", 0},
	{"seed", 's', "N", 0, "Another seed than the scenario's", 0},
	{"json", 'j', NULL, 0, "Write JSON", 0},
	{"trace", 't', "FILE.json", 0, "Write a trace that Perfetto and Chrome show", 0},
	{"from", 'F', "TIME", 0, "Where the trace begins, as 1.5s (default: the beginning)", 0},
	{"for", 'f', "TIME", 0, "How much of it, as 20ms (default: all)", 0},
	{0},
};

static void add_policy(struct argp_state *state, const char *text)
{
	struct gp_error err = {0};

	if (env.nruns == RUNS_MAX)
		argp_error(state, "at most %d policies at a time", RUNS_MAX);
	if (gp_policy_parse(text, &env.policy[env.nruns], &err))
		argp_error(state, "%s", err.text);
	env.label[env.nruns] = strdup(text);
	if (!env.label[env.nruns++])
		argp_failure(state, GP_EXIT_FAILED, ENOMEM, "policy");
}

static void add_policies(struct argp_state *state, const char *list)
{
	char *copy = strdup(list), *rest = copy, *text;

	if (!copy)
		argp_failure(state, GP_EXIT_FAILED, ENOMEM, "policy");
	while ((text = strsep(&rest, ",")))
		add_policy(state, text);
	free(copy);
}

static void parse_time(struct argp_state *state, const char *option, const char *arg, bool *has,
                       uint64_t *ns)
{
	*has = gp_cli_duration_parse(arg, ns);
	if (!*has)
		argp_error(state, "%s takes a time as 20ms or 1.5s, not '%s'", option, arg);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	switch (key) {
	case 'p': add_policies(state, arg); break;
	case 'a':
		for (const struct gp_policy_ops *const *p = gp_policies; *p; p++)
			add_policy(state, (*p)->name);
		break;
	case 's':
		env.has_seed = gp_cli_number(arg, UINT64_MAX, &env.seed);
		if (!env.has_seed)
			argp_error(state, "--seed takes a whole number, not '%s'", arg);
		break;
	case 'j': env.json = true; break;
	case 't': env.trace = arg; break;
	case 'F': parse_time(state, "--from", arg, &env.has_from, &env.from_ns); break;
	case 'f': parse_time(state, "--for", arg, &env.has_for, &env.for_ns); break;
	case ARGP_KEY_ARG:
		if (env.path)
			argp_error(state, "one scenario at a time; '%s' is one too many", arg);
		env.path = arg;
		break;
	case ARGP_KEY_END:
		if (!env.path)
			argp_error(state, "which scenario? A file, or a name such as h200-corun");
		if ((env.has_from || env.has_for) && !env.trace)
			argp_error(state, "--from and --for go with --trace");
		if (!env.nruns)
			add_policies(state, "none,priority");
		break;
	default: return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

/* A plain name may also be one of the scenarios that came with the program. */
static int load(struct gp_scenario *scenario, struct gp_error *err)
{
	static const char *const folders[] = {"scenarios", GP_SCENARIO_DIR};
	bool plain = !strchr(env.path, '/') && access(env.path, F_OK);
	char path[512];

	for (size_t i = 0; plain && i < sizeof folders / sizeof *folders; i++) {
		snprintf(path, sizeof path, "%s/%s%s", folders[i], env.path,
		         strstr(env.path, ".yaml") ? "" : ".yaml");
		if (!access(path, F_OK))
			return gp_scenario_load(scenario, path, err);
	}
	if (plain)
		return gp_fail(err, -ENOENT, "there is no scenario %s here, in %s or in %s",
		               env.path, folders[0], folders[1]);
	return gp_scenario_load(scenario, env.path, err);
}

/* A line on the terminal for those who wait longer than a second. */
struct progress {
	const char *label;
	uint64_t begin_ns;
	bool shown;
};

static void show_progress(void *arg, unsigned permille)
{
	struct progress *p = arg;

	if (gp_now_ns(&gp_clock_monotonic) - p->begin_ns < GP_NS_PER_S)
		return;
	fprintf(stderr, "\r%s: %u %%  ", p->label, permille / 10);
	p->shown = true;
}

/* One run with everybody who wants to see it. */
static int run_one(struct gp_scenario *scenario, unsigned i, struct gp_run_options *run_options,
                   struct gp_trace *trace, struct gp_run *run, struct gp_error *err)
{
	int r;

	if (!env.trace)
		return gp_scenario_run(scenario, &env.policy[i], run_options, run, err);
	r = gp_trace_begin(trace, scenario, env.label[i]);
	if (r) {
		gp_fail(err, r, "no memory for the trace");
	} else {
		run_options->watch = gp_trace_watch;
		run_options->watch_arg = trace;
		r = gp_scenario_run(scenario, &env.policy[i], run_options, run, err);
	}
	gp_trace_end(trace);
	return r;
}

static int run_all(struct gp_scenario *scenario, struct gp_trace *trace, struct gp_run *runs,
                   struct gp_error *err)
{
	struct progress progress = {.begin_ns = gp_now_ns(&gp_clock_monotonic)};
	struct gp_run_options run_options = {.progress = isatty(2) ? show_progress : NULL,
	                                     .progress_arg = &progress};
	unsigned ran = 0;
	int r = 0;

	for (unsigned i = 0; i < env.nruns && !r; i++) {
		struct gp_error why = {0};

		progress.label = env.label[i];
		r = run_one(scenario, i, &run_options, trace, &runs[i], &why);
		if (r)
			*err = why;
		if (r == -ENOTSUP) { /* the others can be compared without it */
			env.cannot[i] = strdup(why.text);
			r = env.cannot[i] ? 0 : -ENOMEM;
		} else {
			ran++;
		}
	}
	if (progress.shown)
		fputs("\r\033[K", stderr);
	return r || ran ? r : err->code;
}

/* Where the trace begins and ends. -EINVAL with a sentence for a window that is not there. */
static int check_window(const struct gp_scenario *s, struct gp_error *err)
{
	char from[32], end[32];

	if (env.from_ns >= s->duration_ns)
		return gp_fail(err, -EINVAL, "--from %s is behind the end of the scenario, %s",
		               gp_cli_duration(from, sizeof from, env.from_ns),
		               gp_cli_duration(end, sizeof end, s->duration_ns));
	if (env.has_for && !env.for_ns)
		return gp_fail(err, -EINVAL, "--for takes a time longer than nothing");
	return 0;
}

static int simulate(struct gp_scenario *scenario, struct gp_run *runs, struct gp_error *err)
{
	uint64_t to_ns = env.has_for ? env.from_ns + env.for_ns : GP_NEVER;
	struct gp_trace trace = {0};
	int r = check_window(scenario, err);

	if (!r && env.trace)
		r = gp_trace_open(&trace, env.trace, env.from_ns, to_ns, err);
	if (!r)
		r = run_all(scenario, &trace, runs, err);
	if (gp_trace_close(&trace, err) && !r)
		r = err->code;
	return r;
}

static int run(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.args_doc = "SCENARIO.yaml",
		.doc = "Run policies side by side on a simulated GPU, in virtual time.\v"
		       "Examples:\n"
		       "  gpreempt sim scenarios/h200-corun.yaml\n"
		       "  gpreempt sim h200-two-be --all --json\n"
		       "  gpreempt sim my.yaml --policy none,priority:quantum=50 --seed 7\n"
		       "  gpreempt sim h200-corun --trace trace.json --from 5s --for 50ms\n",
	};
	struct gp_run runs[RUNS_MAX] = {0};
	struct gp_error err = {0};
	struct gp_scenario scenario;
	int r;

	argp_parse(&argp, argc, argv, 0, NULL, NULL);
	r = load(&scenario, &err);
	if (r)
		return gp_cli_fail(&err);
	if (env.has_seed)
		scenario.seed = env.seed;
	r = simulate(&scenario, runs, &err);
	if (r) {
		r = gp_cli_fail(&err);
	} else {
		struct gp_report report = {.scenario = &scenario,
		                           .run = runs,
		                           .label = (const char *const *)env.label,
		                           .cannot = (const char *const *)env.cannot,
		                           .nruns = env.nruns};

		(env.json ? gp_report_json : gp_report_table)(stdout, &report);
	}
	for (unsigned i = 0; i < env.nruns; i++) {
		gp_run_free(&runs[i]);
		free(env.label[i]);
		free(env.cannot[i]);
	}
	gp_scenario_free(&scenario);
	return r;
}

const struct gp_verb gp_verb_sim = {
	.name = "sim",
	.summary = "policies side by side on a simulated GPU",
	.run = run,
};
