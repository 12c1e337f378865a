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
static void json_number(FILE *out, const char *name, bool known, double value, int digits)
{
	if (known)
		fprintf(out, ",\"%s\":%.*f", name, digits, value);
	else
		fprintf(out, ",\"%s\":null", name);
}

static void json_task(FILE *out, const struct gp_report *r, const struct gp_run_task *t,
		      uint32_t task)
{
	fputs("{\"name\":", out);
	gp_json_string(out, r->scenario->task[task].name);
	fprintf(out, ",\"class\":\"%s\",\"requests\":%llu,\"left\":%llu",
		gp_class_name(r->scenario->attr[task].class), (unsigned long long)t->finished,
		(unsigned long long)t->left);
	json_number(out, "missed", r->scenario->attr[task].deadline_ns, (double)t->missed, 0);
	fprintf(out, ",\"refused\":%s", t->refused ? "true" : "false");
	json_number(out, "mean_us", t->has_response, (double)t->mean_ns / 1e3, 3);
	json_number(out, "p50_us", t->has_response, (double)t->p50_ns / 1e3, 3);
	json_number(out, "p99_us", t->has_response, (double)t->p99_ns / 1e3, 3);
	json_number(out, "p999_us", t->has_response, (double)t->p999_ns / 1e3, 3);
	json_number(out, "max_us", t->has_response, (double)t->max_ns / 1e3, 3);
	json_number(out, "work_pct", t->alone_ns, percent(t->work_ns, t->alone_ns), 3);
	fputc('}', out);
}

void gp_report_json_run(FILE *out, const struct gp_report *r, unsigned i)
{
	const struct gp_run *run = &r->run[i];

	fputs("{\"policy\":", out);
	gp_json_string(out, r->label[i]);
	if (gp_report_cannot(r, i)) {
		fputs(",\"cannot_run\":", out);
		gp_json_string(out, gp_report_cannot(r, i));
		fputc('}', out);
		return;
	}
	fprintf(out,
		",\"device\":{\"busy_pct\":%.3f,\"switch_pct\":%.3f,\"switches\":%llu,"
		"\"preemptions\":%llu,\"inversions\":%llu}",
		percent(run->device.busy_ns, run->duration_ns),
		percent(run->device.switch_ns, run->duration_ns),
		(unsigned long long)run->device.switches,
		(unsigned long long)run->device.preemptions, (unsigned long long)run->inversions);
	if (run->ejections) {
		fputs(",\"ejected\":", out);
		gp_json_string(out, run->ejected);
	}
	gp_compare_json(out, r, i);
	fputs(",\"tasks\":[", out);
	for (uint32_t t = 0; t < run->ntasks; t++) {
		if (t)
			fputc(',', out);
		json_task(out, r, &run->task[t], t);
	}
	fputs("]}", out);
}

void gp_report_json(FILE *out, const struct gp_report *r)
{
	fputs("{\"scenario\":", out);
	gp_json_string(out, r->scenario->name);
	fprintf(out, ",\"seed\":%llu,\"runs\":[", (unsigned long long)r->scenario->seed);
	for (unsigned i = 0; i < r->nruns; i++) {
		if (i)
			fputc(',', out);
		gp_report_json_run(out, r, i);
	}
	fputs("]}\n", out);
}
