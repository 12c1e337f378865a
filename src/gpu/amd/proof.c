/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks for evidence that a hold or release has the effect that the driver confirmed.
 *
 *   hold     proven if packets wait in each queue while no waves run, for STALL_NS, or if no read
 *            pointer moves for HOLD_LOOK_NS. A queue without waiting packets shows nothing: it may
 *            have a short kernel now and then. Disproved if the pointer of any queue moves, at any
 *            time until the release, or if waves still run. Without a count of waves, or without
 *            readable pointers, a kernel that was taken before the hold is not seen: the answer
 *            says that only the driver confirms the hold.
 *   release  proven if, of each queue, the read pointer has moved or no packet waits. Waves that
 *            occupy compute units prove it for a task with one queue: the driver counts them for
 *            the process. Disproved if packets wait in a queue and its pointer does not move for
 *            PATIENCE_NS in all; time in which the task is held does not count. If the driver has
 *            evicted the task, nothing is concluded until it has restored it.
 *            Releases can be short: between the requests of a service they last some 100 us. So
 *            the evidence adds up over holds until the pointer moves. Disproved, too, if packets
 *            waited and the pointer did not move over RELEASES_MIN releases and for STILL_NS by
 *            the clock, holds included.
 *
 * A kernel that runs does not move the pointer. Waves show that it runs, for a task with one queue
 * where the driver counts them. Elsewhere a kernel that is longer than all releases in STILL_NS
 * looks like a queue that stands still. So those releases must also be LONGER times as long as the
 * longest time that the queue was released between two moves, until now. A long kernel can then
 * cost one end of the session, but not the next one of about its length. The limit: beside short
 * releases, a stopped queue whose kernels are long stands still for more than STILL_NS, until it
 * has been released for PATIENCE_NS in all.
 *
 * A queue can wait for another queue of its program (barrier packets), or behind a long kernel of
 * its own. So while there is progress elsewhere in the task the patience is IN_PART times as long.
 * A program whose packets wait for something else looks like one that was not released. Then the
 * session is ended to be sure, which costs a new attach. If a hold comes first, the next release
 * ends the session. PATIENCE_NS and STILL_NS are doubled only if the end did not help either: the
 * queue had a chance to move, of CHANCE_NS and of LONGER times its longest release, over all ends
 * since it last moved.
 *
 * The end of a session is not believed either. If packets go on waiting for PATIENCE_NS after it,
 * the release has failed, and a session is begun and ended again, up to ENDS_MAX sessions in all.
 * After that the release stays unconfirmed, without further calls, until the task works: it may
 * wait for its host.
 *
 * A queue without waiting packets shows nothing. The release is answered, but the look goes on
 * until each queue has moved or the next hold begins: it uses readings that are made anyway. If
 * packets then wait too long, the release is asked for again, which ends the session. While its
 * ring is empty, a queue that stays suspended with a saved kernel is not noticed: until it moves,
 * only the driver confirms the release, and a release that is asked for again is made again.
 */
#include <errno.h>
#include <poll.h>

#include "base/log.h"
#include "gpu/amd/memory_reader.h"

#define HOLD_LOOK_NS    (20 * GP_NS_PER_MS)
#define LOOKS_MIN       10 /* in HOLD_LOOK_NS: a busy machine may delay the readings */
#define MOVES_MIN       2  /* one move may be a queue that was just destroyed */
#define STALLS_MIN      3
#define STALL_NS        (1 * GP_NS_PER_MS)
#define IDLE_NS         (50 * GP_NS_PER_MS) /* a task without work for this long gives no evidence */
#define OPEN_NS         (1 * GP_NS_PER_S)   /* after this time nothing more is expected ... */
#define OPEN_MAX_NS     (3 * GP_NS_PER_S)   /* ... if there were enough readings in it */
#define PATIENCE_NS     (250 * GP_NS_PER_MS)
#define PATIENCE_MAX_NS (2 * GP_NS_PER_S)
#define STILL_NS        (500 * GP_NS_PER_MS)
#define RELEASES_MIN    3
#define LONGER          2
#define CHANCE_NS       (20 * GP_NS_PER_MS)
#define ENDS_MAX        3
#define IN_PART         3 /* times the patience: IN_PART * PATIENCE_NS is less than OPEN_NS */
#define STEP_MAX_NS     (100 * GP_NS_PER_MS) /* of one reading: the thread may have been suspended */

