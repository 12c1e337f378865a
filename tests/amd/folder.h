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

static inline void folder_make(struct folder *f, const char *variable)
{
	strcpy(f->path, "/tmp/gp-amd-XXXXXX");
	assert_non_null(mkdtemp(f->path));
	setenv(variable, f->path, 1);
}

/* The file with its folders, and this in it. */
static inline void folder_write(const struct folder *f, const char *name, const char *data,
                                size_t size)
{
	char path[320];
	int fd;

	snprintf(path, sizeof path, "%s/%s", f->path, name);
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = 0;
		mkdir(path, 0755);
		*slash = '/';
	}
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, size), (ssize_t)size);
	close(fd);
}

__attribute__((format(printf, 3, 4))) static inline void folder_print(const struct folder *f,
                                                                      const char *name,
                                                                      const char *format, ...)
{
	char text[4096];
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(text, sizeof text, format, args);
	va_end(args);
	folder_write(f, name, text, (size_t)n);
}

static inline int folder_remove_entry(const char *path, const struct stat *st, int type,
                                      struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

static inline void folder_remove(struct folder *f)
{
	nftw(f->path, folder_remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

#endif
