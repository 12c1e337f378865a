/* SPDX-License-Identifier: Apache-2.0 */
/* What the undo file looks like: for src/undo alone. */
#ifndef GP_UNDO_UNDO_LAYOUT_H
#define GP_UNDO_UNDO_LAYOUT_H

#include <assert.h>

#include "undo/undo.h"

#define GP_UNDO_MAGIC   0x6f646e7567707067ull /* "gpppundo" */
#define GP_UNDO_VERSION 2

/* A record stands in the set that its name hashes to, and elsewhere only where that was full. */
#define GP_UNDO_SET_SLOTS 32
#define GP_UNDO_SETS      (GP_UNDO_SLOTS / GP_UNDO_SET_SLOTS)

/* TAKING: all of the record is good but who has it. Later versions may add others, larger ones for
 * what is a record: whoever finds a file of another version counts by that. */
enum gp_undo_state { GP_UNDO_FREE, GP_UNDO_WRITING, GP_UNDO_READY, GP_UNDO_TAKING };

#define GP_UNDO_ENTRY_WORDS (sizeof(struct gp_undo_entry) / sizeof(uint64_t))

/* `state`: 8 bits of enum gp_undo_state, 24 of a number that grows with every change, 32 of who
 * writes. Atomic operations only, also on the words: others read them while we write. */
struct gp_undo_slot {
	uint64_t state;
	uint64_t word[GP_UNDO_ENTRY_WORDS];
};

/* `who`: gp_process_key. Atomic operations only. */
struct gp_undo_party {
	uint64_t who;
	uint64_t heartbeats;
	uint64_t heartbeat_ns;
};

/* The first five stay where they are in all versions from 2 on (1 had the first three). */
struct gp_undo_head {
	uint64_t magic;
	uint32_t version;
	uint32_t slots;
	uint32_t head_size;
	uint32_t slot_size;
	uint64_t epoch;
	uint64_t changes;
	struct gp_undo_party scheduler;
	struct gp_undo_party keeper;
	uint8_t spilled[GP_UNDO_SETS]; /* records of this set may stand elsewhere */
};

struct gp_undo_map {
	struct gp_undo_head head;
	struct gp_undo_slot slot[GP_UNDO_SLOTS];
};

struct gp_undo_file {
	struct gp_undo_map *map;
	pid_t pid; /* who opened it */
	uint64_t start_time;
	dev_t device; /* which file it is */
	ino_t inode;
};

static_assert(sizeof(struct gp_undo_entry) % sizeof(uint64_t) == 0, "made of words");
static_assert(sizeof(struct gp_undo_head) % sizeof(uint64_t) == 0, "slots are aligned");

#endif
