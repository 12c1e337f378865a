/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that is written as a whole or not at all: what was there stays until gp_out_keep, and
 * nothing half-written is left behind, whatever ends the program. Where that cannot be had (a
 * terminal, a pipe, a file system without O_TMPFILE) it is written in place.
 */
#ifndef GP_CLI_LIB_OUT_FILE_H
#define GP_CLI_LIB_OUT_FILE_H

#include <stdbool.h>
#include <stdio.h>

struct gp_out_file {
	FILE *out;  /* NULL: not open */
	char *path; /* owned, links followed */
	bool apart; /* it has no name yet */
};

/* 0 or -errno: what cannot be written is known at once. */
int gp_out_open(struct gp_out_file *f, const char *path);

/* It is complete. 0 or -errno; closed either way. */
int gp_out_keep(struct gp_out_file *f);

/* It is not wanted, or not open. */
void gp_out_drop(struct gp_out_file *f);

/* Both are there and the same, or will be. */
bool gp_out_same(const char *path, const char *other);

#endif
