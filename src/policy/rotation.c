/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
#include "policy/rotation.h"

#define QUANTUM_MIN_NS (10 * GP_MS) /* a turn costs about 1 ms on NVIDIA: shorter ones waste */
#define LINGER_NS      GP_MS        /* a pause this short is not the end of a turn ... */
#define LAST_PAUSES    7u           /* ... of a unit of whose last three one was that short */

static void reset_entity(struct gp_entity *u)
{
	u->members = 0;
	u->class = GP_UNMANAGED;
	u->priority = 0;
	u->active = false;
	u->idle = true;
	u->user_held = false;
	u->policy_held = false;
	u->barred = false;
	u->waited_known = true;
	u->waited_ns = 0;
}

static void add_member(struct gp_entity *u, const struct gp_task_view *t)
{
	u->members++;
	if (t->class > u->class) {
		u->class = t->class;
		u->priority = t->priority;
	} else if (t->class == u->class && t->priority > u->priority) {
		u->priority = t->priority;
	}
	u->active |= gp_seen_active(t);
	u->idle &= gp_seen_idle(t);
	u->user_held |= (t->held_by & GP_HELD_BY_USER) != 0;
	u->policy_held |= (t->held_by & GP_HELD_BY_POLICY) != 0;
	if (gp_seen_idle(t))
		return;
	if (!(t->known & GP_KNOWN_WAITED))
		u->waited_known = false;
	else if (t->waited_ns > u->waited_ns)
		u->waited_ns = t->waited_ns;
}

uint32_t gp_entities_gather(const struct gp_view *view, const struct gp_policy_state *state)
{
	uint32_t user_held = 0;

	for (uint32_t i = 0; i < view->n; i++) {
		const struct gp_task_view *t = &view->task[i];

		reset_entity(gp_policy_task(state, i));
		user_held += (t->held_by & GP_HELD_BY_USER) != 0;
		if (t->class != GP_UNMANAGED) /* the first of a gang comes before the others */
			add_member(gp_entity_of(view, state, i), t);
	}
	return user_held;
}

/* Where activity is looked at now and then, a pause of nothing lasts from one look to the next. */
static uint64_t linger_ns(const struct gp_view *view)
{
	return LINGER_NS + view->notice_ns / 2;
}

static void note_pause(const struct gp_view *view, struct gp_entity *u)
{
	if (u->idle && u->members) {
		if (!u->idle_since_ns)
			u->idle_since_ns = view->now_ns;
	} else if (u->idle_since_ns) {
		u->pauses = (uint8_t)(u->pauses << 1) |
		            (view->now_ns < u->idle_since_ns + linger_ns(view));
		u->idle_since_ns = 0;
	}
}

/*
 * The one whose turn it is may pause for a moment, where its pauses are seen at once: a request of
 * many kernels pauses after each, and would have one kernel in each round. One that did not come
 * back so soon the last times is not waited for: that would leave the device idle for nothing.
 */
static bool lingers(const struct gp_view *view, const struct gp_entity *u, bool current,
                    struct gp_plan *plan)
{
	uint64_t until_ns = u->idle_since_ns + linger_ns(view);

	if (!current || !(u->pauses & LAST_PAUSES) ||
	    !gp_tells_in_time(view->caps, view->sample_period_ns) || view->now_ns >= until_ns)
		return false;
	gp_plan_wake_at(plan, until_ns);
	return true;
}

/*
 * On a device that shows activity only of what runs, a held unit is unknown and keeps its place.
 */
static void join_or_leave(const struct gp_view *view, const struct gp_rotation_rules *rules,
                          struct gp_entity *u, bool current, struct gp_plan *plan)
{
	bool was = u->rotating;

	note_pause(view, u);
	if (!u->members || u->user_held || u->barred ||
	    (rules->classes_apply && u->class != GP_BEST_EFFORT))
		u->rotating = false;
	else if (u->idle)
		u->rotating = was && lingers(view, u, current, plan);
	else if (u->active || rules->unknown_joins || !(view->caps & GP_CAP_ACTIVITY))
		u->rotating = true;
	if (!u->rotating || !was)
		u->queued_ns = view->now_ns;
}

struct survey {
	uint32_t entities, tasks;
	uint32_t top; /* index of the best by priority, then wait, that does not have the turn */
	struct gp_entity *current;
};

static bool goes_before(const struct gp_entity *a, const struct gp_entity *b, bool by_priority)
{
	if (by_priority && a->priority != b->priority)
		return a->priority > b->priority;
	return a->queued_ns < b->queued_ns;
}

static struct survey look_over(const struct gp_view *view, const struct gp_policy_state *state,
                               const struct gp_rotation *rotation,
                               const struct gp_rotation_rules *rules, struct gp_plan *plan)
{
	struct survey s = {.top = UINT32_MAX};

	for (uint32_t i = 0; i < view->n; i++) {
		struct gp_entity *u = gp_policy_task(state, i);
		bool current = view->task[i].id == rotation->current;

		join_or_leave(view, rules, u, current, plan);
		if (!u->rotating)
			continue;
		s.entities++;
		s.tasks += u->members;
		if (current)
			s.current = u;
		else if (s.top == UINT32_MAX ||
		         goes_before(u, gp_policy_task(state, s.top), rules->classes_apply))
			s.top = i;
	}
	return s;
}

