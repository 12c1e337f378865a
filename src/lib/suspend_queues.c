/* SPDX-License-Identifier: Apache-2.0 */
/* Holding and releasing queues: which tasks are meant, then all or none of them. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "hold/replay.h"
#include "lib/lib.h"

/* Which tasks a call is about. */
struct meant {
	unsigned n;
	struct gp_place *place;
	unsigned already; /* queues that are as they should be, with the whole they belong to */
};

/* ---- what is meant ------------------------------------------------------------------------------
 */

/* The queue as it is now: there, and one that computes. */
static const struct gpreempt_queue *check(struct gpreempt *g, const struct lib_queues *queues,
                                          const struct gpreempt_queue *meant)
{
	const struct gpreempt_queue *q = lib_find_queue(queues, meant);

	if (!q)
		gp_fail(&g->err, -ENOENT, "process %d has no queue %u on device %u", g->pid,
		        meant->id, meant->device);
	else if (q->copies)
		gp_fail(&g->err, -EINVAL, "queue %u of process %d only copies: it is never held",
		        q->id, g->pid);
	else
		return q;
	return NULL;
}

static bool is_repeated(const struct gpreempt_queue *queue, unsigned i)
{
	for (unsigned k = 0; k < i; k++)
		if (queue[k].id == queue[i].id && queue[k].device == queue[i].device)
			return true;
	return false;
}

/* The task that is all of the process on a device; false: this handle has none. */
static bool find_whole(const struct gpreempt *g, unsigned device, struct gp_place *place)
{
	for (unsigned i = 0; i < g->ngrips; i++) {
		*place = g->grip[i].hold.place;
		if (place->device == device && place->seen.queue == GP_QUEUE_ALL)
			return true;
	}
	return false;
}

/* Where a whole that is held cannot be split, it runs for a moment. */
static int split(struct gpreempt *g, const struct gpreempt_queue *q, struct gp_place *place)
{
	int r = lib_split(g, q->device, q->id, place), again;
	struct gp_place whole;

	if (r != -EBUSY || !find_whole(g, q->device, &whole))
		return r;
	g->err = (struct gp_error){0};
	r = lib_switch(g, &whole, 1, false, &g->err);
	if (r)
		return r;
	r = lib_split(g, q->device, q->id, place);
	again = lib_switch(g, &whole, 1, true, &g->err);
	return r ? r : again;
}

/* Makes each queue a task, unless the whole that it belongs to is as it should be. */
static int choose_each(struct gpreempt *g, const struct gpreempt_queue *queue, unsigned n,
                       bool hold, struct meant *meant)
{
	int r = 0;

	for (unsigned i = 0; i < n && !r; i++) {
		bool whole = !lib_is_split(g, queue[i].device, queue[i].id);

		if (is_repeated(queue, i))
			continue;
		if (whole && lib_holds_all_on(g, queue[i].device) == hold) {
			meant->already++;
			continue;
		}
		r = split(g, &queue[i], &meant->place[meant->n]);
		/* One that another handle holds is not ours to release. */
		if (!r && (hold || whole || lib_grip_of(g, &meant->place[meant->n])))
			meant->n++;
	}
	return r;
}

static int choose_some(struct gpreempt *g, const struct lib_queues *queues,
                       const struct gpreempt_queue *queue, unsigned n, bool hold,
                       struct meant *meant)
{
	/* All are looked at before the first is made a task: that is for good. */
	for (unsigned i = 0; i < n; i++)
		if (!check(g, queues, &queue[i]))
			return g->err.code;
	meant->place = calloc(n, sizeof *meant->place);
	if (!meant->place)
		return gp_fail(&g->err, -ENOMEM, "no memory");
	return choose_each(g, queue, n, hold, meant);
}

/* Whether a task has queues that compute. */
static bool has_work(const struct gpreempt *g, const struct lib_queues *queues,
                     const struct gp_place *place)
{
	for (unsigned i = 0; i < queues->n; i++) {
		const struct gpreempt_queue *q = &queues->queue[i];
		bool is_of = place->seen.queue == GP_QUEUE_ALL ? !lib_is_split(g, q->device, q->id)
		                                               : q->id == place->seen.queue;

		if (q->device == place->device && !q->copies && is_of)
			return true;
	}
	return false;
}

static int choose_all(struct gpreempt *g, const struct lib_queues *queues, struct meant *meant)
{
	int n = lib_find_tasks(g, &meant->place);

	if (n < 0)
		return n;
	for (int i = 0; i < n; i++)
		if (has_work(g, queues, &meant->place[i]))
			meant->place[meant->n++] = meant->place[i];
	if (meant->n)
		return 0;
	g->err = (struct gp_error){0};
	return gp_fail(&g->err, -ENODEV, "process %d has no queues that compute%s", g->pid,
	               g->pid == getpid() ? " and could be held from outside; for a program's own "
	                                    "there is gpreempt_hold_self()"
	                                  : "");
}

