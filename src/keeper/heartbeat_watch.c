/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A scheduler can be lost in two ways:
 *
 * It is dead: its pidfd says so, or it is a zombie. Each record is claimed, undone and dropped. The
 * claim makes the keeper the owner. A scheduler that starts meanwhile waits with the task
 * (gp_undo_put returns -EBUSY), and other processes that replay records skip it. If the keeper dies
 * meanwhile, the record has a dead owner again.
 *
 * It is alive but sends no heartbeat: it is stopped or hangs. Its records are undone but stay, with
 * the scheduler as their owner. The scheduler may continue at any instruction, even between its
 * check of the epoch and a call to the driver; what it holds then still has a record. The epoch is
 * incremented before and after, so that the scheduler sees at least one of the two increments and
 * starts anew. A driver call that was in progress may take effect after the undo. Therefore the
 * undo is repeated, at growing intervals, until a heartbeat arrives. A heartbeat stops the replay
 * even between two records.
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

#define INTERVAL_NS    (250 * GP_NS_PER_MS) /* between two checks */
#define BACKOFF_MIN_NS (500 * GP_NS_PER_MS)
#define BACKOFF_MAX_NS (30 * GP_NS_PER_S)

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

/* Whether it is time to undo the record; if not, schedules the next search. */
static bool is_due(struct gp_watch *w, unsigned slot, uint64_t now_ns)
{
	uint64_t due_ns = w->again[slot].not_before_ns;

	if (now_ns >= due_ns)
		return true;
	if (due_ns < w->search_ns)
		w->search_ns = due_ns;
	return false;
}

static void check_record(struct gp_watch *w, unsigned slot, struct gp_undo_entry *e,
			 uint64_t now_ns)
{
	if (owner_lives(w, e)) {
		if (!w->silent || !belongs_to_scheduler(w, e) || e->claimed ||
		    !is_due(w, slot, now_ns))
			return;
		e->undo.owner = e->owner;
		e->undo.owner_start_time = e->owner_start_time;
		gp_replay_ask(&w->replay, slot, e, w->scheduler.heartbeats);
	} else if (e->owner || is_due(w, slot, now_ns)) { /* the first attempt is made at once */
		if (gp_undo_claim(w->file, slot, e))
			gp_replay_ask(&w->replay, slot, e, 0);
		else if (w->search_ns > now_ns + INTERVAL_NS)
			w->search_ns = now_ns + INTERVAL_NS; /* another process has it */
	}
}

static void search(struct gp_watch *w, uint64_t now_ns)
{
	struct gp_undo_entry e;

	w->must_search = false;
	w->changes = gp_undo_changes(w->file);
	w->search_ns = GP_NEVER;
	for (unsigned i = 0; i < w->nowners; i++) {
		w->owner[i].ended |= gp_pidfd_ended(w->owner[i].pidfd);
		w->owner[i].wanted = false;
	}
	for (unsigned i = 0; i < GP_UNDO_SLOTS; i++)
		if (gp_undo_get(w->file, i, &e)) {
			if (!gp_replay_has(&w->replay, i))
				check_record(w, i, &e, now_ns);
		} else {
			w->again[i].not_before_ns = w->again[i].backoff_ns = 0;
		}
	forget_owners(w);
}

static void try_again_later(struct gp_watch *w, unsigned slot)
{
	uint64_t *backoff_ns = &w->again[slot].backoff_ns;

	*backoff_ns = *backoff_ns ? 2 * *backoff_ns : BACKOFF_MIN_NS;
	if (*backoff_ns > BACKOFF_MAX_NS)
		*backoff_ns = BACKOFF_MAX_NS;
	w->again[slot].not_before_ns = gp_time_add(gp_monotonic_ns(), *backoff_ns);
	if (w->again[slot].not_before_ns < w->search_ns)
		w->search_ns = w->again[slot].not_before_ns;
}

static void take_result(void *arg, unsigned slot, const struct gp_undo_entry *entry, int result)
{
	struct gp_watch *w = arg;

	w->undone += result != -ECANCELED;
	if (result || !entry->claimed)
		try_again_later(w, slot);
	if (!entry->claimed)
		return;
	if (result)
		gp_undo_give_back(w->file, slot, entry);
	else
		gp_undo_drop_same(w->file, slot, entry);
}

/* The scheduler. */

static void note_heartbeat(struct gp_watch *w, const struct gp_undo_scheduler *now)
{
	if (w->silent) {
		memset(w->again, 0, sizeof w->again);
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
