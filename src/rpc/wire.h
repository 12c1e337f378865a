/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The wire format of server and client: JSON-RPC 2.0, one object per line, UTF-8
 * (docs/protocol.md). Error codes, splitting into lines, strict parsing of a line.
 */
#ifndef GP_RPC_WIRE_H
#define GP_RPC_WIRE_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

#define GP_RPC_VERSION 1  /* version of the protocol, sent in `hello` */
#define GP_RPC_DEPTH   32 /* nesting of arrays and objects */

/* The first five are defined by JSON-RPC. */
enum gp_rpc_code {
	GP_RPC_PARSE_ERROR = -32700,
	GP_RPC_INVALID_REQUEST = -32600,
	GP_RPC_UNKNOWN_METHOD = -32601,
	GP_RPC_INVALID_PARAMS = -32602,
	GP_RPC_INTERNAL = -32603,
	GP_RPC_FAILED = -32000, /* any other failure */
	GP_RPC_NOT_PERMITTED = -32001,
	GP_RPC_NO_PROCESS = -32002,
	GP_RPC_NO_DEVICE = -32003,
	GP_RPC_NOT_SUPPORTED = -32004,
	GP_RPC_BUSY = -32005,
	GP_RPC_TIMED_OUT = -32006,
	GP_RPC_LIMIT = -32007,  /* a limit was reached */
	GP_RPC_ENDING = -32008, /* the daemon is shutting down */
	GP_RPC_VERSION_UNKNOWN = -32009,
};

/* The code for -errno: GP_RPC_INVALID_PARAMS for -EINVAL, GP_RPC_FAILED by default. */
enum gp_rpc_code gp_rpc_code_of(int error);

/* "EPERM" for -EPERM, "EIO" for an unknown error; and the reverse (-EIO for an unknown name). */
const char *gp_rpc_errno_name(int error);
int gp_rpc_errno_parse(const char *name);

/* Bytes that were received and not yet returned as lines. A zeroed struct is empty. */
struct gp_lines {
	char *bytes;
	size_t begin, end; /* the used part of `bytes` */
	size_t capacity;
	size_t searched; /* bytes from `begin` on that were searched for a newline */
	bool found;      /* a newline was found; it is the last searched byte */
};

/*
 * Provides room for at least one byte; the buffer holds at most `max` bytes plus a newline.
 * -EMSGSIZE: the line is longer than `max`. -ENOMEM.
 */
int gp_lines_room(struct gp_lines *lines, size_t max, char **room, size_t *size);
void gp_lines_added(struct gp_lines *lines, size_t size);

/* True if a whole line is buffered. Each byte is searched only once, even over repeated calls. */
bool gp_lines_ready(struct gp_lines *lines);

/*
 * Returns the next whole line with its newline replaced by 0, or NULL. Valid until gp_lines_room.
 */
char *gp_lines_next(struct gp_lines *lines, size_t *length);

static inline size_t gp_lines_waiting(const struct gp_lines *lines)
{
	return lines->end - lines->begin;
}

/* Frees the memory if nothing is buffered, so that idle clients cost no memory. */
void gp_lines_shrink(struct gp_lines *lines);
void gp_lines_free(struct gp_lines *lines);

/* NULL: no memory. A tokener can be used for any number of lines. */
struct json_tokener *gp_json_tokener(void);

/*
 * Parses a line of `length` bytes (followed by a 0) strictly as RFC 8259. Unlike json-c it also
 * refuses a second value, duplicate keys, whole numbers that exceed 64 bits, infinities, and zero
 * bytes (also as \u0000). -EBADMSG or -ENOMEM with a message. `*json` may be NULL after success:
 * that is JSON's null.
 */
int gp_json_read(struct json_tokener *tokener, const char *line, size_t length,
		 struct json_object **json, struct gp_error *err);

/* Valid UTF-8 as in RFC 3629: shortest forms, no surrogates. json-c's own check is less strict. */
bool gp_utf8_valid(const char *text);

/* A JSON string from untrusted bytes; invalid UTF-8 becomes U+FFFD. NULL: no memory. */
struct json_object *gp_json_from_bytes(const char *bytes);

/*
 * Begins an object for gp_json_text. json-c leaves members, and parts of the text, out if there is
 * no memory, and only errno tells. This function forgets an errno of earlier failures.
 */
struct json_object *gp_json_begin(void);

/* Add to an object or an array for gp_json_text, which own `value` then. json-c would abort if
 * there was no memory for `into` (NULL). */
void gp_json_add(struct json_object *into, const char *key, struct json_object *value);
void gp_json_append(struct json_object *into, struct json_object *value);

/*
 * The text of `json` without spaces; valid until the object changes. NULL: there was no memory for
 * it, or for an object since gp_json_begin.
 */
const char *gp_json_text(struct json_object *json, size_t *length);

#endif
