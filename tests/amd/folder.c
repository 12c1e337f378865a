/* SPDX-License-Identifier: Apache-2.0 */
#include "folder.h"

void folder_make(struct folder *f, const char *variable)
{
	strcpy(f->path, "/tmp/gp-amd-XXXXXX");
	assert_non_null(mkdtemp(f->path));
	setenv(variable, f->path, 1);
}

void folder_write(const struct folder *f, const char *name, const char *data, size_t size)
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

void folder_print(const struct folder *f, const char *name, const char *format, ...)
{
	char text[4096];
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(text, sizeof text, format, args);
	va_end(args);
	folder_write(f, name, text, (size_t)n);
}

int folder_remove_entry(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}
