/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slices or windows, and how long the windows are.
 *
 * With a tiny slice every request has two switches to itself, s each. A service that is busy for
 * u of the time with requests of r leaves best-effort work
 *     1 - u - 2 s u / r,
 * which is little when r is short against s, and nothing when requests come faster than one per
 * r + 2 s: then the service itself falls behind, since it too loses the GPU in every gap.
 *
 * In windows, requests share the switches: best-effort work runs undisturbed for W, then it is
 * held for H, in which the service does what has gathered, back to back, and keeps the GPU in its
 * gaps. The request that waits longest came when the window opened: W + s + r, and what it waits
 * for others (qos_line.c). So W follows from the target, and H from u: the mean of what gathers,
 * and of its spread what one request in a hundred may meet. That leaves about (W - s) / (W + H).
 *
 * Both are estimated from measured run times; the better one is taken, and kept for a while.
 */
#include "policy/qos.h"

#define GAIN_PPM     60000  /* windows are worth later answers from this on ... */
#define LOSS_PPM     20000  /* ... and not worth it any more from this on */
#define DROWNING_PPM 150000 /* with less, it runs only in gaps that bring nobody forward */
#define FAILS        2      /* periods in a row: one may be noise */
#define BACKOFF_NS   (10000 * GP_MS)
#define BACKOFF_MOST (8 * BACKOFF_NS)
#define LONGEST_NS   (1000 * GP_MS) /* of a request: longer ones are not worth the arithmetic */
#define OPEN_LEAST   (GP_MS / 100)  /* of a window, also where switching costs nothing */
#define PROBE_KEEPS  4 /* run times that hold idle time: slices, and a new measurement, so often */

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t most(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t square_root(uint64_t n)
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

/* The part of the time for which requests keep the service busy, with the host's time. */
static uint64_t load_of(const struct gp_policy_state *state)
{
	const struct qos_device *d = state->device;

	return least(d->lc_ppm * each_request(state) / most(d->request_ns, 1), GP_PPM);
}

/* What gathers in `open_ns`, while that is done, and so on. For requests that come at random: with
 * 9/4 standard deviations, 99 of 100 are answered in time (tried from 600 to 3,000 a second). */
static uint64_t work_behind(const struct gp_policy_state *state, uint64_t open_ns, bool with_spread)
{
	uint64_t each_ns = each_request(state), load_ppm = load_of(state), work_ns = 0;

	for (int i = 0; i < 24; i++) {
		uint64_t mean_ns = (open_ns + work_ns) * load_ppm / GP_PPM;

		work_ns = mean_ns;
		if (with_spread)
			work_ns += 9 * square_root(mean_ns * each_ns) / 4;
	}
	return work_ns;
}

/* The longest after which 99 of 100 requests are still answered in time. */
static uint64_t longest_window(const struct gp_view *view, const struct gp_policy_state *state,
                               const struct qos_crew *crew, bool *keeps)
{
	uint64_t shortest_ns = most(most(view->hold_cost_ns, 2 * view->switch_cost_ns), OPEN_LEAST);
	uint64_t each_ns = each_request(state), load_ppm = load_of(state);
	uint64_t open_ns = param_ns(state, WINDOW);
	const struct qos_device *d = state->device;

	for (int i = 0; crew->target_ns && i < 4; i++) {
		uint64_t answer_ns = view->switch_cost_ns + each_ns +
		                     gp_qos_line(each_ns, load_ppm, open_ns + view->switch_cost_ns);

		open_ns = crew->target_ns > answer_ns ? crew->target_ns - answer_ns : 0;
		open_ns = least(open_ns, param_ns(state, WINDOW));
	}
	*keeps = open_ns >= shortest_ns;
	if (*keeps || !d->refuses)
		return most(open_ns, shortest_ns);
	/* It is missed in any case: not with more switches than need be. */
	open_ns = crew->target_ns - least(crew->target_ns, view->switch_cost_ns + 2 * each_ns);
	return most(least(open_ns, param_ns(state, WINDOW)), shortest_ns);
}

/*
 * Where it is seen when there is work, a window stays open until the first request, on average for
 * r / u, and best-effort work is back a release after the last one. Returns by how much longer the
 * line may be than on average, of which two standard deviations are counted.
 */
static uint64_t estimate_seen(const struct gp_view *view, const struct gp_policy_state *state,
                              struct qos_windows *w)
{
	const struct qos_device *d = state->device;
	uint64_t first_ns = d->request_ns * GP_PPM / most(d->lc_ppm, 1);
	uint64_t run_ns = w->open_ns + least(first_ns, 1000 * GP_MS);
	uint64_t lost_ns = view->switch_cost_ns + view->release_cost_ns;
	uint64_t load_ppm = least(load_of(state), GP_PPM * 49 / 50);

	w->shut_ns = lost_ns + work_behind(state, w->open_ns + lost_ns, false);
	w->be_ppm = (run_ns - view->switch_cost_ns * 5 / 4) * GP_PPM / (run_ns + w->shut_ns);
	return 2 * square_root(w->shut_ns * each_request(state)) * GP_PPM / (GP_PPM - load_ppm);
}

/* So that best-effort work has `floor_ppm` also beside a service that gives the GPU up only at the
 * end of its slice. */
static uint64_t shut_at_most(const struct gp_view *view, const struct gp_policy_state *state,
                             uint64_t open_ns, uint64_t floor_ppm)
{
	uint64_t late_ns = (uint64_t)state->param[LC_SHARED_SLICE] * 1000 / 2;
	uint64_t run_ns = open_ns - view->switch_cost_ns * 5 / 4;
	uint64_t round_ns = (run_ns > 2 * late_ns ? run_ns - late_ns : run_ns) * GP_PPM / floor_ppm;

	return most(round_ns > open_ns ? round_ns - open_ns : 0,
	            view->release_cost_ns + view->switch_cost_ns);
}

static struct qos_windows plan_windows(const struct gp_view *view,
                                       const struct gp_policy_state *state,
                                       const struct qos_crew *crew)
{
	uint64_t switch_ns = view->switch_cost_ns, least_ns = view->release_cost_ns + switch_ns;
	uint64_t floor_ppm = most((uint64_t)state->param[FLOOR] * 1000, crew->share_ppm);
	const struct qos_device *d = state->device;
	struct qos_windows w = {0};
	uint64_t spread_ns = 0;

	floor_ppm = least(floor_ppm, GP_PPM * 9 / 10);
	w.open_ns = longest_window(view, state, crew, &w.keeps);
	w.most_ns = shut_at_most(view, state, w.open_ns, floor_ppm);
	if (crew->untargeted) /* for shares alone */
		w.shut_ns = w.most_ns;
	else if (crew->seen_at_once)
		spread_ns = estimate_seen(view, state, &w);
	else
		w.shut_ns =
			most(switch_ns + work_behind(state, w.open_ns + switch_ns, true), least_ns);
	w.keeps &= w.shut_ns + spread_ns <= (w.be_ppm > 2 * floor_ppm ? 4 : 1) * w.most_ns &&
	           !crew->untargeted;
	/* The floor counts over some time: work that has more is not let into a long line. */
	if (crew->seen_at_once && d->be_ppm > 3 * floor_ppm / 2)
		w.most_ns *= 4;
	w.shut_ns = least(w.shut_ns, w.most_ns);
	if (!w.be_ppm)
		w.be_ppm = (w.open_ns - switch_ns * 5 / 4) * GP_PPM / (w.open_ns + w.shut_ns);
	return w;
}

/* What a tiny slice leaves best-effort work. */
static uint64_t left_by_slices(const struct gp_view *view, const struct qos_device *d)
{
	uint64_t taken_ppm = d->lc_ppm;

	if (d->request_ns)
		taken_ppm += d->lc_ppm * 2 * view->switch_cost_ns / d->request_ns;
	return taken_ppm < GP_PPM ? GP_PPM - taken_ppm : 0;
}

/* Whether requests are answered in time with a tiny slice. Each occupies the GPU for r + 2 s. */
static bool slices_keep(const struct gp_view *view, const struct gp_policy_state *state,
                        const struct qos_crew *crew, uint64_t left_ppm)
{
	const struct qos_device *d = state->device;
	uint64_t each_ns = d->request_ns + 2 * view->switch_cost_ns;
	uint64_t answer_ns = view->switch_cost_ns + each_request(state);

	if (left_ppm < most(crew->share_ppm, DROWNING_PPM))
		return false;
	answer_ns += gp_qos_line(each_ns, GP_PPM - left_ppm, view->switch_cost_ns);
	return !crew->target_ns || answer_ns <= crew->target_ns;
}

/* By more than periods do by chance. */
static bool differs(uint64_t a, uint64_t b)
{
	return a > b + b / 8 || b > a + a / 8;
}

/* From what was lost beside service and best-effort work: two switches a request. */
static void measure_request(const struct gp_view *view, struct qos_device *d,
                            const struct qos_crew *crew)
{
	uint64_t ran_ppm = d->lc_ppm + d->be_ppm, request_ns;

	if (crew->budget_ns) {
		d->request_ns = least(crew->budget_ns, LONGEST_NS);
		return;
	}
	if (d->windows || !d->lc_ppm || ran_ppm >= GP_PPM)
		return;
	request_ns = d->lc_ppm * 2 * view->switch_cost_ns / (GP_PPM - ran_ppm);
	request_ns = most(request_ns, GP_MS / 100);
	d->request_ns = d->request_ns ? (3 * d->request_ns + request_ns) / 4 : request_ns;
}

/*
 * In windows, the run time of a service that uses all the time it has says only that it wants more,
 * or that the device counts its idle time too. The latter shows when slices are tried again: then
 * only what is measured with slices is believed.
 */
static void measure_lc(const struct gp_view *view, const struct gp_policy_state *state,
                       const struct qos_crew *crew, uint64_t lc_ppm)
{
	struct qos_device *d = state->device;

	if (!d->windows) {
		d->counts_idle = (d->counts_idle || (d->set.open_ns && lc_ppm < d->lc_ppm / 2)) &&
		                 d->be_ppm >= DROWNING_PPM;
		d->lc_ppm = lc_ppm;
	} else if (crew->seen_at_once || !gp_qos_is_full(view, state)) {
		d->lc_ppm = differs(lc_ppm, d->lc_ppm) ? lc_ppm : (3 * d->lc_ppm + lc_ppm) / 4;
	} else if (!d->counts_idle) {
		d->lc_ppm = least(most(lc_ppm, d->lc_ppm) * 3 / 2, GP_PPM);
	}
}

/*
 * The service ran in the very gaps between its requests: see measure_lc. The first time that is
 * looked into at once, or a service that has time to spare is given more and more of it.
 */
static bool wants_probe(const struct gp_view *view, const struct gp_policy_state *state,
                        const struct qos_crew *crew)
{
	const struct qos_device *d = state->device;
	uint64_t time_ns =
		d->book.shut_ns - least(d->book.shut_ns, d->book.shuts * view->switch_cost_ns);
	uint64_t wait_ns = d->probed ? PROBE_KEEPS * param_ns(state, KEEP) : 0;

	return !crew->seen_at_once && gap_ns(state) && time_ns &&
	       d->book.lc_ns >= time_ns - time_ns / 32 && view->now_ns >= d->chosen_ns + wait_ns;
}

/*
 * Windows are to leave best-effort work more than it had, or the service. If neither has more,
 * nobody wanted it: what slices seemed to lose was idle time. Not again for a while, unless the
 * service has more to do by then.
 */
static bool windows_failed(const struct gp_view *view, struct qos_device *d)
{
	bool drowned = d->be_before_ppm < DROWNING_PPM; /* then the gain must be large */

	if (!d->windows || d->be_ppm >= d->be_before_ppm + (drowned ? GAIN_PPM : LOSS_PPM / 4) ||
	    d->lc_ppm > d->lc_before_ppm + d->lc_before_ppm / 8) {
		d->fails = 0;
		return false;
	}
	if (++d->fails < FAILS && !drowned)
		return false;
	d->backoff_ns = least(most(2 * d->backoff_ns, BACKOFF_NS), BACKOFF_MOST);
	d->retry_ns = view->now_ns + d->backoff_ns;
	return true;
}

static bool may_try_windows(const struct gp_view *view, const struct qos_device *d)
{
	return view->now_ns >= d->retry_ns || d->lc_ppm > d->lc_before_ppm + d->lc_before_ppm / 2;
}

static bool prefers_windows(const struct gp_view *view, const struct gp_policy_state *state,
                            const struct qos_crew *crew, const struct qos_windows *w,
                            bool slices_keep_it)
{
	const struct qos_device *d = state->device;
	uint64_t left_ppm = left_by_slices(view, d);
	uint64_t had_ppm = d->windows ? left_ppm : d->be_ppm + LOSS_PPM;

	if (!may_try_windows(view, d))
		return false;
	if (least(left_ppm, had_ppm) < crew->share_ppm)
		return true;
	if (crew->untargeted)
		return false;
	if (left_ppm < DROWNING_PPM)
		return true; /* also where they do not keep the target: nothing does better */
	/* A guess at the length of requests is not enough to gamble with them: they may be of many
	 * kernels, and come in bursts. */
	if (!crew->seen_at_once && !crew->budget_ns)
		return false;
	if (!w->keeps || !slices_keep_it)
		return w->keeps;
	return d->windows ? w->be_ppm + LOSS_PPM > left_ppm : w->be_ppm > left_ppm + GAIN_PPM;
}

/* A promise is taken back or given when that has looked right for a while. */
static void judge(const struct gp_view *view, const struct gp_policy_state *state, bool refuses)
{
	struct qos_device *d = state->device;

	if (refuses == d->refuses)
		d->verdict_ns = 0;
	else if (!d->verdict_ns)
		d->verdict_ns = view->now_ns;
	else if (view->now_ns >= d->verdict_ns + param_ns(state, KEEP))
		d->refuses = refuses;
}

void gp_qos_choose(const struct gp_view *view, const struct gp_policy_state *state,
                   const struct qos_crew *crew)
{
	struct qos_device *d = state->device;
	uint64_t had_ns = view->now_ns - d->book.from_ns;
	bool windows, failed, keeps, stands;
	struct qos_windows w;

	d->between_ns = crew->lc > 1 ? view->switch_cost_ns : 0;
	d->be_ppm = d->book.be_ns * GP_PPM / had_ns;
	measure_lc(view, state, crew, d->book.lc_ns * GP_PPM / had_ns);
	measure_request(view, d, crew);
	w = plan_windows(view, state, crew);
	keeps = slices_keep(view, state, crew, left_by_slices(view, d));
	failed = windows_failed(view, d);
	windows = !failed && prefers_windows(view, state, crew, &w, keeps);
	judge(view, state, !keeps && !w.keeps);
	if (d->windows && wants_probe(view, state, crew)) {
		d->probed = true;
		d->windows = false;
		d->chosen_ns = 0;
		return;
	}
	stands = d->chosen_ns && view->now_ns < d->chosen_ns + param_ns(state, KEEP);
	if (windows != d->windows && (!stands || failed || d->be_ppm < DROWNING_PPM)) {
		d->windows = windows;
		d->chosen_ns = view->now_ns;
		d->be_before_ppm = d->be_ppm;
		d->lc_before_ppm = d->lc_ppm;
		d->set = w;
		d->shut = false; /* best-effort work runs: a window has just opened */
		d->in_force = true;
		d->phase_ns = view->now_ns;
	} else {
		d->set = w;
	}
}
