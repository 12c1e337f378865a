/* SPDX-License-Identifier: Apache-2.0 */
/* What sysfs says of AMD GPUs and of the processes that use them. Needs no rights. */
#ifndef GP_GPU_AMD_TOPOLOGY_H
#define GP_GPU_AMD_TOPOLOGY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define GP_AMD_NODES_MAX 64

/* A KFD node with a GPU: one scheduling domain (a partition of the chip where it has several). */
struct gp_amd_node {
	unsigned number; /* of its folder */
	uint32_t gpu_id;
	char name[32];       /* "aldebaran": the chip's */
	uint32_t gfx;        /* gfx_target_version: 90010 is gfx90a, 90402 gfx942 */
	uint32_t capability; /* KFD_CAP_* */
	uint32_t xccs;
	uint32_t compute_units;
	uint32_t fw_version;
	bool one_at_a_time; /* some GPU of the machine, this or another, debugs one process only */
};

/* "/sys/class/kfd/kfd", or what GPREEMPT_KFD_SYSFS says. */
const char *gp_amd_sysfs(void);

/* Whether the pids in sysfs are ours: they are the host's. */
bool gp_amd_sees_host_pids(void);

/* Fills in up to `max`. How many GPUs there are, or -errno. */
int gp_amd_nodes(struct gp_amd_node *node, unsigned max);

/* The firmware has MES, which stops single queues; without, one call stops all of the device. */
bool gp_amd_has_mes(const struct gp_amd_node *node);

/* Whether a second process can be debugged at the same time: attaching covers all GPUs that it
 * sees, so every one of the machine must be able to. The second: whether this one is. */
bool gp_amd_debugs_many(const struct gp_amd_node *node);
bool gp_amd_chip_debugs_many(const struct gp_amd_node *node);

/* Whether the chip can save and restore waves for a debugger. */
bool gp_amd_can_suspend(const struct gp_amd_node *node);

/* Whether the driver counts the compute units that a process occupies. */
bool gp_amd_has_occupancy(const struct gp_amd_node *node);

/* "gfx90a". Returns `out`. */
const char *gp_amd_gfx_name(const struct gp_amd_node *node, char *out, size_t size);

struct gp_amd_sysfs_queue {
	uint32_t id;
	uint32_t gpu_id;
	uint64_t size; /* bytes of the ring */
	uint32_t type; /* enum kfd_sysfs_queue_type */
	/* That of its folder, which no other gets before the next boot: one that was destroyed and
	 * made again, with the same id and the same ring, has another. */
	uint64_t serial;
};

/* Calls `each` for every process that uses KFD until it answers other than 0. -errno: no sysfs. */
int gp_amd_each_process(int (*each)(void *arg, pid_t pid), void *arg);

/* Fills in up to `max` queues of a process. How many it has; -ESRCH: it does not use KFD. */
int gp_amd_sysfs_queues(pid_t pid, struct gp_amd_sysfs_queue *queue, unsigned max);

/* The serial number of one of them; 0: there is none with this id. */
uint64_t gp_amd_queue_serial(pid_t pid, uint32_t id);

/* Compute units that it occupies now; -errno: not known. */
int gp_amd_occupancy(pid_t pid, uint32_t gpu_id);

/* How long the driver kept its queues off the GPU for want of memory, evictions that have ended;
 * -errno: not known. */
int64_t gp_amd_evicted_ms(pid_t pid, uint32_t gpu_id);

/* Bytes of GPU memory; 0: not known. */
uint64_t gp_amd_memory(pid_t pid, uint32_t gpu_id);

#endif
