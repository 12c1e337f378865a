/* SPDX-License-Identifier: Apache-2.0 */
/* Fields that the kernel itself records: user, groups, executable. */
#include "procinfo/read.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define STATUS_MAX 32768u /* more than GP_PROCINFO_GROUPS_MAX groups need */

ssize_t gp_procinfo_read_file(pid_t pid, const char *name, char *out, size_t size)
{
	char path[64];
	size_t length = 0;
	ssize_t n;
	int fd;

	snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while ((n = read(fd, out + length, size - 1 - length)) > 0)
		length += (size_t)n;
	if (n < 0)
		n = -errno;
	close(fd);
	out[length] = '\0';
	return n < 0 ? n : (ssize_t)length;
}

/*
 * Reads the values of a line "NAME:\t1\t2 3" of the file `status`. Returns their number; 0 if the
 * line is missing.
 */
static uint32_t read_numbers(const char *status, const char *name, uint32_t *value, uint32_t max)
{
	const char *at = strstr(status, name);
	uint32_t n = 0;

	if (!at)
		return 0;
	for (at += strlen(name); *at && *at != '\n' && n < max; n++) {
		char *end;

		value[n] = (uint32_t)strtoul(at, &end, 10);
		if (end == at)
			break;
		at = end + strspn(end, " \t");
	}
	return n;
}

/* The kernel escapes a line feed in the process name, so a name cannot forge a line. */
int gp_procinfo_read_user(pid_t pid, struct gp_procinfo_user *user)
{
	char *status = malloc(STATUS_MAX);
	gid_t *group = malloc(GP_PROCINFO_GROUPS_MAX * sizeof *group);
	uint32_t ids[4], ours[2];
	ssize_t n = status && group ? gp_procinfo_read_file(pid, "status", status, STATUS_MAX)
				    : -ENOMEM;
	int r = n < 0 ? (int)n : 0;

	if (!r && read_numbers(status, "\nUid:", ids, 4) != 4)
		r = -EPROTO;
	if (!r) {
		memcpy(user->uid, ids, sizeof user->uid);
		r = read_numbers(status, "\nGid:", ids, 4) == 4 ? 0 : -EPROTO;
	}
	if (!r) {
		user->gid = ids[0];
		user->ngroups = read_numbers(status, "\nGroups:", group, GP_PROCINFO_GROUPS_MAX);
		user->group = group;
		/* One number for each pid namespace, from the daemon's inwards. */
		user->other_pidns = read_numbers(status, "\nNSpid:", ours, 2) != 1;
	} else {
		free(group);
	}
	free(status);
	return r;
}

static bool is_roots(const struct stat *s)
{
	return !s->st_uid && !(s->st_mode & (S_IWGRP | S_IWOTH));
}

bool gp_procinfo_path_is_roots(const char *path)
{
	char part[PATH_MAX];
	struct stat s;
	size_t length = strlen(path);

	if (path[0] != '/' || length >= sizeof part || stat("/", &s) || !is_roots(&s))
		return false;
	memcpy(part, path, length + 1);
	for (char *slash = part + 1;; slash++) {
		char was;

		slash += strcspn(slash, "/");
		was = *slash;
		*slash = '\0';
		if (lstat(part, &s) || !is_roots(&s))
			return false; /* also for a symbolic link: its mode is 0777 */
		if (!was)
			return true;
		*slash = was;
	}
}

/*
 * The path is valid in the mount namespace of the process, which the user may have created. It
 * counts only if it leads to the same file here. The executable may be in a file system that the
 * user serves, so the kernel is asked for what it knows.
 */
static bool leads_to(const char *path, pid_t pid)
{
	struct statx here, there;
	char link[64];

	snprintf(link, sizeof link, "/proc/%d/exe", pid);
	return !statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_INO, &here) &&
	       !statx(AT_FDCWD, link, AT_STATX_DONT_SYNC, STATX_INO, &there) &&
	       here.stx_dev_major == there.stx_dev_major &&
	       here.stx_dev_minor == there.stx_dev_minor && here.stx_ino == there.stx_ino;
}

int gp_procinfo_read_exe(pid_t pid, char **path, bool *trusted)
{
	char link[64], target[PATH_MAX];
	ssize_t n;

	snprintf(link, sizeof link, "/proc/%d/exe", pid);
	n = readlink(link, target, sizeof target - 1);
	if (n < 0)
		return -errno;
	target[n] = '\0';
	*path = strdup(target);
	if (!*path)
		return -ENOMEM;
	*trusted = gp_procinfo_path_is_roots(target) && leads_to(target, pid);
	return 0;
}
