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
#include "config.h"

#define RUNS_MAX 32

static struct {
	const char *path;
	bool json;
	bool has_seed;
	uint64_t seed;
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
	case ARGP_KEY_ARG:
		if (env.path)
			argp_error(state, "one scenario at a time; '%s' is one too many", arg);
		env.path = arg;
		break;
	case ARGP_KEY_END:
		if (!env.path)
			argp_error(state, "which scenario? A file, or a name such as h200-corun");
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

static int run_all(struct gp_scenario *scenario, struct gp_run *runs, struct gp_error *err)
{
	struct progress progress = {.begin_ns = gp_now_ns(&gp_clock_monotonic)};
	struct gp_run_options run_options = {.progress = isatty(2) ? show_progress : NULL,
	                                     .progress_arg = &progress};
	unsigned ran = 0;
	int r = 0;

	for (unsigned i = 0; i < env.nruns && !r; i++) {
		struct gp_error why = {0};

		progress.label = env.label[i];
		r = gp_scenario_run(scenario, &env.policy[i], &run_options, &runs[i], &why);
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
		       "  gpreempt sim my.yaml --policy none,priority:quantum=50 --seed 7\n",
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
	r = run_all(&scenario, runs, &err);
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
