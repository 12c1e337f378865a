/* SPDX-License-Identifier: Apache-2.0 */
/* A folder of files written by hand, which stands for sysfs or debugfs, and is removed at the end.
 */
#ifndef TESTS_AMD_FOLDER_H
#define TESTS_AMD_FOLDER_H

#include <ftw.h>
#include <sys/stat.h>

#include "amd_world.h"

struct folder {
	char path[64];
};

void folder_make(struct folder *f, const char *variable);

/* The file with its folders, and this in it. */
void folder_write(const struct folder *f, const char *name, const char *data, size_t size);

__attribute__((format(printf, 3, 4))) void folder_print(const struct folder *f, const char *name,
							const char *format, ...);
int folder_remove_entry(const char *path, const struct stat *st, int type, struct FTW *at);

static inline void folder_remove(struct folder *f)
{
	nftw(f->path, folder_remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

#endif
