/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Estimates for slices and for windows.
 *
 * With a tiny slice every request causes two switches of length s. A service with requests of
 * length r that is busy for the part u of the time leaves to best-effort work
 * 1 - u - 2 s u / r.
 * This part is small if r is short compared with s. It is 0 if requests come faster than one per
 * r + 2 s. Then the service itself cannot keep up, because it loses the GPU in every gap.
 *
 * In windows, requests share the switches. Best-effort work runs undisturbed for W, then it is held
 * for H. During H the service answers the collected requests one after the other, and keeps the GPU
 * in its gaps. The request that waits longest came when the window opened: it takes W + s + r, and
 * the time that it waits for other requests (below). So the target determines W. H follows from u:
 * the mean of the collected work, plus a margin for one request in a hundred. Best-effort work is
 * left about (W - s) / (W + H).
 */
#include "policy/qos/qos.h"

/*
 * How long requests wait for each other: the time that one request in a hundred exceeds.
 *
 * Requests of length e come at random and keep the device busy for the part u of the time. A
 * request that finds no other request waits for B first (the end of a window, or a hold). So it is
 * a queue with a setup time. A request waits as long as without setup (M/D/1), plus B or, if it
 * came during the setup, the rest of B. The tail of the M/D/1 waiting time is C exp(-x t / e) with
 *     u = x / (exp(x) - 1),  C = (1 - u) / (u exp(x) - 1).
 * So the part of all requests that waits for more than B + h is
 *     C (1 + u / x (1 - exp(-x B / e))) / (1 + u B / e) exp(-x h / e).
 * Bursts make requests wait longer. All numbers are in ppm.
 */

#define LOAD_LEAST (GP_PPM / 1000)
#define EACH_MOST  (1000 * GP_MS)
#define SETUP_MOST (1000 * GP_MS)
#define SLOPE_MOST (8 * GP_PPM) /* upper limit of x; x is 7.9 at the smallest load */

/*
 * The natural logarithm of `n` >= 1, both in millionths. Powers of two are taken out; for the rest,
 * 1 <= n < 2, the series 2 (w + w^3 / 3 + w^5 / 5) with w = (n - 1) / (n + 1) is off by less than
 * 0.0002.
 */
static uint64_t logarithm(uint64_t n)
{
	const uint64_t of_two = 693147;
	uint64_t whole = 0, w, square;

	for (; n >= 2 * GP_PPM; n /= 2)
		whole += of_two;
	w = n > GP_PPM ? (n - GP_PPM) * GP_PPM / (n + GP_PPM) : 0;
	square = w * w / GP_PPM;
	return whole +
	       2 * (w + w * square / GP_PPM / 3 + w * square / GP_PPM * square / GP_PPM / 5);
}

/* For `x` up to SLOPE_MOST: the series for x / 16, to the 16th power. */
static uint64_t exponential(uint64_t x)
{
	uint64_t part = x / 16, term = GP_PPM, sum = GP_PPM;

	for (uint64_t i = 1; i <= 6; i++) {
		term = term * part / (i * GP_PPM);
		sum += term;
	}
	for (int i = 0; i < 4; i++)
		sum = sum * sum / GP_PPM;
	return sum;
}

