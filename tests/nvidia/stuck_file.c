/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stuck-file open|replace|toggle: a hostile user's process. It has a file open with the name of the
 * control file ($GPREEMPT_NVIDIACTL), on a file system that answers no other process's question
 * about the file.
 *
 *   open     has only this file
 *   replace  has the real control file, and this file under the same descriptor after a byte on
 *            standard input
 *   toggle   replaces the one by the other for ever
 *
 * Prints `ready PID`, the pid of the process with the file, and `asked` for each question that is
 * not answered. It ends, and the file system with it, when standard input is closed.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "emu/common/fuse_core.h"

#define FILE_INODE 2
#define DESCRIPTOR 50 /* under which the files replace each other */

#define LIFE_S     60 /* a forgotten server must not leave processes that cannot be killed */

static pid_t holder;
static const char *file_name;

static struct stat attributes(fuse_ino_t inode)
{
	return (struct stat){
		.st_ino = inode,
		.st_nlink = 1,
		.st_mode = inode == FUSE_ROOT_ID ? S_IFDIR | 0755 : S_IFREG | 0666,
	};
}

/* Whether the question stays without an answer. */
static bool is_ignored(fuse_req_t req, fuse_ino_t inode)
{
	if (inode == FUSE_ROOT_ID || fuse_req_ctx(req)->pid == holder)
		return false;
	dprintf(STDOUT_FILENO, "asked\n");
	return true;
}

static void on_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct fuse_entry_param entry = {.ino = FILE_INODE, .attr = attributes(FILE_INODE)};

	(void)parent;
	if (!strcmp(name, file_name))
		fuse_reply_entry(req, &entry);
	else
		fuse_reply_err(req, ENOENT);
}

static void on_getattr(fuse_req_t req, fuse_ino_t inode, struct fuse_file_info *info)
{
	struct stat s = attributes(inode);

	(void)info;
	if (!is_ignored(req, inode))
		fuse_reply_attr(req, &s, 0);
}

static void on_open(fuse_req_t req, fuse_ino_t inode, struct fuse_file_info *info)
{
	(void)inode;
	fuse_reply_open(req, info);
}

static void on_flush(fuse_req_t req, fuse_ino_t inode, struct fuse_file_info *info)
{
	(void)info;
	if (!is_ignored(req, inode))
		fuse_reply_err(req, 0);
}

static void on_ioctl(fuse_req_t req, fuse_ino_t inode, unsigned cmd, void *arg,
		     struct fuse_file_info *info, unsigned flags, const void *in, size_t in_size,
		     size_t out_size)
{
	(void)cmd;
	(void)arg;
	(void)flags;
	(void)in;
	(void)in_size;
	(void)out_size;
	on_flush(req, inode, info);
}

static const struct fuse_lowlevel_ops operations = {
	.lookup = on_lookup,
	.getattr = on_getattr,
	.open = on_open,
	.flush = on_flush,
	.ioctl = on_ioctl,
};

/* The process with the file. It dies with the server; the server's end aborts its last question. */
static void hold(const char *mode, const char *path)
{
	const char *control = getenv("GPREEMPT_NVIDIACTL");
	int stuck, real, signal;
	sigset_t go;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "stuck-holder");
	sigemptyset(&go);
	sigaddset(&go, SIGUSR1);
	sigprocmask(SIG_BLOCK, &go, NULL);
	stuck = open(path, O_RDWR);
	real = strcmp(mode, "open") ? open(control ? control : "", O_RDWR | O_CLOEXEC) : stuck;
	if (stuck < 0 || real < 0 || dup2(real, DESCRIPTOR) < 0)
		_exit(1);
	dprintf(STDOUT_FILENO, "ready %d\n", getpid());
	if (!strcmp(mode, "replace"))
		sigwait(&go, &signal);
	do {
		dup2(stuck, DESCRIPTOR);
		if (!strcmp(mode, "toggle"))
			dup2(real, DESCRIPTOR);
	} while (!strcmp(mode, "toggle"));
	for (;;)
		pause();
}

static void serve(struct fuse_session *session)
{
	struct pollfd p[2] = {{.fd = STDIN_FILENO, .events = POLLIN},
			      {.fd = fuse_session_fd(session), .events = POLLIN}};
	struct fuse_buf buffer = {0};
	char byte;

	while (poll(p, 2, -1) > 0) {
		if (p[0].revents && read(STDIN_FILENO, &byte, 1) <= 0)
			return;
		if (p[0].revents)
			kill(holder, SIGUSR1);
		if (p[1].revents && fuse_session_receive_buf(session, &buffer) > 0)
			fuse_session_process_buf(session, &buffer);
	}
}

int main(int argc, char **argv)
{
	const char *control = getenv("GPREEMPT_NVIDIACTL");
	char directory[] = "/tmp/stuck-file.XXXXXX", path[128];
	struct fuse_session *session;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	file_name = control ? strrchr(control, '/') : NULL;
	if (argc != 2 || !file_name || !mkdtemp(directory))
		return 2;
	file_name++;
	session = fuse_core_session(argv[0], "stuck-file", &operations);
	/* The mount is seen by this process and its child only, and ends with them. */
	if (!session || unshare(CLONE_NEWNS) ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    fuse_session_mount(session, directory)) {
		rmdir(directory);
		return 77;
	}
	snprintf(path, sizeof path, "%s/%s", directory, file_name);
	holder = fork();
	if (!holder) {
		close(fuse_session_fd(session)); /* else its own questions would keep it alive */
		hold(argv[1], path);
	}
	alarm(LIFE_S);
	serve(session);
	kill(holder, SIGKILL);
	umount2(directory, MNT_DETACH);
	rmdir(directory);
	return 0; /* the connection ends, and every question with it */
}
