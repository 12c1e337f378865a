/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts of the library share.
 *
 *   machine.c   the devices, open once however many handles there are; the lock; the end
 *   open.c      handles
 *   tasks.c     which tasks a process has, and which single queues were made tasks
 *   look.c      its queues
 *   grips.c     what a handle has attached, and switching that
 *   keep.c      a thread that watches over what is held
 *   suspend.c   suspend and resume
 *   self.c      the caller's own queues, from inside
 *   monitor.c   samples over time    analyse.c   what they come to
 */
#ifndef GP_LIB_LIB_H
#define GP_LIB_LIB_H

#include <pthread.h>

#include "gpreempt.h"
#include "hold/hold.h"

/* A task that is attached. */
struct gp_lib_attachment {
	struct gp_hold hold;
	bool wanted; /* to be held */
};

struct gpreempt {
	struct gpreempt *next;
	struct gp_lib_machine *machine;
	pid_t owner; /* who opened it: a fork has only copies */
	pid_t pid;
	uint64_t start_time;
	unsigned flags;
	struct gp_error err; /* of the last call */
	struct gp_undo_file *undo;
	unsigned nattachments;
	struct gp_lib_attachment *attachment;
};

/* A queue that was made a task of its own: for as long as the devices are open. */
struct gp_lib_split {
	uint64_t process; /* its key: pid and start time */
	struct gp_task_ref ref;
};

/* All of it, and of all handles, under `lock`: a device is for one thread at a time. */
struct gp_lib_machine {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct gp_devices devices;
	struct gpreempt *first;
	unsigned handles;
	unsigned nsplits;
	struct gp_lib_split *split;
	struct gpreempt *holds_self; /* who has this program's own queues off the hardware */
	bool keeps, quit;
	pthread_t keeper;
};

/* ---- machine.c --------------------------------------------------------------------------------
 */

/* Adds the handle to those that are open; opens the devices for the first. 0 or -errno. */
int gp_lib_machine_join(struct gpreempt *g, struct gp_error *err);
/* Takes it out, and closes the devices after the last. */
void gp_lib_machine_leave(struct gpreempt *g);

/* A call into the library, which leaves errno alone. */
struct gp_lib_call {
	int saved_errno;
	struct gpreempt *locked;
};

/* Takes the lock. -EINVAL: `g` is NULL, -EBADF: it is a fork's copy; to be left in any case. */
int gp_lib_enter(struct gp_lib_call *call, struct gpreempt *g);
/* Returns `r`, for which there is then a sentence. */
int gp_lib_leave(struct gp_lib_call *call, int r);

/* ---- tasks.c: under the lock from here on ------------------------------------------------------
 */

#define GP_LIB_REFS_MAX 1024

/* The tasks of the process: how many, at most GP_LIB_REFS_MAX; 0: none. Of single queues, also
 * those that are gone. The caller frees *place. */
int gp_lib_find_tasks(struct gpreempt *g, struct gp_task_ref **ref);

/* The task that is one queue; makes it one. -EBUSY: not while the whole is held, on some GPUs. */
int gp_lib_split(struct gpreempt *g, unsigned device, uint32_t queue, struct gp_task_ref *ref);
bool gp_lib_is_split(const struct gpreempt *g, unsigned device, uint32_t queue);

/* ---- look.c ------------------------------------------------------------------------------------
 */

struct gp_lib_queues {
	unsigned n;
	struct gpreempt_queue *queue;
};

enum gp_lib_look {
	GP_LIB_AS_OPENED, /* closely, unless the handle's flags say otherwise */
	GP_LIB_CLOSELY,   /* or not at all; everything that was asked of the devices is then done */
	GP_LIB_ATTACHED,  /* the same, where this handle has attached something: that is quick */
};

/* The queues of the process, from all devices. 0 or -errno; `queues` is to be freed. */
int gp_lib_list(struct gpreempt *g, enum gp_lib_look how, struct gp_lib_queues *queues);
/* The queue that the caller means; NULL: there is none. */
const struct gpreempt_queue *gp_lib_find_queue(const struct gp_lib_queues *queues,
                                               const struct gpreempt_queue *meant);
/* How many are held. */
unsigned gp_lib_count_held(const struct gp_lib_queues *queues);

/* Takes a snapshot. 0 or -errno; then it has nothing to be freed. */
int gp_lib_take_snapshot(struct gpreempt *g, struct gpreempt_snapshot *snapshot);

/* ---- grips.c -----------------------------------------------------------------------------------
 */

/* The grip on this task, or NULL. */
struct gp_lib_attachment *gp_lib_attachment_of(struct gpreempt *g, const struct gp_task_ref *ref);
/* Whether all of the process on this device is to be held. */
bool gp_lib_holds_all_on(const struct gpreempt *g, unsigned device);

/* Attaches those that are not. All or none. */
int gp_lib_take(struct gpreempt *g, const struct gp_task_ref *ref, unsigned n);

/* Holds or releases the tasks, or NULL: all that are attached. After a failure to hold, those that
 * it held are released. */
int gp_lib_switch(struct gpreempt *g, const struct gp_task_ref *ref, unsigned n, bool hold,
                  struct gp_error *err);

/* Lets go of what has ended, and of what somebody else released. Whether there was any. */
bool gp_lib_drop_gone(struct gpreempt *g);
/* Releases all and lets go of it. */
void gp_lib_drop_all(struct gpreempt *g);

/* ---- self.c ------------------------------------------------------------------------------------
 */

/* Puts the program's own queues back, if this handle took them off. */
void gp_lib_release_self(struct gpreempt *g);

/* ---- keep.c ------------------------------------------------------------------------------------
 */

/* Starts the thread, unless there is one. */
int gp_lib_keep(struct gp_lib_machine *m);
/* Ends it; without the lock. */
void gp_lib_stop_keeping(struct gp_lib_machine *m);

#endif
