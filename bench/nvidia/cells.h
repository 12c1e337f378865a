/* SPDX-License-Identifier: Apache-2.0 */
/* What is measured: loads, arms, cells, and how long each takes. */
#ifndef BENCH_CELLS_H
#define BENCH_CELLS_H

#include <stdbool.h>

#define CELLS_MAX 32
#define BE_MAX    4

/* Ways to run a cell. `alone` is each load by itself, what the others are compared with. */
enum arm { ARM_ALONE, ARM_DEFAULT, ARM_MPS, ARM_GPREEMPT, ARMS };

extern const char *const arm_name[ARMS];

enum be_kind { BE_LONG, BE_SHORT, BE_LOW, BE_MEMORY, BE_IDLE, BE_TRAIN, BE_KINDS };

extern const char *const be_name[BE_KINDS];

struct lc_load {
	const char *name;
	unsigned kernel_us; /* asked for; 0: what the load has */
	unsigned period_us;
	bool torch;
};

struct cell {
	const char *name, *part, *about;
	const struct lc_load *lc; /* NULL: best-effort work only */
	enum be_kind be[BE_MAX];
	unsigned nbe;
	unsigned requests;  /* per arm, all rounds together */
	unsigned window_ms; /* per round, without lc */
	unsigned alone_ms;  /* per round: a best-effort load alone */
	unsigned rounds;    /* at most; 0: as asked for */
	bool with_mps;
};

extern const struct cell cells[];
extern const unsigned ncells;
extern const char *const parts[]; /* up to NULL */

const struct cell *cell_find(const char *name);

/* Best-effort loads that work; idle ones only have a context. */
unsigned cell_busy(const struct cell *c);

bool cell_uses_torch(const struct cell *c);

/* The scale of one run: --quick shortens everything. */
struct effort {
	unsigned rounds;
	bool quick;
	bool arm[ARMS];
};

unsigned cell_rounds(const struct cell *c, const struct effort *e);
unsigned cell_requests(const struct cell *c, enum arm arm, const struct effort *e); /* a run */
unsigned cell_window_ms(const struct cell *c, const struct effort *e);
unsigned cell_alone_ms(const struct cell *c, const struct effort *e);
unsigned cell_settle_ms(const struct cell *c);

/* Whether the cell is run in that arm; `alone` is a matter of its loads, not of the cell. */
bool cell_has_arm(const struct cell *c, enum arm arm, const struct effort *e);

/*
 * Whether that arm has a run in that round. MPS beside CUDA loads has one run in all, in the
 * second round, with all its requests: starting and ending it costs as much as a round.
 */
bool cell_runs_arm(const struct cell *c, enum arm arm, unsigned round, const struct effort *e);

/*
 * Whether cell[i] is the one whose rounds also measure its lc load (or its first best-effort
 * load) alone: once per part, with the requests of the cell that has most.
 */
bool cells_first_with_lc(const struct cell *const *cell, unsigned i);
bool cells_first_with_be(const struct cell *const *cell, unsigned i);
unsigned cells_alone_requests(const struct cell *const *cell, unsigned n, unsigned i,
                              const struct effort *e);

/* Seconds, starting the processes included: of cell[i], and what comes with it alone. */
double cells_estimate_s(const struct cell *const *cell, unsigned n, unsigned i,
                        const struct effort *e);

#endif
