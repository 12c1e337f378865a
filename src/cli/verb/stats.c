/* SPDX-License-Identifier: Apache-2.0 */
/* gpreempt stats: how long tasks ran and how often they came on the GPU, and who says so. */
#include <argp.h>
#include <stdlib.h>

#include "base/clock.h"
#include "cli/cli.h"
#include "cli/ask/with_daemon.h"
#include "cli/lib/grid.h"
#include "cli/lib/gpu_share.h"
#include "cli/lib/stop.h"
#include "cli/lib/targets.h"
#include "hold/devices.h"

#define TICK_NS (20 * GP_NS_PER_MS)
enum { NO_DAEMON = 0x2000 };

static struct {
	bool json;
	bool by_hand; /* no daemon is asked */
	uint64_t for_ns;
} env = {.for_ns = 2 * GP_NS_PER_S};

static const struct argp_option options[] = {
	{"for", 'f', "TIME", 0, "How long to watch (2s)", 0},
	{"no-daemon", NO_DAEMON, NULL, 0, "Look at the GPUs, whatever a daemon knows", 0},
	{"json", 'j', NULL, 0, "Write JSON", 0},
	{0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	switch (key) {
	case 'f': env.for_ns = gp_option_duration(state, "--for", arg); break;
	case 'j': env.json = true; break;
	case NO_DAEMON: env.by_hand = true; break;
	case ARGP_KEY_ARG: argp_error(state, "takes no argument, and here is '%s'", arg); break;
	default: return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static uint64_t ran_ns(const struct gp_share *s)
{
	return s->end_run_ns - s->begin_run_ns;
}

/* Counted switches are exact; a share of utilisation has the width of its windows. */
static const char *source_of(const struct gp_share *s)
{
	if (!s->known)
		return "unknown";
	if (s->source == GP_RUN_GRANTED)
		return "granted";
	return s->last.scheduled ? "switches" : "utilisation";
}

static void add_row(struct gp_grid *grid, const struct gp_task_ref *ref, const struct gp_share *s)
{
	char text[32];

	gp_grid_cell(grid, "%d", ref->seen.pid);
	gp_grid_cell(grid, "%u", ref->device);
	gp_grid_text(grid, s->known ? gp_cli_duration(text, sizeof text, ran_ns(s)) : NULL);
	gp_grid_text(grid, s->known ? gp_share_text(text, sizeof text, s) : NULL);
	gp_grid_cell_if(grid, s->last.scheduled, "%llu", (unsigned long long)s->last.scheduled);
	gp_grid_text(grid, s->last.scheduled ? gp_cli_duration(text, sizeof text,
	                                                       ran_ns(s) / s->last.scheduled)
	                                     : NULL);
	gp_grid_text(grid, source_of(s));
	gp_grid_text(grid, ref->seen.name);
}

/* A device that tells nothing of anybody. */
static void say_what_is_unknown(const struct gp_devices *devices, const struct gp_task_ref *ref,
                                const struct gp_share *share, int n)
{
	for (unsigned d = 0; d < devices->n; d++) {
		bool any = false, known = false;

		for (int i = 0; i < n; i++)
			if (ref[i].device == d) {
				any = true;
				known |= share[i].known;
			}
		if (any && !known)
			printf("device %u (%s) has told no run times\n", d,
			       devices->device[d].gpu->info.name);
	}
}

static void print_rows(const struct gp_devices *devices, const struct gp_task_ref *ref,
                       const struct gp_share *share, int n)
{
	static const struct gp_column columns[] = {
		{"PID", 0},
		{"DEVICE", 0},
		{"RUN", 0},
		{"GPU", 0},
		{"SCHEDULED", 0},
		{"MEAN", 0},
		{"SOURCE", GP_COLUMN_LEFT},
		{"NAME", GP_COLUMN_LEFT},
	};
	struct gp_grid grid;

	if (!n) {
		puts("nobody has queues on a GPU");
		return;
	}
	gp_grid_begin(&grid, columns, sizeof columns / sizeof columns[0]);
	for (int i = 0; i < n; i++)
		add_row(&grid, &ref[i], &share[i]);
	gp_grid_end(&grid, stdout);
	say_what_is_unknown(devices, ref, share, n);
}

static void json_row(const struct gp_task_ref *ref, const struct gp_share *s, bool first)
{
	printf("%s{\"pid\":%d,\"device\":%u,\"name\":", first ? "" : ",", ref->seen.pid,
	       ref->device);
	gp_json_string(stdout, ref->seen.name);
	if (s->known)
		printf(",\"run_us\":%.1f", (double)ran_ns(s) / 1e3);
	else
		fputs(",\"run_us\":null", stdout);
	if (s->last.scheduled)
		printf(",\"scheduled\":%llu", (unsigned long long)s->last.scheduled);
	else
		fputs(",\"scheduled\":null", stdout);
	gp_share_json(s);
	printf(",\"source\":\"%s\"}", source_of(s));
}

static void watch(const struct gp_task_ref *ref, struct gp_share *share, int n)
{
	uint64_t end_ns = gp_monotonic_ns() + env.for_ns;

	for (int i = 0; i < n; i++)
		gp_share_begin(&share[i], &ref[i]);
	do {
		for (int i = 0; i < n; i++)
			gp_share_tick(&share[i], &ref[i]);
	} while (gp_monotonic_ns() < end_ns && !gp_stop_sleep(gp_monotonic_ns() + TICK_NS));
	for (int i = 0; i < n; i++)
		gp_share_end(&share[i], &ref[i]);
}

static int stats(const struct gp_devices *devices, struct gp_error *err)
{
	struct gp_task_ref *ref;
	struct gp_share *share;
	int n = gp_devices_scan(devices, GP_DEVICES_MAX, &ref, err);

	if (n < 0)
		return n;
	share = calloc((size_t)n + 1, sizeof *share);
	if (!share) {
		free(ref);
		return gp_fail(err, -ENOMEM, "no memory");
	}
	watch(ref, share, n);
	if (env.json) {
		putchar('[');
		for (int i = 0; i < n; i++)
			json_row(&ref[i], &share[i], i == 0);
		puts("]");
	} else {
		print_rows(devices, ref, share, n);
	}
	free(share);
	free(ref);
	return 0;
}

static int run(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.doc = "How long tasks ran, how often they came on the GPU, and who says so.\v"
		       "Run times from counted switches are exact while others want the GPU; a "
		       "task "
		       "that is alone stays on it when it has finished.\n",
	};
	struct gp_devices devices;
	struct gp_error err = {0};
	int r;

	argp_parse(&argp, argc, argv, 0, NULL, NULL);
	gp_stop_open();
	if (!env.by_hand && gp_daemon_stats(env.for_ns, env.json, &r))
		return r;
	r = gp_devices_open(&devices, 0, &err);
	if (!r)
		r = stats(&devices, &err);
	gp_devices_close(&devices);
	return r ? gp_cli_fail(&err) : GP_EXIT_DONE;
}

const struct gp_verb gp_verb_stats = {
	.name = "stats",
	.summary = "how long tasks ran, how often they came on the GPU, and who says so",
	.run = run,
};
