/* SPDX-License-Identifier: Apache-2.0 */
/* What a case or a peer can do, other than ask the driver. */
#include <grp.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#include "cases.h"

static long rc_of(long rc)
{
	return rc < 0 ? -errno : rc;
}

long seize(long pid)
{
	return rc_of(ptrace(PTRACE_SEIZE, (pid_t)pid, NULL, NULL));
}

static void wait_for_stop(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, __WALL) == pid && !WIFSTOPPED(status))
		;
}

long attach(long pid)
{
	long rc = rc_of(ptrace(PTRACE_ATTACH, (pid_t)pid, NULL, NULL));

	if (!rc)
		wait_for_stop((pid_t)pid);
	return rc;
}

long detach(long pid)
{
	if (ptrace(PTRACE_INTERRUPT, (pid_t)pid, NULL, NULL))
		return -errno;
	wait_for_stop((pid_t)pid);
	return rc_of(ptrace(PTRACE_DETACH, (pid_t)pid, NULL, NULL));
}

static _Atomic pid_t sleeping_tid;

static void *sleep_forever(void *unused)
{
	(void)unused;
	sleeping_tid = (pid_t)syscall(SYS_gettid);
	for (;;)
		pause();
	return NULL;
}

long start_thread(long unused)
{
	pthread_t thread;

	(void)unused;
	sleeping_tid = 0;
	if (pthread_create(&thread, NULL, sleep_forever, NULL))
		return -EAGAIN;
	while (!sleeping_tid)
		usleep(1000);
	return sleeping_tid;
}

long exit_leader(long unused)
{
	(void)unused;
	syscall(SYS_exit, 0);
	return 0;
}

long exit_normally(long unused)
{
	(void)unused;
	_exit(0);
}

long become_user(long uid)
{
	if (setgroups(0, NULL) || setgid((gid_t)uid) || setuid((uid_t)uid))
		return -errno;
	/* As if it had been started by that user: others of it may trace it. */
	return rc_of(prctl(PR_SET_DUMPABLE, 1));
}

static void on_signal(int number)
{
	(void)number;
}

long catch_signal(long number)
{
	struct sigaction how = {.sa_handler = on_signal};

	return rc_of(sigaction((int)number, &how, NULL));
}

void *bad_pointer(void)
{
	return mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

void *read_only_copy(const void *data, size_t size)
{
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		broken("mmap", -errno);
	memcpy(page, data, size);
	mprotect(page, 4096, PROT_READ);
	return page;
}
