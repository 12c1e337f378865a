/* SPDX-License-Identifier: Apache-2.0 */
#include "hold/hold.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process.h"
#include "hold/replay.h"

#define ANSWER_NS    (10 * GP_NS_PER_S) /* a driver call that takes longer counts as hung */
#define AGAIN_NS     (5 * GP_NS_PER_S)  /* a release that fails is repeated for so long */
#define AGAIN_MIN_NS (1 * GP_NS_PER_MS) /* before the first repetition; doubled each time */
#define AGAIN_MAX_NS (500 * GP_NS_PER_MS)
#define DOUBT_NS     (900 * GP_NS_PER_MS) /* without work after a release */
#define RECORD_NS    (5 * GP_NS_PER_S)    /* for a back end to describe how to undo */
#define STEP_NS      (200 * GP_NS_PER_MS) /* between heartbeats while the driver works */
#define PAUSE_NS     (20 * GP_NS_PER_MS)  /* between two observations of a device without events */

static uint64_t now(void)
{
	return gp_monotonic_ns();
}

/* "4711 (train.py) on NVIDIA H200 #0". Returns `out`. */
static const char *hold_name(char *out, size_t size, const struct gp_task_ref *ref)
{
	snprintf(out, size, "%d (%s) on %s", ref->seen.pid, ref->seen.name, ref->gpu->info.name);
	return out;
}

void gp_holds_wait(const struct gp_holds *holds, uint64_t until_ns, int stop_fd)
{
	struct pollfd p[GP_DEVICES_MAX + 1];
	unsigned n = holds->devices->n;
	uint64_t at_ns = now(), ignored;
	struct timespec timeout;

	for (unsigned i = 0; i < n; i++) {
		p[i] = (struct pollfd){.fd = gp_gpu_event_fd(holds->devices->device[i].gpu),
				       .events = POLLIN};
		if (p[i].fd < 0 && until_ns > at_ns + PAUSE_NS)
			until_ns = at_ns + PAUSE_NS;
	}
	p[n] = (struct pollfd){.fd = stop_fd, .events = POLLIN};
	timeout = gp_timespec(until_ns > at_ns ? until_ns - at_ns : 0);
	if (ppoll(p, n + 1, &timeout, NULL) <= 0)
		return;
	for (unsigned i = 0; i < n; i++)
		if (p[i].revents && read(p[i].fd, &ignored, sizeof ignored) < 0)
			continue; /* another thread has read it, or it will be signalled again */
}

static void observe(struct gp_hold *h)
{
	struct gp_observation o = {.handle = h->handle};

	if (!h->attached || gp_gpu_observe(h->ref.gpu, now(), &o, 1))
		return;
	h->last = o;
	if (h->asked && !(o.under_way & GP_UNDER_WAY_HOLD)) {
		h->asked = false;
		h->status = o.failed;
		h->driver_code = o.driver_code;
		h->took_ns = now() - h->asked_ns;
	}
	if (o.known & GP_KNOWN_HELD || o.evidence == GP_EVIDENCE_NONE)
		h->held = o.held;
	h->confirmed = (o.known & GP_KNOWN_HELD) && !h->asked && !o.unsure && !o.unproven;
}

/* The first heartbeat is sent in any case: the keeper misses only heartbeats that have begun. */
void gp_hold_heartbeat(struct gp_undo_file *undo, int slot, const struct gp_gpu *gpu,
		       uint64_t now_ns)
{
	if (slot >= 0 &&
	    (!gp_gpu_is_stuck(gpu, now_ns) || !gp_undo_record_heartbeat_ns(undo, (unsigned)slot)))
		gp_undo_record_heartbeat(undo, (unsigned)slot, now_ns);
}

/* Only for records that have a heartbeat already: see gp_holds_heartbeat. */
static void go_on_with_heartbeat(const struct gp_holds *holds, const struct gp_hold *h)
{
	if (h->slot >= 0 && gp_undo_record_heartbeat_ns(holds->undo, (unsigned)h->slot))
		gp_hold_heartbeat(holds->undo, h->slot, h->ref.gpu, now());
}

void gp_holds_refresh(struct gp_holds *holds)
{
	for (unsigned i = 0; i < holds->n; i++) {
		observe(&holds->hold[i]);
		go_on_with_heartbeat(holds, &holds->hold[i]);
	}
}

void gp_holds_heartbeat(const struct gp_holds *holds)
{
	for (unsigned i = 0; i < holds->n; i++)
		gp_hold_heartbeat(holds->undo, holds->hold[i].slot, holds->hold[i].ref.gpu, now());
}

