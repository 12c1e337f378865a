/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The context switches of a GPU, as its firmware records them: which context came on the engine and
 * went off it, and when. True run times, for every process, without touching one.
 *
 * Root sees everybody's; others would see their own. Records come when they are asked for (a flush
 * is 3 to 15 us on an H200), and a third of a second is kept.
 */
#ifndef GP_GPU_NVIDIA_CTXSW_H
#define GP_GPU_NVIDIA_CTXSW_H

#include "gpu/nvidia/rm.h"

struct gp_ctxsw_event {
	uint32_t context_id; /* the unique id of a channel */
	uint32_t pid;
	bool on;        /* came on the engine; otherwise its state was saved and it is off */
	uint64_t at_ns; /* the GPU's clock: gp_rm_clock_offset */
};

/* Where records are and how far they were read; by itself for tests. */
struct gp_ctxsw_ring {
	const volatile struct nv_event_buffer_header *header;
	const volatile struct nv_fecs_record *record;
	uint32_t count;
	uint32_t next;
	bool has_seqno;
	uint16_t seqno;
	uint64_t lost; /* records that came and were not read in time */
};

/* The next event; false: there is none now. */
bool gp_ctxsw_next(struct gp_ctxsw_ring *ring, struct gp_ctxsw_event *event);

struct gp_ctxsw {
	const struct gp_rm *rm;
	uint32_t header_memory, record_memory, buffer;
	void *header, *record;
	struct gp_ctxsw_ring ring;
};

/* `rm` has a GPU open and stays valid until the close. -ENOTSUP, -EPERM ...: no records here. */
int gp_ctxsw_open(struct gp_ctxsw *c, const struct gp_rm *rm, struct gp_error *err);
void gp_ctxsw_close(struct gp_ctxsw *c);

/* Has the records so far delivered. Returns the status. */
uint32_t gp_ctxsw_flush(struct gp_ctxsw *c);

#endif
