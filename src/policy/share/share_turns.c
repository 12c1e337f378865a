/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns for entities that get less by slices than they were guaranteed. Run times show that, with a
 * delay.
 *
 * An entity that pauses briefly after each kernel gives the rest of its slice away each time. Each
 * entity has an account of the time that was due and the time that it had. An entity that lacks
 * time gets a turn in which all others are held; afterwards all have slices again. The account of
 * an entity that wants less than its part looks the same. But such an entity does not run more in a
 * turn than without. It gets further turns only up to its measured demand, or after a long time.
 */
#include "policy/share/share.h"

#define TOLERANCE     2u              /* permille: a deficit below this is ignored */
#define LEAST_LEFT    100u            /* permille: lower bound for the part of all other entities */
#define SAMPLE_NS     (100 * GP_MS)   /* a shorter measurement is not reliable */
#define SWING_NS      (50 * GP_MS)    /* a turn for a smaller deficit is not worth its cost */
#define TICK_NS       (2 * GP_MS)     /* shortest time between two ticks for new run times */
#define RETRY_NS      (15000 * GP_MS) /* wait after a useless turn, which costs a sample period */
#define RETRY_DOUBLES 4               /* the wait is doubled at most this often */
#define NONE          UINT32_MAX

/*
 * How far an account may vary in both directions without cause: run times are reported once per
 * sample, and in a round each entity waits for the others once.
 */
static int64_t swing_of(const struct gp_view *view, const struct gp_share_device *d)
{
	uint64_t swing_ns = view->sample_period_ns / 2 + d->turns.round_ns / 4;

	return (int64_t)(swing_ns > SWING_NS ? swing_ns : SWING_NS);
}

/* The time between two ticks: short against a sample period, so that run times can be assigned to
 * turns. */
static uint64_t tick_interval(const struct gp_view *view)
{
	return view->sample_period_ns / 16 > TICK_NS ? view->sample_period_ns / 16 : TICK_NS;
}

static uint32_t permille(uint64_t part_ns, uint64_t whole_ns)
{
	return whole_ns ? (uint32_t)(part_ns * WHOLE_PERMILLE / whole_ns) : 0;
}

static void count_from(struct gp_share_task *s, uint64_t now_ns)
{
	s->since_ns = now_ns;
	s->got_ns = s->sliced_ns = s->sliced_got_ns = 0;
}

/* The part that is due to the entity. Its own pauses are compensated by up to 1/8 of its guarantee,
 * but only as far as its weight allows. So no other entity loses its part. */
static uint32_t due_permille(const struct gp_share_task *s)
{
	uint32_t due = s->guarantee_permille + s->guarantee_permille / 8;
	uint32_t part = s->turn.weight / (uint32_t)PER_PERMILLE;

	if (due > part)
		due = part;
	if (s->retry_ns && due > s->wants_permille)
		due = s->wants_permille;
	return due < TOLERANCE ? 0 : due - TOLERANCE;
}

/* An entity that did not run during a sample wants nothing. If a round is longer than a sample, the
 * entity may only have waited for its slice. So it must not have run during a round, too. */
static bool is_idle(const struct gp_view *view, const struct gp_share_device *d,
		    const struct gp_share_task *s)
{
	uint64_t sample_ns = view->sample_period_ns * 3 / 4, round_ns = d->turns.round_ns;

	return (s->turn.entity.idle || (d->fresh && !s->turn.ran_ns)) &&
	       view->now_ns - s->worked_ns >= (round_ns > sample_ns ? round_ns : 0) + sample_ns;
}

static bool wants_its_part(const struct gp_view *view, const struct gp_share_device *d,
			   const struct gp_share_task *s)
{
	const struct gp_turn_entity *e = &s->turn;

	return s->guarantee_permille && e->runs_known && e->entity.rotating && !e->joined &&
	       !is_idle(view, d, s);
}

static void count(const struct gp_view *view, const struct gp_share_device *d,
		  struct gp_share_task *s)
{
	uint64_t ran_ns = s->turn.ran_ns;

