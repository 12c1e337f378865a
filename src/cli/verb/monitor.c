/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpreempt monitor: samples the queues of a process and reports how stable they are.
 *
 * In this file: the chart of --plot; the report as text and JSON; the options; the sampling.
 */
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/process.h"
#include "cli/cli.h"
#include "cli/draw/chart.h"
#include "cli/lib/grid.h"
#include "cli/lib/local_tasks.h"
#include "cli/lib/options.h"
#include "cli/lib/out_file.h"
#include "cli/lib/stop.h"
#include "hold/devices.h"
#include "hold/queue_counts.h"

struct plot_step {
	uint64_t at_ns;
	unsigned value; /* from at_ns to the next step */
};

struct plot_line {
	char label[96];
	unsigned n, capacity;
	struct plot_step *step; /* owned by the caller */
};

struct plot {
	const char *title;
	const char *unit; /* of the values, as "queues" */
	uint64_t from_ns, to_ns;
	unsigned n;
	const struct plot_line *line;
};

enum {
	WIDTH = 900,
	LEFT = 60,
	RIGHT = 30,
	TITLE = 30, /* base line of the title */
	PLOT = 262, /* height of the area with the lines */
	BOTTOM = 54,
	SPREAD_MAX = 6, /* with more lines, equal values are drawn on top of each other */
	MARKS = 60,     /* marks per line, about */
	TICKS = 6,
};

#define SPREAD   2.5  /* pixels between lines with equal values */
#define HEADROOM 1.08 /* the axis ends above the largest value */

/* Adds a step if the value differs from the last one. 0 or -ENOMEM. */
static int add_step(struct plot_line *line, uint64_t at_ns, unsigned value)
{
	if (line->n && line->step[line->n - 1].value == value)
		return 0;
	if (line->n == line->capacity) {
		unsigned capacity = line->capacity ? 2 * line->capacity : 16;
		struct plot_step *step = realloc(line->step, capacity * sizeof *step);

		if (!step)
			return -ENOMEM;
		line->step = step;
		line->capacity = capacity;
	}
	line->step[line->n++] = (struct plot_step){.at_ns = at_ns, .value = value};
	return 0;
}

struct frame {
	const struct plot *plot;
	double top, bottom; /* of the area with the lines */
	double max;         /* largest value */
	double for_ns;
};

static struct frame frame_of(const struct plot *plot)
{
	struct frame f = {.plot = plot, .max = 1, .for_ns = (double)(plot->to_ns - plot->from_ns)};

	for (unsigned i = 0; i < plot->n; i++)
		for (unsigned k = 0; k < plot->line[i].n; k++)
			f.max = fmax(f.max, plot->line[i].step[k].value);
	f.for_ns = fmax(f.for_ns, 1);
	return f;
}

static double x_of(const struct frame *f, uint64_t at_ns)
{
	return LEFT + (WIDTH - LEFT - RIGHT) * (double)(at_ns - f->plot->from_ns) / f->for_ns;
}

static double y_of(const struct frame *f, double value)
{
	return f->bottom - PLOT * value / (f->max * HEADROOM);
}

static struct gp_point point_of(const struct frame *f, uint64_t at_ns, unsigned value,
				unsigned line)
{
	double middle = (f->plot->n - 1) / 2.0;
	double spread = f->plot->n <= SPREAD_MAX ? SPREAD * (line - middle) : 0;

	return (struct gp_point){x_of(f, at_ns), y_of(f, value) + spread};
}

static void draw_values(struct gp_draw *d, const struct frame *f)
{
	struct gp_font font = gp_font_at(gp_font_plain, GP_ANCHOR_END);
	double step = fmax(gp_chart_step(f->max, TICKS), 1);
	char text[32];

	for (unsigned i = 0; i * step <= f->max; i++) {
		double value = i * step, y = y_of(f, value);

		gp_draw_line(d, LEFT, y, WIDTH - RIGHT, y, &gp_stroke_grid);
		snprintf(text, sizeof text, "%.0f", value);
		gp_draw_text(d, LEFT - 8, y + 4, text, &font);
	}
	gp_draw_text(d, LEFT, f->top - 4, f->plot->unit, &gp_font_plain);
}