void gp_amd_proof_begin(struct gp_amd_task *t, bool hold, bool proven, uint64_t now_ns)
{
	struct gp_amd_proof *p = &t->proof;
	bool goes_on = p->of_hold && p->read_in_hold && !hold && t->target;

	p->state = t->has_pointers && !proven ? GP_AMD_PROOF_BEGUN : GP_AMD_PROOF_DONE;
	p->of_hold = hold;
	p->after_end = !hold && !t->target;
	p->end_due &= t->target != NULL;
	p->had_chance = false;
	p->ends = hold ? 0 : p->ends;
	p->disproved = p->seen = p->seen_all = false;
	p->number++;
	p->moves = p->stalls = p->still = 0;
	p->in_part = false;
	p->looked_ns = 0;
	p->begun_ns = now_ns;
	/* The readings of the hold show where the queues stood when they were released. */
	p->read_ns = goes_on ? now_ns : 0;
	p->read_in_hold = false;
	for (unsigned i = 0; i < t->npointers; i++)
		t->pointer[i].moved = false;
}

static bool is_begun(const struct gp_amd_proof *p)
{
	return p->state == GP_AMD_PROOF_BEGUN || p->state == GP_AMD_PROOF_LOOKING;
}

bool gp_amd_proof_is_open(const struct gp_amd_task *t, uint64_t now_ns)
{
	const struct gp_amd_proof *p = &t->proof;
	uint64_t enough_ns = PATIENCE_NS * (p->in_part ? IN_PART : 1);

	return is_begun(p) &&
	       now_ns < p->begun_ns + (p->looked_ns < enough_ns ? OPEN_MAX_NS : OPEN_NS);
}

enum gp_evidence gp_amd_proof_evidence(const struct gp_amd_task *t)
{
	const struct gp_amd_proof *p = &t->proof;

	return !p->number || (p->of_hold ? p->seen : p->seen_all) ? GP_EVIDENCE_ENOUGH
								  : GP_EVIDENCE_DRIVER;
}

bool gp_amd_proof_gave_up(const struct gp_amd_task *t)
{
	const struct gp_amd_proof *p = &t->proof;

	return p->disproved && p->after_end && p->ends >= ENDS_MAX;
}

/* The session has ended, and no work was seen since. */
static void explain_end(struct gp_amd_task *t, const char *what, unsigned ms)
{
	const struct gp_amd_proof *p = &t->proof;

	gp_fail(&t->why, t->failed,
		"it is not known whether process %d was released: the driver says so, but %s done "
		"no work for %u ms although packets wait; it may be evicted, or wait for its host "
		"or another program. If it does not go on, see dmesg or restart it",
		t->pid, what, ms);
	gp_log(GP_LOG_WARN, "release.no-progress", "pid=%d ms=%u ends=%u%s", t->pid, ms, p->ends,
	       p->ends < ENDS_MAX ? "" : " retry=no");
}

static void disprove_hold(struct gp_amd_task *t)
{
	t->proof.state = GP_AMD_PROOF_DONE;
	t->proof.disproved = true;
	t->failed = -EREMOTEIO;
	t->why = (struct gp_error){0};
	gp_fail(&t->why, t->failed,
		"the driver says that process %d is suspended, but it goes on working", t->pid);
}

static unsigned releases_of(const struct gp_amd_proof *p, const struct gp_amd_pointers *q)
{
	return (p->number - q->still_number) / 2 + 1; /* each hold and each release has a number */
}

/* Because of this queue. */
static void disprove_release(struct gp_amd_task *t, const struct gp_amd_pointers *q,
			     uint64_t now_ns)
{
	struct gp_amd_proof *p = &t->proof;
	const char *what = p->in_part ? "some of its queues have" : "it has";
	unsigned ms = (unsigned)((now_ns - q->still_ns) / GP_NS_PER_MS);

	p->state = GP_AMD_PROOF_DONE;
	p->disproved = true;
	p->end_due = !p->after_end;
	p->chance_ns = q->read_address == p->stuck_address && q->taken == p->stuck_taken
			       ? p->chance_ns
			       : 0;
	p->stuck_address = q->read_address;
	p->stuck_taken = q->taken;
	t->failed = -ETIME;
	t->why = (struct gp_error){0};
	if (p->after_end)
		explain_end(t, what, ms);
	else
		gp_fail(&t->why, t->failed,
			"the driver says that process %d was resumed, but %s done no work for %u "
			"ms (releases: %u) although packets wait; its debug session is ended to be "
			"sure",
			t->pid, what, ms, releases_of(p, q));
}

