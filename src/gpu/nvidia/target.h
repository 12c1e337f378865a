/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process that uses the GPU: its RM clients, channel groups and channels, found by asking RM for
 * the class of handles, and the calls that change them.
 *
 * The process's own control files are duplicated for as long as an operation lasts (borrow, give
 * back) and no longer: RM frees a process's GPU memory at the last close of its file, and a
 * duplicate that somebody keeps keeps a dead process's memory.
 *
 * No locks and no threads here: a target belongs to one thread.
 */
#ifndef GP_GPU_NVIDIA_TARGET_H
#define GP_GPU_NVIDIA_TARGET_H

#include <sys/types.h>

#include "gpu/gpu.h"
#include "gpu/nvidia/rm.h"

#define GP_NV_SLICE_DEFAULT_US 2048 /* CUDA's own: measured on an H200 */
#define GP_NV_SEARCH_QUICK     4096 /* client indices: what 4096 programs since then used up */

#define GP_NV_FILES_MAX        32
#define GP_NV_CHANNELS_MAX     128 /* what the hardware takes in one group */

/* An object of a kind that matters here: device, subdevice, group, channel, compute object. */
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
		uint32_t low, high; /* [low, high): handles that were asked for, ends in use */
	} region[GP_NV_REGIONS_MAX];
	unsigned nregions;
};

/* A channel group: what the hardware schedules. */
struct gp_nv_group {
	uint32_t client;
	uint32_t handle;
	uint32_t device;
	uint32_t subdevice;
	uint32_t gpu_id;
	uint32_t tsg_id; /* the hardware's number; used again for another after the group is gone */
	bool compute;    /* has a compute object; otherwise it only copies */
	bool seen;       /* at the last look */
	bool disabled;   /* kept off the hardware, by whomever: as set, or read back since */
	uint64_t since_ns;       /* when it was seen first */
	uint32_t slice_found_us; /* its own: at the last look before we changed it */
	uint32_t slice_us;       /* at the last look, or as set since */
	bool slice_is_ours;      /* somebody here changed it; until then what it has is its own */
	bool mode_is_ours;       /* the same for how it is preempted */
	unsigned nchannels;
	uint32_t channel[GP_NV_CHANNELS_MAX];
	unsigned ncontexts;
	uint32_t context_id[GP_NV_CHANNELS_MAX]; /* unique ids of the channels: see ctxsw.h */
};

struct gp_nv_target {
	pid_t pid;
	uint64_t start_time;
	char name[32];
	int pidfd;
	bool is_mps;    /* an MPS server: its groups run the work of many programs */
	bool uses_cuda; /* has the memory driver open: it has, or will have, a compute group */

	unsigned nfiles;
	int file[GP_NV_FILES_MAX];     /* numbers in the target */
	int borrowed[GP_NV_FILES_MAX]; /* our duplicates; -1 = none now */

	struct gp_nv_client *client;
	unsigned nclients;
	struct gp_nv_group *group;
	unsigned ngroups;

	uint32_t search_top; /* index of the client below which the search began */
	uint32_t searched;   /* how many indices were asked for, downwards from there */
};

/* Finds the process and its control files. -ESRCH: no such process; -ENODEV: it has none open;
 * -EPERM, -EACCES: it may not be looked into (err says why). */
int gp_nv_target_open(struct gp_nv_target *t, pid_t pid, struct gp_error *err);
void gp_nv_target_close(struct gp_nv_target *t);

/* Looks for control files again. true: there are others than before. */
bool gp_nv_target_refresh_files(struct gp_nv_target *t);

/* 0 or -errno: nothing can be reached. Every borrow ends with a give back. */
int gp_nv_target_borrow(struct gp_nv_target *t);
void gp_nv_target_give_back(struct gp_nv_target *t);

/* The duplicate through which this client of the target's is reached; -1: there is none. */
int gp_nv_file(const struct gp_nv_target *t, uint32_t client);

/* ---- finding: all of these between borrow and give back ----------------------------------------
 */

/* Begins the search for clients at the newest one, whose handle is `top`. */
void gp_nv_search_begin(struct gp_nv_target *t, uint32_t top);

/*
 * Asks for up to `indices` more, older and older; stops early, if asked to, shortly after the first
 * compute group was found. Returns false when there is nothing left to ask for.
 */
bool gp_nv_search(struct gp_nv_target *t, uint32_t indices, bool until_found);

/* Asks for one client, and explores it. true: it is the target's. */
bool gp_nv_search_client(struct gp_nv_target *t, uint32_t client);

/* Looks at the clients that are known: `all` asks for every handle again, otherwise only for those
 * that may have been added behind the last, and for the groups' slices. Groups that are gone are
 * dropped. true: a group came or went. */
bool gp_nv_look(struct gp_nv_target *t, bool all);

/* Whether it has a compute group, on any GPU. */
bool gp_nv_computes(const struct gp_nv_target *t);

/* ---- acting: between borrow and give back ------------------------------------------------------
 */

/* Whether the group is still what it was: class and hardware number. */
bool gp_nv_group_verify(struct gp_nv_target *t, struct gp_nv_group *g);

/* Each returns a status of RM. */
uint32_t gp_nv_set_slice(struct gp_nv_target *t, struct gp_nv_group *g, uint32_t slice_us);
uint32_t gp_nv_set_mode(struct gp_nv_target *t, struct gp_nv_group *g, unsigned mode);
uint32_t gp_nv_get_interleave(struct gp_nv_target *t, const struct gp_nv_group *g, uint32_t *level);

/* A group and whose it is. */
struct gp_nv_place {
	struct gp_nv_target *target;
	struct gp_nv_group *group;
	uint32_t status; /* out */
};

/*
 * Disables or enables all channels of the groups, of one GPU, with as few calls as possible: one
 * call takes 64 channels, of any processes. Where one fails, each group is tried by itself, so that
 * every status is the group's own.
 */
void gp_nv_switch(struct gp_nv_place *place, unsigned n, bool disable);

/* ---- undo ------------------------------------------------------------------------------------ */

/* How to put the compute groups on this GPU back as they were found. */
void gp_nv_undo_record(const struct gp_nv_target *t, uint32_t gpu_id, struct gp_undo *undo);

/* Does it: slices as they were, everything enabled. -ESRCH: the process has ended, all is well. */
int gp_nv_undo_replay(const struct gp_undo *undo, struct gp_error *err);

/* Enables every compute group of a process, on all GPUs, and gives slices too short to work with
 * back to the default. How many groups, or -errno. */
int gp_nv_release_process(pid_t pid, struct gp_error *err);

#endif
