/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process that uses the GPU: its RM clients, channel groups and channels, and the calls that
 * change them. They are found by asking RM for the class of handles.
 *
 * The control files of the process are duplicated only for the duration of an operation (borrow,
 * give back). RM frees the GPU memory of a process at the last close of its file, so a duplicate
 * that stays open would keep the memory of a dead process.
 *
 * A target belongs to one thread: there are no locks here.
 */
#ifndef GP_GPU_NVIDIA_TARGET_H
#define GP_GPU_NVIDIA_TARGET_H

#include <sys/types.h>

#include "gpu/gpu.h"
#include "gpu/nvidia/file_identity.h"
#include "gpu/nvidia/rm.h"

#define GP_NV_SLICE_DEFAULT_US 2048 /* CUDA's default, measured on an H200 */
#define GP_NV_SEARCH_QUICK     4096 /* client indices: 4096 programs started since */

#define GP_NV_CHANNELS_MAX     128 /* hardware limit for one group */

/* An RM object: a device, subdevice, group, channel or compute object. */
struct gp_nv_object {
	uint32_t handle;
	uint32_t parent;
	uint32_t class;
};

#define GP_NV_REGIONS_MAX 8

struct gp_nv_client {
	uint32_t handle;
	int file; /* descriptor number in the target */
	struct gp_nv_object *object;
	unsigned nobjects, object_capacity;
	struct gp_nv_region {
		uint32_t low, high; /* [low, high): searched handles; low and high - 1 are in use */
	} region[GP_NV_REGIONS_MAX];
	unsigned nregions;
	uint32_t *denied; /* handles that RM denied, in one region */
	unsigned ndenied, denied_capacity;
	unsigned doubtful; /* questions of the last search that RM did not answer */
	bool gone;         /* in a rescan: RM says so */
};

/* A channel group: the queue that the hardware schedules. */
struct gp_nv_group {
	uint32_t client;
	uint32_t handle;
	uint32_t device;
	uint32_t subdevice;
	uint32_t gpu_id;
	uint32_t tsg_id;    /* the hardware's number, reused after the group is gone */
	bool compute;       /* has a compute object; else it only copies */
	bool seen;          /* found by the last rescan */
	bool disabled;      /* off the hardware, whoever did it: as set, or as read back */
	bool asked_disable; /* the last change was a hold, not a release */
	/* `disabled` is not known: a change failed or took effect for a part of the channels, or RM
	 * contradicts it. */
	bool doubtful;
	bool contradicted; /* RM accepted a release, and reads back that it is disabled */
	bool unread;       /* not all channels were read back since it was found or changed */
	bool untold;       /* RM accepted the last change, and offers no reading of its effect */
	bool incomplete;   /* RM denies a listed channel: the group handle replaces the list */
	uint64_t since_ns; /* when it was found first */
	uint32_t slice_found_us; /* its own: at the last rescan before gpreempt changed it */
	bool slice_corrected;    /* slice_found_us changed after it was recorded */
	uint32_t slice_us;       /* at the last rescan, or as set since */
	bool slice_is_ours;      /* this process changed the slice */
	bool mode_is_ours;       /* this process changed the preemption mode */
	unsigned nchannels;
	uint32_t channel[GP_NV_CHANNELS_MAX];
	unsigned ncontexts; /* the number of channels that RM counts; 0: not known */
	uint32_t context_id[GP_NV_CHANNELS_MAX]; /* unique ids of the channels, see ctxsw.h */
};

/* A search for the control files of a process, in steps: a process can have a million open files.
 * All zero: none is under way. */
struct gp_nv_listing {
	pid_t pid;
	bool under_way;
	int64_t position; /* of the next part in the directory */
	int error;        /* -errno: not every file could be examined; 0 at the end: complete */
	bool started;     /* the directory has an entry */
	unsigned n;
	int file[GP_NV_FILES_MAX];
	bool uses_cuda;
	struct gp_nv_mounts mounts;
};

