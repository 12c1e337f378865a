/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the emulated command processor executes. A packet takes 64 bytes, in a queue of any type;
 * read and write index count packets (AQL), dwords (PM4) or bytes (SDMA). They only grow, but for
 * the read index of PM4, which is that in the ring.
 */
#ifndef EMU_KFD_PACKET_H
#define EMU_KFD_PACKET_H

#include <stdint.h>

#define KFD_EMU_PACKET_INVALID  1u /* not written yet: the queue waits for it, as AQL has it */
#define KFD_EMU_PACKET_DISPATCH 2u

struct kfd_emu_packet {
	uint16_t header;
	uint16_t reserved0;
	uint32_t steps;       /* how long it takes; a step is `--step-us` of the device */
	uint64_t accumulator; /* addresses in the client's memory, of 64 bits each */
	uint64_t completed;   /* one more at the end of a packet */
	uint64_t seed;
	uint64_t reserved[4];
};
_Static_assert(sizeof(struct kfd_emu_packet) == 64, "");

/* Each order of seeds gives another result: a packet that is lost, repeated or early is seen. */
static inline uint64_t kfd_emu_mix(uint64_t accumulator, uint64_t seed)
{
	return accumulator * 6364136223846793005ull + seed;
}

#endif