static int choose(struct gpreempt *g, const struct gpreempt_queue *queue, unsigned n,
                  struct meant *meant)
{
	struct lib_queues queues;
	int r = lib_list(g, LIB_CLOSELY, &queues);

	if (!r)
		r = n ? choose_some(g, &queues, queue, n, true, meant)
		      : choose_all(g, &queues, meant);
	for (unsigned i = 0; i < meant->n && !r; i++)
		r = gp_refuse_shared(&meant->place[i].seen, g->pid, g->flags & GPREEMPT_FORCE,
		                     "works for many programs, which would all stop; "
		                     "GPREEMPT_FORCE does it",
		                     &g->err);
	free(queues.queue);
	return r;
}

/* ---- suspend ------------------------------------------------------------------------------------
 */

/* Who has it, if another program does: a record knows that better than the driver. */
static int check_free(struct gpreempt *g)
{
	struct gp_undo_file *file;
	int r = g->ngrips ? -ENOENT : gp_undo_open(&file, false, NULL);

	if (r)
		return 0; /* it is told when it is to be written */
	r = gp_records_check_free(file, g->pid, g->start_time, &g->err);
	gp_undo_close(file);
	return r;
}

/* How many of the process are held; *loose: how many are not, and compute. */
static int count_held(struct gpreempt *g, enum lib_look how, unsigned *loose)
{
	struct lib_queues queues;
	int r = lib_list(g, how, &queues);
	unsigned held = lib_count_held(&queues);

	*loose = 0;
	for (unsigned i = 0; i < queues.n; i++)
		*loose += !queues.queue[i].held && !queues.queue[i].copies;
	free(queues.queue);
	return r ? r : (int)held;
}

/* Again: what is attached is held before anything is looked for. How many, or 0: there is more to
 * do than that. */
static int suspend_attached(struct gpreempt *g)
{
	unsigned loose = 0;
	int r = g->ngrips ? lib_switch(g, NULL, 0, true, NULL) : -ENODEV;

	if (!r)
		r = count_held(g, LIB_CLOSELY, &loose);
	g->err = (struct gp_error){0};
	return r <= 0 || loose ? 0 : r;
}

static int suspend_queues(struct gpreempt *g, const struct gpreempt_queue *queue, unsigned n)
{
	struct meant meant = {0};
	unsigned loose;
	/* Before a look: what was asked of the devices is done then. */
	int r = lib_drop_gone(g) || n ? 0 : suspend_attached(g);

	if (r > 0)
		return r;
	r = check_free(g);
	if (!r)
		r = choose(g, queue, n, &meant);
	if (!r)
		r = lib_keep(g->machine);
	if (!r)
		r = lib_take(g, meant.place, meant.n);
	if (!r && meant.n)
		r = lib_switch(g, meant.place, meant.n, true, &g->err);
	if (!r)
		r = n ? (int)(meant.n + meant.already) : count_held(g, LIB_ATTACHED, &loose);
	free(meant.place);
	return r;
}

/* ---- resume -------------------------------------------------------------------------------------
 */

static int release_some(struct gpreempt *g, const struct lib_queues *queues,
                        const struct gpreempt_queue *queue, unsigned n)
{
	struct meant meant = {0};
	int r = choose_some(g, queues, queue, n, false, &meant);

	if (!r)
		r = lib_take(g, meant.place, meant.n);
	if (!r && meant.n)
		r = lib_switch(g, meant.place, meant.n, false, &g->err);
	free(meant.place);
	return r;
}

static int resume_queues(struct gpreempt *g, const struct gpreempt_queue *queue, unsigned n)
{
	struct lib_queues queues;
	int before, after, r;
	unsigned loose;

	lib_drop_gone(g);
	if (!g->ngrips)
		return 0;
	r = lib_list(g, LIB_ATTACHED, &queues);
	before = (int)lib_count_held(&queues);
	if (!n) /* whatever can be seen of it */
		r = lib_switch(g, NULL, 0, false, &g->err);
	else if (!r)
		r = release_some(g, &queues, queue, n);
	free(queues.queue);
	if (r)
		return r;
	after = count_held(g, LIB_ATTACHED, &loose);
	/* One that ended meanwhile is as good as released. */
	return after >= 0 && before > after ? before - after : 0;
}

/* ---- the calls ----------------------------------------------------------------------------------
 */

int gpreempt_suspend_queues(struct gpreempt *g, const struct gpreempt_queue *queue, unsigned n)
{
	struct lib_call call;
	int r = lib_enter(&call, g);

	if (!r)
		r = !queue != !n ? -EINVAL : suspend_queues(g, queue, n);
	return lib_leave(&call, r);
}

int gpreempt_resume_queues(struct gpreempt *g, const struct gpreempt_queue *queue, unsigned n)
{
	struct lib_call call;
	int r = lib_enter(&call, g);

	if (!r)
		r = !queue != !n ? -EINVAL : resume_queues(g, queue, n);
	return lib_leave(&call, r);
}
