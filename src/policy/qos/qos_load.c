/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Run times, period by period; how busy the service is, and how certain that is. Run times are
 * updated at intervals (on NVIDIA every 20 or 170 ms), so a period ends with an update.
 *
 * If n requests come at random, the measured load has a relative error of 1 / sqrt(n). A period has
 * some hundred requests, or ten long ones. A conclusion about one request in a hundred has several
 * times that error. So periods are added up while they are similar, and uncertain results are not
 * used.
 *
 * A service that uses all the time it can have may want more. Such periods are a lower bound of its
 * demand, and are not added up.
 */
#include "policy/qos/qos.h"

#define PERIOD_NS       (250 * GP_MS) /* some hundred requests of a busy service: an error of 5 % */
#define PERIOD_UPDATES  3

#define REQUESTS_MOST   50000          /* number of requests after which older ones lose weight */
#define DIFFERS         5              /* standard deviations from which the load has changed */
#define DOUBT           2              /* standard deviations of uncertainty */
#define BACKLOG_LONGEST 1000           /* requests in a row; loads up to 0.95 reach less in 1 h */
#define LONGEST_NS      (1000 * GP_MS) /* upper limit of a request's length */
#define OVERLOAD_PPM    20000          /* part of best-effort work if services never pause */
#define IDLE_LEAST      150000         /* part below which idle time is not counted as run time */

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

/* Periods. */

/* Adds the run time of each task since the last tick. Returns true if one has grown. */
static bool take_run_times(const struct gp_view *view)
{
	struct gp_qos_device *d = view->state->device;
	bool fresh = false;

	for (uint32_t i = 0; i < view->n; i++) {
		const struct gp_task_view *t = &view->task[i];
		struct gp_qos_task *q = gp_policy_task(view, i);

		q->ran_ns = 0;
		if (!(t->known & GP_KNOWN_RUN))
			continue;
		if (t->run_ns > q->run_ns)
			q->ran_ns = t->run_ns - q->run_ns;
		q->run_ns = t->run_ns;
		fresh |= q->ran_ns > 0;
		if (t->class == GP_LATENCY_CRITICAL)
			d->period.lc_ns += q->ran_ns;
		else if (t->class == GP_BEST_EFFORT)
			d->period.be_ns += q->ran_ns;
	}
	return fresh;
}

/* In windows: whether the service ran for all the time that it could have, apart from its gaps. */
static bool fills_windows(const struct gp_view *view)
{
	const struct gp_qos_device *d = view->state->device;
	uint64_t lost_ns = d->period.shuts * view->switch_cost_ns;
	uint64_t time_ns = gp_less(d->period.shut_ns, lost_ns);
	uint64_t each_ns = each_request(view), ran_ns = d->period.lc_ns;
	/* Gaps may be twice as long as declared, and run time varies by chance. */
	uint64_t slow_ns = each_ns ? time_ns * d->request_ns / (each_ns + gap_ns(view)) : 0;
	uint64_t full_ns = each_ns ? time_ns * d->request_ns / each_ns : 0;

	slow_ns += 2 * gp_qos_square_root(ran_ns * d->request_ns);
	full_ns = gp_least(full_ns, slow_ns);
	return ran_ns >= full_ns - full_ns / 32;
}

/* Whether the service cannot keep up. That should end soon, so one sample is enough evidence. */
static bool is_urgent(const struct gp_view *view, uint64_t had_ns)
{
	const struct gp_qos_device *d = view->state->device;

	if (!d->period.lc_ns || had_ns < PERIOD_NS / 2)
		return false;
	return d->windows ? !d->seen_at_once && fills_windows(view) : d->period.be_ns < had_ns / 4;
}

void gp_qos_begin_period(const struct gp_view *view, struct gp_qos_device *d)
{
	d->period = (struct gp_qos_period){.from_ns = view->now_ns, .seen_ns = view->now_ns};
}

bool gp_qos_account(const struct gp_view *view)
{
	struct gp_qos_device *d = view->state->device;
	uint64_t period_ns = PERIOD_UPDATES * view->sample_period_ns, had_ns;
	bool fresh = take_run_times(view);

	d->run_seen |= fresh;
	if (!d->period.from_ns) {
		/* A run time that is reported in the middle of a period may be older than the
		 * period, except for the first one. */
		if (fresh || !d->run_seen)
			gp_qos_begin_period(view, d);
		return false;
	}
	/* Best-effort work is held from the time that a hold takes effect until a release does. */
	if (d->windows && d->shut == d->in_force)
		d->period.shut_ns += view->now_ns - d->period.seen_ns;
	d->period.seen_ns = view->now_ns;
	period_ns = gp_most(period_ns, PERIOD_NS);
	had_ns = view->now_ns - d->period.from_ns;
	if (fresh && is_urgent(view, had_ns))
		return true;
	/* After 4 periods without growth no task ran, and the period ends, too. */
	return had_ns >= period_ns && (fresh || had_ns >= 4 * period_ns);
}

