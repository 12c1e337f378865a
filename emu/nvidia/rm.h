/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The emulator's own state, shared by its files only.
 *
 * One lock guards everything here (rm_lock). What reaches the GPU's firmware takes time: it sleeps
 * under the GPU's own firmware lock, one call at a time as on the real one, without rm_lock, and
 * has its effect at the end.
 */
#ifndef EMU_NVIDIA_RM_H
#define EMU_NVIDIA_RM_H

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>

#include "base/clock.h"
#include "emu/common/control.h"
#include "emu_abi.h"
#include "engine.h"

enum kind {
	KIND_CLIENT,
	KIND_DEVICE,
	KIND_SUBDEVICE,
	KIND_GROUP,
	KIND_CHANNEL,
	KIND_COMPUTE,
	KIND_COPY,
	KIND_MEMORY,
	KIND_DIAG,
};

struct object {
	struct object *next; /* of the client, oldest first; the first is the client itself */
	struct object *parent;
	uint32_t handle;
	uint32_t class;
	enum kind kind;
	struct gpu *gpu;         /* NULL: the client */
	struct group *group;     /* group: its own; channel: the one it runs in */
	struct channel *channel; /* channel */
	uint64_t memory;         /* bytes */
};

/* One open of the control file, with all its duplicates. */
struct file {
	struct file *next;
	uint32_t id;
};

struct client {
	struct client *next;
	uint32_t handle;
	struct file *file;
	pid_t pid;
	uid_t uid;
	struct object *objects;
	uint32_t generated; /* handles that RM chose */
};

/* The caller and its open file. */
struct caller {
	struct file *file;
	pid_t thread; /* its memory has the parameters */
	uid_t uid;
};

/* What a driver branch has otherwise. */
struct driver {
	const char *name; /* "580" */
	const char *version;
	uint32_t schedule_size, probed_size, build_size;
};

struct rm {
	pthread_mutex_t lock;
	struct engine engine;
	pthread_mutex_t firmware[EMU_MAX_GPUS];
	struct file *files;
	struct client *clients;
	uint32_t next_file;
	uint32_t next_index; /* of a client */
	const struct driver *driver;
	bool gsp;      /* firmware does what host RM no longer can */
	bool api_lock; /* calls that change state exclude all others, as RM's API lock does */
	pthread_rwlock_t api;
	/* A wrong state of channels that is read back: 0 none, 1 disabled, 2 enabled. */
	unsigned channels_read;
	uint64_t channels_read_left; /* number of wrong answers; 0: all */
	uint64_t slice_read_us;      /* a wrong slice that GET_TIMESLICE answers; 0: the true one */
	bool lost[EMU_MAX_GPUS];
	uint64_t memory_limit;  /* per GPU */
	uint64_t clock_back_us; /* how far the wall clock of its samples was set back */
};

extern struct rm rm;

/* Also brings the GPUs' work up to now. */
void rm_lock(void);
void rm_unlock(void);
uint64_t rm_now_ns(void);

/* objects.c */

struct file *file_open(void);
void file_close(struct file *file); /* frees its clients */

struct client *client_find(uint32_t handle);
struct object *object_find(const struct client *client, uint32_t handle);
uint64_t client_memory(const struct client *client, const struct gpu *gpu);
uint32_t internal_kind(const struct object *object);

/* A control's params or an allocation's, in the memory of the caller: 0 or NV_ERR_INVALID_ADDRESS
 */
uint32_t caller_read(const struct caller *caller, uint64_t address, void *to, uint32_t size);
uint32_t caller_write(const struct caller *caller, uint64_t address, const void *from,
		      uint32_t size);

uint32_t rm_alloc(const struct caller *caller, struct nv_rm_alloc *alloc);
uint32_t rm_free(const struct caller *caller, const struct nv_rm_free *free);

/* controls.c */

/* Returns a status. *error is an errno when the call is to fail without reaching RM. */
uint32_t rm_control(const struct caller *caller, const struct nv_rm_control *control, int *error);

