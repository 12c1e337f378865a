/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * priority: strict classes and priorities, with aging.
 *
 * Where slices can be set, the hardware arbitrates and no software is on the critical path: a
 * best-effort task with a tiny slice is put off the GPU as soon as a latency-critical one has work.
 * Two runnable tasks with tiny slices would starve each other, so only one may have it, and only
 * when no other task that is not latency-critical may be runnable; the other busy best-effort tasks
 * are held and take long turns. Elsewhere, tasks are held while one of higher rank is seen active.
 *
 * Good for inference beside training. Bad where latency-critical work never pauses: best-effort
 * tasks then live on what aging gives them, a few percent at most; and where it pauses all the time
 * for moments shorter than a switch: each gap gives the GPU away, and the way back costs a switch.
 */
#include "policy/rotate.h"

enum {
	QUANTUM,
	AGE_AFTER,
	AGE_RUN,
	AGE_BLIND,
	AGE_SLICE,
	TINY_SLICE,
	LC_SLICE,
	LC_SHARED_SLICE,
};

static const struct gp_param priority_params[] = {
	[QUANTUM] = {"quantum",         "ms", "turn of a best-effort task among busy ones",    100,     10,   10000},
	[AGE_AFTER] = {"age_after",       "ms", "a task that got nothing for so long is let in", 100,     10,
                     10000											 },
	[AGE_RUN] = {"age_run",         "ms", "... for so long",                               10,      1,    1000 },
	[AGE_BLIND] = {"age_blind",       "ms", "... and so often where nobody can see who ran", 1000,
                     100,										     10000},
	[AGE_SLICE] = {"age_slice",       "us", "slice of everybody while a task is let in",     2000,    1000,
                     100000											},
	[TINY_SLICE] = {"tiny_slice",      "us", "slice of the one running best-effort task",     1,       1,
                     GP_TINY_SLICE_US									      },
	[LC_SLICE] = {"lc_slice",        "us", "slice of the only latency-critical task",       1000000, 1000,
                     10000000										      },
	[LC_SHARED_SLICE] = {"lc_shared_slice", "us", "slice of several of them",                      2000,    1000,
                     1000000										       },
};

struct priority_device {
	struct gp_rotation rotation;
	uint64_t got_ns;       /* when best-effort work last had the device, or wanted nothing */
	uint64_t age_from_ns;  /* somebody is let in ... */
	uint64_t age_until_ns; /* ... until then; 0 = nobody */
	uint64_t aged_ns;      /* when that last ended */
};

struct priority_task {
	struct gp_unit unit;
	uint64_t got_ns;       /* when this unit last had the device, or wanted nothing */
	uint64_t fed_ns;       /* when this unit last had its turn while somebody was let in */
	bool told;             /* this task's run time was known at some time */
	uint64_t run_ns;       /* ... what it was when it last grew ... */
	uint64_t run_at_ns;    /* ... and when that was */
	uint64_t loose_ns;     /* with slices: since when this task is not held; 0 = it is */
	uint64_t run_until_ns; /* without slices: this unit is let in until then */
	uint64_t ran_ns;       /* ... and was last not held then */
};

static uint64_t param_ns(const struct gp_policy_state *state, unsigned param)
{
	return (uint64_t)state->param[param] * GP_MS;
}

static uint32_t slice_param(const struct gp_view *view, const struct gp_policy_state *state,
                            unsigned param)
{
	uint64_t us = (uint64_t)state->param[param];

	return us < view->slice_min_us   ? view->slice_min_us
	       : us > view->slice_max_us ? view->slice_max_us
	                                 : (uint32_t)us;
}

static void look_again(struct gp_plan *plan, uint64_t at_ns)
{
	if (at_ns < plan->next_ns)
		plan->next_ns = at_ns;
}

/* ---- devices with slices ---- */

/* Tasks that are not latency-critical and not held, and may be running. */
struct loose {
	uint32_t runnable; /* active, or not known to be idle */
	uint32_t all;
	uint32_t task;      /* index of the only one */
	uint32_t idle_task; /* index of the only one, if it is idle */
	uint32_t be;        /* best-effort ones among the runnable */
	bool hungry;        /* a best-effort one gets nothing */
	bool starving;      /* a unit has got nothing for long, although others did */
	bool blind;         /* of one, nobody ever said whether it got anything */
};

