/* SPDX-License-Identifier: Apache-2.0 */
/* Layout of the undo file; private to src/undo. */
#ifndef GP_UNDO_UNDO_LAYOUT_H
#define GP_UNDO_UNDO_LAYOUT_H

#include <assert.h>

#include "undo/undo.h"

#define GP_UNDO_MAGIC   0x6f646e7567707067ull /* "gpppundo" */
#define GP_UNDO_VERSION 4

/* A record is stored in the set that its task hashes to, and elsewhere only if that set was full.
 */
#define GP_UNDO_SET_SLOTS 32
#define GP_UNDO_SETS      (GP_UNDO_SLOTS / GP_UNDO_SET_SLOTS)

/*
 * GP_UNDO_TAKING: the record is complete, but its owner is being changed.
 * GP_UNDO_ASKED: the record is complete, and another process asks the owner to release the task.
 * Later versions may add states; all states from GP_UNDO_READY on mean that the slot holds a
 * record. A process that finds a file of another version counts records by this rule.
 */
enum gp_undo_state { GP_UNDO_FREE, GP_UNDO_WRITING, GP_UNDO_READY, GP_UNDO_TAKING, GP_UNDO_ASKED };

#define GP_UNDO_ENTRY_WORDS (sizeof(struct gp_undo_entry) / sizeof(uint64_t))

/*
 * `state` consists of, from the lowest bit on, enum gp_undo_state, a change counter, the lowest
 * bits of the writer's start time, and the writer's pid. The start time tells the writer from a
 * later process with its pid. State and words are accessed with atomic operations only, because
 * other processes read them during a write. Both times are monotonic; 0: never.
 */
#define GP_UNDO_STATE_BITS   8
#define GP_UNDO_COUNTER_BITS 14
#define GP_UNDO_START_BITS   20
#define GP_UNDO_PID_BITS     22 /* the kernel's largest pid is 2^22 - 1 */

struct gp_undo_slot {
	uint64_t state;
	uint64_t heartbeat_ns; /* the owner's last heartbeat for this record */
	uint64_t failed_ns;    /* when the keeper last failed to undo the record */
	uint64_t undone_ns;    /* when the last undo beside a living owner began */
	uint64_t word[GP_UNDO_ENTRY_WORDS];
};

/* `process` is a gp_process_key. Atomic operations only. */
struct gp_undo_role {
	uint64_t process;
	uint64_t heartbeats;
	uint64_t heartbeat_ns;
};

/* The first five members keep their offsets in all versions from 2 on. Version 1 had only the first
 * three. */
struct gp_undo_head {
	uint64_t magic;
	uint32_t version;
	uint32_t slots;
	uint32_t head_size;
	uint32_t slot_size;
	uint64_t epoch;
	uint64_t changes;
	uint64_t made_ns; /* monotonic time; a file that was truncated and used again has another */
	struct gp_undo_role scheduler;
	struct gp_undo_role keeper;
	uint8_t spilled[GP_UNDO_SETS]; /* 1: records of this set may be stored in other sets */
};

struct gp_undo_map {
	struct gp_undo_head head;
	struct gp_undo_slot slot[GP_UNDO_SLOTS];
};

struct gp_undo_file {
	struct gp_undo_map *map;
	pid_t pid; /* the process that opened it */
	uint64_t start_time;
	dev_t device; /* identifies the file */
	ino_t inode;
	uint64_t made_ns;
	bool is_first;      /* no scheduler has used the file before this process */
	bool replaces_hung; /* the scheduler before this process was killed and has not ended */
	bool is_lost;       /* the file was truncated; set by the signal handler */
};

static_assert(GP_UNDO_STATE_BITS + GP_UNDO_COUNTER_BITS + GP_UNDO_START_BITS + GP_UNDO_PID_BITS ==
		      64,
	      "the state is one word");
static_assert(sizeof(struct gp_undo_entry) % sizeof(uint64_t) == 0, "made of words");
static_assert(sizeof(struct gp_undo_head) % sizeof(uint64_t) == 0, "slots are aligned");

#endif
