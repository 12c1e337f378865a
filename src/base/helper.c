/* SPDX-License-Identifier: Apache-2.0 */
#include "base/helper.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/inquiry.h"
#include "base/process.h"

/* In the helper. Its socket becomes file 0: when this process ends, there is nothing more to read
 * from it, and SIGKILL ends a wait for memory. */
__attribute__((noreturn)) static void run(int fd, void *shared, void (*serve)(int fd, void *shared))
{
	gp_inquiry_use_none();
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "gpreempt-helper");
	if (dup2(fd, 0) || close_range(1, ~0u, 0))
		_exit(1);
	serve(0, shared);
	_exit(0);
}

/* A clone without a signal at its end is hidden from wait(). The thread sanitizer must see a
 * fork(). */
static pid_t clone_process(enum gp_helper_kind kind)
{
#ifndef __SANITIZE_THREAD__
	if (kind == GP_HELPER_HIDDEN)
		return (pid_t)syscall(SYS_clone, 0UL, NULL, NULL, NULL, 0UL);
#endif
	(void)kind;
	return fork();
}

/* The helper keeps all signals blocked. It has the signal handlers of this program, and a signal
 * for the process group (Ctrl-C) would run them a second time. SIGKILL still ends it. */
static pid_t start_process(enum gp_helper_kind kind)
{
	sigset_t all, before;
	pid_t pid;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pid = clone_process(kind);
	if (pid)
		pthread_sigmask(SIG_SETMASK, &before, NULL);
	return pid;
}

int gp_helper_start(struct gp_helper *h, enum gp_helper_kind kind, size_t size,
		    void (*serve)(int fd, void *shared))
{
	int pair[2], r = 0;

	*h = (struct gp_helper){.pidfd = -1, .fd = -1, .size = size};
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	h->fd = pair[0];
	h->shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (h->shared == MAP_FAILED)
		r = -errno;
	if (!r)
		h->pid = start_process(kind);
	if (!r && !h->pid)
		run(pair[1], h->shared, serve);
	if (!r && h->pid < 0)
		r = -errno;
	close(pair[1]);
	if (!r)
		h->pidfd = gp_pidfd_open(h->pid);
	if (!r && h->pidfd < 0)
		r = h->pidfd;
	if (!r)
		return 0;
	close(h->fd);
	if (h->pid > 0) { /* it has nothing to do, so SIGKILL ends it */
		kill(h->pid, SIGKILL);
		while (waitpid(h->pid, NULL, __WALL) < 0 && errno == EINTR)
			;
	}
	if (h->shared != MAP_FAILED)
		munmap(h->shared, size);
	return r;
}

void gp_helper_kill(struct gp_helper *h)
{
	gp_pidfd_kill(h->pidfd);
	close(h->fd);
	munmap(h->shared, h->size);
	h->fd = -1;
	h->shared = NULL;
}

bool gp_helper_reap(struct gp_helper *h, bool wait)
{
	if (!wait && !gp_pidfd_ended(h->pidfd))
		return false;
	while (waitpid(h->pid, NULL, __WALL) < 0 && errno == EINTR)
		;
	close(h->pidfd);
	h->pidfd = -1;
	return true;
}
