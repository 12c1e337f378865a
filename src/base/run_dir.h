/* SPDX-License-Identifier: Apache-2.0 */
/* The run-time folder. It holds what must survive a process but not a reboot: undo records, sockets
 * and assignments. */
#ifndef GP_BASE_RUN_DIR_H
#define GP_BASE_RUN_DIR_H

#include <stddef.h>

#include "base/error.h"

#define GP_RUN_DIR_SIZE   256             /* buffer size for any name of the folder */
#define GP_RUN_DIR_SYSTEM "/run/gpreempt" /* for root */

/*
 * The name of the folder: GPREEMPT_RUN (ignored in setuid programs), else /run/gpreempt for root,
 * else gpreempt in the user's XDG_RUNTIME_DIR, else /tmp/gpreempt-UID. The folder need not exist.
 * Returns `out`.
 */
const char *gp_run_dir(char *out, size_t size);

/*
 * Creates the folder, or checks whether the existing one can be trusted: a folder of our own, not a
 * symbolic link, not writable by other users (-EPERM). The folder of root is readable by all users,
 * the folder of another user by that user only.
 */
int gp_run_dir_make(struct gp_error *err);

/* The same check without creating the folder. -ENOENT: it does not exist. */
int gp_run_dir_check(struct gp_error *err);

#endif
