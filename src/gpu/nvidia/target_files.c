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
	int file, is;
	ssize_t n;

	l->started = true;
	if (!isdigit((unsigned char)name[0]))
		return;
	n = readlinkat(dirfd(l->dir), name, link_text, sizeof link_text - 1);
	/* ENOENT: closed meanwhile. No device file has a path that is too long for the kernel. */
	if (n < 0 && errno != ENOENT && errno != ENAMETOOLONG)
		l->error = -errno;
	if (n < 0)
		return;
	link_text[n] = 0;
	if (!strcmp(link_text, "/dev/nvidia-uvm"))
		l->uses_cuda = true;
	if (l->n == GP_NV_FILES_MAX || !gp_nv_has_control_name(link_text))
		return;
	file = (int)strtol(name, NULL, 10);
	is = gp_nv_is_control_file(&l->mounts, l->pid, file);
	if (is > 0)
		l->file[l->n++] = file;
	else if (is < 0)
		l->error = is;
}

bool gp_nv_listing_step(struct gp_nv_listing *l, uint64_t until_ns)
{
	const struct dirent *entry;

	for (unsigned i = 1; l->dir; i++) {
		errno = 0;
		entry = readdir(l->dir);
		if (entry) {
			list_entry(l, entry->d_name);
			if (i % LISTED_PER_CLOCK == 0 && gp_monotonic_ns() >= until_ns)
				return true;
			continue;
		}
		if (errno || !l->started) /* every directory has "." */
			l->error = errno ? -errno : -EIO;
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

/* The target takes the files and the mounts of a listing that has ended. */
static void take_listing(struct gp_nv_target *t, struct gp_nv_listing *l)
{
	gp_nv_target_give_back(t);
	gp_nv_mounts_close(&t->mounts);
	t->mounts = l->mounts;
	l->mounts = (struct gp_nv_mounts){0};
	t->uses_cuda = l->uses_cuda;
	t->list_error = l->error;
	t->nfiles = l->n;
	for (unsigned i = 0; i < l->n; i++) {
		t->file[i] = l->file[i];
		t->borrowed[i] = -1;
	}
}

/* Writes the reason why a process has no control file, or none was found. Returns `code`. */
static int explain(struct gp_error *err, pid_t pid, int code)
{
	if (code == -EACCES || code == -EPERM)
		return gp_process_denied(err, pid, code);
	if (code == -ESRCH)
		return gp_fail(err, code, "process %d has ended", pid);
	if (code == -ENODEV)
		return gp_fail(err, code, "process %d does not use an NVIDIA GPU", pid);
	return gp_fail(err, code, "the files of process %d cannot be examined: %s", pid,
		       gp_error_name(code));
}

/* The open pidfd keeps the pid from being reused before the start time is read. */
static int read_start_time(struct gp_nv_target *t)
{
	errno = 0;
	t->start_time = gp_process_start_time(t->pid);
	if (t->start_time)
		return 0;
	return errno == ENOENT || !errno ? -ESRCH : -errno;
}

/* The process must have a control file, and must not have ended while it was examined. */
static int take_files(struct gp_nv_target *t, struct gp_nv_listing *listing)
{
	int r = 0;

	if (!listing) {
		listing = &t->listing;
		r = gp_nv_listing_begin(listing, t->pid);
		gp_nv_listing_step(listing, GP_NEVER);
	}
	if (!r)
		take_listing(t, listing);
	if (gp_pidfd_ended(t->pidfd))
		return -ESRCH;
	if (!r && !t->nfiles)
		r = t->list_error ? t->list_error : -ENODEV;
	return r;
}

int gp_nv_target_open(struct gp_nv_target *t, pid_t pid, struct gp_nv_listing *listing,
		      struct gp_error *err)
{
	int r;

	*t = (struct gp_nv_target){.pid = pid, .pidfd = gp_pidfd_open(pid)};
	if (t->pidfd == -ESRCH || t->pidfd == -EINVAL) /* EINVAL: the pid of a thread */
		return gp_fail(err, -ESRCH, "there is no process %d", pid);
	if (t->pidfd < 0)
		return explain(err, pid, t->pidfd);
	r = read_start_time(t);
	if (!r)
		r = take_files(t, listing);
	if (r) {
		gp_nv_target_close(t);
		return explain(err, pid, r);
	}
	gp_process_name(pid, t->name, sizeof t->name);
	t->is_mps = !strncmp(t->name, MPS_SERVER, strlen(MPS_SERVER));
	return 0;
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
	if (l->error && l->n < t->nfiles) { /* the known files stay: some may be among the others */
		gp_nv_listing_end(l);
		return false;
	}
	t->uses_cuda = l->uses_cuda;
	t->list_error = l->error;
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
	int fd, is;

	if (t->distrusted)
		return -EPERM;
	is = gp_nv_is_on_mounts(&t->mounts, t->pid, file);
	if (is <= 0)
		return is ? is : -EBADF;
	fd = gp_pidfd_getfd(t->pidfd, file);
	if (fd < 0)
		return fd;
	is = gp_nv_is_on_mounts(&t->mounts, getpid(), fd);
	if (is < 0) { /* not known, but it was a control file an instant ago: it can be closed */
		close(fd);
		return is;
	}
	if (!is) {
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
	unsigned got = 0;

	if (gp_pidfd_ended(t->pidfd))
		return -ESRCH;
	t->borrow_error = 0;
	for (unsigned i = 0; i < t->nfiles; i++) {
		if (t->borrowed[i] < 0)
			t->borrowed[i] = borrow_file(t, t->file[i]);
		if (t->borrowed[i] >= 0)
			got++;
		else if (t->borrowed[i] != -EBADF) /* the process has closed it */
			t->borrow_error = t->borrowed[i];
		if (t->borrowed[i] < 0)
			t->borrowed[i] = -1;
	}
	return got ? 0 : t->borrow_error ? t->borrow_error : -ESRCH;
}

void gp_nv_target_give_back(struct gp_nv_target *t)
{
	for (unsigned i = 0; i < t->nfiles; i++) {
		if (t->borrowed[i] >= 0)
			close(t->borrowed[i]);
		t->borrowed[i] = -1;
	}
}
