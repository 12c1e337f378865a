/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mlfq: whether entities below the top are held and take turns. Used if activity is known late.
 *
 * Turns save switches and shorten the response time of the top level. But an entity that pauses in
 * its turn leaves the device idle while others have work, and that is seen too late. So turns are
 * tried, and given up if the device was less busy than it should be. After each failure they are
 * tried less often.
 */
#include "policy/mlfq/mlfq.h"

/* In thousandths of the time. */
#define STAYS_BUSY   930u /* turns are useful if the device is at least this busy */
#define TOP_COSTS    130u /* subtracted if the top level works: its cost is not measured */
#define CLEARLY_IDLE 650u /* turns are given up at once below this */
#define GAIN         30u  /* turns are useful if they add this much: they save switches */
#define FULL         850u /* without turns the hardware is hardly ever busier */

#define SURE         4u              /* windows until turns are judged */
#define WAIT_NS      (10000 * GP_MS) /* until turns are tried again; doubled after each failure */
#define WAIT_MAX_NS  (16 * WAIT_NS)
#define SELDOM       8u /* the wait is this many times longer if the device is not full */

static void begin_window(const struct gp_view *view, const struct gp_policy_state *state,
			 bool turns)
{
	struct gp_mlfq_device *d = state->device;

	d->window_ns = d->window_run_ns = 0;
	if (d->turns == turns)
		return;
	d->turns = turns;
	d->turns_run_ns = d->turns_ns = 0;
	d->turns_part = 0;
	for (uint32_t i = 0; i < view->n; i++) {
		struct gp_mlfq_task *e = gp_policy_task(state, i);

		e->window_run_ns = e->window_released_ns = 0;
	}
}

/* Time is measured from one growth of a run time to the next: between them a run time is out of
 * date. */
static void note_busy(const struct gp_view *view, const struct gp_policy_state *state)
{
	struct gp_mlfq_device *d = state->device;
	uint64_t got_ns = 0;

	for (uint32_t i = 0; i < view->n; i++)
		got_ns += ((struct gp_mlfq_task *)gp_policy_task(state, i))->got_ns;
	if (!got_ns)
		return;
	if (d->run_grew_ns) {
		d->window_ns += view->now_ns - d->run_grew_ns;
		d->window_run_ns += got_ns;
	}
	d->run_grew_ns = view->now_ns;
}

static bool works_at_top(const struct gp_view *view, const struct gp_policy_state *state)
{
	for (uint32_t i = 0; i < view->n; i++) {
		const struct gp_mlfq_task *e = gp_policy_task(state, i);

		if (e->entity.members && e->level == GP_MLFQ_TOP && e->part)
			return true;
	}
	return false;
}

static void try_turns(const struct gp_view *view, const struct gp_policy_state *state,
		      uint32_t busy)
{
	struct gp_mlfq_device *d = state->device;
	uint64_t wait_ns = d->wait_ns * (busy >= FULL ? 1 : SELDOM);

	d->released_busy = busy;
	begin_window(view, state, view->now_ns >= d->given_up_ns + wait_ns);
}

static void check_turns(const struct gp_view *view, const struct gp_policy_state *state,
			uint32_t busy)
{
	struct gp_mlfq_device *d = state->device;
	uint32_t least = STAYS_BUSY - (works_at_top(view, state) ? TOP_COSTS : 0);
	bool pays = busy >= least || busy >= d->released_busy + GAIN;

	if (!pays) {
		d->given_up_ns = view->now_ns;
		d->wait_ns = d->wait_ns ? 2 * d->wait_ns : WAIT_NS;
		if (d->wait_ns > WAIT_MAX_NS)
			d->wait_ns = WAIT_MAX_NS;
	} else {
		d->wait_ns = 0;
	}
	begin_window(view, state, pays);
}

void gp_mlfq_weigh_turns(const struct gp_view *view, const struct gp_policy_state *state,
			 const struct gp_mlfq_counts *c)
{
	struct gp_mlfq_device *d = state->device;
	uint64_t enough_ns = gp_mlfq_window(view);
	uint32_t busy;

	note_busy(view, state);
	if (c->below < 2) {
		if (d->turns || d->window_ns >= 2 * enough_ns)
			begin_window(view, state, false);
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
		try_turns(view, state, busy);
	else if (busy < CLEARLY_IDLE || d->window_ns >= SURE * enough_ns)
		check_turns(view, state, busy);
}