/* Whether the device must list the task. An AMD process that is not held may have no queue for a
 * moment, and its next one is held. */
static bool should_be_listed(const struct gp_hold *h)
{
	return h->held || h->status == -ESRCH || gp_pidfd_ended(h->pidfd);
}

/* Of a task that is not listed: its process has ended, or has executed another program. */
static bool has_left(const struct gp_hold *h)
{
	struct gp_seen ignored;
	int r;

	if (gp_pidfd_ended(h->pidfd))
		return true;
	r = gp_gpu_find(h->ref.gpu, h->ref.seen.pid, &ignored, NULL);
	return r == -ENODEV || r == -ESRCH;
}

bool gp_hold_has_ended(const struct gp_holds *holds, struct gp_hold *h)
{
	struct gp_task_ref *ref;
	bool listed = false;
	int n;

	if (h->pidfd < 0 || !should_be_listed(h))
		return false;
	n = gp_devices_scan(holds->devices, h->ref.device, &ref, NULL);
	for (int i = 0; i < n; i++) {
		if (ref[i].seen.key != h->ref.seen.key)
			continue;
		listed = true; /* also while the back end has not noticed the exit yet */
		if (ref[i].seen.pid == h->ref.seen.pid || !gp_pidfd_ended(h->pidfd))
			continue;
		close(h->pidfd);
		h->pidfd = gp_pidfd_open(ref[i].seen.pid);
		h->ref.seen = ref[i].seen;
	}
	free(ref);
	return !listed && has_left(h);
}

bool gp_hold_is_recorded(const struct gp_holds *holds, const struct gp_hold *h)
{
	struct gp_undo_entry e;

	return h->slot >= 0 && gp_undo_get(holds->undo, (unsigned)h->slot, &e) &&
	       e.owner == getpid() && !e.release_asked;
}

static int check_free(const struct gp_holds *holds, const struct gp_task_ref *ref,
		      struct gp_error *err)
{
	if (!(ref->gpu->info.caps & GP_CAP_HOLD))
		return gp_fail(err, -ENOTSUP, "%s cannot hold tasks", ref->gpu->info.name);
	return gp_records_check_free(holds->undo, ref->seen.pid, ref->seen.start_time, err);
}

/* Takes the back end's own explanation of the failure. False: it has none. */
static bool add_reason(const struct gp_hold *h, int code, struct gp_error *err)
{
	struct gp_error why = {0};

	if (h->attached)
		gp_gpu_why(h->ref.gpu, h->handle, &why);
	if (*why.text)
		gp_fail(err, code, "%s", why.text);
	return *why.text;
}

/* A back end needs a moment after attach before it knows how to put a task back. */
static int write_record(struct gp_holds *holds, struct gp_hold *h, struct gp_error *err)
{
	uint64_t until_ns = now() + RECORD_NS;
	struct gp_undo undo;
	int r;

	while ((r = gp_gpu_undo_record(h->ref.gpu, h->handle, &undo)) == -EAGAIN &&
	       now() < until_ns)
		gp_holds_wait(holds, until_ns, -1);
	if (r) {
		if (add_reason(h, r, err))
			return r;
		return gp_fail(err, r, "cannot describe how to undo changes to process %d: %s",
			       h->ref.seen.pid, gp_error_name(r));
	}
	undo.hold_only = true;
	r = gp_undo_put(holds->undo, h->ref.gpu->ops->name, &undo);
	if (r < 0)
		return gp_fail(err, r, "cannot write the undo record of process %d: %s",
			       h->ref.seen.pid, gp_error_name(r));
	h->slot = r;
	return 0;
}

static int begin_one(struct gp_holds *holds, const struct gp_task_ref *ref, struct gp_error *err)
{
	struct gp_hold *h = &holds->hold[holds->n];
	int r = check_free(holds, ref, err);

	if (r)
		return r;
	*h = (struct gp_hold){.ref = *ref, .slot = -1};
	h->pidfd = gp_pidfd_open(ref->seen.pid);
	holds->n++;
	r = gp_gpu_attach(ref->gpu, ref->seen.key, &h->handle);
	if (r)
		return gp_fail(err, r, "cannot attach to process %d: %s", ref->seen.pid,
			       gp_error_name(r));
	h->attached = true;
	return write_record(holds, h, err);
}

