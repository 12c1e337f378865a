/* SPDX-License-Identifier: Apache-2.0 */
/* What processes.c, sweep.c and questions.c, all of the worker's thread, know of each other. */
#ifndef GP_GPU_NVIDIA_PROCESSES_H
#define GP_GPU_NVIDIA_PROCESSES_H

#include "gpu/nvidia/nvidia_device.h"

/* ---- processes.c -------------------------------------------------------------------------------
 */

struct gp_nv_process *gp_nv_find_pid(struct gp_nv_gpu *d, pid_t pid);

/* The process is new here. 0 or -errno; it is then the last in the list. */
int gp_nv_add_process(struct gp_nv_gpu *d, pid_t pid, bool computes, struct gp_error *err);

/* Whether the process has a group of the task that `queue` names. */
bool gp_nv_has_task(const struct gp_nv_gpu *d, const struct gp_nv_process *p, uint32_t queue);

/* The task as scan tells of it: 0 is the main task, `split` counts from 1. Under the lock. */
void gp_nv_describe_seen(struct gp_nv_gpu *d, const struct gp_nv_process *p, unsigned split,
                         struct gp_seen *out);

/* Looks now for what came, went or changed. */
void gp_nv_refresh(struct gp_nv_gpu *d, struct gp_nv_process *p, uint64_t now_ns);

/* The same for one that another stands for: it may run a program of its own by now. */
void gp_nv_refresh_sharer(struct gp_nv_gpu *d, struct gp_nv_process *p, uint64_t now_ns);

/* Goes on searching, however long, until it has the compute group that it must have. */
void gp_nv_search_until_found(struct gp_nv_gpu *d, struct gp_nv_process *p);

/* Whether the hardware has the groups as we left them; a difference is seen by the engine, which
 * applies its will again. Between borrow and give back. */
void gp_nv_verify(struct gp_nv_gpu *d, struct gp_nv_process *p);

/* ---- sweep.c -----------------------------------------------------------------------------------
 */

/* Asks RM who computes, when it is time to. false: it is not. */
bool gp_nv_list_computing(struct gp_nv_gpu *d, uint64_t now_ns);

/* Whether RM says that it computes; where RM does not say, it may. */
bool gp_nv_may_compute(struct gp_nv_gpu *d, pid_t pid);

/* Begins a sweep when it is time to, and goes on with the one that is under way for a moment.
 * false: there is none. */
bool gp_nv_sweep_some(struct gp_nv_gpu *d, uint64_t now_ns);

/* A whole sweep, now. */
void gp_nv_sweep_all(struct gp_nv_gpu *d);

/* When one of these has something to do next. */
uint64_t gp_nv_next_sweep_ns(const struct gp_nv_gpu *d);

#endif
