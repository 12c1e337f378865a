/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An owner of records can be lost in three ways:
 *
 * It is dead: its pidfd says so, or it is a zombie. Each record is claimed, undone and dropped. The
 * claim makes the keeper the owner. A scheduler that starts meanwhile waits with the task
 * (gp_undo_put returns -EBUSY), and other processes that replay records skip it. If the keeper dies
 * meanwhile, the record has a dead owner again.
 *
 * It is alive but sends no heartbeat: it is stopped, frozen or hangs. Its records are undone but
 * stay, with the same owner. The owner may continue at any instruction, even between its check of
 * the epoch and a call to the driver; what it holds then still has a record. The epoch is
 * incremented before and after, so that the owner sees at least one of the two increments and
 * starts anew. A driver call that was in progress may take effect after the undo. Therefore the
 * undo is repeated, at growing intervals, until a heartbeat arrives. A heartbeat stops the replay
 * even between two records. If the undo keeps failing, only the owner can release the task. It is
 * killed: SIGKILL also ends a frozen process, and the driver or the replay then releases the task.
 * It is not killed if the driver confirms the undo and only the work of the task is missing: the
 * program may wait for its host.
 *
 * It is alive, sends heartbeats, and does not release a task whose release was asked for: the
 * record is undone and stays. Such an owner is not killed.
 *
 * Silence is counted in checks, not in seconds. If the machine was suspended or the keeper was
 * stopped, a late check counts once: the scheduler had no more time than the keeper.
 */
#include "keeper/heartbeat_watch.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/process.h"
#include "hold/replay.h"

#define INTERVAL_NS      (250 * GP_NS_PER_MS) /* between two checks */
#define BACKOFF_MIN_NS   (500 * GP_NS_PER_MS)
#define BACKOFF_MAX_NS   (30 * GP_NS_PER_S) /* after an undo that succeeded */
#define FAILED_MAX_NS    GP_NS_PER_S        /* after one that failed: a program may stand still */

#define CONFIRM_NS       (5 * GP_NS_PER_S) /* from an undo without work to its repetition */

#define KILL_AFTER       3 /* failed attempts to take a task from a silent owner */
#define UNKILLABLE_AFTER 8 /* checks */

/* Owners of records. */

static struct gp_watched *find_owner(struct gp_watch *w, const struct gp_undo_entry *e)
{
	for (unsigned i = 0; i < w->nowners; i++)
		if (w->owner[i].pid == e->owner && w->owner[i].start_time == e->owner_start_time)
			return &w->owner[i];
	return NULL;
}

/* NULL: the process has ended, or there is no room. */
static struct gp_watched *add_owner(struct gp_watch *w, const struct gp_undo_entry *e)
{
	struct gp_watched *h = &w->owner[w->nowners];
	int pidfd = w->nowners < GP_WATCH_OWNERS ? gp_pidfd_open(e->owner) : -1;

	if (pidfd < 0)
		return NULL;
	*h = (struct gp_watched){
		.pid = e->owner, .start_time = e->owner_start_time, .pidfd = pidfd};
	/* The pid may have been reused before the pidfd was opened. */
	h->ended = !gp_process_lives(h->pid, h->start_time);
	w->nowners++;
	return h;
}

static bool owner_lives(struct gp_watch *w, const struct gp_undo_entry *e)
{
	struct gp_watched *h;

	if (e->owner <= 0)
		return false;
	if (e->owner == getpid()) /* the keeper has claimed it and is undoing it */
		return true;
	h = find_owner(w, e);
	if (!h)
		h = add_owner(w, e);
	if (!h)
		return gp_undo_owner_lives(e);
	h->wanted = true;
	return !h->ended;
}

/* Forgets owners that have ended or have no record any more. */
static void forget_owners(struct gp_watch *w)
{
	for (unsigned i = w->nowners; i-- > 0;)
		if (w->owner[i].ended || !w->owner[i].wanted) {
			close(w->owner[i].pidfd);
			w->owner[i] = w->owner[--w->nowners];
		}
}

/* Records. */

static bool belongs_to_scheduler(const struct gp_watch *w, const struct gp_undo_entry *e)
{
	return e->owner == w->scheduler.pid && e->owner_start_time == w->scheduler.start_time;
}

/* Whether so many checks take longer than an owner may be silent. */
static bool is_too_long(const struct gp_watch *w, unsigned checks)
{
	return checks * INTERVAL_NS >= w->timeout_ns;
}

