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

/* Notes begin with "round N, ARM: ". */
static bool is_note_of(const char *note, enum arm arm)
{
	const char *at = strstr(note, ", ");
	size_t length = strlen(arm_name[arm]);

	return at && !strncmp(at + 2, arm_name[arm], length) && at[2 + length] == ':';
}

/* Reports from before it was counted have it in their notes only. */
static unsigned starved_by_notes(const struct json *notes, enum arm arm)
{
	unsigned count = 0;

	for (const struct json *n = notes ? notes->child : NULL; n; n = n->next)
		count += is_note_of(json_string(n, "note"), arm) &&
		         strstr(json_string(n, "note"), ": lc did not end in time");
	return count;
}

static void read_arm(struct cell_result *c, const struct json *j, const struct json *notes)
{
	const struct json *each = json_member(j, "be_share_each");
	enum arm arm = 0;
	struct arm_result *a;
	unsigned n = 0;

	while (arm < ARMS && strcmp(arm_name[arm], json_string(j, "arm")) != 0)
		arm++;
	if (arm == ARMS)
		return;
	a = &c->arm[arm];
	a->measured = true;
	a->runs = count_of(j, "runs");
	a->failures = count_of(j, "failures");
	a->mismatches = count_of(j, "mismatches");
	a->starved =
		json_member(j, "starved") ? count_of(j, "starved") : starved_by_notes(notes, arm);
	if (a->starved > a->failures)
		a->starved = a->failures;
	snprintf(a->of, sizeof a->of, "%s", json_string(j, "of"));
	a->late = count_of(j, "late");
	if (json_number(j, "p50_us", &a->p50_us) && json_number(j, "p99_us", &a->p99_us) &&
	    json_number(j, "p999_us", &a->p999_us) && json_number(j, "max_us", &a->max_us))
		a->requests = count_of(j, "requests");
	a->has_added = json_number(j, "p99_added_us", &a->added_us);
	a->has_share =
		json_number(j, "be_share", &a->share) && json_number(j, "window_s", &a->window_s);
	a->has_lost = json_number(j, "lost_us_per_request", &a->lost_us);
	for (const struct json *e = each ? each->child : NULL; e && n < BE_MAX; e = e->next)
		a->each[n++] = e->number;
}

/* An empty one; `former` is what was there, which may be nothing. */
static struct cell_result *place_for(struct report *r, const struct cell *cell,
                                     struct cell_result *former)
{
	unsigned i = 0;

	while (i < r->ncells && r->cell[i].cell != cell)
		i++;
	if (i == r->ncells)
		r->ncells++;
	*former = r->cell[i];
	r->cell[i] = (struct cell_result){.cell = cell};
	return &r->cell[i];
}

static bool has_arm(const struct cell_result *c, enum arm arm)
{
	return c->arm[arm].measured || c->arm[arm].failures;
}

/* Arms that only the former report has, with what it says about them. */
static void keep_arms(struct cell_result *c, const struct cell_result *former)
{
	for (enum arm arm = 0; arm < ARMS; arm++) {
		struct arm_result *a = &c->arm[arm];

		if (has_arm(c, arm) || !has_arm(former, arm))
			continue;
		*a = former->arm[arm];
		if (!a->of[0])
			snprintf(a->of, sizeof a->of, "%s", former->date);
		for (unsigned i = 0; i < former->nnotes; i++)
			if (is_note_of(former->note[i], arm))
				report_note(c, "%s", former->note[i]);
	}
}

static void read_cell(struct report *r, const struct json *j, const char *date)
{
	const struct cell *cell = cell_find(json_string(j, "name"));
	const struct json *arms = json_member(j, "arms"), *notes = json_member(j, "notes");
	struct cell_result *c, former;
	double value;

	if (!cell) {
		fprintf(stderr, "bench: there is no cell '%s' any more\n", json_string(j, "name"));
		return;
	}
	c = place_for(r, cell, &former);
	snprintf(c->date, sizeof c->date, "%s", date);
	json_number(j, "kernel_us", &c->kernel_us);
	c->skipped = json_number(j, "skipped", &value) && value > 0;
	for (const struct json *a = arms ? arms->child : NULL; a; a = a->next)
		read_arm(c, a, notes);
	for (const struct json *n = notes ? notes->child : NULL; n; n = n->next)
		report_note(c, "%s", json_string(n, "note"));
	keep_arms(c, &former);
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
	if (!list || strcmp(json_string(j, "benchmark"), "gpreempt-nvidia") != 0) {
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
		read_cell(r, c, json_string(j, "date"));
	qsort(r->cell, r->ncells, sizeof r->cell[0], by_table);
	json_free(j);
	return 0;
}
