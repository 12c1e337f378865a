/* SPDX-License-Identifier: Apache-2.0 */
#include "property_world.h"

void breach(struct world *w, const char *format, ...)
{
	va_list args;
	int n;

	if (w->failure[0])
		return;
	n = snprintf(w->failure, sizeof w->failure,
		     "policy %s, seed %llu, step %u: ", w->policy->name,
		     (unsigned long long)w->seed, w->step);
	va_start(args, format);
	vsnprintf(w->failure + n, sizeof w->failure - (size_t)n, format, args);
	va_end(args);
}

void tell(const struct world *w, const char *format, ...)
{
	va_list args;

	if (!w->tells)
		return;
	fprintf(stderr, "%5u %12.3f ms  ", w->step, (double)w->model.now_ns / 1e6);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
}

static void mix_in(struct world *w, uint64_t value)
{
	w->hash = (w->hash ^ value) * 0x9e3779b97f4a7c15ull;
	w->hash ^= w->hash >> 29;
}

static bool is_there(const struct world *w, uint32_t i)
{
	return w->model.task[i].attached && w->model.task[i].present;
}

static bool is_managed(const struct subject *s)
{
	return s->attr.class != GP_UNMANAGED;
}

static bool are_mates(const struct subject *a, const struct subject *b)
{
	return a == b ||
	       (a->attr.gang && a->attr.gang == b->attr.gang && is_managed(a) && is_managed(b));
}

static bool has_mates(const struct world *w, uint32_t i)
{
	for (unsigned j = 0; j < MODEL_TASKS; j++)
		if (j != i && w->model.task[j].attached &&
		    are_mates(&w->subject[i], &w->subject[j]))
			return true;
	return false;
}

/* Held by its user, or by the user of a task of its gang. A task that has left counts until the
 * engine knows. */
static bool is_user_held(const struct world *w, uint32_t i)
{
	for (unsigned j = 0; j < MODEL_TASKS; j++)
		if (w->subject[j].user_hold && w->model.task[j].attached &&
		    are_mates(&w->subject[i], &w->subject[j]))
			return true;
	return false;
}

/* The highest class of its gang: its class if whole gangs are held. */
static uint8_t class_of_gang(const struct world *w, uint32_t i)
{
	uint8_t class = w->subject[i].attr.class;

	for (unsigned j = 0; j < MODEL_TASKS; j++)
		if (w->model.task[j].attached && are_mates(&w->subject[i], &w->subject[j]) &&
		    w->subject[j].attr.class > class)
			class = w->subject[j].attr.class;
	return class;
}

/* Values that depend on other tasks are computed once, not in every piece of time. */
static void refresh(struct world *w)
{
	for (unsigned i = 0; i < MODEL_TASKS; i++) {
		w->subject[i].by_user = is_user_held(w, i);
		w->subject[i].gang_class = class_of_gang(w, i);
	}
}

unsigned count_user_held(const struct world *w)
{
	unsigned n = 0;

	for (unsigned i = 0; i < MODEL_TASKS; i++) {
		bool held = false;

		for (unsigned j = 0; j < MODEL_TASKS; j++)
			held |= w->subject[j].user_hold &&
				are_mates(&w->subject[i], &w->subject[j]);
		n += held && (w->model.task[i].present || w->model.task[i].attached);
	}
	return n;
}

void disturb(struct world *w)
{
	w->calm_since_ns = w->model.now_ns;
	w->lc_busy_ns = w->be_beside_ns = w->be_allowed_ns = 0;
	for (unsigned i = 0; i < MODEL_TASKS; i++)
		w->subject[i].ticks = 0;
	refresh(w);
}

static const char *const action_names[] = {"set_slice", "hold", "release"};

static void check_call(void *arg, enum model_action kind, uint32_t task, uint32_t slice_us)
{
	struct world *w = arg;
	const struct subject *s = &w->subject[task];

	tell(w, "%s %u %u", action_names[kind], task, slice_us);
	mix_in(w, kind + 16 * task);
	mix_in(w, slice_us ^ w->model.now_ns);
	if (!s->was_managed && (!s->was_user_held || kind == MODEL_SET_SLICE))
		breach(w, "(2) %s of task %u, which has always been unmanaged", action_names[kind],
		       task);
	if (kind == MODEL_RELEASE && is_user_held(w, task))
		breach(w, "(3) task %u is released while a user holds it", task);
	if (kind == MODEL_HOLD && !w->model.profile.max_held)
		breach(w, "(1) task %u is held on a device that cannot hold", task);
}

