/* SPDX-License-Identifier: Apache-2.0 */
#include "freezer.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[128];

static bool put(const char *name, const char *text)
{
	char path[192];
	bool done;
	int fd;

	snprintf(path, sizeof path, "%s/%s", folder, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	done = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	close(fd);
	return done;
}

static bool is_frozen(void)
{
	char path[192], text[256] = "";
	int fd;

	snprintf(path, sizeof path, "%s/cgroup.events", folder);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, text, sizeof text - 1) < 0)
		text[0] = 0;
	if (fd >= 0)
		close(fd);
	return strstr(text, "frozen 1");
}

static bool make_folder(void)
{
	static const char *const mounts[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};

	for (unsigned i = 0; i < 2; i++) {
		char path[192];

		snprintf(folder, sizeof folder, "%s/gpreempt-test-%d", mounts[i], getpid());
		snprintf(path, sizeof path, "%s/cgroup.freeze", folder);
		if (!mkdir(folder, 0755) && !access(path, W_OK))
			return true;
		rmdir(folder);
	}
	folder[0] = 0;
	return false;
}

bool freezer_freeze(pid_t pid)
{
	char text[16];

	snprintf(text, sizeof text, "%d", pid);
	if (!make_folder() || !put("cgroup.procs", text) || !put("cgroup.freeze", "1"))
		return false;
	for (int i = 0; i < 5000 && !is_frozen(); i++)
		usleep(1000);
	return is_frozen();
}

void freezer_thaw(void)
{
	if (folder[0])
		put("cgroup.freeze", "0");
}

/* The kernel removes an ended process from its cgroup a moment later. */
void freezer_remove(void)
{
	freezer_thaw();
	for (int i = 0; i < 2000 && folder[0] && rmdir(folder); i++)
		usleep(1000);
	folder[0] = 0;
}
