/* SPDX-License-Identifier: Apache-2.0 */
/* gpreempt stats: how long tasks ran and how often they came on the GPU, and who says so. */
#include <argp.h>
#include <stdlib.h>

#include "base/clock.h"
#include "cli/cli.h"
#include "hold/devices.h"
#include "cli/share.h"
#include "cli/stop.h"
#include "cli/targets.h"

#define LOOK_NS (20 * GP_NS_PER_MS)

static struct {
	bool json;
	uint64_t for_ns;
} env = {.for_ns = 2 * GP_NS_PER_S};

static const struct argp_option options[] = {
	{"for", 'f', "TIME", 0, "How long to watch (2s)", 0},
	{"json", 'j', NULL, 0, "Write JSON", 0},
	{0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	switch (key) {
	case 'f': env.for_ns = gp_option_duration(state, "--for", arg); break;
	case 'j': env.json = true; break;
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

static void print_row(const struct gp_place *place, const struct gp_share *s)
{
	char run[24] = "-", mean[24] = "-", times[24] = "-", share[24];

	if (s->known)
		gp_cli_duration(run, sizeof run, ran_ns(s));
	if (s->last.scheduled) {
		snprintf(times, sizeof times, "%llu", (unsigned long long)s->last.scheduled);
		gp_cli_duration(mean, sizeof mean, ran_ns(s) / s->last.scheduled);
	}
	printf("%7d %6u %9s %7s %9s %9s  %-11s %s\n", place->seen.pid, place->device, run,
	       gp_share_text(share, sizeof share, s), times, mean, source_of(s), place->seen.name);
}

static void json_row(const struct gp_place *place, const struct gp_share *s, bool first)
{
	printf("%s{\"pid\":%d,\"device\":%u,\"name\":", first ? "" : ",", place->seen.pid,
	       place->device);
	gp_json_string(stdout, place->seen.name);
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

static void watch(const struct gp_place *place, struct gp_share *share, int n)
{
	uint64_t end_ns = gp_now_ns(&gp_clock_monotonic) + env.for_ns;

	for (int i = 0; i < n; i++)
		gp_share_begin(&share[i], &place[i]);
	do {
		for (int i = 0; i < n; i++)
			gp_share_look(&share[i], &place[i]);
	} while (gp_now_ns(&gp_clock_monotonic) < end_ns &&
	         !gp_stop_sleep(gp_now_ns(&gp_clock_monotonic) + LOOK_NS));
	for (int i = 0; i < n; i++)
		gp_share_end(&share[i], &place[i]);
}

static int stats(const struct gp_devices *devices, struct gp_error *err)
{
	struct gp_place *place;
	struct gp_share *share;
	int n = gp_devices_scan(devices, GP_DEVICES_MAX, &place, err);

	if (n < 0)
		return n;
	share = calloc((size_t)n + 1, sizeof *share);
	if (!share) {
		free(place);
		return gp_fail(err, -ENOMEM, "no memory");
	}
	watch(place, share, n);
	if (env.json)
		putchar('[');
	else if (n)
		puts("    PID DEVICE       RUN     GPU SCHEDULED      MEAN  SOURCE      NAME");
	else
		puts("nobody has queues on a GPU");
	for (int i = 0; i < n; i++) {
		if (env.json)
			json_row(&place[i], &share[i], i == 0);
		else
			print_row(&place[i], &share[i]);
	}
	if (env.json)
		puts("]");
	free(share);
	free(place);
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
