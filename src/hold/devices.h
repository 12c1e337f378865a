/* SPDX-License-Identifier: Apache-2.0 */
/* The GPUs of this machine, whatever their back end, and the tasks on them. */
#ifndef GP_HOLD_DEVICES_H
#define GP_HOLD_DEVICES_H

#include "gpu/backends.h"

#define GP_DEVICES_MAX 64

/* A device as verbs number it: in the order of the back ends. */
struct gp_device {
	struct gp_gpu *gpu;
	unsigned index; /* of its back end's devices */
};

struct gp_devices {
	unsigned n;
	struct gp_device device[GP_DEVICES_MAX];
};

/* A task, and where it is. */
struct gp_task_ref {
	unsigned device;
	struct gp_gpu *gpu;
	struct gp_seen seen;
};

/* Opens every device of every back end (`flags`: GP_OPEN_*). -ENODEV: there is none. */
int gp_devices_open(struct gp_devices *devices, unsigned flags, struct gp_error *err);
void gp_devices_close(struct gp_devices *devices);

/*
 * The tasks of a process, at most one on each device: how many, and the first `max` of them.
 * -ESRCH: no such process, -ENODEV: it has no queues, -EPERM or -EACCES: not permitted.
 */
int gp_devices_find(const struct gp_devices *devices, pid_t pid, struct gp_task_ref *ref,
                    unsigned max, struct gp_error *err);

/* The same to look at only: devices where it has nothing that could be held are there, too. */
int gp_devices_find_any(const struct gp_devices *devices, pid_t pid, struct gp_task_ref *ref,
                        unsigned max, struct gp_error *err);

/* All tasks of all devices, or of the one whose number is not GP_DEVICES_MAX. The caller frees
 * *place. Returns how many, or -errno. */
int gp_devices_scan(const struct gp_devices *devices, unsigned only, struct gp_task_ref **ref,
                    struct gp_error *err);

/* Refuses (-EPERM) a server whose queues run the work of many programs, unless forced. `pid` is
 * what it is called in the sentence, which ends with `why`. */
#define GP_WOULD_STOP_ALL "works for many programs, which would all stop; --force does it"
int gp_refuse_shared(const struct gp_seen *seen, pid_t pid, bool force, const char *why,
                     struct gp_error *err);

/* The queues of a task; `closely`: attaches to it where that tells more. The caller frees *queue.
 * Returns how many, or -errno. */
int gp_task_ref_queues(const struct gp_task_ref *ref, bool closely, struct gp_queue **queue,
                       struct gp_error *err);

#endif