static void draw_times(struct gp_draw *d, const struct frame *f)
{
	struct gp_font font = gp_font_at(gp_font_plain, GP_ANCHOR_MIDDLE);
	double range_ms = floor(f->for_ns / 1e6);
	double step_ms = range_ms > 0 ? fmax(gp_chart_step(range_ms, TICKS), 1) : 1;
	char text[32];

	for (unsigned i = 0; i * step_ms <= range_ms; i++) {
		double ms = i * step_ms;
		double x = LEFT + (WIDTH - LEFT - RIGHT) * ms * 1e6 / f->for_ns;

		gp_draw_line(d, x, f->bottom, x, f->bottom + 5, &gp_stroke_axis);
		snprintf(text, sizeof text, "%g", ms / 1000);
		gp_draw_text(d, x, f->bottom + 20, text, &font);
	}
	gp_draw_line(d, LEFT, f->bottom, WIDTH - RIGHT, f->bottom, &gp_stroke_axis);
	gp_draw_text(d, (LEFT + WIDTH - RIGHT) / 2.0, f->bottom + 42, "seconds", &font);
}

static void draw_line(struct gp_draw *d, const struct frame *f, unsigned i)
{
	const struct plot_line *line = &f->plot->line[i];
	struct gp_point *point = calloc(2 * (size_t)line->n + 1, sizeof *point);
	struct gp_stroke stroke = gp_chart_stroke(i);
	unsigned n = 0, every = line->n / MARKS + 1;

	for (unsigned k = 0; point && k < line->n; k++) {
		struct gp_point next = point_of(f, line->step[k].at_ns, line->step[k].value, i);

		if (n) {
			point[n] = (struct gp_point){next.x, point[n - 1].y};
			n++;
		}
		point[n++] = next;
	}
	if (n) {
		point[n] = (struct gp_point){WIDTH - RIGHT, point[n - 1].y};
		gp_draw_lines(d, point, n + 1, &stroke);
	}
	for (unsigned k = 0; k < n; k += 2 * every)
		gp_chart_mark(d, point[k].x, point[k].y, i);
	free(point);
}

static double draw(struct gp_draw *d, const struct plot *plot)
{
	struct gp_legend legend = {LEFT, WIDTH - RIGHT, LEFT, TITLE + 26};
	struct frame f = frame_of(plot);

	gp_draw_text(d, LEFT, TITLE, plot->title, &gp_font_title);
	for (unsigned i = 0; i < plot->n; i++)
		gp_legend_series(&legend, d, i, plot->line[i].label);
	f.top = legend.y + 28;
	f.bottom = f.top + PLOT;
	draw_values(d, &f);
	draw_times(d, &f);
	for (unsigned i = 0; d && i < plot->n; i++)
		draw_line(d, &f, i);
	return f.bottom + BOTTOM;
}

/* 0 or -errno. */
static int draw_plot(FILE *out, const struct plot *plot)
{
	struct gp_draw *d = gp_draw_begin(out, GP_DRAW_SVG, WIDTH, draw(NULL, plot));

	if (!d)
		return -ENOMEM;
	draw(d, plot);
	return gp_draw_end(d);
}

struct samples {
	const struct gp_devices *devices;
	uint64_t begin_ns, last_ns;
	bool ended;
	char name[32];
	struct gp_queue_counts counts;
	struct gp_share share[GP_DEVICES_MAX];
	struct gp_task_ref
		ref[GP_DEVICES_MAX]; /* .gpu is NULL until the process has queues there */
	/* With --plot: for each series of the counts. */
	unsigned nlines;
	struct plot_line *line;
};

#define IDS_SHOWN 40 /* JSON has all */
#define NOT_TRIED "whether the process can be held was not tried; gpreempt bench tries it"

