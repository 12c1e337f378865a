/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process that does with RM what the test tells it to, one call at a time: for what rm-load,
 * which behaves as libcuda does, never does. It does no work and dies with the test.
 */
#ifndef TESTS_NVIDIA_HAND_MADE_H
#define TESTS_NVIDIA_HAND_MADE_H

#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "emu/nvidia/rm_client.h"
#include "gpu_world.h"
#include "support/process.h"

enum hand_call {
	HAND_OPEN,
	HAND_CLOSE,
	HAND_ALLOC,
	HAND_FREE,
	HAND_SLICE,
	HAND_UVM,
	HAND_BORROW, /* the control files of process `value`, as a scheduler does */
	HAND_GIVE_BACK,
};

struct hand_order {
	enum hand_call call;
	uint32_t parent, handle, class, engine;
	uint64_t value;
};

struct hand_answer {
	uint32_t status, handle;
};

struct hand {
	pid_t pid;
	struct test_child child;
	uint32_t client, device, subdevice;
};

uint32_t hand_tell(struct hand *h, struct hand_order o);

/* Starts it; it has nothing open yet, also nothing of ours. */
void hand_start(struct hand *h);

/* The same, and it ends with the test; with the file open and a client. */
struct hand *gw_hand(struct gpu_world *w);
struct hand *gw_hand_with_client(struct gpu_world *w);
uint32_t hand_alloc(struct hand *h, uint32_t parent, uint32_t class, uint32_t handle,
		    uint32_t engine);

static inline void hand_open(struct hand *h)
{
	hand_tell(h, (struct hand_order){.call = HAND_OPEN});
}

void hand_client(struct hand *h);

/* A compute group under this handle, with its channels and their objects behind it. */
void hand_group(struct hand *h, uint32_t handle, unsigned channels);

static inline void hand_free(struct hand *h, uint32_t handle)
{
	hand_tell(h, (struct hand_order){.call = HAND_FREE, .handle = handle});
}

static inline void hand_slice(struct hand *h, uint32_t handle, uint64_t us)
{
	hand_tell(h, (struct hand_order){.call = HAND_SLICE, .handle = handle, .value = us});
}

void hand_stop(struct hand *h);

#endif
