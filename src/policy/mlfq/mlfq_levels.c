/* SPDX-License-Identifier: Apache-2.0 */
/* mlfq: the level of each entity. */
#include "policy/mlfq/mlfq.h"

#define PAUSE_NS      GP_MS /* a shorter pause does not end a stretch of work */
#define MIDDLE_FACTOR 10u   /* a stretch at the middle level may be this many times longer */

/* In thousandths of the largest part. */
#define LARGE          950u
#define SMALL          800u
#define SMALL_IN_TURNS 700u

#define IN_TURNS       4u /* an entity that takes turns is measured this many times longer */

static void note_member(const struct gp_view *view, uint32_t i)
{
	const struct gp_task_view *t = &view->task[i];
	struct gp_mlfq_task *own = gp_policy_task(view, i);
	struct gp_mlfq_task *e = gp_policy_task(view, t->gang);

	e->released &=
		!((t->known & GP_KNOWN_HELD) ? t->held : (t->held_by & GP_HELD_BY_POLICY) != 0);
	if (!(t->known & GP_KNOWN_RUN)) {
		e->runs_known &=
			own->run_known; /* one missing value is harmless: run time only grows */
		return;
	}
	if (own->run_known && t->run_ns > own->run_ns)
		e->got_ns += t->run_ns - own->run_ns;
	own->run_ns = t->run_ns;
	own->run_known = true;
}

/* The run time since the last decision: measured, or, if that is not known, the time for which the
 * entity was released and working. */
static void gather(const struct gp_view *view, uint64_t passed_ns)
{
	for (uint32_t i = 0; i < view->n; i++) {
		struct gp_mlfq_task *e = gp_policy_task(view, i);

		e->released = e->runs_known = true;
		e->got_ns = 0;
	}
	for (uint32_t i = 0; i < view->n; i++)
		if (view->task[i].class != GP_UNMANAGED)
			note_member(view, i);
	for (uint32_t i = 0; i < view->n; i++) {
		struct gp_mlfq_task *e = gp_policy_task(view, i);

		/* An entity that was idle at the last tick has only just become active. */
		if (!e->runs_known)
			e->got_ns = e->released && e->works && !e->idle_since_ns ? passed_ns : 0;
	}
}

/* If activity is known at once: levels by stretches of work. */

static uint64_t longest(uint8_t level, uint64_t short_ns)
{
	return level == GP_MLFQ_TOP      ? short_ns
	       : level == GP_MLFQ_MIDDLE ? MIDDLE_FACTOR * short_ns
					 : UINT64_MAX;
}

static void end_stretch(struct gp_mlfq_task *e, uint64_t short_ns)
{
	if (e->level > GP_MLFQ_TOP && e->stretch_ns <= longest(e->level - 1, short_ns))
		e->level--;
	e->works = false;
	e->stretch_ns = 0;
}

static void follow_stretch(const struct gp_view *view, struct gp_mlfq_task *e, uint64_t short_ns,
			   struct gp_plan *plan)
{
	e->stretch_ns += e->got_ns;
	while (e->stretch_ns > longest(e->level, short_ns))
		e->level++;
	if (!e->entity.idle) {
		e->idle_since_ns = 0;
		e->works |= e->entity.active;
		return;
	}
	if (!e->idle_since_ns)
		e->idle_since_ns = view->now_ns;
	if (!e->works)
		return;
	if (view->now_ns >= e->idle_since_ns + PAUSE_NS)
		end_stretch(e, short_ns);
	else
		gp_plan_wake_at(plan, e->idle_since_ns + PAUSE_NS);
}

/* If activity is known late: levels by the part of the device that each entity takes. */

struct parts {
	uint32_t largest; /* the largest part of all entities, in thousandths */
	uint32_t large;   /* a part counts as large from here on: 2/5 of an equal part */
	bool at_top; /* the entity with the largest part is at the top, and its part is large */
};

static struct parts survey_parts(const struct gp_view *view)
{
	struct parts p = {0};
	uint32_t workers = 0;

	for (uint32_t i = 0; i < view->n; i++) {
		const struct gp_mlfq_task *e = gp_policy_task(view, i);

		if (!e->entity.members || e->entity.user_held || !e->part)
			continue;
		workers++;
		if (e->part <= p.largest)
			continue;
		p.largest = e->part;
		p.at_top = e->level == GP_MLFQ_TOP;
	}
	p.large = 400u / (workers > 2 ? workers : 2u);
	p.at_top &= p.largest >= p.large;
	return p;
}

