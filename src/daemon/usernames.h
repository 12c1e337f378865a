/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of users for display. A lookup may need the network, so a thread does it; until then the
 * uid is shown.
 */
#ifndef GP_DAEMON_USERNAMES_H
#define GP_DAEMON_USERNAMES_H

#include <stddef.h>
#include <sys/types.h>

/* Writes the name, or the uid if the name is not known yet. Never blocks. Returns `out`. */
const char *gp_user_name(uid_t uid, char *out, size_t size);

#endif