/* Unmanaged tasks count, too: slices that are left on them must not meet the others. */
static void check_tiny(struct world *w, uint32_t because_of)
{
	unsigned tiny = 0;

	for (unsigned i = 0; i < MODEL_TASKS; i++) {
		const struct model_task *t = &w->model.task[i];

		tiny += is_there(w, i) && !t->held && model_is_tiny(t) &&
			w->subject[i].attr.class != GP_LATENCY_CRITICAL;
	}
	if (tiny > 1)
		breach(w, "(7) %u best-effort tasks with tiny slices, after an action on task %u",
		       tiny, because_of);
}

static void check_effect(void *arg, uint32_t task)
{
	struct world *w = arg;
	unsigned held = 0;

	tell(w, "  now %u: %s, slice %u", task, w->model.task[task].held ? "held" : "released",
	     w->model.task[task].slice_us);
	if (w->model.task[task].held != w->subject[task].was_held) {
		w->subject[task].was_held = w->model.task[task].held;
		*(w->model.task[task].held ? &w->subject[task].held_ns
					   : &w->subject[task].released_ns) = w->model.now_ns;
	}
	check_tiny(w, task);
	for (unsigned i = 0; i < MODEL_TASKS; i++)
		held += is_there(w, i) && w->model.task[i].held;
	if (w->model.task[task].held && held > w->model.profile.max_held)
		breach(w, "(1) %u tasks are held; the device can hold %u", held,
		       w->model.profile.max_held);
}

/* The task wants the device, the policy is responsible for it, and no user holds it. */
static bool is_entitled(const struct world *w, uint32_t i)
{
	return is_there(w, i) && w->subject[i].id && w->model.task[i].active &&
	       is_managed(&w->subject[i]) && !w->subject[i].by_user;
}

static void watch_starvation(struct world *w, uint32_t i, uint64_t length_ns)
{
	struct subject *s = &w->subject[i];

	if (!is_entitled(w, i) || w->model.task[i].on_hardware) {
		s->denied_ns = 0;
		return;
	}
	s->denied_ns += length_ns;
	if (s->denied_ns > w->longest_denied_ns)
		w->longest_denied_ns = s->denied_ns;
	if (s->denied_ns > STARVE_LIMIT)
		breach(w, "(5) task %u got nothing for %llu ms", i,
		       (unsigned long long)(s->denied_ns / MS));
}

/*
 * The time from a change to the effect of the reaction: a tick, unless the change is signalled, and
 * an action, which may have to wait for others.
 */
static uint64_t reaction_ns(const struct world *w)
{
	const struct model_profile *p = &w->model.profile;
	uint64_t actions = p->finish == AT_ONCE ? 0 : p->finish == WORKER ? 2 * MODEL_TASKS : 2;

	if (p->max_held != ALL)
		actions *= 2; /* a hold needs room that must be seen to be free first */
	return (p->events ? 0 : CHECK_NS) + (p->max_held == ALL ? 0 : CHECK_NS) +
	       actions * p->cost_ns;
}

/*
 * In an aging window, because it or a member of its gang was held for long: that is no inversion.
 */
static bool in_aging_window(const struct world *w, uint32_t i)
{
	uint64_t late_ns = reaction_ns(w);

	for (unsigned j = 0; j < MODEL_TASKS; j++) {
		const struct subject *s = &w->subject[j];

		if (is_there(w, j) && !w->model.task[j].held && are_mates(s, &w->subject[i]) &&
		    s->released_ns - s->held_ns + late_ns >= AGE_AFTER_NS &&
		    w->model.now_ns - s->released_ns <= AGE_RUN_NS + late_ns)
			return true;
	}
	return false;
}

