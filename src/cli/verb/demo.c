/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpreempt demo: an inference service beside a training job on a simulated H200, shared by the
 * driver alone, with policy priority, and with priority and a hint. Takes a few seconds.
 */
#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/lib/options.h"
#include "cli/draw/chart.h"
#include "cli/sim/timeline.h"
#include "cli/sim/sim_report.h"

static struct {
	const char *svg;
	bool json;
	uint64_t seed;
} env = {.seed = 1};

static const struct gp_option options[] = {
	{"svg", 'o', "FILE",
	 "Write the picture to FILE (default: gpreempt-demo.svg in this folder)", .text = &env.svg},
	{"seed", 's', "N", "Seed of the random numbers (default: 1)", .number = &env.seed,
	 .max = UINT64_MAX},
	{"json", 'j', NULL, "Write JSON instead of the table and the timeline", .flag = &env.json},
	{0},
};

enum { INFERENCE, TRAINING };

/* The load with which a real H200 was measured (docs/simulator.md). */
static const struct gp_sim_task inference = {
	.name = "inference",
	.load = GP_LOAD_PERIODIC,
	.every_ns = 3 * GP_NS_PER_MS,
	.kernel_ns = 100 * GP_NS_PER_US,
	.stop_ns = GP_NEVER,
};

static const struct gp_sim_task training = {
	.name = "training",
	.load = GP_LOAD_CLOSED,
	.kernel_ns = 13600 * GP_NS_PER_US,
	.stop_ns = GP_NEVER,
};

#define HINT_NS (200 * GP_NS_PER_US)

enum { DEFAULT, PRIORITY, HINTED, ARMS };

/* One run of the comparison. */
static const struct arm {
	const char *label;
	const char *policy;
	uint64_t hint_ns;
} arms[ARMS] = {
	[DEFAULT] = {"driver's own sharing", "none", 0},
	[PRIORITY] = {"gpreempt priority", "priority", 0},
	[HINTED] = {"priority, hint 200 us ahead", "priority", HINT_NS},
};

static int build(struct gp_scenario *s)
{
	struct gp_task_attr lc = GP_TASK_ATTR_DEFAULT, be = GP_TASK_ATTR_DEFAULT;
	int r;

	lc.class = GP_LATENCY_CRITICAL;
	be.class = GP_BEST_EFFORT;
	gp_scenario_init(s);
	snprintf(s->name, sizeof s->name, "demo");
	s->seed = env.seed;
	r = gp_scenario_add(s, &inference, &lc);
	return r ? r : gp_scenario_add(s, &training, &be);
}

static int run_arm(const struct arm *arm, struct gp_scenario *s, struct gp_timeline *timeline,
		   struct gp_run *run, struct gp_error *err)
{
	struct gp_policy_choice policy;

	s->task[INFERENCE].hint_ns = arm->hint_ns;
	free(s->alone_ns); /* was computed without the hint */
	s->alone_ns = NULL;
	gp_policy_defaults(gp_policy_find(arm->policy), &policy);
	return gp_timeline_record(timeline, arm->label, s, &policy, run, err);
}

static double kept(const struct gp_run *run)
{
	const struct gp_run_task *t = &run->task[TRAINING];

	return 100.0 * (double)t->work_ns / (double)t->alone_ns;
}

static void print_table(const struct gp_run *runs)
{
	printf("An inference service (a 100 us kernel every 3 ms) beside a training job that\n"
	       "fills the GPU, on a simulated H200 that was checked against a real one.\n"
	       "%.0f seconds:\n\n",
	       (double)runs[DEFAULT].duration_ns / 1e9);
	printf("%-28s %25s   %s\n", "", "response", "training keeps,");
	printf("%-28s %8s %8s %8s   %s\n", "", "p50", "p99", "max", "% of alone");
	for (unsigned i = 0; i < ARMS; i++) {
		const struct gp_run_task *t = &runs[i].task[INFERENCE];

		printf("%-28s %8s %8s %8s %12.1f\n", arms[i].label, gp_cli_duration(t->p50_ns).text,
		       gp_cli_duration(t->p99_ns).text, gp_cli_duration(t->max_ns).text,
		       kept(&runs[i]));
	}
}

static void print_conclusion(const struct gp_run *runs)
{
	uint64_t before_ns = runs[DEFAULT].task[INFERENCE].p99_ns;
	uint64_t after_ns = runs[PRIORITY].task[INFERENCE].p99_ns;
	uint64_t hinted_ns = runs[HINTED].task[INFERENCE].p99_ns;
	double was = kept(&runs[DEFAULT]), is = kept(&runs[PRIORITY]);

	printf("\n99 of 100 requests are answered within %s instead of %s, %.1f times\n"
	       "sooner, and within %s with a hint. The training job kept %.1f %% of its\n"
	       "speed before, and ",
	       gp_cli_duration(after_ns).text, gp_cli_duration(before_ns).text,
	       (double)before_ns / (double)after_ns, gp_cli_duration(hinted_ns).text, was);
	if (is > was - 0.5)
		printf("loses nothing by it.\n");
	else
		printf("now keeps %.1f %%.\n", is);
}

