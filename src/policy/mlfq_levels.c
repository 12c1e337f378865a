/* SPDX-License-Identifier: Apache-2.0 */
/* mlfq: which level each unit is at. */
#include "policy/mlfq.h"

#define PAUSE_NS      GP_MS /* a shorter one is not the end of a stretch of work */
#define MIDDLE_FACTOR 10u   /* a stretch at the middle level may be so much longer */
#define WINDOW_NS     (400 * GP_MS)

static void note_member(const struct gp_view *view, const struct gp_policy_state *state, uint32_t i)
{
	const struct gp_task_view *t = &view->task[i];
	struct mlfq_task *own = gp_policy_task(state, i);
	struct mlfq_task *u = gp_policy_task(state, t->gang);

	u->loose &= !((t->known & GP_KNOWN_HELD) ? t->held : (t->held_by & GP_HELD_BY_POLICY) != 0);
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
		struct mlfq_task *u = gp_policy_task(state, i);

		u->loose = u->told = true;
		u->got_ns = 0;
	}
	for (uint32_t i = 0; i < view->n; i++)
		if (view->task[i].class != GP_UNMANAGED)
			note_member(view, state, i);
	for (uint32_t i = 0; i < view->n; i++) {
		struct mlfq_task *u = gp_policy_task(state, i);

		/* One that was idle at the last look has only just come. */
		if (!u->told)
			u->got_ns = u->loose && u->works && !u->idle_since_ns ? passed_ns : 0;
	}
}

/* ---- where it is known at once who works: by stretches of work ---- */

static uint64_t longest(uint8_t level, uint64_t short_ns)
{
	return level == TOP ? short_ns : level == MIDDLE ? MIDDLE_FACTOR * short_ns : UINT64_MAX;
}

static void end_stretch(struct mlfq_task *u, uint64_t short_ns)
{
	if (u->level > TOP && u->stretch_ns <= longest(u->level - 1, short_ns))
		u->level--;
	u->works = false;
	u->stretch_ns = 0;
}

static void follow_stretch(const struct gp_view *view, struct mlfq_task *u, uint64_t short_ns,
                           struct gp_plan *plan)
{
	u->stretch_ns += u->got_ns;
	while (u->stretch_ns > longest(u->level, short_ns))
		u->level++;
	if (!u->unit.idle) {
		u->idle_since_ns = 0;
		u->works |= u->unit.active;
		return;
	}
	if (!u->idle_since_ns)
		u->idle_since_ns = view->now_ns;
	if (!u->works)
		return;
	if (view->now_ns >= u->idle_since_ns + PAUSE_NS)
		end_stretch(u, short_ns);
	else
		gp_look_again(plan, u->idle_since_ns + PAUSE_NS);
}

/* ---- elsewhere: by what each has run of the time in which it could ---- */

/* Of those that could run now, how many have. */
static uint32_t count_workers(const struct gp_view *view, const struct gp_policy_state *state)
{
	uint32_t workers = 0;

	for (uint32_t i = 0; i < view->n; i++) {
		const struct mlfq_task *u = gp_policy_task(state, i);

		workers += u->unit.members && u->loose && u->window_run_ns;
	}
	return workers;
}

/*
 * Half of an equal part of the time is much. What is known of run times is old, so a unit is judged
 * only when it could run for several times as long as that, in one turn or in several.
 */
static void judge(const struct gp_view *view, struct mlfq_task *u, uint32_t workers)
{
	uint64_t enough_ns = 4 * view->news_every_ns;

	if (enough_ns < WINDOW_NS)
		enough_ns = WINDOW_NS;
	if (u->window_loose_ns < enough_ns)
		return;
	if (u->told)
		u->level = u->window_run_ns >= u->window_loose_ns / 2 / workers ? BOTTOM : TOP;
	u->window_run_ns = u->window_loose_ns = 0;
}

static void judge_all(const struct gp_view *view, const struct gp_policy_state *state,
                      uint64_t passed_ns)
{
	uint32_t workers;

	for (uint32_t i = 0; i < view->n; i++) {
		struct mlfq_task *u = gp_policy_task(state, i);

		u->window_run_ns += u->got_ns;
		u->window_loose_ns += u->loose ? passed_ns : 0;
	}
	workers = count_workers(view, state);
	for (uint32_t i = 0; i < view->n; i++)
		judge(view, gp_policy_task(state, i), workers > 1 ? workers : 2);
}

void gp_mlfq_set_levels(const struct gp_view *view, const struct gp_policy_state *state,
                        uint64_t short_ns, struct gp_plan *plan)
{
	struct mlfq_device *d = state->device;
	uint64_t passed_ns = d->decided_ns ? view->now_ns - d->decided_ns : 0;

	gather(view, state, passed_ns);
	d->decided_ns = view->now_ns;
	if (gp_is_prompt(view)) {
		for (uint32_t i = 0; i < view->n; i++) {
			struct mlfq_task *u = gp_policy_task(state, i);

			if (u->unit.members)
				follow_stretch(view, u, short_ns, plan);
		}
	} else {
		judge_all(view, state, passed_ns);
	}
}
