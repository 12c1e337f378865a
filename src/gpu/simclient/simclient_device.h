/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The back end for simulated GPUs in real time (gpreempt-simgpu). It is used only if
 * gp_backends_select selected it.
 *
 * The server takes the place of a driver, and it can end. From then on scan returns 0 tasks and all
 * other functions return -EIO. The held contexts end with the server. When a server with the same
 * device is there again, scan opens the device again.
 */
#ifndef GP_GPU_SIMCLIENT_SIMCLIENT_DEVICE_H
#define GP_GPU_SIMCLIENT_SIMCLIENT_DEVICE_H

#include "gpu/simclient/connection.h"

extern const struct gp_gpu_ops gp_simgpu_ops;

/* The rest of this file is private to this folder: the state of one device. */

/* Attached tasks, including those that have ended. */
#define GP_SIMCLIENT_TASKS (2 * GP_SIMGPU_CONTEXTS)

struct gp_simclient_task {
	bool used;
	bool leaving; /* detached, but RESTORE is not sent yet */
	bool touched; /* changed: detach must undo it */
	uint32_t slot;
	uint64_t key;
	uint64_t base_run_ns;               /* at attach */
	uint64_t reported_run_ns;           /* run_ns that observe returned last; never falls */
	uint64_t base_scheduled;            /* at attach */
	uint64_t hold_serial, slice_serial; /* of the last packet for the task */
	struct gp_simgpu_context last;      /* the last complete reading */
};

struct gp_simclient_gpu {
	struct gp_gpu base;
	char path[GP_SIMGPU_PATH_SIZE];
	unsigned index;
	int fd, event_fd;
	int asked_fd; /* to a new server that has not answered yet; -1: none */
	const struct gp_simgpu_state *state;
	uint32_t controller;
	uint64_t serial; /* of the last packet */
	bool lost;
	uint64_t reopen_ns; /* when to try again to open it; 0: it is not known to be lost */
	bool other;         /* the log says that the server has another device here */
	uint32_t leaving;
	uint32_t top; /* no handle at or after this one was ever used */
	struct gp_simclient_task task[GP_SIMCLIENT_TASKS];
	struct gp_simgpu_control packet;
};

static inline struct gp_simclient_gpu *gp_simclient_of(struct gp_gpu *gpu)
{
	return (struct gp_simclient_gpu *)gpu; /* `base` is the first member */
}

/* simclient_device.c */

/* One past the last slot that can be in use. */
uint32_t gp_simclient_tasks_seen(const struct gp_simclient_gpu *d);
/* The context in a slot; false: the slot is free or could not be read. */
bool gp_simclient_read(const struct gp_simclient_gpu *d, uint32_t slot,
		       struct gp_simgpu_context *out);
uint64_t gp_simclient_answered(const struct gp_simclient_gpu *d);
/* The slot of a context; GP_SIMGPU_CONTEXTS: not found. */
uint32_t gp_simclient_find_key(const struct gp_simclient_gpu *d, uint64_t key,
			       struct gp_simgpu_context *out);
uint32_t gp_simclient_find_process(const struct gp_simclient_gpu *d, pid_t pid, uint64_t start_time,
				   struct gp_simgpu_context *out);
/* The run time at `now_ns`; *at_ns is the time for which it is valid. */
uint64_t gp_simclient_run_ns(const struct gp_simgpu_context *c, uint64_t now_ns, uint64_t *at_ns);
void gp_simclient_describe(const struct gp_simgpu_context *c, struct gp_seen *seen);

int gp_simclient_open(const char *path, unsigned index, struct gp_simclient_gpu **gpu,
		      struct gp_error *err);
void gp_simclient_free(struct gp_simclient_gpu *d);

/* Whether the server is gone. Makes at most one system call. */
bool gp_simclient_is_lost(struct gp_simclient_gpu *d);

/* Opens a lost device again, when a server is there. No task is attached. The event descriptor
 * keeps its number. 0 or -errno; -ETIMEDOUT: the server has not answered yet, and the next call
 * looks again, unless `anew`: it asks again; -EXDEV: the server has another device at this index.
 * Does not wait. */
int gp_simclient_reopen(struct gp_simclient_gpu *d, bool anew);

/* Sends the first `n` targets of d->packet. 0 or -errno: -EAGAIN: the socket is full. */
int gp_simclient_send(struct gp_simclient_gpu *d, enum gp_simgpu_kind kind, unsigned n, bool wait);

/* simclient_backend.c */

/* Puts all changed tasks back and frees the device. */
void gp_simclient_close(struct gp_simclient_gpu *d);

/* simclient_queries.c: these functions may wait */

int gp_simclient_find(struct gp_gpu *gpu, pid_t pid, struct gp_seen *seen, struct gp_error *err);
int gp_simclient_queues(struct gp_gpu *gpu, uint64_t key, bool closely, struct gp_queue *queue,
			unsigned max, struct gp_error *err);
int gp_simclient_undo_record(struct gp_gpu *gpu, uint32_t handle, struct gp_undo *undo);
int gp_simclient_undo(const struct gp_undo *undo, struct gp_error *err);
int gp_simclient_release_process(pid_t pid, bool *released, struct gp_error *err);
void gp_simclient_doctor(gp_finding_fn *say, void *arg);

#endif
