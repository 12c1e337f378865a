/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads command line and environment from the memory of the process.
 *
 * It does not use /proc/PID/cmdline and environ: such a read waits for a missing page with the
 * memory map of the process locked, and not even SIGKILL ends it. process_vm_readv unlocks the map
 * while it waits for a page, and a signal ends it if the page belongs to a userfaultfd. (It still
 * waits for a page of a FUSE file, or if another process keeps the map locked.)
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
