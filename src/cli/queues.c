/* SPDX-License-Identifier: Apache-2.0 */
/* gpreempt queues: the queues of a process, once. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "hold/devices.h"
#include "cli/targets.h"

static struct {
	struct gp_targets targets;
	bool json, c_array, min_priority;
} env;

static const struct argp_option options[] = {
	{"c", 'c', NULL, 0, "Write their ids as a C array", 0},
	{"min-priority", 'm', "N", 0, "Leave out queues of a lower priority, where they have one",
         0},
	{"json", 'j', NULL, 0, "Write JSON", 0},
	{0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	switch (key) {
	case ARGP_KEY_INIT: gp_targets_init(&env.targets, 1, state); break;
	case 'c': env.c_array = true; break;
	case 'm':
		gp_option_number(state, "--min-priority", arg, 0, 15);
		env.min_priority = true;
		break;
	case 'j': env.json = true; break;
	case ARGP_KEY_END:
		if (!env.targets.n)
			argp_error(state, "of which process? gpreempt ps lists them");
		break;
	default: return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

/* The queues of a process on one device. */
struct list {
	struct gp_place place;
	struct gp_queue *queue;
	unsigned n;
};

/* ---- for people ---------------------------------------------------------------------------------
 */

static void print_queue(unsigned device, const struct gp_queue *q)
{
	char slice[32] = "-", interleave[12] = "-";

	if (q->slice_us)
		gp_cli_duration(slice, sizeof slice, 1000ull * q->slice_us);
	if (q->interleave != UINT32_MAX)
		snprintf(interleave, sizeof interleave, "%u", q->interleave);
	printf("%6u %6u %-8s %8u %8s %10s %-4s 0x%-8llx 0x%-8llx\n", q->id, device, q->type,
	       q->channels, slice, interleave, q->held ? "yes" : "no", (unsigned long long)q->owner,
	       (unsigned long long)q->object);
}

/* "1 compute and 3 copy queues on NVIDIA H200 #0" */
static void print_total(const struct list *l)
{
	bool first = true;

	for (unsigned i = 0; i < l->n; i++) {
		unsigned same = 0, before = 0;

		for (unsigned k = 0; k < l->n; k++)
			if (!strcmp(l->queue[k].type, l->queue[i].type)) {
				same++;
				before += k < i;
			}
		if (before)
			continue;
		printf("%s%u %s", first ? "" : " and ", same, l->queue[i].type);
		first = false;
	}
	printf(" queue%s on %s\n", l->n == 1 ? "" : "s", l->place.gpu->info.name);
}

static void print_lists(const struct list *list, unsigned n)
{
	printf("%6s %6s %-8s %8s %8s %10s %-4s %-10s %-10s\n", "ID", "DEVICE", "TYPE", "CHANNELS",
	       "SLICE", "INTERLEAVE", "HELD", "OWNER", "OBJECT");
	for (unsigned i = 0; i < n; i++)
		for (unsigned k = 0; k < list[i].n; k++)
			print_queue(list[i].place.device, &list[i].queue[k]);
	putchar('\n');
	for (unsigned i = 0; i < n; i++)
		print_total(&list[i]);
}

/* ---- for programs -------------------------------------------------------------------------------
 */

static void print_c(const struct list *list, unsigned n)
{
	printf("/* Queues of process %d (%s), as gpreempt queues --c found them. */\n"
	       "static const unsigned int queue_ids[] = {\n",
	       list[0].place.seen.pid, list[0].place.seen.name);
	for (unsigned i = 0; i < n; i++)
		for (unsigned k = 0; k < list[i].n; k++)
			printf("\t%u, /* %s, %s */\n", list[i].queue[k].id, list[i].queue[k].type,
			       list[i].place.gpu->info.name);
	puts("};");
}