/* A best-effort task on the hardware without a valid reason. */
static bool is_intruder(const struct world *w, uint32_t i)
{
	return is_entitled(w, i) && w->model.task[i].on_hardware &&
	       w->subject[i].gang_class == GP_BEST_EFFORT &&
	       (w->model.profile.slices || !in_aging_window(w, i));
}

/* The sum of all slices, the default ones or those of aging: a round without software. */
static uint64_t round_ns(const struct world *w)
{
	uint64_t slice_us = w->model.profile.slice_us, n = 0;

	if (!w->model.profile.slices)
		return 0;
	for (unsigned i = 0; i < MODEL_TASKS; i++)
		n += is_there(w, i) && w->subject[i].attr.class != GP_LATENCY_CRITICAL;
	return n * (slice_us > AGE_SLICE_US ? slice_us : AGE_SLICE_US) * GP_NS_PER_US + 2 * MS;
}

/* With slices: a latency-critical task waits for others for one round at most. */
static void watch_wait(struct world *w, uint32_t i, bool intruder, uint64_t length_ns)
{
	struct subject *s = &w->subject[i];
	uint64_t allowed_ns = reaction_ns(w) + round_ns(w);

	if (!is_entitled(w, i) || s->attr.class != GP_LATENCY_CRITICAL ||
	    w->model.task[i].on_hardware) {
		s->inverted_ns = 0;
		return;
	}
	s->inverted_ns += intruder ? length_ns : 0;
	if (s->inverted_ns > allowed_ns)
		breach(w,
		       "(6) latency-critical task %u waited %llu us for best-effort ones; %llu "
		       "allowed",
		       i, (unsigned long long)(s->inverted_ns / 1000),
		       (unsigned long long)(allowed_ns / 1000));
}

/* Without slices all tasks run side by side: best-effort tasks must be held. */
static void watch_intruder(struct world *w, uint32_t i, bool inverted, uint64_t length_ns)
{
	struct subject *s = &w->subject[i];

	if (!inverted || !is_intruder(w, i)) {
		s->inverted_ns = 0;
		return;
	}
	s->inverted_ns += length_ns;
	if (s->inverted_ns > reaction_ns(w))
		breach(w,
		       "(6) best-effort task %u ran %llu us before a latency-critical one; %llu "
		       "allowed",
		       i, (unsigned long long)(s->inverted_ns / 1000),
		       (unsigned long long)(reaction_ns(w) / 1000));
}

/* A latency-critical task wants the device; with `denied`, it also gets nothing. */
static bool lc_is_busy(const struct world *w, bool denied)
{
	for (unsigned i = 0; i < MODEL_TASKS; i++)
		if (is_entitled(w, i) && w->subject[i].attr.class == GP_LATENCY_CRITICAL &&
		    !(denied && w->model.task[i].on_hardware))
			return true;
	return false;
}

/*
 * With slices and room for holds, best-effort tasks have only aging windows while latency-critical
 * ones are busy: half of 10 ms in 110 ms. The time between becoming active and being seen is added.
 * This does not apply to gangs: two released tasks cannot both have a tiny slice.
 */
static void watch_share(struct world *w, bool lc_busy, bool intruder, uint64_t length_ns)
{
	bool applies = w->model.profile.max_held == ALL && w->model.profile.slice_min_us == 1 &&
		       w->model.now_ns - w->calm_since_ns >= CALM_NS;

	for (unsigned i = 0; i < MODEL_TASKS; i++) {
		struct subject *s = &w->subject[i];
		bool active = w->model.task[i].active;

		if (is_there(w, i))
			applies &= is_managed(s) && !has_mates(w, i);
		if (active != s->was_active)
			w->be_allowed_ns += reaction_ns(w) + 4 * MS;
		s->was_active = active;
	}
	if (!applies || !lc_busy)
		return;
	w->lc_busy_ns += length_ns;
	w->be_beside_ns += intruder ? length_ns : 0;
	if (w->be_beside_ns > w->lc_busy_ns / 10 + w->be_allowed_ns + 10 * MS)
		breach(w,
		       "(6) best-effort tasks had %llu of %llu us that latency-critical ones "
		       "wanted; %llu for coming",
		       (unsigned long long)(w->be_beside_ns / 1000),
		       (unsigned long long)(w->lc_busy_ns / 1000),
		       (unsigned long long)(w->be_allowed_ns / 1000));
}

