/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the fields of a process. User, groups, executable and cgroup are what the kernel itself
 * records; reading them cannot block on the process.
 */
#include "procinfo/read.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/process.h"

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
int gp_procinfo_read_user(pid_t pid, struct gp_procinfo *user)
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

int gp_procinfo_read_comm(pid_t pid, struct gp_procinfo *info)
{
	char comm[64];
	ssize_t n = gp_procinfo_read_file(pid, "comm", comm, sizeof comm);

	if (n <= 0)
		return n < 0 ? (int)n : -ENODATA;
	comm[n - 1] = '\0'; /* removes the line feed */
	memcpy(info->comm, comm, sizeof info->comm - 1);
	return 0;
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
 * counts only if it leads to the same file here.
 */
static bool leads_to(const char *path, pid_t pid)
{
	char link[64];
	struct stat here, there;

	snprintf(link, sizeof link, "/proc/%d/exe", pid);
	return !stat(path, &here) && !stat(link, &there) && here.st_dev == there.st_dev &&
	       here.st_ino == there.st_ino;
}

int gp_procinfo_read_exe(pid_t pid, struct gp_procinfo *info)
{
	char link[64], target[PATH_MAX];
	ssize_t n;

	snprintf(link, sizeof link, "/proc/%d/exe", pid);
	n = readlink(link, target, sizeof target - 1);
	if (n < 0)
		return -errno;
	target[n] = '\0';
	info->exe = strdup(target);
	info->exe_trusted = gp_procinfo_path_is_roots(target) && leads_to(target, pid);
	return info->exe ? 0 : -ENOMEM;
}

/*
 * The cgroup of a process. With one hierarchy (v2) there is no choice. With several, those in which
 * the process is at the root are skipped; then v2 is preferred, then systemd's, then the first of
 * the list. Container runtimes use the same path in all.
 */

#define LIST_MAX 16384u
#define MOUNTED  "/sys/fs/cgroup"

/* A line "4:memory:/path". */
struct line {
	const char *controllers;
	const char *path;
};

static bool split(char *text, struct line *line)
{
	char *first = strchr(text, ':'), *second = first ? strchr(first + 1, ':') : NULL;

	if (!second)
		return false;
	*second = '\0';
	*line = (struct line){.controllers = first + 1, .path = second + 1};
	return true;
}

static unsigned rank(const struct line *l)
{
	if (!strcmp(l->path, "/"))
		return 0;
	if (!l->controllers[0])
		return 3;
	return !strcmp(l->controllers, "name=systemd") ? 2 : 1;
}

/*
 * The owner of a cgroup folder can create folders in it and move its processes there. So every
 * folder above the last must belong to root; the last may be delegated to the user.
 */
static bool is_trusted(const struct line *l)
{
	const char *name =
		!strncmp(l->controllers, "name=", 5) ? l->controllers + 5 : l->controllers;
	const char *mounts[] = {"", *name ? name : "unified"};
	char *slash;

	if (strstr(l->path, "/..") || !strcmp(l->path, "/"))
		return !strcmp(l->path, "/"); /* "/.." is not visible from here; "/" is trusted */
	for (unsigned i = *name ? 1 : 0; i < 2; i++) {
		char path[PATH_MAX];

		if (snprintf(path, sizeof path, MOUNTED "%s%s%s", *mounts[i] ? "/" : "", mounts[i],
			     l->path) >= (int)sizeof path)
			return false;
		slash = strrchr(path, '/');
		*slash = '\0';
		if (gp_procinfo_path_is_roots(path))
			return true;
	}
	return false;
}

int gp_procinfo_read_cgroup(pid_t pid, struct gp_procinfo *info)
{
	char *list = malloc(LIST_MAX), *rest = list, *text;
	ssize_t n = list ? gp_procinfo_read_file(pid, "cgroup", list, LIST_MAX) : -ENOMEM;
	struct line best = {0}, line;

	while (n > 0 && (text = strsep(&rest, "\n")) && *text)
		if (split(text, &line) && (!best.path || rank(&line) > rank(&best)))
			best = line;
	if (n >= 0)
		n = best.path ? 0 : -ENOENT;
	if (!n) {
		info->cgroup = strdup(best.path);
		info->cgroup_trusted = is_trusted(&best);
		n = info->cgroup ? 0 : -ENOMEM;
	}
	free(list);
	return (int)n;
}

/*
 * Reads command line and environment from the memory of the process.
 *
 * It does not use /proc/PID/cmdline and environ: such a read waits for a missing page with the
 * memory map of the process locked, and not even SIGKILL ends it. process_vm_readv unlocks the map
 * while it waits for a page, and a signal ends it. (It still waits if another process keeps the map
 * locked.)
 */

struct area {
	uint64_t from, to;
};

/* Reads fields 48 to 51 of /proc/PID/stat. They are 0 without permission. */
static int find_areas(pid_t pid, struct area *words, struct area *environment)
{
	char text[1024];
	ssize_t n = gp_procinfo_read_file(pid, "stat", text, sizeof text);
	uint64_t value[4] = {0};
	const char *p;

	if (n < 0)
		return (int)n;
	p = strrchr(text, ')'); /* the process name before it may contain anything */
	for (int field = 2; p && field < 48; field++)
		p = strchr(p + 1, ' ');
	for (unsigned i = 0; p && i < 4; i++) {
		value[i] = strtoull(p + 1, NULL, 10);
		p = strchr(p + 1, ' ');
	}
	*words = (struct area){value[0], value[1]};
	*environment = (struct area){value[2], value[3]};
	return value[0] ? 0 : -EPERM; /* or exiting, or a kernel thread */
}

/* Reads at most `max` bytes of the area and appends a 0. */
static int read_area(pid_t pid, struct area area, size_t max, char **out, size_t *size)
{
	size_t wanted = area.to > area.from ? (size_t)(area.to - area.from) : 0;
	struct iovec here, there;
	ssize_t n = 0;
	char *data;

	if (wanted > max)
		wanted = max;
	data = malloc(wanted + 1);
	if (!data)
		return -ENOMEM;
	here = (struct iovec){.iov_base = data, .iov_len = wanted};
	there = (struct iovec){.iov_base = (void *)(uintptr_t)area.from, .iov_len = wanted};
	if (wanted)
		n = process_vm_readv(pid, &here, 1, &there, 1, 0);
	if (n < 0) {
		n = -errno;
		free(data);
		return (int)n;
	}
	data[n] = '\0';
	*out = data;
	*size = (size_t)n;
	return 0;
}

/*
 * For a daemon without root. Yama may deny it the memory of its user's processes but not the files
 * in /proc, so this reads the files. A read can hang if the process serves its own page faults, but
 * then the user delays only their own daemon.
 */
static int read_own(pid_t pid, const char *name, size_t max, char **out, size_t *size)
{
	uid_t uid;
	char *data;
	ssize_t n;

	if (!geteuid() || !gp_process_uid(pid, &uid) || uid != geteuid())
		return -EPERM;
	data = malloc(max + 1);
	n = data ? gp_procinfo_read_file(pid, name, data, max + 1) : -ENOMEM;
	if (n < 0) {
		free(data);
		return (int)n;
	}
	*out = data;
	*size = (size_t)n;
	return 0;
}

/* `number`: which of the two areas. */
static int read_memory(pid_t pid, unsigned number, const char *name, size_t max, char **out,
		       size_t *size)
{
	struct area area[2];
	int r = find_areas(pid, &area[0], &area[1]);

	if (!r)
		r = read_area(pid, area[number], max, out, size);
	return r == -EPERM ? read_own(pid, name, max, out, size) : r;
}

int gp_procinfo_read_cmdline(pid_t pid, struct gp_procinfo *info)
{
	size_t size = 0;
	char *words;
	int r = read_memory(pid, 0, "cmdline", GP_PROCINFO_CMDLINE_MAX, &words, &size);

	if (r)
		return r;
	while (size && !words[size - 1])
		size--;
	for (size_t i = 0; i < size; i++)
		if (!words[i])
			words[i] = ' ';
	info->cmdline = words;
	return 0;
}

int gp_procinfo_read_environ(pid_t pid, struct gp_procinfo *info)
{
	char *environment;
	int r = read_memory(pid, 1, "environ", GP_PROCINFO_ENVIRON_MAX, &environment,
			    &info->environ_size);

	if (!r)
		info->environ = environment;
	return r;
}
