/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that is written completely or not at all. The old file stays until gp_out_keep, and no
 * partial file is left, however the program ends. A terminal, a pipe, or a file on a file system
 * without O_TMPFILE is written in place.
 */
#ifndef GP_CLI_LIB_OUT_FILE_H
#define GP_CLI_LIB_OUT_FILE_H

#include <stdbool.h>
#include <stdio.h>

struct gp_out_file {
	FILE *out;  /* NULL: not open */
	char *path; /* owned, links followed */
	bool apart; /* a temporary file without a name */
};

/* 0 or -errno if the path cannot be written. */
int gp_out_open(struct gp_out_file *f, const char *path);

/* Replaces the old file. 0 or -errno; closes it in either case. */
int gp_out_keep(struct gp_out_file *f);

/* Discards the file. Does nothing if it is not open. */
void gp_out_drop(struct gp_out_file *f);

/* Whether two paths name, or would name, the same file. */
bool gp_out_same(const char *path, const char *other);

#endif
