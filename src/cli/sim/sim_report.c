/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "cli/cli.h"
#include "cli/sim/sim_report.h"

#define TASKS_SHOWN 16 /* in the table; JSON has all */

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

enum row { P50, P99, P999, MAX, FINISHED, LEFT, MISSED, WORK, TASK_ROWS };

static const char *const task_row_name[TASK_ROWS] = {
	[P50] = "response p50",        [P99] = "response p99",       [P999] = "response p99.9",
	[MAX] = "response max",        [FINISHED] = "requests done", [LEFT] = "requests left over",
	[MISSED] = "deadlines missed", [WORK] = "work, % of alone",
};

static void task_cell(char *out, size_t size, const struct gp_run_task *t, enum row row)
{
	const uint64_t response[] = {t->p50_ns, t->p99_ns, t->p999_ns, t->max_ns};

	switch (row) {
	case P50:
	case P99:
	case P999:
	case MAX:
		if (t->has_response)
			snprintf(out, size, "%s", gp_cli_duration(response[row]).text);
		else
			snprintf(out, size, "-");
		break;
	case FINISHED: snprintf(out, size, "%llu", (unsigned long long)t->finished); break;
	case LEFT: snprintf(out, size, "%llu", (unsigned long long)t->left); break;
	case MISSED:
		snprintf(out, size, "%llu%s", (unsigned long long)t->missed,
			 t->refused ? " (refused)" : "");
		break;
	default:
		if (t->alone_ns)
			snprintf(out, size, "%.1f", percent(t->work_ns, t->alone_ns));
		else
			snprintf(out, size, "-");
	}
}

enum device_row { BUSY, SWITCHING, SWITCHES, PREEMPTIONS, INVERSIONS, DEVICE_ROWS };

static const char *const device_row_name[DEVICE_ROWS] = {
	[BUSY] = "busy %",           [SWITCHING] = "lost to switching %",
	[SWITCHES] = "switches",     [PREEMPTIONS] = "preemptions",
	[INVERSIONS] = "inversions",
};

static void device_cell(char *out, size_t size, const struct gp_run *run, enum device_row row)
{
	switch (row) {
	case BUSY:
		snprintf(out, size, "%.1f", percent(run->device.busy_ns, run->duration_ns));
		break;
	case SWITCHING:
		snprintf(out, size, "%.1f", percent(run->device.switch_ns, run->duration_ns));
		break;
	case SWITCHES: snprintf(out, size, "%llu", (unsigned long long)run->device.switches); break;
	case PREEMPTIONS:
		snprintf(out, size, "%llu", (unsigned long long)run->device.preemptions);
		break;
	default: snprintf(out, size, "%llu", (unsigned long long)run->inversions);
	}
}

static int column_width(const struct gp_report *r, unsigned run)
{
	int length = (int)strlen(r->label[run]);

	return length < 11 ? 11 : length;
}

static void print_task(FILE *out, const struct gp_report *r, uint32_t task)
{
	char cell[32];

	fprintf(out, "%s (%s)\n", r->scenario->task[task].name,
		gp_class_name(r->scenario->attr[task].class));
	if (r->scenario->task[task].load == GP_LOAD_IDLE) {
		fprintf(out, "  idle\n");
		return;
	}
	for (unsigned row = 0; row < TASK_ROWS; row++) {
		if (row == MISSED && !r->scenario->attr[task].deadline_ns)
			continue;
		fprintf(out, "  %-22s", task_row_name[row]);
		for (unsigned i = 0; i < r->nruns; i++) {
			if (gp_report_cannot(r, i))
				continue;
			task_cell(cell, sizeof cell, &r->run[i].task[task], row);
			fprintf(out, "  %*s", column_width(r, i), cell);
		}
		fputc('\n', out);
	}
}

