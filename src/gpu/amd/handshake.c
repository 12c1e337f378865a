/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/amd/handshake.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/process.h"
#include "gpu/amd/kfd_abi.h"

#define CHECK_US   1000 /* between two checks of the threads */
#define CHECKS_MAX 10

enum handshake { HANDSHAKE_NO, HANDSHAKE_MAYBE, HANDSHAKE_YES };

/* Parses "16 0x3 0xc0104b25": the number and first arguments of a thread's system call. The text is
 * "running" for a thread outside of system calls. */
static enum handshake read_call(const char *text)
{
	char *end;
	unsigned long number = strtoul(text, &end, 10);

	if (end == text)
		return HANDSHAKE_MAYBE;
	if (number != SYS_ioctl)
		return HANDSHAKE_NO;
	strtoul(end, &end, 16);
	return strtoul(end, NULL, 16) == KFD_IOC_RUNTIME_ENABLE ? HANDSHAKE_YES : HANDSHAKE_NO;
}

/* Whether a thread of the target is in the call that starts or ends its runtime. */
static enum handshake check_threads(pid_t pid)
{
	enum handshake found = HANDSHAKE_NO;
	char path[32], text[128];
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof path, "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && found != HANDSHAKE_YES && (entry = readdir(dir))) {
		enum handshake this = HANDSHAKE_NO;

		snprintf(path, sizeof path, "task/%.11s/syscall", entry->d_name);
		if (gp_process_read(pid, path, text, sizeof text) > 0)
			this = read_call(text);
		found = this > found ? this : found;
	}
	if (dir)
		closedir(dir);
	return found;
}

bool gp_amd_is_in_handshake(pid_t pid)
{
	unsigned seen = 0;

	for (int i = 0; i < CHECKS_MAX && seen < 2; i++) {
		enum handshake state = check_threads(pid);

		if (state == HANDSHAKE_NO)
			return false;
		seen += state == HANDSHAKE_YES;
		usleep(CHECK_US);
	}
	return seen >= 2;
}
