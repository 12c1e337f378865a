/* SPDX-License-Identifier: Apache-2.0 */
#include "deadline_sets.h"

#include "support/by_value.h"

void set_costs(struct gp_sim_device *d, enum costs costs, uint64_t shortest_ns)
{
	struct world h200;

	deadline_world_init(&h200, 1000);
	*d = h200.device;
	if (costs == WHOLE_CHANGE) {
		uint64_t change_ns = world_change_ns(&h200);

#define SCALE(member) (d->member = d->member * (shortest_ns / 100) / change_ns)
		SCALE(switch_ns);
		SCALE(switch_idle_ns);
		SCALE(refill_ns);
		SCALE(hold_ns);
		SCALE(release_ns);
#undef SCALE
	} else {
		d->switch_ns = d->switch_idle_ns = shortest_ns / 100;
		d->refill_ns = d->switch_ns / 4;
		d->hold_ns = d->release_ns = costs == SWITCH_ALONE ? 1 : d->switch_ns / 4;
	}
	d->launch_ns = 2 * US;
	d->launch_jitter_ns = 1 * US;
}

void draw_any_costs(struct gp_sim_device *d, struct gp_rng *rng)
{
	d->switch_ns = draw_between(rng, 20, 600) * US;
	d->switch_idle_ns = d->switch_ns * draw_between(rng, 3, 4) / 4;
	d->refill_ns = d->switch_ns / 5;
	d->hold_ns = gp_rng_below(rng, 2) ? 1 : draw_between(rng, 1, 3000) * US;
	d->release_ns = gp_rng_below(rng, 2) ? 1 : draw_between(rng, 1, 1500) * US;
	d->slice_us = (uint32_t)(100u << gp_rng_below(rng, 5));
}

/* The time from an arrival until the task has the device, whichever task has it. */
static uint64_t set_step_ns(const struct set *s)
{
	return (s->device.hold_ns + s->device.release_ns + s->device.switch_ns) * 5 / 4;
}

void draw_set(struct set *s, struct gp_rng *rng, enum family family, unsigned n,
	      uint64_t shortest_ns, uint64_t permille)
{
	uint64_t doublings = gp_rng_below(rng, 10), cut[SET_TASKS + 1] = {0};
	const uint64_t whole = permille * 1000000;

	s->n = n;
	for (unsigned i = 1; i < n; i++)
		cut[i] = family == ANY       ? gp_rng_below(rng, whole)
			 : family == ONE_BIG ? 1000ull * i
					     : whole / n * i;
	cut[n] = whole;
	qsort(cut, n + 1, sizeof *cut, by_value);
	for (unsigned i = 0; i < n; i++) {
		uint64_t deadline_ns = shortest_ns;

		if (family == NESTED)
			deadline_ns += set_step_ns(s) * 9 / 8 * i;
		if (family == ANY && i)
			deadline_ns = (shortest_ns << gp_rng_below(rng, doublings + 1)) +
				      gp_rng_below(rng, doublings ? shortest_ns : 1);
		s->deadline_ns[i] = deadline_ns;
		s->budget_ns[i] = (cut[i + 1] - cut[i]) / 1000 * (deadline_ns / 1000) / 1000 + 1;
	}
}

/* How many tasks have a longer deadline. */
static unsigned rank_of(const struct set *s, unsigned i)
{
	unsigned rank = 0;

	for (unsigned k = 0; k < s->n; k++)
		rank += s->deadline_ns[k] > s->deadline_ns[i] ||
			(s->deadline_ns[k] == s->deadline_ns[i] && k < i);
	return rank;
}

static uint64_t draw_offset(const struct set *s, struct gp_rng *rng, enum phasing phasing,
			    unsigned i, uint64_t step_ns)
{
	switch (phasing) {
	case INVERSE:
	case INVERSE_SPORADIC: return rank_of(s, i) * step_ns;
	case CLOSE: return gp_rng_below(rng, s->n * step_ns);
	case APART: return gp_rng_below(rng, s->deadline_ns[i]);
	default: return 0;
	}
}

