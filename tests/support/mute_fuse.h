/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A FUSE file system that stops answering: a child process serves it in a mount namespace of its
 * own. Every name in it is the same read-only file. After mute_fuse_silence no request is answered,
 * so a process that reads or stats the file waits, in state D. The end of the server aborts the
 * connection, which ends all waits; that happens when the test ends, however it does.
 */
#ifndef TESTS_SUPPORT_MUTE_FUSE_H
#define TESTS_SUPPORT_MUTE_FUSE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct mute_fuse {
	pid_t server;
	int control;
};

/*
 * Mounts over `folder` for the server alone. The file has the bytes of `copy_of`, or 64 KiB of
 * zeros if it is NULL. False: it cannot be done here (not root, no /dev/fuse).
 */
bool mute_fuse_start(struct mute_fuse *f, const char *folder, const char *copy_of);

/* The path of a file in it for other processes. Returns `out`. */
const char *mute_fuse_path(const struct mute_fuse *f, const char *path, char *out, size_t size);

void mute_fuse_silence(struct mute_fuse *f);

/* Aborts the connection. */
void mute_fuse_stop(struct mute_fuse *f);

#endif
