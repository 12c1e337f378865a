/* SPDX-License-Identifier: Apache-2.0 */
/* Where the daemon's socket is, and whose. */
#ifndef GP_RPC_CONNECT_H
#define GP_RPC_CONNECT_H

#include <stddef.h>

#include "base/error.h"

/*
 * A connection to the daemon at `path`: a socket, or -errno with a sentence. -ECONNREFUSED: none
 * answers; -ETIMEDOUT: one is there, but takes no clients. `timeout_ms` 0: it does not wait.
 *
 * NULL: GPREEMPT_SOCKET, else gpreemptd.sock in GPREEMPT_RUN (neither in setuid programs). Where
 * nobody named one, a daemon of this user's own, then the machine's in /run/gpreempt. The own one
 * is asked only in a folder that nobody else may write to: /tmp is everybody's, and who answers
 * there would be told everything, and believed.
 */
int gp_daemon_connect(const char *path, int timeout_ms, struct gp_error *err);

/* The first of those. */
const char *gp_daemon_connect_path(char *out, size_t size);

#endif
