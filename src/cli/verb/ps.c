/* SPDX-License-Identifier: Apache-2.0 */
/* gpreempt ps: who has queues on the GPUs, and what they had of them in the last moment. */
#include <argp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process.h"
#include "cli/cli.h"
#include "cli/ask/with_daemon.h"
#include "cli/lib/grid.h"
#include "cli/lib/gpu_share.h"
#include "cli/lib/stop.h"
#include "cli/lib/targets.h"
#include "hold/devices.h"
#include "hold/replay.h"

#define TICK_NS (20 * GP_NS_PER_MS)
enum { NO_DAEMON = 0x2000 };

static struct {
	bool json;
	bool by_hand; /* no daemon is asked */
	bool patient; /* shares that are not known by then are waited for */
	uint64_t for_ns;
} env = {.patient = true, .for_ns = 500 * GP_NS_PER_MS};

static const struct argp_option options[] = {
	{"for", 'f', "TIME", 0, "How long to watch for shares (500ms)", 0},
	{"no-daemon", NO_DAEMON, NULL, 0, "Look at the GPUs, whatever a daemon knows", 0},
	{"json", 'j', NULL, 0, "Write JSON", 0},
	{0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	switch (key) {
	case 'f':
		env.for_ns = gp_option_duration(state, "--for", arg);
		env.patient = false;
		break;
	case 'j': env.json = true; break;
	case NO_DAEMON: env.by_hand = true; break;
	case ARGP_KEY_ARG: argp_error(state, "takes no argument, and here is '%s'", arg); break;
	default: return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

/* ---- what is known of a task --------------------------------------------------------------------
 */

struct row {
	struct gp_task_ref ref;
	struct gp_share share;
	bool ended;
	pid_t owner; /* whose record there is; 0 = nobody's */
	bool queues_known;
	unsigned queues, copy_queues;
	uint32_t slice_min_us, slice_max_us; /* 0 = not known */
	bool held;
	char user[32]; /* "" = not known */
};

static void read_queues(struct row *row)
{
	struct gp_queue *queue;
	int n = gp_task_ref_queues(&row->ref, false, &queue, NULL);

	row->queues_known = n >= 0;
	for (int i = 0; i < n; i++) {
		uint32_t us = queue[i].slice_us;

		if (queue[i].copies) {
			row->copy_queues++;
			continue;
		}
		row->queues++;
		row->held |= queue[i].held;
		if (us > row->slice_max_us)
			row->slice_max_us = us;
		if (us && (!row->slice_min_us || us < row->slice_min_us))
			row->slice_min_us = us;
	}
	free(queue);
}

static void read_user(struct row *row)
{
	const struct passwd *entry;
	uid_t uid;

	if (!gp_process_uid(row->ref.seen.pid, &uid))
		return;
	entry = getpwuid(uid);
	if (entry)
		snprintf(row->user, sizeof row->user, "%s", entry->pw_name);
	else
		snprintf(row->user, sizeof row->user, "%u", uid);
}

static void read_row(struct row *row, const struct gp_undo_file *undo)
{
	struct gp_undo_entry e;

	/* Memory is sampled, too: it was not known when the task was first seen. */
	row->ended = gp_gpu_commands(row->ref.gpu)->find &&
	             gp_gpu_find(row->ref.gpu, row->ref.seen.pid, &row->ref.seen, NULL);
	if (row->ended)
		return;
	read_queues(row);
	read_user(row);
	if (gp_records_find(undo, row->ref.seen.pid, row->ref.seen.start_time, &e))
		row->owner = e.owner;
}

/* A record says that somebody may hold the task; that it works says that nobody does. */
static const char *state_of(const struct row *row)
{
	const struct gp_observation *o = &row->share.last;
	bool active = o->known & GP_KNOWN_ACTIVE && o->active;
	bool held_known = o->known & (GP_KNOWN_HELD | GP_KNOWN_RUNNING);

	if (row->held || (o->known & GP_KNOWN_HELD && o->held))
		return "held";
	/* In somebody's hands, and only they know whether it is held: work it has either way. */
	if (!(o->known & GP_KNOWN_ACTIVE) || (row->owner && !held_known))
		return NULL;
	return active ? "running" : "idle";
}

/* ---- how it is said -----------------------------------------------------------------------------
 */

static void add_slice(struct gp_grid *grid, const struct row *row)
{
	char low[32], high[32];

	if (!row->slice_max_us)
		gp_grid_text(grid, NULL);
	else if (row->slice_min_us == row->slice_max_us)
		gp_grid_text(grid, gp_cli_duration(high, sizeof high, 1000ull * row->slice_max_us));
	else
		gp_grid_cell(grid, "%s-%s",
		             gp_cli_duration(low, sizeof low, 1000ull * row->slice_min_us),
		             gp_cli_duration(high, sizeof high, 1000ull * row->slice_max_us));
}

static void add_name(struct gp_grid *grid, const struct row *row)
{
	const struct gp_seen *seen = &row->ref.seen;
	const char *server = seen->flags & GP_SEEN_SHARED ? " (a server)" : "";

	if (row->owner)
		gp_grid_cell(grid, "%s (in the hands of %d)%s", seen->name, row->owner, server);
	else
		gp_grid_cell(grid, "%s%s", seen->name, server);
}

static void add_row(struct gp_grid *grid, const struct row *row)
{
	const struct gp_seen *seen = &row->ref.seen;
	char text[32];

	gp_grid_cell(grid, "%d", seen->pid);
	gp_grid_text(grid, *row->user ? row->user : NULL);
	gp_grid_cell(grid, "%u", row->ref.device);
	gp_grid_cell_if(grid, row->queues_known, "%u", row->queues);
	add_slice(grid, row);
	gp_grid_text(grid, state_of(row));
	gp_grid_text(grid, row->share.known ? gp_share_text(text, sizeof text, &row->share) : NULL);
	gp_grid_text(grid, seen->memory ? gp_cli_bytes(text, sizeof text, seen->memory) : NULL);
	add_name(grid, row);
}

static void print_notes(const struct row *rows, int n, const struct gp_devices *devices)
{
	putchar('\n');
	for (unsigned i = 0; i < devices->n; i++)
		printf("device %u: %s\n", i, devices->device[i].gpu->info.name);
	for (int i = 0; i < n; i++)
		if (!rows[i].ended && rows[i].ref.seen.flags & GP_SEEN_SHARED)
			printf("%d works for many programs: holding it stops them all, so it is "
			       "left alone\n",
			       rows[i].ref.seen.pid);
}

static void json_string_or_null(const char *text)
{
	if (text && *text)
		gp_json_string(stdout, text);
	else
		fputs("null", stdout);
}

static void json_row(const struct row *row, bool first)
{
	const struct gp_seen *seen = &row->ref.seen;

	printf("%s{\"pid\":%d,\"name\":", first ? "" : ",", seen->pid);
	gp_json_string(stdout, seen->name);
	fputs(",\"user\":", stdout);
	json_string_or_null(row->user);
	printf(",\"device\":%u,\"device_name\":", row->ref.device);
	gp_json_string(stdout, row->ref.gpu->info.name);
	gp_json_number("queues", row->queues_known, row->queues);
	gp_json_number("copy_queues", row->queues_known, row->copy_queues);
	gp_json_number("slice_min_us", row->slice_min_us, row->slice_min_us);
	gp_json_number("slice_max_us", row->slice_max_us, row->slice_max_us);
	fputs(",\"state\":", stdout);
	json_string_or_null(state_of(row));
	gp_share_json(&row->share);
	gp_json_number("memory", seen->memory, seen->memory);
	gp_json_number("holder", row->owner, (uint64_t)row->owner);
	printf(",\"shared\":%s}", seen->flags & GP_SEEN_SHARED ? "true" : "false");
}

static void print_table(const struct row *rows, int n, const struct gp_devices *devices)
{
	static const struct gp_column columns[] = {
		{"PID", 0},
		{"USER", GP_COLUMN_LEFT},
		{"DEVICE", 0},
		{"QUEUES", 0},
		{"SLICE", 0},
		{"STATE", GP_COLUMN_LEFT},
		{"GPU", 0},
		{"MEMORY", 0},
		{"NAME", GP_COLUMN_LEFT},
	};
	struct gp_grid grid;
	bool any = false;

	gp_grid_begin(&grid, columns, sizeof columns / sizeof columns[0]);
	for (int i = 0; i < n; i++)
		if (!rows[i].ended) {
			add_row(&grid, &rows[i]);
			any = true;
		}
	if (any) {
		gp_grid_end(&grid, stdout);
		print_notes(rows, n, devices);
	} else {
		puts("no process has queues on a GPU here");
	}
}

/* Some drivers show everybody's processes to everybody. */
static bool shows_others(const struct row *rows, int n)
{
	uid_t uid;

	for (int i = 0; i < n; i++)
		if (gp_process_uid(rows[i].ref.seen.pid, &uid) && uid != geteuid())
			return true;
	return gp_have_ptrace();
}

static void print_rows(const struct row *rows, int n, const struct gp_devices *devices)
{
	bool first = true;

	if (!env.json) {
		print_table(rows, n, devices);
		if (!shows_others(rows, n))
			puts("processes of other users are not shown; root sees them");
		return;
	}
	for (int i = 0; i < n; i++) {
		if (rows[i].ended)
			continue;
		putchar(first ? '[' : ' ');
		json_row(&rows[i], first);
		first = false;
	}
	puts(first ? "[]" : "]");
}

/* ---- the whole ----------------------------------------------------------------------------------
 */

/* Where samples are rare, the two that make a share take longer than people like to wait. */
static bool wants_more(const struct row *rows, int n, uint64_t over_ns)
{
	for (int i = 0; i < n; i++)
		if (!rows[i].share.known && over_ns < 4 * rows[i].ref.gpu->info.sample_period_ns)
			return env.patient;
	return false;
}

static void watch(struct row *rows, int n)
{
	uint64_t now_ns = gp_monotonic_ns(), end_ns = now_ns + env.for_ns;

	for (int i = 0; i < n; i++)
		gp_share_begin(&rows[i].share, &rows[i].ref);
	while (n && (now_ns < end_ns || wants_more(rows, n, now_ns - end_ns))) {
		uint64_t next_ns = now_ns + TICK_NS;

		gp_stop_sleep(now_ns < end_ns && end_ns < next_ns ? end_ns : next_ns);
		for (int i = 0; i < n; i++)
			gp_share_tick(&rows[i].share, &rows[i].ref);
		now_ns = gp_monotonic_ns();
	}
}

static int compare_rows(const void *a, const void *b)
{
	const struct gp_task_ref *p = &((const struct row *)a)->ref;
	const struct gp_task_ref *q = &((const struct row *)b)->ref;

	if (p->device != q->device)
		return p->device < q->device ? -1 : 1;
	return p->seen.pid < q->seen.pid ? -1 : p->seen.pid > q->seen.pid;
}

static int list_tasks(const struct gp_devices *devices, struct gp_error *err)
{
	struct gp_undo_file *undo = NULL;
	struct gp_task_ref *ref;
	struct row *rows;
	int n = gp_devices_scan(devices, GP_DEVICES_MAX, &ref, err);

	if (n < 0)
		return n;
	rows = calloc((size_t)n + 1, sizeof *rows);
	if (!rows) {
		free(ref);
		return gp_fail(err, -ENOMEM, "no memory");
	}
	for (int i = 0; i < n; i++)
		rows[i].ref = ref[i];
	qsort(rows, (size_t)n, sizeof *rows, compare_rows);
	watch(rows, n);
	gp_undo_open(&undo, false, NULL);
	for (int i = 0; i < n; i++)
		read_row(&rows[i], undo);
	print_rows(rows, n, devices);
	for (int i = 0; i < n; i++)
		gp_share_end(&rows[i].share, &rows[i].ref);
	gp_undo_close(undo);
	free(rows);
	free(ref);
	return 0;
}

static int run(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.doc = "List who has queues on the GPUs: class, slice, state, share of the GPU, "
		       "memory. If a daemon answers, as it knows them.\v"
		       "What is not known is a dash, or left out. A share with <= is what the "
		       "settings "
		       "allowed.\n\n"
		       "Examples:\n"
		       "  gpreempt ps\n"
		       "  gpreempt ps --for 2s --json\n",
	};
	struct gp_devices devices;
	struct gp_error err = {0};
	int r;

	argp_parse(&argp, argc, argv, 0, NULL, NULL);
	if (!env.by_hand && gp_daemon_ps(env.patient ? 0 : env.for_ns, env.json, &r))
		return r;
	if (gp_devices_open(&devices, 0, &err))
		return gp_cli_fail(&err);
	r = list_tasks(&devices, &err);
	gp_devices_close(&devices);
	return r ? gp_cli_fail(&err) : GP_EXIT_DONE;
}

const struct gp_verb gp_verb_ps = {
	.name = "ps",
	.summary = "who has queues on the GPUs, and what they use of them",
	.run = run,
};
