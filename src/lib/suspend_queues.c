/* SPDX-License-Identifier: Apache-2.0 */
/* Holding and releasing queues: finds the tasks that are meant, then changes all or none of them.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "hold/replay.h"
#include "lib/lib.h"

/* The tasks that a call is about. */
struct meant {
	unsigned n;
	struct gp_task_ref *ref;
	/* queues that are already in the desired state with their whole process */
	unsigned already;
};

/* Returns the current state of a queue that must exist and must compute; NULL: an error. */
static const struct gpreempt_queue *check(struct gpreempt *g, const struct gp_lib_queues *queues,
					  const struct gpreempt_queue *meant)
{
	const struct gpreempt_queue *q = gp_lib_find_queue(queues, meant);

	if (!q)
		gp_fail(&g->err, -ENOENT, "process %d has no queue %u on device %u", g->pid,
			meant->id, meant->device);
	else if (q->copies)
		gp_fail(&g->err, -EINVAL,
			"queue %u of process %d only copies data; such queues cannot be held",
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

/* Finds the attached task of the whole process on a device; false: this handle has none. */
static bool find_whole(const struct gpreempt *g, unsigned device, struct gp_task_ref *ref)
{
	for (unsigned i = 0; i < g->nattachments; i++) {
		*ref = g->attachment[i].hold.ref;
		if (ref->device == device && ref->seen.queue == GP_QUEUE_ALL)
			return true;
	}
	return false;
}

/* On GPUs that cannot split a held process, the process runs for a moment. */
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

/* Splits off each queue, unless its whole process is already in the desired state. */
static int choose_each(struct gpreempt *g, const struct gpreempt_queue *queue, unsigned n,
		       bool hold, struct meant *meant)
{
	int r = 0;

	for (unsigned i = 0; i < n && !r; i++) {
		bool whole = !gp_lib_is_split(g, queue[i].device, queue[i].id);

		if (is_repeated(queue, i))
			continue;
		if (whole && gp_lib_is_done_on(g, queue[i].device, hold)) {
			meant->already++;
			continue;
		}
		r = split(g, &queue[i], &meant->ref[meant->n]);
		/* A queue that another handle holds is not released here. */
		if (!r && (hold || whole || gp_lib_attachment_of(g, &meant->ref[meant->n])))
			meant->n++;
	}
	return r;
}

static int choose_some(struct gpreempt *g, const struct gp_lib_queues *queues,
		       const struct gpreempt_queue *queue, unsigned n, bool hold,
		       struct meant *meant)
{
	/* All queues are checked before the first is split off, which cannot be undone. */
	for (unsigned i = 0; i < n; i++)
		if (!check(g, queues, &queue[i]))
			return g->err.code;
	meant->ref = calloc(n, sizeof *meant->ref);
	if (!meant->ref)
		return gp_fail(&g->err, -ENOMEM, "not enough memory");
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
		       g->pid == getpid() ? " and can be held from outside; use "
					    "gpreempt_hold_self() instead"
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
				     "use GPREEMPT_FORCE to hold it anyway",
				     &g->err);
	free(queues.queue);
	return r;
}

/* Refuses a process that another program holds. A record names that program; the driver does not.
 */
static int check_free(struct gpreempt *g)
{
	struct gp_undo_file *file;
	int r = g->nattachments ? -ENOENT : gp_undo_open(&file, false, NULL);

	if (r)
		return 0; /* writing the record will report the error */
	r = gp_records_check_free(file, g->pid, g->start_time, &g->err);
	gp_undo_close(file);
	return r;
}

/* Counts the held queues of the process. *released: the number of computing queues that are not
 * held. */
static int count_held(struct gpreempt *g, enum gp_lib_detail how, unsigned *released)
{
	struct gp_lib_queues queues;
	int r = gp_lib_list(g, how, &queues);
	unsigned held = gp_lib_count_held(&queues);

	*released = 0;
	for (unsigned i = 0; i < queues.n; i++)
		*released += !queues.queue[i].held && !queues.queue[i].copies;
	free(queues.queue);
	return r ? r : (int)held;
}

/* A repeated suspend: holds the attached tasks before it searches. Returns the number of held
 * queues, or 0 if more has to be done. */
static int suspend_attached(struct gpreempt *g)
{
	unsigned released = 0;
	int r = g->nattachments ? gp_lib_switch(g, NULL, 0, true, NULL) : -ENODEV;

	if (!r)
		r = count_held(g, GP_LIB_CLOSELY, &released);
	g->err = (struct gp_error){0};
	return r <= 0 || released ? 0 : r;
}

static int suspend_queues(struct gpreempt *g, const struct gpreempt_queue *queue, unsigned n)
{
	struct meant meant = {0};
	unsigned released;
	/* Before listing queues, which waits for pending actions. */
	int r = gp_lib_drop_gone(g) || n ? 0 : suspend_attached(g);

	if (r > 0)
		return r;
	r = check_free(g);
	if (!r)
		r = choose(g, queue, n, &meant);
	if (!r)
		r = gp_lib_watch(g->machine);
	if (!r)
		r = gp_lib_attach(g, meant.ref, meant.n);
	if (!r && meant.n)
		r = gp_lib_switch(g, meant.ref, meant.n, true, &g->err);
	if (!r)
		r = n ? (int)(meant.n + meant.already) : count_held(g, GP_LIB_ATTACHED, &released);
	free(meant.ref);
	return r;
}

static int release_some(struct gpreempt *g, const struct gp_lib_queues *queues,
			const struct gpreempt_queue *queue, unsigned n)
{
	struct meant meant = {0};
	int r = choose_some(g, queues, queue, n, false, &meant);

	if (!r)
		r = gp_lib_attach(g, meant.ref, meant.n);
	if (!r && meant.n)
		r = gp_lib_switch(g, meant.ref, meant.n, false, &g->err);
	free(meant.ref);
	return r;
}

static int resume_queues(struct gpreempt *g, const struct gpreempt_queue *queue, unsigned n)
{
	struct gp_lib_queues queues;
	int before, after, r;
	unsigned released;

	gp_lib_drop_gone(g);
	if (!g->nattachments)
		return 0;
	r = gp_lib_list(g, GP_LIB_ATTACHED, &queues);
	before = (int)gp_lib_count_held(&queues);
	if (!n) /* even if the queues could not be listed */
		r = gp_lib_switch(g, NULL, 0, false, &g->err);
	else if (!r)
		r = release_some(g, &queues, queue, n);
	free(queues.queue);
	if (r)
		return r;
	after = count_held(g, GP_LIB_ATTACHED, &released);
	/* A queue that ended meanwhile counts as released. */
	return after >= 0 && before > after ? before - after : 0;
}

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

int gpreempt_evidence(struct gpreempt *g)
{
	struct gp_lib_call call;
	int r = gp_lib_enter(&call, g);

	if (!r)
		r = gp_lib_evidence(g);
	return gp_lib_leave(&call, r);
}