/* Whether the program may have made a queue that is not held yet. It can be in the place of one
 * that was destroyed, and compute units are counted for the process. */
static bool may_have_new_queue(const struct gp_amd_task *t)
{
	struct pollfd events = {.fd = t->target ? t->target->session.event_fd : -1,
				.events = POLLIN};

	return t->gpu->kfd_thread->handles_events || poll(&events, 1, 0) > 0;
}

static bool all_have_packets(const struct gp_amd_task *t)
{
	for (unsigned i = 0; i < t->npointers; i++)
		if (!t->pointer[i].pending)
			return false;
	return true;
}

/* Whether several readings over STALL_NS have seen each queue wait. */
static bool is_stalled(struct gp_amd_task *t, const struct gp_amd_reading *g, bool moved,
		       uint64_t now_ns)
{
	struct gp_amd_proof *p = &t->proof;

	if (!g->stalled || moved || !all_have_packets(t))
		p->stalls = 0;
	else if (!p->stalls++)
		p->stalled_ns = now_ns;
	return p->stalls >= STALLS_MIN && now_ns >= p->stalled_ns + STALL_NS;
}

static bool look_at_hold(struct gp_amd_task *t, const struct gp_amd_reading *g, bool is_first,
			 bool moved, uint64_t now_ns)
{
	struct gp_amd_proof *p = &t->proof;
	bool is_idle = !g->pending && now_ns >= t->worked_ns + IDLE_NS, stalled;

	p->looks = is_first || moved ? 0 : p->looks + 1;
	if (!p->looks) /* this thread may have been suspended */
		p->begun_ns = now_ns;

	p->moves += moved;
	stalled = is_stalled(t, g, moved, now_ns);
	if (p->moves >= MOVES_MIN || g->occupied > 0) {
		if (!may_have_new_queue(t)) {
			disprove_hold(t);
			return true;
		}
		p->moves = 0;
		p->read_ns = 0;
		return false;
	}
	/* One reading may fall between two short kernels of a process that runs. */
	p->still = !moved && g->stalled ? p->still + 1 : 0;
	p->seen |= p->still >= STALLS_MIN;
	if (is_idle || stalled || (p->looks >= LOOKS_MIN && now_ns >= p->begun_ns + HOLD_LOOK_NS))
		p->state = GP_AMD_PROOF_DONE; /* the readings go on while it is held */
	return false;
}

static bool is_evicted(const struct gp_amd_task *t)
{
	bool by_reset;

	return gp_amd_evicted_ns(t, &by_reset) != 0;
}

static void forget_wait(struct gp_amd_pointers *q)
{
	q->waited_ns = q->still_ns = 0;
}

/* The read pointer has moved, in this session or after its end. */
static void note_move(struct gp_amd_proof *p, struct gp_amd_pointers *q)
{
	if (q->read_address == p->stuck_address) {
		p->patience_ns = PATIENCE_NS; /* the end of the session resumed it */
		p->stuck_address = p->chance_ns = 0;
		p->end_due = false;
	} else if (q->waited_ns > q->longest_ns) {
		q->longest_ns = q->waited_ns;
	}
	forget_wait(q);
}

/* Notes what a reading shows of each queue. True: a read pointer has moved since the last one. */
static bool note_queues(struct gp_amd_task *t, const struct gp_amd_reading *g, bool is_first)
{
	struct gp_amd_proof *p = &t->proof;
	bool any = false;

	for (unsigned i = 0; i < g->n && i < t->npointers; i++) {
		struct gp_amd_pointers *q = &t->pointer[i];
		bool differs = q->taken != g->pointer[i].taken, moved = !is_first && differs;

		q->taken = g->pointer[i].taken;
		q->pending = g->pointer[i].pending;
		q->moved |= moved;
		any |= moved;
		if (differs)
			note_move(p, q);
		else if (!q->pending)
			forget_wait(q);
	}
	p->read_in_hold = p->of_hold && t->held;
	return any;
}

