/* SPDX-License-Identifier: Apache-2.0 */
/* FUSE code that both emulators use: a folder with texts, a device and the file `control`. */
#ifndef EMU_COMMON_FUSE_CORE_H
#define EMU_COMMON_FUSE_CORE_H

#define FUSE_USE_VERSION 314
#include <fuse3/fuse_lowlevel.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

enum fuse_kind { FUSE_FOLDER, FUSE_TEXT, FUSE_CONTROL, FUSE_DEVICE, FUSE_STREAM };

/*
 * The folder of an emulator. Inode numbers are its own; that of the root is FUSE_ROOT_ID.
 * A text has the content that it had when it was opened. `child` and `print` are called between
 * lock() and unlock().
 */
struct fuse_files {
	/* How long the kernel may keep the name of the file; its attributes never change. */
	double (*keep_s)(fuse_ino_t ino);
	enum fuse_kind (*kind)(fuse_ino_t ino);
	mode_t (*mode)(fuse_ino_t ino);
	/* The place-th child of a folder; false: there are no more. */
	bool (*child)(fuse_ino_t folder, uint32_t place, fuse_ino_t *child, char name[64]);
	bool (*print)(fuse_ino_t ino, FILE *out);        /* false: the file is gone */
	int (*open_device)(pid_t thread, void **handle); /* 0 or -errno */
	void (*close_device)(void *handle);
	/* What is written to the device, 0 or -errno; NULL: nothing can be. */
	int (*write_device)(fuse_req_t req, void *handle, size_t size, off_t offset);
	void (*ioctl)(fuse_req_t req, void *handle, unsigned int cmd, void *arg, const void *in,
		      size_t in_size, size_t out_size); /* of the device */
	/* A stream, or NULL: there is none. read and write return the number of bytes or -errno. */
	int (*open_stream)(fuse_ino_t ino, pid_t thread, void **handle);
	void (*close_stream)(void *handle);
	int (*read_stream)(void *handle, void *data, size_t size);
	int (*write_stream)(void *handle, const void *data, size_t size);
	int (*control)(char *line); /* one line of a control file */
	void (*lock)(void);
	void (*unlock)(void);
};

/* Creates a session with the mount's name; NULL: libfuse has printed why. */
struct fuse_session *fuse_core_session(char *program, const char *name,
				       const struct fuse_lowlevel_ops *operations);
/* The same for an emulator's folder. It prints `ready` when it is mounted. */
struct fuse_session *fuse_core_folder(char *program, const char *name,
				      const struct fuse_files *files);
/* Serves requests with up to 512 threads, because many calls may wait. Returns when unmounted. */
int fuse_core_serve(struct fuse_session *session);

#endif
