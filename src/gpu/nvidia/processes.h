/* SPDX-License-Identifier: Apache-2.0 */
/* What processes.c, sweep.c and questions.c, all of the worker's thread, know of each other. */
#ifndef GP_GPU_NVIDIA_PROCESSES_H
#define GP_GPU_NVIDIA_PROCESSES_H

#include "gpu/nvidia/nvidia_device.h"

/* ---- processes.c -------------------------------------------------------------------------------
 */

struct nv_process *nv_find_pid(struct nv_gpu *d, pid_t pid);

/* The process is new here. 0 or -errno; it is then the last in the list. */
int nv_add_process(struct nv_gpu *d, pid_t pid, bool computes, struct gp_error *err);

/* Whether the process has a group of the task that `queue` names. */
bool nv_has_task(const struct nv_gpu *d, const struct nv_process *p, uint32_t queue);

/* The task as scan tells of it: 0 is the main task, `split` counts from 1. Under the lock. */
void nv_describe_seen(struct nv_gpu *d, const struct nv_process *p, unsigned split,
                      struct gp_seen *out);

/* Looks now for what came, went or changed. */
void nv_look(struct nv_gpu *d, struct nv_process *p, uint64_t now_ns);

/* The same for one that another stands for: it may run a program of its own by now. */
void nv_look_at_sharer(struct nv_gpu *d, struct nv_process *p, uint64_t now_ns);

/* Goes on searching, however long, until it has the compute group that it must have. */
void nv_search_until_found(struct nv_gpu *d, struct nv_process *p);

/* Whether the hardware has the groups as we left them; a difference is seen by the engine, which
 * applies its will again. Between borrow and give back. */
void nv_verify(struct nv_gpu *d, struct nv_process *p);

/* ---- sweep.c -----------------------------------------------------------------------------------
 */

/* Asks RM who computes, when it is time to. false: it is not. */
bool nv_ask_who_computes(struct nv_gpu *d, uint64_t now_ns);

/* Whether RM says that it computes; where RM does not say, it may. */
bool nv_may_compute(struct nv_gpu *d, pid_t pid);

/* Begins a sweep when it is time to, and goes on with the one that is under way for a moment.
 * false: there is none. */
bool nv_sweep_some(struct nv_gpu *d, uint64_t now_ns);

/* A whole sweep, now. */
void nv_sweep_all(struct nv_gpu *d);

/* When one of these has something to do next. */
uint64_t nv_next_sweep_ns(const struct nv_gpu *d);

#endif
