/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
#include "policy/rotation.h"

#define QUANTUM_MIN_NS (10 * GP_MS) /* a turn costs about 1 ms on NVIDIA */
#define LINGER_NS      GP_MS        /* a shorter pause does not end a turn, if LAST_PAUSES allows */
#define LAST_PAUSES    7u           /* mask: one of the last three pauses must have been short */

static void reset_entity(struct gp_entity *e)
{
	e->members = 0;
	e->class = GP_UNMANAGED;
	e->priority = 0;
	e->active = false;
	e->idle = true;
	e->user_held = false;
	e->policy_held = false;
	e->barred = false;
	e->waited_known = true;
	e->waited_ns = 0;
}

static void add_member(struct gp_entity *e, const struct gp_task_view *t)
{
	e->members++;
	if (t->class > e->class) {
		e->class = t->class;
		e->priority = t->priority;
	} else if (t->class == e->class && t->priority > e->priority) {
		e->priority = t->priority;
	}
	e->active |= gp_seen_active(t);
	e->idle &= gp_seen_idle(t);
	e->user_held |= (t->held_by & GP_HELD_BY_USER) != 0;
	e->policy_held |= (t->held_by & GP_HELD_BY_POLICY) != 0;
	if (gp_seen_idle(t))
		return;
	if (!(t->known & GP_KNOWN_WAITED))
		e->waited_known = false;
	else if (t->waited_ns > e->waited_ns)
		e->waited_ns = t->waited_ns;
}

uint32_t gp_entities_gather(const struct gp_view *view)
{
	uint32_t user_held = 0;

	for (uint32_t i = 0; i < view->n; i++) {
		const struct gp_task_view *t = &view->task[i];

		reset_entity(gp_policy_task(view, i));
		user_held += (t->held_by & GP_HELD_BY_USER) != 0;
		if (t->class != GP_UNMANAGED) /* a gang's first task has the lowest index */
			add_member(gp_entity_of(view, i), t);
	}
	return user_held;
}

/* If activity is only observed at ticks, even the shortest pause seems to last from one tick to the
 * next. */
static uint64_t linger_ns(const struct gp_view *view)
{
	return LINGER_NS + view->notice_ns / 2;
}

static void note_pause(const struct gp_view *view, struct gp_entity *e)
{
	if (e->idle && e->members) {
		if (!e->idle_since_ns)
			e->idle_since_ns = view->now_ns;
	} else if (e->idle_since_ns) {
		e->pauses = (uint8_t)(e->pauses << 1) |
			    (view->now_ns < e->idle_since_ns + linger_ns(view));
		e->idle_since_ns = 0;
	}
}

/*
 * The current entity keeps its turn during a short pause, if the device reports pauses without
 * delay. A request of many kernels pauses after each kernel; without this rule it would run one
 * kernel per round. If none of the entity's recent pauses was short, its turn ends immediately,
 * because waiting would leave the device idle.
 */
static bool lingers(const struct gp_view *view, const struct gp_entity *e, bool current,
		    struct gp_plan *plan)
{
	uint64_t until_ns = e->idle_since_ns + linger_ns(view);

	if (!current || !(e->pauses & LAST_PAUSES) ||
	    !gp_tells_in_time(view->caps, view->sample_period_ns) || view->now_ns >= until_ns)
		return false;
	gp_plan_wake_at(plan, until_ns);
	return true;
}

/*
 * Some devices show activity only of released tasks. There the activity of a held entity is
 * unknown, and it stays in the rotation.
 */
static void join_or_leave(const struct gp_view *view, const struct gp_rotation_rules *rules,
			  struct gp_entity *e, bool current, struct gp_plan *plan)
{
	bool was = e->rotating;

	note_pause(view, e);
	if (!e->members || e->user_held || e->barred ||
	    (rules->classes_apply && e->class != GP_BEST_EFFORT))
		e->rotating = false;
	else if (e->idle)
		e->rotating = was && lingers(view, e, current, plan);
	else if (e->active || rules->unknown_joins || !(view->caps & GP_CAP_ACTIVITY))
		e->rotating = true;
	if (!e->rotating || !was)
		e->queued_ns = view->now_ns;
}

struct survey {
	uint32_t entities, tasks;
	uint32_t top; /* index of the first entity by priority, then by waiting time, except the
			 current one */
	struct gp_entity *current;
};

