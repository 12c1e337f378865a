/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading the memory of others: it can take as long as they like, for they may serve its page
 * faults themselves. So a thread of its own reads, and when it does not come back it is given up:
 * it keeps what it has, and ends when it wakes. Nobody waits for it.
 */
#ifndef GP_GPU_AMD_MEMORY_READER_H
#define GP_GPU_AMD_MEMORY_READER_H

#include "gpu/amd/amd_device.h"

#define GP_AMD_POINTERS_MAX 256 /* of one task; more are not looked at */

/* What can be seen of a task's work. */
enum gp_amd_work {
	GP_AMD_WORK_NONE,
	GP_AMD_WORK_MAYBE, /* nothing pending, and what the hardware may have taken cannot be seen
	                    */
	GP_AMD_WORK_SEEN,
};

/* A task as it was when it was chosen, and what was seen of it. */
struct gp_amd_reading {
	pid_t pid;
	uint32_t gpu_id;
	/* Whether nothing pending is to be believed; otherwise the driver is asked, if it can say.
	 */
	bool was_idle;
	bool has_occupancy;
	bool knows_written; /* ... and it was so much at the last look */
	uint64_t written_before;
	int mem_fd; /* opened by the reader when it is -1; the chooser's when it comes back */
	bool opened;
	unsigned n;
	struct gp_amd_pointers pointer[GP_AMD_POINTERS_MAX];

	bool known;
	enum gp_amd_work work;
	uint64_t pending;
	uint64_t written; /* sum of the write pointers: another when something was submitted */
};

#define GP_AMD_READERS_MAX 8

/* One that reads, and those that have not come back yet. All 0 at first. */
struct gp_amd_readers {
	struct amd_reader *reader; /* NULL: none yet */
	struct amd_reader *out[GP_AMD_READERS_MAX];
	unsigned nout;
	uint64_t patience_ns; /* with one task; 0: GP_AMD_PATIENCE_NS */
};

#define GP_AMD_PATIENCE_NS GP_NS_PER_S /* a machine that is busy is not a trap */

/* Room for `n` glances, to be filled in before gp_amd_readers_run(). NULL: no memory, no thread, or
 * so many have not come back that nobody may go any more, until one of them has. */
struct gp_amd_reading *gp_amd_readers_room(struct gp_amd_readers *readers, unsigned n);

/* Looks at all. -1: done; otherwise the number of the one that does not come back in time: its
 * reader is given up, and the glances are not to be touched again. */
int gp_amd_readers_run(struct gp_amd_readers *readers, unsigned n);

void gp_amd_readers_end(struct gp_amd_readers *readers);

#endif
