/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mlfq: feedback levels, for tasks without a description. A task starts at the top level. It sinks
 * if it works for long without a pause, and rises if its stretches of work are short. The top level
 * goes before the lower levels.
 *
 * If activity is known at once, a stretch of work lasts from one pause to the next. It may take up
 * to `short` at the top level, and ten times that at the middle level. If activity is known late,
 * run times show which part of the device each entity takes between two samples. There are two
 * levels then: entities that take nearly as much as the largest one are below the top.
 *
 * If slices can be set, software is not on the critical path. Tasks at the top have long slices.
 * One task below the top runs with a short slice. The other tasks below are held and take long
 * turns, as long as that keeps the device busy. Without slices, the tasks below are held while the
 * top level works, and get aging windows.
 *
 * Good for a GPU that users share without describing their work. Bad for services with long
 * requests, or with more than an equal part of the work: such a service sinks like a job. Under
 * `priority` requests are answered sooner, but it needs classes.
 */
#include "policy/mlfq/mlfq.h"

/*
 * Whether entities below the top are held and take turns. Used if activity is known late.
 *
 * Turns save switches and shorten the response time of the top level. But an entity that pauses in
 * its turn leaves the device idle while other entities have work, and the policy sees the pause too
 * late. So turns are tried, and given up if the device was less busy than it should be. After each
 * failure they are tried less often.
 */

/* In thousandths of the time. */
#define STAYS_BUSY   930u /* turns are useful if the device is at least this busy */
#define TOP_COSTS    130u /* subtracted if the top level works: its cost is not measured */
#define CLEARLY_IDLE 650u /* turns are given up at once below this */
#define GAIN         30u  /* turns are useful if the device is busier by this than without them */
#define FULL         850u /* without turns the hardware is hardly ever busier */

#define SURE         4u              /* windows until turns are judged */
#define WAIT_NS      (10000 * GP_MS) /* until turns are tried again; doubled after each failure */
#define WAIT_MAX_NS  (16 * WAIT_NS)
#define SELDOM       8u /* the wait is this many times longer if the device is not full */

static void begin_window(const struct gp_view *view, bool turns)
{
	struct gp_mlfq_device *d = view->state->device;

	d->window_ns = d->window_run_ns = 0;
	if (d->turns == turns)
		return;
	d->turns = turns;
	d->turns_run_ns = d->turns_ns = 0;
	d->turns_part = 0;
	for (uint32_t i = 0; i < view->n; i++) {
		struct gp_mlfq_task *e = gp_policy_task(view, i);

		e->window_run_ns = e->window_released_ns = 0;
	}
}

/* Time is measured from one growth of a run time to the next: between them a run time is out of
 * date. */
static void note_busy(const struct gp_view *view)
{
	struct gp_mlfq_device *d = view->state->device;
	uint64_t got_ns = 0;

	for (uint32_t i = 0; i < view->n; i++)
		got_ns += ((struct gp_mlfq_task *)gp_policy_task(view, i))->got_ns;
	if (!got_ns)
		return;
	if (d->run_grew_ns) {
		d->window_ns += view->now_ns - d->run_grew_ns;
		d->window_run_ns += got_ns;
	}
	d->run_grew_ns = view->now_ns;
}

static bool works_at_top(const struct gp_view *view)
{
	for (uint32_t i = 0; i < view->n; i++) {
		const struct gp_mlfq_task *e = gp_policy_task(view, i);

		if (e->entity.members && e->level == GP_MLFQ_TOP && e->part)
			return true;
	}
	return false;
}

static void try_turns(const struct gp_view *view, uint32_t busy)
{
	struct gp_mlfq_device *d = view->state->device;
	uint64_t wait_ns = d->wait_ns * (busy >= FULL ? 1 : SELDOM);

	d->released_busy = busy;
	begin_window(view, view->now_ns >= d->given_up_ns + wait_ns);
}