static const char *advice(const struct samples *m)
{
	if (m->ended)
		return "the process has ended";
	if (m->counts.samples < 2)
		return "one sample does not show whether the queues are stable: take more (--for, "
		       "--every)";
	if (gp_queue_counts_is_stable(&m->counts))
		return "stable: no queue came or went; " NOT_TRIED;
	for (unsigned i = 0; i < m->counts.nseries; i++)
		if (!m->counts.series[i].copies &&
		    (m->counts.series[i].count.came || m->counts.series[i].count.went))
			return "changing: schedule the process as a whole, never single queues; "
			       "a new queue runs until it is noticed";
	return "stable: only copy queues came or went; " NOT_TRIED;
}

static double percent_of_all(const struct samples *m, const struct gp_queue_counts_series *s)
{
	return m->counts.all.sum ? 100.0 * (double)s->count.sum / (double)m->counts.all.sum : 0;
}

static void add_slices(struct gp_grid *grid, const struct gp_queue_counts_series *s)
{
	char list[192] = "";

	for (unsigned i = 0; i < s->nslices; i++) {
		size_t used = strlen(list);

		snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "",
			 gp_cli_duration(1000ull * s->slice_us[i]).text);
	}
	gp_grid_text(grid, s->nslices ? list : NULL);
}

static void print_types(const struct samples *m)
{
	static const struct gp_column columns[] = {
		{"DEVICE", 0},
		{"TYPE", GP_COLUMN_LEFT},
		{"MIN", 0},
		{"MAX", 0},
		{"AVERAGE", 0},
		{"OF ALL", 0},
		{"CAME", 0},
		{"WENT", 0},
		{"SLICES", GP_COLUMN_LEFT},
	};
	struct gp_grid grid;

	gp_grid_begin(&grid, columns, sizeof columns / sizeof columns[0]);
	for (unsigned i = 0; i < m->counts.nseries; i++) {
		const struct gp_queue_counts_series *s = &m->counts.series[i];

		gp_grid_cell(&grid, "%u", s->device);
		gp_grid_text(&grid, s->type);
		gp_grid_cell(&grid, "%u", s->count.min);
		gp_grid_cell(&grid, "%u", s->count.max);
		gp_grid_cell(&grid, "%.1f", gp_queue_counts_average(&m->counts, &s->count));
		gp_grid_cell(&grid, "%.0f %%", percent_of_all(m, s));
		gp_grid_cell(&grid, "%u", s->count.came);
		gp_grid_cell(&grid, "%u", s->count.went);
		add_slices(&grid, s);
	}
	gp_grid_end(&grid, stdout);
}

static void print_ids(const struct samples *m)
{
	static const struct gp_column columns[] = {
		{"ID", 0}, {"DEVICE", 0}, {"TYPE", GP_COLUMN_LEFT}, {"SEEN", 0}};
	unsigned n = m->counts.nqueues < IDS_SHOWN ? m->counts.nqueues : IDS_SHOWN;
	struct gp_grid grid;

	gp_grid_begin(&grid, columns, sizeof columns / sizeof columns[0]);
	for (unsigned i = 0; i < n; i++) {
		gp_grid_cell(&grid, "%u", m->counts.queue[i].queue.id);
		gp_grid_cell(&grid, "%u", m->counts.queue[i].device);
		gp_grid_text(&grid, m->counts.queue[i].queue.type);
		gp_grid_cell(&grid, "%u of %u", m->counts.queue[i].samples, m->counts.samples);
	}
	gp_grid_end(&grid, stdout);
	if (m->counts.nqueues > n)
		printf("and %u more; --json has them all\n", m->counts.nqueues - n);
}

static void print_report(const struct samples *m, pid_t pid)
{
	char text[32];

	printf("%d (%s): %u sample%s in %s; ", pid, m->name, m->counts.samples,
	       m->counts.samples == 1 ? "" : "s", gp_cli_duration(m->last_ns - m->begin_ns).text);
	if (m->counts.all.min == m->counts.all.max)
		printf("%u queue%s all the time\n\n", m->counts.all.max,
		       m->counts.all.max == 1 ? "" : "s");
	else
		printf("%u to %u queues, %.1f on average\n\n", m->counts.all.min, m->counts.all.max,
		       gp_queue_counts_average(&m->counts, &m->counts.all));
	print_types(m);
	putchar('\n');
	print_ids(m);
	putchar('\n');
	for (unsigned i = 0; i < m->devices->n; i++)
		if (m->ref[i].gpu && m->share[i].known)
			printf("share of device %u (%s): %s\n", i, m->ref[i].gpu->info.name,
			       gp_share_text(text, sizeof text, &m->share[i]));
	puts(advice(m));
}

