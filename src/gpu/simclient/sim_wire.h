/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What gpreempt-simgpu and those who use it say to each other: packets on a SOCK_SEQPACKET socket,
 * one struct each, and a mapped state of each device.
 *
 * A connection begins with HELLO and WELCOME and is then one of:
 *   a question       how many devices there are: that is all
 *   a program        has a context on one device; SUBMIT, and DONE for each
 *   a controller     of one device: HOLD, RELEASE, SLICE, RESTORE, which the state answers
 *
 * Neither side trusts the other. Both are built from the same sources: a version is enough.
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

/* ---- packets ------------------------------------------------------------------------------------
 */

enum gp_simgpu_kind {
	GP_SIMGPU_HELLO = 1,
	GP_SIMGPU_WELCOME,
	GP_SIMGPU_SUBMIT,
	GP_SIMGPU_DONE,
	GP_SIMGPU_HOLD,
	GP_SIMGPU_RELEASE,
	GP_SIMGPU_SLICE,
	GP_SIMGPU_RESTORE, /* released, and its own slice again */
};

enum gp_simgpu_role { GP_SIMGPU_ASKS, GP_SIMGPU_PROGRAM, GP_SIMGPU_CONTROLS };

struct gp_simgpu_hello {
	uint32_t kind;
	uint32_t version;
	uint32_t role; /* enum gp_simgpu_role */
	uint32_t device;

	/* A program's. */
	char name[32];           /* "" = that of the process */
	uint32_t slice_us;       /* what it sets by itself; 0 = the hardware's own */
	uint32_t width_permille; /* how much of the device it can fill; 0 = all */
	uint64_t wave_ns;        /* 0 = as long as its kernels */
	uint64_t memory;         /* bytes that it says it uses */
};

/* With it, to a controller: the state (a memory file) and an eventfd for news, in this order. */
struct gp_simgpu_welcome {
	uint32_t kind;
	uint32_t version;
	int32_t status; /* 0 or -errno; then `text` is a sentence and the connection ends */
	uint32_t devices;
	uint32_t controller; /* whose place in the state is this one's */
	uint32_t slot;       /* a program's place */
	uint64_t key;
	char text[256];
};

/* At most GP_SIM_REQUESTS at one time, or DONE says -EAGAIN. */
struct gp_simgpu_submit {
	uint32_t kind;
	uint32_t kernels; /* not 0 */
	uint64_t tag;     /* comes back with DONE */
	uint64_t kernel_ns;
	uint64_t gap_ns; /* host time between two of them */
};

struct gp_simgpu_done {
	uint32_t kind;
	int32_t status; /* 0 or -errno: it was not taken */
	uint64_t tag;
	uint64_t value;        /* gp_sim_right_value, if every kernel was executed exactly once */
	uint64_t submitted_ns; /* CLOCK_MONOTONIC */
	uint64_t done_ns;
};

struct gp_simgpu_target {
	uint64_t key; /* nothing happens if another has the place by now */
	uint32_t slot;
	uint32_t slice_us; /* SLICE; 0 = its own */
};

/* HOLD and so on: as many targets as the packet is long. */
struct gp_simgpu_control {
	uint32_t kind;
	uint32_t count;
	uint64_t serial; /* counts a controller's packets, from 1 */
	struct gp_simgpu_target target[GP_SIMGPU_CONTEXTS];
};

#define GP_SIMGPU_CONTROL_HEAD     offsetof(struct gp_simgpu_control, target)
#define GP_SIMGPU_CONTROL_BYTES(n) (GP_SIMGPU_CONTROL_HEAD + (n) * sizeof(struct gp_simgpu_target))

/* ---- state --------------------------------------------------------------------------------------
 */

/* A context, as the device's driver would show it. */
struct gp_simgpu_context {
	uint64_t key; /* 0 = nobody is here */
	uint64_t start_time;
	uint64_t memory;
	char name[32];
	int32_t pid;
	uint32_t own_slice_us; /* what it set by itself, or the hardware's */

	/* As in struct gp_observation. Times are CLOCK_MONOTONIC; run_ns counts from when the
	 * context was made, and goes on by itself, up to runs_until_ns, where `running` is known
	 * and true: a server that is woken late does not make it longer. */
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
 * One is written while the other, which is whole, is read: copy[sequence % 2]. Who reads looks
 * whether the sequence was the same before and afterwards, and never waits for a writer, who may
 * have been stopped in the middle.
 */
struct gp_sim_slot {
	uint64_t sequence;
	struct gp_simgpu_context copy[2];
};

struct gp_simgpu_state {
	uint32_t magic;
	uint32_t version;
	uint32_t size; /* of this struct */
	uint32_t device;
	struct gp_gpu_info info;
	uint64_t used;                            /* behind it no place was ever taken */
	uint64_t answered[GP_SIMGPU_CONTROLLERS]; /* the last serial whose effect is in the state */
	struct gp_sim_slot place[GP_SIMGPU_CONTEXTS];
};

_Static_assert(sizeof(struct gp_simgpu_context) % 8 == 0, "it is copied by words");
_Static_assert(offsetof(struct gp_simgpu_state, place) % 8 == 0, "it is copied by words");

#endif