	if (ran_ns || d->turn_of)
		s->worked_ns = view->now_ns;
	if (!d->turn_of) {
		s->sliced_ns += view->now_ns - d->tick_ns;
		s->sliced_got_ns += ran_ns;
	}
	s->got_ns += ran_ns;
	s->marked_ns += ran_ns;
}

/* During its own turn an entity is charged for the whole device, whether it uses it or not. */
static void keep_account(const struct gp_view *view, const struct gp_share_device *d,
			 struct gp_share_task *s, bool has_turn)
{
	int64_t swing_ns = swing_of(view, d);
	uint64_t passed_ns = view->now_ns - d->tick_ns;
	uint64_t had_ns = has_turn ? passed_ns : s->turn.ran_ns;

	count(view, d, s);
	if (view->now_ns >= s->retry_ns)
		s->retry_ns = 0;
	s->behind_ns += (int64_t)(passed_ns * due_permille(s) / WHOLE_PERMILLE) - (int64_t)had_ns;
	if (s->behind_ns > 8 * swing_ns)
		s->behind_ns = 8 * swing_ns;
	if (wants_its_part(view, d, s) &&
	    (has_turn || s->behind_ns >= -swing_ns * (s->helped ? 4 : 1)))
		return;
	/*
	 * The entity lacks nothing. Its surplus is limited, so that it need not wait long later.
	 */
	s->behind_ns = s->behind_ns < 0 ? -swing_ns : 0;
	s->helped = false;
	count_from(s, view->now_ns);
}

/* Whether the entity lacks enough for a turn. If it used its last turn, slices are known to be
 * insufficient. An entity that only waited for the turns of other entities may catch up by slices.
 */
static bool lacks(const struct gp_view *view, const struct gp_share_device *d,
		  const struct gp_share_task *s)
{
	bool by_slices = permille(s->sliced_got_ns, s->sliced_ns) < due_permille(s);

	return s->behind_ns >= swing_of(view, d) * (!by_slices ? 3 : !s->helped);
}

/* The turn is long enough to leave a surplus as large as the usual deficit. Half a sample period is
 * subtracted, because the turn ends only with the next new run time. */
static void begin_turn(const struct gp_view *view, struct gp_share_device *d,
		       struct gp_share_task *s, uint64_t id)
{
	uint32_t others = WHOLE_PERMILLE - due_permille(s);
	uint32_t before = permille(s->sliced_got_ns, s->sliced_ns);
	uint64_t length_ns = (uint64_t)(s->behind_ns + swing_of(view, d)) * WHOLE_PERMILLE /
			     (others > LEAST_LEFT ? others : LEAST_LEFT);

	length_ns -=
		length_ns < view->sample_period_ns / 2 ? length_ns : view->sample_period_ns / 2;
	length_ns = gp_most(length_ns, SAMPLE_NS);
	length_ns = gp_least(length_ns, view->starve_limit_ns / 4);
	if (before > WHOLE_PERMILLE)
		before = WHOLE_PERMILLE;
	s->marked_ns = 0;
	d->used_permille = before + (WHOLE_PERMILLE - before) / 3;
	d->turn_of = id;
	d->turn_mark_ns = view->now_ns;
	d->turn_ends_ns = view->now_ns + length_ns;
}

static void note_low_demand(const struct gp_view *view, struct gp_share_task *s)
{
	s->wants_permille = permille(s->got_ns, view->now_ns - s->since_ns);
	s->retry_ns = view->now_ns + (RETRY_NS << s->useless_turns);
	s->useless_turns += s->useless_turns < RETRY_DOUBLES;
	s->behind_ns = 0;
	s->helped = false;
}

/* Turns begin and end when run times were updated, so that the run time in a turn is known. */
static bool turn_is_over(const struct gp_view *view, struct gp_share_device *d,
			 struct gp_share_task *s)
{
	uint64_t sampled_ns = view->now_ns - d->turn_mark_ns;
	bool tells =
		d->fresh && sampled_ns >= SAMPLE_NS && sampled_ns >= view->sample_period_ns * 3 / 4;

