/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns for those that get less by slices than they were guaranteed, where that is seen by run
 * times that come late.
 *
 * A unit that pauses for a moment after each kernel gives the rest of its slice away each time.
 * Each unit has an account of what was due and what it had. One that is behind gets a turn, in
 * which all others are held; then there are slices again. A unit that wants less than its part
 * looks just the same, but runs no more in a turn than without: it has another only for what it is
 * seen to want, or after a long time.
 */
#include "policy/share/share.h"

#define LET_PASS      2u              /* permille: so much less than promised is let pass */
#define LEAST_LEFT    100u            /* permille: others have at least this, for turns' lengths */
#define SAMPLE_NS     (100 * GP_MS)   /* what is run in less says little */
#define SWING_NS      (50 * GP_MS)    /* turns for less than that are not worth it */
#define TICK_NS       (2 * GP_MS)     /* looking for news more often is not worth it */
#define RETRY_NS      (15000 * GP_MS) /* a turn for nothing wastes a sample's time ... */
#define RETRY_DOUBLES 4               /* ... so the next one comes ever later */
#define NOBODY        UINT32_MAX

/*
 * How far an account may swing to both sides although all is well: run times come in lumps as long
 * as a sample, and in a round each waits for the others once.
 */
static int64_t swing_of(const struct gp_view *view, const struct gp_share_device *d)
{
	uint64_t swing_ns = view->sample_period_ns / 2 + d->turns.round_ns / 4;

	return (int64_t)(swing_ns > SWING_NS ? swing_ns : SWING_NS);
}

/* News is looked for so often that it is known when what was run. */
static uint64_t look_every(const struct gp_view *view)
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

/* Its own pauses are made up for, as far as that costs nobody else what is his. */
static uint32_t due_permille(const struct gp_share_task *s)
{
	uint32_t due = s->guarantee_permille + s->guarantee_permille / 8;
	uint32_t part = s->turn.weight / (uint32_t)PER_PERMILLE;

	if (due > part)
		due = part;
	if (s->retry_ns && due > s->wants_permille)
		due = s->wants_permille;
	return due < LET_PASS ? 0 : due - LET_PASS;
}

/* One that did nothing in a sample wants nothing; unless a round is so long that it may only have
 * waited for its slice. */
static bool is_idle(const struct gp_view *view, const struct gp_share_device *d,
                    const struct gp_share_task *s)
{
	uint64_t sample_ns = view->sample_period_ns * 3 / 4, round_ns = d->turns.round_ns;

	return (s->turn.entity.idle || (d->news && !s->turn.ran_ns)) &&
	       view->now_ns - s->worked_ns >= (round_ns > sample_ns ? round_ns : 0) + sample_ns;
}

static bool wants_its_part(const struct gp_view *view, const struct gp_share_device *d,
                           const struct gp_share_task *s)
{
	const struct gp_turn_entity *u = &s->turn;

	return s->guarantee_permille && u->told && u->entity.rotating && !u->joined &&
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

/* In a turn of its own it has all of the device, whether it uses it or not. */
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
	/* It lacks nothing. What it had more than its part is no reason to let it wait for long. */
	s->behind_ns = s->behind_ns < 0 ? -swing_ns : 0;
	s->helped = false;
	count_from(s, view->now_ns);
}

/* Of one that used its last turn it is known that slices are not enough. One that only had to wait
 * for the turns of others may get it back by slices. */
static bool lacks(const struct gp_view *view, const struct gp_share_device *d,
                  const struct gp_share_task *s)
{
	bool by_slices = permille(s->sliced_got_ns, s->sliced_ns) < due_permille(s);

	return s->behind_ns >= swing_of(view, d) * (!by_slices ? 3 : !s->helped);
}

/* So long that it is ahead afterwards, by as much as it may have been behind; less the time until
 * there is news, with which it ends. */
static void begin_turn(const struct gp_view *view, struct gp_share_device *d,
                       struct gp_share_task *s, uint64_t id)
{
	uint32_t others = WHOLE_PERMILLE - due_permille(s);
	uint32_t before = permille(s->sliced_got_ns, s->sliced_ns);
	uint64_t length_ns = (uint64_t)(s->behind_ns + swing_of(view, d)) * WHOLE_PERMILLE /
	                     (others > LEAST_LEFT ? others : LEAST_LEFT);

	length_ns -=
		length_ns < view->sample_period_ns / 2 ? length_ns : view->sample_period_ns / 2;
	if (length_ns < SAMPLE_NS)
		length_ns = SAMPLE_NS;
	if (length_ns > view->starve_limit_ns / 4)
		length_ns = view->starve_limit_ns / 4;
	if (before > WHOLE_PERMILLE)
		before = WHOLE_PERMILLE;
	s->marked_ns = 0;
	d->used_permille = before + (WHOLE_PERMILLE - before) / 3;
	d->turn_of = id;
	d->turn_mark_ns = view->now_ns;
	d->turn_ends_ns = view->now_ns + length_ns;
}