/*
 * An entity sinks if its part is nearly the largest. It does not sink if the device has much time
 * left, because no other entity would benefit. An entity that had a small part may have a large
 * part once without sinking: it may be working off requests that came while it waited.
 *
 * An entity rises if its part is clearly smaller than the largest. It does not rise while the
 * entity with the largest part is at the top, because that entity goes first and may be the reason
 * for the small part.
 */
static void judge(struct gp_mlfq_task *e, const struct parts *p, uint64_t small)
{
	uint64_t part = e->part * 1000ull;

	e->judged = false;
	if (e->part >= p->large && part >= (uint64_t)LARGE * p->largest) {
		e->level = e->trusted ? e->level : GP_MLFQ_BOTTOM;
		e->trusted = false;
		return;
	}
	if (!p->at_top && (e->part < p->large / 2 || part < small * p->largest))
		e->level = GP_MLFQ_TOP;
	e->trusted = e->level == GP_MLFQ_TOP;
}

static bool has_turns(const struct gp_view *view, const struct gp_mlfq_task *e)
{
	const struct gp_mlfq_device *d = view->state->device;

	return d->turns && d->rotation.current && e->entity.members && e->entity.rotating;
}

/*
 * Run times are old when they are reported. So the part is computed only after the entity was
 * released for several times that delay. An entity that takes turns needs longer, because the run
 * time at the end of its turn is reported in the turn of the next entity. Requests come at random.
 * So for an entity with a small part the earlier value has more weight.
 */
static bool take_part(const struct gp_view *view, struct gp_mlfq_task *e, uint64_t passed_ns)
{
	const struct gp_mlfq_device *d = view->state->device;
	bool turns = has_turns(view, e);
	uint64_t enough_ns = gp_mlfq_window(view) * (turns ? IN_TURNS : 1u);
	uint32_t part;

	e->window_run_ns += e->got_ns;
	e->window_released_ns += e->released ? passed_ns : 0;
	if (e->window_released_ns < enough_ns)
		return false;
	e->judged = e->runs_known;
	if (e->runs_known) {
		part = (uint32_t)(e->window_run_ns * 1000 / e->window_released_ns);
		e->part = turns        ? part / d->rotation.entities
			  : e->trusted ? (3 * e->part + part) / 4
				       : part;
	}
	e->window_run_ns = e->window_released_ns = 0;
	return e->judged;
}

/* Gives each entity that takes turns the average part of these entities, until its own part is
 * known again. Entities at the top must be compared with parts from the same time. */
static void share_turns(const struct gp_view *view, uint64_t passed_ns)
{
	struct gp_mlfq_device *d = view->state->device;
	uint64_t part;

	for (uint32_t i = 0; i < view->n; i++) {
		const struct gp_mlfq_task *e = gp_policy_task(view, i);

		d->turns_run_ns += has_turns(view, e) ? e->got_ns : 0;
	}
	d->turns_ns += passed_ns;
	if (d->turns_ns < gp_mlfq_window(view))
		return;
	part = d->turns_run_ns * 1000 / d->turns_ns;
	d->turns_part = d->turns_part ? (uint32_t)(d->turns_part + part) / 2 : (uint32_t)part;
	for (uint32_t i = 0; i < view->n; i++) {
		struct gp_mlfq_task *e = gp_policy_task(view, i);

		if (has_turns(view, e))
			e->part = d->turns_part / d->rotation.entities;
	}
	d->turns_run_ns = d->turns_ns = 0;
}

static void judge_all(const struct gp_view *view, uint64_t passed_ns)
{
	struct parts p;
	bool any = false;

	share_turns(view, passed_ns);
	for (uint32_t i = 0; i < view->n; i++)
		any |= take_part(view, gp_policy_task(view, i), passed_ns);
	if (!any)
		return;
	p = survey_parts(view);
	for (uint32_t i = 0; i < view->n; i++) {
		struct gp_mlfq_task *e = gp_policy_task(view, i);

		if (e->judged)
			judge(e, &p, has_turns(view, e) ? SMALL_IN_TURNS : SMALL);
	}
}

void gp_mlfq_set_levels(const struct gp_view *view, uint64_t short_ns, struct gp_plan *plan)
{
	struct gp_mlfq_device *d = view->state->device;
	uint64_t passed_ns = d->decided_ns ? view->now_ns - d->decided_ns : 0;

	gather(view, passed_ns);
	d->decided_ns = view->now_ns;
	if (gp_is_prompt(view)) {
		for (uint32_t i = 0; i < view->n; i++) {
			struct gp_mlfq_task *e = gp_policy_task(view, i);

			if (e->entity.members)
				follow_stretch(view, e, short_ns, plan);
		}
	} else {
		judge_all(view, passed_ns);
	}
}
