/* SPDX-License-Identifier: Apache-2.0 */
/* The client's end of a connection: lines out, objects in, each with a time by which it must be. */
#ifndef GP_RPC_STREAM_H
#define GP_RPC_STREAM_H

#include <stdint.h>

#include "rpc/wire.h"

struct gp_stream {
	int fd;
	struct gp_lines lines;
	struct json_tokener *tokener;
};

/* Closes the file and frees the rest. */
void gp_stream_close(struct gp_stream *stream);

/* In so many milliseconds; -1 = never. */
uint64_t gp_stream_deadline(int timeout_ms);

/*
 * With files beside the first byte. 0 also when the other end has closed: it may have said why,
 * which is read next.
 */
int gp_stream_send(struct gp_stream *stream, const char *bytes, size_t length, const int *fds,
                   unsigned nfds, uint64_t until_ns, struct gp_error *err);

/* The next object; -EAGAIN: none before `until_ns` (no sentence). */
int gp_stream_receive(struct gp_stream *stream, uint64_t until_ns, struct json_object **json,
                      struct gp_error *err);

/* -ETIMEDOUT, with its sentence. */
int gp_stream_late(struct gp_error *err);

#endif
