/* SPDX-License-Identifier: Apache-2.0 */
/* FUSE code that both emulators use: text files, the file `control`, and the session's loop. */
#ifndef EMU_COMMON_FUSE_CORE_H
#define EMU_COMMON_FUSE_CORE_H

#define FUSE_USE_VERSION 314
#include <fuse3/fuse_lowlevel.h>
#include <stddef.h>

/* The content of a file as it was when the file was opened. */
struct fuse_text {
	char *data;
	size_t length;
	struct fuse_text *next; /* of those that are still open */
};

/* A text without content; NULL: no memory. fuse_text_free() also frees `data`. */
struct fuse_text *fuse_text_new(void);
void fuse_text_free(struct fuse_text *text);
void fuse_text_reply(fuse_req_t req, const struct fuse_text *text, size_t size, off_t offset);

/* Gives each line to `run` until one returns an error. Returns that error (-errno) or 0. */
int fuse_core_control(const char *data, size_t size, int (*run)(char *line));

/* Replies with the number of bytes written, or with the error (-errno). */
void fuse_core_reply_write(fuse_req_t req, int result, size_t size);

/* Operation `init`: prints `ready`. */
void fuse_core_ready(void *data, struct fuse_conn_info *conn);

/* Creates a session with the mount's name; NULL: libfuse has printed why. */
struct fuse_session *fuse_core_session(char *program, const char *name,
				       const struct fuse_lowlevel_ops *operations);
/* Serves requests with up to 512 threads, because many calls may wait. Returns when unmounted. */
int fuse_core_serve(struct fuse_session *session);

#endif
