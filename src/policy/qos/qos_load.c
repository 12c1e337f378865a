/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How busy the service is, and how well that is known. Of requests that come at random, a number of
 * n is a sample that is off by a part of 1 / sqrt(n): a period has some hundred of them, or ten of
 * long ones, and what follows from that about one request in a hundred is off by several times as
 * much. So periods are added up for as long as they are alike, and what is not sure yet is not
 * acted upon.
 *
 * A service that uses all the time it can have says only that it wants more: such periods set the
 * least that it may want, and are not added up.
 */
#include "policy/qos/qos.h"

#define REQUESTS_MOST 50000 /* that are remembered: what is older counts for less and less */
#define DIFFERS       5     /* standard deviations: the load is another one */
#define DOUBT         2     /* standard deviations: it is not sure that it is not */
#define LINE_LONGEST  1000  /* requests: at loads up to 0.95 there is none in an hour */
#define LONGEST_NS    (1000 * GP_MS) /* of a request: longer ones are not worth the arithmetic */
#define DROWNING_PPM  20000          /* best-effort work has less only where services never pause */
#define IDLE_LEAST    150000 /* with less for best-effort work, nobody's idle time is large */

uint64_t gp_qos_square_root(uint64_t n)
{
	uint64_t low = 0, high = 1ull << 31;

	while (low < high) {
		uint64_t mid = low + (high - low + 1) / 2;

		if (mid * mid <= n)
			low = mid;
		else
			high = mid - 1;
	}
	return low;
}

/* From what was lost beside service and best-effort work: two switches a request. */
static void measure_request(const struct gp_view *view, struct gp_qos_device *d,
                            const struct gp_qos_crew *crew, uint64_t lc_ppm)
{
	uint64_t ran_ppm = lc_ppm + d->be_ppm, request_ns;

	if (crew->budget_ns) {
		d->request_ns = crew->budget_ns < LONGEST_NS ? crew->budget_ns : LONGEST_NS;
		return;
	}
	if (d->windows || !lc_ppm || ran_ppm >= GP_PPM)
		return;
	request_ns = lc_ppm * 2 * view->switch_cost_ns / (GP_PPM - ran_ppm);
	request_ns = request_ns > GP_MS / 100 ? request_ns : GP_MS / 100;
	d->request_ns = d->request_ns ? (3 * d->request_ns + request_ns) / 4 : request_ns;
}

/* Whether the period has more, or less, than chance explains. */
static bool is_another_load(const struct gp_qos_device *d, uint64_t had_ns, uint64_t ran_ns)
{
	uint64_t mean_ns = d->load.ran_ns / (d->load.had_ns / GP_MS + 1) * (had_ns / GP_MS);
	uint64_t off_ns = ran_ns > mean_ns ? ran_ns - mean_ns : mean_ns - ran_ns;
	/* Of this period, and of what it is compared with. */
	uint64_t spread_ns =
		gp_qos_square_root((mean_ns + d->request_ns) * d->request_ns) +
		gp_qos_square_root(mean_ns * d->request_ns) * mean_ns / (d->load.ran_ns + 1);

	return d->load.had_ns && off_ns > DIFFERS * spread_ns;
}

void gp_qos_add_up(struct gp_qos_device *d, uint64_t had_ns, uint64_t ran_ns)
{
	uint64_t requests;

	if (is_another_load(d, had_ns, ran_ns)) {
		d->load = (struct gp_qos_sum){0};
		d->way = (struct gp_qos_sum){0};
	}
	d->load.had_ns += had_ns;
	d->load.ran_ns += ran_ns;
	requests = d->request_ns ? d->load.ran_ns / d->request_ns : 0;
	if (requests > REQUESTS_MOST) {
		d->load.had_ns -= d->load.had_ns / 4;
		d->load.ran_ns -= d->load.ran_ns / 4;
	}
	d->lc_ppm = d->load.ran_ns / (d->load.had_ns / GP_PPM + 1);
	d->lc_ppm = d->lc_ppm < GP_PPM ? d->lc_ppm : GP_PPM;
	d->doubt_ppm = DOUBT * GP_PPM / (gp_qos_square_root(requests) + 1);
	d->doubt_ppm = d->doubt_ppm < GP_PPM ? d->doubt_ppm : GP_PPM;
}

/*
 * The device may count the idle time of a service that is alone, too. That shows when slices are
 * tried again: then only what is measured with slices is believed.
 */
static void look_for_idle(struct gp_qos_device *d, uint64_t lc_ppm)
{
	bool less = d->set.open_ns && lc_ppm < d->lc_ppm / 2;

	d->counts_idle = (d->counts_idle || less) && d->be_ppm >= IDLE_LEAST;
	if (less)
		d->load = (struct gp_qos_sum){0};
}

void gp_qos_note_full(struct gp_qos_device *d, bool full, uint64_t ran_ns)
{
	d->full_ns = full ? d->full_ns + ran_ns : 0;
	d->full = full && d->full_ns >= LINE_LONGEST * d->request_ns;
}

/* With less, best-effort work had no pause of the service's to itself. What it needs to be back
 * after an interruption counts as run time too: a quarter of a switch, where that was measured. */
static uint64_t least_in_pauses(const struct gp_view *view, const struct gp_qos_device *d)
{
	uint64_t each_ns = d->request_ns + 2 * view->switch_cost_ns;

	return DROWNING_PPM + (each_ns ? view->switch_cost_ns / 4 * GP_PPM / each_ns : 0);
}

/* Whether the service used all the time it could have. */
static bool is_full(const struct gp_view *view, const struct gp_policy_state *state,
                    const struct gp_qos_crew *crew)
{
	struct gp_qos_device *d = state->device;
	const struct gp_priority_device *p = &d->priority;
	/* Best-effort work is let in when it gets nothing: that is no pause. */
	bool aging = p->age_until_ns || p->aged_ns > d->book.from_ns;
	bool full = !d->windows ? (d->be_ppm < least_in_pauses(view, d) || aging) && d->book.lc_ns
	            : crew->seen_at_once ? 2 * d->book.cuts > d->book.shuts
	                                 : gp_qos_is_full(view, state);

	gp_qos_note_full(d, full, d->book.lc_ns);
	if (d->windows && !crew->seen_at_once)
		d->full = full; /* chance is allowed for */
	return d->full;
}

void gp_qos_learn_load(const struct gp_view *view, const struct gp_policy_state *state,
                       const struct gp_qos_crew *crew)
{
	struct gp_qos_device *d = state->device;
	uint64_t had_ns = view->now_ns - d->book.from_ns;
	uint64_t lc_ppm = d->book.lc_ns * GP_PPM / had_ns;

	d->be_ppm = d->book.be_ns * GP_PPM / had_ns;
	d->way.had_ns += had_ns;
	d->way.ran_ns += d->book.be_ns;
	if (!d->windows)
		look_for_idle(d, lc_ppm);
	measure_request(view, d, crew, lc_ppm);
	if (!is_full(view, state, crew)) {
		gp_qos_add_up(d, had_ns, d->book.lc_ns);
		return;
	}
	d->load = (struct gp_qos_sum){0};
	d->doubt_ppm = 0;
	if (lc_ppm < d->lc_ppm)
		lc_ppm = d->lc_ppm;
	if (!d->windows || crew->seen_at_once)
		d->lc_ppm = lc_ppm;
	else if (!d->counts_idle)
		d->lc_ppm = lc_ppm * 3 / 2 < GP_PPM ? lc_ppm * 3 / 2 : GP_PPM;
}