/* Everything about demand and use can be seen, and the engine ticks when it should. */
static bool is_clear(const struct world *w)
{
	const struct model_profile *p = &w->model.profile;

	return w->punctual && p->activity == EXACT && p->activity_of_held && p->running_seen &&
	       p->held_seen && (p->slice_seen || !p->slices) && !p->drop_permille &&
	       !p->blind_permille;
}

static void watch_inversions(struct world *w, uint64_t length_ns)
{
	/* A device that cannot hold all of them holds at least those for which others wait. */
	bool inverted = lc_is_busy(w, w->model.profile.max_held != ALL);
	bool intruder = false;

	for (unsigned i = 0; i < MODEL_TASKS; i++)
		intruder |= is_intruder(w, i);
	for (unsigned i = 0; i < MODEL_TASKS; i++) {
		if (w->model.profile.slices)
			watch_wait(w, i, intruder, length_ns);
		else
			watch_intruder(w, i, inverted, length_ns);
	}
	if (w->model.profile.slices)
		watch_share(w, lc_is_busy(w, false), intruder, length_ns);
}

static void account_piece(void *arg, uint64_t length_ns)
{
	struct world *w = arg;

	for (unsigned i = 0; i < MODEL_TASKS; i++)
		watch_starvation(w, i, length_ns);
	if (w->policy == &gp_policy_priority && is_clear(w) && !w->tuned)
		watch_inversions(w, length_ns);
}

static void check_task_plan(struct world *w, uint32_t i)
{
	const struct gp_view *view = gp_engine_view(w->engine);
	const struct gp_task_plan *p = &gp_engine_plan(w->engine)->task[w->subject[i].index];
	const struct model_profile *d = &w->model.profile;
	const struct subject *s = &w->subject[i];

	if (view->task[s->index].class != s->attr.class)
		breach(w, "(1) task %u has class %u in the view, not %u", i,
		       view->task[s->index].class, s->attr.class);
	if (!is_managed(s) && (p->want != GP_LEAVE || p->slice_us))
		breach(w, "(1) the plan touches task %u, which is unmanaged", i);
	if (p->refused && (!is_managed(s) || !(s->attr.share_permille || s->attr.deadline_ns)))
		breach(w, "(10) task %u is refused, and asks for nothing", i);
	if (p->want > GP_HOLD)
		breach(w, "(1) the plan wants %u of task %u", p->want, i);
	if (p->slice_us &&
	    (!d->slices || p->slice_us < d->slice_min_us || p->slice_us > d->slice_max_us))
		breach(w, "(1) the plan gives task %u a slice of %u us", i, p->slice_us);
	for (unsigned j = 0; j < MODEL_TASKS; j++)
		if (w->subject[j].id && are_mates(s, &w->subject[j]) &&
		    gp_engine_plan(w->engine)->task[w->subject[j].index].want != p->want)
			breach(w, "(4) the plan parts tasks %u and %u of one gang", i, j);
}

static void check_plan(struct world *w)
{
	const struct gp_plan *plan = gp_engine_plan(w->engine);
	unsigned by_policy = 0, by_user = 0;

	if (plan->next_ns <= w->model.now_ns)
		breach(w, "(1) the plan asks for a tick in the past");
	for (unsigned i = 0; i < MODEL_TASKS; i++) {
		if (!w->subject[i].id)
			continue;
		check_task_plan(w, i);
		if (is_user_held(w, i))
			by_user++;
		else if (plan->task[w->subject[i].index].want == GP_HOLD)
			by_policy++;
	}
	if (by_policy && by_policy + by_user > w->model.profile.max_held)
		breach(w, "(1) the plan holds %u tasks beside %u of users; the device holds %u",
		       by_policy, by_user, w->model.profile.max_held);
}

