/* SPDX-License-Identifier: Apache-2.0 */
#include "cells.h"

#include <string.h>

const char *const arm_name[ARMS] = {
	[ARM_ALONE] = "alone",
	[ARM_DEFAULT] = "default",
	[ARM_MPS] = "mps",
	[ARM_GPREEMPT] = "gpreempt",
};

const char *const be_name[BE_KINDS] = {
	[BE_LONG] = "long",     [BE_SHORT] = "short", [BE_LOW] = "low",
	[BE_MEMORY] = "memory", [BE_IDLE] = "idle",   [BE_TRAIN] = "train",
};

static const struct lc_load every_3ms = {"100us@3ms", 100, 3000, false};
static const struct lc_load every_10ms = {"100us@10ms", 100, 10000, false};
static const struct lc_load long_10ms = {"1ms@10ms", 1000, 10000, false};
static const struct lc_load infer = {"infer@10ms", 0, 10000, true};

const char *const parts[] = {"100us@3ms", "100us@10ms", "1ms@10ms", "several", "torch", NULL};

#define PAIR(lc_, part_, be_, kind_, requests_)                                                   \
	{                                                                                         \
		.name = part_ "+" be_, .part = (part_), .about = part_ " beside " be_,            \
		.lc = &(lc_), .be = {kind_}, .nbe = 1, .requests = (requests_), .alone_ms = 2000, \
		.with_mps = true,                                                                 \
	}
#define FOUR(lc_, part_, requests_)                                                              \
	PAIR(lc_, part_, "long", BE_LONG, requests_), PAIR(lc_, part_, "short", BE_SHORT, 1500), \
		PAIR(lc_, part_, "low", BE_LOW, 1500), PAIR(lc_, part_, "memory", BE_MEMORY, 1500)
#define TWO      .be = {BE_LONG, BE_LONG}, .nbe = 2
#define FOUR_BE  .be = {BE_LONG, BE_LONG, BE_LONG, BE_LONG}, .nbe = 4
#define TWO_IDLE .be = {BE_LONG, BE_LONG, BE_IDLE, BE_IDLE}, .nbe = 4
#define SEVERAL  .part = "several", .alone_ms = 4000

const struct cell cells[] = {
	FOUR(every_3ms, "100us@3ms", 10000),
	FOUR(every_10ms, "100us@10ms", 1500),
	FOUR(long_10ms, "1ms@10ms", 1500),
	{.name = "two", .about = "two best-effort", TWO, SEVERAL, .window_ms = 4000},
	{.name = "four", .about = "four best-effort", FOUR_BE, SEVERAL, .window_ms = 4000},
	{.name = "two+idle", .about = "two and two idle", TWO_IDLE, SEVERAL, .window_ms = 4000},
	{.name = "100us@10ms+two",
         .about = "100us@10ms beside two",
         .lc = &every_10ms,
         TWO,
         SEVERAL,
         .requests = 1500},
	{.name = "100us@10ms+four",
         .about = "100us@10ms beside four",
         .lc = &every_10ms,
         FOUR_BE,
         SEVERAL,
         .requests = 1500},
	{.name = "100us@10ms+two+idle",
         .about = "100us@10ms beside two and two idle",
         .lc = &every_10ms,
         TWO_IDLE,
         SEVERAL,
         .requests = 1500},
	{.name = "torch",
         .part = "torch",
         .about = "PyTorch inference beside training",
         .lc = &infer,
         .be = {BE_TRAIN},
         .nbe = 1,
         .requests = 1500,
         .alone_ms = 5000,
         .rounds = 2, /* a start takes as long as a round measures */
         .with_mps = true},
};

const unsigned ncells = sizeof cells / sizeof cells[0];

_Static_assert(sizeof cells / sizeof cells[0] <= CELLS_MAX, "a report has room for every cell");

const struct cell *cell_find(const char *name)
{
	for (unsigned i = 0; i < ncells; i++)
		if (!strcmp(cells[i].name, name))
			return &cells[i];
	return NULL;
}

unsigned cell_busy(const struct cell *c)
{
	unsigned n = 0;

	for (unsigned i = 0; i < c->nbe; i++)
		n += c->be[i] != BE_IDLE;
	return n;
}

bool cell_uses_torch(const struct cell *c)
{
	return c->lc && c->lc->torch;
}

/* ---- how much ---- */

unsigned cell_rounds(const struct cell *c, const struct effort *e)
{
	return c->rounds && c->rounds < e->rounds ? c->rounds : e->rounds;
}

