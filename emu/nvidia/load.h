/* SPDX-License-Identifier: Apache-2.0 */
/* What a CUDA program has on the GPU: shared by the files of rm-load only. */
#ifndef EMU_NVIDIA_LOAD_H
#define EMU_NVIDIA_LOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "rm_client.h"

#define MAX_CONTEXTS     64
#define COMPUTE_CHANNELS 8
#define COPY_GROUPS      3
#define COPY_CHANNELS    4

/* A context: copy groups, and a compute group. Its first channel gets the work. */
struct context {
	uint32_t gpu;
	uint32_t group;
	uint32_t copy_group[COPY_GROUPS];
	uint32_t channel;
	uint64_t submitted;
	uint64_t digest; /* what it must be when all of that is done */
};

/* One client, as libcuda has one for a process, whatever the number of contexts. */
struct program {
	int fd;
	uint32_t client;
	uint32_t device[EMU_MAX_GPUS], subdevice[EMU_MAX_GPUS];
	uint32_t gpus;
	uint32_t next_handle;
	bool random_handles;
	uint64_t seed;
	bool computes;
	struct context context[MAX_CONTEXTS];
	uint32_t ncontexts;
};

/* All of these exit with a message when RM refuses. */
void program_open(struct program *p, uint64_t memory);
void context_add(struct program *p);
void context_remove(struct program *p); /* the newest */
void context_set_slice(const struct program *p, const struct context *c, uint64_t us);
void context_submit(const struct program *p, struct context *c, uint64_t kernel_ns);
struct emu_query context_query(const struct program *p, const struct context *c, uint64_t done,
			       uint32_t timeout_us);

#endif
