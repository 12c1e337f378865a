/* SPDX-License-Identifier: Apache-2.0 */
/* gpreempt monitor --plot: the number of queues over time. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/verb/monitor.h"

/* The file name ends with something else than .svg. A name without an ending (/dev/stdout) is
 * accepted. */
static bool is_of_another_format(const char *path)
{
	const char *name = strrchr(path, '/'), *end = strrchr(name ? name : path, '.');

	return end && strcmp(end, ".svg") != 0;
}

int gp_monitor_plot_open(struct gp_out_file *file, const char *path, struct gp_error *err)
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
static int add_line(struct gp_monitor *m)
{
	struct gp_plot_line *more = realloc(m->line, (m->nlines + 1) * sizeof *more);

	if (!more)
		return -ENOMEM;
	m->line = more;
	more += m->nlines++;
	*more = (struct gp_plot_line){0};
	return m->counts.samples > 1 ? gp_plot_add(more, m->begin_ns, 0) : 0;
}

int gp_monitor_plot_sample(struct gp_monitor *m)
{
	int r = 0;

	while (!r && m->nlines < m->counts.nseries)
		r = add_line(m);
	for (unsigned i = 0; !r && i < m->nlines; i++)
		r = gp_plot_add(&m->line[i], m->last_ns, m->counts.series[i].count.last);
	return r;
}

int gp_monitor_plot_write(struct gp_monitor *m, pid_t pid, const char *path,
			  struct gp_out_file *file, struct gp_error *err)
{
	char title[96];
	struct gp_plot plot = {.title = title,
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
	r = gp_plot_svg(file->out, &plot);
	if (!r)
		r = gp_out_keep(file);
	return r ? gp_fail(err, r, "cannot write %s: %s", path, gp_error_name(r)) : 0;
}
