/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Command line and environment, from the process's memory.
 *
 * Not through /proc/PID/cmdline and environ: a read of those waits for a page that never comes with
 * the process's memory map locked, and not even SIGKILL ends it. process_vm_readv lets go of the
 * map while it waits for a page, and dies with us. (It still waits for the map itself, if somebody
 * else keeps that locked.)
 */
#include "procinfo/read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/process.h"

struct area {
	uint64_t from, to;
};

/* Fields 48 to 51 of /proc/PID/stat; 0 for those who may not see them. */
static int find_areas(pid_t pid, struct area *words, struct area *environment)
{
	char text[1024];
	ssize_t n = gp_procinfo_read_file(pid, "stat", text, sizeof text);
	uint64_t value[4] = {0};
	const char *p;

	if (n < 0)
		return (int)n;
	p = strrchr(text, ')'); /* the name before it may hold anything */
	for (int field = 2; p && field < 48; field++)
		p = strchr(p + 1, ' ');
	for (unsigned i = 0; p && i < 4; i++) {
		value[i] = strtoull(p + 1, NULL, 10);
		p = strchr(p + 1, ' ');
	}
	*words = (struct area){value[0], value[1]};
	*environment = (struct area){value[2], value[3]};
	return value[0] ? 0 : -EPERM; /* or there is no memory: it ends, or is the kernel's */
}

/* Up to `max` bytes of it, with a 0 behind them. */
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
 * Without root, Yama may keep us from the memory of our own processes but not from these files. Who
 * lets us wait there is ourselves.
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

int gp_procinfo_read_cmdline(pid_t pid, char **words)
{
	struct area area, other;
	size_t size = 0;
	int r = find_areas(pid, &area, &other);

	if (!r)
		r = read_area(pid, area, GP_PROCINFO_CMDLINE_MAX, words, &size);
	if (r == -EPERM)
		r = read_own(pid, "cmdline", GP_PROCINFO_CMDLINE_MAX, words, &size);
	if (r)
		return r;
	while (size && !(*words)[size - 1])
		size--;
	for (size_t i = 0; i < size; i++)
		if (!(*words)[i])
			(*words)[i] = ' ';
	return 0;
}

int gp_procinfo_read_environ(pid_t pid, char **environment, size_t *size)
{
	struct area other, area;
	int r = find_areas(pid, &other, &area);

	if (!r)
		r = read_area(pid, area, GP_PROCINFO_ENVIRON_MAX, environment, size);
	if (r == -EPERM)
		r = read_own(pid, "environ", GP_PROCINFO_ENVIRON_MAX, environment, size);
	return r;
}