static void check_turns(const struct gp_view *view, uint32_t busy)
{
	struct gp_mlfq_device *d = view->state->device;
	uint32_t least = STAYS_BUSY - (works_at_top(view) ? TOP_COSTS : 0);
	bool pays = busy >= least || busy >= d->released_busy + GAIN;

	if (!pays) {
		d->given_up_ns = view->now_ns;
		d->wait_ns = d->wait_ns ? 2 * d->wait_ns : WAIT_NS;
		d->wait_ns = gp_least(d->wait_ns, WAIT_MAX_NS);
	} else {
		d->wait_ns = 0;
	}
	begin_window(view, pays);
}

static void weigh_turns(const struct gp_view *view, const struct gp_mlfq_counts *c)
{
	struct gp_mlfq_device *d = view->state->device;
	uint64_t enough_ns = gp_mlfq_window(view);
	uint32_t busy;

	note_busy(view);
	if (c->below < 2) {
		if (d->turns || d->window_ns >= 2 * enough_ns)
			begin_window(view, false);
		return;
	}
	if (!d->turns)
		enough_ns /= 2; /* a trial costs little */
	else if (enough_ns < d->rotation.round_ns)
		enough_ns = d->rotation.round_ns;
	if (d->window_ns < enough_ns)
		return;
	busy = (uint32_t)(d->window_run_ns * 1000 / d->window_ns);
	if (!d->turns)
		try_turns(view, busy);
	else if (busy < CLEARLY_IDLE || d->window_ns >= SURE * enough_ns)
		check_turns(view, busy);
}

#define SLICE_MIN_US 1000u /* with shorter slices, switching costs too much */

/* clang-format off */
static const struct gp_param mlfq_params[] = {
	[GP_MLFQ_SHORT]   = {"short", "ms", "longest stretch of work at the top", 10, 1, 1000},
	[GP_MLFQ_QUANTUM] = {"quantum", "ms", "turn among tasks below the top", 200, 10, 10000},
	[GP_MLFQ_SLICE]   = {"slice", "us", "slice at the top", 10000, 1000, 1000000},
	[GP_MLFQ_YIELD]   = {"yield", "us", "slice of the running task below", 1000, 1000, 100000},
	[GP_MLFQ_BOOST]   = {"boost", "ms", "waiting time before an aging window", 500, 10, 10000},
};
/* clang-format on */

static uint64_t param_ms(const struct gp_view *view, unsigned param)
{
	return gp_param(view, param) * GP_MS;
}

/* The rotation uses classes and priorities: entities at the top take no part, the middle level goes
 * first. */
static void label(struct gp_mlfq_task *t)
{
	t->entity.class = t->level == GP_MLFQ_TOP ? GP_LATENCY_CRITICAL : GP_BEST_EFFORT;
	t->entity.priority = t->level == GP_MLFQ_BOTTOM ? 0 : 1;
}

static uint64_t boost_ns(const struct gp_view *view, uint32_t entities)
{
	uint64_t all_in_time_ns = view->starve_limit_ns / 4 / (entities + 1);

	return param_ms(view, GP_MLFQ_BOOST) < all_in_time_ns ? param_ms(view, GP_MLFQ_BOOST)
							      : all_in_time_ns;
}

static struct gp_mlfq_counts take_counts(const struct gp_view *view)
{
	struct gp_mlfq_counts c = {0};

	for (uint32_t i = 0; i < view->n; i++) {
		struct gp_mlfq_task *t = gp_policy_task(view, i);

		if (!t->entity.members || t->entity.user_held)
			continue;
		label(t);
		if (t->level == GP_MLFQ_TOP) {
			c.top++;
			c.top_works |= t->works;
			continue;
		}
		c.sunk++;
		if (!t->entity.idle) {
			c.below++;
			c.tasks += t->entity.members;
			c.below_only = i;
		}
	}
	return c;
}

static bool rotate(const struct gp_view *view, uint32_t room, uint32_t below, struct gp_plan *plan)
{
	struct gp_mlfq_device *d = view->state->device;
	struct gp_rotation_rules rules = {
		.classes_apply = true,
		.room = room,
		.quantum_ns = param_ms(view, GP_MLFQ_QUANTUM),
		.age_after_ns = boost_ns(view, below),
		.age_run_ns = GP_MLFQ_AGING_NS,
	};

	if (!(view->caps & GP_CAP_HOLD) || (!gp_is_prompt(view) && !d->turns)) {
		d->rotation.current = 0;
		return false;
	}
	return gp_rotate(view, &d->rotation, &rules, plan);
}