static void add_count(struct json_object *o, const struct samples *m,
		      const struct gp_queue_counts_count *n)
{
	gp_field_put(o, "min", n->min);
	gp_field_put(o, "max", n->max);
	gp_field_put_decimal(o, "average", gp_queue_counts_average(&m->counts, n), 2);
}

static void add_series(struct json_object *list, const struct samples *m,
		       const struct gp_queue_counts_series *s)
{
	struct json_object *o = gp_list_object(list), *slices;

	gp_field_put(o, "device", s->device);
	gp_field_put_text(o, "type", s->type);
	add_count(o, m, &s->count);
	gp_field_put_decimal(o, "of_all_pct", percent_of_all(m, s), 1);
	gp_field_put(o, "came", s->count.came);
	gp_field_put(o, "went", s->count.went);
	slices = gp_field_put_list(o, "slices_us");
	for (unsigned i = 0; i < s->nslices; i++)
		json_object_array_add(slices, json_object_new_uint64(s->slice_us[i]));
}

static void add_id(struct json_object *list, const struct gp_queue_counts_queue *k)
{
	struct json_object *o = gp_list_object(list);

	gp_field_put(o, "device", k->device);
	gp_field_put(o, "id", k->queue.id);
	gp_field_put_text(o, "type", k->queue.type);
	gp_field_put_known(o, "serial", k->queue.serial);
	gp_field_put(o, "seen", k->samples);
}

static void add_device(struct json_object *list, const struct samples *m, unsigned i)
{
	const struct gp_share *share = &m->share[i];
	struct json_object *o = gp_list_object(list);

	gp_field_put(o, "device", i);
	gp_field_put_text(o, "name", m->ref[i].gpu->info.name);
	if (share->known) {
		gp_field_put_decimal(o, "gpu_pct", gp_share_percent(share), 1);
		gp_field_put_text(o, "run_source",
				  share->source == GP_RUN_GRANTED ? "granted" : "measured");
	}
}

static void print_json(const struct samples *m, pid_t pid)
{
	struct json_object *o = json_object_new_object(), *list;

	gp_field_put(o, "pid", (uint64_t)pid);
	gp_field_put_text(o, "name", m->name);
	gp_field_put(o, "samples", m->counts.samples);
	add_count(gp_field_put_object(o, "total"), m, &m->counts.all);
	list = gp_field_put_list(o, "queues");
	for (unsigned i = 0; i < m->counts.nseries; i++)
		add_series(list, m, &m->counts.series[i]);
	list = gp_field_put_list(o, "ids");
	for (unsigned i = 0; i < m->counts.nqueues; i++)
		add_id(list, &m->counts.queue[i]);
	list = gp_field_put_list(o, "devices");
	for (unsigned i = 0; i < m->devices->n; i++)
		if (m->ref[i].gpu)
			add_device(list, m, i);
	gp_field_put_bool(o, "stable", gp_queue_counts_is_stable(&m->counts));
	gp_field_put_bool(o, "ended", m->ended);
	gp_field_put_text(o, "advice", advice(m));
	gp_print_json_once(o);
}

/* The file name ends with something else than .svg. A name without an ending (/dev/stdout) is
 * accepted. */
static bool is_of_another_format(const char *path)
{
	const char *name = strrchr(path, '/'), *end = strrchr(name ? name : path, '.');

	return end && strcmp(end, ".svg") != 0;
}

/* Checks before sampling that the file can be written. 0 or -errno with a message. */
static int open_plot(struct gp_out_file *file, const char *path, struct gp_error *err)
{
	int r;

	if (is_of_another_format(path))
		return gp_fail(
			err, -EINVAL,
			"this plot is drawn as SVG: use a file name that ends with .svg, not "
			"'%s'",
			path);
	r = gp_out_open(file, path);
	return r ? gp_fail(err, r, "cannot write %s: %s", path, gp_error_name(r)) : 0;
}

