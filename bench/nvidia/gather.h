/* SPDX-License-Identifier: Apache-2.0 */
/* Merges the runs of all rounds, arm by arm, into a report. */
#ifndef BENCH_GATHER_H
#define BENCH_GATHER_H

#include "report.h"
#include "trial.h"

/* What one load or one arm of a cell did, in all its runs. */
struct sum {
	struct samples latency;
	double work[BE_MAX], window_s;
	unsigned runs, failures, mismatches, starved;
	uint64_t late;
};

struct gather {
	const struct cell *const *cell; /* those that are run, in order */
	unsigned ncells;
	struct sum arm[CELLS_MAX][ARMS]; /* of the cell; `alone` is not used */
	struct sum lc_alone[CELLS_MAX];  /* of the lc load, at the first cell of the part with it */
	struct sum be_alone[CELLS_MAX];  /* of the first be load, likewise */
	uint64_t iterations[CELLS_MAX];  /* of the lc load's kernel, where lc_alone is */
	double kernel_us[CELLS_MAX];     /* its GPU time, likewise */
};

/* Where the loads of cell[i] are measured alone. */
unsigned gather_lc_home(const struct gather *g, unsigned i);
unsigned gather_be_home(const struct gather *g, unsigned i);

/* Takes the samples over. A failed run counts as such and adds nothing else. */
void gather_add(struct sum *sum, struct outcome *out, int rc);

/* Fills the arms of all cells; the report's cells are those of `cell`, in order. */
void gather_report(struct gather *g, struct report *r);

void gather_free(struct gather *g);

#endif
