/* SPDX-License-Identifier: Apache-2.0 */
/* gpreempt queues: the queues of a process, once. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli/cli.h"
#include "cli/lib/grid.h"
#include "cli/lib/options.h"
#include "hold/devices.h"
#include "hold/replay.h"

static struct {
	struct gp_targets targets;
	bool json, c_array;
	uint32_t min_priority;
} env = {.targets.single = true};

static const struct gp_option options[] = {
	{"c", 'c', NULL, "Write the ids as a C array", .flag = &env.c_array},
	{"min-priority", 'm', "N", "Leave out queues with a priority below N, 0 to 15",
	 .number32 = &env.min_priority, .max = 15},
	{"json", 'j', NULL, "Write JSON", .flag = &env.json},
	{0},
};

static void check(struct argp_state *state)
{
	if (env.json && env.c_array)
		argp_error(state, "give either --c or --json");
}

/* The queues of a process on one device. */
struct list {
	struct gp_task_ref ref;
	struct gp_queue *queue;
	unsigned n;
	int64_t evicted_ms; /* -errno = not known */
	bool not_attached;  /* what only an attached process sees is not known, `held` included */
};

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
	if (l->n)
		printf(" queue%s on device %u (%s)\n", l->n == 1 ? "" : "s", l->ref.device,
		       l->ref.gpu->info.name);
}

static void print_evicted(const struct list *l)
{
	if (l->evicted_ms > 0)
		printf("the driver has evicted it for %s in all on device %u, because GPU memory "
		       "was short\n",
		       gp_cli_duration((uint64_t)l->evicted_ms * GP_NS_PER_MS).text, l->ref.device);
}

static unsigned count(const struct list *list, unsigned n)
{
	unsigned all = 0;

	for (unsigned i = 0; i < n; i++)
		all += list[i].n;
	return all;
}

static struct json_object *queue_to_json(const struct list *l, const struct gp_queue *q)
{
	struct json_object *o = json_object_new_object();

	gp_field_put(o, "id", q->id);
	gp_field_put(o, "device", l->ref.device);
	gp_field_put_text(o, "type", q->type);
	gp_field_put_bool(o, "copies", q->copies);
	if (!l->not_attached && !q->unsure)
		gp_field_put_bool(o, "held", q->held);
	if (q->priority != UINT32_MAX)
		gp_field_put(o, "priority", q->priority);
	if (q->pending != UINT64_MAX)
		gp_field_put(o, "pending", q->pending);
	gp_field_put_address(o, "ring_address", q->ring_address);
	gp_field_put_known(o, "ring_bytes", q->ring_bytes);
	gp_field_put_address(o, "save_address", q->save_address);
	gp_field_put_known(o, "save_bytes", q->save_bytes);
	gp_field_put_known(o, "channels", q->channels);
	gp_field_put_known(o, "slice_us", q->slice_us);
	if (q->interleave != UINT32_MAX)
		gp_field_put(o, "interleave", q->interleave);
	gp_field_put_address(o, "client", q->owner);
	gp_field_put_address(o, "object", q->object);
	gp_field_put_known(o, "serial", q->serial);
	return o;
}

/* The caller puts it. */
static struct json_object *queues_to_json(const struct list *list, unsigned n)
{
	struct json_object *queues = json_object_new_array();

	for (unsigned i = 0; i < n; i++)
		for (unsigned k = 0; k < list[i].n; k++)
			json_object_array_add(queues, queue_to_json(&list[i], &list[i].queue[k]));
	return queues;
}

static void print_lists(const struct list *list, unsigned n)
{
	static const struct gp_task_column columns[] = {
		{"ID", "id", GP_CELL_PLAIN, false},
		{"DEVICE", "device", GP_CELL_PLAIN, false},
		{"TYPE", "type", GP_CELL_PLAIN, true},
		{"HELD", "held", GP_CELL_YES_NO, false},
		{"PRIORITY", "priority", GP_CELL_PLAIN, false},
		{"PENDING", "pending", GP_CELL_PLAIN, false},
		{"RING", "ring_address", GP_CELL_PLAIN, false},
		{"RING SIZE", "ring_bytes", GP_CELL_BYTES, false},
		{"SAVE AREA", "save_address", GP_CELL_PLAIN, false},
		{"SAVE SIZE", "save_bytes", GP_CELL_BYTES, false},
		{"CHANNELS", "channels", GP_CELL_PLAIN, false},
		{"SLICE", "slice_us", GP_CELL_US, false},
		{"INTERLEAVE", "interleave", GP_CELL_PLAIN, false},
		{"CLIENT", "client", GP_CELL_PLAIN, false},
		{"OBJECT", "object", GP_CELL_PLAIN, false},
		{0},
	};
	struct json_object *queues;

	if (!count(list, n)) {
		printf("process %d (%s) has no queue with a priority of %u or more\n",
		       list[0].ref.seen.pid, list[0].ref.seen.name, env.min_priority);
		return;
	}
	queues = queues_to_json(list, n);
	gp_table_print(stdout, queues, columns);
	json_object_put(queues);
	putchar('\n');
	for (unsigned i = 0; i < n; i++)
		print_total(&list[i]);
	if (n > 1)
		printf("%u queues in all\n", count(list, n));
	for (unsigned i = 0; i < n; i++)
		print_evicted(&list[i]);
}

/* A program chooses its own name: it must not end the comment. */
static void print_c_name(const char *name)
{
	for (; *name; name++)
		putchar(*name == '*' || *name == '\n' || *name == '\\' ? '?' : *name);
}

