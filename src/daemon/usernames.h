/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of users, for people to read. They may come from a directory on the network, so they are
 * asked for by a thread of its own, and until it has an answer there is only the number.
 */
#ifndef GP_DAEMON_USERNAMES_H
#define GP_DAEMON_USERNAMES_H

#include <stddef.h>
#include <sys/types.h>

/* The name, or the number as long as that is all there is. Never waits. Returns `out`. */
const char *gp_user_name(uid_t uid, char *out, size_t size);

#endif
