/* SPDX-License-Identifier: Apache-2.0 */
/* Finding and connecting to the daemon's socket. */
#ifndef GP_RPC_CONNECT_H
#define GP_RPC_CONNECT_H

#include <stddef.h>

#include "base/error.h"

/*
 * Connects to the daemon at `path`. Returns a socket, or -errno with a message. -ECONNREFUSED: no
 * daemon answers. -ETIMEDOUT: a daemon exists but accepts no clients. `timeout_ms` 0: does not
 * wait.
 *
 * `path` NULL: GPREEMPT_SOCKET, else gpreemptd.sock in GPREEMPT_RUN (both ignored in setuid
 * programs). If neither is set, first the user's own daemon, then the system's in /run/gpreempt.
 * The own socket is used only in a folder that no other user can write to: /tmp is shared, and an
 * attacker could answer there.
 */
int gp_daemon_connect(const char *path, int timeout_ms, struct gp_error *err);

/* Writes the path that is tried first. */
const char *gp_daemon_connect_path(char *out, size_t size);

#endif
