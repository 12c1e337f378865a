/* SPDX-License-Identifier: Apache-2.0 */
/* The control files of a process, and duplicates of them for the duration of an operation. */
#include "gpu/nvidia/target.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/process.h"

#define MPS_SERVER "nvidia-cuda-mps" /* "nvidia-cuda-mps-server", cut at 15 characters */

struct file_list {
	unsigned n;
	int file[GP_NV_FILES_MAX];
	bool uses_cuda;
};

static int compare_int(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* The descriptors of a process that are control files, in order. 0 or -errno. */
static int list_files(pid_t pid, struct file_list *list)
{
	char path[64], link_text[256];
	const struct dirent *entry;
	DIR *dir;

	*list = (struct file_list){0};
	snprintf(path, sizeof path, "/proc/%d/fd", pid);
	dir = opendir(path);
	if (!dir)
		return errno == ENOENT ? -ESRCH : -errno;
	while ((entry = readdir(dir))) {
		ssize_t n;

		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		n = readlinkat(dirfd(dir), entry->d_name, link_text, sizeof link_text - 1);
		if (n < 0)
			continue;
		link_text[n] = 0;
		if (!strcmp(link_text, "/dev/nvidia-uvm"))
			list->uses_cuda = true;
		snprintf(path, sizeof path, "/proc/%d/fd/%.10s", pid, entry->d_name);
		if (list->n < GP_NV_FILES_MAX && gp_rm_is_control_file(link_text, path))
			list->file[list->n++] = (int)strtol(entry->d_name, NULL, 10);
	}
	closedir(dir);
	qsort(list->file, list->n, sizeof *list->file, compare_int);
	return 0;
}

int gp_nv_target_open(struct gp_nv_target *t, pid_t pid, struct gp_error *err)
{
	struct file_list list;
	int r;

	*t = (struct gp_nv_target){.pid = pid, .pidfd = gp_pidfd_open(pid)};
	if (t->pidfd < 0)
		return gp_fail(err, -ESRCH, "there is no process %d", pid);
	/* The open pidfd keeps the pid from being reused before the start time is read. */
	t->start_time = gp_process_start_time(pid);
	if (!t->start_time || gp_pidfd_ended(t->pidfd)) {
		r = gp_fail(err, -ESRCH, "process %d has ended", pid);
		goto fail;
	}
	r = list_files(pid, &list);
	if (r == -EACCES || r == -EPERM) {
		r = gp_process_denied(err, pid, r);
		goto fail;
	}
	if (!r && !list.n)
		r = -ENODEV;
	if (r) {
		gp_fail(err, r, "process %d does not use an NVIDIA GPU", pid);
		goto fail;
	}
	gp_process_name(pid, t->name, sizeof t->name);
	t->is_mps = !strncmp(t->name, MPS_SERVER, strlen(MPS_SERVER));
	t->uses_cuda = list.uses_cuda;
	t->nfiles = list.n;
	for (unsigned i = 0; i < list.n; i++) {
		t->file[i] = list.file[i];
		t->borrowed[i] = -1;
	}
	return 0;
fail:
	close(t->pidfd);
	t->pidfd = -1;
	return r;
}

void gp_nv_target_close(struct gp_nv_target *t)
{
	gp_nv_target_give_back(t);
	if (t->pidfd >= 0)
		close(t->pidfd);
	t->pidfd = -1;
	for (unsigned i = 0; i < t->nclients; i++)
		free(t->client[i].object);
	free(t->client);
	free(t->group);
	t->client = NULL;
	t->group = NULL;
	t->nclients = t->ngroups = t->nfiles = 0;
}

bool gp_nv_target_refresh_files(struct gp_nv_target *t)
{
	struct file_list list;

	if (list_files(t->pid, &list) || gp_pidfd_ended(t->pidfd))
		return false;
	t->uses_cuda = list.uses_cuda;
	if (list.n == t->nfiles && !memcmp(list.file, t->file, list.n * sizeof *t->file))
		return false;
	gp_nv_target_give_back(t);
	t->nfiles = list.n;
	for (unsigned i = 0; i < list.n; i++) {
		t->file[i] = list.file[i];
		t->borrowed[i] = -1;
	}
	return true;
}

int gp_nv_target_borrow(struct gp_nv_target *t)
{
	int r = -ESRCH;
	unsigned got = 0;

	if (gp_pidfd_ended(t->pidfd))
		return -ESRCH;
	for (unsigned i = 0; i < t->nfiles; i++) {
		if (t->borrowed[i] >= 0) {
			got++;
			continue;
		}
		t->borrowed[i] = gp_pidfd_getfd(t->pidfd, t->file[i]);
		if (t->borrowed[i] < 0) {
			r = t->borrowed[i];
			t->borrowed[i] = -1;
		} else if (!gp_rm_is_control_fd(t->borrowed[i])) {
			/* The target closed the file and reused its number. */
			close(t->borrowed[i]);
			t->borrowed[i] = -1;
		} else {
			got++;
		}
	}
	return got ? 0 : r == -EBADF ? -ESRCH : r;
}

void gp_nv_target_give_back(struct gp_nv_target *t)
{
	for (unsigned i = 0; i < t->nfiles; i++) {
		if (t->borrowed[i] >= 0)
			close(t->borrowed[i]);
		t->borrowed[i] = -1;
	}
}