static void print_c(const struct list *list, unsigned n)
{
	printf("/* Queues of process %d (", list[0].ref.seen.pid);
	print_c_name(list[0].ref.seen.name);
	puts("), as gpreempt queues --c found them. */\n"
	     "static const unsigned int queue_ids[] = {");
	for (unsigned i = 0; i < n; i++)
		for (unsigned k = 0; k < list[i].n; k++)
			printf("\t%u, /* %s, %s */\n", list[i].queue[k].id, list[i].queue[k].type,
			       list[i].ref.gpu->info.name);
	puts("};");
}

static void print_json(const struct list *list, unsigned n)
{
	struct json_object *all = json_object_new_object(), *devices;

	gp_field_put(all, "pid", (uint64_t)list[0].ref.seen.pid);
	gp_field_put_text(all, "name", list[0].ref.seen.name);
	devices = gp_field_put_list(all, "devices");
	for (unsigned i = 0; i < n; i++) {
		struct json_object *device = gp_list_object(devices);

		gp_field_put(device, "device", list[i].ref.device);
		gp_field_put_text(device, "name", list[i].ref.gpu->info.name);
		if (list[i].evicted_ms >= 0)
			gp_field_put(device, "evicted_ms", (uint64_t)list[i].evicted_ms);
	}
	json_object_object_add(all, "queues", queues_to_json(list, n));
	gp_print_json_once(all);
}

static int compare_queues(const void *a, const void *b)
{
	const struct gp_queue *p = a, *q = b;

	return p->id < q->id ? -1 : p->id > q->id;
}

/* Names the owner of the undo record, if there is one; else the reason from the driver. */
static void print_why_not_attached(const struct gp_task_ref *ref, const struct gp_error *why)
{
	struct gp_undo_file *undo = NULL;
	struct gp_error owner = {0};

	gp_undo_open(&undo, false, NULL);
	gp_records_check_free(undo, ref->seen.pid, ref->seen.start_time, &owner);
	gp_undo_close(undo);
	fprintf(stderr, "gpreempt: some values are not known: %s\n",
		*owner.text ? owner.text : why->text);
}

static int read_list(const struct gp_task_ref *ref, struct list *list, struct gp_error *err)
{
	struct gp_error why = {0};
	int n = gp_task_ref_queues(ref, true, &list->queue, &why);

	/* A process that cannot be attached to, or that another process holds, can still be
	 * listed. One that belongs to another user cannot. */
	if (n == -ENOTSUP || n == -EBUSY) {
		n = gp_task_ref_queues(ref, false, &list->queue, NULL);
		list->not_attached = n >= 0;
		if (n >= 0)
			print_why_not_attached(ref, &why);
	}
	if (n < 0)
		return gp_fail(err, n, "cannot list the queues of process %d: %s", ref->seen.pid,
			       *why.text ? why.text : gp_error_name(n));
	list->evicted_ms = gp_gpu_evicted_ms(ref->gpu, ref->seen.pid);
	list->ref = *ref;
	list->n = (unsigned)n;
	if (n)
		qsort(list->queue, list->n, sizeof *list->queue, compare_queues);
	return 0;
}

/* Removes queues of a low priority. Keeps those of unknown priority, and returns their number. */
static unsigned remove_low(struct list *list)
{
	unsigned kept = 0, unknown = 0;

	for (unsigned i = 0; i < list->n; i++) {
		if (list->queue[i].priority < env.min_priority)
			continue;
		unknown += list->queue[i].priority == UINT32_MAX;
		list->queue[kept++] = list->queue[i];
	}
	list->n = kept;
	return unknown;
}

static int print(struct list *list, unsigned n, struct gp_error *err)
{
	unsigned unknown = 0;

	for (unsigned i = 0; i < n && env.min_priority; i++)
		unknown += remove_low(&list[i]);
	if (env.c_array && !count(list, n)) /* C has no empty arrays */
		return gp_fail(err, -ENODEV,
			       "process %d has no queue with a priority of %u or more",
			       list[0].ref.seen.pid, env.min_priority);
	(env.json ? print_json : env.c_array ? print_c : print_lists)(list, n);
	if (unknown)
		fprintf(stderr,
			"gpreempt: the priority of %u queue%s is not known; listed nevertheless\n",
			unknown, unknown == 1 ? "" : "s");
	return 0;
}

static int list_queues(const struct gp_devices *devices, struct gp_error *err)
{
	struct gp_task_ref ref[GP_DEVICES_MAX];
	struct list list[GP_DEVICES_MAX] = {0};
	int n = gp_devices_find_any(devices, env.targets.pid[0], ref, GP_DEVICES_MAX, err), r = 0;

	if (n < 0)
		return n;
	for (int i = 0; i < n && !r; i++)
		r = read_list(&ref[i], &list[i], err);
	if (!r)
		r = print(list, (unsigned)n, err);
	for (int i = 0; i < n; i++)
		free(list[i].queue);
	return r;
}

static int run(struct gp_error *err)
{
	struct gp_devices devices;
	int r = gp_targets_open(&env.targets, &devices, err);

	if (r)
		return r;
	r = list_queues(&devices, err);
	gp_devices_close(&devices);
	return r;
}

const struct gp_verb gp_verb_queues = {
	.name = "queues",
	.summary = "the queues of a process",
	.arguments = "PID",
	.targets = &env.targets,
	.options = options,
	.check = check,
	.doc = "List the queues of a process: the units that the driver can hold.\v"
	       "A value that is not known is a dash, and absent from JSON. A column of dashes is "
	       "left out.\n\n"
	       "Examples:\n"
	       "  gpreempt queues 4711\n"
	       "  gpreempt queues 4711 --min-priority 8 --c\n"
	       "  gpreempt queues --container web 1 --json\n",
	.run = run,
};