static bool knows_wait(const struct gp_view *view, const struct gp_entity *e)
{
	return e->waited_known && e->waited_ns <= view->now_ns;
}

/* An entity that was released in a gap has not run if other entities filled the gap. */
static void note_ran(const struct gp_view *view, struct gp_mlfq_task *t, bool waits)
{
	if (knows_wait(view, &t->entity))
		t->ran_ns = view->now_ns - t->entity.waited_ns;
	else if (!waits)
		t->ran_ns = view->now_ns;
}

/*
 * Returns when the next aging window is due: the top level has worked for a while, or an entity
 * below has waited longer than turns explain. The gaps of the top level may be too short for that
 * entity, or other entities may fill them.
 */
static uint64_t aging_due_at(const struct gp_view *view, uint32_t below)
{
	const struct gp_mlfq_device *d = view->state->device;
	uint64_t boost = boost_ns(view, below);
	uint64_t due_ns = d->barred_ns + boost;

	for (uint32_t i = 0; i < view->n; i++) {
		const struct gp_mlfq_task *t = gp_policy_task(view, i);
		const struct gp_entity *e = &t->entity;
		uint64_t at_ns;

		if (!e->members || t->level == GP_MLFQ_TOP || e->idle || e->user_held ||
		    !knows_wait(view, e))
			continue;
		at_ns = view->now_ns - e->waited_ns + view->starve_limit_ns / 4;
		due_ns = gp_least(due_ns, at_ns);
	}
	return due_ns > d->aging_until_ns + boost ? due_ns : d->aging_until_ns + boost;
}

/* Entities below the top that do not have the turn are held. With `barred`, the current entity is
 * held, too. */
static void plan_holds(const struct gp_view *view, bool rotates, bool barred, struct gp_plan *plan)
{
	const struct gp_mlfq_device *d = view->state->device;

	for (uint32_t i = 0; i < view->n; i++) {
		uint32_t first = view->task[i].gang;
		struct gp_mlfq_task *t = gp_policy_task(view, first);
		bool waits = rotates && t->entity.rotating &&
			     view->task[first].id != d->rotation.current;

		if (view->task[i].class == GP_UNMANAGED)
			continue;
		waits |= barred && t->level != GP_MLFQ_TOP && !t->entity.idle &&
			 !t->entity.user_held;
		plan->task[i].want = waits ? GP_HOLD : GP_RUN;
		if (first == i)
			note_ran(view, t, waits);
	}
}

/* A round must end well inside the starvation limit. */
static uint32_t long_slice(const struct gp_view *view)
{
	uint64_t longest_us = view->starve_limit_ns / 1000 / 4 / (view->n + 1);
	uint32_t wanted_us = gp_slice_param(view, GP_MLFQ_SLICE);

	if (longest_us < SLICE_MIN_US)
		longest_us = SLICE_MIN_US;
	return wanted_us < longest_us ? wanted_us : (uint32_t)longest_us;
}

/*
 * With slices the hardware arbitrates. Slices do not change at each pause, because setting one is a
 * call to the driver. If several entities below the top are released, they keep the default slice,
 * because two short slices would waste the GPU on switching. Without entities at the top they get
 * long slices, which waste less.
 */
static void plan_slices(const struct gp_view *view, const struct gp_mlfq_counts *c, bool rotates,
			struct gp_plan *plan)
{
	bool one_runs = rotates || c->below <= 1;
	bool shared = !one_runs && !c->top && !gp_is_prompt(view);
	uint32_t long_us = long_slice(view);

	for (uint32_t i = 0; i < view->n; i++) {
		const struct gp_mlfq_task *t = gp_policy_task(view, view->task[i].gang);

		if (view->task[i].class == GP_UNMANAGED || !c->sunk)
			continue;
		if (t->level == GP_MLFQ_TOP || shared)
			plan->task[i].slice_us = long_us;
		else if (one_runs && c->top && t->entity.members == 1)
			plan->task[i].slice_us = gp_slice_param(view, GP_MLFQ_YIELD);
	}
}