/*
 * Whether the run time has grown by as much as one calls having had the device since it last grew.
 * A task with a tiny slice that is let in for a microsecond in each gap of another runs, and gets
 * nothing done.
 */
static bool has_run(const struct gp_view *view, const struct gp_task_view *t,
                    struct priority_task *p)
{
	uint64_t ran_ns = t->run_ns - p->run_ns, in_ns = view->now_ns - p->run_at_ns;

	if (!(t->known & GP_KNOWN_RUN) || !ran_ns)
		return false;
	p->run_ns = t->run_ns;
	p->run_at_ns = view->now_ns;
	return ran_ns >= GP_MS || ran_ns >= in_ns / 128;
}

/*
 * Keeps book of when a best-effort unit had the device, as far as run times tell. What counts at
 * first is that best-effort work as a whole gets something: units that take turns may each have too
 * short a turn to be noticed.
 */
static void note_run(const struct gp_view *view, const struct gp_policy_state *state, uint32_t i)
{
	struct priority_device *d = state->device;
	struct priority_task *p = gp_policy_task(state, i);
	struct priority_task *first = gp_policy_task(state, view->task[i].gang);
	const struct gp_task_view *t = &view->task[i];
	bool had;

	if (!p->run_at_ns)
		p->run_at_ns = view->now_ns;
	had = has_run(view, t, p);
	p->told |= (t->known & GP_KNOWN_RUN) != 0;
	if (had || gp_seen_idle(t) || !first->got_ns)
		first->got_ns = view->now_ns;
	if (had)
		d->got_ns = view->now_ns;
}

/* Released long enough for a sample to show it, and nothing to be seen. */
static bool is_hungry(const struct gp_view *view, const struct gp_policy_state *state, uint32_t i)
{
	const struct priority_task *p = gp_policy_task(state, i);
	const struct priority_task *first = gp_policy_task(state, view->task[i].gang);
	const struct gp_task_view *t = &view->task[i];
	uint64_t loose_ns = view->now_ns - p->loose_ns, got_ns = view->now_ns - first->got_ns;
	uint64_t long_ns = param_ns(state, AGE_AFTER) + view->news_every_ns;

	if (!p->told || !loose_ns || ((t->known & GP_KNOWN_HELD) && t->held))
		return false;
	return loose_ns >= view->news_every_ns && (got_ns >= loose_ns || got_ns >= long_ns);
}

static struct loose find_loose(const struct gp_view *view, const struct gp_policy_state *state,
                               const struct gp_plan *plan)
{
	struct priority_device *d = state->device;
	struct loose l = {0};

	for (uint32_t i = 0; i < view->n; i++) {
		const struct gp_task_view *t = &view->task[i];
		struct priority_task *p = gp_policy_task(state, i);

		if (t->class == GP_BEST_EFFORT) {
			note_run(view, state, i);
			l.starving |= p->unit.rotating &&
			              view->now_ns - p->got_ns >= view->starve_limit_ns / 4;
		}
		if (t->class == GP_LATENCY_CRITICAL || plan->task[i].want == GP_HOLD ||
		    (t->held_by & GP_HELD_BY_USER)) {
			p->loose_ns = 0;
			continue;
		}
		if (!p->loose_ns)
			p->loose_ns = view->now_ns;
		l.all++;
		l.idle_task = i;
		if (gp_seen_idle(t))
			continue;
		l.runnable++;
		l.task = i;
		if (t->class != GP_BEST_EFFORT)
			continue;
		l.be++;
		l.blind |= !p->told;
		l.hungry |= is_hungry(view, state, i);
	}
	if (!l.be || !d->got_ns)
		d->got_ns = view->now_ns;
	return l;
}

