/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the memory of other processes. A read can block without limit, because a process can have
 * its pages in a file system of its own. So a helper process reads (base/helper.h). A helper that
 * does not answer in time is killed and abandoned: it may stay in the kernel, without files of this
 * process, until the file system answers.
 */
#ifndef GP_GPU_AMD_MEMORY_READER_H
#define GP_GPU_AMD_MEMORY_READER_H

#include "base/accounts.h"
#include "base/helper.h"
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
	uint64_t key; /* gp_process_key() */
	uid_t uid;    /* of the process */
	uint32_t gpu_id;
	bool was_idle; /* then "nothing pending" means idle, and the occupancy is not read */
	bool has_occupancy;
	bool wants_occupancy;  /* also if packets are pending: a proof needs it */
	unsigned proof_number; /* of the task when the reading began */
	bool knows_written;    /* written_before is valid */
	uint64_t written_before;
	unsigned n;
	struct gp_amd_pointers pointer[GP_AMD_POINTERS_MAX]; /* in; out: `taken` and `pending` */

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

/* The active reader and the abandoned ones. */
struct gp_amd_readers {
	struct gp_accounts accounts;
	struct gp_helper reader;
	unsigned capacity; /* readings that it has room for; 0 = no reader */
	struct {
		struct gp_helper helper;
		uid_t account; /* of the process that blocked it */
	} out[GP_AMD_READERS_MAX];
	unsigned nout;
	uint64_t patience_ns; /* time limit for one task; 0 = GP_AMD_PATIENCE_NS */
};

#define GP_AMD_PATIENCE_NS GP_NS_PER_S /* long: a busy machine must not look like a stuck read */

void gp_amd_readers_init(struct gp_amd_readers *readers);

/* Room for `n` readings, which the caller fills in before gp_amd_readers_run(). NULL: no memory, no
 * process, or GP_AMD_READERS_MAX readers are abandoned and have not ended. */
struct gp_amd_reading *gp_amd_readers_room(struct gp_amd_readers *readers, unsigned n);

/* Whether readings of processes of this user must be left out: too many readers of its account are
 * abandoned and have not ended. */
bool gp_amd_readers_refuse(struct gp_amd_readers *readers, uid_t uid);

/* Results of gp_amd_readers_run(). */
#define GP_AMD_READ_ALL  (-1)
#define GP_AMD_READ_NONE (-2) /* the reader was killed, or did not begin */

/* Makes all readings. Otherwise returns the index of the reading that did not end in time: its
 * reader is abandoned. Unless the result is GP_AMD_READ_ALL, the caller must not touch the readings
 * again. */
int gp_amd_readers_run(struct gp_amd_readers *readers, unsigned n);

void gp_amd_readers_end(struct gp_amd_readers *readers);

#endif
