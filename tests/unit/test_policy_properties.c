/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules for every policy, over random sequences through the real engine on a model of a device
 * that knows the real state (property_model.h, property_world.h). Each sequence draws a device with
 * certain abilities, and tasks that come and leave, change class and gang, work and pause, and are
 * held by users. Single claims are in test_policy_claims.c.
 *
 * A failure names policy, seed and step. GPREEMPT_POLICY=NAME GPREEMPT_SEED=N runs that sequence
 * alone and prints its events; GPREEMPT_SOAK=N runs N times as many.
 */
#include "support/test.h"

#include "base/log.h"
#include "property_world.h"

#define SEQUENCES    60u
#define STEPS        1000u
#define STEADY_STEPS 3000u /* of about 10 ms each: three times the starvation limit */

/* Random sequences. */

/* One draw per statement: the compiler chooses the order within an initialiser or argument list. */
static struct model_profile draw_profile(struct world *w)
{
	static const uint32_t max_held[] = {0, 0, 1, 2, 3, ALL, ALL, ALL, ALL, ALL};
	bool clear = chance(w, 300);
	bool bounded = chance(w, 100);
	struct model_profile p = {
		.slice_min_us = bounded ? 1000 : 1,
		.slice_max_us = bounded ? 100000 : 10000000,
	};

	p.slices = chance(w, 600);
	p.slice_us = chance(w, 800) ? 2000 : 1000;
	p.slice_us_told = chance(w, 800);
	p.max_held = max_held[below(w, 10)];
	p.activity = clear ? EXACT : (enum model_sight)below(w, 3);
	p.activity_of_held = clear || chance(w, 500);
	p.events = p.activity == EXACT && chance(w, 500);
	p.running_seen = clear || chance(w, 500);
	p.run = (enum model_sight)below(w, 3);
	p.held_seen = clear || chance(w, 700);
	p.slice_seen = p.slices && (clear || chance(w, 700));
	p.finish = (enum model_finish)below(w, 4);
	p.cost_ns = 10000 + below(w, 390000);
	p.drop_permille = clear ? 0 : (unsigned)below(w, 3) * 20;
	p.blind_permille = clear ? 0 : (unsigned)below(w, 3) * 10;
	return p;
}

/* A policy is tried only if it can be loaded: the device has what it needs. */
static void fit_profile(struct model_profile *p, const struct gp_policy_ops *policy)
{
	uint32_t needs = policy->needs;

	if ((needs & GP_CAP_HOLD) && !p->max_held)
		p->max_held = ALL;
	p->slices |= (needs & GP_CAP_SLICE) != 0;
	p->slice_seen |= (needs & GP_CAP_SLICE) != 0;
	p->events |= (needs & GP_CAP_EVENTS) != 0;
	if ((needs & GP_CAP_ACTIVITY) && p->activity == UNSEEN)
		p->activity = SAMPLED;
	if (p->events || (policy->needs_one & GP_CAP_ACTIVITY))
		p->activity = EXACT;
}

static void draw_rhythm(struct world *w, uint32_t i)
{
	unsigned kind = (unsigned)below(w, w->steady ? 6 : 10);
	uint64_t busy_ns = kind < 6 ? MS / 2 + below(w, 20 * MS) : MS + below(w, 300 * MS);
	uint64_t idle_ns = MS + below(w, (kind < 6 ? 50 : 300) * MS);

	if (kind < 4)
		model_set_rhythm(&w->model, i, GP_NEVER, GP_NEVER);
	else if (kind < 8)
		model_set_rhythm(&w->model, i, busy_ns, idle_ns);
	else
		model_set_rhythm(&w->model, i, 0, GP_NEVER);
}

/* Attributes other than class and priority. They are drawn from a copy: for policies that ignore
 * them, the sequences are the same with and without. */
