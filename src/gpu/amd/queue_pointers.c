/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the read and write pointers of queues without a session. Runs on the activity thread. */
#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "gpu/amd/memory_reader.h"

#define MQDS_NS     (50 * GP_NS_PER_MS) /* between two searches for one task */
#define MQDS_MAX_NS (2 * GP_NS_PER_S)   /* largest interval, if its queues have not changed */

bool gp_amd_is_whole(const struct gp_amd_task *t)
{
	const struct gp_kfd_thread *h = t->gpu->kfd_thread;

	if (t->queue != GP_QUEUE_ALL)
		return false;
	for (unsigned i = 0; i < h->nsplits; i++)
		if (gp_amd_process_of(h->split[i].key) == t->key &&
		    h->split[i].gpu_id == t->gpu->node.gpu_id)
			return false;
	return true;
}

/* The task has no pointers, or those of earlier queues. */
static bool is_unknown(const struct gp_amd_task *t)
{
	return t && !t->leaving && !t->wants_hold && !t->target &&
	       (!t->has_pointers || t->pointers_mark != t->queues_mark);
}

static bool is_due(const struct gp_amd_task *t, uint64_t now_ns)
{
	return now_ns >= t->mqds_ns + (t->mqds_mark == t->queues_mark ? t->mqds_wait_ns : MQDS_NS);
}

/* Tasks whose activity is needed come first, then the task with the oldest search. */
static bool comes_before(const struct gp_amd_task *a, const struct gp_amd_task *b)
{
	if (!b || a->prepare != b->prepare)
		return !b || a->prepare;
	return a->mqds_ns < b->mqds_ns;
}

/* `readable`: the debug files are readable. Without them only tasks whose activity is needed are
 * searched. */
static struct gp_amd_task *find_unknown(struct gp_kfd_thread *h, bool readable, uint64_t now_ns)
{
	struct gp_amd_task *first = NULL;

	for (unsigned i = 0; i < h->ngpus; i++)
		for (unsigned k = 0; k < h->gpu[i]->ntasks; k++) {
			struct gp_amd_task *t = h->gpu[i]->task[k];

			if (is_unknown(t) && is_due(t, now_ns) && (readable || t->prepare) &&
			    comes_before(t, first))
				first = t;
		}
	return first;
}

/* A failed search is repeated at growing intervals: while the kernel writes the file, no process
 * can create queues. */
static void note_try(struct gp_amd_task *t, uint64_t now_ns)
{
	bool again = t->mqds_ns && t->mqds_mark == t->queues_mark;

	t->mqds_wait_ns = again ? 2 * t->mqds_wait_ns : MQDS_NS;
	if (t->mqds_wait_ns > MQDS_MAX_NS)
		t->mqds_wait_ns = MQDS_MAX_NS;
	t->mqds_mark = t->queues_mark;
	t->mqds_ns = now_ns;
}

static void set_pointers(struct gp_amd_task *t, const struct gp_amd_mqd *mqd, unsigned n)
{
	struct gp_amd_pointers *pointer = realloc(t->pointer, (n + 1) * sizeof *pointer);

	if (!pointer)
		return;
	t->pointer = pointer;
	for (unsigned i = 0; i < n; i++)
		pointer[i] = (struct gp_amd_pointers){.read_address = mqd[i].read_address,
						      .write_address = mqd[i].write_address,
						      .mask = mqd[i].pointer_mask};
	t->npointers = n;
	t->has_pointers = n > 0;
	t->new_pointers = true;
	t->blind = false;
	/* The mark of the last scan: if the queues have changed since, the next scan shows it. */
	t->pointers_mark = t->mqds_mark;
}

/* The activity is needed and cannot be known. Reported once. */
static void note_blindness(struct gp_amd_task *t)
{
	if (t->blind)
		return;
	t->blind = true;
	if (!gp_amd_is_whole(t))
		gp_fail(&t->why, -ENOTSUP,
			"the work of single queues of process %d cannot be seen on a GPU that "
			"debugs one process at a time: name the whole process",
			t->pid);
	else
		gp_fail(&t->why, -ENOTSUP,
			"the work of process %d cannot be seen, so no other task is held for it: "
			"the "
			"driver lets this GPU be debugged for one process at a time, and %s/mqds "
			"cannot be read; run as root and mount debugfs",
			t->pid, gp_amd_debugfs());
	gp_log(GP_LOG_WARN, "activity.unknown", "pid=%d", t->pid);
	gp_amd_notify(t->gpu);
}

/* A session reports the pointers. Caller holds requests.lock. */
static void ask_for_session(struct gp_kfd_thread *h, struct gp_amd_task *t)
{
	if (t->gpu->base.info.max_held <= 1)
		note_blindness(t);
	else if (gp_amd_ask(h, GP_AMD_PREPARE, t))
		t->wants_hold = true;
}

void gp_amd_find_pointers(struct gp_kfd_thread *h, uint64_t now_ns)
{
	struct gp_amd_mqd mqd[GP_AMD_POINTERS_MAX];
	bool readable = gp_amd_has_mqds(), whole = false;
	struct gp_amd_task *t;
	int n = -ENOTSUP; /* the file does not show queue ids, so it is of no use for a part of a
			     process */

	pthread_mutex_lock(&h->requests.lock);
	t = find_unknown(h, readable, now_ns);
	if (t) {
		note_try(t, now_ns);
		whole = gp_amd_is_whole(t);
	}
	pthread_mutex_unlock(&h->requests.lock);
	if (!t)
		return;
	if (whole)
		n = gp_amd_read_mqds(t->pid, t->gpu->node.gpu_id, mqd, GP_AMD_POINTERS_MAX);
	pthread_mutex_lock(&h->requests.lock);
	if (n > 0 && !t->target)
		set_pointers(t, mqd,
			     (unsigned)n < GP_AMD_POINTERS_MAX ? (unsigned)n : GP_AMD_POINTERS_MAX);
	if (n < 0 && t->prepare && !t->leaving && !t->target)
		ask_for_session(h, t);
	pthread_mutex_unlock(&h->requests.lock);
	if (n < 0)
		gp_requests_wake(&h->requests);
}
