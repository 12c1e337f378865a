/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that read one field of a process into `info`. All may block: those that touch the
 * memory of the process without limit, those that follow paths as long as the file system takes.
 * Each returns 0, or -errno and has changed no pointer. What they allocate belongs to the caller.
 */
#ifndef GP_PROCINFO_READ_H
#define GP_PROCINFO_READ_H

#include "procinfo/procinfo.h"

typedef int gp_procinfo_read(pid_t pid, struct gp_procinfo *info);

gp_procinfo_read gp_procinfo_read_user, gp_procinfo_read_comm;
gp_procinfo_read gp_procinfo_read_cgroup, gp_procinfo_read_exe;

/*
 * These two read the memory of the process. A fatal signal to the daemon ends the wait, so a
 * blocked reader cannot prevent its exit.
 */
gp_procinfo_read gp_procinfo_read_cmdline, gp_procinfo_read_environ;

/* True if only root can change where the path leads and the file there. */
bool gp_procinfo_path_is_roots(const char *path);

/*
 * Reads at most `size` - 1 bytes of a file in /proc/PID and appends a 0. Returns the number of
 * bytes, or -errno.
 */
ssize_t gp_procinfo_read_file(pid_t pid, const char *name, char *out, size_t size);

#endif