static bool goes_before(const struct gp_entity *a, const struct gp_entity *b, bool by_priority)
{
	if (by_priority && a->priority != b->priority)
		return a->priority > b->priority;
	return a->queued_ns < b->queued_ns;
}

static struct survey survey_entities(const struct gp_view *view, const struct gp_rotation *rotation,
				     const struct gp_rotation_rules *rules, struct gp_plan *plan)
{
	struct survey s = {.top = UINT32_MAX};

	for (uint32_t i = 0; i < view->n; i++) {
		struct gp_entity *e = gp_policy_task(view, i);
		bool current = view->task[i].id == rotation->current;

		join_or_leave(view, rules, e, current, plan);
		if (!e->rotating)
			continue;
		s.entities++;
		s.tasks += e->members;
		if (current)
			s.current = e;
		else if (s.top == UINT32_MAX ||
			 goes_before(e, gp_policy_task(view, s.top), rules->classes_apply))
			s.top = i;
	}
	return s;
}

/* Finds the entity that has waited longest of those that strict priority passes over. UINT32_MAX:
 * none has waited for age_after_ns. */
static uint32_t find_aged(const struct gp_view *view, const struct gp_rotation *rotation,
			  const struct gp_rotation_rules *rules, uint8_t below)
{
	uint32_t found = UINT32_MAX;

	for (uint32_t i = 0; i < view->n; i++) {
		const struct gp_entity *e = gp_policy_task(view, i);

		if (!e->rotating || e->priority >= below || view->task[i].id == rotation->current ||
		    view->now_ns - e->queued_ns < rules->age_after_ns)
			continue;
		if (found == UINT32_MAX ||
		    e->queued_ns < ((struct gp_entity *)gp_policy_task(view, found))->queued_ns)
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

void gp_rotation_take(const struct gp_view *view, struct gp_rotation *rotation, uint32_t to,
		      uint64_t length_ns)
{
	for (uint32_t i = 0; i < view->n; i++)
		if (view->task[i].id == rotation->current)
			((struct gp_entity *)gp_policy_task(view, i))->queued_ns = view->now_ns;
	gp_rotation_give(view, rotation, to, length_ns, true);
}

/* Chooses the next entity. The current entity goes to the end of the queue of its priority. It
 * keeps the turn if its priority is above that of all other entities. */
static void next_turn(const struct gp_view *view, struct gp_rotation *rotation,
		      const struct gp_rotation_rules *rules, const struct survey *s,
		      uint64_t quantum_ns)
{
	const struct gp_entity *top = gp_policy_task(view, s->top);
	uint8_t best = top->priority;

	if (s->current) {
		s->current->queued_ns = view->now_ns;
		if (s->current->priority > best)
			best = s->current->priority;
	}
	if (rules->classes_apply && !rotation->aged) {
		uint32_t aged = find_aged(view, rotation, rules, best);

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
 * If activity is sampled, the turn of an entity that was not seen active lasts until there was a
 * sample. Otherwise an idle entity might never be noticed, and would waste a turn in every round.
 * With very many entities the turn is not extended, because the other entities would starve.
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

bool gp_rotate(const struct gp_view *view, struct gp_rotation *rotation,
	       const struct gp_rotation_rules *rules, struct gp_plan *plan)
{
	struct survey s = survey_entities(view, rotation, rules, plan);
	uint64_t quantum_ns = rules->quantum_ns;

	rotation->entities = s.entities;
	rotation->tasks = s.tasks;
	rotation->round_ns = 0;
	if (s.entities < 2 || s.tasks - 1 > rules->room) {
		rotation->current = 0;
		return false;
	}
	/* A round must end well inside the starvation limit. If turns become too short, hardware
	 * slices are better. */
	quantum_ns = gp_least(quantum_ns, view->starve_limit_ns / 2 / s.entities);
	if (quantum_ns < QUANTUM_MIN_NS) {
		rotation->current = 0;
		return false;
	}
	rotation->round_ns = s.entities * quantum_ns;
	/* A turn ends early if its entity left, or if an entity of higher priority joined. */
	if (!s.current || turn_is_over(view, rotation, &s) ||
	    (rules->classes_apply && !rotation->aged &&
	     ((struct gp_entity *)gp_policy_task(view, s.top))->priority > s.current->priority))
		next_turn(view, rotation, rules, &s, quantum_ns);
	return true;
}
