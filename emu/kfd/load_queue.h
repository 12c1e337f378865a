/* SPDX-License-Identifier: Apache-2.0 */
/* What a ROCm program has on the GPU: shared by the files of kfd-load only. */
#ifndef EMU_KFD_LOAD_QUEUE_H
#define EMU_KFD_LOAD_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu/amd/kfd_abi.h"
#include "packet.h"

struct gpu {
	uint32_t gpu_id;
	uint32_t cwsr_size, ctl_stack_size, debug_size, xccs;
};

/* What the GPU writes, in a page of its own. */
struct results {
	volatile uint64_t rptr, wptr, accumulator, completed;
};

struct load_queue {
	uint32_t id, type;
	uint64_t doorbell;
	struct kfd_emu_packet *ring;
	struct results *results;
	void *save_area;
	uint64_t save_size;
	uint64_t submitted;
	uint64_t expected; /* the accumulator when all of that is done */
};

/* All of these exit with a message when the driver refuses. */
int load_open(void);
struct gpu load_gpu(int fd, uint32_t index);
void load_runtime(int fd, bool enable);
void queue_open(int fd, const struct gpu *gpu, struct load_queue *q, uint32_t type,
		uint32_t priority);
void queue_close(int fd, struct load_queue *q);
void queue_submit(int fd, struct load_queue *q, uint32_t steps);
/* Whether the last packet waits for the host: it has its place in the ring and is not written. */
void queue_delay(int fd, struct load_queue *q, bool waits);
/* Packets that may still be put into the ring. */
uint64_t queue_room(const struct load_queue *q);
bool queue_is_done(const struct load_queue *q);
bool queue_is_right(const struct load_queue *q);

#endif