/* Whether it is time to let best-effort work in. */
static bool is_due(const struct gp_view *view, const struct gp_policy_state *state,
                   const struct loose *l, struct gp_plan *plan)
{
	struct priority_device *d = state->device;
	uint64_t from_ns = d->got_ns > d->aged_ns ? d->got_ns : d->aged_ns;
	uint64_t after_ns = param_ns(state, AGE_AFTER), blind_ns = param_ns(state, AGE_BLIND);
	uint64_t due_ns = UINT64_MAX;

	if (l->hungry)
		due_ns = from_ns + after_ns + view->news_every_ns; /* what is known is that old */
	/* Seldom, since it may be that only nobody looked; but all must be reached in time. */
	if (l->starving && blind_ns > view->starve_limit_ns / 4 / (d->rotation.units + 1))
		blind_ns = view->starve_limit_ns / 4 / (d->rotation.units + 1);
	if (blind_ns < after_ns)
		blind_ns = after_ns;
	if ((l->blind || l->starving) && d->aged_ns + blind_ns < due_ns)
		due_ns = d->aged_ns + blind_ns;
	if (view->now_ns >= due_ns)
		return true;
	look_again(plan, due_ns);
	return false;
}

/* Opens and closes the time in which the hardware shares as if there were no classes. */
static bool is_aging(const struct gp_view *view, const struct gp_policy_state *state,
                     const struct loose *l, struct gp_plan *plan, bool *opens)
{
	struct priority_device *d = state->device;

	if (!d->aged_ns)
		d->aged_ns = view->now_ns;
	if (d->age_until_ns && view->now_ns >= d->age_until_ns) {
		d->age_until_ns = 0;
		d->aged_ns = view->now_ns;
	}
	*opens = !d->age_until_ns && is_due(view, state, l, plan);
	if (*opens) {
		d->age_from_ns = view->now_ns;
		d->age_until_ns = view->now_ns + param_ns(state, AGE_RUN);
	}
	if (!d->age_until_ns)
		return false;
	look_again(plan, d->age_until_ns);
	return true;
}

/* The time of one that is let in begins when its release is in force, not when it was asked for. */
static void wait_for_release(const struct gp_view *view, const struct gp_policy_state *state)
{
	struct priority_device *d = state->device;
	uint64_t run_ns = param_ns(state, AGE_RUN);

	if (!d->age_until_ns || view->now_ns >= d->age_from_ns + 10 * run_ns)
		return;
	for (uint32_t i = 0; i < view->n; i++) {
		const struct gp_task_view *t = &view->task[i];

		if (view->task[t->gang].id != d->rotation.current || !(t->known & GP_KNOWN_HELD) ||
		    !t->held)
			continue;
		d->age_until_ns = view->now_ns + run_ns;
		if (d->rotation.ends_ns < d->age_until_ns)
			d->rotation.ends_ns = d->age_until_ns;
	}
}

static bool rotate_best_effort(const struct gp_view *view, const struct gp_policy_state *state,
                               uint32_t user_held, uint32_t lc, struct gp_plan *plan)
{
	struct priority_device *d = state->device;
	/* A newcomer whose activity is not known yet would keep the tiny slice from everybody: with
	 * somebody to protect it waits for its turn, otherwise the hardware shares until it is. */
	struct gp_rotation_rules rules = {
		.classes_apply = true,
		.unknown_joins = lc > 0,
		.room = user_held < view->max_held ? view->max_held - user_held : 0,
		.quantum_ns = param_ns(state, QUANTUM),
		.age_after_ns = param_ns(state, AGE_AFTER),
		.age_run_ns = param_ns(state, AGE_RUN),
	};

	if (!(view->caps & GP_CAP_HOLD) || !gp_rotate(view, state, &d->rotation, &rules))
		return false;
	look_again(plan, d->rotation.ends_ns);
	return true;
}

static void plan_turns(const struct gp_view *view, const struct gp_policy_state *state,
                       bool rotates, struct gp_plan *plan)
{
	const struct priority_device *d = state->device;

	for (uint32_t i = 0; i < view->n; i++) {
		const struct gp_unit *u = gp_unit_of(view, state, i);
		bool current = view->task[view->task[i].gang].id == d->rotation.current;

		if (view->task[i].class != GP_UNMANAGED)
			plan->task[i].want = rotates && u->rotating && !current ? GP_HOLD : GP_RUN;
	}
}

static uint64_t last_meal(const struct priority_task *p)
{
	return p->got_ns > p->fed_ns ? p->got_ns : p->fed_ns;
}

/* Of those that take turns, the one that had the device longest ago is let in now: left to chance,
 * the same one might have its turn each time. */