/* An owner that was killed and hangs in the kernel is silent, whether it sent heartbeats or not. */
static bool is_silent(struct gp_watch *w, unsigned slot, const struct gp_undo_entry *e)
{
	const struct gp_watched *h = find_owner(w, e);

	if (h && h->hung)
		return true;
	return belongs_to_scheduler(w, e) ? w->silent : is_too_long(w, w->record[slot].missed);
}

/* Whether it is time to undo the record; if not, schedules the next search. */
static bool is_due(struct gp_watch *w, unsigned slot, uint64_t now_ns)
{
	uint64_t due_ns = w->record[slot].not_before_ns;

	if (now_ns >= due_ns)
		return true;
	if (due_ns < w->search_ns)
		w->search_ns = due_ns;
	return false;
}

/* Whether the owner lives. Its record is checked four times a second. */
static bool watch_owner(struct gp_watch *w, unsigned slot, const struct gp_undo_entry *e)
{
	if (!owner_lives(w, e))
		return false;
	if (!e->claimed)
		w->live[w->nlive++] = (uint16_t)slot;
	return true;
}

static bool is_overdue(struct gp_watch *w, unsigned slot, const struct gp_undo_entry *e)
{
	return is_silent(w, slot, e) || is_too_long(w, w->record[slot].asked);
}

/* Undoes a record whose owner lives. */
static void take(struct gp_watch *w, unsigned slot, const struct gp_undo_entry *e)
{
	struct gp_undo_entry taken = gp_record_to_take(e);

	gp_replay_ask(&w->replay, slot, &taken,
		      belongs_to_scheduler(w, e) ? w->scheduler.heartbeats
						 : w->record[slot].heartbeat_ns,
		      false);
}

static void check_record(struct gp_watch *w, unsigned slot, struct gp_undo_entry *e,
			 uint64_t now_ns)
{
	if (watch_owner(w, slot, e)) {
		w->record[slot].repeat = false;
		if (!e->claimed && is_overdue(w, slot, e) && is_due(w, slot, now_ns))
			take(w, slot, e);
	} else if (e->owner || is_due(w, slot, now_ns)) { /* the first attempt is made at once */
		if (gp_undo_claim(w->file, slot, e))
			gp_replay_ask(&w->replay, slot, e, 0, w->record[slot].repeat);
		else if (w->search_ns > now_ns + INTERVAL_NS)
			w->search_ns = now_ns + INTERVAL_NS; /* another process has it */
	}
}

/* A worker hangs in the kernel for this record. */
static void wait_for_worker(struct gp_watch *w, unsigned slot, const struct gp_undo_entry *e,
			    uint64_t now_ns)
{
	watch_owner(w, slot, e);
	if (w->search_ns > now_ns + INTERVAL_NS)
		w->search_ns = now_ns + INTERVAL_NS;
}

static void search(struct gp_watch *w, uint64_t now_ns)
{
	struct gp_undo_entry e;

	w->must_search = false;
	w->changes = gp_undo_changes(w->file);
	w->search_ns = GP_NEVER;
	w->nlive = 0;
	for (unsigned i = 0; i < w->nowners; i++) {
		w->owner[i].ended |= gp_pidfd_ended(w->owner[i].pidfd);
		w->owner[i].wanted = false;
	}
	for (unsigned i = 0; i < GP_UNDO_SLOTS; i++)
		if (!gp_undo_get(w->file, i, &e))
			w->record[i] = (struct gp_watched_record){0};
		else if (gp_replay_has(&w->replay, i))
			watch_owner(w, i, &e);
		else if (gp_replay_is_stuck(&w->replay, i))
			wait_for_worker(w, i, &e, now_ns);
		else
			check_record(w, i, &e, now_ns);
	forget_owners(w);
}

static void try_again_in(struct gp_watch *w, unsigned slot, uint64_t ns)
{
	w->record[slot].not_before_ns = gp_time_add(gp_monotonic_ns(), ns);
	if (w->record[slot].not_before_ns < w->search_ns)
		w->search_ns = w->record[slot].not_before_ns;
}

