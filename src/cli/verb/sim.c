/* SPDX-License-Identifier: Apache-2.0 */
/* gpreempt sim: runs policies side by side on a scenario, in virtual time. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/cli.h"
#include "cli/lib/options.h"
#include "cli/lib/out_file.h"
#include "cli/sim/sim_page.h"
#include "cli/sim/policy_runs.h"
#include "cli/sim/sweep.h"
#include "build_config.h"

static struct {
	const char *path;
	const char *trace, *plot;
	bool all;
	bool sweeps;
	struct gp_sweep sweep;
	enum gp_draw_format format; /* of the plot */
	bool json;
	bool has_seed;
	uint64_t seed;
	struct gp_sim_page_window window; /* of pictures and traces */
	struct gp_runs runs;
} env;

static void add_policy(struct argp_state *state, const char *text)
{
	struct gp_error err = {0};

	if (gp_runs_add(&env.runs, text, &err))
		argp_error(state, "%s", err.text);
}

static void add_policies(struct argp_state *state, char *list)
{
	char *text;

	while ((text = strsep(&list, ",")))
		add_policy(state, text);
}

static void parse_sweep(struct argp_state *state, char *arg)
{
	struct gp_error err = {0};

	if (env.sweeps)
		argp_error(state, "--sweep was given twice; one sweep at a time");
	env.sweeps = true;
	if (gp_sweep_parse(&env.sweep, arg, &err))
		argp_error(state, "%s", err.text);
}

/* The policy was given without parameters. */
static bool is_added(const char *policy)
{
	for (unsigned i = 0; i < env.runs.n; i++)
		if (!strcmp(env.runs.label[i], policy))
			return true;
	return false;
}

static void check_options(struct argp_state *state)
{
	if (!env.path)
		argp_error(state,
			   "a scenario is missing: give a file, or a name such as h200-corun");
	if ((env.window.has_from || env.window.has_for) && !env.trace && !env.plot)
		argp_error(state, "--from and --for need --plot or --trace");
	if (env.sweeps && (env.trace || env.window.has_from || env.window.has_for))
		argp_error(state, "--sweep cannot be combined with --trace, --from or --for");
	for (const struct gp_policy_ops *const *p = gp_policies; env.all && *p; p++)
		if (!is_added((*p)->name))
			add_policy(state, (*p)->name);
	if (!env.runs.n) {
		add_policy(state, "none");
		add_policy(state, "priority");
	}
}

static void take_scenario(struct argp_state *state, char *arg)
{
	if (env.path)
		argp_error(state, "one scenario at a time; '%s' is a second one", arg);
	env.path = arg;
}

static const struct gp_option options[] = {
	{"policy", 'p', "NAME[:PARAM=VALUE...],...",
	 "Policies to compare, as none,priority:quantum=50 (default: none,priority)",
	 .call = add_policies},
	{"all", 'a', NULL, "All policies", .flag = &env.all},
	{"seed", 's', "N", "Use seed N instead of the scenario's", .number = &env.seed,
	 .max = UINT64_MAX, .given = &env.has_seed},
	{"json", 'j', NULL, "Write JSON", .flag = &env.json},
	{"plot", 'P', "FILE.svg|.png",
	 "Draw the use of the GPU over time and the response times; with --sweep, best-effort "
	 "work against response times",
	 .text = &env.plot},
	{"sweep", 'w', "NAME=A:B:N",
	 "Try N values from A to B of a policy's parameter, as priority.quantum, or of a key of "
	 "the scenario, as inference.rate or device.switch",
	 .call = parse_sweep},
	{"trace", 't', "FILE.json", "Write a trace for Perfetto or Chrome", .text = &env.trace},
	{"from", 'F', "TIME",
	 "Start of picture and trace, as 1.5s (default: the picture shows the slowest request, "
	 "the trace the whole run)",
	 .time_ns = &env.window.from_ns, .given = &env.window.has_from},
	{"for", 'f', "TIME", "Length of picture and trace, as 20ms", .time_ns = &env.window.for_ns,
	 .given = &env.window.has_for},
	{0},
};

/* A name without a slash may also be an installed scenario, with or without ".yaml". */
static int find_scenario(char *path, size_t size, struct gp_error *err)
{
	static const char *const folders[] = {"scenarios", GP_SCENARIO_DIR};
	bool plain = !strchr(env.path, '/') && access(env.path, F_OK);

	for (size_t i = 0; plain && i < sizeof folders / sizeof *folders; i++) {
		snprintf(path, size, "%s/%s%s", folders[i], env.path,
			 strstr(env.path, ".yaml") ? "" : ".yaml");
		if (!access(path, F_OK))
			return 0;
	}
	if (plain)
		return gp_fail(err, -ENOENT, "scenario %s not found in this folder, in %s or in %s",
			       env.path, folders[0], folders[1]);
	snprintf(path, size, "%s", env.path);
	return 0;
}

