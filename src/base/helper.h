/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A helper: a child process that works for this process in shared memory. It can hang in the
 * kernel, so that not even SIGKILL ends it. It has no file of this process except one end of a
 * socket, so whatever hangs there hangs without this process. It ends by SIGKILL, and when the
 * thread that started it ends; all other signals are blocked.
 */
#ifndef GP_BASE_HELPER_H
#define GP_BASE_HELPER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct gp_helper {
	pid_t pid;
	int pidfd; /* readable when the helper has ended; -1 after gp_helper_reap() */
	int fd;    /* this process's end of the socket (SOCK_SEQPACKET); -1: killed */
	void *shared;
	size_t size;
};

enum gp_helper_kind {
	GP_HELPER_CHILD,
	/* This process gets no SIGCHLD for it, and wait() does not return it: for use in programs
	 * of others. Such a helper must not allocate memory or use a lock. */
	GP_HELPER_HIDDEN,
};

/* Starts a helper that shares `size` bytes, initially 0, and runs `serve` with its end of the
 * socket, which is its only open file. The helper ends when `serve` returns. 0 or -errno. */
int gp_helper_start(struct gp_helper *helper, enum gp_helper_kind kind, size_t size,
		    void (*serve)(int fd, void *shared));

/* Sends SIGKILL, closes the socket and unmaps the memory. Does not wait. */
void gp_helper_kill(struct gp_helper *helper);

/* Frees a helper that has ended: closes its pidfd. `wait`: waits for the end. False: it runs. */
bool gp_helper_reap(struct gp_helper *helper, bool wait);

#endif
