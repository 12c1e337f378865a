/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What server and client agree on: JSON-RPC 2.0, one object a line, UTF-8 (docs/protocol.md). Here:
 * error codes, lines out of a stream of bytes, and a strict reading of a line.
 */
#ifndef GP_RPC_WIRE_H
#define GP_RPC_WIRE_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

#define GP_RPC_VERSION  1 /* of the protocol; said in hello */
#define GP_RPC_LINE_MAX (64u << 10)
#define GP_RPC_DEPTH    32 /* of arrays and objects in each other */
#define GP_RPC_FDS_MAX  4  /* files with one line */

/* The first five are JSON-RPC's own. */
enum gp_rpc_code {
	GP_RPC_PARSE_ERROR = -32700,
	GP_RPC_INVALID_REQUEST = -32600,
	GP_RPC_UNKNOWN_METHOD = -32601,
	GP_RPC_INVALID_PARAMS = -32602,
	GP_RPC_INTERNAL = -32603,
	GP_RPC_FAILED = -32000, /* none of those below */
	GP_RPC_NOT_PERMITTED = -32001,
	GP_RPC_NO_PROCESS = -32002,
	GP_RPC_NO_DEVICE = -32003,
	GP_RPC_NOT_SUPPORTED = -32004,
	GP_RPC_BUSY = -32005,
	GP_RPC_TIMED_OUT = -32006,
	GP_RPC_LIMIT = -32007,  /* too many or too much of something */
	GP_RPC_ENDING = -32008, /* the daemon is going away */
	GP_RPC_VERSION_UNKNOWN = -32009,
};

/* The code that goes with -errno: GP_RPC_INVALID_PARAMS for -EINVAL, GP_RPC_FAILED by default. */
enum gp_rpc_code gp_rpc_code_of(int error);

/* "EPERM" for -EPERM, "EIO" for what has no name; and back (-EIO for what is no such name). */
const char *gp_rpc_errno_name(int error);
int gp_rpc_errno_parse(const char *name);

/* ---- lines ------------------------------------------------------------------------------------
 */

/* Bytes that were received and not yet taken as lines. A zeroed one is empty. */
struct gp_lines {
	char *bytes;
	size_t begin, end; /* what is used of them */
	size_t capacity;
	size_t searched; /* from `begin` on: no newline so far, or just behind the first one */
	bool found;      /* ... the latter */
};

/*
 * Room for at least one byte and at most `max` in all, without the newline. -EMSGSIZE: a line is
 * longer than that (it can also be a line of `max` whose newline has not come yet: `max` + 1 bytes
 * fit). -ENOMEM.
 */
int gp_lines_room(struct gp_lines *lines, size_t max, char **room, size_t *size);
void gp_lines_added(struct gp_lines *lines, size_t size);

/* A whole line is there. Bytes are looked at once, however often it is asked. */
bool gp_lines_ready(struct gp_lines *lines);

/* The next whole line, a 0 in place of its newline, or NULL. Valid until gp_lines_room. */
char *gp_lines_next(struct gp_lines *lines, size_t *length);

static inline size_t gp_lines_waiting(const struct gp_lines *lines)
{
	return lines->end - lines->begin;
}

/* Frees the memory when nothing waits: 1,000 idle clients cost nothing. */
void gp_lines_shrink(struct gp_lines *lines);
void gp_lines_free(struct gp_lines *lines);

/* ---- JSON -------------------------------------------------------------------------------------
 */

/* NULL: no memory. One can be used for any number of lines. */
struct json_tokener *gp_json_tokener(void);

/*
 * Reads a line of `length` bytes (a 0 follows) strictly as RFC 8259 says, which json-c by itself
 * does not: also refused are a second value, keys that come twice, whole numbers that do not fit
 * into 64 bits, infinities, and zero bytes, as such or as \u0000. -EBADMSG with a sentence.
 * `*json` may be NULL after success: that is JSON's null.
 */
int gp_json_read(struct json_tokener *tokener, const char *line, size_t length,
                 struct json_object **json, struct gp_error *err);

/* Shortest forms only, no surrogates: as RFC 3629 says, which json-c's own check is looser than. */
bool gp_utf8_valid(const char *text);

/* A string of bytes that somebody else chose: what is not UTF-8 becomes U+FFFD. NULL: no memory. */
struct json_object *gp_json_from_bytes(const char *bytes);

/* The text of `json` without spaces; valid until the object changes. */
const char *gp_json_text(struct json_object *json, size_t *length);

#endif
