/* SPDX-License-Identifier: Apache-2.0 */
#include "procinfo/reader.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/process.h"
#include "procinfo/read.h"

static bool read_user(struct gp_procinfo_area *a, pid_t pid)
{
	struct gp_procinfo_user user;

	if (gp_procinfo_read_user(pid, &user))
		return false;
	memcpy(a->uid, user.uid, sizeof a->uid);
	a->gid = user.gid;
	a->ngroups = user.ngroups;
	memcpy(a->group, user.group, user.ngroups * sizeof *a->group);
	a->other_pidns = user.other_pidns;
	free(user.group);
	return true;
}

static bool read_comm(struct gp_procinfo_area *a, pid_t pid)
{
	char comm[64];
	ssize_t n = gp_procinfo_read_file(pid, "comm", comm, sizeof comm);

	if (n <= 0)
		return false;
	comm[n - 1] = '\0'; /* removes the line feed */
	memcpy(a->comm, comm, sizeof a->comm - 1);
	return true;
}

/* Copies and frees `text`. */
static bool take(char *text, char *out, size_t size)
{
	size_t length = strlen(text);
	bool fits = length < size;

	if (fits)
		memcpy(out, text, length + 1);
	free(text);
	return fits;
}

static bool read_cgroup(struct gp_procinfo_area *a, pid_t pid)
{
	char *path;

	return !gp_procinfo_read_cgroup(pid, &path, &a->cgroup_trusted) &&
	       take(path, a->cgroup, sizeof a->cgroup);
}

static bool read_exe(struct gp_procinfo_area *a, pid_t pid)
{
	char *path;

	return !gp_procinfo_read_exe(pid, &path, &a->exe_trusted) &&
	       take(path, a->exe, sizeof a->exe);
}

static bool read_cmdline(struct gp_procinfo_area *a, pid_t pid)
{
	char *words;

	return !gp_procinfo_read_cmdline(pid, &words) && take(words, a->cmdline, sizeof a->cmdline);
}

static bool read_environ(struct gp_procinfo_area *a, pid_t pid)
{
	char *environment;
	size_t size;

	if (gp_procinfo_read_environ(pid, &environment, &size))
		return false;
	memcpy(a->environ, environment, size + 1);
	a->environ_size = (uint32_t)size;
	free(environment);
	return true;
}

static void read_fields(struct gp_procinfo_area *a, pid_t pid, uint32_t fields)
{
	static const struct {
		uint32_t field;
		bool (*read)(struct gp_procinfo_area *a, pid_t pid);
	} table[] = {
		{GP_PROCINFO_USER, read_user},       {GP_PROCINFO_COMM, read_comm},
		{GP_PROCINFO_CGROUP, read_cgroup},   {GP_PROCINFO_EXE, read_exe},
		{GP_PROCINFO_CMDLINE, read_cmdline}, {GP_PROCINFO_ENVIRON, read_environ},
	};

	for (unsigned i = 0; i < sizeof table / sizeof *table; i++) {
		if (!(fields & table[i].field))
			continue;
		atomic_store(&a->reading, table[i].field);
		if (table[i].read(a, pid))
			atomic_fetch_or(&a->known, table[i].field);
		atomic_store(&a->reading, 0);
	}
}

static void say(int fd, char message)
{
	if (send(fd, &message, 1, MSG_NOSIGNAL) != 1)
		_exit(0); /* the daemon has ended */
}

static void answer(int fd, struct gp_procinfo_area *a, const struct gp_procinfo_request *q)
{
	uint32_t may;

	if (gp_process_start_time(q->pid) == q->start_time) {
		read_fields(a, q->pid, q->want & ~(GP_PROCINFO_RISKY));
		if (q->want & GP_PROCINFO_RISKY) {
			say(fd, GP_PROCINFO_MAY_I);
			if (recv(fd, &may, sizeof may, 0) != (ssize_t)sizeof may)
				_exit(0);
			read_fields(a, q->pid, may);
		}
	}
	say(fd, gp_process_gone(q->pid, q->start_time) ? GP_PROCINFO_GONE : GP_PROCINFO_DONE);
}

void gp_procinfo_serve(int fd, void *area)
{
	struct gp_procinfo_request q;

	while (recv(fd, &q, sizeof q, 0) == (ssize_t)sizeof q)
		answer(fd, area, &q);
}
