/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One fact at a time, read from a process. All of these may block: those that touch the process's
 * memory for ever, those that look at paths as long as a file system takes. Each gives 0 and
 * something to free, or -errno.
 */
#ifndef GP_PROCINFO_READ_H
#define GP_PROCINFO_READ_H

#include "procinfo/procinfo.h"

struct gp_procinfo_user {
	uid_t uid[3];
	gid_t gid;
	uint32_t ngroups;
	gid_t *group;
	bool other_pidns;
};

int gp_procinfo_read_user(pid_t pid, struct gp_procinfo_user *user);

/* `trusted`: see struct gp_procinfo. */
int gp_procinfo_read_cgroup(pid_t pid, char **path, bool *trusted);
int gp_procinfo_read_exe(pid_t pid, char **path, bool *trusted);

/*
 * From the process's memory. They wait in such a way that a fatal signal to us ends the wait: a
 * reader that is stuck does not keep the daemon from dying.
 */
int gp_procinfo_read_cmdline(pid_t pid, char **words);
int gp_procinfo_read_environ(pid_t pid, char **environment, size_t *size);

/* Nobody but root can change where the path leads, or the file there. */
bool gp_procinfo_path_is_roots(const char *path);

/* Up to `size` - 1 bytes of a file in /proc/PID, with a 0 behind them. How many, or -errno. */
ssize_t gp_procinfo_read_file(pid_t pid, const char *name, char *out, size_t size);

#endif
