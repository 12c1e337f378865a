/* SPDX-License-Identifier: Apache-2.0 */
/* What the back end's files share. */
#ifndef GP_GPU_SIMCLIENT_SIMCLIENT_DEVICE_H
#define GP_GPU_SIMCLIENT_SIMCLIENT_DEVICE_H

#include "gpu/simclient/connection.h"

#define SG_TASKS (2 * SIMGPU_CONTEXTS) /* attached: also those that are gone by now */

struct sg_task {
	bool used;
	bool leaving; /* detached, and the server could not be told yet */
	bool touched; /* something was asked for: to be undone */
	uint32_t slot;
	uint64_t key;
	uint64_t base_run_ns; /* at attach */
	uint64_t told_run_ns;
	uint64_t base_scheduled;            /* at attach */
	uint64_t hold_serial, slice_serial; /* of the last packet about it */
	struct simgpu_context last;         /* as it was last read whole */
};

struct sg_gpu {
	struct gp_gpu base;
	char path[SIMGPU_PATH_SIZE];
	unsigned index;
	int fd, news_fd;
	const struct simgpu_state *state;
	uint32_t controller;
	uint64_t serial; /* of the last packet */
	bool lost;
	uint32_t leaving;
	uint32_t top; /* behind it no task was ever attached */
	struct sg_task task[SG_TASKS];
	struct simgpu_control packet;
};

static inline struct sg_gpu *sg_of(struct gp_gpu *gpu)
{
	return (struct sg_gpu *)gpu; /* `base` is the first member */
}

/* ---- state.c: what is read, once, and made harmless -------------------------------------------
 */

/* Maps it, if it is what it should be, and fills in what the device can do. */
int sg_state_map(struct sg_gpu *d, int fd);
void sg_state_unmap(struct sg_gpu *d);

/* One past the last place that can be taken. */
uint32_t sg_places(const struct sg_gpu *d);
/* The context in a place; false: there is none, or it could not be read. */
bool sg_read(const struct sg_gpu *d, uint32_t slot, struct simgpu_context *out);
uint64_t sg_answered(const struct sg_gpu *d);
/* The place of a context; SIMGPU_CONTEXTS: there is none. */
uint32_t sg_find_key(const struct sg_gpu *d, uint64_t key, struct simgpu_context *out);
uint32_t sg_find_process(const struct sg_gpu *d, pid_t pid, uint64_t start_time,
                         struct simgpu_context *out);
/* How long it ran by `now_ns`, and up to when that is known. */
uint64_t sg_run_ns(const struct simgpu_context *c, uint64_t now_ns, uint64_t *at_ns);
void sg_describe(const struct simgpu_context *c, struct gp_seen *seen);

/* ---- device.c --------------------------------------------------------------------------------
 */

int sg_open(const char *path, unsigned index, struct sg_gpu **gpu, struct gp_error *err);
void sg_free(struct sg_gpu *d);

/* Whether the server is gone: asks at most once a call. */
bool sg_is_lost(struct sg_gpu *d);

/* The first `n` targets of d->packet. 0 or -errno: -EAGAIN there is no room now. */
int sg_send(struct sg_gpu *d, enum simgpu_kind kind, unsigned n, bool wait);

/* ---- backend.c -------------------------------------------------------------------------------
 */

/* Puts back what was changed, and frees it. */
void sg_close(struct sg_gpu *d);

/* ---- questions.c: these may wait -------------------------------------------------------------
 */

int sg_find(struct gp_gpu *gpu, pid_t pid, struct gp_seen *seen, struct gp_error *err);
int sg_queues(struct gp_gpu *gpu, uint64_t key, bool closely, struct gp_queue *queue, unsigned max,
              struct gp_error *err);
int sg_undo_record(struct gp_gpu *gpu, uint32_t handle, struct gp_undo *undo);
int sg_undo(const struct gp_undo *undo, struct gp_error *err);
int sg_release_process(pid_t pid, struct gp_error *err);
void sg_doctor(gp_finding_fn *say, void *arg);

#endif
