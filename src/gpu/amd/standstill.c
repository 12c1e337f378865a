/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a process without a session works: a release by another process than the holder is
 * compared with it. The read pointers of its queues are read for a while, as proof.c does.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process.h"
#include "gpu/amd/memory_reader.h"

#define LOOK_US     25000
#define LOOKS       10 /* while no queue of the process makes progress */
#define PART_FACTOR 3  /* times as many, while another queue does */

/* Writes the pointers of all compute queues. Returns their number, or -errno. */
static int find_pointers(pid_t pid, struct gp_amd_pointers pointer[GP_AMD_POINTERS_MAX])
{
	struct gp_amd_node node[GP_AMD_NODES_MAX];
	struct gp_amd_mqd mqd[GP_AMD_POINTERS_MAX];
	int nodes = gp_amd_nodes(node, GP_AMD_NODES_MAX), n = 0;

	for (int i = 0; i < nodes && i < GP_AMD_NODES_MAX; i++) {
		int found = gp_amd_read_mqds(pid, node[i].gpu_id, mqd, GP_AMD_POINTERS_MAX);

		if (found < 0)
			return found;
		for (int k = 0; k < found && k < GP_AMD_POINTERS_MAX && n < GP_AMD_POINTERS_MAX;
		     k++)
			pointer[n++] =
				(struct gp_amd_pointers){.read_address = mqd[k].read_address,
							 .write_address = mqd[k].write_address,
							 .mask = mqd[k].pointer_mask};
	}
	return nodes < 0 ? nodes : n;
}

/* Reads the queues of `from` into `to`. 0 or -errno. */
static int read_once(struct gp_amd_readers *readers, const struct gp_amd_reading *from,
		     struct gp_amd_reading *to)
{
	struct gp_amd_reading *g = gp_amd_readers_room(readers, 1);

	if (!g)
		return -ENOMEM;
	*g = *from;
	if (gp_amd_readers_run(readers, 1) != GP_AMD_READ_ALL)
		return -ETIMEDOUT;
	*to = *g;
	return to->known ? 0 : -EFAULT;
}

/* Notes which queues have moved since the first reading. Returns the number of queues with waiting
 * packets that have not. */
static unsigned count_still(struct gp_amd_reading *first, const struct gp_amd_reading *now,
			    bool *any_moved)
{
	unsigned still = 0;

	for (unsigned i = 0; i < first->n; i++) {
		struct gp_amd_pointers *q = &first->pointer[i];

		q->moved |= q->taken != now->pointer[i].taken;
		*any_moved |= q->moved;
		still += !q->moved && now->pointer[i].pending;
	}
	return still;
}

static int look(struct gp_amd_readers *readers, struct gp_amd_reading *first,
		struct gp_amd_reading *now, bool *worked)
{
	bool any_moved = false;
	int r = read_once(readers, first, first);

	for (unsigned i = 0; !r && i < LOOKS * (any_moved ? PART_FACTOR : 1); i++) {
		usleep(LOOK_US);
		r = read_once(readers, first, now);
		if (!r && !count_still(first, now, &any_moved)) {
			*worked = any_moved;
			return 0;
		}
	}
	return r ? r : 1;
}

/* As gp_amd_stands_still(). *worked: no packet waits in vain, and a queue has taken packets. */
static int look_at_process(pid_t pid, bool *worked)
{
	uint64_t start_time = gp_process_start_time(pid);
	struct gp_amd_reading *reading = calloc(2, sizeof *reading);
	struct gp_amd_readers readers;
	int r = reading ? find_pointers(pid, reading[0].pointer) : -ENOMEM;

	if (r > 0) {
		reading[0].pid = pid;
		reading[0].key = gp_process_key(start_time, pid);
		reading[0].uid = (uid_t)-1;
		reading[0].n = (unsigned)r;
		gp_amd_readers_init(&readers);
		r = look(&readers, &reading[0], &reading[1], worked);
		gp_amd_readers_end(&readers);
	}
	free(reading);
	return gp_process_gone(pid, start_time) ? 0 : r;
}

int gp_amd_stands_still(pid_t pid)
{
	return look_at_process(pid, &(bool){false});
}

void gp_amd_see_work(const pid_t *pid, bool *works, unsigned n, uint64_t limit_ns)
{
	uint64_t until_ns = gp_monotonic_ns() + limit_ns;

	for (;;) {
		unsigned left = 0;

		for (unsigned i = 0; i < n; i++) {
			if (!works[i])
				look_at_process(pid[i], &works[i]);
			left += !works[i];
		}
		if (!left || gp_monotonic_ns() >= until_ns)
			return;
		usleep(LOOK_US);
	}
}
