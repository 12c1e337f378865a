/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who ran how long, period by period. News of run times comes every now and then (on NVIDIA every
 * 20 or 170 ms), so a period ends with some.
 */
#include "policy/qos/qos.h"

#define PERIOD_NS   (250 * GP_MS) /* some hundred requests of a busy service: 5 % of noise */
#define PERIOD_NEWS 3

/* Adds what each task ran since the last look. True when there was anything. */
static bool take_run_times(const struct gp_view *view, const struct gp_policy_state *state)
{
	struct gp_qos_device *d = state->device;
	bool news = false;

	for (uint32_t i = 0; i < view->n; i++) {
		const struct gp_task_view *t = &view->task[i];
		struct gp_qos_task *q = gp_policy_task(state, i);

		q->ran_ns = 0;
		if (!(t->known & GP_KNOWN_RUN))
			continue;
		if (t->run_ns > q->run_ns)
			q->ran_ns = t->run_ns - q->run_ns;
		q->run_ns = t->run_ns;
		news |= q->ran_ns > 0;
		if (t->class == GP_LATENCY_CRITICAL)
			d->book.lc_ns += q->ran_ns;
		else if (t->class == GP_BEST_EFFORT)
			d->book.be_ns += q->ran_ns;
	}
	return news;
}

bool gp_qos_is_full(const struct gp_view *view, const struct gp_policy_state *state)
{
	const struct gp_qos_device *d = state->device;
	uint64_t lost_ns = d->book.shuts * view->switch_cost_ns;
	uint64_t time_ns = d->book.shut_ns > lost_ns ? d->book.shut_ns - lost_ns : 0;
	uint64_t each_ns = each_request(state), ran_ns = d->book.lc_ns;
	/* Gaps may be twice as long as was said; and what it ran by chance is not a sign. */
	uint64_t slow_ns = each_ns ? time_ns * d->request_ns / (each_ns + gap_ns(state)) : 0;
	uint64_t full_ns = each_ns ? time_ns * d->request_ns / each_ns : 0;

	slow_ns += 2 * gp_qos_square_root(ran_ns * d->request_ns);
	if (slow_ns < full_ns)
		full_ns = slow_ns;
	return ran_ns >= full_ns - full_ns / 32;
}

/* The service falls behind. The sooner that ends, the better: one sample is enough. */
static bool is_urgent(const struct gp_view *view, const struct gp_policy_state *state,
                      uint64_t had_ns)
{
	const struct gp_qos_device *d = state->device;

	if (!d->book.lc_ns || had_ns < PERIOD_NS / 2)
		return false;
	return d->windows ? !d->seen_at_once && gp_qos_is_full(view, state)
	                  : d->book.be_ns < had_ns / 4;
}

void gp_qos_open_book(const struct gp_view *view, struct gp_qos_device *d)
{
	d->book = (struct gp_qos_book){.from_ns = view->now_ns, .seen_ns = view->now_ns};
}

bool gp_qos_keep_book(const struct gp_view *view, const struct gp_policy_state *state)
{
	struct gp_qos_device *d = state->device;
	uint64_t period_ns = PERIOD_NEWS * view->sample_period_ns, had_ns;
	bool news = take_run_times(view, state);

	d->told |= news;
	if (!d->book.from_ns) {
		/* What is told in the middle of a period may have been run before it, but for the
		 * first time. */
		if (news || !d->told)
			gp_qos_open_book(view, d);
		return false;
	}
	/* Held from when a hold is in force until a release is. */
	if (d->windows && d->shut == d->in_force)
		d->book.shut_ns += view->now_ns - d->book.seen_ns;
	d->book.seen_ns = view->now_ns;
	if (period_ns < PERIOD_NS)
		period_ns = PERIOD_NS;
	had_ns = view->now_ns - d->book.from_ns;
	if (news && is_urgent(view, state, had_ns))
		return true;
	/* Without news in all that time, nobody ran. */
	return had_ns >= period_ns && (news || had_ns >= 4 * period_ns);
}
