/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by processes.c, process_scan.c and nvidia_queries.c. All of it runs on the RM thread. */
#ifndef GP_GPU_NVIDIA_PROCESSES_H
#define GP_GPU_NVIDIA_PROCESSES_H

#include "gpu/nvidia/nvidia_device.h"

/* processes.c */

struct gp_nv_process *gp_nv_find_pid(struct gp_nv_gpu *d, pid_t pid);

/* Adds a process at the end of the list. `listing`: see gp_nv_target_open. 0 or -errno. */
int gp_nv_add_process(struct gp_nv_gpu *d, pid_t pid, bool computes, struct gp_nv_listing *listing,
		      struct gp_error *err);

/* Whether the process has a group that belongs to the task `queue`. */
bool gp_nv_has_task(const struct gp_nv_gpu *d, const struct gp_nv_process *p, uint32_t queue);

/* The task as scan reports it. `split` 0 is the main task, 1 the first split queue. Caller holds
 * d->requests.lock. */
void gp_nv_describe_seen(struct gp_nv_gpu *d, const struct gp_nv_process *p, unsigned split,
			 struct gp_seen *out);

/* Examines the process now. */
void gp_nv_refresh(struct gp_nv_gpu *d, struct gp_nv_process *p, uint64_t now_ns);

/* The same for a process with a leader: it may have started another program. */
void gp_nv_refresh_sharer(struct gp_nv_gpu *d, struct gp_nv_process *p, uint64_t now_ns);

/* Searches until the compute group that the process must have is found, or until this time. */
void gp_nv_search_until_found(struct gp_nv_gpu *d, struct gp_nv_process *p, uint64_t until_ns);

/* Reads back whether the hardware has the groups disabled or enabled. The engine sees a difference
 * and repeats its action. The caller calls it between borrow and give back. */
void gp_nv_verify(struct gp_nv_gpu *d, struct gp_nv_process *p);

/* process_scan.c */

/* Asks RM for the computing processes if that is due. false: not due. */
bool gp_nv_list_computing(struct gp_nv_gpu *d, uint64_t now_ns);

/* Whether RM lists the process as computing; true if RM has no list. */
bool gp_nv_may_compute(struct gp_nv_gpu *d, pid_t pid);

/* Begins a sweep over all processes if one is due, and continues it for 0.5 ms. false: no sweep is
 * under way. */
bool gp_nv_sweep_some(struct gp_nv_gpu *d, uint64_t now_ns);

/* Whether a complete sweep began after the first call with this *sweep, which is 0 then. Begins one
 * otherwise. */
bool gp_nv_sweep_since(struct gp_nv_gpu *d, unsigned *sweep);

/* When the next list or sweep is due. */
uint64_t gp_nv_next_sweep_ns(const struct gp_nv_gpu *d);

#endif
