/* SPDX-License-Identifier: Apache-2.0 */
/* The GPUs of this machine, of all back ends, and the tasks on them. */
#ifndef GP_HOLD_DEVICES_H
#define GP_HOLD_DEVICES_H

#include "gpu/backends.h"

#define GP_DEVICES_MAX 64

/* A device. Commands number devices in the order of the back ends. */
struct gp_device {
	struct gp_gpu *gpu;
	unsigned index; /* among the devices of its back end */
};

struct gp_devices {
	unsigned n;
	struct gp_device device[GP_DEVICES_MAX];
};

/* A task and its device. */
struct gp_task_ref {
	unsigned device;
	struct gp_gpu *gpu;
	struct gp_seen seen;
};

/* Opens every device of every back end (`flags`: GP_OPEN_*). -ENODEV: no device found. */
int gp_devices_open(struct gp_devices *devices, unsigned flags, struct gp_error *err);
void gp_devices_close(struct gp_devices *devices);

/*
 * Finds the tasks of a process, at most one on each device. Returns their number and stores the
 * first `max` of them. -ESRCH: no such process, -ENODEV: it has no queues, -EPERM or -EACCES: not
 * permitted.
 */
int gp_devices_find(const struct gp_devices *devices, pid_t pid, struct gp_task_ref *ref,
		    unsigned max, struct gp_error *err);

/* The same for display only: includes devices on which the process has nothing that could be held.
 */
int gp_devices_find_any(const struct gp_devices *devices, pid_t pid, struct gp_task_ref *ref,
			unsigned max, struct gp_error *err);

/* Lists the tasks of all devices (`only` = GP_DEVICES_MAX) or of one device. The caller frees *ref.
 * Returns their number, or -errno. */
int gp_devices_scan(const struct gp_devices *devices, unsigned only, struct gp_task_ref **ref,
		    struct gp_error *err);

/* -errno: the last gp_devices_scan left out a process, which `err` names. 0: none, as far as is
 * known. */
int gp_devices_missing(const struct gp_devices *devices, struct gp_error *err);

/* Refuses (-EPERM) a server process that runs the work of many programs, unless forced. The message
 * names the process `pid` and ends with `why`. */
#define GP_WOULD_STOP_ALL \
	"works for many programs, which would all stop; use --force to hold it anyway"
int gp_refuse_shared(const struct gp_seen *seen, pid_t pid, bool force, const char *why,
		     struct gp_error *err);

/* Lists the queues of a task. With `closely`, attaches to the task where that gives more details.
 * The caller frees *queue. Returns their number, or -errno. */
int gp_task_ref_queues(const struct gp_task_ref *ref, bool closely, struct gp_queue **queue,
		       struct gp_error *err);

/* Whether a queue of the task is visibly held or has a tiny slice. Not every driver shows that. */
bool gp_task_ref_looks_changed(const struct gp_task_ref *ref);

#endif