static void try_again_later(struct gp_watch *w, unsigned slot, uint64_t most_ns)
{
	uint64_t *backoff_ns = &w->record[slot].backoff_ns;

	*backoff_ns = *backoff_ns ? 2 * *backoff_ns : BACKOFF_MIN_NS;
	if (*backoff_ns > most_ns)
		*backoff_ns = most_ns;
	try_again_in(w, slot, *backoff_ns);
}

/* Only the owner can release the task, and it does not run. */
static void kill_owner(struct gp_watch *w, const struct gp_undo_entry *e)
{
	struct gp_watched *h = find_owner(w, e);
	int r;

	if (!h || h->killed)
		return;
	h->killed = 1;
	gp_log(GP_LOG_ERROR, "owner.killed", "pid=%d process=%d", e->owner, e->undo.pid);
	r = gp_pidfd_kill(h->pidfd);
	if (r)
		gp_log(GP_LOG_ERROR, "owner.not-killed", "pid=%d errno=%d", e->owner, -r);
}

/* A failed attempt to take a task from a living owner. -ETIME: the owner has nothing left to
 * release, as far as the driver says. */
static void note_failure(struct gp_watch *w, unsigned slot, const struct gp_undo_entry *e, int code)
{
	struct gp_watched_record *record = &w->record[slot];

	if (code == -ETIME) {
		record->failures = 0;
		return;
	}
	record->failures += code == -ETIMEDOUT ? KILL_AFTER : 1; /* it had 5 s */
	if (record->failures >= KILL_AFTER && is_silent(w, slot, e))
		kill_owner(w, e);
}

/* Only the driver says that the process of a dead owner is released: the undo is made once more,
 * later. With --once there is no later. */
static void confirm_later(struct gp_watch *w, unsigned slot, const struct gp_undo_entry *entry)
{
	gp_undo_note_failure(w->file, slot, 0);
	w->record[slot].repeat = true;
	try_again_in(w, slot, w->timeout_ns == GP_NEVER ? 0 : CONFIRM_NS);
	gp_undo_give_back(w->file, slot, entry);
}

static void take_result(void *arg, unsigned slot, const struct gp_undo_entry *entry, int result)
{
	struct gp_watch *w = arg;

	w->undone += result != -ECANCELED;
	w->record[slot].repeat = false;
	if (result == -EINPROGRESS) {
		confirm_later(w, slot, entry);
		return;
	}
	if (result != -ECANCELED)
		gp_undo_note_failure(w->file, slot, result ? gp_monotonic_ns() : 0);
	if (!result)
		w->record[slot].failures = 0;
	else if (result != -ECANCELED && !entry->claimed)
		note_failure(w, slot, entry, result);
	if (result || !entry->claimed)
		try_again_later(w, slot, result ? FAILED_MAX_NS : BACKOFF_MAX_NS);
	if (!entry->claimed)
		return;
	if (result)
		gp_undo_give_back(w->file, slot, entry);
	else
		gp_undo_drop_same(w->file, slot, entry);
}

/* Owners that live. */

/* Counts the checks without a heartbeat, and since a release was asked for. */
static void check_live_record(struct gp_watch *w, unsigned slot)
{
	struct gp_watched_record *record = &w->record[slot];
	uint64_t heartbeat_ns = gp_undo_record_heartbeat_ns(w->file, slot);
	struct gp_undo_entry e;

	if (!gp_undo_get(w->file, slot, &e))
		return;
	record->asked = e.release_asked ? record->asked + 1 : 0;
	if (heartbeat_ns != record->heartbeat_ns || !heartbeat_ns) {
		if (is_too_long(w, record->missed))
			*record = (struct gp_watched_record){.asked = record->asked};
		record->missed = 0;
	} else {
		record->missed++;
	}
	record->heartbeat_ns = heartbeat_ns;
	w->must_search |= is_too_long(w, record->missed) || is_too_long(w, record->asked);
}

/* A killed owner that does not end keeps its tasks stopped. */
static void check_killed(struct gp_watched *h)
{
	if (!h->killed || gp_pidfd_ended(h->pidfd))
		return;
	if (h->killed++ == UNKILLABLE_AFTER)
		gp_log(GP_LOG_ERROR, "owner.unkillable", "pid=%d", h->pid);
}

/* Only a process whose main thread has ended, or waits in the kernel, can hang there. */
static void check_hung(struct gp_watch *w, struct gp_watched *h)
{
	char state = gp_process_state(h->pid);
	bool was = h->hung;

	h->hung = (state == 'Z' || state == 'D') && !gp_pidfd_ended(h->pidfd) &&
		  !gp_process_can_run(h->pid, h->start_time);
	if (h->hung && !was)
		gp_log(GP_LOG_ERROR, "owner.hung", "pid=%d", h->pid);
	w->must_search |= h->hung && !was;
}