static void draw_promises(const struct world *w, struct gp_task_attr *a)
{
	struct gp_rng rng = w->rng;

	if (gp_rng_below(&rng, 2))
		a->deadline_ns = MS / 4 + gp_rng_below(&rng, 20 * MS);
	if (gp_rng_below(&rng, 2))
		a->budget_ns = MS / 20 + gp_rng_below(&rng, 2 * MS);
	if (!gp_rng_below(&rng, 3))
		a->share_permille = (uint32_t)gp_rng_below(&rng, 500);
	if (!gp_rng_below(&rng, 3))
		a->ceiling_permille = 1 + (uint32_t)gp_rng_below(&rng, 999);
	if (gp_rng_below(&rng, 2))
		a->weight = 1 + (uint32_t)gp_rng_below(&rng, gp_rng_below(&rng, 2) ? 10000 : 200);
}

static struct gp_task_attr draw_attr(struct world *w)
{
	struct gp_task_attr a = GP_TASK_ATTR_DEFAULT;
	static const uint8_t class[] = {GP_UNMANAGED,       GP_BEST_EFFORT, GP_BEST_EFFORT,
					GP_BEST_EFFORT,     GP_BEST_EFFORT, GP_LATENCY_CRITICAL,
					GP_LATENCY_CRITICAL};

	a.class = class[below(w, 7)];
	a.priority = chance(w, 600) ? 0 : (uint8_t)below(w, GP_PRIORITY_MAX + 1);
	a.gang = chance(w, 300) ? 1 + below(w, 3) : 0;
	draw_promises(w, &a);
	if (w->policy->needs_one && chance(w, 500)) { /* the policy uses deadlines */
		a.deadline_ns = MS + below(w, 200 * MS);
		a.budget_ns = chance(w, 800) ? below(w, a.deadline_ns) : 0;
	}
	return a;
}

static unsigned count_present(const struct world *w)
{
	unsigned n = 0;

	for (unsigned i = 0; i < MODEL_TASKS; i++)
		n += w->model.task[i].present;
	return n;
}

static bool gang_has_room(const struct world *w, uint64_t gang)
{
	unsigned n = 0;

	for (unsigned i = 0; i < MODEL_TASKS; i++)
		n += w->model.task[i].present && w->subject[i].attr.gang == gang;
	return !gang || n < 3;
}

static void let_one_in(struct world *w)
{
	uint32_t i = count_present(w) < 10 ? model_enter(&w->model) : MODEL_TASKS;
	struct subject *s;

	if (i == MODEL_TASKS)
		return;
	s = &w->subject[i];
	*s = (struct subject){.attr = draw_attr(w)};
	if (!gang_has_room(w, s->attr.gang) || users_ask_too_much(w))
		s->attr.gang = 0;
	tell(w, "task %u comes: class %u, gang %llu", i, s->attr.class,
	     (unsigned long long)s->attr.gang);
	note_status(w, i);
	draw_rhythm(w, i);
	if (chance(w, 500))
		gp_engine_trigger(w->engine, true);
}

static void change_attr(struct world *w, uint32_t i)
{
	struct subject *s = &w->subject[i];
	struct gp_task_attr before = s->attr, drawn = draw_attr(w);

	if (chance(w, 500))
		s->attr.class = drawn.class;
	if (chance(w, 300)) {
		s->attr.priority = drawn.priority;
		s->attr.weight = drawn.weight;
		s->attr.deadline_ns = drawn.deadline_ns;
		s->attr.share_permille = drawn.share_permille;
		s->attr.ceiling_permille = drawn.ceiling_permille;
	}
	if (w->policy->needs_one && chance(w, 300)) {
		s->attr.deadline_ns = drawn.deadline_ns;
		s->attr.budget_ns = drawn.budget_ns;
	}
	if (chance(w, 300) && gang_has_room(w, drawn.gang))
		s->attr.gang = drawn.gang;
	if (users_ask_too_much(w)) {
		s->attr = before;
		return;
	}
	tell(w, "task %u: class %u, priority %u, gang %llu", i, s->attr.class, s->attr.priority,
	     (unsigned long long)s->attr.gang);
	note_status(w, i);
	if (gp_engine_set_attr(w->engine, s->id, &s->attr))
		breach(w, "set_attr of task %u failed", i);
}