static void phase(struct world *w, const struct set *s, struct gp_rng *rng, enum phasing phasing)
{
	bool odd = phasing == INVERSE_SPORADIC || phasing == AT_ODD;
	uint64_t step_ns = set_step_ns(s);

	for (uint32_t i = 0; i < s->n; i++) {
		uint64_t deadline_ns = s->deadline_ns[i];
		uint64_t at_ns = 2 * MS + draw_offset(s, rng, phasing, i, step_ns);
		uint32_t most = (uint32_t)(w->duration_ns / deadline_ns) + 1, n;

		w->arrival_ns[i] = calloc(most, sizeof **w->arrival_ns);
		assert_non_null(w->arrival_ns[i]);
		for (n = 0; n < most && at_ns < w->duration_ns; n++) {
			w->arrival_ns[i][n] = at_ns;
			at_ns += deadline_ns;
			if (odd && !gp_rng_below(rng, 3))
				at_ns += gp_rng_below(rng,
						      deadline_ns / (1 + gp_rng_below(rng, 30)));
		}
		world_set_trace(w, i, w->arrival_ns[i], n);
	}
}

/* Tasks without a promise: some never pause, some pause all the time. */
static void add_background(struct world *w, unsigned count)
{
	for (unsigned k = 0; k < count; k++)
		world_add(w, k % 2 ? LOOP(200 * US, .gap_ns = 300 * US) : LOOP(5 * MS), 0, 0);
}

/* Long enough for twice the longest deadline, or 60 of the shortest; but limited. */
static uint64_t set_duration_ns(const struct set *s)
{
	uint64_t longest_ns = 0, shortest_ns = UINT64_MAX, duration_ns;

	for (unsigned i = 0; i < s->n; i++) {
		if (s->deadline_ns[i] > longest_ns)
			longest_ns = s->deadline_ns[i];
		if (s->deadline_ns[i] < shortest_ns)
			shortest_ns = s->deadline_ns[i];
	}
	duration_ns = longest_ns * 5 / 2;
	if (duration_ns < 60 * shortest_ns)
		duration_ns = 60 * shortest_ns;
	return duration_ns < 400 * shortest_ns ? duration_ns : 400 * shortest_ns;
}

static void world_of_set(struct world *w, const struct set *s)
{
	deadline_world_init(w, 1000);
	w->device = s->device;
	if (s->request_marks)
		w->device.activity = GP_ACTIVITY_NONE;
	for (unsigned i = 0; i < s->n; i++) {
		world_add_service(w, s->deadline_ns[i], s->deadline_ns[i], s->budget_ns[i]);
		if (s->request_marks)
			split_request(w, i);
	}
}

bool is_accepted(const struct set *s, const char *policy)
{
	static const uint64_t soon_ns[] = {1 * MS};
	struct world w;

	world_of_set(&w, s);
	for (uint32_t i = 0; i < w.n; i++)
		world_set_trace(&w, i, soon_ns, 1);
	w.duration_ns = 2 * MS;
	world_run(&w, policy);
	return !world_refused(&w);
}

bool is_late(const struct set *s, const struct gp_policy_choice *given, unsigned attempt)
{
	struct gp_policy_choice choice = *given;
	struct gp_rng rng;
	struct world w;
	bool late;

	gp_rng_init(&rng, attempt, 21);
	world_of_set(&w, s);
	w.seed = attempt + 1;
	w.duration_ns = set_duration_ns(s);
	phase(&w, s, &rng, attempt % PHASINGS);
	add_background(&w, attempt % 4);
	if (attempt / PHASINGS % 2) /* the background has its reserve as often as possible */
		choice.param[GP_DEADLINE_RESERVE_EVERY] = 10;
	world_run_choice(&w, &choice);
	late = world_missed(&w) || w.ejected[0];
	for (uint32_t i = 0; i < s->n; i++)
		late |= !w.stats[i].refused && w.stats[i].overruns;
	world_free(&w);
	return late;
}

static uint32_t pick_earliest(const struct gp_view *view, uint32_t current, struct gp_plan *plan)
{
	(void)plan;
	return gp_earliest_due(view, current);
}

static int decide_all(const struct gp_view *view, struct gp_plan *plan)
{
	static const struct gp_deadline_rules rules = {.pick = pick_earliest, .promise_all = true};

	return gp_deadline_decide(view, &rules, plan);
}

bool has_witness(const struct set *s, unsigned attempts)
{
	struct gp_policy_ops accepts_all = gp_policy_edf;
	struct gp_policy_choice choice;

	accepts_all.decide = decide_all;
	gp_policy_defaults(&accepts_all, &choice);
	for (unsigned attempt = 0; attempt < attempts; attempt++)
		if (is_late(s, &choice, attempt))
			return true;
	return false;
}