int gp_holds_begin(struct gp_holds *holds, const struct gp_devices *devices,
		   const struct gp_task_ref *ref, unsigned n, struct gp_error *err)
{
	int r;

	*holds = (struct gp_holds){.devices = devices, .hold = calloc(n, sizeof *holds->hold)};
	if (!holds->hold)
		return gp_fail(err, -ENOMEM, "not enough memory");
	r = gp_undo_open(&holds->undo, true, err);
	if (!r)
		gp_records_replay_dead(holds->undo); /* restores the original state */
	for (unsigned i = 0; i < n && !r; i++)
		r = begin_one(holds, &ref[i], err);
	return r;
}

static void note_answer(struct gp_hold *h, const struct gp_action *a)
{
	h->asked = a->status == -EINPROGRESS;
	h->status = h->asked ? 0 : a->status;
	h->driver_code = a->driver_code;
	if (!h->asked)
		h->took_ns = now() - h->asked_ns;
}

/* Makes one call for all tasks of a device. */
static int ask_device(struct gp_holds *holds, unsigned device, bool hold)
{
	struct gp_gpu *gpu = holds->devices->device[device].gpu;
	struct gp_action *action = calloc(holds->n + 1, sizeof *action);
	unsigned *index = calloc(holds->n + 1, sizeof *index), n = 0;
	uint64_t at_ns = now();
	int r = action && index ? 0 : -ENOMEM;

	for (unsigned i = 0; i < holds->n && !r; i++) {
		struct gp_hold *h = &holds->hold[i];

		/* Without a hold of its own this process would only repeat what the driver reads
		 * back, and the task would run as soon as another process releases it. */
		if (!h->attached || h->ref.device != device ||
		    (hold && h->ours && h->held && !h->last.unsure))
			continue;
		h->asked_ns = at_ns;
		action[n].handle = h->handle;
		index[n++] = i;
	}
	if (n)
		r = gp_gpu_act(gpu, at_ns, hold ? GP_ACT_HOLD : GP_ACT_RELEASE, action, n);
	for (unsigned i = 0; i < n; i++) {
		action[i].status = r ? r : action[i].status;
		note_answer(&holds->hold[index[i]], &action[i]);
	}
	free(action);
	free(index);
	return r;
}

/* Whether the driver has not answered yet, or the answer has not been proven yet. */
static bool any_open(const struct gp_holds *holds)
{
	for (unsigned i = 0; i < holds->n; i++)
		if (holds->hold[i].asked || holds->hold[i].last.unproven)
			return true;
	return false;
}

/* An accepted action has failed if the device shows another state, or does not know it. */
static bool is_disproved(const struct gp_hold *h, bool hold)
{
	return h->last.unsure || ((h->last.known & GP_KNOWN_HELD) && h->held != hold);
}

/* Whether the process has ended, so that nothing is held. A child that inherited the queues takes
 * its place. */
static bool ended_meanwhile(const struct gp_holds *holds, struct gp_hold *h, uint64_t until_ns)
{
	while (h->pidfd >= 0 && gp_pidfd_ended(h->pidfd)) {
		if (gp_hold_has_ended(holds, h) || now() >= until_ns)
			return true;
		gp_holds_wait(holds, now() + PAUSE_NS, -1);
	}
	return false;
}

/* Evaluates the answer for one task. Releasing a task of an ended process succeeds. */
static int outcome(struct gp_hold *h, bool hold, struct gp_error *err)
{
	char name[160], code[32] = "";

	if (h->asked) {
		h->asked = false;
		h->status = -ETIMEDOUT;
	}
	if (!h->status && is_disproved(h, hold))
		h->status = h->last.failed ? h->last.failed : -EIO;
	if (h->status == -ESRCH && !hold)
		h->status = 0;
	if (!h->status) {
		h->ours = hold;
		if (hold && !h->since_ns)
			h->since_ns = h->asked_ns + h->took_ns;
		return 0;
	}
	if (h->pidfd >= 0 && gp_pidfd_ended(h->pidfd))
		return gp_fail(err, h->status, "process %d has ended", h->ref.seen.pid);
	if (h->driver_code)
		snprintf(code, sizeof code, " (driver code 0x%x)", h->driver_code);
	if (add_reason(h, h->status, err))
		return h->status;
	return gp_fail(err, h->status, "cannot %s %s: %s%s", hold ? "hold" : "release",
		       hold_name(name, sizeof name, &h->ref), gp_error_name(h->status), code);
}

