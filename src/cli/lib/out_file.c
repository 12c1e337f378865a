/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/lib/out_file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int open_in_ref(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

	return fd < 0 ? -errno : fd;
}

static int open_apart(const char *path)
{
	char folder[PATH_MAX];
	int fd;

	if (strlen(path) >= sizeof folder)
		return -ENAMETOOLONG;
	memcpy(folder, path, strlen(path) + 1);
	fd = open(dirname(folder), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
	return fd < 0 ? -errno : fd;
}

/* The descriptor to write to, or -errno; also whether that file has a name. */
static int open_for(struct gp_out_file *f, const char *path)
{
	struct stat st;
	int fd;

	if (stat(path, &st)) {
		f->path = strdup(path);
	} else {
		if (access(path, W_OK))
			return -errno;
		if (!S_ISREG(st.st_mode))
			return open_in_ref(path);
		f->path = realpath(path, NULL);
	}
	if (!f->path)
		return -errno;
	fd = open_apart(f->path);
	f->apart = fd >= 0;
	return fd == -EOPNOTSUPP || fd == -EISDIR || fd == -EINVAL ? open_in_ref(path) : fd;
}

int gp_out_open(struct gp_out_file *f, const char *path)
{
	int fd;

	*f = (struct gp_out_file){0};
	fd = open_for(f, path);
	if (fd >= 0)
		f->out = fdopen(fd, "w");
	if (f->out)
		return 0;
	if (fd >= 0) {
		close(fd);
		fd = -ENOMEM;
	}
	gp_out_drop(f);
	return fd;
}

/* Links the file beside the old one, then renames it over the old one. */
static int replace(const char *from, const char *path)
{
	char aside[PATH_MAX];

	for (unsigned i = 0; i < 100; i++) {
		int n = snprintf(aside, sizeof aside, "%s.%d-%u", path, getpid(), i);

		if (n < 0 || (size_t)n >= sizeof aside)
			return -ENAMETOOLONG;
		if (linkat(AT_FDCWD, from, AT_FDCWD, aside, AT_SYMLINK_FOLLOW)) {
			if (errno == EEXIST)
				continue;
			return -errno;
		}
		if (!rename(aside, path))
			return 0;
		n = -errno;
		unlink(aside);
		return n;
	}
	return -EEXIST;
}

static int give_name(const struct gp_out_file *f)
{
	char from[32];

	snprintf(from, sizeof from, "/proc/self/fd/%d", fileno(f->out));
	if (!linkat(AT_FDCWD, from, AT_FDCWD, f->path, AT_SYMLINK_FOLLOW))
		return 0;
	return errno == EEXIST ? replace(from, f->path) : -errno;
}

int gp_out_keep(struct gp_out_file *f)
{
	int r = 0;

	if (!f->out)
		return 0;
	errno = 0;
	if (fflush(f->out) || ferror(f->out))
		r = errno ? -errno : -EIO;
	if (!r && f->apart)
		r = give_name(f);
	if (fclose(f->out) && !r)
		r = -errno;
	f->out = NULL;
	gp_out_drop(f);
	return r;
}

void gp_out_drop(struct gp_out_file *f)
{
	if (f->out)
		fclose(f->out);
	free(f->path);
	*f = (struct gp_out_file){0};
}

bool gp_out_same(const char *path, const char *other)
{
	struct stat a, b;

	if (!strcmp(path, other))
		return true;
	return !stat(path, &a) && !stat(other, &b) && S_ISREG(a.st_mode) && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}