static void feed_hungriest(const struct gp_view *view, const struct gp_policy_state *state,
                           struct gp_plan *plan)
{
	struct priority_device *d = state->device;
	struct priority_task *hungriest = NULL;
	uint32_t index = 0;

	for (uint32_t i = 0; i < view->n; i++) {
		struct priority_task *p = gp_policy_task(state, i);

		if (p->unit.rotating && (!hungriest || last_meal(p) < last_meal(hungriest))) {
			hungriest = p;
			index = i;
		}
	}
	if (!hungriest)
		return;
	hungriest->fed_ns = view->now_ns;
	if (view->task[index].id != d->rotation.current)
		gp_rotation_give(view, &d->rotation, index, param_ns(state, AGE_RUN), true);
	plan_turns(view, state, true, plan);
}

static void set_slices(const struct gp_view *view, const struct gp_policy_state *state,
                       const struct loose *l, uint32_t lc, bool aging, struct gp_plan *plan)
{
	uint32_t lc_slice, chosen = UINT32_MAX;

	if (l->runnable == 1)
		chosen = l->task;
	else if (l->runnable == 0 && l->all == 1)
		chosen = l->idle_task; /* so that it has it when it wakes up */
	if (chosen != UINT32_MAX && view->task[chosen].class == GP_BEST_EFFORT)
		plan->task[chosen].slice_us =
			slice_param(view, state, aging ? AGE_SLICE : TINY_SLICE);
	lc_slice = slice_param(view, state,
	                       aging     ? AGE_SLICE
	                       : lc == 1 ? LC_SLICE
	                                 : LC_SHARED_SLICE);
	for (uint32_t i = 0; i < view->n; i++)
		if (view->task[i].class == GP_LATENCY_CRITICAL)
			plan->task[i].slice_us = lc_slice;
}

static void arbitrate_by_slices(const struct gp_view *view, const struct gp_policy_state *state,
                                uint32_t user_held, uint32_t lc, struct gp_plan *plan)
{
	struct priority_device *d = state->device;
	bool rotates, aging, opens;
	struct loose l;

	wait_for_release(view, state);
	rotates = rotate_best_effort(view, state, user_held, lc, plan);
	plan_turns(view, state, rotates, plan);
	l = find_loose(view, state, plan);
	if (!lc) {
		d->age_until_ns = 0;
		return; /* nobody to make way for: hardware slices */
	}
	aging = is_aging(view, state, &l, plan, &opens);
	if (opens && rotates) {
		feed_hungriest(view, state, plan);
		l = find_loose(view, state, plan);
		look_again(plan, d->rotation.ends_ns);
	}
	set_slices(view, state, &l, lc, aging, plan);
}

/* ---- devices without slices ---- */

static uint32_t rank(const struct gp_unit *u)
{
	return u->class * (GP_PRIORITY_MAX + 1) + u->priority;
}

/* Whether a unit of lower rank is let in now, because it waited long enough. */
static bool is_let_in(const struct gp_view *view, const struct gp_policy_state *state,
                      struct priority_task *p, struct gp_plan *plan)
{
	uint64_t due_ns;

	if (!p->unit.policy_held)
		p->ran_ns = view->now_ns; /* until now */
	due_ns = p->ran_ns + param_ns(state, AGE_AFTER);
	if (view->now_ns >= p->run_until_ns && view->now_ns >= due_ns)
		p->run_until_ns = view->now_ns + param_ns(state, AGE_RUN);
	if (view->now_ns < p->run_until_ns) {
		look_again(plan, p->run_until_ns);
		return true;
	}
	look_again(plan, due_ns);
	return false;
}

static bool must_wait(const struct gp_unit *u, uint32_t top)
{
	return u->members && !u->user_held && !u->idle && rank(u) < top;
}

/* Holds the units of a rank as far as there is room. Those held already come first, so that a
 * device that can hold few does not change its mind at every look. True when all are held. */
