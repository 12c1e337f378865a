/* SPDX-License-Identifier: Apache-2.0 */
/* The client side of a connection: sends lines and receives objects, each with a deadline. */
#ifndef GP_RPC_STREAM_H
#define GP_RPC_STREAM_H

#include <stdint.h>

#include "rpc/wire.h"

struct gp_stream {
	int fd;
	struct gp_lines lines;
	struct json_tokener *tokener;
};

/* Closes the socket and frees the rest. */
void gp_stream_close(struct gp_stream *stream);

/* Converts a timeout in milliseconds to a deadline; -1 = never. */
uint64_t gp_stream_deadline(int timeout_ms);

/*
 * Sends bytes. Returns 0 also if the daemon has closed the connection, because its reason can still
 * be read.
 */
int gp_stream_send(struct gp_stream *stream, const char *bytes, size_t length, uint64_t until_ns,
		   struct gp_error *err);

/* Receives the next object; -EAGAIN: none before `until_ns` (no message). */
int gp_stream_receive(struct gp_stream *stream, uint64_t until_ns, struct json_object **json,
		      struct gp_error *err);

/* Returns -ETIMEDOUT with its message. */
int gp_stream_late(struct gp_error *err);

#endif
