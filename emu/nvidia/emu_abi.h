/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the emulator of NVIDIA's resource manager (RM) and the programs that use it share: parts of
 * RM's interface that src/gpu/nvidia does not use, and the emulator's own calls. The latter have
 * the type 'E' and stand for what a process does with a GPU without asking RM: submit work and see
 * its results. Only test programs use them.
 */
#ifndef EMU_NVIDIA_EMU_ABI_H
#define EMU_NVIDIA_EMU_ABI_H

#include "gpu/nvidia/rm_abi.h"

/* RM, as the open kernel modules have it. */

#define NV01_ROOT_HANDLE         0x00000000u /* NV01_ROOT: RM makes both this and the next */
#define NV01_ROOT_NON_PRIV       0x00000001u /* a NV01_ROOT_CLIENT, which is 0x41 */
#define NV01_MEMORY_LOCAL_USER   0x00000040u

#define NV2080_ENGINE_TYPE_GR0   0x01u
#define NV2080_ENGINE_TYPE_COPY0 0x09u
#define NV2080_ENGINE_TYPE_COPY9 0x12u

#define NV0000_FLAGS_LOCK_BYPASS 0x2u
#define NV0000_FLAGS_IRQL_RAISED 0x1u

/* More of RM's own names for kinds of objects. */
#define EMU_INTERNAL_CLIENT       0x37a701u
#define EMU_INTERNAL_COPY_CONTEXT 0x2d0ee9u
#define EMU_INTERNAL_VIDEO_MEMORY 0xed948fu
#define EMU_INTERNAL_DIAG         0xaa3066u

struct emu_rm_alloc_short { /* NVOS21: the other form of RM_ALLOC */
	uint32_t root;
	uint32_t parent;
	uint32_t object;
	uint32_t class;
	uint64_t params;
	uint32_t params_size;
	uint32_t status;
};
static_assert(sizeof(struct emu_rm_alloc_short) == 32, "NVOS21");

struct emu_group_alloc {
	uint32_t error, ecc_error, va_space;
	uint32_t engine_type;
	uint8_t vgpu_plugin;
	uint8_t pad[3];
};
static_assert(sizeof(struct emu_group_alloc) == 20, "NV_CHANNEL_GROUP_ALLOCATION_PARAMETERS");

struct emu_channel_alloc {
	uint8_t head[128];
	uint32_t engine_type;
	uint8_t tail[236];
};
static_assert(sizeof(struct emu_channel_alloc) == 368, "NV_CHANNEL_ALLOC_PARAMS");

#define NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN 0xc36f0108u

/* The emulator's own calls. */

#define EMU_IOCTL_MAGIC 'E'

/* Queues `kernels` kernels of `kernel_ns` GPU time each behind what the channel already has. */
struct emu_submit {
	uint32_t client;
	uint32_t channel;
	uint64_t kernels;
	uint64_t kernel_ns;
};

/*
 * What became of a channel's work. Returns when `wait_done` kernels are finished or after
 * `timeout_us`, whichever is first; never later than EMU_WAIT_MAX_US, so that a caller that is
 * killed while its work is held goes away.
 */
struct emu_query {
	uint32_t client;
	uint32_t channel;
	uint64_t wait_done;
	uint32_t timeout_us;
	uint32_t pad;
	uint64_t submitted;
	uint64_t done;
	uint64_t run_ns;
	uint64_t digest; /* emu_digest over the GPU time that each finished kernel really got */
};
#define EMU_WAIT_MAX_US 50000u

#define EMU_MAX_GPUS    8u
struct emu_gpus {
	uint32_t count;
	uint32_t gpu_id[EMU_MAX_GPUS];
	char version[32];
};

#define EMU_MAX_PROCESSES 64u
struct emu_processes {
	uint32_t gpu;
	uint32_t count;
	uint64_t time_us; /* when the last window of utilisation ended, wall clock; 0: none yet */
	struct emu_process {
		uint32_t pid;
		uint32_t sm_percent; /* in that window */
		uint32_t computes;   /* has a compute object */
		uint32_t pad;
		uint64_t memory;
	} process[EMU_MAX_PROCESSES];
};

#define EMU_SUBMIT    _IOW(EMU_IOCTL_MAGIC, 1, struct emu_submit)
#define EMU_QUERY     _IOWR(EMU_IOCTL_MAGIC, 2, struct emu_query)
#define EMU_GPUS      _IOR(EMU_IOCTL_MAGIC, 3, struct emu_gpus)
#define EMU_PROCESSES _IOWR(EMU_IOCTL_MAGIC, 4, struct emu_processes)

/* A chain: work that is lost, repeated, cut short or reordered gives another result. */
static inline uint64_t emu_digest(uint64_t digest, uint64_t ran_ns)
{
	digest = (digest ^ ran_ns) * 0x9e3779b97f4a7c15ull;
	return digest ^ digest >> 29;
}
#define EMU_DIGEST_START 0x6770726565ull

#endif
