/* SPDX-License-Identifier: Apache-2.0 */
#include "procinfo/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
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

/* The child. Its only file is the socket, as number 0: at the daemon's end there is nothing more to
 * read, and the child ends. */
__attribute__((noreturn)) static void serve(int fd, struct gp_procinfo_area *a)
{
	struct gp_procinfo_request q;
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (dup2(fd, 0) || close_range(1, ~0u, 0))
		_exit(1);
	while (recv(0, &q, sizeof q, 0) == (ssize_t)sizeof q)
		answer(0, a, &q);
	_exit(0);
}

int gp_procinfo_child_start(struct gp_procinfo_child *child)
{
	int pair[2], r = 0;

	*child = (struct gp_procinfo_child){.pidfd = -1, .fd = -1};
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	child->fd = pair[0];
	child->area = mmap(NULL, sizeof *child->area, PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (child->area == MAP_FAILED || fcntl(child->fd, F_SETFL, O_NONBLOCK))
		r = -errno;
	if (!r)
		child->pid = fork();
	if (!r && !child->pid)
		serve(pair[1], child->area);
	if (!r && child->pid < 0)
		r = -errno;
	close(pair[1]);
	if (!r)
		child->pidfd = gp_pidfd_open(child->pid);
	if (!r && child->pidfd < 0)
		r = child->pidfd;
	if (!r)
		return 0;
	close(child->fd); /* which ends a child that was started */
	if (child->area != MAP_FAILED)
		munmap(child->area, sizeof *child->area);
	return r;
}

void gp_procinfo_child_kill(struct gp_procinfo_child *child)
{
	gp_pidfd_kill(child->pidfd);
	close(child->fd);
	munmap(child->area, sizeof *child->area);
	child->fd = -1;
	child->area = NULL;
}
