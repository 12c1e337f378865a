/* SPDX-License-Identifier: Apache-2.0 */
#include "support/mute_fuse.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define FILE_NODE 2
#define ZEROS     65536u

struct served {
	int fuse, source; /* source -1: zeros */
	size_t size;
};

static struct fuse_attr attributes(const struct served *s, uint64_t node)
{
	return (struct fuse_attr){.ino = node,
				  .size = node == FILE_NODE ? s->size : 0,
				  .mode = node == FILE_NODE ? S_IFREG | 0755 : S_IFDIR | 0755,
				  .nlink = 1,
				  .blksize = 4096};
}

static void reply(const struct served *s, uint64_t unique, int error, const void *body, size_t size)
{
	struct fuse_out_header head = {
		.len = (uint32_t)(sizeof head + size), .error = error, .unique = unique};
	struct iovec part[] = {{&head, sizeof head}, {(void *)(uintptr_t)body, size}};

	(void)!writev(s->fuse, part, 2); /* fails if the request was interrupted */
}

static void read_file(const struct served *s, uint64_t unique, const struct fuse_read_in *in)
{
	size_t size = in->size > sizeof(char[ZEROS]) ? ZEROS : in->size;
	static char bytes[ZEROS];
	ssize_t n = 0;

	if (s->source >= 0)
		n = pread(s->source, bytes, size, (off_t)in->offset);
	else if (in->offset < s->size)
		n = (ssize_t)(s->size - in->offset < size ? s->size - in->offset : size);
	reply(s, unique, 0, bytes, n > 0 ? (size_t)n : 0);
}

static void answer(const struct served *s, const struct fuse_in_header *head, const void *in)
{
	struct fuse_entry_out entry = {.nodeid = FILE_NODE, .attr = attributes(s, FILE_NODE)};
	struct fuse_attr_out attr = {.attr = attributes(s, head->nodeid)};
	struct fuse_init_out init = {.major = FUSE_KERNEL_VERSION,
				     .minor = FUSE_KERNEL_MINOR_VERSION,
				     .max_write = 4096,
				     .max_readahead = 4096};
	struct fuse_open_out open = {0};
	struct fuse_statfs_out statfs = {.st = {.bsize = 4096, .namelen = 255}};

	switch (head->opcode) {
	case FUSE_INIT: reply(s, head->unique, 0, &init, sizeof init); break;
	case FUSE_LOOKUP: reply(s, head->unique, 0, &entry, sizeof entry); break;
	case FUSE_GETATTR: reply(s, head->unique, 0, &attr, sizeof attr); break;
	case FUSE_OPEN:
	case FUSE_OPENDIR: reply(s, head->unique, 0, &open, sizeof open); break;
	case FUSE_STATFS: reply(s, head->unique, 0, &statfs, sizeof statfs); break;
	case FUSE_READ: read_file(s, head->unique, in); break;
	case FUSE_FLUSH:
	case FUSE_RELEASE: reply(s, head->unique, 0, NULL, 0); break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT: break;
	default: reply(s, head->unique, -ENOSYS, NULL, 0); break;
	}
}

/* Until a byte comes all requests are answered, then none. */
__attribute__((noreturn)) static void serve(const struct served *s, int control)
{
	static char request[FUSE_MIN_READ_BUFFER + 65536];
	struct pollfd p[] = {{.fd = s->fuse, .events = POLLIN}, {.fd = control, .events = POLLIN}};
	const struct fuse_in_header *head = (const void *)request;
	bool silent = false;

	while (poll(p, 2, -1) > 0) {
		char byte;

		if (p[1].revents && read(control, &byte, 1) <= 0)
			_exit(0);
		if (p[1].revents) {
			silent = true;
			(void)!write(control, "s", 1);
		} else if (read(s->fuse, request, sizeof request) > 0 && !silent) {
			answer(s, head, request + sizeof *head);
		}
	}
	_exit(1);
}

static void mount_and_serve(const char *folder, const char *copy_of, int control)
{
	struct served s = {
		.fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC), .source = -1, .size = ZEROS};
	char options[128];
	struct stat st;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (copy_of) {
		s.source = open(copy_of, O_RDONLY | O_CLOEXEC);
		if (s.source < 0 || fstat(s.source, &st))
			_exit(1);
		s.size = (size_t)st.st_size;
	}
	snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other",
		 s.fuse);
	if (s.fuse < 0 || unshare(CLONE_NEWNS) ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("mute", folder, "fuse", MS_NODEV, options) || write(control, "m", 1) != 1)
		_exit(1);
	serve(&s, control);
}

bool mute_fuse_start(struct mute_fuse *f, const char *folder, const char *copy_of)
{
	int pair[2];
	char byte;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return false;
	f->server = fork();
	if (!f->server) {
		close(pair[0]);
		mount_and_serve(folder, copy_of, pair[1]);
	}
	close(pair[1]);
	f->control = pair[0];
	if (f->server > 0 && read(f->control, &byte, 1) == 1)
		return true;
	mute_fuse_stop(f);
	return false;
}

const char *mute_fuse_path(const struct mute_fuse *f, const char *path, char *out, size_t size)
{
	snprintf(out, size, "/proc/%d/root%s", f->server, path);
	return out;
}

void mute_fuse_silence(struct mute_fuse *f)
{
	char byte;

	if (write(f->control, "s", 1) != 1 || read(f->control, &byte, 1) != 1)
		abort();
}

void mute_fuse_stop(struct mute_fuse *f)
{
	close(f->control);
	if (f->server > 0) {
		kill(f->server, SIGKILL);
		waitpid(f->server, NULL, 0);
	}
	f->server = 0;
}
