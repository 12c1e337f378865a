/* SPDX-License-Identifier: Apache-2.0 */
/* mlfq: which level each unit is at. */
#include "policy/mlfq/mlfq.h"

#define PAUSE_NS      GP_MS /* a shorter one is not the end of a stretch of work */
#define MIDDLE_FACTOR 10u   /* a stretch at the middle level may be so much longer */

/* Of what the one has that takes most, in thousandths. */
#define MUCH            950u
#define LITTLE          800u
#define LITTLE_IN_TURNS 700u

#define IN_TURNS        4u /* so much longer is a unit watched that has turns */

static void note_member(const struct gp_view *view, const struct gp_policy_state *state, uint32_t i)
{
	const struct gp_task_view *t = &view->task[i];
	struct gp_mlfq_task *own = gp_policy_task(state, i);
	struct gp_mlfq_task *u = gp_policy_task(state, t->gang);

	u->released &=
		!((t->known & GP_KNOWN_HELD) ? t->held : (t->held_by & GP_HELD_BY_POLICY) != 0);
	if (!(t->known & GP_KNOWN_RUN)) {
		u->told &= own->run_known; /* one look without it is no loss: it only grows */
		return;
	}
	if (own->run_known && t->run_ns > own->run_ns)
		u->got_ns += t->run_ns - own->run_ns;
	own->run_ns = t->run_ns;
	own->run_known = true;
}

/* What each got since the last decision: as measured, or, where that is not known, as granted. */
static void gather(const struct gp_view *view, const struct gp_policy_state *state,
                   uint64_t passed_ns)
{
	for (uint32_t i = 0; i < view->n; i++) {
		struct gp_mlfq_task *u = gp_policy_task(state, i);

		u->released = u->told = true;
		u->got_ns = 0;
	}
	for (uint32_t i = 0; i < view->n; i++)
		if (view->task[i].class != GP_UNMANAGED)
			note_member(view, state, i);
	for (uint32_t i = 0; i < view->n; i++) {
		struct gp_mlfq_task *u = gp_policy_task(state, i);

		/* One that was idle at the last look has only just come. */
		if (!u->told)
			u->got_ns = u->released && u->works && !u->idle_since_ns ? passed_ns : 0;
	}
}

/* ---- where it is known at once who works: by stretches of work ---- */

static uint64_t longest(uint8_t level, uint64_t short_ns)
{
	return level == GP_MLFQ_TOP      ? short_ns
	       : level == GP_MLFQ_MIDDLE ? MIDDLE_FACTOR * short_ns
	                                 : UINT64_MAX;
}

static void end_stretch(struct gp_mlfq_task *u, uint64_t short_ns)
{
	if (u->level > GP_MLFQ_TOP && u->stretch_ns <= longest(u->level - 1, short_ns))
		u->level--;
	u->works = false;
	u->stretch_ns = 0;
}

static void follow_stretch(const struct gp_view *view, struct gp_mlfq_task *u, uint64_t short_ns,
                           struct gp_plan *plan)
{
	u->stretch_ns += u->got_ns;
	while (u->stretch_ns > longest(u->level, short_ns))
		u->level++;
	if (!u->entity.idle) {
		u->idle_since_ns = 0;
		u->works |= u->entity.active;
		return;
	}
	if (!u->idle_since_ns)
		u->idle_since_ns = view->now_ns;
	if (!u->works)
		return;
	if (view->now_ns >= u->idle_since_ns + PAUSE_NS)
		end_stretch(u, short_ns);
	else
		gp_plan_wake_at(plan, u->idle_since_ns + PAUSE_NS);
}

/* ---- elsewhere: by what part of the time each has run ---- */

struct parts {
	uint32_t largest; /* of all units, in thousandths */
	uint32_t much;    /* ... is much from here on: two fifths of an equal part */
	bool at_top;      /* the unit with the largest is at the top, and that is much */
};

static struct parts survey_parts(const struct gp_view *view, const struct gp_policy_state *state)
{
	struct parts p = {0};
	uint32_t workers = 0;

	for (uint32_t i = 0; i < view->n; i++) {
		const struct gp_mlfq_task *u = gp_policy_task(state, i);

		if (!u->entity.members || u->entity.user_held || !u->part)
			continue;
		workers++;
		if (u->part <= p.largest)
			continue;
		p.largest = u->part;
		p.at_top = u->level == GP_MLFQ_TOP;
	}
	p.much = 400u / (workers > 2 ? workers : 2u);
	p.at_top &= p.largest >= p.much;
	return p;
}