static bool runs_once(const struct cell *c, enum arm arm)
{
	return arm == ARM_MPS && !cell_uses_torch(c);
}

#define MPS_REQUESTS_MAX 1500 /* beside long blocks each waits for one: it cannot keep up */

unsigned cell_requests(const struct cell *c, enum arm arm, const struct effort *e)
{
	unsigned total = e->quick ? 60 : c->requests;
	unsigned rounds = runs_once(c, arm) ? 1 : cell_rounds(c, e);

	if (arm == ARM_MPS && total > MPS_REQUESTS_MAX)
		total = MPS_REQUESTS_MAX;
	return c->lc && rounds ? (total + rounds - 1) / rounds : 0;
}

unsigned cell_window_ms(const struct cell *c, const struct effort *e)
{
	return e->quick && c->window_ms ? 1000 : c->window_ms;
}

unsigned cell_alone_ms(const struct cell *c, const struct effort *e)
{
	return e->quick ? 500 : c->alone_ms;
}

unsigned cell_settle_ms(const struct cell *c)
{
	/* Several are rotated, which takes some turns to settle; PyTorch fills its caches. */
	return cell_busy(c) > 1 || cell_uses_torch(c) ? 1000 : 300;
}

bool cell_has_arm(const struct cell *c, enum arm arm, const struct effort *e)
{
	return arm != ARM_ALONE && e->arm[arm] && (arm != ARM_MPS || c->with_mps);
}

bool cell_runs_arm(const struct cell *c, enum arm arm, unsigned round, const struct effort *e)
{
	unsigned rounds = cell_rounds(c, e);

	return cell_has_arm(c, arm, e) && (!runs_once(c, arm) || round == (rounds > 1));
}

bool cells_first_with_lc(const struct cell *const *cell, unsigned i)
{
	if (!cell[i]->lc)
		return false;
	for (unsigned k = 0; k < i; k++)
		if (cell[k]->lc == cell[i]->lc && !strcmp(cell[k]->part, cell[i]->part))
			return false;
	return true;
}

bool cells_first_with_be(const struct cell *const *cell, unsigned i)
{
	for (unsigned k = 0; k < i; k++)
		if (cell[k]->be[0] == cell[i]->be[0] && !strcmp(cell[k]->part, cell[i]->part))
			return false;
	return true;
}

unsigned cells_alone_requests(const struct cell *const *cell, unsigned n, unsigned i,
                              const struct effort *e)
{
	unsigned most = 0;

	for (unsigned k = 0; k < n; k++)
		if (cell[k]->lc == cell[i]->lc && !strcmp(cell[k]->part, cell[i]->part) &&
		    cell_requests(cell[k], ARM_ALONE, e) > most)
			most = cell_requests(cell[k], ARM_ALONE, e);
	return most;
}

/* ---- how long ---- */

/* Start and end of the processes of one run: guesses, on the careful side. */
static double start_s(unsigned processes, bool torch)
{
	return (torch ? 13 : 1.0) + 0.4 * processes;
}

static double arm_s(const struct cell *c, enum arm arm, const struct effort *e)
{
	double window_s = 1e-3 * cell_window_ms(c, e);

	if (c->lc)
		window_s = 1e-6 * c->lc->period_us * (cell_requests(c, arm, e) + 20);
	return start_s(c->nbe + !!c->lc, cell_uses_torch(c)) + 1e-3 * cell_settle_ms(c) + window_s +
	       (arm == ARM_MPS        ? 3
	        : arm == ARM_GPREEMPT ? 0.3
	                              : 0);
}

double cells_estimate_s(const struct cell *const *cell, unsigned n, unsigned i,
                        const struct effort *e)
{
	const struct cell *c = cell[i];
	bool torch = cell_uses_torch(c);
	double s = 0, alone_s = 0;

	for (unsigned round = 0; round < cell_rounds(c, e); round++)
		for (enum arm arm = ARM_DEFAULT; arm < ARMS; arm++)
			if (cell_runs_arm(c, arm, round, e))
				s += arm_s(c, arm, e);
	if (e->arm[ARM_ALONE] && cells_first_with_lc(cell, i))
		alone_s += start_s(1, torch) +
		           1e-6 * c->lc->period_us * (cells_alone_requests(cell, n, i, e) + 20);
	if (e->arm[ARM_ALONE] && cells_first_with_be(cell, i))
		alone_s += start_s(1, torch) + 1e-3 * (cell_settle_ms(c) + cell_alone_ms(c, e));
	return s + alone_s * cell_rounds(c, e);
}
