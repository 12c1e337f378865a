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
	struct gp_task_ref *ref;
	unsigned already; /* queues that are as they should be, with the whole they belong to */
};

/* ---- what is meant ------------------------------------------------------------------------------
 */

/* The queue as it is now: there, and one that computes. */
static const struct gpreempt_queue *check(struct gpreempt *g, const struct gp_lib_queues *queues,
                                          const struct gpreempt_queue *meant)
{
	const struct gpreempt_queue *q = gp_lib_find_queue(queues, meant);

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
static bool find_whole(const struct gpreempt *g, unsigned device, struct gp_task_ref *ref)
{
	for (unsigned i = 0; i < g->nattachments; i++) {
		*ref = g->attachment[i].hold.ref;
		if (ref->device == device && ref->seen.queue == GP_QUEUE_ALL)
			return true;
	}
	return false;
}

/* Where a whole that is held cannot be split, it runs for a moment. */
static int split(struct gpreempt *g, const struct gpreempt_queue *q, struct gp_task_ref *ref)
{
	int r = gp_lib_split(g, q->device, q->id, ref), again;
	struct gp_task_ref whole;

	if (r != -EBUSY || !find_whole(g, q->device, &whole))
		return r;
	g->err = (struct gp_error){0};
	r = gp_lib_switch(g, &whole, 1, false, &g->err);
	if (r)
		return r;
	r = gp_lib_split(g, q->device, q->id, ref);
	again = gp_lib_switch(g, &whole, 1, true, &g->err);
	return r ? r : again;
}

/* Makes each queue a task, unless the whole that it belongs to is as it should be. */
static int choose_each(struct gpreempt *g, const struct gpreempt_queue *queue, unsigned n,
                       bool hold, struct meant *meant)
{
	int r = 0;

	for (unsigned i = 0; i < n && !r; i++) {
		bool whole = !gp_lib_is_split(g, queue[i].device, queue[i].id);

		if (is_repeated(queue, i))
			continue;
		if (whole && gp_lib_holds_all_on(g, queue[i].device) == hold) {
			meant->already++;
			continue;
		}
		r = split(g, &queue[i], &meant->ref[meant->n]);
		/* One that another handle holds is not ours to release. */
		if (!r && (hold || whole || gp_lib_attachment_of(g, &meant->ref[meant->n])))
			meant->n++;
	}
	return r;
}

static int choose_some(struct gpreempt *g, const struct gp_lib_queues *queues,
                       const struct gpreempt_queue *queue, unsigned n, bool hold,
                       struct meant *meant)
{
	/* All are looked at before the first is made a task: that is for good. */
	for (unsigned i = 0; i < n; i++)
		if (!check(g, queues, &queue[i]))
			return g->err.code;
	meant->ref = calloc(n, sizeof *meant->ref);
	if (!meant->ref)
		return gp_fail(&g->err, -ENOMEM, "no memory");
	return choose_each(g, queue, n, hold, meant);
}

/* Whether a task has queues that compute. */
static bool has_work(const struct gpreempt *g, const struct gp_lib_queues *queues,
                     const struct gp_task_ref *ref)
{
	for (unsigned i = 0; i < queues->n; i++) {
		const struct gpreempt_queue *q = &queues->queue[i];
		bool is_of = ref->seen.queue == GP_QUEUE_ALL ? !gp_lib_is_split(g, q->device, q->id)
		                                             : q->id == ref->seen.queue;

		if (q->device == ref->device && !q->copies && is_of)
			return true;
	}
	return false;
}

static int choose_all(struct gpreempt *g, const struct gp_lib_queues *queues, struct meant *meant)
{
	int n = gp_lib_find_tasks(g, &meant->ref);

	if (n < 0)
		return n;
	for (int i = 0; i < n; i++)
		if (has_work(g, queues, &meant->ref[i]))
			meant->ref[meant->n++] = meant->ref[i];
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
	struct gp_lib_queues queues;
	int r = gp_lib_list(g, GP_LIB_CLOSELY, &queues);

	if (!r)
		r = n ? choose_some(g, &queues, queue, n, true, meant)
		      : choose_all(g, &queues, meant);
	for (unsigned i = 0; i < meant->n && !r; i++)
		r = gp_refuse_shared(&meant->ref[i].seen, g->pid, g->flags & GPREEMPT_FORCE,
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
	int r = g->nattachments ? -ENOENT : gp_undo_open(&file, false, NULL);

	if (r)
		return 0; /* it is told when it is to be written */
	r = gp_records_check_free(file, g->pid, g->start_time, &g->err);
	gp_undo_close(file);
	return r;
}

/* How many of the process are held; *loose: how many are not, and compute. */
static int count_held(struct gpreempt *g, enum gp_lib_look how, unsigned *loose)
{
	struct gp_lib_queues queues;
	int r = gp_lib_list(g, how, &queues);
	unsigned held = gp_lib_count_held(&queues);

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
	int r = g->nattachments ? gp_lib_switch(g, NULL, 0, true, NULL) : -ENODEV;

	if (!r)
		r = count_held(g, GP_LIB_CLOSELY, &loose);
	g->err = (struct gp_error){0};
	return r <= 0 || loose ? 0 : r;
}

static int suspend_queues(struct gpreempt *g, const struct gpreempt_queue *queue, unsigned n)
{
	struct meant meant = {0};
	unsigned loose;
	/* Before a look: what was asked of the devices is done then. */
	int r = gp_lib_drop_gone(g) || n ? 0 : suspend_attached(g);

	if (r > 0)
		return r;
	r = check_free(g);
	if (!r)
		r = choose(g, queue, n, &meant);
	if (!r)
		r = gp_lib_keep(g->machine);
	if (!r)
		r = gp_lib_take(g, meant.ref, meant.n);
	if (!r && meant.n)
		r = gp_lib_switch(g, meant.ref, meant.n, true, &g->err);
	if (!r)
		r = n ? (int)(meant.n + meant.already) : count_held(g, GP_LIB_ATTACHED, &loose);
	free(meant.ref);
	return r;
}

/* ---- resume -------------------------------------------------------------------------------------
 */

static int release_some(struct gpreempt *g, const struct gp_lib_queues *queues,
                        const struct gpreempt_queue *queue, unsigned n)
{
	struct meant meant = {0};
	int r = choose_some(g, queues, queue, n, false, &meant);

	if (!r)
		r = gp_lib_take(g, meant.ref, meant.n);
	if (!r && meant.n)
		r = gp_lib_switch(g, meant.ref, meant.n, false, &g->err);
	free(meant.ref);
	return r;
}

static int resume_queues(struct gpreempt *g, const struct gpreempt_queue *queue, unsigned n)
{
	struct gp_lib_queues queues;
	int before, after, r;
	unsigned loose;

	gp_lib_drop_gone(g);
	if (!g->nattachments)
		return 0;
	r = gp_lib_list(g, GP_LIB_ATTACHED, &queues);
	before = (int)gp_lib_count_held(&queues);
	if (!n) /* whatever can be seen of it */
		r = gp_lib_switch(g, NULL, 0, false, &g->err);
	else if (!r)
		r = release_some(g, &queues, queue, n);
	free(queues.queue);
	if (r)
		return r;
	after = count_held(g, GP_LIB_ATTACHED, &loose);
	/* One that ended meanwhile is as good as released. */
	return after >= 0 && before > after ? before - after : 0;
}

/* ---- the calls ----------------------------------------------------------------------------------
 */

int gpreempt_suspend_queues(struct gpreempt *g, const struct gpreempt_queue *queue, unsigned n)
{
	struct gp_lib_call call;
	int r = gp_lib_enter(&call, g);

	if (!r)
		r = !queue != !n ? -EINVAL : suspend_queues(g, queue, n);
	return gp_lib_leave(&call, r);
}

int gpreempt_resume_queues(struct gpreempt *g, const struct gpreempt_queue *queue, unsigned n)
{
	struct gp_lib_call call;
	int r = gp_lib_enter(&call, g);

	if (!r)
		r = !queue != !n ? -EINVAL : resume_queues(g, queue, n);
	return gp_lib_leave(&call, r);
}