/* A tiny slice only if no task but latency-critical ones may be running. */
static void check_tiny_plan(struct world *w)
{
	const struct gp_view *view = gp_engine_view(w->engine);
	const struct gp_plan *plan = gp_engine_plan(w->engine);

	for (unsigned i = 0; i < view->n; i++) {
		uint32_t slice_us = plan->task[i].slice_us;

		if (plan->task[i].want == GP_HOLD || slice_us < 1 || slice_us > GP_TINY_SLICE_US)
			continue;
		if (view->task[i].class != GP_BEST_EFFORT)
			breach(w, "(8) a tiny slice for a task of class %u", view->task[i].class);
		for (unsigned j = 0; j < view->n; j++)
			if (j != i && view->task[j].class != GP_LATENCY_CRITICAL &&
			    !(view->task[j].held_by & GP_HELD_BY_USER) &&
			    plan->task[j].want != GP_HOLD && !gp_seen_idle(&view->task[j]))
				breach(w, "(8) a tiny slice while task %llu may run too",
				       (unsigned long long)view->task[j].id);
	}
}

static void note_wants(struct world *w, uint32_t i)
{
	struct subject *s = &w->subject[i];
	const struct gp_task_plan *p = &gp_engine_plan(w->engine)->task[s->index];
	bool hold = is_user_held(w, i) || (is_managed(s) && p->want == GP_HOLD);
	uint32_t slice_us = is_managed(s) ? p->slice_us : 0;

	if (hold != s->want_hold || slice_us != s->want_slice_us || !s->ticks)
		s->wanted_since_ns = w->model.now_ns;
	if (hold != s->want_hold || slice_us != s->want_slice_us)
		s->ticks = 0;
	s->ticks++;
	s->want_hold = hold;
	s->want_slice_us = slice_us;
}

static bool is_settled(const struct world *w, uint32_t i)
{
	const struct subject *s = &w->subject[i];

	for (unsigned j = 0; j < MODEL_TASKS; j++)
		if (w->model.task[j].attached && !w->model.task[j].present)
			return false; /* others may have to wait until the engine knows that it has
					 left */
	return s->id && is_there(w, i) && s->ticks > CALM_TICKS &&
	       !model_has_pending(&w->model, i) &&
	       w->model.now_ns - s->wanted_since_ns >= CALM_NS &&
	       w->model.now_ns - w->calm_since_ns >= CALM_NS;
}

static void check_settled(struct world *w, uint32_t i)
{
	const struct model_task *t = &w->model.task[i];
	const struct subject *s = &w->subject[i];

	if (!is_settled(w, i))
		return;
	if (t->held != s->want_hold && is_user_held(w, i))
		breach(w, "(3) task %u is still released; a user wants it held", i);
	if (t->held != s->want_hold)
		breach(w, "(%s) task %u is still %s", is_managed(s) ? "4" : "2", i,
		       t->held ? "held" : "released");
	if (!t->held && t->slice_us != s->want_slice_us)
		breach(w, "(%s) task %u still has a slice of %u us, not %u",
		       is_managed(s) ? "4" : "2", i, t->slice_us, s->want_slice_us);
	for (unsigned j = 0; j < MODEL_TASKS; j++)
		if (is_settled(w, j) && are_mates(s, &w->subject[j]) &&
		    w->model.task[j].held != t->held)
			breach(w, "(4) of one gang, task %u is held and %u is not", t->held ? i : j,
			       t->held ? j : i);
}

static void check_step(struct world *w, uint64_t next_ns)
{
	const struct gp_ejection *x = gp_engine_ejection(w->engine);

	if (next_ns <= w->model.now_ns)
		breach(w, "(1) the engine asks for a tick in the past");
	if (x)
		breach(w, "(1) ejected: %s", x->text);
	check_plan(w);
	if (w->policy == &gp_policy_priority)
		check_tiny_plan(w);
	for (unsigned i = 0; i < MODEL_TASKS; i++) {
		if (!w->subject[i].id)
			continue;
		note_wants(w, i);
		check_settled(w, i);
	}
}

static void classify(void *arg, const struct gp_seen *seen, struct gp_task_attr *attr)
{
	struct world *w = arg;

	for (unsigned i = 0; i < MODEL_TASKS; i++)
		if (w->model.task[i].present && w->model.task[i].key == seen->key)
			*attr = w->subject[i].attr;
}

