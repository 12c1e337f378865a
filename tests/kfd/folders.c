/* SPDX-License-Identifier: Apache-2.0 */
/* Folders in sysfs: an object that is created again under an old name has a new inode number. */
#include <linux/sched.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "queue.h"

#define GONE_S 10

/* 0: it is not there. */
static ino_t number_of(pid_t pid, const char *below)
{
	char path[512];
	struct stat st;

	snprintf(path, sizeof(path), "%s/proc/%d%s", kfd_sysfs, pid, below);
	return stat(path, &st) ? 0 : st.st_ino;
}

static void say_compared(ino_t before, ino_t after)
{
	say("%s", !before || !after ? "none" : before == after ? "same" : "another");
}

KFD_CASE(a_queue_made_again, "5.2", NEEDS_GPU | NEEDS_SYSFS, "same 0 0 another same")
{
	struct peer p = peer_start_queues(2, false);
	ino_t first = number_of(p.pid, "/queues/0"), other = number_of(p.pid, "/queues/1");

	say_compared(first, number_of(p.pid, "/queues/0"));
	say_answer(peer_call(&p, destroy_queue, 0));
	say_answer(peer_call(&p, make_queue, KFD_QUEUE_COMPUTE_AQL));
	say_compared(first, number_of(p.pid, "/queues/0"));
	say_compared(other, number_of(p.pid, "/queues/1"));
}

/* As fork(), with this pid, or 0: any. */
static pid_t fork_as(pid_t pid)
{
	struct clone_args args = {.exit_signal = SIGCHLD};

	if (pid) {
		args.set_tid = (uintptr_t)&pid;
		args.set_tid_size = 1;
	}
	return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

/* A process that has the device open, and waits. -errno: not with that pid. */
static pid_t start_as(pid_t pid)
{
	int fd[2];
	bool opened;

	if (pipe(fd))
		broken("pipe", -errno);
	pid = fork_as(pid);
	if (pid < 0)
		return -errno;
	if (!pid) {
		opened = open(kfd_device, O_RDWR | O_CLOEXEC) >= 0;
		if (write(fd[1], &opened, 1) == 1)
			pause();
		_exit(1);
	}
	if (read(fd[0], &opened, 1) != 1 || !opened)
		broken("open", -EIO);
	close(fd[0]);
	close(fd[1]);
	return pid;
}

/* The driver forgets it soon after it has ended. */
static void end(pid_t pid)
{
	time_t until = time(NULL) + GONE_S;

	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	while (number_of(pid, "") && time(NULL) < until)
		usleep(10000);
}

KFD_CASE(a_process_made_again, "5.2", NEEDS_SYSFS, "same none another another")
{
	pid_t pid = start_as(0), again;
	ino_t first, queues;

	must("fork", pid);
	first = number_of(pid, "");
	queues = number_of(pid, "/queues");
	say_compared(first, number_of(pid, ""));
	end(pid);
	say_compared(first, number_of(pid, ""));
	again = start_as(pid);
	if (again < 0)
		cannot("pids cannot be chosen, or another has it");
	say_compared(first, number_of(pid, ""));
	say_compared(queues, number_of(pid, "/queues"));
	end(pid);
}