static void check_owners(struct gp_watch *w)
{
	for (unsigned i = 0; i < w->nlive; i++)
		check_live_record(w, w->live[i]);
	for (unsigned i = 0; i < w->nowners; i++) {
		check_killed(&w->owner[i]);
		check_hung(w, &w->owner[i]);
	}
}

/* The scheduler. */

static void forget_attempts(struct gp_watch *w)
{
	for (unsigned i = 0; i < GP_UNDO_SLOTS; i++)
		w->record[i].not_before_ns = w->record[i].backoff_ns = w->record[i].failures = 0;
}

static void note_heartbeat(struct gp_watch *w, const struct gp_undo_scheduler *now)
{
	if (w->silent) {
		forget_attempts(w);
		if (now->lives && now->pid == w->scheduler.pid)
			gp_log(GP_LOG_INFO, "scheduler.heartbeat-resumed", "pid=%d", now->pid);
	}
	w->missed = 0;
	w->silent = false;
}

static void check_scheduler(struct gp_watch *w)
{
	struct gp_undo_scheduler now;

	gp_undo_scheduler(w->file, &now);
	if (now.pid != w->scheduler.pid || now.start_time != w->scheduler.start_time) {
		if (now.pid)
			gp_log(GP_LOG_INFO, "scheduler.new", "pid=%d", now.pid);
		note_heartbeat(w, &now);
		w->must_search = true;
	} else if (now.heartbeats != w->scheduler.heartbeats || !now.lives) {
		note_heartbeat(w, &now);
	} else {
		w->missed++;
	}
	w->scheduler = now;
	if (w->silent || !now.lives || w->missed * INTERVAL_NS < w->timeout_ns)
		return;
	gp_log(GP_LOG_WARN, "scheduler.silent", "pid=%d", now.pid);
	w->silent = w->must_search = true;
	gp_undo_bump(w->file);
}

int gp_watch_begin(struct gp_watch *w, struct gp_undo_file *file, uint64_t timeout_ns,
		   struct gp_error *err)
{
	memset(w, 0, sizeof *w);
	w->file = file;
	w->timeout_ns = timeout_ns;
	w->must_search = true;
	return gp_replay_begin(&w->replay, file, err);
}

void gp_watch_end(struct gp_watch *w)
{
	gp_replay_end(&w->replay);
	for (unsigned i = 0; i < w->nowners; i++)
		close(w->owner[i].pidfd);
}

static bool any_owner_ended(const struct gp_watch *w)
{
	for (unsigned i = 0; i < w->nowners; i++)
		if (gp_pidfd_ended(w->owner[i].pidfd))
			return true;
	return false;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

uint64_t gp_watch_run(struct gp_watch *w, uint64_t now_ns, bool *is_check)
{
	uint64_t next_ns;

	*is_check = now_ns >= w->check_ns;
	if (*is_check) {
		w->check_ns = now_ns + INTERVAL_NS;
		check_scheduler(w);
		check_owners(w);
		w->must_search |= gp_undo_changes(w->file) != w->changes;
	}
	w->undone = 0;
	next_ns = gp_replay_run(&w->replay, now_ns, take_result, w);
	if (w->must_search || now_ns >= w->search_ns || any_owner_ended(w)) {
		search(w, now_ns);
		next_ns = earlier(next_ns, gp_replay_run(&w->replay, now_ns, take_result, w));
	}
	if (w->undone)
		gp_undo_bump(w->file);
	return earlier(next_ns, earlier(w->check_ns, w->search_ns));
}

void gp_watch_poll(const struct gp_watch *w, struct pollfd *p)
{
	for (unsigned i = 0; i < GP_WATCH_OWNERS; i++)
		p[i] = (struct pollfd){.fd = i < w->nowners ? w->owner[i].pidfd : -1,
				       .events = POLLIN};
	gp_replay_poll(&w->replay, p + GP_WATCH_OWNERS);
}

bool gp_watch_is_idle(const struct gp_watch *w)
{
	return !w->must_search && w->search_ns == GP_NEVER && !gp_replay_is_busy(&w->replay);
}