	if (tells && permille(s->marked_ns, sampled_ns) < d->used_permille) {
		note_low_demand(view, s);
		return true;
	}
	if (tells) {
		s->marked_ns = 0;
		d->turn_mark_ns = view->now_ns;
	}
	if (view->now_ns < d->turn_ends_ns ||
	    (!d->fresh && view->now_ns < d->turn_ends_ns + 2 * view->sample_period_ns))
		return false;
	s->useless_turns = 0;
	s->retry_ns = 0;
	s->helped = true;
	return true;
}

struct survey {
	uint32_t entities, tasks; /* of the entities that take part */
	uint32_t current;         /* index of the entity that has the turn; NONE if it has left */
	uint32_t next; /* index of the entity with the largest deficit; NONE if there is none */
	bool behind;   /* at least one entity lacks time */
};

static struct survey survey_entities(const struct gp_view *view, struct gp_share_device *d)
{
	struct survey v = {.current = NONE, .next = NONE};
	int64_t most_ns = 0;

	d->fresh = false;
	for (uint32_t i = 0; i < view->n; i++)
		d->fresh |= ((struct gp_share_task *)gp_policy_task(view, i))->turn.ran_ns != 0;
	for (uint32_t i = 0; i < view->n; i++) {
		struct gp_share_task *s = gp_policy_task(view, i);
		bool has_turn = view->task[i].id == d->turn_of;

		keep_account(view, d, s, has_turn);
		v.entities += s->turn.entity.rotating;
		v.tasks += s->turn.entity.rotating ? s->turn.entity.members : 0;
		v.behind |= s->behind_ns > 0;
		if (has_turn && wants_its_part(view, d, s))
			v.current = i;
		if (s->behind_ns > most_ns && lacks(view, d, s)) {
			most_ns = s->behind_ns;
			v.next = i;
		}
	}
	return v;
}

/* Between two turns there is a round of slices, so that no entity starves. */
static uint32_t choose_turn(const struct gp_view *view, struct gp_share_device *d,
			    const struct survey *v)
{
	if (v->current != NONE) {
		struct gp_share_task *s = gp_policy_task(view, v->current);

		if (!turn_is_over(view, d, s))
			return v->current;
		/* Estimates the run time at the end of the turn that no sample shows yet. */
		s->behind_ns += (int64_t)tick_interval(view) / 2;
		count_from(s, view->now_ns);
	}
	if (d->turn_of)
		d->rest_ns = view->now_ns + d->turns.round_ns;
	d->turn_of = 0;
	if (v->next == NONE || !d->fresh || view->now_ns < d->rest_ns)
		return NONE;
	begin_turn(view, d, gp_policy_task(view, v->next), view->task[v->next].id);
	return v->next;
}

static void hold_others(const struct gp_view *view, uint32_t current, struct gp_plan *plan)
{
	for (uint32_t i = 0; i < view->n; i++)
		if (view->task[i].class != GP_UNMANAGED && view->task[i].gang != current &&
		    gp_turn_entity_of(view, i)->entity.rotating)
			plan->task[i].want = GP_HOLD;
}

void gp_share_make_up(const struct gp_view *view, uint32_t room, struct gp_plan *plan)
{
	struct gp_share_device *d = view->state->device;
	uint32_t current;
	struct survey v;

	if (!d->tick_ns)
		d->tick_ns = view->now_ns;
	v = survey_entities(view, d);
	if (v.entities < 2 || v.tasks - 1 > room) {
		gp_share_forget(view);
		return;
	}
	d->tick_ns = view->now_ns;
	current = choose_turn(view, d, &v);
	if (current != NONE || v.behind)
		gp_plan_wake_at(plan, view->now_ns + tick_interval(view));
	if (current == NONE)
		return;
	hold_others(view, current, plan);
	if (d->turn_ends_ns > view->now_ns)
		gp_plan_wake_at(plan, d->turn_ends_ns);
}

void gp_share_forget(const struct gp_view *view)
{
	struct gp_share_device *d = view->state->device;

	for (uint32_t i = 0; i < view->n; i++) {
		struct gp_share_task *s = gp_policy_task(view, i);

		s->behind_ns = 0;
		s->helped = false;
		count_from(s, view->now_ns);
	}
	d->turn_of = 0;
	d->tick_ns = 0;
}