static bool hold_rank(const struct gp_view *view, const struct gp_policy_state *state,
                      uint32_t of_rank, uint32_t *room, bool held_already, struct gp_plan *plan)
{
	bool all = true;

	for (uint32_t i = 0; i < view->n; i++) {
		struct priority_task *p = gp_policy_task(state, i);
		struct gp_unit *u = &p->unit;

		if (!must_wait(u, of_rank + 1) || rank(u) != of_rank ||
		    u->policy_held != held_already)
			continue;
		if (u->members > *room || is_let_in(view, state, p, plan)) {
			all = false;
			continue;
		}
		*room -= u->members;
		plan->task[i].want = GP_HOLD;
	}
	return all;
}

/* The lowest ranks first, and nobody of a higher class while one of a lower is let in. */
static void hold_lowest(const struct gp_view *view, const struct gp_policy_state *state,
                        uint32_t top, uint32_t room, struct gp_plan *plan)
{
	const uint32_t lc = GP_LATENCY_CRITICAL * (GP_PRIORITY_MAX + 1);
	bool all = true;

	for (uint32_t r = 0; r < top && (all || r < lc); r++) {
		all &= hold_rank(view, state, r, &room, true, plan);
		all &= hold_rank(view, state, r, &room, false, plan);
	}
}

/* Holds all units of a class below `top` that are not let in. True when none is. */
static bool hold_class(const struct gp_view *view, const struct gp_policy_state *state,
                       uint32_t top, uint8_t class, struct gp_plan *plan)
{
	bool all = true;

	for (uint32_t i = 0; i < view->n; i++) {
		struct priority_task *p = gp_policy_task(state, i);

		if (p->unit.class != class || !must_wait(&p->unit, top))
			continue;
		if (is_let_in(view, state, p, plan))
			all = false;
		else
			plan->task[i].want = GP_HOLD;
	}
	return all;
}

static void hold_below(const struct gp_view *view, const struct gp_policy_state *state,
                       uint32_t top, uint32_t room, struct gp_plan *plan)
{
	uint32_t needed = 0;

	for (uint32_t i = 0; i < view->n; i++) {
		struct priority_task *p = gp_policy_task(state, i);

		if (must_wait(&p->unit, top))
			needed += p->unit.members;
		else
			p->ran_ns =
				view->now_ns; /* does not wait: it runs, is idle, or is no unit */
	}
	if (needed > room)
		hold_lowest(view, state, top, room, plan);
	else if (hold_class(view, state, top, GP_BEST_EFFORT, plan))
		hold_class(view, state, top, GP_LATENCY_CRITICAL, plan);
}

static void hold_by_activity(const struct gp_view *view, const struct gp_policy_state *state,
                             uint32_t user_held, struct gp_plan *plan)
{
	uint32_t top = 0;
	uint32_t room = user_held < view->max_held ? view->max_held - user_held : 0;

	for (uint32_t i = 0; i < view->n; i++) {
		const struct gp_unit *u = gp_policy_task(state, i);

		if (u->members && u->active && !u->user_held && rank(u) > top)
			top = rank(u);
		plan->task[i].want = view->task[i].class == GP_UNMANAGED ? GP_LEAVE : GP_RUN;
	}
	if (!(view->caps & GP_CAP_HOLD))
		return;
	hold_below(view, state, top, room, plan);
	for (uint32_t i = 0; i < view->n; i++)
		if (view->task[i].class != GP_UNMANAGED)
			plan->task[i].want = plan->task[view->task[i].gang].want;
}

static int priority_decide(const struct gp_view *view, const struct gp_policy_state *state,
                           struct gp_plan *plan)
{
	uint32_t user_held = gp_units_gather(view, state);
	uint32_t lc = 0;

	for (uint32_t i = 0; i < view->n; i++)
		lc += view->task[i].class == GP_LATENCY_CRITICAL &&
		      !(view->task[i].held_by & GP_HELD_BY_USER);
	if (view->caps & GP_CAP_SLICE)
		arbitrate_by_slices(view, state, user_held, lc, plan);
	else
		hold_by_activity(view, state, user_held, plan);
	return 0;
}

const struct gp_policy_ops gp_policy_priority = {
	.name = "priority",
	.summary = "strict classes and priorities, with aging",
	.param = priority_params,
	.nparam = sizeof priority_params / sizeof *priority_params,
	.device_state = sizeof(struct priority_device),
	.task_state = sizeof(struct priority_task),
	.watches = true,
	.decide = priority_decide,
};
