/* SPDX-License-Identifier: Apache-2.0 */
/* gpreempt top: options, one screen as text, one snapshot as JSON. Rates need two snapshots. */
#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/cli.h"
#include "cli/lib/fields.h"
#include "cli/lib/options.h"
#include "cli/top/top.h"

#define TIMEOUT_NS (10 * GP_NS_PER_S) /* longer than any answer of the daemon takes */
#define WIDE       120                /* width without a terminal: all columns fit */

static void wait_for_daemon(const struct gp_top *top, uint64_t until_ns)
{
	struct pollfd p = {.fd = gp_top_connection_fd(&top->link), .events = POLLIN};
	uint64_t now_ns = gp_monotonic_ns(), due_ns = gp_top_due(top, now_ns);
	struct timespec wait;

	due_ns = due_ns < until_ns ? due_ns : until_ns;
	wait = gp_timespec(due_ns > now_ns ? due_ns - now_ns : 0);
	ppoll(&p, 1, &wait, NULL);
}

/* Waits for two snapshots, --every apart. 0 or -errno. */
static int take_two_snapshots(struct gp_top *top)
{
	uint64_t now_ns = gp_monotonic_ns();
	uint64_t until_ns = now_ns + TIMEOUT_NS + top->link.every_ns;

	for (; top->history.n < 2 && now_ns < until_ns; now_ns = gp_monotonic_ns()) {
		gp_top_work(top, now_ns);
		if (top->link.trouble.code && top->link.trouble.code != -ETIMEDOUT)
			return top->link.trouble.code;
		if (top->history.n < 2)
			wait_for_daemon(top, until_ns);
	}
	return top->history.n < 2 ? gp_fail(&top->link.trouble, -ETIMEDOUT,
					    "the daemon does not answer; gpreempt doctor checks it")
				  : 0;
}

static unsigned width_of_output(void)
{
	const char *columns = getenv("COLUMNS");
	struct winsize size;
	uint64_t n;

	if (columns && gp_cli_number(columns, 10000, &n) && n)
		return (unsigned)n;
	if (isatty(STDOUT_FILENO) && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col)
		return size.ws_col;
	return WIDE;
}

static int print_once(struct gp_top *top)
{
	struct gp_cells cells = {.utf8 = gp_top_utf8()};

	if (take_two_snapshots(top))
		return gp_cli_fail(&top->link.trouble);
	gp_top_paint_plain(top, &cells, width_of_output());
	gp_cells_print(&cells, stdout);
	gp_cells_free(&cells);
	return GP_EXIT_DONE;
}

/* An unknown value is left out. */
static void add(struct json_object *o, const char *key, double value, double scale)
{
	if (value >= 0)
		gp_field_put_decimal(o, key, value * scale, 1);
}

static int print_json(struct gp_top *top)
{
	const struct gp_top_snapshot *snapshot = &top->link.snapshot;
	struct json_object *o, *list;

	top->link.keep_json = true;
	if (take_two_snapshots(top))
		return gp_cli_fail(&top->link.trouble);
	o = json_object_new_object();
	list = gp_field_put_list(o, "devices");
	for (unsigned i = 0; i < snapshot->ndevices; i++) {
		const struct gp_top_device *d = &snapshot->device[i];

		add(d->json, "busy_pct", d->busy, 100);
		add(d->json, "preemptions_per_s", d->preemptions_per_s, 1);
		add(d->json, "inversions_per_s", d->inversions_per_s, 1);
		json_object_array_add(list, json_object_get(d->json));
	}
	list = gp_field_put_list(o, "tasks");
	for (unsigned i = 0; i < top->view.n; i++) {
		const struct gp_top_task *t = &snapshot->task[top->view.order[i]];

		add(t->json, "gpu_pct", t->share, 100);
		add(t->json, "preemptions_per_s", t->preemptions_per_s, 1);
		json_object_array_add(list, json_object_get(t->json));
	}
	gp_print_json_once(o);
	return GP_EXIT_DONE;
}

#define EVERY_LEAST_NS (100 * GP_NS_PER_MS) /* the daemon publishes snapshots no faster */

static struct {
	bool once, json, no_colour;
	uint64_t every_ns;
	int device;
} env = {.every_ns = GP_NS_PER_S, .device = -1};

static const struct gp_option options[] = {
	{"every", 'e', "TIME", "Time between two snapshots (default: 1s)", .time_ns = &env.every_ns,
	 .min = EVERY_LEAST_NS},
	{"device", 'd', "N", "Only this device", .device = &env.device},
	{"once", 0, NULL, "Print one screen as text; the default if the output is not a terminal",
	 .flag = &env.once},
	{"no-colour", 0, NULL, "Without colour; also if NO_COLOR is set", .flag = &env.no_colour},
	{.name = "no-color"},
	{"json", 'j', NULL, "Write one snapshot as JSON", .flag = &env.json},
	{0},
};

bool gp_top_utf8(void)
{
	return !strcmp(nl_langinfo(CODESET), "UTF-8");
}

static int run(struct gp_error *err)
{
	const char *no_colour = getenv("NO_COLOR");
	struct gp_top *top;
	int exit;

	setlocale(LC_CTYPE, ""); /* characters only: the format of numbers stays */
	top = malloc(sizeof *top);
	if (!top)
		return gp_fail(err, -ENOMEM, "no memory");
	gp_top_init(top, env.every_ns, env.device);
	if (env.json)
		exit = print_json(top);
	else if (env.once || !isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO))
		exit = print_once(top);
	else
		exit = gp_top_live(top, !env.no_colour && !(no_colour && *no_colour));
	gp_top_free(top);
	free(top);
	return exit;
}

const struct gp_verb gp_verb_top = {
	.name = "top",
	.summary = "live view of the daemon's tasks, with keys to control them",
	.options = options,
	.doc = "Show the devices and tasks of the daemon live, and control them with keys.\v"
	       "Keys: arrows, j and k select; c class, + and - priority, h hold, r release, s "
	       "sort, "
	       "f filter, p policy, ? help, q quit.\n\n"
	       "Examples:\n"
	       "  gpreempt top\n"
	       "  gpreempt top --device 0 --every 200ms\n"
	       "  gpreempt top --once | head\n",
	.run = run,
};