static bool all_have_moved(const struct gp_amd_task *t)
{
	for (unsigned i = 0; i < t->npointers; i++)
		if (!t->pointer[i].moved)
			return false;
	return true;
}

static bool any_has_moved(const struct gp_amd_task *t)
{
	for (unsigned i = 0; i < t->npointers; i++)
		if (t->pointer[i].moved)
			return true;
	return false;
}

/* Adds the time since the last reading to the queues that show no effect of the release. Returns
 * the one with the longest time; NULL: there is none. */
static const struct gp_amd_pointers *add_waits(struct gp_amd_task *t, bool all_run,
					       uint64_t passed_ns, uint64_t now_ns)
{
	const struct gp_amd_pointers *longest = NULL;

	for (unsigned i = 0; i < t->npointers; i++) {
		struct gp_amd_pointers *q = &t->pointer[i];
		bool waits = !all_run && q->pending && !q->moved;

		if (!waits)
			forget_wait(q);
		else if (!q->still_ns)
			q->still_number = t->proof.number;
		if (waits && !q->still_ns)
			q->still_ns = now_ns;
		q->waited_ns += waits ? passed_ns : 0;
		if (waits && (!longest || q->waited_ns > longest->waited_ns))
			longest = q;
	}
	return longest;
}

static void forget_waits(struct gp_amd_task *t)
{
	for (unsigned i = 0; i < t->npointers; i++)
		forget_wait(&t->pointer[i]);
}

/* Whether the queue has not moved for too long over several releases. */
static bool stands_still(const struct gp_amd_proof *p, const struct gp_amd_pointers *q,
			 unsigned factor, uint64_t now_ns)
{
	return q->still_ns && releases_of(p, q) >= RELEASES_MIN &&
	       now_ns - q->still_ns >= STILL_NS * factor && q->waited_ns >= LONGER * q->longest_ns;
}

static const struct gp_amd_pointers *find_still(const struct gp_amd_task *t, unsigned factor,
						uint64_t now_ns)
{
	for (unsigned i = 0; i < t->npointers; i++)
		if (stands_still(&t->proof, &t->pointer[i], factor, now_ns))
			return &t->pointer[i];
	return NULL;
}

/* The queue for which the session was ended has not moved since the end. */
static void note_chance(struct gp_amd_proof *p, const struct gp_amd_pointers *q, uint64_t passed_ns)
{
	if (!p->after_end || p->had_chance || q->read_address != p->stuck_address)
		return;
	p->chance_ns += passed_ns;
	p->had_chance = p->chance_ns >= CHANCE_NS && p->chance_ns >= LONGER * q->longest_ns;
	if (p->had_chance && p->patience_ns < PATIENCE_MAX_NS)
		p->patience_ns *= 2;
	p->chance_ns = p->had_chance ? 0 : p->chance_ns;
}

