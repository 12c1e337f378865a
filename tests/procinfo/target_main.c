/* SPDX-License-Identifier: Apache-2.0 */
/*
 * procinfo-target MODE UID PADDING [FILE]: prints `ready` and waits to be killed.
 *
 * MODE `plain` does no more. `silent-words` and `silent-environment` take whole pages out of the
 * command line (PADDING is long) or the environment (the variable PADDING is) and answer no fault
 * on them until a line comes on standard input. `orphan-words` is the same, but the page stays away
 * when this process is dead, until standard input ends. Without FILE this is done by userfaultfd:
 * other readers of this process's files in /proc get an error and do not hang. With FILE the page
 * is the first of this file, in a FUSE that does not answer any more: readers are in state D until
 * the test aborts the connection.
 */
#include <fcntl.h>
#include <grp.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CANNOT 77 /* be tried here */

/* The first page that begins in this text or at it. */
static char *page_in(char *text, size_t page)
{
	return text + (-(uintptr_t)text & (page - 1));
}

/* File descriptor, or it ends. */
static int take_away(char *at, size_t page)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register range = {.range = {(uintptr_t)at, page},
					.mode = UFFDIO_REGISTER_MODE_MISSING};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);

	if (fd < 0 || ioctl(fd, UFFDIO_API, &api))
		exit(CANNOT);
	if (mmap(at, page, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1,
		 0) != at ||
	    ioctl(fd, UFFDIO_REGISTER, &range))
		exit(CANNOT);
	return fd;
}

static void map_file(const char *path, char *at, size_t page)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || mmap(at, page, PROT_READ, MAP_FIXED | MAP_PRIVATE, fd, 0) != at)
		exit(CANNOT);
	close(fd);
}

static void answer(int fd, char *at, size_t page)
{
	struct uffdio_zeropage zero = {.range = {(uintptr_t)at, page}};

	if (ioctl(fd, UFFDIO_ZEROPAGE, &zero))
		_exit(1);
}

/* Another process has the file, too: a reader of the page waits as long as it is open. */
static void keep_after_death(void)
{
	char byte;

	if (fork())
		return;
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	_exit(0);
}

int main(int argc, char **argv)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *padding = getenv("PADDING");
	char *at = NULL, line[8];
	bool orphan;
	int fd = -1;
	uid_t uid;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (argc < 3)
		return 2;
	uid = (uid_t)strtoul(argv[2], NULL, 10); /* the last that is needed of the words */
	orphan = !strcmp(argv[1], "orphan-words");
	if ((orphan || !strcmp(argv[1], "silent-words")) && argc > 3)
		at = page_in(argv[0], page); /* within what is read of a command line */
	else if (!strcmp(argv[1], "silent-environment") && padding)
		at = page_in(padding, page);
	else if (strcmp(argv[1], "plain") != 0)
		return 2;
	if (at && argc > 4)
		map_file(argv[4], at, page);
	else if (at)
		fd = take_away(at, page);
	if (uid && (setgroups(0, NULL) || setgid(uid) || setuid(uid)))
		return CANNOT;
	prctl(PR_SET_DUMPABLE, 1);
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* which a change of user takes back */
	if (orphan)
		keep_after_death();
	if (write(STDOUT_FILENO, "ready\n", 6) != 6)
		return 1;
	while (!orphan && read(STDIN_FILENO, line, sizeof line) > 0)
		if (fd >= 0)
			answer(fd, at, page);
	for (;;)
		pause();
}
