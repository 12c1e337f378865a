/* SPDX-License-Identifier: Apache-2.0 */
/* What the undo file looks like: for src/undo alone. */
#ifndef GP_UNDO_UNDO_LAYOUT_H
#define GP_UNDO_UNDO_LAYOUT_H

#include <assert.h>

#include "undo/undo.h"

#define UNDO_MAGIC   0x6f646e7567707067ull /* "gpppundo" */
#define UNDO_VERSION 2

/* A record stands in the set that its name hashes to, and elsewhere only where that was full. */
#define UNDO_SET_SLOTS 32
#define UNDO_SETS      (GP_UNDO_SLOTS / UNDO_SET_SLOTS)

/* TAKING: all of the record is good but who has it. Later versions may add others, larger ones for
 * what is a record: whoever finds a file of another version counts by that. */
enum undo_state { UNDO_FREE, UNDO_WRITING, UNDO_READY, UNDO_TAKING };

#define UNDO_ENTRY_WORDS (sizeof(struct gp_undo_entry) / sizeof(uint64_t))

/* `state`: 8 bits of enum undo_state, 24 of a number that grows with every change, 32 of who
 * writes. Atomic operations only, also on the words: others read them while we write. */
struct undo_slot {
	uint64_t state;
	uint64_t word[UNDO_ENTRY_WORDS];
};

/* `who`: gp_process_key. Atomic operations only. */
struct undo_party {
	uint64_t who;
	uint64_t beats;
	uint64_t beat_ns;
};

/* The first five stay where they are in all versions from 2 on (1 had the first three). */
struct undo_head {
	uint64_t magic;
	uint32_t version;
	uint32_t slots;
	uint32_t head_size;
	uint32_t slot_size;
	uint64_t epoch;
	uint64_t changes;
	struct undo_party scheduler;
	struct undo_party keeper;
	uint8_t spilled[UNDO_SETS]; /* records of this set may stand elsewhere */
};

struct undo_map {
	struct undo_head head;
	struct undo_slot slot[GP_UNDO_SLOTS];
};

struct gp_undo_file {
	struct undo_map *map;
	pid_t pid; /* who opened it */
	uint64_t start_time;
	dev_t device; /* which file it is */
	ino_t inode;
};

static_assert(sizeof(struct gp_undo_entry) % sizeof(uint64_t) == 0, "made of words");
static_assert(sizeof(struct undo_head) % sizeof(uint64_t) == 0, "slots are aligned");

#endif
