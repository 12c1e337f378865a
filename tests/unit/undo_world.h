/* SPDX-License-Identifier: Apache-2.0 */
/* Undo records whose bytes follow from their key, and processes that work on a file of them. */
#ifndef TESTS_UNIT_UNDO_WORLD_H
#define TESTS_UNIT_UNDO_WORLD_H

#include "support/test.h"

#include "undo/undo.h"

struct gp_undo record(uint64_t key);

/* Every byte of the entry belongs to its key. */
bool is_whole(const struct gp_undo_entry *e);

/* How many records the file has. */
unsigned count_records(const struct gp_undo_file *file);

/* Runs `what` in a process that then ends; its exit status, -1 if a signal ended it. */
int in_child(int (*what)(void *arg), void *arg);

/* Runs `what` in n processes, which begin at the same time; each gets its number. All return 0. */
void in_children(unsigned n, int (*what)(unsigned number));

#endif