/* Finds out which tasks the engine knows now. */
static void match_tasks(struct world *w)
{
	uint64_t before[MODEL_TASKS];

	for (unsigned i = 0; i < MODEL_TASKS; i++) {
		before[i] = w->subject[i].id;
		w->subject[i].id = 0;
	}
	for (unsigned k = 0; k < gp_engine_tasks(w->engine); k++) {
		struct gp_task_stats t;

		gp_engine_task_stats(w->engine, k, &t);
		w->subject[t.handle].id = t.id;
		w->subject[t.handle].index = k;
	}
	for (unsigned i = 0; i < MODEL_TASKS; i++) {
		if (w->subject[i].id != before[i])
			disturb(w);
		if (!w->subject[i].id)
			w->subject[i].user_hold = false;
	}
}

static void tell_plan(const struct world *w)
{
	const struct gp_view *v = gp_engine_view(w->engine);
	const struct gp_plan *p = gp_engine_plan(w->engine);

	for (unsigned i = 0; w->tells && i < MODEL_TASKS; i++) {
		const struct gp_task_view *t = &v->task[w->subject[i].index];

		if (!w->subject[i].id)
			continue;
		tell(w, "  task %u %s%u gang %u known %02x%s%s%s waited %llu us: %s %u", i,
		     (const char *[]){"un", "be", "lc"}[t->class], t->priority, t->gang, t->known,
		     gp_seen_active(t) ? " active"
		     : gp_seen_idle(t) ? " idle"
				       : "",
		     t->held_by & GP_HELD_BY_USER ? " user-held" : "",
		     w->model.task[i].held ? " held" : "",
		     (unsigned long long)(t->known & GP_KNOWN_WAITED ? t->waited_ns / 1000 : 0),
		     (const char *[]){"leave", "run", "hold"}[p->task[w->subject[i].index].want],
		     p->task[w->subject[i].index].slice_us);
	}
}

void tick(struct world *w)
{
	const struct gp_plan *plan = gp_engine_plan(w->engine);
	uint64_t next_ns;

	if (w->model.signalled)
		gp_engine_trigger(w->engine, false);
	w->model.signalled = false;
	next_ns = gp_engine_step(w->engine, w->model.now_ns);
	match_tasks(w);
	tell_plan(w);
	check_step(w, next_ns);
	mix_in(w, next_ns);
	mix_in(w, plan->next_ns);
	for (unsigned k = 0; k < gp_engine_tasks(w->engine); k++)
		mix_in(w, plan->task[k].slice_us * 4ull + plan->task[k].want);
	w->step++;
}

void pass_time(struct world *w, uint64_t to_ns)
{
	w->model.stop_on_signal = w->punctual && w->model.profile.events;
	model_advance(&w->model, to_ns);
}

int world_init(struct world *w, const struct gp_policy_choice *choice,
	       const struct model_profile *profile, uint64_t seed)
{
	struct gp_engine_config config = {.gpu = &w->model.base, .classify = classify, .arg = w};

	*w = (struct world){.policy = choice->ops, .seed = seed, .punctual = true};
	gp_rng_init(&w->rng, seed, 0);
	model_init(&w->model, profile, seed);
	w->model.on_piece = account_piece;
	w->model.on_call = check_call;
	w->model.on_effect = check_effect;
	w->model.arg = w;
	if (gp_engine_new(&config, &w->engine))
		return -ENOMEM;
	return gp_engine_set_policy(w->engine, w->model.now_ns, choice, NULL);
}

void note_status(struct world *w, uint32_t i)
{
	struct subject *s = &w->subject[i];

	s->was_managed |= is_managed(s);
	s->was_user_held |= s->user_hold;
	disturb(w);
}

void change_user_hold(struct world *w, uint32_t i)
{
	struct subject *s = &w->subject[i];
	int r;

	s->user_hold = !s->user_hold;
	if (s->user_hold && users_ask_too_much(w)) {
		s->user_hold = false;
		return;
	}
	tell(w, "task %u: user %s", i, s->user_hold ? "holds" : "releases");
	note_status(w, i);
	r = s->user_hold ? gp_engine_user_hold(w->engine, s->id)
			 : gp_engine_user_release(w->engine, s->id);
	if (r)
		breach(w, "(3) a user's wish for task %u failed: %d", i, r);
}
