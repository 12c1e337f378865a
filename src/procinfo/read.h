/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that read one field of a process. All may block: those that touch the memory of the
 * process without limit, those that follow paths as long as the file system takes. Each returns 0
 * and memory that the caller frees, or -errno.
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

/* These two read the memory of the process. If a page is in a FUSE file, no signal ends the wait.
 */
int gp_procinfo_read_cmdline(pid_t pid, char **words);
int gp_procinfo_read_environ(pid_t pid, char **environment, size_t *size);

/* True if only root can change where the path leads and the file there. */
bool gp_procinfo_path_is_roots(const char *path);

/*
 * Reads at most `size` - 1 bytes of a file in /proc/PID and appends a 0. Returns the number of
 * bytes, or -errno.
 */
ssize_t gp_procinfo_read_file(pid_t pid, const char *name, char *out, size_t size);

#endif
