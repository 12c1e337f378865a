/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/amd/handshake.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "gpu/amd/kfd_abi.h"

#define LOOK_US   1000 /* from one look at the threads to the next */
#define LOOKS_MAX 10

enum handshake { NOT_IN_IT, MAY_BE, IN_IT };

/* "16 0x3 0xc0104b25 ...": the call that a thread is in and its first arguments, or "running". */
static enum handshake read_call(const char *text)
{
	char *end;
	unsigned long number = strtoul(text, &end, 10);

	if (end == text)
		return MAY_BE;
	if (number != SYS_ioctl)
		return NOT_IN_IT;
	strtoul(end, &end, 16);
	return strtoul(end, NULL, 16) == KFD_IOC_RUNTIME_ENABLE ? IN_IT : NOT_IN_IT;
}

/* Whether a thread of the target is in the call with which its runtime starts or ends. */
static enum handshake look_at_threads(pid_t pid)
{
	enum handshake found = NOT_IN_IT;
	char path[320], text[128];
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof path, "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && found != IN_IT && (entry = readdir(dir))) {
		enum handshake this = NOT_IN_IT;
		FILE *f;

		snprintf(path, sizeof path, "/proc/%d/task/%s/syscall", pid, entry->d_name);
		f = fopen(path, "re");
		if (!f)
			continue;
		if (fgets(text, sizeof text, f))
			this = read_call(text);
		found = this > found ? this : found;
		fclose(f);
	}
	if (dir)
		closedir(dir);
	return found;
}

bool gp_amd_is_in_handshake(pid_t pid)
{
	unsigned seen = 0;

	for (int i = 0; i < LOOKS_MAX && seen < 2; i++) {
		enum handshake state = look_at_threads(pid);

		if (state == NOT_IN_IT)
			return false;
		seen += state == IN_IT;
		usleep(LOOK_US);
	}
	return seen >= 2;
}
