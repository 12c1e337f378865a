/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How to put tasks back, in a file that outlives whoever changed them.
 *
 * Before the first change to a task its record stands here; after the last change was undone it is
 * dropped. Whoever is left when a scheduler died, with whatever signal, replays the file: the next
 * scheduler, a keeper, `gpreempt resume`. The file is mapped and shared: a record is there when the
 * call returns, and a crash of the machine makes records and changes disappear together.
 */
#ifndef GP_UNDO_UNDO_H
#define GP_UNDO_UNDO_H

#include "base/error.h"
#include "gpu/gpu.h"

#define GP_UNDO_SLOTS 1024

struct gp_undo_entry {
	char backend[16];
	pid_t holder; /* who made the change */
	uint64_t holder_start_time;
	struct gp_undo undo;
};

struct gp_undo_file;

/* GPREEMPT_UNDO (not in setuid programs), else `undo` in the run-time folder (base/run_dir.h). */
#define GP_UNDO_PATH_SIZE 264
const char *gp_undo_path(char *out, unsigned size);

/* Without `create`, -ENOENT when there is none. */
int gp_undo_open(struct gp_undo_file **file, bool create, struct gp_error *err);
void gp_undo_close(struct gp_undo_file *file);

/* Writes a record of the calling process and returns its slot, or -ENOSPC. A task (backend, pid,
 * start time, key) has one record: the older one stays, for it knows what was there first, and
 * gets a new holder; -EBUSY when the holder it has is alive. */
int gp_undo_put(struct gp_undo_file *file, const char *backend, const struct gp_undo *undo);

/* Whatever is in the slot; or only what was read from it, unless that has changed since (false). */
void gp_undo_drop(struct gp_undo_file *file, unsigned slot);
bool gp_undo_drop_same(struct gp_undo_file *file, unsigned slot, const struct gp_undo_entry *was);

/* Whether the process that made the change is still there. */
bool gp_undo_holder_lives(const struct gp_undo_entry *entry);

/* true when there is a record in the slot, 0 to GP_UNDO_SLOTS - 1. */
bool gp_undo_get(const struct gp_undo_file *file, unsigned slot, struct gp_undo_entry *entry);

/* Grows by one whenever somebody undid what another had done: who finds it changed looks again
 * before it acts. */
uint64_t gp_undo_epoch(const struct gp_undo_file *file);
void gp_undo_bump(struct gp_undo_file *file);

#endif
