/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the memory of other processes. A read can block without limit, because a process can handle
 * its page faults in user space. So a separate thread reads. A thread that does not return in time
 * is abandoned: it keeps its buffers and ends when it wakes up.
 */
#ifndef GP_GPU_AMD_MEMORY_READER_H
#define GP_GPU_AMD_MEMORY_READER_H

#include "gpu/amd/amd_device.h"

#define GP_AMD_POINTERS_MAX 256 /* of one task; further queues are not read */

/* What a reading shows about the work of a task. */
enum gp_amd_work {
	GP_AMD_WORK_NONE,
	GP_AMD_WORK_MAYBE, /* nothing pending; running work is not visible */
	GP_AMD_WORK_SEEN,
};

/* In: the state of a task when the reading began. Out: the result. */
struct gp_amd_reading {
	pid_t pid;
	uid_t account; /* of the process's user: gp_account_of() */
	uint32_t gpu_id;
	bool was_idle; /* then "nothing pending" means idle, and the occupancy is not read */
	bool has_occupancy;
	bool wants_occupancy;  /* also if packets are pending: a proof needs it */
	unsigned proof_number; /* of the task when the reading began */
	bool knows_written;    /* written_before is valid */
	uint64_t written_before;
	int mem_fd; /* -1: the reader opens it; the caller owns it afterwards */
	bool opened;
	unsigned n;
	struct gp_amd_pointers pointer[GP_AMD_POINTERS_MAX]; /* in; out: `taken` and `waits` */

	bool known;
	enum gp_amd_work work;
	uint64_t pending;
	uint64_t written; /* sum of the write pointers: changes with each submission */
	uint64_t taken;   /* sum of the read pointers: changes with each packet that is taken */
	int occupied;     /* compute units; -1 = not read */
	bool stalled;     /* packets wait, no waves run, and no packet is taken */
};

#define GP_AMD_READERS_MAX         16 /* abandoned */
#define GP_AMD_READERS_PER_ACCOUNT 2  /* the same, by processes of one account */

/* The active reader and the abandoned ones. Initially all 0. */
struct gp_amd_readers {
	struct gp_amd_reader *reader; /* NULL = none yet */
	struct gp_amd_reader *out[GP_AMD_READERS_MAX];
	unsigned nout;
	uint64_t patience_ns; /* time limit for one task; 0 = GP_AMD_PATIENCE_NS */
};

#define GP_AMD_PATIENCE_NS GP_NS_PER_S /* long: a busy machine must not look like a stuck read */

/* Room for `n` readings, which the caller fills in before gp_amd_readers_run(). NULL: no memory, no
 * thread, or GP_AMD_READERS_MAX readers are abandoned and have not returned. */
struct gp_amd_reading *gp_amd_readers_room(struct gp_amd_readers *readers, unsigned n);

/* Whether readings of processes of this account must be left out: too many of its readers are
 * abandoned and have not returned. */
bool gp_amd_readers_refuse(struct gp_amd_readers *readers, uid_t account);

/* Makes all readings. -1: done. Otherwise the index of the reading that did not end in time: its
 * reader is abandoned, and the caller must not touch the readings again. */
int gp_amd_readers_run(struct gp_amd_readers *readers, unsigned n);

void gp_amd_readers_end(struct gp_amd_readers *readers);

#endif
