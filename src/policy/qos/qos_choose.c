/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slices or windows, and what is refused.
 *
 * Both are estimated from measured run times (qos_plan.c), for the least and for the most that the
 * load may be (qos_load.c). What keeps the target in any case is taken before what may not, and of
 * two that do the one that leaves more; if neither does, the one that answers sooner, and the
 * target is refused. As long as that is not sure, everything stays as it is.
 */
#include "policy/qos/qos.h"

#define GAIN_PPM     60000 /* windows are worth later answers from this on ... */
#define LOSS_PPM     20000 /* ... and not worth it any more from this on */
#define PERIODS      2     /* before windows are judged by what they bring */
#define BACKOFF_NS   (10000 * GP_MS)
#define BACKOFF_MOST (8 * BACKOFF_NS)
#define PROBE_KEEPS  4 /* run times that hold idle time: slices, and a new measurement, so often */

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t most(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* What is to be expected, for a load as it is measured, and for the least and most it may be. */
struct outlook {
	uint64_t left_ppm; /* by slices, and with them answered in ... */
	uint64_t late_ns, late_least_ns, late_most_ns;
	struct gp_qos_windows windows, light, heavy;
	bool usable; /* enough is known of the requests for windows */
};

static void plan_for(const struct gp_view *view, const struct gp_policy_state *state,
                     const struct gp_qos_crew *crew, struct outlook *o)
{
	const struct gp_qos_device *d = state->device;

	o->windows = gp_qos_plan_windows(view, state, crew, d->lc_ppm);
	o->light = gp_qos_plan_windows(view, state, crew, lc_at_least(d));
	o->heavy = gp_qos_plan_windows(view, state, crew, lc_at_most(d));
}

static struct outlook look_ahead(const struct gp_view *view, const struct gp_policy_state *state,
                                 const struct gp_qos_crew *crew)
{
	const struct gp_qos_device *d = state->device;
	struct outlook o = {
		.left_ppm = gp_qos_left_by_slices(view, d, d->lc_ppm),
		.late_ns = gp_qos_late_by_slices(view, state, d->lc_ppm),
		.late_least_ns = gp_qos_late_by_slices(view, state, lc_at_least(d)),
		.late_most_ns = gp_qos_late_by_slices(view, state, lc_at_most(d)),
	};

	if (d->full && !d->windows)
		o.late_ns = o.late_least_ns = o.late_most_ns = UINT64_MAX;
	plan_for(view, state, crew, &o);
	/* A guess at the length of requests is not enough to gamble with them: they may be of many
	 * kernels, and come in bursts. But a service that falls behind has nothing to lose. */
	o.usable = !crew->untargeted &&
	           (crew->seen_at_once || crew->budget_ns || o.late_ns == UINT64_MAX);
	return o;
}

/*
 * The service ran in the very gaps between its requests: see qos_load.c. The first time that is
 * looked into at once, or a service that has time to spare is given more and more of it.
 */
static bool wants_probe(const struct gp_view *view, const struct gp_policy_state *state,
                        const struct gp_qos_crew *crew)
{
	const struct gp_qos_device *d = state->device;
	uint64_t time_ns =
		d->book.shut_ns - least(d->book.shut_ns, d->book.shuts * view->switch_cost_ns);
	uint64_t wait_ns = d->probed ? PROBE_KEEPS * param_ns(state, GP_QOS_KEEP) : 0;

	return !crew->seen_at_once && gap_ns(state) && time_ns &&
	       d->book.lc_ns >= time_ns - time_ns / 32 && view->now_ns >= d->chosen_ns + wait_ns;
}

/*
 * Windows that are there for best-effort work, and not for a target that slices would miss, are to
 * leave it more than it had, or the service. If neither has more, nobody wanted it: what slices
 * seemed to lose was idle time. Not again for a while, unless the service has more to do by then.
 * Where requests are not seen, what slices would miss is a guess: on an H200, whose run times hold
 * some idle time, windows took 16 points of 56 for a target that slices kept.
 */
static bool windows_failed(const struct gp_view *view, struct gp_qos_device *d,
                           const struct gp_qos_crew *crew, const struct outlook *o)
{
	bool guessed = !crew->seen_at_once;
	uint64_t be_ppm = d->way.ran_ns / (d->way.had_ns / GP_PPM + 1);

	if (!d->windows || (!guessed && crew->target_ns && o->late_ns > crew->target_ns) ||
	    d->way.had_ns < PERIODS * (view->now_ns - d->book.from_ns) ||
	    be_ppm >= d->be_before_ppm + LOSS_PPM / 4 ||
	    d->lc_ppm > d->lc_before_ppm + d->lc_before_ppm / 8)
		return false;
	d->backoff_ns = least(most(2 * d->backoff_ns, BACKOFF_NS), BACKOFF_MOST);
	d->retry_ns = view->now_ns + d->backoff_ns;
	return true;
}

static bool may_try_windows(const struct gp_view *view, const struct gp_qos_device *d)
{
	return view->now_ns >= d->retry_ns || d->lc_ppm > d->lc_before_ppm + d->lc_before_ppm / 2;
}

/* For the target, and of two ways that keep it for best-effort work. */
static bool keeps_better_in_windows(const struct gp_qos_device *d, const struct gp_qos_crew *crew,
                                    const struct outlook *o)
{
	uint64_t target_ns = crew->target_ns;
	bool slices_keep = !target_ns || o->late_most_ns <= target_ns;
	bool slices_miss = target_ns && o->late_least_ns > target_ns;

	if (d->windows) {
		if (slices_keep)
			return o->light.keeps && o->windows.be_ppm > o->left_ppm + LOSS_PPM;
		return o->light.keeps || o->late_ns == UINT64_MAX;
	}
	if (slices_miss)
		return o->windows.keeps || o->late_ns == UINT64_MAX; /* nothing does better */
	/* Later answers have their price, unless it is not sure that others would be in time. */
	return o->heavy.keeps &&
	       o->windows.be_ppm > o->left_ppm + (slices_keep ? GAIN_PPM : LOSS_PPM);
}

static bool prefers_windows(const struct gp_view *view, const struct gp_policy_state *state,
                            const struct gp_qos_crew *crew, const struct outlook *o)
{
	const struct gp_qos_device *d = state->device;
	uint64_t had_ppm = d->windows ? o->left_ppm : d->be_ppm + LOSS_PPM;

	if (!may_try_windows(view, d))
		return false;
	if (least(o->left_ppm, had_ppm) < crew->share_ppm)
		return true;
	return o->usable && keeps_better_in_windows(d, crew, o);
}

void gp_qos_judge(const struct gp_view *view, const struct gp_policy_state *state, bool kept,
                  bool missed)
{
	struct gp_qos_device *d = state->device;
	bool refuses = missed || (d->refuses && !kept);

	if (refuses == d->refuses)
		d->verdict_ns = 0;
	else if (!d->verdict_ns)
		d->verdict_ns = view->now_ns;
	else if (view->now_ns >= d->verdict_ns + param_ns(state, GP_QOS_KEEP))
		d->refuses = refuses;
}

static void judge(const struct gp_view *view, const struct gp_policy_state *state,
                  const struct gp_qos_crew *crew, const struct outlook *o)
{
	uint64_t target_ns = crew->target_ns;
	bool windows = o->usable && may_try_windows(view, state->device);
	bool share = o->left_ppm >= crew->share_ppm;
	bool kept = (windows && o->heavy.keeps) || (o->late_most_ns <= target_ns && share);
	bool missed = !(windows && o->light.keeps) && (o->late_least_ns > target_ns || !share);

	/* With a line that has no end, what the service wants is not known, only that it waits. */
	missed |= ((const struct gp_qos_device *)state->device)->full;
	gp_qos_judge(view, state, !target_ns || kept, target_ns && missed);
}

static void change_way(const struct gp_view *view, struct gp_qos_device *d, bool windows)
{
	d->windows = windows;
	d->chosen_ns = view->now_ns;
	d->be_before_ppm = d->way.ran_ns / (d->way.had_ns / GP_PPM + 1);
	d->lc_before_ppm = d->lc_ppm;
	d->way = (struct gp_qos_sum){0};
	d->shut = false; /* best-effort work runs: a window has just opened */
	d->in_force = true;
	d->phase_ns = view->now_ns;
}

void gp_qos_choose(const struct gp_view *view, const struct gp_policy_state *state,
                   const struct gp_qos_crew *crew)
{
	struct gp_qos_device *d = state->device;
	bool windows, failed, stands;
	struct outlook o;

	d->between_ns = crew->lc > 1 ? view->switch_cost_ns : 0;
	gp_qos_learn_load(view, state, crew);
	o = look_ahead(view, state, crew);
	judge(view, state, crew, &o);
	failed = windows_failed(view, d, crew, &o);
	windows = !failed && prefers_windows(view, state, crew, &o);
	if (d->windows && wants_probe(view, state, crew)) {
		change_way(view, d, false);
		d->probed = true;
		d->chosen_ns = 0;
		return;
	}
	stands = d->chosen_ns && view->now_ns < d->chosen_ns + param_ns(state, GP_QOS_KEEP);
	if (windows != d->windows && (!stands || failed || o.late_ns == UINT64_MAX))
		change_way(view, d, windows);
	d->set = o.heavy;
}
