/* SPDX-License-Identifier: Apache-2.0 */
#include "gather.h"

#include <string.h>

unsigned gather_lc_home(const struct gather *g, unsigned i)
{
	unsigned k = 0;

	while (k < i && (g->cell[k]->lc != g->cell[i]->lc ||
	                 strcmp(g->cell[k]->part, g->cell[i]->part) != 0))
		k++;
	return k;
}

unsigned gather_be_home(const struct gather *g, unsigned i)
{
	unsigned k = 0;

	while (k < i && (g->cell[k]->be[0] != g->cell[i]->be[0] ||
	                 strcmp(g->cell[k]->part, g->cell[i]->part) != 0))
		k++;
	return k;
}

void gather_add(struct sum *sum, struct outcome *out, int rc)
{
	if (rc || samples_append(&sum->latency, &out->latency)) {
		sum->failures++;
		sum->mismatches += out->mismatched;
		sum->starved += out->starved && !out->mismatched;
	} else {
		sum->runs++;
		sum->window_s += out->window_s;
		sum->late += out->late;
		for (unsigned i = 0; i < BE_MAX; i++)
			sum->work[i] += out->work[i];
	}
	samples_free(&out->latency);
}

static void latencies(struct arm_result *a, struct sum *sum)
{
	samples_sort(&sum->latency);
	a->requests = (unsigned)sum->latency.count;
	a->late = (unsigned)sum->late;
	a->p50_us = (double)samples_quantile(&sum->latency, 0.5) / 1e3;
	a->p99_us = (double)samples_quantile(&sum->latency, 0.99) / 1e3;
	a->p999_us = (double)samples_quantile(&sum->latency, 0.999) / 1e3;
	a->max_us = (double)samples_quantile(&sum->latency, 1) / 1e3;
}

static void count_runs(struct arm_result *a, const struct sum *sum)
{
	a->measured |= sum->runs > 0;
	a->runs += sum->runs;
	a->failures += sum->failures;
	a->mismatches += sum->mismatches;
	a->starved += sum->starved;
}

/* All best-effort loads of a cell that work are of one kind, so one rate alone serves for all. */
static void shares(struct arm_result *a, const struct cell *cell, const struct sum *sum,
                   const struct sum *alone)
{
	double expected;

	if (!sum->runs || !(alone->work[0] > 0))
		return;
	expected = alone->work[0] / alone->window_s * sum->window_s;
	a->has_share = true;
	a->window_s = sum->window_s;
	a->share = 0;
	for (unsigned i = 0; i < cell->nbe; i++) {
		a->each[i] = sum->work[i] / expected;
		a->share += a->each[i];
	}
	if (!a->requests)
		return;
	a->has_lost = true;
	a->lost_us = (1 - a->share) * sum->window_s * 1e6 / a->requests;
}

static void compare(struct arm_result *a, const struct arm_result *alone)
{
	a->has_added = a->requests && alone->requests;
	a->added_us = a->has_added ? a->p99_us - alone->p99_us : 0;
}

static void cell_alone(struct gather *g, unsigned i, struct cell_result *c)
{
	unsigned lc = gather_lc_home(g, i), be = gather_be_home(g, i);
	struct arm_result *a = &c->arm[ARM_ALONE];

	if (c->cell->lc) {
		latencies(a, &g->lc_alone[lc]);
		c->kernel_us = g->kernel_us[lc];
	}
	a->measured = g->lc_alone[lc].runs > 0 || g->be_alone[be].runs > 0;
	a->has_share = g->be_alone[be].work[0] > 0;
	a->share = a->each[0] = 1;
	a->window_s = g->be_alone[be].window_s;
	if (lc == i) /* counted once, not in every cell that uses it */
		count_runs(a, &g->lc_alone[lc]);
	if (be == i)
		count_runs(a, &g->be_alone[be]);
}

void gather_report(struct gather *g, struct report *r)
{
	for (unsigned i = 0; i < g->ncells; i++) {
		struct cell_result *c = &r->cell[i];

		memset(c->arm, 0, sizeof c->arm);
		cell_alone(g, i, c);
		for (enum arm arm = ARM_DEFAULT; arm < ARMS; arm++) {
			struct sum *sum = &g->arm[i][arm];

			count_runs(&c->arm[arm], sum);
			latencies(&c->arm[arm], sum);
			compare(&c->arm[arm], &c->arm[ARM_ALONE]);
			shares(&c->arm[arm], c->cell, sum, &g->be_alone[gather_be_home(g, i)]);
		}
	}
}

void gather_free(struct gather *g)
{
	for (unsigned i = 0; i < CELLS_MAX; i++) {
		samples_free(&g->lc_alone[i].latency);
		samples_free(&g->be_alone[i].latency);
		for (enum arm arm = 0; arm < ARMS; arm++)
			samples_free(&g->arm[i][arm].latency);
	}
}
