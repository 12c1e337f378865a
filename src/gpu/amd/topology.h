/* SPDX-License-Identifier: Apache-2.0 */
/* AMD GPUs and the processes that use them, as sysfs shows them. Needs no privileges. */
#ifndef GP_GPU_AMD_TOPOLOGY_H
#define GP_GPU_AMD_TOPOLOGY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define GP_AMD_NODES_MAX 64

/* A KFD node with a GPU: one scheduling domain, which can be a partition of a chip. */
struct gp_amd_node {
	unsigned number; /* of its folder in sysfs */
	uint32_t gpu_id;
	char name[32];       /* of the chip: "aldebaran" */
	uint32_t gfx;        /* gfx_target_version: 90010 is gfx90a, 90402 gfx942 */
	uint32_t capability; /* KFD_CAP_* */
	uint32_t xccs;
	uint32_t compute_units;
	uint32_t fw_version;
	bool one_at_a_time; /* a GPU of the machine can debug one process only */
};

/* "/sys/class/kfd/kfd", or the path in GPREEMPT_KFD_SYSFS. */
const char *gp_amd_sysfs(void);

/* Whether the pids in sysfs, which are those of the host, are valid in this pid namespace. */
bool gp_amd_sees_host_pids(void);

/* Fills in up to `max` nodes. Returns the number of GPUs, or -errno. */
int gp_amd_nodes(struct gp_amd_node *node, unsigned max);

/* Whether the firmware has MES, which stops single queues. Without MES each call stops the whole
 * device for a moment. */
bool gp_amd_has_mes(const struct gp_amd_node *node);

/* Whether two processes can be debugged at the same time. Attaching covers all GPUs that a process
 * sees, so every GPU of the machine must support it. The second function is for this GPU only. */
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
	/* Inode of its folder, unique until the next boot. A queue that was destroyed and created
	 * again with the same id and ring has a different serial. */
	uint64_t serial;
};

/* Calls `each` for every process that uses KFD, until it returns other than 0. -errno: no sysfs. */
int gp_amd_each_process(int (*each)(void *arg, pid_t pid), void *arg);

/* Fills in up to `max` queues of a process. Returns the number of queues; -ESRCH: the process does
 * not use KFD. */
int gp_amd_sysfs_queues(pid_t pid, struct gp_amd_sysfs_queue *queue, unsigned max);

/* False also if it is not known. */
bool gp_amd_has_no_queues(pid_t pid);

/* The serial of a queue; 0: no queue has this id. */
uint64_t gp_amd_queue_serial(pid_t pid, uint32_t id);

/* Number of compute units that the process occupies now; -errno: not known. */
int gp_amd_occupancy(pid_t pid, uint32_t gpu_id);

/* For how many ms the driver kept the queues of the process off the GPU for lack of memory, in
 * completed evictions; -errno: not known. */
int64_t gp_amd_evicted_ms(pid_t pid, uint32_t gpu_id);

/* Bytes of GPU memory; 0: not known. */
uint64_t gp_amd_memory(pid_t pid, uint32_t gpu_id);

#endif