/* 0 or -errno. The caller calls gp_nv_listing_end in both cases. */
int gp_nv_listing_begin(struct gp_nv_listing *l, pid_t pid);

/* Continues until the given time. true: not complete yet. */
bool gp_nv_listing_step(struct gp_nv_listing *l, uint64_t until_ns);
void gp_nv_listing_end(struct gp_nv_listing *l);

struct gp_nv_target {
	pid_t pid;
	uint64_t start_time;
	char name[32];
	int pidfd;
	bool is_mps;    /* an MPS server: its groups run the work of many programs */
	bool uses_cuda; /* has /dev/nvidia-uvm open: has, or will have, a compute group */

	struct gp_nv_listing listing; /* the next list of files, while it is not complete */
	struct gp_nv_mounts mounts;   /* of the files below */
	bool distrusted;              /* it replaced a file while it was duplicated */
	int list_error;               /* -errno: not every file could be examined */
	int borrow_error;             /* the same for the last duplication */
	unsigned nfiles;
	int file[GP_NV_FILES_MAX];     /* numbers in the target */
	int borrowed[GP_NV_FILES_MAX]; /* duplicates in this process; -1 = none now */

	struct gp_nv_client *client;
	unsigned nclients;
	struct gp_nv_group *group;
	unsigned ngroups;

	/* Reads back the state of channels, and is only used between borrow and give back. NULL, or
	 * opened for another GPU: it cannot be read. */
	struct gp_rm *rm;
	/* Unanswered questions of the last search whether a client belongs to the target. Also 1 if
	 * RM says that all groups are gone, and lists the process as computing. */
	unsigned doubtful;

	uint32_t search_top; /* client index at which the search began */
	uint32_t searched;   /* number of indices searched, downwards from there */
};

/* Finds the process and its control files. `listing`: one that has ended, or NULL to make one now.
 * -ESRCH: no such process; -ENODEV: all its files were examined, and it has none open; -EPERM,
 * -EACCES: no permission to examine it (err holds the reason). */
int gp_nv_target_open(struct gp_nv_target *t, pid_t pid, struct gp_nv_listing *listing,
		      struct gp_error *err);
void gp_nv_target_close(struct gp_nv_target *t);

/* Lists the control files again, until the given time; t->listing.under_way is false when the
 * list is complete. true: the list changed. */
bool gp_nv_target_refresh_files(struct gp_nv_target *t, uint64_t until_ns);

/* Duplicates the control files. 0, or -errno if none could be duplicated; -ESRCH: the process has
 * closed them, or has ended. Each borrow is followed by a give back. */
int gp_nv_target_borrow(struct gp_nv_target *t);
void gp_nv_target_give_back(struct gp_nv_target *t);

/* The duplicate through which a client of the target is reached; -1: none. */
int gp_nv_file(const struct gp_nv_target *t, uint32_t client);

/* Search. The caller calls these functions between borrow and give back. */

/* Begins the search for clients at the newest client, whose handle is `top`. */
void gp_nv_search_begin(struct gp_nv_target *t, uint32_t top);

/*
 * Searches up to `indices` more client indices, towards older clients. With `until_found` it stops
 * shortly after the first compute group, and in any case at a question that RM does not answer.
 * Returns false when all indices were searched.
 */
bool gp_nv_search(struct gp_nv_target *t, uint32_t indices, bool until_found);

/* Searches one client. true: the client belongs to the target. */
bool gp_nv_search_client(struct gp_nv_target *t, uint32_t client);

/* Examines the known clients again and drops groups that are gone. `all`: every handle; else only
 * handles behind the last known one, and the slices of the groups. true: a group came or went. */
bool gp_nv_rescan(struct gp_nv_target *t, bool all);

/* Searches all objects of a client, or those behind the last known ones. */
void gp_nv_search_objects(struct gp_nv_client *c, int fd);
void gp_nv_search_new_objects(struct gp_nv_client *c, int fd);
void gp_nv_forget_objects(struct gp_nv_client *c);