void gp_report_table(FILE *out, const struct gp_report *r)
{
	uint32_t shown = r->scenario->ntasks < TASKS_SHOWN ? r->scenario->ntasks : TASKS_SHOWN;
	char text[32];

	fprintf(out, "%s, %s simulated, seed %llu\n", r->scenario->name,
		gp_cli_duration(r->scenario->duration_ns).text,
		(unsigned long long)r->scenario->seed);
	if (r->scenario->about[0])
		fprintf(out, "%s\n", r->scenario->about);
	fprintf(out, "\n%-24s", "");
	for (unsigned i = 0; i < r->nruns; i++)
		if (!gp_report_cannot(r, i))
			fprintf(out, "  %*s", column_width(r, i), r->label[i]);
	fputc('\n', out);
	for (uint32_t t = 0; t < shown; t++)
		print_task(out, r, t);
	if (shown < r->scenario->ntasks)
		fprintf(out, "%u more tasks are not shown; --json has all\n",
			r->scenario->ntasks - shown);
	fprintf(out, "device\n");
	for (unsigned row = 0; row < DEVICE_ROWS; row++) {
		fprintf(out, "  %-22s", device_row_name[row]);
		for (unsigned i = 0; i < r->nruns; i++) {
			if (gp_report_cannot(r, i))
				continue;
			device_cell(text, sizeof text, &r->run[i], row);
			fprintf(out, "  %*s", column_width(r, i), text);
		}
		fputc('\n', out);
	}
	for (unsigned i = 0; i < r->nruns; i++)
		if (r->run[i].ejections)
			fprintf(out, "\nejected: %s\n", r->run[i].ejected);
	if (r->nruns > 1) {
		fputc('\n', out);
		gp_compare_print(out, r);
	}
}

/* An unknown number is null, never 0. */
static void put_number(struct json_object *o, const char *key, bool known, double value, int digits)
{
	if (known)
		gp_field_put_decimal(o, key, value, digits);
	else
		json_object_object_add(o, key, NULL);
}

static void add_task(struct json_object *list, const struct gp_report *r,
		     const struct gp_run_task *t, uint32_t task)
{
	struct json_object *o = gp_list_object(list);

	gp_field_put_text(o, "name", r->scenario->task[task].name);
	gp_field_put_text(o, "class", gp_class_name(r->scenario->attr[task].class));
	gp_field_put(o, "requests", t->finished);
	gp_field_put(o, "left", t->left);
	put_number(o, "missed", r->scenario->attr[task].deadline_ns, (double)t->missed, 0);
	gp_field_put_bool(o, "refused", t->refused);
	put_number(o, "mean_us", t->has_response, (double)t->mean_ns / 1e3, 3);
	put_number(o, "p50_us", t->has_response, (double)t->p50_ns / 1e3, 3);
	put_number(o, "p99_us", t->has_response, (double)t->p99_ns / 1e3, 3);
	put_number(o, "p999_us", t->has_response, (double)t->p999_ns / 1e3, 3);
	put_number(o, "max_us", t->has_response, (double)t->max_ns / 1e3, 3);
	put_number(o, "work_pct", t->alone_ns, percent(t->work_ns, t->alone_ns), 3);
}

struct json_object *gp_run_to_json(const struct gp_report *r, unsigned i)
{
	struct json_object *o = json_object_new_object(), *device, *tasks;
	const struct gp_run *run = &r->run[i];

	gp_field_put_text(o, "policy", r->label[i]);
	if (gp_report_cannot(r, i)) {
		gp_field_put_text(o, "cannot_run", gp_report_cannot(r, i));
		return o;
	}
	device = gp_field_put_object(o, "device");
	gp_field_put_decimal(device, "busy_pct", percent(run->device.busy_ns, run->duration_ns), 3);
	gp_field_put_decimal(device, "switch_pct", percent(run->device.switch_ns, run->duration_ns),
			     3);
	gp_field_put(device, "switches", run->device.switches);
	gp_field_put(device, "preemptions", run->device.preemptions);
	gp_field_put(device, "inversions", run->inversions);
	if (run->ejections)
		gp_field_put_text(o, "ejected", run->ejected);
	gp_compare_to_json(o, r, i);
	tasks = gp_field_put_list(o, "tasks");
	for (uint32_t t = 0; t < run->ntasks; t++)
		add_task(tasks, r, &run->task[t], t);
	return o;
}

void gp_report_json(const struct gp_report *r)
{
	struct json_object *o = json_object_new_object(), *runs;

	gp_field_put_text(o, "scenario", r->scenario->name);
	gp_field_put(o, "seed", r->scenario->seed);
	runs = gp_field_put_list(o, "runs");
	for (unsigned i = 0; i < r->nruns; i++)
		json_object_array_add(runs, gp_run_to_json(r, i));
	gp_print_json_once(o);
}
