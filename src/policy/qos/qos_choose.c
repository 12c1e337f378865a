/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The choice between slices and windows, and the refusal of targets.
 *
 * Both modes are estimated from measured run times (qos_plan.c), for the lowest and the highest
 * possible load (qos_load.c). A mode that certainly keeps the target comes before a mode that may
 * miss it. If both keep it, the mode that leaves more to best-effort work is taken. If neither
 * keeps it, the mode that answers sooner is taken, and the target is refused. As long as the
 * estimate is uncertain, nothing changes.
 */
#include "policy/qos/qos.h"

#define GAIN_PPM     60000 /* gain from which windows are worth later answers */
#define LOSS_PPM     20000 /* gain below which windows are left again */
#define PERIODS      2     /* number of periods before the effect of windows is judged */
#define BACKOFF_NS   (10000 * GP_MS)
#define BACKOFF_MOST (8 * BACKOFF_NS)
#define PROBE_KEEPS  4 /* slices are tried again after this many times the parameter `keep` */

/* The estimates for the measured load, and for the lowest and the highest possible load. */
struct estimates {
	/* With slices: the part left to best-effort work, and the response times. */
	uint64_t left_ppm;
	uint64_t late_ns, late_least_ns, late_most_ns;
	struct gp_qos_windows windows, light, heavy;
	bool usable; /* enough is known about the requests to use windows */
};

static void plan_for(const struct gp_view *view, const struct gp_qos_counts *counts,
		     struct estimates *o)
{
	const struct gp_qos_device *d = view->state->device;

	o->windows = gp_qos_plan_windows(view, counts, d->lc_ppm);
	o->light = gp_qos_plan_windows(view, counts, lc_at_least(d));
	o->heavy = gp_qos_plan_windows(view, counts, lc_at_most(d));
}

static struct estimates estimate(const struct gp_view *view, const struct gp_qos_counts *counts)
{
	const struct gp_qos_device *d = view->state->device;
	struct estimates o = {
		.left_ppm = gp_qos_left_by_slices(view, d, d->lc_ppm),
		.late_ns = gp_qos_late_by_slices(view, d->lc_ppm),
		.late_least_ns = gp_qos_late_by_slices(view, lc_at_least(d)),
		.late_most_ns = gp_qos_late_by_slices(view, lc_at_most(d)),
	};

	if (d->full && !d->windows)
		o.late_ns = o.late_least_ns = o.late_most_ns = UINT64_MAX;
	plan_for(view, counts, &o);
	/* An estimated length of requests is not reliable enough for windows: requests may consist
	 * of many kernels and come in bursts. A service that cannot keep up has nothing to lose. */
	o.usable = !counts->untargeted &&
		   (counts->seen_at_once || counts->budget_ns || o.late_ns == UINT64_MAX);
	return o;
}

/*
 * Whether slices should be tried to measure the load again, because the service seems to have run
 * in the gaps between its requests, too (see qos_load.c). The first such probe is made at once.
 * Otherwise a service with spare time would get more and more time.
 */
static bool wants_probe(const struct gp_view *view, const struct gp_qos_counts *counts)
{
	const struct gp_qos_device *d = view->state->device;
	uint64_t time_ns = gp_less(d->period.shut_ns, d->period.shuts * view->switch_cost_ns);
	uint64_t wait_ns = d->probed ? PROBE_KEEPS * param_ns(view, GP_QOS_KEEP) : 0;

	return !counts->seen_at_once && gap_ns(view) && time_ns &&
	       d->period.lc_ns >= time_ns - time_ns / 32 && view->now_ns >= d->chosen_ns + wait_ns;
}

/*
 * Windows that were chosen for best-effort work, not for a target, must leave more time to
 * best-effort work or to the service. If neither has more, the time that slices seemed to lose was
 * idle time. Windows are then not tried for a while, unless the load of the service rises. If
 * requests are not visible, the loss by slices is an estimate. Run times of an H200 include some
 * idle time; there windows took 16 points of 56 for a target that slices kept.
 */
static bool windows_failed(const struct gp_view *view, struct gp_qos_device *d,
			   const struct gp_qos_counts *counts, const struct estimates *o)
{
	bool guessed = !counts->seen_at_once;
	uint64_t be_ppm = d->be_sum.ran_ns / (d->be_sum.had_ns / GP_PPM + 1);

	if (!d->windows || (!guessed && counts->target_ns && o->late_ns > counts->target_ns) ||
	    d->be_sum.had_ns < PERIODS * (view->now_ns - d->period.from_ns) ||
	    be_ppm >= d->be_before_ppm + LOSS_PPM / 4 ||
	    d->lc_ppm > d->lc_before_ppm + d->lc_before_ppm / 8)
		return false;
	d->backoff_ns = gp_least(gp_most(2 * d->backoff_ns, BACKOFF_NS), BACKOFF_MOST);
	d->retry_ns = view->now_ns + d->backoff_ns;
	return true;
}