/* gp_rm_class and gp_rm_child; 0 only if RM says so several times. */
uint32_t gp_nv_class(int fd, uint32_t client, uint32_t object);
uint32_t gp_nv_child(int fd, uint32_t client, uint32_t parent, uint32_t kind);

/* Whether the target has a compute group, on any GPU. */
bool gp_nv_computes(const struct gp_nv_target *t);

/* Whether it has graphics objects, of class 0x..97. They have groups of their own, which are never
 * held. */
bool gp_nv_draws(const struct gp_nv_target *t);

/* Whether RM left a question about the objects of a client open. */
bool gp_nv_has_open_questions(const struct gp_nv_target *t);

/* Whether RM left a question of the last search open, or a file of the process was not examined:
 * groups may be missing. */
bool gp_nv_is_doubtful(const struct gp_nv_target *t);

/* Changes. The caller calls these functions between borrow and give back. */

/* Each returns an RM status. A new slice is read back: GP_RM_NO_EFFECT if it is another. A group
 * that has the slice already is not changed. */
uint32_t gp_nv_set_slice(struct gp_nv_target *t, struct gp_nv_group *g, uint32_t slice_us);
uint32_t gp_nv_set_mode(struct gp_nv_target *t, struct gp_nv_group *g, unsigned mode);
uint32_t gp_nv_get_interleave(struct gp_nv_target *t, const struct gp_nv_group *g, uint32_t *level);

/* The slice of a group before gpreempt changed it, by what RM reads back. Only schedulers set a
 * tiny slice: one has left it behind, or the value is wrong. Then the program's own is taken to be
 * CUDA's default. */
static inline uint32_t gp_nv_own_slice(uint32_t read_us)
{
	return read_us <= GP_TINY_SLICE_US ? GP_NV_SLICE_DEFAULT_US : read_us;
}

/* A group and its process. */
struct gp_nv_group_ref {
	struct gp_nv_target *target;
	struct gp_nv_group *group;
	uint32_t status; /* out */
	bool tried;      /* out: the driver was asked for the change */
};

/*
 * Disables or enables all channels of the groups, all on one GPU, with as few calls as possible: a
 * call takes 64 channels of any processes. If a call fails, each group gets a call of its own, so
 * that each status belongs to its group. Then every channel is read back: GP_RM_NO_EFFECT if the
 * state is the old one, GP_RM_PARTLY if it is for some channels, GP_RM_UNREAD if it cannot be read.
 * Where the driver offers no reading, the accepted call counts.
 *
 * 85 us for each channel are too long while the GPU waits for the next change. If hurry(arg) is
 * true, only the last channel of the next group is read, and the group is `unread`. NULL: never.
 */
void gp_nv_switch_in_turn(struct gp_nv_group_ref *ref, unsigned n, bool disable,
			  bool (*hurry)(void *arg), void *arg);

static inline void gp_nv_switch(struct gp_nv_group_ref *ref, unsigned n, bool disable)
{
	gp_nv_switch_in_turn(ref, n, disable, NULL, NULL);
}

/* Whether RM accepted the last hold or release of a compute group without a reading of it. */
bool gp_nv_is_untold(const struct gp_nv_target *t);

/* Reads back whether the hardware has the group disabled. A hold that does not show is given up. A
 * group that cannot be read is `unread`. */
void gp_nv_read_back(struct gp_nv_target *t, struct gp_nv_group *g);

/* Undo. */

/* Writes how to put the compute groups on this GPU back. */
void gp_nv_undo_record(const struct gp_nv_target *t, uint32_t gpu_id, struct gp_undo *undo);

/* Restores the recorded slices and enables every group. -ESRCH: the process has ended. */
int gp_nv_undo_replay(const struct gp_undo *undo, struct gp_error *err);

/* Enables every compute group of a process, on all GPUs, and resets tiny slices to the default.
 * Returns the number of groups, or -errno. */
int gp_nv_release_process(pid_t pid, bool *released, struct gp_error *err);

/* see_work.c: see gp_gpu_command_ops. */
void gp_nv_see_work(const pid_t *pid, bool *works, unsigned n, uint64_t limit_ns);

#endif
