/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/nvidia/file_identity.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/process.h"
#include "gpu/nvidia/rm.h"

#define MOUNT_LINES_MAX 1024 /* of mountinfo; a user can make 100,000 mounts */

/* The mount id of an open file, or -errno. The kernel answers without the file system. */
static int mount_id(const char *process, int file)
{
	char path[64], text[256];
	const char *id;
	ssize_t n;
	int fd;

	snprintf(path, sizeof path, "/proc/%s/fdinfo/%d", process, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, text, sizeof text - 1);
	close(fd);
	text[n > 0 ? n : 0] = 0;
	id = strstr(text, "\nmnt_id:");
	return id ? (int)strtol(id + strlen("\nmnt_id:"), NULL, 10) : -EIO;
}

/* File systems that answer without a server and without user space. */
static bool is_local(const char *type)
{
	static const char *const local[] = {"devtmpfs", "tmpfs", "ramfs", "ext4", "xfs", "btrfs"};

	for (unsigned i = 0; i < sizeof local / sizeof *local; i++)
		if (!strcmp(type, local[i]))
			return true;
	return false;
}

/* A line of mountinfo: "36 35 98:0 /root /point options optional... - type source options". */
static bool is_safe_line(const char *line, dev_t ours)
{
	const char *separator = strstr(line, " - "), *colon = strchr(line, ':');
	unsigned long major, minor;
	char type[32], *end;

	if (!separator || !colon || colon > separator || sscanf(separator, " - %31s", type) != 1)
		return false;
	while (colon > line && colon[-1] != ' ')
		colon--;
	major = strtoul(colon, &end, 10);
	minor = *end == ':' ? strtoul(end + 1, NULL, 10) : 0;
	return makedev((unsigned)major, (unsigned)minor) == ours || is_local(type);
}

/* Looks for the mount among those that the process sees. 1, 0 or -errno. */
static int is_safe_mount(const char *process, int id, dev_t ours)
{
	char path[64], *line = NULL;
	bool found = false, safe = false;
	size_t size = 0;
	FILE *f;

	snprintf(path, sizeof path, "/proc/%s/mountinfo", process);
	f = fopen(path, "re");
	if (!f)
		return -errno;
	for (unsigned i = 0; i < MOUNT_LINES_MAX && !found && getline(&line, &size, f) > 0; i++) {
		found = strtol(line, NULL, 10) == id;
		safe = found && is_safe_line(line, ours);
	}
	free(line);
	fclose(f);
	return safe;
}

static bool is_listed(const struct gp_nv_mounts *mounts, int id)
{
	for (unsigned i = 0; i < mounts->n; i++)
		if (mounts->mount[i].id == id)
			return true;
	return false;
}

/* Whether files of a mount can be examined without waiting: 1, 0 or -errno. The caller keeps the
 * mount. */
static int is_safe(const char *process, int id)
{
	int own_fd = open(gp_rm_path(), O_PATH | O_CLOEXEC), own_id, safe, error;
	struct stat own = {0};

	if (own_fd < 0)
		return errno == ENOENT ? 0 : -errno;
	own_id = mount_id("self", own_fd);
	error = own_id < 0 ? own_id : own_id != id && fstat(own_fd, &own) ? -errno : 0;
	close(own_fd);
	if (error || own_id == id)
		return error ? error : 1;
	safe = is_safe_mount(process, id, own.st_dev);
	return safe == 1 ? safe : is_safe_mount("self", id, own.st_dev) == 1 ? 1 : safe;
}

bool gp_nv_has_control_name(const char *link_text)
{
	const char *path = gp_rm_path(), *name = strrchr(path, '/');
	size_t length = strlen(link_text), tail;

	name = name ? name : path;
	tail = strlen(name);
	return length >= tail && !strcmp(link_text + length - tail, name);
}

int gp_nv_is_control_file(struct gp_nv_mounts *mounts, pid_t pid, int fd)
{
	int id = mount_id("self", fd), is = 0;
	bool listed = id >= 0 && is_listed(mounts, id);
	char process[16];

	snprintf(process, sizeof process, "%d", pid);
	if (id < 0) {
		is = id;
	} else if (!listed && mounts->refused < GP_NV_MOUNTS_MAX) {
		is = is_safe(process, id);
		mounts->refused += !is;
	}
	if (is > 0 || listed)
		is = gp_rm_is_control_fd(fd);
	if (is > 0 && !listed && mounts->n < GP_NV_MOUNTS_MAX) {
		mounts->mount[mounts->n].id = id;
		mounts->mount[mounts->n++].fd = fd;
		return 1;
	}
	close(fd);
	return is > 0 ? listed : is;
}

/* 1, 0 or -errno. */
static int is_on_mounts(const struct gp_nv_mounts *mounts, int fd)
{
	int id = mount_id("self", fd);

	return id < 0 ? id : is_listed(mounts, id);
}

/* The same for a file of another process. */
static int is_file_on_mounts(const struct gp_nv_mounts *mounts, pid_t pid, int file)
{
	char path[64];
	int fd, is;

	/* Not the fdinfo of the file itself: that of an epoll file can have a million lines. */
	snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, file);
	fd = open(path, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	is = is_on_mounts(mounts, fd);
	close(fd);
	return is;
}

/*
 * Between the check and the duplication the process can replace the file by one whose close() waits
 * for ever. Such a duplicate stays open.
 */
static int duplicate(struct gp_nv_duplicates *d, int pidfd, int file)
{
	int is = is_file_on_mounts(&d->mounts, d->pid, file), fd;

	if (is <= 0)
		return is ? is : -EBADF;
	fd = gp_pidfd_getfd(pidfd, file);
	if (fd < 0)
		return fd;
	is = is_on_mounts(&d->mounts, fd);
	if (!is) {
		d->replaced = true;
		return -EPERM;
	}
	if (is > 0 && gp_rm_is_control_fd(fd))
		return fd;
	close(fd); /* it was a control file an instant ago */
	return is < 0 ? is : -EBADF;
}

int gp_nv_duplicate(void *data, struct gp_inquiry_files *files)
{
	struct gp_nv_duplicates *d = data;
	int pidfd = gp_pidfd_open(d->pid);

	if (pidfd < 0)
		return pidfd;
	for (unsigned i = 0; i < d->n; i++) {
		int fd = d->replaced ? -EPERM : duplicate(d, pidfd, d->file[i]);

		d->error[i] = fd < 0 ? fd : 0;
		if (fd >= 0)
			files->fd[files->n++] = fd;
	}
	close(pidfd);
	return 0;
}

void gp_nv_mounts_close(struct gp_nv_mounts *mounts)
{
	for (unsigned i = 0; i < mounts->n; i++)
		close(mounts->mount[i].fd);
	*mounts = (struct gp_nv_mounts){0};
}
