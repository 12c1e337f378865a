/* SPDX-License-Identifier: Apache-2.0 */
/*
 * daemon-hostile-user UID TARGET: what a local user without any right can do with FUSE. It becomes
 * this user, without capabilities, and then root of a user namespace, where it mounts file systems
 * that stop answering. Three processes are started there:
 *
 *   the holder  has files named nvidiactl open: descriptor 10 in FUSE, 11 in an overlayfs above it
 *   the target  is the program TARGET (procinfo-target), executed from FUSE, with a page of its
 *               environment in FUSE
 *   the toucher waits for this page. The kernel refuses to ask FUSE for a page on behalf of a user
 *               without a uid in the namespace (EOVERFLOW), but lets root wait for a page that is
 *               already asked for
 *
 * Prints `ready HOLDER TARGET TOUCHER` when no file system answers any more. All end with this
 * process, which aborts the FUSE connections. Exit status 77, with the reason: the kernel or the
 * machine does not allow it.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/mute_fuse.h"

#define ZEROS   "/mnt"   /* FUSE with a file of zeros; folders that every Linux has */
#define PROGRAM "/media" /* FUSE with a copy of TARGET */
#define OVERLAY "/srv"

__attribute__((noreturn)) static void skip(const char *what)
{
	printf("cannot %s: %s\n", what, strerror(errno));
	exit(77);
}

static void write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		skip(path);
	close(fd);
}

/*
 * On ordinary distributions /dev/fuse has mode 0666. Where it has not, this process and its
 * children get a node of their own, in a mount namespace of their own. The machine's node is not
 * changed.
 */
static void make_fuse_usable(void)
{
	struct stat s;

	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		skip("make a mount namespace");
	if (stat("/dev/fuse", &s))
		skip("find /dev/fuse");
	if ((s.st_mode & 0666) == 0666)
		return;
	umask(0);
	if (mount("none", ZEROS, "tmpfs", 0, NULL) ||
	    mknod(ZEROS "/fuse", S_IFCHR | 0666, s.st_rdev) ||
	    mount(ZEROS "/fuse", "/dev/fuse", NULL, MS_BIND, NULL) || umount2(ZEROS, MNT_DETACH))
		skip("make a device node with mode 0666");
}

static void become_user(uid_t uid)
{
	char map[64];

	snprintf(map, sizeof map, "0 %u 1", uid);
	if (setgroups(0, NULL) || setresgid(uid, uid, uid) || setresuid(uid, uid, uid))
		skip("become another user");
	prctl(PR_SET_DUMPABLE, 1); /* else the files in /proc/self belong to root */
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS))
		skip("make a user namespace without rights");
	write_text("/proc/self/setgroups", "deny");
	write_text("/proc/self/uid_map", map);
	write_text("/proc/self/gid_map", map);
}

/* Mounts a file system and enters the mount namespace of its server. */
static void start(struct mute_fuse *f, const char *folder, const char *copy_of)
{
	char path[64];
	int fd;

	if (!mute_fuse_start(f, folder, copy_of))
		skip("mount FUSE in a user namespace");
	snprintf(path, sizeof path, "/proc/%d/ns/mnt", f->server);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || setns(fd, CLONE_NEWNS))
		skip("enter the mount namespace");
	close(fd);
}

static void mount_overlay(void)
{
	if (mount("none", OVERLAY, "tmpfs", 0, NULL) || mkdir(OVERLAY "/empty", 0755) ||
	    mkdir(OVERLAY "/over", 0755) ||
	    mount("none", OVERLAY "/over", "overlay", 0,
		  "lowerdir=" ZEROS ":" OVERLAY "/empty,userxattr"))
		skip("mount overlayfs above FUSE");
}

static void put_file(const char *path, int at)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || dup2(fd, at) < 0)
		_exit(1);
}

static pid_t start_child(const char *target)
{
	static char padding[16384] = "PADDING=";
	static char file[] = ZEROS "/file";
	char *const words[] = {"target", "silent-environment", "0", "", file, NULL};
	char *const environment[] = {padding, NULL};
	int ready[2];
	pid_t pid;
	char byte;

	memset(padding + strlen(padding), 'x', sizeof padding - strlen(padding) - 1);
	if (pipe2(ready, O_CLOEXEC) || (pid = fork()) < 0)
		exit(1);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(ready[1], STDOUT_FILENO);
		if (target) {
			execve(target, words, environment);
			_exit(1);
		}
		put_file(ZEROS "/nvidiactl", 10);
		put_file(OVERLAY "/over/nvidiactl", 11);
		if (write(ready[1], "r", 1) == 1)
			pause();
		_exit(1);
	}
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		exit(1);
	close(ready[0]);
	return pid;
}

static const volatile char *map_page(void)
{
	int fd = open(ZEROS "/file", O_RDONLY | O_CLOEXEC);
	char *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);

	if (fd < 0 || page == MAP_FAILED)
		skip("map a file in FUSE");
	close(fd); /* at the end of this process no server would answer that */
	return page;
}

static pid_t start_toucher(const volatile char *page)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	_exit(*page);
}

int main(int argc, char **argv)
{
	struct mute_fuse zeros, program;
	pid_t holder, target;
	const volatile char *page;

	if (argc != 3)
		return 2;
	make_fuse_usable();
	become_user((uid_t)strtoul(argv[1], NULL, 10));
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	start(&zeros, ZEROS, NULL);
	start(&program, PROGRAM, argv[2]);
	mount_overlay();
	holder = start_child(NULL);
	target = start_child(PROGRAM "/target");
	page = map_page();
	mute_fuse_silence(&zeros);
	mute_fuse_silence(&program);
	printf("ready %d %d %d\n", holder, target, start_toucher(page));
	fflush(stdout);
	for (;;)
		pause();
}
