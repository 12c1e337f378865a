/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The acceptance criteria. A claim about many cells fails with the first that fails, and holds
 * only when all of them were measured with enough requests.
 */
#include <string.h>

#include "report.h"

#define REQUESTS_WANTED 1500

const char *verdict_name(enum verdict v)
{
	return v == PASS ? "PASS" : v == FAIL ? "FAIL" : "not measured";
}

/* ---- one claim over many cells ---- */

/* What a cell shows about a claim: `value` must not be above `limit`. */
struct evidence {
	double value, limit;
};

typedef bool look(const struct cell_result *c, struct evidence *e);

struct question {
	const char *name, *says, *unit;
	bool (*is_about)(const struct cell *c);
	look *look;
	bool at_least; /* the other way round: `value` must not be below `limit` */
};

/* In every arm that has any: a comparison is as good as its weaker side. */
static bool enough(const struct cell_result *c)
{
	for (enum arm arm = 0; arm < ARMS; arm++)
		if (c->arm[arm].requests && c->arm[arm].requests < REQUESTS_WANTED)
			return false;
	return true;
}

/* Without the arms of other reports: only what was measured together is compared. */
static bool result_of(const struct report *r, const struct cell *cell, struct cell_result *c)
{
	for (unsigned i = 0; i < r->ncells; i++) {
		if (r->cell[i].cell != cell)
			continue;
		*c = r->cell[i];
		for (enum arm arm = 0; arm < ARMS; arm++)
			if (c->arm[arm].of[0])
				c->arm[arm] = (struct arm_result){0};
		return true;
	}
	return false;
}

/* How near it is to its limit; above 1 it fails. Used to name the worst cell. */
static double strain(const struct question *q, const struct evidence *e)
{
	if (q->at_least)
		return e->value > 0 ? e->limit / e->value : 1e9;
	return e->limit > 0 ? e->value / e->limit : e->value > e->limit ? 1e9 : 0;
}

static bool holds(const struct question *q, const struct evidence *e)
{
	return q->at_least ? e->value >= e->limit : e->value <= e->limit;
}

struct tally {
	unsigned asked, seen, failed;
	unsigned few, doubtful; /* with too few requests; of those: would have failed */
	double worst;
	struct evidence evidence;
	const char *where;
};

static void look_at(const struct report *r, const struct question *q, struct tally *t)
{
	for (unsigned i = 0; i < ncells; i++) {
		struct cell_result c;
		struct evidence e;

		if (!q->is_about(&cells[i]))
			continue;
		t->asked++;
		if (!result_of(r, &cells[i], &c) || !q->look(&c, &e))
			continue;
		t->seen++;
		if (!enough(&c) || r->quick) {
			t->few++;
			t->doubtful += !holds(q, &e);
		} else {
			t->failed += !holds(q, &e);
		}
		if (t->where && strain(q, &e) <= t->worst)
			continue;
		t->worst = strain(q, &e);
		t->evidence = e;
		t->where = cells[i].name;
	}
}

static void answer(const struct report *r, const struct question *q, struct claim *claim)
{
	struct tally t = {0};
	const char *few = "";

	look_at(r, q, &t);
	snprintf(claim->name, sizeof claim->name, "%s", q->name);
	snprintf(claim->says, sizeof claim->says, "%s", q->says);
	claim->verdict = t.seen == t.asked && !t.few ? PASS : NOT_MEASURED;
	if (t.failed)
		claim->verdict = FAIL;
	if (t.few)
		few = t.doubtful ? "; some with too few requests, where it does not hold"
		                 : "; some with too few requests, where it holds";
	if (!t.seen)
		snprintf(claim->detail, sizeof claim->detail, "none of %u cells", t.asked);
	else
		snprintf(claim->detail, sizeof claim->detail,
		         "%u of %u cells, %u failed; worst %.1f%s (limit %.1f) at %s%s", t.seen,
		         t.asked, t.failed, t.evidence.value, q->unit, t.evidence.limit, t.where,
		         few);
}

/* ---- which cells ---- */

static bool is_pair(const struct cell *c)
{
	return c->lc && c->nbe == 1 && !c->lc->torch;
}

static bool is_several_with_lc(const struct cell *c)
{
	return c->lc && c->nbe > 1;
}

static bool is_two(const struct cell *c)
{
	return !strcmp(c->name, "two");
}

static bool is_four(const struct cell *c)
{
	return !strcmp(c->name, "four");
}

static bool is_two_idle(const struct cell *c)
{
	return !strcmp(c->name, "two+idle");
}

static bool is_torch(const struct cell *c)
{
	return cell_uses_torch(c);
}

/* ---- what is looked at ---- */

static bool added(const struct cell_result *c, struct evidence *e)
{
	e->value = c->arm[ARM_GPREEMPT].added_us;
	e->limit = 200;
	return c->arm[ARM_GPREEMPT].has_added;
}

static bool added_of_default(const struct cell_result *c, struct evidence *e)
{
	e->value = c->arm[ARM_GPREEMPT].added_us;
	e->limit = c->arm[ARM_DEFAULT].added_us / 5;
	return c->arm[ARM_GPREEMPT].has_added && c->arm[ARM_DEFAULT].has_added;
}

