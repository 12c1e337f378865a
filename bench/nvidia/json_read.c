/* SPDX-License-Identifier: Apache-2.0 */
/* A report read back, so that parts measured one by one become one table and one picture. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "report.h"

#define FILE_MAX_BYTES (16u << 20)

static char *slurp(const char *path, struct gp_error *err)
{
	FILE *file = fopen(path, "r");
	char *text = file ? malloc(FILE_MAX_BYTES + 1) : NULL;
	size_t n;

	if (!file) {
		gp_fail(err, -errno, "cannot read %s: %s", path, strerror(errno));
		return NULL;
	}
	n = text ? fread(text, 1, FILE_MAX_BYTES, file) : 0;
	fclose(file);
	if (text)
		text[n] = '\0';
	else
		gp_fail(err, -ENOMEM, "%s: out of memory", path);
	return text;
}

static unsigned count_of(const struct json *j, const char *name)
{
	double value;

	return json_number(j, name, &value) && value > 0 && value < 1e9 ? (unsigned)value : 0;
}

static void read_arm(struct cell_result *c, const struct json *j)
{
	const struct json *each = json_member(j, "be_share_each");
	enum arm arm = 0;
	struct arm_result *a;
	unsigned n = 0;

	while (arm < ARMS && strcmp(arm_name[arm], json_string(j, "arm")))
		arm++;
	if (arm == ARMS)
		return;
	a = &c->arm[arm];
	a->measured = true;
	a->runs = count_of(j, "runs");
	a->failures = count_of(j, "failures");
	a->mismatches = count_of(j, "mismatches");
	a->late = count_of(j, "late");
	if (json_number(j, "p50_us", &a->p50_us) && json_number(j, "p99_us", &a->p99_us) &&
	    json_number(j, "p999_us", &a->p999_us) && json_number(j, "max_us", &a->max_us))
		a->requests = count_of(j, "requests");
	a->has_share =
		json_number(j, "be_share", &a->share) && json_number(j, "window_s", &a->window_s);
	a->has_lost = json_number(j, "lost_us_per_request", &a->lost_us);
	for (const struct json *e = each ? each->child : NULL; e && n < BE_MAX; e = e->next)
		a->each[n++] = e->number;
}

static struct cell_result *place_for(struct report *r, const struct cell *cell)
{
	unsigned i = 0;

	while (i < r->ncells && r->cell[i].cell != cell)
		i++;
	if (i == r->ncells)
		r->ncells++;
	r->cell[i] = (struct cell_result){.cell = cell};
	return &r->cell[i];
}

static void read_cell(struct report *r, const struct json *j)
{
	const struct cell *cell = cell_find(json_string(j, "name"));
	const struct json *arms = json_member(j, "arms"), *notes = json_member(j, "notes");
	struct cell_result *c;
	double value;

	if (!cell) {
		fprintf(stderr, "bench: there is no cell '%s' any more\n", json_string(j, "name"));
		return;
	}
	c = place_for(r, cell);
	json_number(j, "kernel_us", &c->kernel_us);
	c->skipped = json_number(j, "skipped", &value) && value > 0;
	for (const struct json *a = arms ? arms->child : NULL; a; a = a->next)
		read_arm(c, a);
	for (const struct json *n = notes ? notes->child : NULL; n; n = n->next)
		report_note(c, "%s", json_string(n, "note"));
}

/* Parts measured on different machines or days are told apart in the head of the table. */
static void join(char *to, size_t size, const char *from)
{
	size_t length = strlen(to);

	if (!length)
		snprintf(to, size, "%s", from);
	else if (!strstr(to, from))
		snprintf(to + length, size - length, "; %s", from);
}

static int by_table(const void *a, const void *b)
{
	const struct cell_result *x = a, *y = b;

	return (x->cell > y->cell) - (x->cell < y->cell);
}

int report_read(struct report *r, const char *path, struct gp_error *err)
{
	char *text = slurp(path, err);
	struct json *j = text ? json_parse(text) : NULL;
	const struct json *list = json_member(j, "cells");
	double value;

	free(text);
	if (!text)
		return err->code;
	if (!list || strcmp(json_string(j, "benchmark"), "gpreempt-nvidia")) {
		json_free(j);
		return gp_fail(err, -EINVAL, "%s is no report of this benchmark", path);
	}
	join(r->machine, sizeof r->machine, json_string(j, "machine"));
	join(r->gpu, sizeof r->gpu, json_string(j, "gpu"));
	join(r->driver, sizeof r->driver, json_string(j, "driver"));
	join(r->date, sizeof r->date, json_string(j, "date"));
	join(r->command, sizeof r->command, json_string(j, "command"));
	r->rounds = count_of(j, "rounds");
	r->quick |= json_number(j, "quick", &value) && value > 0;
	for (const struct json *c = list->child; c; c = c->next)
		read_cell(r, c);
	qsort(r->cell, r->ncells, sizeof r->cell[0], by_table);
	json_free(j);
	return 0;
}
