/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The context switches of a GPU, as its firmware records them: the context that was put on the
 * engine or taken off it, and the time. They give true run times of every process, without any
 * change to a process.
 *
 * Root sees the records of all users; other users see their own. A flush (3 to 15 us on an H200)
 * delivers the records. The firmware keeps a third of a second.
 */
#ifndef GP_GPU_NVIDIA_CTXSW_H
#define GP_GPU_NVIDIA_CTXSW_H

#include "gpu/nvidia/rm.h"

struct gp_ctxsw_event {
	uint32_t context_id; /* the unique id of a channel */
	uint32_t pid;
	bool on;        /* put on the engine; else saved and taken off */
	uint64_t at_ns; /* GPU clock, see gp_rm_clock_offset */
};

/* The buffer of records and the read position. Separate from gp_ctxsw for tests. */
struct gp_ctxsw_ring {
	const volatile struct nv_event_buffer_header *header;
	const volatile struct nv_fecs_record *record;
	uint32_t count;
	uint32_t next;
	bool has_seqno;
	uint16_t seqno;
	uint64_t lost; /* records that were overwritten before they were read */
};

/* The next event; false: none now. */
bool gp_ctxsw_next(struct gp_ctxsw_ring *ring, struct gp_ctxsw_event *event);

struct gp_ctxsw {
	const struct gp_rm *rm;
	uint32_t header_memory, record_memory, buffer;
	void *header, *record;
	struct gp_ctxsw_ring ring;
};

/* `rm` has a GPU open and stays valid until gp_ctxsw_close. -ENOTSUP, -EPERM and others: no
 * records. */
int gp_ctxsw_open(struct gp_ctxsw *c, const struct gp_rm *rm, struct gp_error *err);
void gp_ctxsw_close(struct gp_ctxsw *c);

/* Delivers the records so far. Returns the status. */
uint32_t gp_ctxsw_flush(struct gp_ctxsw *c);

#endif
