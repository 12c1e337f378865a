/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mute-mount FOLDER: mounts a FUSE file system over the folder, in the mount namespace of the
 * caller. It takes every request and answers none, so a process that uses the folder waits in the
 * kernel, and SIGKILL does not end the wait. The end of this program does.
 */
#include <fcntl.h>
#include <linux/fuse.h>
#include <stdio.h>
#include <sys/mount.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	static char request[FUSE_MIN_READ_BUFFER + 65536];
	const struct fuse_in_header *head = (const void *)request;
	struct {
		struct fuse_out_header head;
		struct fuse_init_out init;
	} answer = {{.len = sizeof answer},
		    {.major = FUSE_KERNEL_VERSION,
		     .minor = FUSE_KERNEL_MINOR_VERSION,
		     .max_write = 4096}};
	int fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	char options[64];

	snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=0,group_id=0", fuse);
	if (argc != 2 || fuse < 0 || mount("mute", argv[1], "fuse", 0, options)) {
		perror("mute-mount");
		return 1;
	}
	while (read(fuse, request, sizeof request) > 0) {
		if (head->opcode != FUSE_INIT)
			continue;
		answer.head.unique = head->unique;
		if (write(fuse, &answer, sizeof answer) != sizeof answer)
			break;
	}
	return 1;
}
