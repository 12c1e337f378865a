/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares what the driver said of the last hold or release with the work that was seen since:
 * contexts that were put on the engine (exact), and NVML's use of the process (up to 1 s late).
 *
 *   hold     Disproved by work after it, at any time until the release. A repeated hold is then not
 *            believed before TRUST_NS without work. If the driver does not tell the state of
 *            channels, a hold is proven if no work is seen for HOLD_LOOK_NS.
 *   release  Only if the driver does not tell the state: proven by work. Without work for
 *            RELEASE_LOOK_NS it has failed, is repeated, and the undo record stays until the
 *            process works or ends.
 *
 * A program without work looks like one that was not released. So where the driver reads channels
 * back as enabled, nothing disproves that. A hold of a part of the queues that the driver does not
 * tell may also stop all work. If the task worked before the hold, and not since, the release is
 * unfinished: it is repeated, at longer and longer intervals, which changes nothing for a program
 * that runs. A hold that failed may take effect late, after the release that gave it up: that
 * release is unfinished until the driver reads it back LATE_NS later. A machine
 * with neither records of context switches nor NVML has no other source than the driver: the
 * accepted call counts, and is said to be only that.
 */
#include <errno.h>

#include "gpu/nvidia/nvidia_device.h"

#define GRACE_NS        (100 * GP_NS_PER_MS) /* the clocks of the GPU and of the host differ */
#define HOLD_LOOK_NS    (1200 * GP_NS_PER_MS)
#define TRUST_NS        (2 * GP_NS_PER_S)
#define RELEASE_LOOK_NS (2 * GP_NS_PER_S)
#define AGAIN_NS        (2 * GP_NS_PER_S) /* then twice as long, up to */
#define AGAIN_DOUBLED   3                 /* times */
#define LATE_NS         (5 * GP_NS_PER_S)
#define BEFORE_NS       (2 * GP_NS_PER_S) /* work so long before a hold goes on after it */

bool gp_nv_proof_counts_use(const struct gp_nv_gpu *d, const struct gp_nv_task *t)
{
	for (unsigned i = 0; i < d->ntasks; i++)
		if (d->task[i].used && &d->task[i] != t && d->task[i].pid == t->pid)
			return false;
	return t->queue == GP_QUEUE_ALL && !t->draws;
}

/* It works, and is still called held by a later reading: no other process has released it. */
static bool works_on(const struct gp_nv_task *t)
{
	return t->held && t->worked_ns > t->switched_ns + GRACE_NS &&
	       t->read_ns > t->worked_ns + 2 * GP_NV_USE_NS;
}

void gp_nv_proof_begin(struct gp_nv_task *t, uint64_t begun_ns, uint64_t now_ns)
{
	if (t->hold_want) {
		t->hold_ns = begun_ns;
		t->late_ns = t->hold_failed ? now_ns : 0;
	} else {
		t->distrusted &= works_on(t);
	}
	t->switch_ns = begun_ns;
	t->switched_ns = now_ns;
	t->again_ns = now_ns + AGAIN_NS;
	t->repeated = 0;
}

static void describe_hold(struct gp_nv_task *t, bool any_source, uint64_t now_ns,
			  struct gp_observation *o)
{
	t->distrusted = works_on(t) || (t->distrusted && now_ns < t->worked_ns + TRUST_NS);
	if (t->distrusted) {
		o->unsure = true;
		o->failed = -EREMOTEIO;
		o->driver_code = 0;
	} else if (!t->held && t->worked_ns <= t->switched_ns + GRACE_NS) {
		o->evidence = GP_EVIDENCE_DRIVER; /* another program has released it */
	} else if (t->untold) {
		o->evidence = GP_EVIDENCE_NONE; /* a part of its queues may be held */
		o->unproven = any_source && now_ns < t->switched_ns + HOLD_LOOK_NS;
	}
}

static bool misses_work(const struct gp_nv_task *t)
{
	return t->worked_ns && t->worked_ns <= t->switch_ns && t->hold_ns &&
	       t->worked_ns + BEFORE_NS > t->hold_ns;
}

/* A hold that failed is given up. */
static bool is_to_be_released(const struct gp_nv_task *t)
{
	return t->switched_ns && t->hold_want == !!t->hold_failed;
}

bool gp_nv_proof_wants_release(struct gp_nv_task *t, uint64_t now_ns)
{
	if (!is_to_be_released(t) || t->held || t->unsure || t->untold || t->holds_queued ||
	    !misses_work(t) || now_ns < t->again_ns)
		return false;
	t->repeated += t->repeated < AGAIN_DOUBLED;
	t->again_ns = now_ns + (AGAIN_NS << t->repeated);
	return true;
}

static bool is_unfinished(struct gp_nv_task *t)
{
	if (!t->held && t->read_ns > t->late_ns + LATE_NS)
		t->late_ns = 0;
	return is_to_be_released(t) && t->has_groups && (t->late_ns || misses_work(t));
}

/* Nothing but the driver says that it is released. A task that NVML has seen before the hold, and
 * that did not work then, is not expected to work after it. */
static bool lacks_proof(const struct gp_nv_task *t, bool counts_use)
{
	bool seen_before = counts_use && t->sampled_ns && t->sampled_ns < t->hold_ns;

	return !t->held && t->worked_ns <= t->switch_ns && (misses_work(t) || !seen_before);
}

static void describe_release(const struct gp_nv_task *t, bool any_source, bool counts_use,
			     uint64_t now_ns, struct gp_observation *o)
{
	if (t->worked_ns > t->switch_ns)
		return;
	if (!t->untold) {
		if (lacks_proof(t, counts_use))
			o->evidence = GP_EVIDENCE_DRIVER;
		return;
	}
	if (!any_source)
		o->evidence = GP_EVIDENCE_NONE;
	o->unproven = any_source && now_ns < t->switched_ns + RELEASE_LOOK_NS;
	if (!any_source || o->unproven)
		return;
	o->unsure = true;
	o->failed = -ETIME;
	o->driver_code = 0;
}

void gp_nv_proof_describe(const struct gp_nv_gpu *d, struct gp_nv_task *t, uint64_t now_ns,
			  struct gp_observation *o)
{
	bool counts_use = d->has_use && gp_nv_proof_counts_use(d, t);
	bool any_source = d->has_ctxsw || counts_use;

	if (!t->switched_ns || t->holds_queued)
		return;
	o->unfinished = is_unfinished(t);
	if (t->hold_failed) {
		if (lacks_proof(t, counts_use))
			o->evidence = GP_EVIDENCE_DRIVER;
		return;
	}
	if (t->hold_want)
		describe_hold(t, any_source, now_ns, o);
	else
		describe_release(t, any_source, counts_use, now_ns, o);
	if (o->evidence == GP_EVIDENCE_NONE && !any_source)
		o->known &= ~(uint32_t)GP_KNOWN_HELD;
}