static int switch_all(struct gp_holds *holds, bool hold, struct gp_error *err)
{
	uint64_t until_ns = now() + ANSWER_NS;
	int r = 0;

	for (unsigned i = 0; i < holds->devices->n && !r; i++)
		r = ask_device(holds, i, hold);
	if (r == -ENOMEM)
		return gp_fail(err, r, "not enough memory");
	gp_holds_refresh(holds);
	while (any_open(holds) && now() < until_ns) {
		uint64_t step_ns = now() + STEP_NS;

		gp_holds_wait(holds, step_ns < until_ns ? step_ns : until_ns, -1);
		gp_holds_refresh(holds);
	}
	gp_holds_refresh(holds);
	r = 0;
	for (unsigned i = 0; i < holds->n; i++) {
		struct gp_hold *h = &holds->hold[i];
		int code;

		if (hold && !h->asked && !h->status && ended_meanwhile(holds, h, until_ns))
			h->status = -ESRCH;
		code = outcome(h, hold, err);

		r = r ? r : code;
	}
	return r;
}

/* A hold is repeated only if the driver refuses a queue that is being made or destroyed. */
static int switch_surely(struct gp_holds *holds, bool hold, struct gp_error *err)
{
	uint64_t until_ns = now() + AGAIN_NS, pause_ns = AGAIN_MIN_NS;

	for (;;) {
		struct gp_error why = {0};
		int r = switch_all(holds, hold, &why);

		if (!r)
			return 0;
		if (r == -ENOMEM || now() >= until_ns || (hold && r != -EAGAIN))
			return gp_fail(err, r, "%s", why.text);
		gp_holds_wait(holds, now() + pause_ns, -1);
		pause_ns = pause_ns < AGAIN_MAX_NS ? 2 * pause_ns : AGAIN_MAX_NS;
	}
}

int gp_holds_hold(struct gp_holds *holds, struct gp_error *err)
{
	return switch_surely(holds, true, err);
}

/* Releases are repeated: a task that stays held does no work. */
int gp_holds_release(struct gp_holds *holds, struct gp_error *err)
{
	return switch_surely(holds, false, err);
}

int gp_holds_put_back(struct gp_holds *holds, struct gp_error *err)
{
	int r = 0;

	for (unsigned i = 0; i < holds->n; i++) {
		struct gp_hold *h = &holds->hold[i];
		struct gp_error why = {0};
		int code = h->attached && !h->status ? gp_gpu_put_back(h->ref.gpu, h->handle, &why)
						     : 0;

		if (!code || code == -ENOTSUP || code == -ESRCH)
			continue;
		h->status = code;
		r = r ? r : gp_fail(err, code, "%s", why.text);
	}
	return r;
}

/* Whether the work of the task has been looked for and was not seen. */
static bool is_in_doubt(const struct gp_hold *h)
{
	return h->last.unfinished && now() > h->asked_ns + DOUBT_NS && !gp_pidfd_ended(h->pidfd);
}

/* The record of a release that is in doubt is left to the keeper, without an owner. */
static void detach(struct gp_holds *holds, struct gp_hold *h, bool drop)
{
	unsigned slot = (unsigned)h->slot;
	struct gp_undo_entry e;

	observe(h);
	if (h->attached)
		gp_gpu_detach(h->ref.gpu, h->handle);
	drop &= h->slot >= 0 && gp_undo_get(holds->undo, slot, &e) && e.owner == getpid();
	if (drop && is_in_doubt(h))
		gp_undo_give_back(holds->undo, slot, &e);
	else if (drop)
		gp_undo_drop_same(holds->undo, slot, &e);
	if (h->pidfd >= 0)
		close(h->pidfd);
}

int gp_holds_remove(struct gp_holds *holds, unsigned i, struct gp_error *err)
{
	struct gp_holds one = *holds;
	int r;

	one.n = 1;
	one.hold = &holds->hold[i];
	r = gp_holds_release(&one, err);
	if (!r)
		r = gp_holds_put_back(&one, err);
	if (r)
		return r;
	detach(holds, &holds->hold[i], true);
	holds->hold[i] = holds->hold[--holds->n];
	return 0;
}

void gp_holds_end(struct gp_holds *holds)
{
	gp_holds_put_back(holds, NULL);
	for (unsigned i = 0; i < holds->n; i++)
		detach(holds, &holds->hold[i], !holds->hold[i].status);
	free(holds->hold);
	gp_undo_close(holds->undo);
	*holds = (struct gp_holds){0};
}
