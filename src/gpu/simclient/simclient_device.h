/* SPDX-License-Identifier: Apache-2.0 */
/* What the back end's files share. */
#ifndef GP_GPU_SIMCLIENT_SIMCLIENT_DEVICE_H
#define GP_GPU_SIMCLIENT_SIMCLIENT_DEVICE_H

#include "gpu/simclient/connection.h"

#define GP_SIMCLIENT_TASKS                                                    \
	(2 * GP_SIMGPU_CONTEXTS) /* attached: also those that are gone by now \
	                          */

struct gp_simclient_task {
	bool used;
	bool leaving; /* detached, and the server could not be told yet */
	bool touched; /* something was asked for: to be undone */
	uint32_t slot;
	uint64_t key;
	uint64_t base_run_ns; /* at attach */
	uint64_t told_run_ns;
	uint64_t base_scheduled;            /* at attach */
	uint64_t hold_serial, slice_serial; /* of the last packet about it */
	struct gp_simgpu_context last;      /* as it was last read whole */
};

struct gp_simclient_gpu {
	struct gp_gpu base;
	char path[GP_SIMGPU_PATH_SIZE];
	unsigned index;
	int fd, event_fd;
	const struct gp_simgpu_state *state;
	uint32_t controller;
	uint64_t serial; /* of the last packet */
	bool lost;
	uint32_t leaving;
	uint32_t top; /* behind it no task was ever attached */
	struct gp_simclient_task task[GP_SIMCLIENT_TASKS];
	struct gp_simgpu_control packet;
};

static inline struct gp_simclient_gpu *gp_simclient_of(struct gp_gpu *gpu)
{
	return (struct gp_simclient_gpu *)gpu; /* `base` is the first member */
}

/* ---- state.c: what is read, once, and made harmless -------------------------------------------
 */

/* Maps it, if it is what it should be, and fills in what the device can do. */
int gp_simclient_state_map(struct gp_simclient_gpu *d, int fd);
void gp_simclient_state_unmap(struct gp_simclient_gpu *d);

/* One past the last place that can be taken. */
uint32_t gp_simclient_tasks_seen(const struct gp_simclient_gpu *d);
/* The context in a place; false: there is none, or it could not be read. */
bool gp_simclient_read(const struct gp_simclient_gpu *d, uint32_t slot,
                       struct gp_simgpu_context *out);
uint64_t gp_simclient_answered(const struct gp_simclient_gpu *d);
/* The place of a context; GP_SIMGPU_CONTEXTS: there is none. */
uint32_t gp_simclient_find_key(const struct gp_simclient_gpu *d, uint64_t key,
                               struct gp_simgpu_context *out);
uint32_t gp_simclient_find_process(const struct gp_simclient_gpu *d, pid_t pid, uint64_t start_time,
                                   struct gp_simgpu_context *out);
/* How long it ran by `now_ns`, and up to when that is known. */
uint64_t gp_simclient_run_ns(const struct gp_simgpu_context *c, uint64_t now_ns, uint64_t *at_ns);
void gp_simclient_describe(const struct gp_simgpu_context *c, struct gp_seen *seen);

/* ---- device.c --------------------------------------------------------------------------------
 */

int gp_simclient_open(const char *path, unsigned index, struct gp_simclient_gpu **gpu,
                      struct gp_error *err);
void gp_simclient_free(struct gp_simclient_gpu *d);

/* Whether the server is gone: asks at most once a call. */
bool gp_simclient_is_lost(struct gp_simclient_gpu *d);

/* The first `n` targets of d->packet. 0 or -errno: -EAGAIN there is no room now. */
int gp_simclient_send(struct gp_simclient_gpu *d, enum gp_simgpu_kind kind, unsigned n, bool wait);

/* ---- backend.c -------------------------------------------------------------------------------
 */

/* Puts back what was changed, and frees it. */
void gp_simclient_close(struct gp_simclient_gpu *d);

/* ---- questions.c: these may wait -------------------------------------------------------------
 */

int gp_simclient_find(struct gp_gpu *gpu, pid_t pid, struct gp_seen *seen, struct gp_error *err);
int gp_simclient_queues(struct gp_gpu *gpu, uint64_t key, bool closely, struct gp_queue *queue,
                        unsigned max, struct gp_error *err);
int gp_simclient_undo_record(struct gp_gpu *gpu, uint32_t handle, struct gp_undo *undo);
int gp_simclient_undo(const struct gp_undo *undo, struct gp_error *err);
int gp_simclient_release_process(pid_t pid, struct gp_error *err);
void gp_simclient_doctor(gp_finding_fn *say, void *arg);

#endif