static bool may_try_windows(const struct gp_view *view, const struct gp_qos_device *d)
{
	return view->now_ns >= d->retry_ns || d->lc_ppm > d->lc_before_ppm + d->lc_before_ppm / 2;
}

/* Decides by the target; if both modes keep it, by the time that is left to best-effort work. */
static bool windows_are_better(const struct gp_qos_device *d, const struct gp_qos_counts *counts,
			       const struct estimates *o)
{
	uint64_t target_ns = counts->target_ns;
	bool slices_keep = !target_ns || o->late_most_ns <= target_ns;
	bool slices_miss = target_ns && o->late_least_ns > target_ns;

	if (d->windows) {
		if (slices_keep)
			return o->light.keeps && o->windows.be_ppm > o->left_ppm + LOSS_PPM;
		return o->light.keeps || o->late_ns == UINT64_MAX;
	}
	if (slices_miss)
		return o->windows.keeps || o->late_ns == UINT64_MAX; /* no mode is better */
	/* Later answers have a price, unless slices may miss the target. */
	return o->heavy.keeps &&
	       o->windows.be_ppm > o->left_ppm + (slices_keep ? GAIN_PPM : LOSS_PPM);
}

static bool prefers_windows(const struct gp_view *view, const struct gp_qos_counts *counts,
			    const struct estimates *o)
{
	const struct gp_qos_device *d = view->state->device;
	uint64_t had_ppm = d->windows ? o->left_ppm : d->be_ppm + LOSS_PPM;

	if (!may_try_windows(view, d))
		return false;
	if (gp_least(o->left_ppm, had_ppm) < counts->share_ppm)
		return true;
	return o->usable && windows_are_better(d, counts, o);
}

void gp_qos_judge(const struct gp_view *view, bool kept, bool missed)
{
	struct gp_qos_device *d = view->state->device;
	bool refuses = missed || (d->refuses && !kept);

	if (refuses == d->refuses)
		d->verdict_ns = 0;
	else if (!d->verdict_ns)
		d->verdict_ns = view->now_ns;
	else if (view->now_ns >= d->verdict_ns + param_ns(view, GP_QOS_KEEP))
		d->refuses = refuses;
}

static void judge(const struct gp_view *view, const struct gp_qos_counts *counts,
		  const struct estimates *o)
{
	uint64_t target_ns = counts->target_ns;
	bool windows = o->usable && may_try_windows(view, view->state->device);
	bool share = o->left_ppm >= counts->share_ppm;
	bool kept = (windows && o->heavy.keeps) || (o->late_most_ns <= target_ns && share);
	bool missed = !(windows && o->light.keeps) && (o->late_least_ns > target_ns || !share);

	/* If the backlog grows without end, the demand is unknown, but requests certainly wait. */
	missed |= ((const struct gp_qos_device *)view->state->device)->full;
	gp_qos_judge(view, !target_ns || kept, target_ns && missed);
}

static void change_mode(const struct gp_view *view, struct gp_qos_device *d, bool windows)
{
	d->windows = windows;
	d->chosen_ns = view->now_ns;
	d->be_before_ppm = d->be_sum.ran_ns / (d->be_sum.had_ns / GP_PPM + 1);
	d->lc_before_ppm = d->lc_ppm;
	d->be_sum = (struct gp_qos_sum){0};
	d->shut = false; /* best-effort work runs: a window has just opened */
	d->in_force = true;
	d->phase_ns = view->now_ns;
}

void gp_qos_choose(const struct gp_view *view, const struct gp_qos_counts *counts)
{
	struct gp_qos_device *d = view->state->device;
	bool windows, failed, stands;
	struct estimates o;

	d->between_ns = counts->lc > 1 ? view->switch_cost_ns : 0;
	gp_qos_learn_load(view, counts);
	o = estimate(view, counts);
	judge(view, counts, &o);
	failed = windows_failed(view, d, counts, &o);
	windows = !failed && prefers_windows(view, counts, &o);
	if (d->windows && wants_probe(view, counts)) {
		change_mode(view, d, false);
		d->probed = true;
		d->chosen_ns = 0;
		return;
	}
	stands = d->chosen_ns && view->now_ns < d->chosen_ns + param_ns(view, GP_QOS_KEEP);
	if (windows != d->windows && (!stands || failed || o.late_ns == UINT64_MAX))
		change_mode(view, d, windows);
	d->set = o.heavy;
}