/* The load. */

/* Estimates the length of a request from the time that was lost: two switches per request. */
static void measure_request(const struct gp_view *view, struct gp_qos_device *d,
			    const struct gp_qos_counts *counts, uint64_t lc_ppm)
{
	uint64_t ran_ppm = lc_ppm + d->be_ppm, request_ns;

	if (counts->budget_ns) {
		d->request_ns = counts->budget_ns < LONGEST_NS ? counts->budget_ns : LONGEST_NS;
		return;
	}
	if (d->windows || !lc_ppm || ran_ppm >= GP_PPM)
		return;
	request_ns = lc_ppm * 2 * view->switch_cost_ns / (GP_PPM - ran_ppm);
	request_ns = request_ns > GP_MS / 100 ? request_ns : GP_MS / 100;
	d->request_ns = d->request_ns ? (3 * d->request_ns + request_ns) / 4 : request_ns;
}

/* Whether the period differs by more than chance explains. */
static bool is_another_load(const struct gp_qos_device *d, uint64_t had_ns, uint64_t ran_ns)
{
	uint64_t mean_ns = d->load.ran_ns / (d->load.had_ns / GP_MS + 1) * (had_ns / GP_MS);
	uint64_t off_ns = ran_ns > mean_ns ? ran_ns - mean_ns : mean_ns - ran_ns;
	/* The standard deviation of this period plus that of the sum it is compared with. */
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
		d->be_sum = (struct gp_qos_sum){0};
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
 * The device may count idle time of a service that is alone as run time. This shows when slices are
 * tried again: the load is much lower. Then only measurements with slices are used.
 */
static void check_idle_counted(struct gp_qos_device *d, uint64_t lc_ppm)
{
	bool less = d->set.open_ns && lc_ppm < d->lc_ppm / 2;

	d->counts_idle = (d->counts_idle || less) && d->be_ppm >= IDLE_LEAST;
	if (less)
		d->load = (struct gp_qos_sum){0};
}

void gp_qos_note_full(struct gp_qos_device *d, bool full, uint64_t ran_ns)
{
	d->full_ns = full ? d->full_ns + ran_ns : 0;
	d->full = full && d->full_ns >= BACKLOG_LONGEST * d->request_ns;
}

/* If best-effort work has less than this part, it ran in no pause of the service. Restoring its
 * state after an interruption counts as run time, too. Measured: a quarter of a switch. */
static uint64_t least_in_pauses(const struct gp_view *view, const struct gp_qos_device *d)
{
	uint64_t each_ns = d->request_ns + 2 * view->switch_cost_ns;

	return OVERLOAD_PPM + (each_ns ? view->switch_cost_ns / 4 * GP_PPM / each_ns : 0);
}

/* Whether the service used all the time it could have. */
static bool is_full(const struct gp_view *view, const struct gp_qos_counts *counts)
{
	struct gp_qos_device *d = view->state->device;
	const struct gp_priority_device *p = &d->priority;
	/* In an aging window best-effort work runs although the service does not pause. */
	bool aging = p->age_until_ns || p->aged_ns > d->period.from_ns;
	bool full = !d->windows ? (d->be_ppm < least_in_pauses(view, d) || aging) && d->period.lc_ns
		    : counts->seen_at_once ? 2 * d->period.cuts > d->period.shuts
					   : fills_windows(view);

	gp_qos_note_full(d, full, d->period.lc_ns);
	if (d->windows && !counts->seen_at_once)
		d->full = full; /* fills_windows already allows for chance */
	return d->full;
}

void gp_qos_learn_load(const struct gp_view *view, const struct gp_qos_counts *counts)
{
	struct gp_qos_device *d = view->state->device;
	uint64_t had_ns = view->now_ns - d->period.from_ns;
	uint64_t lc_ppm = d->period.lc_ns * GP_PPM / had_ns;

	d->be_ppm = d->period.be_ns * GP_PPM / had_ns;
	d->be_sum.had_ns += had_ns;
	d->be_sum.ran_ns += d->period.be_ns;
	if (!d->windows)
		check_idle_counted(d, lc_ppm);
	measure_request(view, d, counts, lc_ppm);
	if (!is_full(view, counts)) {
		gp_qos_add_up(d, had_ns, d->period.lc_ns);
		return;
	}
	d->load = (struct gp_qos_sum){0};
	d->doubt_ppm = 0;
	if (lc_ppm < d->lc_ppm)
		lc_ppm = d->lc_ppm;
	if (!d->windows || counts->seen_at_once)
		d->lc_ppm = lc_ppm;
	else if (!d->counts_idle)
		d->lc_ppm = lc_ppm * 3 / 2 < GP_PPM ? lc_ppm * 3 / 2 : GP_PPM;
}