/* The x that belongs to a load of `u`: the larger the load, the smaller is x. */
static uint64_t slope_of(uint64_t u)
{
	uint64_t low = 1, high = SLOPE_MOST;

	while (low < high) {
		uint64_t mid = (low + high) / 2;

		if (mid * GP_PPM > u * (exponential(mid) - GP_PPM))
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/*
 * The exact result if fewer than one request in a hundred wait, or if they wait for less than one
 * request: the part (1 - u) exp(u t / e) waits for t at most. The tail formula is not exact there.
 * UINT64_MAX = they wait longer than that.
 */
static uint64_t short_wait(uint64_t each_ns, uint64_t u)
{
	uint64_t wait_ppm;

	if (u <= GP_PPM / 100)
		return 0;
	wait_ppm = logarithm(GP_PPM * 99 / 100 * GP_PPM / (GP_PPM - u)) * GP_PPM / u;
	return wait_ppm < GP_PPM ? each_ns * wait_ppm / GP_PPM : UINT64_MAX;
}

uint64_t gp_qos_wait_for_others(uint64_t each_ns, uint64_t load_ppm, uint64_t setup_ns)
{
	uint64_t u = load_ppm < LOAD_LEAST         ? LOAD_LEAST
		     : load_ppm < GP_QOS_LOAD_MOST ? load_ppm
						   : GP_QOS_LOAD_MOST;
	uint64_t scale = each_ns / EACH_MOST + 1; /* avoids overflow */
	uint64_t x = slope_of(u), power, late, passed, in_setup;

	each_ns /= scale;
	setup_ns /= scale;
	if (!each_ns)
		return 0;
	if (!setup_ns && short_wait(each_ns, u) != UINT64_MAX)
		return short_wait(each_ns, u) * scale;
	setup_ns = setup_ns < SETUP_MOST ? setup_ns : SETUP_MOST;
	power = u * exponential(x) / GP_PPM;
	late = 100 * (GP_PPM - u) * GP_PPM / (power > GP_PPM ? power - GP_PPM : 1);
	/* 1 - exp(-x B / e) */
	passed = x * setup_ns / each_ns;
	in_setup = passed < SLOPE_MOST ? GP_PPM - GP_PPM * GP_PPM / exponential(passed) : GP_PPM;
	late = late * (GP_PPM + u * in_setup / x) / (GP_PPM + u * setup_ns / each_ns);
	return each_ns * logarithm(late) / x * scale;
}

#define OPEN_LEAST (GP_MS / 100) /* shortest window for best-effort work, in ns */

/* The part of the time for which requests keep the service busy, including the host's time. */
static uint64_t load_of(const struct gp_view *view, uint64_t lc_ppm)
{
	const struct gp_qos_device *d = view->state->device;

	return gp_least(lc_ppm * each_request(view) / gp_most(d->request_ns, 1), GP_PPM);
}

/*
 * The work of the requests that come during `open_ns`, of those that come while this work is done,
 * and so on. Requests come at random. With 9/4 standard deviations, 99 of 100 are answered in time
 * (tested with 600 to 3,000 requests per second).
 */
static uint64_t work_behind(const struct gp_view *view, uint64_t load_ppm, uint64_t open_ns,
			    bool with_spread)
{
	uint64_t each_ns = each_request(view), work_ns = 0;

	for (int i = 0; i < 24; i++) {
		uint64_t mean_ns = (open_ns + work_ns) * load_ppm / GP_PPM;

		work_ns = mean_ns;
		if (with_spread)
			work_ns += 9 * gp_qos_square_root(mean_ns * each_ns) / 4;
	}
	return work_ns;
}

/* The time within which 99 of 100 requests are answered, from the end of a window of `open_ns`. */
static uint64_t answer_after(const struct gp_view *view, uint64_t load_ppm, uint64_t open_ns)
{
	uint64_t each_ns = each_request(view);

	return view->switch_cost_ns + each_ns +
	       gp_qos_wait_for_others(each_ns, load_ppm, open_ns + view->switch_cost_ns);
}

/* The longest window after which 99 of 100 requests are still answered in time. */
static uint64_t longest_window(const struct gp_view *view, const struct gp_qos_counts *counts,
			       uint64_t load_ppm, bool *keeps)
{
	uint64_t shortest_ns =
		gp_most(gp_most(view->hold_cost_ns, 2 * view->switch_cost_ns), OPEN_LEAST);
	uint64_t open_ns = param_ns(view, GP_QOS_WINDOW);
	const struct gp_qos_device *d = view->state->device;

	for (int i = 0; counts->target_ns && i < 4; i++) {
		uint64_t answer_ns = answer_after(view, load_ppm, open_ns);

		open_ns = gp_less(counts->target_ns, answer_ns);
		open_ns = gp_least(open_ns, param_ns(view, GP_QOS_WINDOW));
	}
	*keeps = open_ns >= shortest_ns;
	if (*keeps || !d->refuses)
		return gp_most(open_ns, shortest_ns);
	/* The target is missed in any case: avoid unnecessary switches. */
	open_ns = gp_less(counts->target_ns, view->switch_cost_ns + 2 * each_request(view));
	return gp_most(gp_least(open_ns, param_ns(view, GP_QOS_WINDOW)), shortest_ns);
}

/*
 * If activity is known, a window stays open until the first request, on average for r / u.
 * Best-effort work comes back one release after the last request. Returns an upper bound of the
 * time for which windows are closed: the mean and two standard deviations.
 */
static uint64_t estimate_seen(const struct gp_view *view, uint64_t lc_ppm, struct gp_qos_windows *w)
{
	const struct gp_qos_device *d = view->state->device;
	uint64_t first_ns = d->request_ns * GP_PPM / gp_most(lc_ppm, 1);
	uint64_t run_ns = w->open_ns + gp_least(first_ns, 1000 * GP_MS);
	uint64_t lost_ns = view->switch_cost_ns + view->release_cost_ns;
	uint64_t load_ppm = gp_least(load_of(view, lc_ppm), GP_QOS_LOAD_MOST);

	lost_ns += each_request(view); /* the request that closed the window */
	w->shut_ns = lost_ns + work_behind(view, load_ppm, w->open_ns + lost_ns, false);
	w->be_ppm = (run_ns - view->switch_cost_ns * 5 / 4) * GP_PPM / (run_ns + w->shut_ns);
	return w->shut_ns + 2 * gp_qos_square_root(w->shut_ns * each_request(view)) * GP_PPM /
				    (GP_PPM - load_ppm);
}

/* The longest time for which a window may be closed, so that best-effort work has `floor_ppm` of
 * the time even beside a service that gives the GPU up only at the end of its slice. */
static uint64_t shut_at_most(const struct gp_view *view, uint64_t open_ns, uint64_t floor_ppm)
{
	uint64_t late_ns = gp_param(view, GP_PRIORITY_LC_SHARED_SLICE) * 1000 / 2;
	uint64_t run_ns = open_ns - view->switch_cost_ns * 5 / 4;
	uint64_t round_ns = (run_ns > 2 * late_ns ? run_ns - late_ns : run_ns) * GP_PPM / floor_ppm;

	return gp_most(gp_less(round_ns, open_ns), view->release_cost_ns + view->switch_cost_ns);
}

/* Best-effort work can be held for `most_ns` at most. A backlog that takes longer waits for another
 * window. If the average backlog takes longer, it never ends. */
static void allow_for_floor(const struct gp_qos_counts *counts, uint64_t mean_ns,
			    uint64_t longest_ns, uint64_t most_ns, struct gp_qos_windows *w)
{
	uint64_t again_ns = (longest_ns - 1) / most_ns * w->open_ns;

	if (counts->untargeted || mean_ns > most_ns)
		w->late_ns = UINT64_MAX;
	else
		w->late_ns += again_ns;
	w->keeps &= !again_ns || w->late_ns <= counts->target_ns;
	w->keeps &= w->late_ns != UINT64_MAX;
}

struct gp_qos_windows gp_qos_plan_windows(const struct gp_view *view,
					  const struct gp_qos_counts *counts, uint64_t lc_ppm)
{
	uint64_t switch_ns = view->switch_cost_ns, least_ns = view->release_cost_ns + switch_ns;
	uint64_t floor_ppm = gp_most(gp_param(view, GP_QOS_FLOOR) * 1000, counts->share_ppm);
	uint64_t load_ppm = load_of(view, lc_ppm), mean_ns, longest_ns;
	const struct gp_qos_device *d = view->state->device;
	struct gp_qos_windows w = {0};

	floor_ppm = gp_least(floor_ppm, GP_PPM * 9 / 10);
	w.open_ns = longest_window(view, counts, load_ppm, &w.keeps);
	w.late_ns = w.open_ns + answer_after(view, load_ppm, w.open_ns);
	w.most_ns = shut_at_most(view, w.open_ns, floor_ppm);
	mean_ns = switch_ns + work_behind(view, load_ppm, w.open_ns + switch_ns, false);
	if (counts->untargeted) { /* windows serve only the shares */
		w.shut_ns = longest_ns = w.most_ns;
	} else if (counts->seen_at_once) {
		longest_ns = estimate_seen(view, lc_ppm, &w);
		mean_ns = w.shut_ns;
	} else {
		longest_ns = switch_ns + work_behind(view, load_ppm, w.open_ns + switch_ns, true);
		w.shut_ns = longest_ns = gp_most(longest_ns, least_ns);
	}
	allow_for_floor(counts, mean_ns, longest_ns, (w.be_ppm > 2 * floor_ppm ? 4 : 1) * w.most_ns,
			&w);
	/* The floor is an average: if best-effort work has clearly more, a long backlog is not
	 * interrupted. */
	if (counts->seen_at_once && d->be_ppm > 3 * floor_ppm / 2)
		w.most_ns *= 4;
	w.shut_ns = gp_least(w.shut_ns, w.most_ns);
	if (!w.be_ppm)
		w.be_ppm = (w.open_ns - switch_ns * 5 / 4) * GP_PPM / (w.open_ns + w.shut_ns);
	return w;
}

uint64_t gp_qos_left_by_slices(const struct gp_view *view, const struct gp_qos_device *d,
			       uint64_t lc_ppm)
{
	uint64_t taken_ppm = lc_ppm;

	if (d->request_ns)
		taken_ppm += lc_ppm * 2 * view->switch_cost_ns / d->request_ns;
	return taken_ppm < GP_PPM ? GP_PPM - taken_ppm : 0;
}

/* Each request occupies the GPU for r + 2 s. The switch back delays only the next request. */
uint64_t gp_qos_late_by_slices(const struct gp_view *view, uint64_t lc_ppm)
{
	const struct gp_qos_device *d = view->state->device;
	uint64_t each_ns = d->request_ns + 2 * view->switch_cost_ns;
	uint64_t load_ppm = GP_PPM - gp_qos_left_by_slices(view, d, lc_ppm);

	if (load_ppm >= GP_QOS_LOAD_MOST)
		return UINT64_MAX;
	return view->switch_cost_ns + each_request(view) +
	       gp_qos_wait_for_others(each_ns, load_ppm, 0);
}