/*
 * Sinks with nearly as much as the one that takes most; not on a device that has much time left:
 * that is no reason to favour anybody. One that took little up to now may take much once: it works
 * off what gathered while it had to wait. Rises with clearly less, but not while the one that takes
 * most is at the top: with that ahead of it, it has little because it gets little.
 */
static void judge(struct gp_mlfq_task *u, const struct parts *p, uint64_t little)
{
	uint64_t part = u->part * 1000ull;

	u->judged = false;
	if (u->part >= p->much && part >= (uint64_t)MUCH * p->largest) {
		u->level = u->trusted ? u->level : GP_MLFQ_BOTTOM;
		u->trusted = false;
		return;
	}
	if (!p->at_top && (u->part < p->much / 2 || part < little * p->largest))
		u->level = GP_MLFQ_TOP;
	u->trusted = u->level == GP_MLFQ_TOP;
}

static bool has_turns(const struct gp_policy_state *state, const struct gp_mlfq_task *u)
{
	const struct gp_mlfq_device *d = state->device;

	return d->turns && d->rotation.current && u->entity.members && u->entity.rotating;
}

/*
 * What is known of run times is old, so a unit's part is taken only when it could run for several
 * times as long as that. In turns it has the device now and then only, and what it ran at the end
 * of one is known in the turn of another: that takes longer. Requests come at random: of one that
 * takes little, what it took before counts for more.
 */
static bool take_part(const struct gp_view *view, const struct gp_policy_state *state,
                      struct gp_mlfq_task *u, uint64_t passed_ns)
{
	const struct gp_mlfq_device *d = state->device;
	bool turns = has_turns(state, u);
	uint64_t enough_ns = gp_mlfq_window(view) * (turns ? IN_TURNS : 1u);
	uint32_t part;

	u->window_run_ns += u->got_ns;
	u->window_released_ns += u->released ? passed_ns : 0;
	if (u->window_released_ns < enough_ns)
		return false;
	u->judged = u->told;
	if (u->told) {
		part = (uint32_t)(u->window_run_ns * 1000 / u->window_released_ns);
		u->part = turns        ? part / d->rotation.entities
		          : u->trusted ? (3 * u->part + part) / 4
		                       : part;
	}
	u->window_run_ns = u->window_released_ns = 0;
	return u->judged;
}

/* Until its own part is known again, each that has turns has what they have on average: those at
 * the top must be compared with what the others had in the same time. */
static void share_turns(const struct gp_view *view, const struct gp_policy_state *state,
                        uint64_t passed_ns)
{
	struct gp_mlfq_device *d = state->device;
	uint64_t part;

	for (uint32_t i = 0; i < view->n; i++) {
		const struct gp_mlfq_task *u = gp_policy_task(state, i);

		d->turns_run_ns += has_turns(state, u) ? u->got_ns : 0;
	}
	d->turns_ns += passed_ns;
	if (d->turns_ns < gp_mlfq_window(view))
		return;
	part = d->turns_run_ns * 1000 / d->turns_ns;
	d->turns_part = d->turns_part ? (uint32_t)(d->turns_part + part) / 2 : (uint32_t)part;
	for (uint32_t i = 0; i < view->n; i++) {
		struct gp_mlfq_task *u = gp_policy_task(state, i);

		if (has_turns(state, u))
			u->part = d->turns_part / d->rotation.entities;
	}
	d->turns_run_ns = d->turns_ns = 0;
}

static void judge_all(const struct gp_view *view, const struct gp_policy_state *state,
                      uint64_t passed_ns)
{
	struct parts p;
	bool any = false;

	share_turns(view, state, passed_ns);
	for (uint32_t i = 0; i < view->n; i++)
		any |= take_part(view, state, gp_policy_task(state, i), passed_ns);
	if (!any)
		return;
	p = survey_parts(view, state);
	for (uint32_t i = 0; i < view->n; i++) {
		struct gp_mlfq_task *u = gp_policy_task(state, i);

		if (u->judged)
			judge(u, &p, has_turns(state, u) ? LITTLE_IN_TURNS : LITTLE);
	}
}

void gp_mlfq_set_levels(const struct gp_view *view, const struct gp_policy_state *state,
                        uint64_t short_ns, struct gp_plan *plan)
{
	struct gp_mlfq_device *d = state->device;
	uint64_t passed_ns = d->decided_ns ? view->now_ns - d->decided_ns : 0;

	gather(view, state, passed_ns);
	d->decided_ns = view->now_ns;
	if (gp_is_prompt(view)) {
		for (uint32_t i = 0; i < view->n; i++) {
			struct gp_mlfq_task *u = gp_policy_task(state, i);

			if (u->entity.members)
				follow_stretch(view, u, short_ns, plan);
		}
	} else {
		judge_all(view, state, passed_ns);
	}
}