static bool look_at_release(struct gp_amd_task *t, const struct gp_amd_reading *g,
			    uint64_t passed_ns, uint64_t now_ns)
{
	struct gp_amd_proof *p = &t->proof;
	bool runs = g->occupied > 0, progress = runs || any_has_moved(t);
	bool all_run = runs && t->npointers == 1;
	const struct gp_amd_pointers *still, *stopped;
	uint64_t patience_ns;
	unsigned factor = progress ? IN_PART : 1;

	passed_ns = passed_ns < STEP_MAX_NS ? passed_ns : STEP_MAX_NS;
	still = add_waits(t, all_run, passed_ns, now_ns);
	p->seen |= progress;
	if (!still) {
		bool was_quiet = p->state == GP_AMD_PROOF_QUIET;

		p->seen_all = all_run || all_have_moved(t);
		p->state = p->seen_all ? GP_AMD_PROOF_DONE : GP_AMD_PROOF_QUIET;
		p->ends = progress ? 0 : p->ends;
		if (progress && !(was_quiet && p->state == GP_AMD_PROOF_QUIET))
			p->patience_ns = PATIENCE_NS;
		return false;
	}
	if (is_evicted(t)) {
		if (p->state != GP_AMD_PROOF_QUIET)
			p->state = GP_AMD_PROOF_EVICTED;
		forget_waits(t);
		return false;
	}
	if (!p->patience_ns)
		p->patience_ns = PATIENCE_NS;
	note_chance(p, still, passed_ns);
	p->in_part = progress;
	p->looked_ns += passed_ns;
	patience_ns = factor * (p->after_end ? PATIENCE_NS : p->patience_ns);
	stopped = find_still(t, (unsigned)(factor * p->patience_ns / PATIENCE_NS), now_ns);
	if (still->waited_ns < patience_ns && !stopped)
		return false;
	disprove_release(t, stopped ? stopped : still, now_ns);
	forget_waits(t);
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

bool gp_amd_proof_wants_occupancy(const struct gp_amd_task *t)
{
	if (t->proof.state != GP_AMD_PROOF_QUIET)
		return t->proof.state != GP_AMD_PROOF_DONE;
	for (unsigned i = 0; i < t->npointers; i++)
		if (t->pointer[i].waited_ns)
			return true;
	return false;
}

/* The release was answered before, so nothing else asks for it again. */
static void ask_again(struct gp_amd_task *t)
{
	struct gp_kfd_thread *h = t->gpu->kfd_thread;

	if (gp_amd_ask(h, GP_AMD_RELEASE, t))
		gp_requests_wake(&h->requests);
}

static bool is_disproved_end(const struct gp_amd_proof *p)
{
	return p->disproved && p->after_end;
}

/* Nothing speaks against the release any more. */
static void believe_end(struct gp_amd_task *t, const char *by)
{
	t->proof.disproved = false;
	t->proof.ends = 0;
	t->failed = 0;
	t->why = (struct gp_error){0};
	gp_log(GP_LOG_INFO, "release.confirmed", "pid=%d by=%s", t->pid, by);
}

/* Of a release that was disproved after the end of the session: whether it has an effect now. */
static bool look_again(struct gp_amd_task *t, const struct gp_amd_reading *g, uint64_t now_ns)
{
	bool is_first = !t->proof.read_ns;

	t->proof.read_ns = now_ns;
	note_queues(t, g, is_first);
	if (add_waits(t, g->occupied > 0 && t->npointers == 1, 0, now_ns))
		return false;
	believe_end(t, "progress");
	return true;
}

void gp_amd_proof_lose_pointers(struct gp_amd_task *t)
{
	t->has_pointers = t->activity_known = t->active = false;
	t->proof.state = GP_AMD_PROOF_DONE;
	if (is_disproved_end(&t->proof)) /* by readings of queues that are not there any more */
		believe_end(t, "driver");
}

bool gp_amd_proof_note(struct gp_amd_task *t, const struct gp_amd_reading *g, uint64_t now_ns)
{
	struct gp_amd_proof *p = &t->proof;
	uint64_t passed_ns = p->read_ns ? now_ns - p->read_ns : 0;
	bool was_open = is_begun(p), quiet, failed = false, is_first, moved;

	if (p->state == GP_AMD_PROOF_EVICTED && !is_evicted(t)) {
		gp_amd_proof_begin(t, false, false, now_ns);
		if (is_begun(p)) /* answered before: see ask_again() */
			p->state = GP_AMD_PROOF_QUIET;
		return true;
	}
	if (g->known && g->proof_number == p->number && is_disproved_end(p) && !t->queued)
		return look_again(t, g, now_ns);
	quiet = p->state == GP_AMD_PROOF_QUIET;
	if (g->proof_number != p->number || !p->number || p->disproved ||
	    (!was_open && !quiet && !t->held))
		return false;
	if (is_being_changed(t)) {
		p->read_ns = 0;
		return false;
	}
	if (!g->known) { /* its memory cannot be read: there is no evidence */
		p->state = GP_AMD_PROOF_DONE;
		return was_open;
	}
	is_first = !p->read_ns;
	moved = note_queues(t, g, is_first);
	p->read_ns = now_ns;
	if (was_open)
		p->state = GP_AMD_PROOF_LOOKING;
	if (p->of_hold && t->held)
		failed = look_at_hold(t, g, is_first, moved, now_ns);
	else if (!p->of_hold && (was_open || quiet))
		failed = look_at_release(t, g, passed_ns, now_ns);
	if (failed && quiet)
		ask_again(t);
	return failed || (was_open && !is_begun(p));
}