/* A series that appears later has the value 0 before. */
static int add_line(struct samples *m)
{
	struct plot_line *more = realloc(m->line, (m->nlines + 1) * sizeof *more);

	if (!more)
		return -ENOMEM;
	m->line = more;
	more += m->nlines++;
	*more = (struct plot_line){0};
	return m->counts.samples > 1 ? add_step(more, m->begin_ns, 0) : 0;
}

/* Adds the last sample. 0 or -ENOMEM. */
static int plot_sample(struct samples *m)
{
	int r = 0;

	while (!r && m->nlines < m->counts.nseries)
		r = add_line(m);
	for (unsigned i = 0; !r && i < m->nlines; i++)
		r = add_step(&m->line[i], m->last_ns, m->counts.series[i].count.last);
	return r;
}

static int write_plot(struct samples *m, pid_t pid, const char *path, struct gp_out_file *file,
		      struct gp_error *err)
{
	char title[96];
	struct plot plot = {.title = title,
			    .unit = "queues",
			    .from_ns = m->begin_ns,
			    .to_ns = m->last_ns,
			    .n = m->nlines,
			    .line = m->line};
	int r;

	snprintf(title, sizeof title, "Queues of %d (%s), %u samples", pid, m->name,
		 m->counts.samples);
	for (unsigned i = 0; i < m->nlines; i++) {
		const struct gp_queue_counts_series *s = &m->counts.series[i];

		snprintf(m->line[i].label, sizeof m->line[i].label, "%s on device %u (%s)", s->type,
			 s->device, m->devices->device[s->device].gpu->info.name);
	}
	r = draw_plot(file->out, &plot);
	if (!r)
		r = gp_out_keep(file);
	return r ? gp_fail(err, r, "cannot write %s: %s", path, gp_error_name(r)) : 0;
}

static struct {
	struct gp_targets targets;
	bool json, closely;
	const char *plot;
	uint64_t for_ns, every_ns;
} env = {.targets.single = true, .for_ns = 30 * GP_NS_PER_S, .every_ns = GP_NS_PER_S};

static const struct gp_option options[] = {
	{"for", 'f', "TIME", "Sample for this time (30s); Ctrl-C ends it earlier",
	 .time_ns = &env.for_ns},
	{"every", 'e', "TIME", "Interval between samples (1s)", .time_ns = &env.every_ns,
	 .min = GP_NS_PER_MS},
	{"plot", 'p', "FILE.svg", "Draw the number of queues over time", .text = &env.plot},
	{"closely", 'c', NULL, "Attach to the process where that shows more", .flag = &env.closely},
	{"json", 'j', NULL, "Write JSON", .flag = &env.json},
	{0},
};

static int close_sample(struct samples *m, uint64_t now_ns, struct gp_error *err)
{
	const struct gp_queue_counts *c = &m->counts;

	gp_queue_counts_close(&m->counts);
	m->last_ns = now_ns;
	gp_progress("sample %u: %u queue%s", c->samples, c->all.last, c->all.last == 1 ? "" : "s");
	if (env.plot && plot_sample(m))
		return gp_fail(err, -ENOMEM, "no memory");
	return 0;
}

static int sample_ref(struct samples *m, const struct gp_task_ref *ref, uint64_t now_ns,
		      struct gp_error *err)
{
	struct gp_task_ref *known = &m->ref[ref->device];
	struct gp_queue *queue;
	int n = gp_task_ref_queues(ref, env.closely, &queue, err), r = 0;

	for (int i = 0; i < n && !r; i++)
		r = gp_queue_counts_note(&m->counts, ref->device, &queue[i], now_ns);
	free(queue);
	if (r)
		return gp_fail(err, r, "no memory");
	if (!known->gpu)
		gp_share_begin(&m->share[ref->device], ref);
	*known = *ref;
	gp_share_tick(&m->share[ref->device], ref);
	snprintf(m->name, sizeof m->name, "%s", ref->seen.name);
	return n < 0 ? n : 0;
}

