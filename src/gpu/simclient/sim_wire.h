/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The protocol between gpreempt-simgpu and its clients: packets on a SOCK_SEQPACKET socket, one
 * struct each, and the state of each device in shared memory.
 *
 * A connection begins with HELLO and WELCOME and has one of three roles:
 *   a question    asks for the number of devices, and ends
 *   a program     has a context on one device; sends SUBMIT, and gets DONE for each
 *   a controller  of one device; sends HOLD, RELEASE, SLICE, RESTORE; the state has the answers
 *
 * Neither side trusts the other. Both are built from the same sources, so there is one version.
 */
#ifndef GP_GPU_SIMCLIENT_SIM_WIRE_H
#define GP_GPU_SIMCLIENT_SIM_WIRE_H

#include "gpu/gpu.h"

#define GP_SIMGPU_MAGIC       0x73676d69 /* "imgs" */
#define GP_SIMGPU_VERSION     1
#define GP_SIMGPU_DEVICES     64   /* at most */
#define GP_SIMGPU_CONTEXTS    1024 /* on one device */
#define GP_SIMGPU_CONTROLLERS 64   /* of one device, at one time */
#define GP_SIMGPU_SOCKET      "simgpu.sock"

/* Packets. */

enum gp_simgpu_kind {
	GP_SIMGPU_HELLO = 1,
	GP_SIMGPU_WELCOME,
	GP_SIMGPU_SUBMIT,
	GP_SIMGPU_DONE,
	GP_SIMGPU_HOLD,
	GP_SIMGPU_RELEASE,
	GP_SIMGPU_SLICE,
	GP_SIMGPU_RESTORE, /* release, and set the original slice */
};

enum gp_simgpu_role { GP_SIMGPU_ASKS, GP_SIMGPU_PROGRAM, GP_SIMGPU_CONTROLS };

struct gp_simgpu_hello {
	uint32_t kind;
	uint32_t version;
	uint32_t role; /* enum gp_simgpu_role */
	uint32_t device;

	/* For the role of a program. */
	char name[32];           /* "" = the name of the process */
	uint32_t slice_us;       /* initial slice; 0 = the hardware's default */
	uint32_t width_permille; /* share of the device that it can fill; 0 = all */
	uint64_t wave_ns;        /* length of a wave; 0 = that of its kernels */
	uint64_t memory;         /* bytes, as the program states them */
};

/* A controller also gets two descriptors: the state (a memfd) and an eventfd for changes. */
struct gp_simgpu_welcome {
	uint32_t kind;
	uint32_t version;
	int32_t status; /* 0, or -errno: `text` is a sentence and the connection ends */
	uint32_t devices;
	uint32_t controller; /* index into gp_simgpu_state.answered */
	uint32_t slot;       /* of the program's context */
	uint64_t key;
	char text[256];
};

/* At most GP_SIM_REQUESTS at one time; further ones get DONE with -EAGAIN. */
struct gp_simgpu_submit {
	uint32_t kind;
	uint32_t kernels; /* not 0 */
	uint64_t tag;     /* repeated in DONE */
	uint64_t kernel_ns;
	uint64_t gap_ns; /* host time between two kernels */
};

struct gp_simgpu_done {
	uint32_t kind;
	int32_t status; /* 0, or -errno: the request was refused */
	uint64_t tag;
	uint64_t value;        /* gp_sim_right_value, if every kernel was executed exactly once */
	uint64_t submitted_ns; /* CLOCK_MONOTONIC */
	uint64_t done_ns;
};

struct gp_simgpu_target {
	uint64_t key; /* the target is ignored if another context has the slot now */
	uint32_t slot;
	uint32_t slice_us; /* for SLICE; 0 = the original slice */
};

/* HOLD, RELEASE, SLICE, RESTORE. The length of the packet gives the number of targets. */
struct gp_simgpu_control {
	uint32_t kind;
	uint32_t count;
	uint64_t serial; /* number of the packet on this connection, from 1 */
	struct gp_simgpu_target target[GP_SIMGPU_CONTEXTS];
};

#define GP_SIMGPU_CONTROL_HEAD     offsetof(struct gp_simgpu_control, target)
#define GP_SIMGPU_CONTROL_BYTES(n) (GP_SIMGPU_CONTROL_HEAD + (n) * sizeof(struct gp_simgpu_target))

/* The state in shared memory. */

/* A context on the device. */
struct gp_simgpu_context {
	uint64_t key; /* 0 = the slot is free */
	uint64_t start_time;
	uint64_t memory;
	char name[32];
	int32_t pid;
	uint32_t own_slice_us; /* its initial slice, or the hardware's default */

	/* As in struct gp_observation. Times are CLOCK_MONOTONIC. run_ns counts from the creation
	 * of the context. While `running` is known and true it grows up to runs_until_ns without an
	 * update, so that a late server does not lengthen it. */
	uint32_t known;
	uint8_t active, running, held, under_way;
	int32_t hold_failed;
	int32_t slice_failed;
	uint32_t slice_us;
	uint32_t run_source;
	uint64_t pending;
	uint64_t active_since_ns;
	uint64_t run_ns;
	uint64_t run_at_ns;
	uint64_t runs_until_ns;
	uint64_t scheduled;
	uint64_t on_at_ns;
	uint64_t off_at_ns;
};

/*
 * Readers read copy[sequence % 2] while the server writes the other copy. A reader checks that the
 * sequence did not change meanwhile. It never waits for the server, which may be stopped during a
 * write.
 */
struct gp_sim_slot {
	uint64_t sequence;
	struct gp_simgpu_context copy[2];
};

struct gp_simgpu_state {
	uint32_t magic;
	uint32_t version;
	uint32_t size; /* bytes of this struct */
	uint32_t device;
	struct gp_gpu_info info;
	uint64_t used;                            /* no slot at or after this index was ever used */
	uint64_t answered[GP_SIMGPU_CONTROLLERS]; /* serial of the last packet that the state
						     includes */
	struct gp_sim_slot place[GP_SIMGPU_CONTEXTS];
};

_Static_assert(sizeof(struct gp_simgpu_context) % 8 == 0, "copied by words");
_Static_assert(offsetof(struct gp_simgpu_state, place) % 8 == 0, "copied by words");

#endif