static void let_things_happen(struct world *w)
{
	uint32_t i = (uint32_t)below(w, MODEL_TASKS);
	unsigned permille = w->steady ? 1 : 20;

	if (chance(w, permille))
		let_one_in(w);
	if (!w->model.task[i].present)
		return;
	if (chance(w, permille / 2)) {
		tell(w, "task %u goes", i);
		model_leave(&w->model, i);
		disturb(w);
		return;
	}
	if (chance(w, 2 * permille))
		draw_rhythm(w, i);
	if (!w->subject[i].id)
		return;
	if (chance(w, permille))
		change_attr(w, i);
	if (chance(w, permille))
		change_user_hold(w, i);
}

static uint64_t draw_time(struct world *w)
{
	uint64_t asked_ns = gp_engine_next_ns(w->engine);
	uint64_t drawn_ns = w->model.now_ns + 50000 +
			    below(w, w->steady || chance(w, 500) ? 20 * MS - 50000 : 2 * MS);

	if (w->punctual && asked_ns < drawn_ns)
		return asked_ns;
	return chance(w, w->punctual ? 700 : 200) && asked_ns ? asked_ns : drawn_ns;
}

static void tell_profile(const struct world *w)
{
	const struct model_profile *p = &w->model.profile;

	tell(w,
	     "slices %d (%u to %u us, own %u), holds %u, activity %d%s%s%s, run %d%s%s, finish %d "
	     "in "
	     "%llu us, %u/1000 missing, %u/1000 blind%s%s",
	     p->slices, p->slice_min_us, p->slice_max_us, p->slice_us, p->max_held, p->activity,
	     p->activity_of_held ? " also held" : "", p->events ? " events" : "",
	     p->running_seen ? " running" : "", p->run, p->held_seen ? " held" : "",
	     p->slice_seen ? " slice" : "", p->finish, (unsigned long long)(p->cost_ns / 1000),
	     p->drop_permille, p->blind_permille, w->punctual ? ", punctual" : "",
	     w->steady ? ", steady" : "");
}

/* Any valid parameters: the minimum, the maximum, or the default of each. */
static void draw_params(uint64_t seed, struct gp_policy_choice *choice)
{
	struct gp_rng rng;

	gp_rng_init(&rng, seed, 3);
	for (uint32_t i = 0; i < choice->ops->nparam; i++) {
		const struct gp_param *p = &choice->ops->param[i];
		uint64_t which = gp_rng_below(&rng, 3);

		choice->param[i] = which == 0 ? p->min : which == 1 ? p->max : p->def;
	}
}

/* Runs one sequence. A failure is stored in w->failure. */
static void run_sequence(struct world *w, const struct gp_policy_ops *policy, uint64_t seed,
			 bool tuned, bool tells)
{
	struct gp_policy_choice choice;
	struct model_profile profile;
	unsigned steps;

	gp_policy_defaults(policy, &choice);
	if (tuned)
		draw_params(seed, &choice);
	*w = (struct world){.seed = seed};
	gp_rng_init(&w->rng, seed, 2);
	profile = draw_profile(w);
	fit_profile(&profile, policy);
	if (world_init(w, &choice, &profile, seed)) {
		breach(w, "no engine");
		return;
	}
	w->tells = tells;
	w->tuned = tuned;
	w->steady = chance(w, 200);
	w->punctual = chance(w, w->steady ? 400 : 600);
	tell_profile(w);
	for (unsigned n = (unsigned)below(w, 9); n; n--)
		let_one_in(w);
	steps = w->steady ? STEADY_STEPS : STEPS;
	while (w->step < steps && !w->failure[0]) {
		let_things_happen(w);
		pass_time(w, draw_time(w));
		tick(w);
	}
	gp_engine_free(w->engine);
}