static void note_that_it_wants_no_more(const struct gp_view *view, struct gp_share_task *s)
{
	s->wants_permille = permille(s->got_ns, view->now_ns - s->since_ns);
	s->retry_ns = view->now_ns + (RETRY_NS << s->spurned);
	s->spurned += s->spurned < RETRY_DOUBLES;
	s->behind_ns = 0;
	s->helped = false;
}

/* Turns end with news, as they begin, so that it is known what was run in them. */
static bool turn_is_over(const struct gp_view *view, struct gp_share_device *d,
                         struct gp_share_task *s)
{
	uint64_t sampled_ns = view->now_ns - d->turn_mark_ns;
	bool tells =
		d->news && sampled_ns >= SAMPLE_NS && sampled_ns >= view->sample_period_ns * 3 / 4;

	if (tells && permille(s->marked_ns, sampled_ns) < d->used_permille) {
		note_that_it_wants_no_more(view, s);
		return true;
	}
	if (tells) {
		s->marked_ns = 0;
		d->turn_mark_ns = view->now_ns;
	}
	if (view->now_ns < d->turn_ends_ns ||
	    (!d->news && view->now_ns < d->turn_ends_ns + 2 * view->sample_period_ns))
		return false;
	s->spurned = 0;
	s->retry_ns = 0;
	s->helped = true;
	return true;
}

struct survey {
	uint32_t entities, tasks; /* that take part */
	uint32_t current;         /* whose turn it is, NOBODY if it has left */
	uint32_t next;            /* who lacks most; NOBODY if none does */
	bool behind;              /* somebody is */
};

static struct survey look_over(const struct gp_view *view, const struct gp_policy_state *state,
                               struct gp_share_device *d)
{
	struct survey v = {.current = NOBODY, .next = NOBODY};
	int64_t most_ns = 0;

	d->news = false;
	for (uint32_t i = 0; i < view->n; i++)
		d->news |= ((struct gp_share_task *)gp_policy_task(state, i))->turn.ran_ns != 0;
	for (uint32_t i = 0; i < view->n; i++) {
		struct gp_share_task *s = gp_policy_task(state, i);
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

/* Between two turns there is a round of slices, so that nobody starves. */
static uint32_t whose_turn(const struct gp_view *view, const struct gp_policy_state *state,
                           struct gp_share_device *d, const struct survey *v)
{
	if (v->current != NOBODY) {
		struct gp_share_task *s = gp_policy_task(state, v->current);

		if (!turn_is_over(view, d, s))
			return v->current;
		/* What it ran since the sample that this look sees is yet to be told. */
		s->behind_ns += (int64_t)look_every(view) / 2;
		count_from(s, view->now_ns);
	}
	if (d->turn_of)
		d->rest_ns = view->now_ns + d->turns.round_ns;
	d->turn_of = 0;
	if (v->next == NOBODY || !d->news || view->now_ns < d->rest_ns)
		return NOBODY;
	begin_turn(view, d, gp_policy_task(state, v->next), view->task[v->next].id);
	return v->next;
}

static void hold_others(const struct gp_view *view, const struct gp_policy_state *state,
                        uint32_t current, struct gp_plan *plan)
{
	for (uint32_t i = 0; i < view->n; i++)
		if (view->task[i].class != GP_UNMANAGED && view->task[i].gang != current &&
		    gp_turn_entity_of(view, state, i)->entity.rotating)
			plan->task[i].want = GP_HOLD;
}

void gp_share_make_up(const struct gp_view *view, const struct gp_policy_state *state,
                      uint32_t room, struct gp_plan *plan)
{
	struct gp_share_device *d = state->device;
	uint32_t current;
	struct survey v;

	if (!d->tick_ns)
		d->tick_ns = view->now_ns;
	v = look_over(view, state, d);
	if (v.entities < 2 || v.tasks - 1 > room) {
		gp_share_forget(view, state);
		return;
	}
	d->tick_ns = view->now_ns;
	current = whose_turn(view, state, d, &v);
	if (current != NOBODY || v.behind)
		gp_plan_wake_at(plan, view->now_ns + look_every(view));
	if (current == NOBODY)
		return;
	hold_others(view, state, current, plan);
	if (d->turn_ends_ns > view->now_ns)
		gp_plan_wake_at(plan, d->turn_ends_ns);
}

void gp_share_forget(const struct gp_view *view, const struct gp_policy_state *state)
{
	struct gp_share_device *d = state->device;

	for (uint32_t i = 0; i < view->n; i++) {
		struct gp_share_task *s = gp_policy_task(state, i);

		s->behind_ns = 0;
		s->helped = false;
		count_from(s, view->now_ns);
	}
	d->turn_of = 0;
	d->tick_ns = 0;
}
