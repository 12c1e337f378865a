/* SPDX-License-Identifier: Apache-2.0 */
/* The results as plain data: filled by a run or read from JSON, shown as table, JSON or SVG. */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "cells.h"

#define NOTES_MAX 16

/* Unknown is a flag, never 0. */
struct arm_result {
	bool measured;
	unsigned runs, failures; /* rounds that counted; that did not */
	unsigned mismatches;     /* of those: wrong */
	unsigned starved;        /* of those, too: lc did not end in time, and nothing was wrong */
	unsigned requests;       /* 0: no latencies */
	unsigned late;           /* launched more than 100 us after their time */
	double p50_us, p99_us, p999_us, max_us;
	bool has_added;
	double added_us; /* its p99 less the one alone of the same report */
	bool has_share;
	double window_s;
	double share;        /* all best-effort loads together, of one of them alone */
	double each[BE_MAX]; /* the same, of each; 0 for an idle one */
	bool has_lost;
	double lost_us; /* GPU time best-effort work lost per request */
	char of[256];   /* kept from another report than the rest of the cell: the date of that */
};

struct cell_result {
	const struct cell *cell;
	struct arm_result arm[ARMS];
	double kernel_us; /* the request's own GPU time as measured; 0: unknown */
	char date[256];   /* of the file it was read from */
	bool skipped;
	unsigned nnotes;
	char note[NOTES_MAX][256]; /* what went wrong, one sentence each */
};

struct report {
	char machine[256], gpu[128], driver[128], date[256], command[1024];
	unsigned rounds;
	bool quick;
	struct cell_result cell[CELLS_MAX];
	unsigned ncells;
};

void report_note(struct cell_result *c, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* ---- the acceptance criteria ---- */

enum verdict { NOT_MEASURED, PASS, FAIL };

struct claim {
	char name[4];
	char says[112];
	enum verdict verdict;
	char detail[240];
};

#define CLAIMS_MAX 16

/* Returns how many. */
unsigned report_judge(const struct report *r, struct claim *claim);

const char *verdict_name(enum verdict v);

/* ---- output ---- */

void report_table(FILE *out, const struct report *r);
void report_json(FILE *out, const struct report *r);
void report_svg(FILE *out, const struct report *r);

/*
 * Adds the cells of a file; what is already there of a cell is replaced. Arms the file does not
 * have stay, marked with the date of their report: shown, but not compared with the others.
 */
int report_read(struct report *r, const char *path, struct gp_error *err);

/* Writes a file whole or not at all. NULL as path: does nothing. */
int report_write(const char *path, const struct report *r,
                 void (*write)(FILE *out, const struct report *r), struct gp_error *err);

#endif
