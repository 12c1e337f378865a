/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recognises the control file among the open files of another process.
 *
 * The owner of a process chooses its files, and a file system in user space answers when it wants
 * to: stat(), close() and ioctl() on such a file can wait for ever. The functions here therefore
 * ask the kernel first which mount a file is on (fdinfo, mountinfo), and call only file systems
 * that the kernel serves alone, and the file system of gpreempt's own control file.
 */
#ifndef GP_GPU_NVIDIA_FILE_IDENTITY_H
#define GP_GPU_NVIDIA_FILE_IDENTITY_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/inquiry.h"

#define GP_NV_FILES_MAX  32 /* control files of one process */
#define GP_NV_MOUNTS_MAX 4  /* mounts with control files, of one process */

/* Mounts whose files can be examined without waiting. Each is kept by a descriptor (O_PATH, which
 * opens no driver file), because the kernel reuses the id of a mount that is gone. */
struct gp_nv_mounts {
	unsigned n;
	struct {
		int id;
		int fd;
	} mount[GP_NV_MOUNTS_MAX];
	unsigned refused; /* files on other mounts in this search */
};

void gp_nv_mounts_close(struct gp_nv_mounts *mounts);

/* Whether the name of an open file, as /proc/PID/fd shows it, is that of the control file. It ends
 * with the same name in every container, whatever directory the device is mounted in. */
bool gp_nv_has_control_name(const char *link_text);

/* Whether `fd`, a file of a process opened with O_PATH, is the control file: 1, 0, or -errno: not
 * known. Closes `fd`, or adds it to `mounts` for its mount. */
int gp_nv_is_control_file(struct gp_nv_mounts *mounts, pid_t pid, int fd);

/* For gp_nv_duplicate. */
struct gp_nv_duplicates {
	pid_t pid;
	struct gp_nv_mounts mounts; /* on which the files must be */
	unsigned n;
	int file[GP_NV_FILES_MAX];  /* numbers in the process */
	int error[GP_NV_FILES_MAX]; /* out: 0: the next duplicate is of this file, or -errno */
	bool replaced;              /* out: the process put a file of another mount in its place */
};

/* An inquiry (base/inquiry.h): duplicates the control files of a process. After that the caller
 * checks that the process has not ended: its pid was not reused then. */
int gp_nv_duplicate(void *data, struct gp_inquiry_files *files);

#endif