static struct gp_timeline_style terminal_style(void)
{
	struct gp_timeline_style style = {.columns = 78};
	const char *no_colour = getenv("NO_COLOR");
	struct winsize size;

	setlocale(LC_CTYPE, "");
	style.utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
	style.colour = isatty(1) && !(no_colour && no_colour[0]);
	if (!ioctl(1, TIOCGWINSZ, &size) && size.ws_col > 22)
		style.columns = size.ws_col - 2 > 120 ? 120 : size.ws_col - 2u;
	return style;
}

/* Without --svg and without write permission in this folder, a temporary file is used. */
static FILE *open_svg(char *path, size_t size)
{
	const char *folder = getenv("TMPDIR");
	FILE *out;
	int fd;

	snprintf(path, size, "%s", env.svg ? env.svg : "gpreempt-demo.svg");
	out = fopen(path, "we");
	if (out || env.svg)
		return out;
	snprintf(path, size, "%s/gpreempt-demo-XXXXXX.svg", folder ? folder : "/tmp");
	fd = mkostemps(path, 4, O_CLOEXEC);
	if (fd < 0)
		return NULL;
	out = fdopen(fd, "w");
	if (!out)
		close(fd);
	return out;
}

static int draw(FILE *out, const struct gp_timeline *t)
{
	struct gp_draw *d =
		gp_draw_begin(out, GP_DRAW_SVG, GP_CHART_WIDTH, gp_timeline_chart(NULL, 0, t));

	if (!d)
		return -ENOMEM;
	gp_timeline_chart(d, 0, t);
	return gp_draw_end(d);
}

static int write_svg(const struct gp_timeline *timeline)
{
	char path[512];
	FILE *out = open_svg(path, sizeof path);
	int r = out ? draw(out, timeline) : -errno;

	if (out && fclose(out) && !r)
		r = -errno;
	if (r) {
		fprintf(stderr, "gpreempt: cannot write the picture to %s: %s; try --svg FILE\n",
			path, gp_error_name(r));
		return r == -EACCES || r == -EPERM ? GP_EXIT_NOT_PERMITTED : GP_EXIT_FAILED;
	}
	printf("\nThe same as a picture: %s\n", path);
	return GP_EXIT_DONE;
}

static int show(const struct gp_scenario *s, const struct gp_run *runs,
		const struct gp_timeline *timeline)
{
	const char *const labels[ARMS] = {arms[0].policy, arms[1].policy, "priority with hint"};
	struct gp_timeline_style style = terminal_style();

	if (env.json) {
		gp_report_json(&(struct gp_report){
			.scenario = s, .run = runs, .label = labels, .nruns = ARMS});
		return GP_EXIT_DONE;
	}
	print_table(runs);
	putchar('\n');
	gp_timeline_print(stdout, timeline, "inference", "training", &style);
	print_conclusion(runs);
	return write_svg(timeline);
}

static int run_all(struct gp_scenario *s, struct gp_error *err)
{
	struct gp_timeline timeline = {
		.scenario = s,
		.title = "GPU use over time: inference beside training, simulated H200",
		.window = "12 ms of a run of 10 s",
		.from_ns = 5000 * GP_NS_PER_MS,
		.to_ns = 5012 * GP_NS_PER_MS,
		.devices = 1,
		.nrows = 2,
		.row = {{.task = INFERENCE}, {.task = TRAINING}},
	};
	struct gp_run runs[ARMS] = {0};
	int r = 0;

	for (unsigned i = 0; i < ARMS && !r; i++)
		r = run_arm(&arms[i], s, &timeline, &runs[i], err);
	if (!r)
		r = show(s, runs, &timeline);
	for (unsigned i = 0; i < ARMS; i++)
		gp_run_free(&runs[i]);
	gp_timeline_free(&timeline);
	return r;
}

static int run(struct gp_error *err)
{
	struct gp_scenario s;
	int r = build(&s) ? gp_fail(err, -ENOMEM, "no memory for the demo") : run_all(&s, err);

	gp_scenario_free(&s);
	return r;
}

const struct gp_verb gp_verb_demo = {
	.name = "demo",
	.summary = "preemptive scheduling in a few seconds, on a simulated GPU",
	.options = options,
	.doc = "Show preemptive scheduling on a simulated GPU. Needs no GPU, no root and no "
	       "network.\v"
	       "The last line names a picture of the GPU's use over time; open it in a browser.\n",
	.run = run,
};
