/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metrics of tasks: their number in each state and, if requested, metrics of each task. Metrics of
 * a task come and go with processes, and each costs Prometheus memory for hours. So they are off by
 * default and limited in number.
 */
#include "metrics/page_parts.h"

static enum gp_task_state state_of(const struct gp_task_stats *t)
{
	const struct gp_task_condition condition = {.held = t->held,
						    .held_by = t->held_by,
						    .evicted = t->evicted.ns,
						    .known = t->known,
						    .active = t->active,
						    .running = t->running};

	return gp_task_state(&condition);
}

static void write_states(FILE *out, unsigned device, const struct gp_metrics_device *d)
{
	unsigned n[GP_LATENCY_CRITICAL + 1][GP_TASK_STATES] = {0};

	for (unsigned i = 0; i < d->ntasks; i++)
		n[d->task[i].attr.class][state_of(&d->task[i])]++;
	for (unsigned class = 0; class <= GP_LATENCY_CRITICAL; class ++)
		for (unsigned state = 0; state < GP_TASK_STATES; state++)
			fprintf(out, "gpreempt_tasks{device=\"%u\",class=\"%s\",state=\"%s\"} %u\n",
				device, gp_class_name(class), gp_task_state_name(state),
				n[class][state]);
}

/* Absent if the memory of no task is known. */
static void write_memory(FILE *out, const struct gp_metrics_page *p)
{
	bool headed = false;

	for (unsigned i = 0; i < p->ndevices; i++) {
		uint64_t memory = 0;

		for (unsigned t = 0; t < p->device[i].ntasks; t++)
			memory += p->device[i].task[t].memory;
		if (!memory)
			continue;
		if (!headed)
			gp_metrics_head(out, "gpreempt_tasks_memory_bytes", "gauge",
					"GPU memory of all tasks of the device.");
		headed = true;
		fprintf(out, "gpreempt_tasks_memory_bytes{device=\"%u\"}", i);
		gp_metrics_count(out, memory);
	}
}

/* Metrics of each task. */

static void name_task(FILE *out, const char *name, unsigned device, const struct gp_task_stats *t)
{
	fprintf(out, "%s{device=\"%u\",task=\"%llu\",pid=\"%d\",", name, device,
		(unsigned long long)t->id, t->pid);
	gp_metrics_label(out, "name", t->name);
}

typedef void sample_fn(FILE *out, unsigned device, const struct gp_task_stats *t);

static void sample_info(FILE *out, unsigned device, const struct gp_task_stats *t)
{
	name_task(out, "gpreempt_task_info", device, t);
	fprintf(out, ",class=\"%s\"} 1\n", gp_class_name(t->attr.class));
}

static void sample_run(FILE *out, unsigned device, const struct gp_task_stats *t)
{
	if (t->run_source == GP_RUN_UNKNOWN)
		return;
	name_task(out, "gpreempt_task_run_seconds_total", device, t);
	fprintf(out, ",source=\"%s\"}", t->run_source == GP_RUN_MEASURED ? "measured" : "granted");
	gp_metrics_seconds(out, t->run_ns);
}

static void sample_held(FILE *out, unsigned device, const struct gp_task_stats *t)
{
	name_task(out, "gpreempt_task_held_seconds_total", device, t);
	fputc('}', out);
	gp_metrics_seconds(out, t->held_ns);
}

static void sample_preemptions(FILE *out, unsigned device, const struct gp_task_stats *t)
{
	name_task(out, "gpreempt_task_preemptions_total", device, t);
	fputc('}', out);
	gp_metrics_count(out, t->preemptions);
}

static void sample_memory(FILE *out, unsigned device, const struct gp_task_stats *t)
{
	if (!t->memory)
		return;
	name_task(out, "gpreempt_task_memory_bytes", device, t);
	fputc('}', out);
	gp_metrics_count(out, t->memory);
}

static void sample_waits(FILE *out, unsigned device, const struct gp_task_stats *t)
{
	if (!t->waits)
		return;
	name_task(out, "gpreempt_task_wait_seconds", device, t);
	fputs(",quantile=\"0.5\"}", out);
	gp_metrics_seconds(out, t->wait_p50_ns);
	name_task(out, "gpreempt_task_wait_seconds", device, t);
	fputs(",quantile=\"0.99\"}", out);
	gp_metrics_seconds(out, t->wait_p99_ns);
	name_task(out, "gpreempt_task_wait_seconds_sum", device, t);
	fputc('}', out);
	gp_metrics_seconds(out, t->wait_sum_ns);
	name_task(out, "gpreempt_task_wait_seconds_count", device, t);
	fputc('}', out);
	gp_metrics_count(out, t->waits);
}

static const struct {
	const char *name, *type, *help;
	sample_fn *sample;
} families[] = {
	{"gpreempt_task_info", "gauge", "Always 1; the class of a task is a label.", sample_info},
	{"gpreempt_task_run_seconds_total", "counter", "Time on the device.", sample_run},
	{"gpreempt_task_held_seconds_total", "counter", "Time held by the policy.", sample_held},
	{"gpreempt_task_preemptions_total", "counter", "How often it was held while active.",
	 sample_preemptions},
	{"gpreempt_task_memory_bytes", "gauge", "GPU memory.", sample_memory},
	{"gpreempt_task_wait_seconds", "summary", "Completed waits of the task.", sample_waits},
};

/* Writes the samples of the first tasks of each device, up to the limit for all devices. */
static void write_family(FILE *out, const struct gp_metrics_page *p, unsigned family)
{
	unsigned left = GP_METRICS_TASKS_MAX;

	gp_metrics_head(out, families[family].name, families[family].type, families[family].help);
	for (unsigned i = 0; i < p->ndevices; i++)
		for (unsigned t = 0; t < p->device[i].ntasks && left; t++, left--)
			families[family].sample(out, i, &p->device[i].task[t]);
}

static void write_each(FILE *out, const struct gp_metrics_page *p)
{
	unsigned n = 0;

	for (unsigned i = 0; i < sizeof families / sizeof *families; i++)
		write_family(out, p, i);
	for (unsigned i = 0; i < p->ndevices; i++)
		n += p->device[i].ntasks;
	gp_metrics_head(out, "gpreempt_tasks_without_series", "gauge",
			"Tasks beyond the limit, without metrics of their own.");
	fprintf(out, "gpreempt_tasks_without_series %u\n",
		n > GP_METRICS_TASKS_MAX ? n - GP_METRICS_TASKS_MAX : 0);
}

void gp_metrics_tasks(FILE *out, const struct gp_metrics_page *p)
{
	if (p->ndevices)
		gp_metrics_head(out, "gpreempt_tasks", "gauge", "Tasks by class and state.");
	for (unsigned i = 0; i < p->ndevices; i++)
		write_states(out, i, &p->device[i]);
	write_memory(out, p);
	if (p->tasks)
		write_each(out, p);
}