static bool lost(const struct cell_result *c, struct evidence *e)
{
	const struct arm_result *a = &c->arm[ARM_GPREEMPT];

	e->value = a->lost_us;
	e->limit = (c->kernel_us > 0 ? c->kernel_us : c->cell->lc->kernel_us) + 400;
	return a->has_lost;
}

static bool lost_of_default(const struct cell_result *c, struct evidence *e)
{
	e->value = c->arm[ARM_GPREEMPT].lost_us;
	e->limit = 1.1 * c->arm[ARM_DEFAULT].lost_us;
	return c->arm[ARM_GPREEMPT].has_lost && c->arm[ARM_DEFAULT].has_lost;
}

static bool sum_of(const struct cell_result *c, struct evidence *e, double limit)
{
	e->value = 100 * c->arm[ARM_GPREEMPT].share;
	e->limit = limit;
	return c->arm[ARM_GPREEMPT].has_share;
}

static bool sum_98(const struct cell_result *c, struct evidence *e)
{
	return sum_of(c, e, 98);
}

static bool sum_97(const struct cell_result *c, struct evidence *e)
{
	return sum_of(c, e, 97);
}

static bool half_more(const struct cell_result *c, struct evidence *e)
{
	e->value = c->arm[ARM_GPREEMPT].p99_us;
	e->limit = 1.5 * c->arm[ARM_ALONE].p99_us;
	return c->arm[ARM_GPREEMPT].requests && c->arm[ARM_ALONE].requests;
}

static bool training(const struct cell_result *c, struct evidence *e)
{
	e->value = 100 * c->arm[ARM_GPREEMPT].share;
	e->limit = 100 * c->arm[ARM_DEFAULT].share - 2;
	return c->arm[ARM_GPREEMPT].has_share && c->arm[ARM_DEFAULT].has_share;
}

static bool better_than(const struct cell_result *c, struct evidence *e, enum arm other)
{
	e->value = c->arm[ARM_GPREEMPT].p99_us;
	e->limit = c->arm[other].p99_us;
	return c->arm[ARM_GPREEMPT].requests && c->arm[other].requests;
}

static bool better_than_default(const struct cell_result *c, struct evidence *e)
{
	return better_than(c, e, ARM_DEFAULT);
}

static bool better_than_mps(const struct cell_result *c, struct evidence *e)
{
	return better_than(c, e, ARM_MPS);
}

static const struct question questions[] = {
	{"1a", "p99 added <= 200 us beside every best-effort load", " us", is_pair, added, false},
	{"1b", "at least 5 times smaller than what default adds", " us", is_pair, added_of_default,
         false},
	{"2a", "GPU time lost per request <= its own + 400 us", " us", is_pair, lost, false},
	{"2b", "GPU time lost per request <= default's + 10 %", " us", is_pair, lost_of_default,
         false},
	{"3a", "two best-effort together >= 98 % of one alone", " %", is_two, sum_98, true},
	{"3b", "four best-effort together >= 97 %", " %", is_four, sum_97, true},
	{"3c", "two busy and two idle >= 97 %", " %", is_two_idle, sum_97, true},
	{"3d", "p99 added <= 200 us beside several", " us", is_several_with_lc, added, false},
	{"3e", "... and at least 5 times smaller than default's", " us", is_several_with_lc,
         added_of_default, false},
	{"4a", "PyTorch: inference p99 <= 1.5 times alone", " us", is_torch, half_more, false},
	{"4b", "PyTorch: training within 2 points of default's", " %", is_torch, training, true},
	{"4c", "PyTorch: inference better than default", " us", is_torch, better_than_default,
         false},
	{"4d", "PyTorch: inference better than MPS", " us", is_torch, better_than_mps, false},
};

/* Not one of the numbered criteria: without it none of the others counts. */
static void judge_results(const struct report *r, struct claim *claim)
{
	unsigned runs = 0, wrong = 0, failed = 0, behind = 0;
	char slow[64] = "";

	for (unsigned i = 0; i < r->ncells; i++)
		for (enum arm arm = 0; arm < ARMS; arm++) {
			runs += r->cell[i].arm[arm].runs;
			wrong += r->cell[i].arm[arm].mismatches;
			failed += r->cell[i].arm[arm].failures;
		}
	/* A result about MPS, not a wrong one; with gpreempt it is a failure. */
	for (unsigned i = 0; i < r->ncells; i++)
		behind += r->cell[i].arm[ARM_MPS].starved;
	failed -= behind;
	if (behind)
		snprintf(slow, sizeof slow, "; %u run%s of mps could not keep up", behind,
		         behind > 1 ? "s" : "");
	snprintf(claim->name, sizeof claim->name, "0");
	snprintf(claim->says, sizeof claim->says, "every run ended with the reference's results");
	snprintf(claim->detail, sizeof claim->detail, "%u runs, %u failed, %u of them wrong%s",
	         runs + failed + behind, failed, wrong, slow);
	claim->verdict = failed ? FAIL : runs ? PASS : NOT_MEASURED;
}

unsigned report_judge(const struct report *r, struct claim *claim)
{
	unsigned n = 0;

	_Static_assert(sizeof questions / sizeof questions[0] < CLAIMS_MAX, "room for all");
	judge_results(r, &claim[n++]);
	for (unsigned i = 0; i < sizeof questions / sizeof questions[0]; i++)
		answer(r, &questions[i], &claim[n++]);
	return n;
}
