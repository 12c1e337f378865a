/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls to NVIDIA's resource manager (RM) through /dev/nvidiactl.
 *
 * RM grants access to an object by the open file that a call comes through. Calls about another
 * process therefore go through a duplicate of that process's file (target.h). Calls about the
 * machine (list of processes, list of GPUs) go through a file that gpreempt opens.
 */
#ifndef GP_GPU_NVIDIA_RM_H
#define GP_GPU_NVIDIA_RM_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "gpu/nvidia/rm_abi.h"

/* This bit of a status: the call did not reach RM, and the other bits are an errno. */
#define GP_RM_ERRNO 0x80000000u

/* Statuses of this code, not of RM. RM accepted a change, and reads back the state before it, or
 * the new state for a part of the channels only. */
#define GP_RM_NO_EFFECT 0x40000000u
#define GP_RM_PARTLY    0x40000001u
/* RM accepted a release and does not read back channels, and the process has done no work since. */
#define GP_RM_UNSEEN 0x40000002u

/* This bit of a status: RM accepted a change whose effect cannot be read back. The other bits are
 * the status of the reading. */
#define GP_RM_UNREAD 0x20000000u

/* The driver has no call that reads back the state of a channel. */
#define GP_RM_NOT_OFFERED (GP_RM_ERRNO | ENOTSUP)

/* A class, parent or child that RM did not name, although it did not deny that there is one. */
#define GP_RM_UNKNOWN UINT32_MAX

/* /dev/nvidiactl, or the path in GPREEMPT_NVIDIACTL, which setuid programs ignore. */
const char *gp_rm_path(void);

/* Whether a descriptor of this process is the control file. Calls the file system of the file, see
 * file_identity.h. */
bool gp_rm_is_control_fd(int fd);

/* One control call. Returns the status. After BUSY_RETRY the call is repeated for up to 5 ms. */
uint32_t gp_rm_control(int fd, uint32_t client, uint32_t object, uint32_t cmd, void *params,
		       uint32_t size);

/* Whether a status proves that the object does not exist. Other failures can be temporary. */
bool gp_rm_is_gone(uint32_t status);

/* Whether RM accepted a change that has no effect, or none that can be read back. */
static inline bool gp_rm_is_unproven(uint32_t status)
{
	return status & (GP_RM_NO_EFFECT | GP_RM_UNREAD);
}

/* Class or parent of an object. 0: the client has no such object, or belongs to another file;
 * GP_RM_UNKNOWN: the call failed. */
uint32_t gp_rm_class(int fd, uint32_t client, uint32_t object);
uint32_t gp_rm_parent(int fd, uint32_t client, uint32_t object);

/* First child of a kind (NV_INTERNAL_*). 0: none; GP_RM_UNKNOWN: the call failed. */
uint32_t gp_rm_child(int fd, uint32_t client, uint32_t parent, uint32_t kind);

/* Makes an object; *handle 0 lets RM choose. Returns the status. */
uint32_t gp_rm_alloc(int fd, uint32_t client, uint32_t parent, uint32_t *handle, uint32_t class,
		     void *params, uint32_t size);
uint32_t gp_rm_free(int fd, uint32_t client, uint32_t parent, uint32_t handle);

/* "NV_ERR_GPU_IS_LOST", or the number in hexadecimal in a buffer of the calling thread. */
const char *gp_rm_status_name(uint32_t status);

/* The -errno for a status; -ENXIO: the object does not exist. */
int gp_rm_errno(uint32_t status);

/* An RM client of this process. */
struct gp_rm {
	int fd;
	uint32_t client;
	char version[32];

	/* The GPU that gp_rm_open_gpu opened; 0 and -1 if RM refused it. */
	int gpu_fd;
	uint32_t gpu_id;
	uint32_t device;
	uint32_t subdevice;
	uint32_t diag;
	bool has_read; /* RM has read back the state of a channel */
	bool dead;     /* the file reaches no driver any more: it was replaced */
};

/* -ENODEV: no driver; -EACCES, -EPERM: no permission. */
int gp_rm_open(struct gp_rm *rm, struct gp_error *err);
void gp_rm_close(struct gp_rm *rm);

/* The handle of the newest client on this machine, found by creating and freeing one. 0: RM refused
 * to create a client. */
uint32_t gp_rm_newest(const struct gp_rm *rm);

/*
 * Opens a GPU, which gp_rm_pids, gp_rm_is_enabled and ctxsw.h need. Needs the GPU's device file.
 * 0 or -errno; objects that RM refused are 0 in `rm`.
 */
int gp_rm_open_gpu(struct gp_rm *rm, uint32_t gpu_id, struct gp_error *err);

/* Lists the processes that compute on the GPU. Returns their number, or -errno: RM has no list. */
int gp_rm_pids(const struct gp_rm *rm, struct nv2080_pids *pids);

/* Whether RM lists the process as computing: 1, 0, or -errno: RM has no list. */
int gp_rm_lists(const struct gp_rm *rm, pid_t pid);

/*
 * Whether the hardware has a channel of any client enabled. Takes about 85 us on an H200. Opens
 * what gp_rm_open_gpu could not open. GP_RM_NOT_OFFERED: RM says that it has no such call, and has
 * never done one.
 */
uint32_t gp_rm_is_enabled(struct gp_rm *rm, uint32_t client, uint32_t channel, bool *enabled);

/* The difference from the GPU's clock to CLOCK_MONOTONIC, in ns; false: not known. */
bool gp_rm_clock_offset(const struct gp_rm *rm, int64_t *offset_ns);

/* The ids of all GPUs, up to 32. Returns their number, or -errno. */
int gp_rm_gpus(const struct gp_rm *rm, uint32_t gpu_id[32]);

/* PCI address of a GPU: "0000:17:00.0". false: not known. */
bool gp_rm_pci(const struct gp_rm *rm, uint32_t gpu_id, char out[16]);

#endif