/*
 * The length of an aging window. Other tasks run beside the entity, so the window is long enough
 * for the hardware to reach it. It is short enough for the other entities below not to starve.
 */
static uint64_t aging_length(const struct gp_view *view, const struct gp_mlfq_counts *c)
{
	uint64_t each_ns = view->slice_default_us * 1000ull + view->switch_cost_ns, round_ns = 0;
	uint64_t most_ns = view->starve_limit_ns / 4 / (c->below + 1);

	for (uint32_t i = 0; i < view->n; i++)
		round_ns += gp_seen_idle(&view->task[i]) ? 0 : each_ns;
	round_ns = gp_least(round_ns, most_ns);
	return round_ns > GP_MLFQ_AGING_NS ? round_ns : GP_MLFQ_AGING_NS;
}

/* Opens an aging window for the entity below the top that has waited longest. */
static void open_aging_window(const struct gp_view *view, const struct gp_mlfq_counts *c)
{
	struct gp_mlfq_device *d = view->state->device;
	uint32_t longest_waiting = c->below_only;

	for (uint32_t i = 0; i < view->n; i++) {
		const struct gp_mlfq_task *t = gp_policy_task(view, i);
		const struct gp_mlfq_task *h = gp_policy_task(view, longest_waiting);

		if (t->entity.members && t->entity.rotating && t->ran_ns < h->ran_ns)
			longest_waiting = i;
	}
	d->aging_until_ns = view->now_ns + aging_length(view, c);
	gp_rotation_give(view, &d->rotation, longest_waiting, d->aging_until_ns - view->now_ns,
			 true);
}

/* Whether entities below must wait for the top level. Opens an aging window when it is due. */
static bool is_barred(const struct gp_view *view, const struct gp_mlfq_counts *c, uint32_t room,
		      struct gp_plan *plan)
{
	struct gp_mlfq_device *d = view->state->device;
	uint64_t due_ns;

	if (!c->top_works || !c->below || c->tasks > room || !gp_is_prompt(view)) {
		d->barred_ns = 0;
		return false;
	}
	if (!d->barred_ns)
		d->barred_ns = view->now_ns;
	due_ns = aging_due_at(view, c->below);
	if (view->now_ns >= due_ns && view->now_ns >= d->aging_until_ns) {
		open_aging_window(view, c);
		d->barred_ns = d->aging_until_ns;
	}
	if (view->now_ns < d->aging_until_ns)
		due_ns = d->aging_until_ns;
	gp_plan_wake_at(plan, due_ns);
	return view->now_ns >= d->aging_until_ns;
}

static int mlfq_decide(const struct gp_view *view, struct gp_plan *plan)
{
	struct gp_mlfq_device *d = view->state->device;
	uint32_t user_held = gp_entities_gather(view);
	uint32_t room = gp_room_for_holds(view, user_held);
	bool slices = view->caps & GP_CAP_SLICE, rotates, barred = false;
	struct gp_mlfq_counts c;

	gp_mlfq_set_levels(view, param_ms(view, GP_MLFQ_SHORT), plan);
	c = take_counts(view);
	if (!gp_is_prompt(view))
		weigh_turns(view, &c);
	rotates = rotate(view, room, c.below, plan);
	if (!slices)
		barred = is_barred(view, &c, room, plan);
	plan_holds(view, rotates, barred, plan);
	if (slices)
		plan_slices(view, &c, rotates, plan);
	if (rotates)
		gp_plan_wake_at(plan, d->rotation.ends_ns);
	return 0;
}

const struct gp_policy_ops gp_policy_mlfq = {
	.name = "mlfq",
	.summary = "feedback levels, for tasks without attributes",
	.param = mlfq_params,
	.nparam = sizeof mlfq_params / sizeof *mlfq_params,
	.device_state = sizeof(struct gp_mlfq_device),
	.task_state = sizeof(struct gp_mlfq_task),
	.watches = true,
	.decide = mlfq_decide,
};