/* commands.c */

#define PARAMS_MAX 4096u

struct call {
	const struct caller *caller;
	struct client *client;
	struct object *object;
	union {
		uint8_t bytes[PARAMS_MAX];
		uint32_t u32;
		struct nv0000_build_version build_version;
		struct nv0000_gpu_ids gpu_ids;
		struct nv0000_probed_ids probed_ids;
		struct nv0000_pci_info pci_info;
		struct nv0000_id_info id_info;
		struct nv0000_handle_info handle_info;
		struct nv0000_child_handle child_handle;
		struct nv2080_gpu_id gpu_id;
		struct nv2080_disable_channels disable_channels;
		struct nv2080_group_ids group_ids;
		struct nv2080_preemption_mode preemption_mode;
		struct nv2080_pids pids;
		struct nv208f_channel_state channel_state;
		struct nva06c_gpfifo_schedule schedule;
		struct nva06c_timeslice timeslice;
		struct nva06c_preempt preempt;
		struct nva06c_info info;
		struct nva06c_interleave interleave;
	} params;
};

#define COMMAND_NO_GPU_ACCESS 0x1u /* also answered when the GPU is lost */
#define COMMAND_NICE          0x2u /* for callers with CAP_SYS_NICE or CAP_SYS_ADMIN */
#define COMMAND_FIRMWARE      0x4u /* what takes time */
#define COMMAND_READS         0x8u /* takes RM's API lock for reading only */

struct command {
	uint32_t cmd;
	const char *name;
	enum kind kind; /* of the objects that know it */
	uint32_t size;  /* of its parameters, in 580 */
	uint32_t flags;
	uint32_t (*run)(struct call *call); /* under rm_lock; returns a status */
};

const struct command *command_find(uint32_t cmd);
const struct command *command_at(size_t i); /* NULL behind the last */
uint32_t command_size(const struct command *command);

extern const struct driver rm_drivers[];

/* faults.c */

#define CMD_ANY   0xffffffffu /* every control */
#define CMD_ALLOC 0xfffffffeu
#define CMD_FREE  0xfffffffdu

/* What is asked for about this call. Takes one from each count that applies. Under rm_lock. */
struct fault {
	int error;       /* the ioctl fails with it */
	uint32_t status; /* the answer; NV_OK: none */
	bool ignore;     /* answer OK and do nothing */
	pid_t kill;      /* 0: none */
};
struct fault fault_take(uint32_t cmd, pid_t caller);
bool fault_is_unsupported(uint32_t cmd);
/* The entries of the list, as bits, that this call passes over. */
uint32_t fault_skipped(uint32_t cmd);
/* Whether the call does the opposite of what it is asked for. */
bool fault_inverts(uint32_t cmd);

/* How long the firmware takes. `enable`: DISABLE_CHANNELS that enables. */
uint64_t fault_latency_ns(uint32_t cmd, bool enable);

/* One line of the file `control`. 0 or -EINVAL. Takes rm_lock. */
int control_line(char *line);
/* Sets the times that were measured on an H200. */
void control_h200(void);

/* state.c */

enum refusal {
	REFUSED_CLIENT,     /* no such client */
	REFUSED_FILE,       /* the client belongs to a different open file */
	REFUSED_SIZE,       /* parameters of the wrong size, or none */
	REFUSED_ADDRESS,    /* parameters that cannot be read or written */
	REFUSED_OBJECT,     /* no such object */
	REFUSED_COMMAND,    /* unknown, or not for this object */
	REFUSED_PERMISSION, /* not privileged */
	REFUSED_IOCTL,      /* not an ioctl of this file */
	REFUSED_COUNT,
};

void count_call(uint32_t cmd); /* under rm_lock, as all of these */
void count_refusal(enum refusal refusal);
void count_reset(void);

/* The files `state` and `counts`. */
void state_print(FILE *out);
void counts_print(FILE *out);

#endif
