/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls to NVIDIA's resource manager (RM) through /dev/nvidiactl.
 *
 * RM decides who may control an object by the open file that a call comes through, so the calls
 * that concern another process go through a duplicate of that process's file (target.h). Calls of
 * our own (who is there, which GPUs) go through a file of ours.
 */
#ifndef GP_GPU_NVIDIA_RM_H
#define GP_GPU_NVIDIA_RM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "gpu/nvidia/rm_abi.h"

/* A status of RM, or this bit and an errno when the call did not reach RM. */
#define GP_RM_ERRNO 0x80000000u

/* The file that stands for /dev/nvidiactl: GPREEMPT_NVIDIACTL, but not in setuid programs. */
const char *gp_rm_path(void);

/* Whether this open file of any process, as /proc shows it, is the control file. */
bool gp_rm_is_control_file(const char *link_text, const char *proc_path);

/* Whether an open file of ours is the control file. */
bool gp_rm_is_control_fd(int fd);

/* One control. Returns the status. BUSY_RETRY is tried again for a few milliseconds. */
uint32_t gp_rm_control(int fd, uint32_t client, uint32_t object, uint32_t cmd, void *params,
                       uint32_t size);

/* Class or parent of an object; 0 when the client has no such object or is not of this file. */
uint32_t gp_rm_class(int fd, uint32_t client, uint32_t object);
uint32_t gp_rm_parent(int fd, uint32_t client, uint32_t object);

/* First child of a kind (NV_INTERNAL_*); 0: none. */
uint32_t gp_rm_child(int fd, uint32_t client, uint32_t parent, uint32_t kind);

/* Makes an object; *handle 0 lets RM choose. Returns the status. */
uint32_t gp_rm_alloc(int fd, uint32_t client, uint32_t parent, uint32_t *handle, uint32_t class,
                     void *params, uint32_t size);
uint32_t gp_rm_free(int fd, uint32_t client, uint32_t parent, uint32_t handle);

/* "NV_ERR_GPU_IS_LOST", or the number in hexadecimal in a buffer of the calling thread. */
const char *gp_rm_status_name(uint32_t status);

/* -errno that says the same; -ENXIO: there is no such object (any more). */
int gp_rm_errno(uint32_t status);

/* ---- a client of our own --------------------------------------------------------------------- */
struct gp_rm {
	int fd;
	uint32_t client;
	char version[32];

	/* A GPU that it looks at; 0 and -1 where that could not be had. */
	int gpu_fd;
	uint32_t device;
	uint32_t subdevice;
	uint32_t diag;
};

/* -ENODEV: no driver; -EACCES, -EPERM: it may not be opened. */
int gp_rm_open(struct gp_rm *rm, struct gp_error *err);
void gp_rm_close(struct gp_rm *rm);

/* The handle that the newest client on this machine has: one that is made, and freed, for it. 0:
 * it cannot be had now. */
uint32_t gp_rm_newest(const struct gp_rm *rm);

/*
 * Takes hold of a GPU, which gives more to see: gp_rm_pids, gp_rm_is_enabled, ctxsw.h. Needs its
 * device file. 0 or -errno; what could not be had is 0 in `rm`.
 */
int gp_rm_open_gpu(struct gp_rm *rm, uint32_t gpu_id, struct gp_error *err);

/* The processes that compute on the GPU. How many, or -errno: cannot be known in this way. */
int gp_rm_pids(const struct gp_rm *rm, struct nv2080_pids *pids);

/* Whether the hardware has this channel, of anybody's, enabled: 1, 0 or -errno. About 85 us. */
int gp_rm_is_enabled(const struct gp_rm *rm, uint32_t client, uint32_t channel);

/* What to add to a time of the GPU to get CLOCK_MONOTONIC; false: not known. */
bool gp_rm_clock_offset(const struct gp_rm *rm, int64_t *offset_ns);

/* The ids of all GPUs, up to 32. Returns how many, or -errno. */
int gp_rm_gpus(const struct gp_rm *rm, uint32_t gpu_id[32]);

/* Place of a GPU: "0000:17:00.0". false: it has none. */
bool gp_rm_pci(const struct gp_rm *rm, uint32_t gpu_id, char out[16]);

#endif
