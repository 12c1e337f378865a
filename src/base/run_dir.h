/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The folder for what lives as long as the machine runs: undo records, sockets, who is registered.
 */
#ifndef GP_BASE_RUN_DIR_H
#define GP_BASE_RUN_DIR_H

#include <stddef.h>

#include "base/error.h"

#define GP_RUN_DIR_SIZE   256             /* of a text that takes every name */
#define GP_RUN_DIR_SYSTEM "/run/gpreempt" /* root's */

/*
 * GPREEMPT_RUN (not in setuid programs), else /run/gpreempt for root, else gpreempt in the user's
 * XDG_RUNTIME_DIR, else /tmp/gpreempt-UID. Returns `out`. It need not be there.
 */
const char *gp_run_dir(char *out, size_t size);

/*
 * Makes it, or looks whether the one that is there can be trusted: a folder of ours, not a link,
 * to which nobody else may write (-EPERM). root's can be entered by everybody, others' by nobody.
 */
int gp_run_dir_make(struct gp_error *err);

/* The same without making it. -ENOENT: it is not there. */
int gp_run_dir_check(struct gp_error *err);

#endif