static void json_queue(unsigned device, const struct gp_queue *q)
{
	printf("{\"id\":%u,\"device\":%u,\"type\":", q->id, device);
	gp_json_string(stdout, q->type);
	printf(",\"channels\":%u,\"slice_us\":", q->channels);
	if (q->slice_us)
		printf("%u", q->slice_us);
	else
		fputs("null", stdout);
	fputs(",\"interleave\":", stdout);
	if (q->interleave != UINT32_MAX)
		printf("%u", q->interleave);
	else
		fputs("null", stdout);
	printf(",\"held\":%s,\"owner\":\"0x%llx\",\"object\":\"0x%llx\"}",
	       q->held ? "true" : "false", (unsigned long long)q->owner,
	       (unsigned long long)q->object);
}

static void json_lists(const struct list *list, unsigned n)
{
	bool first = true;

	printf("{\"pid\":%d,\"name\":", list[0].place.seen.pid);
	gp_json_string(stdout, list[0].place.seen.name);
	fputs(",\"devices\":[", stdout);
	for (unsigned i = 0; i < n; i++) {
		printf("%s{\"device\":%u,\"name\":", i ? "," : "", list[i].place.device);
		gp_json_string(stdout, list[i].place.gpu->info.name);
		putchar('}');
	}
	fputs("],\"queues\":[", stdout);
	for (unsigned i = 0; i < n; i++)
		for (unsigned k = 0; k < list[i].n; k++) {
			if (!first)
				putchar(',');
			json_queue(list[i].place.device, &list[i].queue[k]);
			first = false;
		}
	puts("]}");
}

/* ---- the whole ----------------------------------------------------------------------------------
 */

static int read_lists(const struct gp_place *place, unsigned n, struct list *list,
                      struct gp_error *err)
{
	for (unsigned i = 0; i < n; i++) {
		struct gp_error why = {0};
		int count = gp_place_queues(&place[i], true, &list[i].queue, &why);

		if (count < 0)
			return gp_fail(err, count, "cannot list the queues of process %d: %s",
			               place[i].seen.pid,
			               *why.text ? why.text : gp_error_name(count));
		list[i].place = place[i];
		list[i].n = (unsigned)count;
	}
	return 0;
}

static int list_queues(const struct gp_devices *devices, struct gp_error *err)
{
	struct gp_place place[GP_DEVICES_MAX];
	struct list list[GP_DEVICES_MAX] = {0};
	int n = gp_devices_find(devices, env.targets.pid[0], place, GP_DEVICES_MAX, err), r;

	if (n < 0)
		return n;
	r = read_lists(place, (unsigned)n, list, err);
	if (!r)
		(env.json ? json_lists : env.c_array ? print_c : print_lists)(list, (unsigned)n);
	if (!r && env.min_priority)
		fputs("gpreempt: queues have no priorities on these devices; all are listed\n",
		      stderr);
	for (int i = 0; i < n; i++)
		free(list[i].queue);
	return r;
}

static int run(int argc, char **argv)
{
	static const struct argp_child children[] = {{&gp_targets_argp, 0, NULL, 0}, {0}};
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.args_doc = "PID",
		.children = children,
		.doc = "List the queues of a process: what the driver can stop and start.\v"
		       "What is not known is a dash.\n\n"
		       "Examples:\n"
		       "  gpreempt queues 4711\n"
		       "  gpreempt queues --container web 1 --json\n",
	};
	struct gp_devices devices;
	struct gp_error err = {0};
	int r;

	argp_parse(&argp, argc, argv, 0, NULL, NULL);
	r = gp_targets_resolve(&env.targets, &err);
	if (!r)
		r = gp_devices_open(&devices, 0, &err);
	if (r)
		return gp_cli_fail(&err);
	r = list_queues(&devices, &err);
	gp_devices_close(&devices);
	return r ? gp_cli_fail(&err) : GP_EXIT_DONE;
}

const struct gp_verb gp_verb_queues = {
	.name = "queues",
	.summary = "the queues of a process",
	.run = run,
};