/* A sample without queues counts: queues may come later. */
static int sample(struct samples *m, pid_t pid, struct gp_error *err)
{
	struct gp_task_ref ref[GP_DEVICES_MAX];
	struct gp_error why = {0};
	uint64_t now_ns = gp_monotonic_ns();
	int n = gp_devices_find_any(m->devices, pid, ref, GP_DEVICES_MAX, &why), r = 0;

	if (n < 0 && n != -ENODEV)
		return gp_fail(err, n, "%s", why.text);
	m->begin_ns = m->begin_ns ? m->begin_ns : now_ns;
	for (int i = 0; i < n && (!r || r == -ESRCH); i++)
		r = sample_ref(m, &ref[i], now_ns, &why);
	if (r && r != -ESRCH)
		return gp_fail(err, r, "%s", why.text);
	return close_sample(m, now_ns, err);
}

static int watch(struct samples *m, pid_t pid, struct gp_error *err)
{
	uint64_t next_ns = gp_monotonic_ns();
	uint64_t end_ns = gp_time_add(next_ns, env.for_ns);
	int r;

	do {
		r = sample(m, pid, err);
		next_ns = gp_time_add(next_ns, env.every_ns);
	} while (!r && next_ns <= end_ns && !gp_stop_sleep(next_ns));
	gp_progress_end();
	if (r == -ESRCH && m->counts.samples) {
		m->ended = true;
		*err = (struct gp_error){0};
		return 0;
	}
	return r;
}

static void forget(struct samples *m)
{
	for (unsigned i = 0; i < m->devices->n; i++)
		gp_share_end(&m->share[i], &m->ref[i]);
	for (unsigned i = 0; i < m->nlines; i++)
		free(m->line[i].step);
	free(m->line);
	gp_queue_counts_free(&m->counts);
	free(m);
}

static int compare_queues(const void *a, const void *b)
{
	const struct gp_queue_counts_queue *p = a, *q = b;

	if (p->device != q->device)
		return p->device < q->device ? -1 : 1;
	return p->queue.id < q->queue.id ? -1 : p->queue.id > q->queue.id;
}

static int monitor(const struct gp_devices *devices, pid_t pid, struct gp_out_file *plot,
		   struct gp_error *err)
{
	struct samples *m = calloc(1, sizeof *m);
	int r;

	if (!m)
		return gp_fail(err, -ENOMEM, "no memory");
	m->devices = devices;
	gp_process_name(pid, m->name, sizeof m->name);
	r = watch(m, pid, err);
	if (!r && !m->counts.nseries)
		r = gp_fail(err, -ENODEV, "process %d had no queues in %u sample%s", pid,
			    m->counts.samples, m->counts.samples == 1 ? "" : "s");
	if (!r) {
		qsort(m->counts.queue, m->counts.nqueues, sizeof *m->counts.queue, compare_queues);
		(env.json ? print_json : print_report)(m, pid);
		if (plot->out)
			r = write_plot(m, pid, env.plot, plot, err);
	}
	forget(m);
	return r;
}

static int run(struct gp_error *err)
{
	struct gp_devices devices;
	struct gp_out_file plot = {0};
	int r = gp_targets_open(&env.targets, &devices, err);

	if (r)
		return r;
	r = gp_stop_begin(err);
	if (!r && env.plot)
		r = open_plot(&plot, env.plot, err);
	if (!r)
		r = monitor(&devices, env.targets.pid[0], &plot, err);
	gp_out_drop(&plot);
	gp_devices_close(&devices);
	return r;
}

const struct gp_verb gp_verb_monitor = {
	.name = "monitor",
	.summary = "sample the queues of a process: number and stability",
	.arguments = "PID",
	.targets = &env.targets,
	.options = options,
	.doc = "Sample the queues of a process: number, stability, slices, share of the GPU, and "
	       "what that means for scheduling the process.\v"
	       "Examples:\n"
	       "  gpreempt monitor 4711 --for 30s --every 5s\n"
	       "  gpreempt monitor 4711 --for 10s --every 200ms --plot queues.svg\n",
	.run = run,
};