/* The one that waited longest and too long among those that strict priority passes over. */
static uint32_t find_aged(const struct gp_view *view, const struct gp_policy_state *state,
                          const struct gp_rotation *rotation, const struct gp_rotation_rules *rules,
                          uint8_t below)
{
	uint32_t found = UINT32_MAX;

	for (uint32_t i = 0; i < view->n; i++) {
		const struct gp_entity *u = gp_policy_task(state, i);

		if (!u->rotating || u->priority >= below || view->task[i].id == rotation->current ||
		    view->now_ns - u->queued_ns < rules->age_after_ns)
			continue;
		if (found == UINT32_MAX ||
		    u->queued_ns < ((struct gp_entity *)gp_policy_task(state, found))->queued_ns)
			found = i;
	}
	return found;
}

void gp_rotation_give(const struct gp_view *view, struct gp_rotation *rotation, uint32_t to,
                      uint64_t length_ns, bool aged)
{
	rotation->current = view->task[to].id;
	rotation->began_ns = view->now_ns;
	rotation->ends_ns = view->now_ns + length_ns;
	rotation->aged = aged;
}

void gp_rotation_take(const struct gp_view *view, const struct gp_policy_state *state,
                      struct gp_rotation *rotation, uint32_t to, uint64_t length_ns)
{
	for (uint32_t i = 0; i < view->n; i++)
		if (view->task[i].id == rotation->current)
			((struct gp_entity *)gp_policy_task(state, i))->queued_ns = view->now_ns;
	gp_rotation_give(view, rotation, to, length_ns, true);
}

/* Whose turn is next. The one that had it goes to the end of its line, or goes on when it is
 * still ahead of all others by priority. */
static void next_turn(const struct gp_view *view, const struct gp_policy_state *state,
                      struct gp_rotation *rotation, const struct gp_rotation_rules *rules,
                      const struct survey *s, uint64_t quantum_ns)
{
	const struct gp_entity *top = gp_policy_task(state, s->top);
	uint8_t best = top->priority;

	if (s->current) {
		s->current->queued_ns = view->now_ns;
		if (s->current->priority > best)
			best = s->current->priority;
	}
	if (rules->classes_apply && !rotation->aged) {
		uint32_t aged = find_aged(view, state, rotation, rules, best);

		if (aged != UINT32_MAX) {
			gp_rotation_give(view, rotation, aged, rules->age_run_ns, true);
			return;
		}
	}
	if (rules->classes_apply && s->current && s->current->priority > top->priority) {
		rotation->began_ns = view->now_ns;
		rotation->ends_ns = view->now_ns + quantum_ns;
		rotation->aged = false;
		return;
	}
	gp_rotation_give(view, rotation, s->top, quantum_ns, false);
}

/*
 * Where activity is sampled, a turn in which nothing could be seen of its unit goes on until there
 * was a sample: otherwise an idle one might never be found out, and waste a turn in every round.
 * Not with so many units that the others would starve meanwhile.
 */
static bool turn_is_over(const struct gp_view *view, struct gp_rotation *rotation,
                         const struct survey *s)
{
	uint64_t longest_ns = view->sample_period_ns + view->sample_period_ns / 2;
	uint64_t sample_ns = rotation->began_ns + longest_ns;

	if (view->now_ns < rotation->ends_ns)
		return false;
	if (s->current->active || view->now_ns >= sample_ns || !(view->caps & GP_CAP_ACTIVITY) ||
	    longest_ns > view->starve_limit_ns / 5 / s->entities)
		return true;
	rotation->ends_ns = sample_ns;
	return false;
}

bool gp_rotate(const struct gp_view *view, const struct gp_policy_state *state,
               struct gp_rotation *rotation, const struct gp_rotation_rules *rules,
               struct gp_plan *plan)
{
	struct survey s = look_over(view, state, rotation, rules, plan);
	uint64_t quantum_ns = rules->quantum_ns;

	rotation->entities = s.entities;
	rotation->tasks = s.tasks;
	rotation->round_ns = 0;
	if (s.entities < 2 || s.tasks - 1 > rules->room) {
		rotation->current = 0;
		return false;
	}
	/* A round must end well inside the starvation limit, or the hardware shares better. */
	if (quantum_ns > view->starve_limit_ns / 2 / s.entities)
		quantum_ns = view->starve_limit_ns / 2 / s.entities;
	if (quantum_ns < QUANTUM_MIN_NS) {
		rotation->current = 0;
		return false;
	}
	rotation->round_ns = s.entities * quantum_ns;
	/* A turn ends early when its unit left, or when one of higher priority came. */
	if (!s.current || turn_is_over(view, rotation, &s) ||
	    (rules->classes_apply && !rotation->aged &&
	     ((struct gp_entity *)gp_policy_task(state, s.top))->priority > s.current->priority))
		next_turn(view, state, rotation, rules, &s, quantum_ns);
	return true;
}