/* -EINVAL and a message if one output would overwrite another file of this run. */
static int check_outputs(const char *path, struct gp_error *err)
{
	if (env.plot && env.trace && gp_out_same(env.plot, env.trace))
		return gp_fail(err, -EINVAL, "--plot and --trace need a file each, not both %s",
			       env.plot);
	if ((env.plot && gp_out_same(env.plot, path)) ||
	    (env.trace && gp_out_same(env.trace, path)))
		return gp_fail(err, -EINVAL, "%s is the scenario; the %s needs a file of its own",
			       path, env.plot && gp_out_same(env.plot, path) ? "picture" : "trace");
	return 0;
}

/* -EINVAL and a message if --from or --for name no part of the run. */
static int check_window(const struct gp_scenario *s, struct gp_error *err)
{
	if (env.window.from_ns >= s->duration_ns)
		return gp_fail(err, -EINVAL, "--from %s is after the end of the scenario at %s",
			       gp_cli_duration(env.window.from_ns).text,
			       gp_cli_duration(s->duration_ns).text);
	if (env.window.has_for && !env.window.for_ns)
		return gp_fail(err, -EINVAL, "--for must be longer than 0");
	return 0;
}

/* Called before the simulation, which may take long, so that a write error is reported at once. */
static int open_plot(struct gp_out_file *plot, struct gp_error *err)
{
	int r = gp_draw_format_of(env.plot, &env.format, err);

	return r ? r : gp_out_open(plot, env.plot);
}

/* `r` is the result so far. A failed run leaves no picture behind. */
static int close_plot(struct gp_out_file *plot, int r, struct gp_error *err)
{
	if (r)
		gp_out_drop(plot);
	else
		r = gp_out_keep(plot);
	if (r && env.plot)
		gp_fail(err, r, "cannot write the picture to %s: %s", env.plot, gp_error_name(r));
	return r;
}

static int draw(FILE *out, struct gp_scenario *scenario, struct gp_error *err)
{
	struct gp_report report = gp_runs_report(&env.runs, scenario);

	return gp_sim_page_runs(out, env.format, &report, scenario, env.runs.policy, env.runs.tails,
				&env.window, err);
}

static int simulate(struct gp_scenario *scenario, struct gp_error *err)
{
	const struct gp_sim_page_window *w = &env.window;
	struct gp_trace trace = {0};
	struct gp_out_file plot = {0};
	int r = check_window(scenario, err);

	if (!r && env.plot)
		r = open_plot(&plot, err);
	if (!r && env.trace)
		r = gp_trace_open(&trace, env.trace, w->from_ns,
				  w->has_for ? w->from_ns + w->for_ns : GP_NEVER, err);
	if (!r)
		r = gp_runs_simulate(&env.runs, scenario, env.trace ? &trace : NULL, env.plot, err);
	if (r)
		gp_trace_file_drop(&trace.file);
	else
		r = gp_trace_file_close(&trace.file, err);
	if (!r && env.plot)
		r = draw(plot.out, scenario, err);
	return close_plot(&plot, r, err);
}

static int compare(const char *path, struct gp_error *err)
{
	struct gp_scenario scenario;
	int r = gp_scenario_load(&scenario, path, err);

	if (r)
		return r;
	if (env.has_seed)
		scenario.seed = env.seed;
	r = simulate(&scenario, err);
	if (!r) {
		struct gp_report report = gp_runs_report(&env.runs, &scenario);

		if (env.json)
			gp_report_json(&report);
		else
			gp_report_table(stdout, &report);
	}
	gp_scenario_free(&scenario);
	return r;
}

static int sweep(const char *path, struct gp_error *err)
{
	struct gp_sweep_result result = {0};
	struct gp_out_file plot = {0};
	int r = env.plot ? open_plot(&plot, err) : 0;

	if (!r)
		r = gp_sweep_run(&env.sweep, path, env.has_seed ? &env.seed : NULL, &env.runs,
				 &result, err);
	if (!r && env.plot)
		r = gp_sweep_picture(plot.out, env.format, &result, err);
	r = close_plot(&plot, r, err);
	if (!r && env.json)
		gp_sweep_json(&result);
	else if (!r)
		gp_sweep_table(stdout, &result);
	gp_sweep_free(&result);
	return r;
}

static int run(struct gp_error *err)
{
	char path[512];
	int r = find_scenario(path, sizeof path, err);

	if (!r)
		r = check_outputs(path, err);
	if (!r)
		r = (env.sweeps ? sweep : compare)(path, err);
	gp_runs_free(&env.runs);
	return r;
}

const struct gp_verb gp_verb_sim = {
	.name = "sim",
	.summary = "policies side by side on a simulated GPU",
	.arguments = "SCENARIO.yaml",
	.argument = take_scenario,
	.options = options,
	.check = check_options,
	.doc = "Run policies side by side on a simulated GPU, in virtual time.\v"
	       "Examples:\n"
	       "  gpreempt sim scenarios/h200-corun.yaml\n"
	       "  gpreempt sim h200-two-be --all --json\n"
	       "  gpreempt sim my.yaml --policy none,priority:quantum=50 --seed 7\n"
	       "  gpreempt sim h200-two-be-lc --plot two.svg\n"
	       "  gpreempt sim h200-corun --trace trace.json --from 5s --for 50ms\n"
	       "  gpreempt sim h200-corun --sweep inference.rate=100:1000:10 --plot s.svg\n",
	.run = run,
};