static uint64_t count_sequences(void)
{
	const char *soak = getenv("GPREEMPT_SOAK");

	return SEQUENCES * (soak && atoi(soak) > 0 ? (uint64_t)atoi(soak) : 1);
}

static void run_sequences(const struct gp_policy_ops *policy, bool tuned)
{
	const char *one = getenv("GPREEMPT_SEED");
	uint64_t n = count_sequences(), longest_ns = 0;
	static struct world w;

	w.failure[0] = '\0';
	if (one) {
		run_sequence(&w, policy, strtoull(one, NULL, 0), tuned, true);
		n = 0;
	}
	for (uint64_t seed = 1; seed <= n && !w.failure[0]; seed++) {
		run_sequence(&w, policy, seed, tuned, false);
		if (w.longest_denied_ns > longest_ns)
			longest_ns = w.longest_denied_ns;
	}
	if (w.failure[0])
		fail_msg("%s", w.failure);
	print_message("%s: no task waited longer than %llu ms\n", policy->name,
		      (unsigned long long)(longest_ns / MS));
}

static bool is_tried(const struct gp_policy_ops *policy)
{
	const char *one = getenv("GPREEMPT_POLICY");

	return !one || !strcmp(policy->name, one);
}

TEST(every_policy_keeps_its_promises_in_random_sequences)
{
	for (const struct gp_policy_ops *const *p = gp_policies; *p; p++)
		if (is_tried(*p))
			run_sequences(*p, false);
}

TEST(no_parameters_that_can_be_asked_for_make_a_policy_break_the_rules)
{
	for (const struct gp_policy_ops *const *p = gp_policies; *p; p++)
		if (is_tried(*p))
			run_sequences(*p, true);
}

/* All combinations of the four capabilities that a device may lack. */
TEST(a_policy_is_loaded_where_the_device_has_what_it_needs_and_refused_elsewhere)
{
	static struct world w;

	for (const struct gp_policy_ops *const *p = gp_policies; *p; p++)
		for (unsigned has = 0; has < 24; has++) {
			struct model_profile profile = {.slices = has & 1,
							.slice_min_us = 1,
							.slice_max_us = 10000000,
							.slice_us = 2000,
							.max_held = has & 2 ? ALL : 0,
							.activity = (enum model_sight)(has / 8),
							.events = has >= 16 && (has & 4)};
			uint32_t caps = (has & 1 ? GP_CAP_SLICE : 0) | (has & 2 ? GP_CAP_HOLD : 0) |
					(profile.events ? GP_CAP_EVENTS : 0) |
					(has >= 8 ? GP_CAP_ACTIVITY : 0);
			uint32_t prompt = profile.activity == EXACT
						  ? caps
						  : caps & ~(uint32_t)GP_CAP_ACTIVITY;
			bool suits = !((*p)->needs & ~caps) &&
				     (!(*p)->needs_one || ((*p)->needs_one & prompt));
			struct gp_policy_choice choice;

			gp_policy_defaults(*p, &choice);
			if ((world_init(&w, &choice, &profile, 1) == 0) != suits)
				fail_msg("%s on a device with %x: %s", (*p)->name, caps,
					 suits ? "refused" : "loaded");
			gp_engine_free(w.engine);
		}
}

TEST(the_same_seed_gives_the_same_plans_and_actions)
{
	static struct world w;

	for (const struct gp_policy_ops *const *p = gp_policies; *p; p++)
		for (uint64_t seed = 1; seed <= count_sequences() / 10; seed++) {
			uint64_t first;

			run_sequence(&w, *p, seed, false, false);
			first = w.hash;
			run_sequence(&w, *p, seed, false, false);
			if (w.hash != first)
				fail_msg("(9) policy %s, seed %llu: another run differs",
					 (*p)->name, (unsigned long long)seed);
		}
}

TEST_BEGIN
{
	gp_log_set_level(GP_LOG_ERROR);
}
