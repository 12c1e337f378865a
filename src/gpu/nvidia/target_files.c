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

#include "base/clock.h"
#include "base/log.h"
#include "base/process.h"

#define LISTED_PER_CLOCK 16                /* descriptors between two readings of the clock */
#define MPS_SERVER       "nvidia-cuda-mps" /* "nvidia-cuda-mps-server", cut at 15 characters */

static int compare_int(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

int gp_nv_listing_begin(struct gp_nv_listing *l, pid_t pid)
{
	char path[64];

	gp_nv_listing_end(l);
	snprintf(path, sizeof path, "/proc/%d/fd", pid);
	*l = (struct gp_nv_listing){.pid = pid, .dir = opendir(path)};
	if (!l->dir)
		return errno == ENOENT ? -ESRCH : -errno;
	return 0;
}

static void list_entry(struct gp_nv_listing *l, const char *name)
{
	char link_text[256];
	ssize_t n;
	int file;

	if (!isdigit((unsigned char)name[0]))
		return;
	n = readlinkat(dirfd(l->dir), name, link_text, sizeof link_text - 1);
	if (n < 0)
		return;
	link_text[n] = 0;
	if (!strcmp(link_text, "/dev/nvidia-uvm"))
		l->uses_cuda = true;
	if (l->n == GP_NV_FILES_MAX || !gp_nv_has_control_name(link_text))
		return;
	file = (int)strtol(name, NULL, 10);
	if (gp_nv_is_control_file(&l->mounts, l->pid, file))
		l->file[l->n++] = file;
}

bool gp_nv_listing_step(struct gp_nv_listing *l, uint64_t until_ns)
{
	const struct dirent *entry;

	for (unsigned i = 1; l->dir; i++) {
		entry = readdir(l->dir);
		if (entry) {
			list_entry(l, entry->d_name);
			if (i % LISTED_PER_CLOCK == 0 && gp_monotonic_ns() >= until_ns)
				return true;
			continue;
		}
		closedir(l->dir);
		l->dir = NULL;
		qsort(l->file, l->n, sizeof *l->file, compare_int);
	}
	return false;
}

void gp_nv_listing_end(struct gp_nv_listing *l)
{
	if (l->dir)
		closedir(l->dir);
	gp_nv_mounts_close(&l->mounts);
	*l = (struct gp_nv_listing){0};
}

/* The target takes the files and the mounts of a complete listing. */
static void take_listing(struct gp_nv_target *t, struct gp_nv_listing *l)
{
	gp_nv_target_give_back(t);
	gp_nv_mounts_close(&t->mounts);
	t->mounts = l->mounts;
	l->mounts = (struct gp_nv_mounts){0};
	t->uses_cuda = l->uses_cuda;
	t->nfiles = l->n;
	for (unsigned i = 0; i < l->n; i++) {
		t->file[i] = l->file[i];
		t->borrowed[i] = -1;
	}
}

static int list_all(struct gp_nv_target *t, struct gp_error *err)
{
	int r = gp_nv_listing_begin(&t->listing, t->pid);

	if (r == -EACCES || r == -EPERM)
		return gp_process_denied(err, t->pid, r);
	gp_nv_listing_step(&t->listing, GP_NEVER);
	return r;
}

int gp_nv_target_open(struct gp_nv_target *t, pid_t pid, struct gp_nv_listing *listing,
		      struct gp_error *err)
{
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
	r = listing ? 0 : list_all(t, err);
	if (r == -EACCES || r == -EPERM)
		goto fail;
	take_listing(t, listing ? listing : &t->listing);
	if (!r && !t->nfiles)
		r = -ENODEV;
	if (r) {
		gp_fail(err, r, "process %d does not use an NVIDIA GPU", pid);
		goto fail;
	}
	gp_process_name(pid, t->name, sizeof t->name);
	t->is_mps = !strncmp(t->name, MPS_SERVER, strlen(MPS_SERVER));
	return 0;
fail:
	gp_nv_target_close(t);
	return r;
}

void gp_nv_target_close(struct gp_nv_target *t)
{
	gp_nv_target_give_back(t);
	if (t->pidfd >= 0)
		close(t->pidfd);
	t->pidfd = -1;
	gp_nv_listing_end(&t->listing);
	gp_nv_mounts_close(&t->mounts);
	for (unsigned i = 0; i < t->nclients; i++)
		free(t->client[i].object);
	free(t->client);
	free(t->group);
	t->client = NULL;
	t->group = NULL;
	t->nclients = t->ngroups = t->nfiles = 0;
}

bool gp_nv_target_refresh_files(struct gp_nv_target *t, uint64_t until_ns)
{
	struct gp_nv_listing *l = &t->listing;

	if (!l->dir && gp_nv_listing_begin(l, t->pid))
		return false;
	if (gp_nv_listing_step(l, until_ns) || gp_pidfd_ended(t->pidfd))
		return false;
	t->uses_cuda = l->uses_cuda;
	if (l->n == t->nfiles && !memcmp(l->file, t->file, l->n * sizeof *t->file)) {
		gp_nv_listing_end(l);
		return false;
	}
	take_listing(t, l);
	return true;
}

/*
 * Duplicates one file. Between the check and the duplication the process can replace the file by
 * one whose close() waits for ever. Such a duplicate stays open, and the process is left alone.
 */
static int borrow_file(struct gp_nv_target *t, int file)
{
	int fd;

	if (t->distrusted)
		return -EPERM;
	if (!gp_nv_is_on_mounts(&t->mounts, t->pid, file))
		return -EBADF;
	fd = gp_pidfd_getfd(t->pidfd, file);
	if (fd < 0)
		return fd;
	if (!gp_nv_is_on_mounts(&t->mounts, getpid(), fd)) {
		t->distrusted = true;
		gp_log(GP_LOG_WARN, "file.replaced", "pid=%d file=%d", t->pid, file);
		return -EPERM;
	}
	if (gp_rm_is_control_fd(fd))
		return fd;
	close(fd);
	return -EBADF;
}

int gp_nv_target_borrow(struct gp_nv_target *t)
{
	int r = -ESRCH;
	unsigned got = 0;

	if (gp_pidfd_ended(t->pidfd))
		return -ESRCH;
	for (unsigned i = 0; i < t->nfiles; i++) {
		if (t->borrowed[i] < 0)
			t->borrowed[i] = borrow_file(t, t->file[i]);
		if (t->borrowed[i] >= 0) {
			got++;
			continue;
		}
		r = t->borrowed[i];
		t->borrowed[i] = -1;
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
