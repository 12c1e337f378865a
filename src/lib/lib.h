/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the parts of the library.
 *
 *   open.c            handles; the devices, opened once for all handles; the lock; release at exit
 *   list_queues.c     the tasks of a process, queues that were split off, snapshots
 *   attachments.c     attached tasks of a handle; holding and releasing them; the watching thread
 *   suspend_queues.c  suspend and resume
 *   hold_self.c       the caller's own queues, held from inside
 *   lib_monitor.c     samples over time and their statistics
 */
#ifndef GP_LIB_LIB_H
#define GP_LIB_LIB_H

#include <pthread.h>

#include "gpreempt.h"
#include "hold/hold.h"

/* An attached task. */
struct gp_lib_attachment {
	struct gp_hold hold;
	bool wanted; /* it should be held */
};

struct gpreempt {
	struct gpreempt *next;
	struct gp_lib_machine *machine;
	pid_t owner; /* the process that opened it; a forked child has only a copy */
	pid_t pid;
	uint64_t start_time;
	unsigned flags;
	struct gp_error err; /* error of the last call */
	struct gp_undo_file *undo;
	unsigned nattachments;
	struct gp_lib_attachment *attachment;
};

/* A queue that was split off as a task of its own. It stays one until the devices are closed. */
struct gp_lib_split {
	uint64_t process; /* gp_process_key of the process */
	struct gp_task_ref ref;
};

/* Shared by all handles. `lock` protects it and all handles: a device may be used by one thread at
 * a time. */
struct gp_lib_machine {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct gp_devices devices;
	struct gpreempt *first;
	unsigned handles;
	unsigned nsplits;
	struct gp_lib_split *split;
	struct gpreempt *holds_self; /* the handle that holds this program's own queues */
	bool watching, quit;
	pthread_t watcher;
};

/* open.c */

/* A call into the library. It preserves errno. */
struct gp_lib_call {
	int saved_errno;
	struct gpreempt *locked;
};

/* Takes the lock. -EINVAL: `g` is NULL; -EBADF: `g` is the copy of a forked child. Call
 * gp_lib_leave even after an error. */
int gp_lib_enter(struct gp_lib_call *call, struct gpreempt *g);
/* Releases the lock and returns `r`. If `r` is an error, the handle has a sentence for it. */
int gp_lib_leave(struct gp_lib_call *call, int r);

/* list_queues.c. The caller of this function and of all below holds machine->lock. */

#define GP_LIB_REFS_MAX 1024

/* Finds the tasks of the process. Returns their number, at most GP_LIB_REFS_MAX, or -errno.
 * Includes tasks of single queues that no longer exist. The caller frees *ref. */
int gp_lib_find_tasks(struct gpreempt *g, struct gp_task_ref **ref);

/* Splits a queue off as a task of its own, or finds that task. -EBUSY: some GPUs cannot do this
 * while the whole process is held. */
int gp_lib_split(struct gpreempt *g, unsigned device, uint32_t queue, struct gp_task_ref *ref);
bool gp_lib_is_split(const struct gpreempt *g, unsigned device, uint32_t queue);

struct gp_lib_queues {
	unsigned n;
	struct gpreempt_queue *queue;
};

enum gp_lib_detail {
	GP_LIB_AS_OPENED, /* with all details, unless the handle's flags forbid it */
	GP_LIB_CLOSELY,   /* with all details or an error; waits for pending actions */
	GP_LIB_ATTACHED,  /* the same, but only on devices with an attached task, which is quick */
};

/* Lists the queues of the process on all devices. Returns 0 or -errno. The caller frees
 * queues->queue. */
int gp_lib_list(struct gpreempt *g, enum gp_lib_detail how, struct gp_lib_queues *queues);
/* Finds the queue with the id and device of `meant`; NULL: none. */
const struct gpreempt_queue *gp_lib_find_queue(const struct gp_lib_queues *queues,
					       const struct gpreempt_queue *meant);
/* Returns the number of held queues. */
unsigned gp_lib_count_held(const struct gp_lib_queues *queues);

/* attachments.c */

/* Returns the attachment to this task, or NULL. */
struct gp_lib_attachment *gp_lib_attachment_of(struct gpreempt *g, const struct gp_task_ref *ref);
/* Whether the whole process is to be held on this device, or is released there for certain. */
bool gp_lib_is_done_on(const struct gpreempt *g, unsigned device, bool hold);

/* Attaches the tasks that are not attached yet, all or none. */
int gp_lib_attach(struct gpreempt *g, const struct gp_task_ref *ref, unsigned n);

/* Holds or releases the given tasks, or all attached tasks if `ref` is NULL. If holding fails, the
 * tasks that it held are released again. */
int gp_lib_switch(struct gpreempt *g, const struct gp_task_ref *ref, unsigned n, bool hold,
		  struct gp_error *err);

/* The weakest evidence of all attached tasks, as enum gpreempt_evidence; or -errno. */
int gp_lib_evidence(struct gpreempt *g);

/* Detaches tasks that have ended or were released by another process. Returns whether there were
 * any. */
bool gp_lib_drop_gone(struct gpreempt *g);
/* Releases and detaches all tasks. */
void gp_lib_drop_all(struct gpreempt *g);

/* Starts the watching thread if it is not running, and wakes it. */
int gp_lib_watch(struct gp_lib_machine *m);
/* Stops the thread. The caller must not hold the lock. */
void gp_lib_stop_watching(struct gp_lib_machine *m);

/* hold_self.c */

/* Releases the program's own queues if this handle holds them. */
void gp_lib_release_self(struct gpreempt *g);

#endif
