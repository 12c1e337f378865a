/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks for evidence that a hold or release has the effect that the driver confirmed.
 *
 *   hold     proven if packets wait while no waves run, or if no read pointer moves for
 *            HOLD_LOOK_NS. Disproved if they move, at any time until the release, or if waves
 *            still run.
 *   release  proven if a read pointer moves, if waves occupy compute units, or if no packet is
 *            pending. Disproved if packets are pending and nothing moves for PATIENCE_NS in all;
 *            time in which the task is held does not count. If the driver has evicted the task,
 *            nothing is concluded until it has restored it.
 *
 * A program whose packets wait for something else looks like one that was not released. Then the
 * session is ended to be sure, which costs a new attach, and the patience is doubled.
 */
#include <errno.h>

#include "gpu/amd/memory_reader.h"

#define HOLD_LOOK_NS    (20 * GP_NS_PER_MS)
#define MOVES_MIN       2 /* one move may be a queue that was just destroyed */
#define STALLS_MIN      2
#define IDLE_NS         (50 * GP_NS_PER_MS) /* a task without work for this long gives no evidence */
#define OPEN_NS         (1 * GP_NS_PER_S)   /* after this time nothing more is expected ... */
#define OPEN_MAX_NS     (3 * GP_NS_PER_S)   /* ... if there were enough readings in it */
#define PATIENCE_NS     (250 * GP_NS_PER_MS)
#define PATIENCE_MAX_NS (16 * GP_NS_PER_S)
#define STEP_MAX_NS     (100 * GP_NS_PER_MS) /* of one reading: the thread may have been suspended */

void gp_amd_proof_begin(struct gp_amd_task *t, bool hold, bool proven, uint64_t now_ns)
{
	struct gp_amd_proof *p = &t->proof;

	p->state = t->has_pointers && !proven ? GP_AMD_PROOF_BEGUN : GP_AMD_PROOF_DONE;
	p->of_hold = hold;
	p->disproved = false;
	p->number++;
	p->moves = p->stalls = 0;
	p->looked_ns = 0;
	p->begun_ns = now_ns;
	p->read_ns = 0;
}

static bool is_begun(const struct gp_amd_proof *p)
{
	return p->state == GP_AMD_PROOF_BEGUN || p->state == GP_AMD_PROOF_LOOKING;
}

bool gp_amd_proof_is_open(const struct gp_amd_task *t, uint64_t now_ns)
{
	const struct gp_amd_proof *p = &t->proof;

	return is_begun(p) &&
	       now_ns < p->begun_ns + (p->looked_ns < PATIENCE_NS ? OPEN_MAX_NS : OPEN_NS);
}

static bool disprove(struct gp_amd_task *t)
{
	struct gp_amd_proof *p = &t->proof;

	p->state = GP_AMD_PROOF_DONE;
	p->disproved = true;
	t->failed = p->of_hold ? -EREMOTEIO : -ETIME;
	t->why = (struct gp_error){0};
	if (p->of_hold)
		gp_fail(&t->why, t->failed,
			"the driver says that process %d is suspended, but it goes on working",
			t->pid);
	else
		gp_fail(&t->why, t->failed,
			"the driver says that process %d was resumed, but it has done no work for "
			"%u ms although packets wait; its debug session is ended to be sure",
			t->pid, (unsigned)(p->patience_ns / GP_NS_PER_MS));
	return true;
}

static bool look_at_hold(struct gp_amd_task *t, const struct gp_amd_reading *g, bool moved,
			 uint64_t now_ns)
{
	struct gp_amd_proof *p = &t->proof;
	bool is_idle = !g->pending && now_ns >= t->worked_ns + IDLE_NS;

	p->moves += moved;
	p->stalls = g->stalled && !moved ? p->stalls + 1 : 0;
	if (p->moves >= MOVES_MIN || g->occupied > 0)
		return disprove(t);
	if (is_idle || p->stalls >= STALLS_MIN || now_ns >= p->begun_ns + HOLD_LOOK_NS)
		p->state = GP_AMD_PROOF_DONE; /* the readings go on while it is held */
	return false;
}

static bool is_evicted(const struct gp_amd_task *t)
{
	bool by_reset;

	return gp_amd_evicted_ns(t, &by_reset) != 0;
}

static bool look_at_release(struct gp_amd_task *t, const struct gp_amd_reading *g, bool moved,
			    uint64_t passed_ns)
{
	struct gp_amd_proof *p = &t->proof;

	if (moved || g->occupied > 0 || !g->pending) {
		p->state = GP_AMD_PROOF_DONE;
		p->waited_ns = 0;
		if (moved || g->occupied > 0)
			p->patience_ns = PATIENCE_NS;
		return false;
	}
	if (is_evicted(t)) {
		p->state = GP_AMD_PROOF_EVICTED;
		p->waited_ns = 0;
		return false;
	}
	if (!p->patience_ns)
		p->patience_ns = PATIENCE_NS;
	passed_ns = passed_ns < STEP_MAX_NS ? passed_ns : STEP_MAX_NS;
	p->waited_ns += passed_ns;
	p->looked_ns += passed_ns;
	if (p->waited_ns < p->patience_ns)
		return false;
	disprove(t);
	p->waited_ns = 0;
	if (p->patience_ns < PATIENCE_MAX_NS)
		p->patience_ns *= 2;
	return true;
}

/* A request for a task of the same process has not ended, or the pointers that were read are not
 * its own any more: queues may have moved between the process's tasks. */
static bool is_being_changed(const struct gp_amd_task *t)
{
	for (unsigned i = 0; i < t->gpu->ntasks; i++) {
		const struct gp_amd_task *other = t->gpu->task[i];

		if (other && other->pid == t->pid && other->queued)
			return true;
	}
	return t->new_pointers;
}

bool gp_amd_proof_note(struct gp_amd_task *t, const struct gp_amd_reading *g, uint64_t now_ns)
{
	struct gp_amd_proof *p = &t->proof;
	bool is_first = !p->read_ns, moved = !is_first && g->taken != p->taken;
	uint64_t passed_ns = is_first ? 0 : now_ns - p->read_ns;
	bool was_open = is_begun(p), failed = false;

	if (p->state == GP_AMD_PROOF_EVICTED && !is_evicted(t)) {
		gp_amd_proof_begin(t, false, false, now_ns);
		return true;
	}
	if (g->proof_number != p->number || !p->number || p->disproved || (!was_open && !t->held))
		return false;
	if (is_being_changed(t)) {
		p->read_ns = 0;
		return false;
	}
	if (!g->known) { /* its memory cannot be read: there is no evidence */
		p->state = GP_AMD_PROOF_DONE;
		return was_open;
	}
	p->taken = g->taken;
	p->read_ns = now_ns;
	if (was_open)
		p->state = GP_AMD_PROOF_LOOKING;
	if (p->of_hold && t->held)
		failed = look_at_hold(t, g, moved, now_ns);
	else if (!p->of_hold && was_open)
		failed = look_at_release(t, g, moved, passed_ns);
	return failed || (was_open && !is_begun(p));
}
