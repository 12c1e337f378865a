/* SPDX-License-Identifier: Apache-2.0 */
/* The control files of a process, and duplicates of them for the duration of an operation. */
#include "gpu/nvidia/target.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/inquiry.h"
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
	int fd;

	gp_nv_listing_end(l);
	snprintf(path, sizeof path, "/proc/%d/fd", pid);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	close(fd);
	*l = (struct gp_nv_listing){.pid = pid, .under_way = true};
	return 0;
}

/* An inquiry: a part of a list of files. */
struct part {
	pid_t pid;
	uint64_t until_ns;
	int64_t position;
	bool ended, started, uses_cuda; /* out */
	int error;                      /* out */
	unsigned n;                     /* out: files with the name of the control file, */
	int file[GP_NV_FILES_MAX];      /* each opened with O_PATH */
};

/* Opens a file that may be the control file. -errno: not known. */
static int list_entry(struct part *part, int dir, const char *name, struct gp_inquiry_files *files)
{
	char link_text[256];
	ssize_t n;
	int fd;

	if (!isdigit((unsigned char)name[0]))
		return 0;
	n = readlinkat(dir, name, link_text, sizeof link_text - 1);
	/* ENOENT: closed meanwhile. No device file has a path that is too long for the kernel. */
	if (n < 0)
		return errno == ENOENT || errno == ENAMETOOLONG ? 0 : -errno;
	link_text[n] = 0;
	if (!strcmp(link_text, "/dev/nvidia-uvm"))
		part->uses_cuda = true;
	if (!gp_nv_has_control_name(link_text))
		return 0;
	fd = openat(dir, name, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	part->file[part->n++] = (int)strtol(name, NULL, 10);
	files->fd[files->n++] = fd;
	return 0;
}

static void list_entries(struct part *part, int dir, struct gp_inquiry_files *files)
{
	_Alignas(struct gp_directory_entry) char list[2048];
	unsigned entries = 0;
	long n;

	while ((n = syscall(SYS_getdents64, dir, list, sizeof list)) > 0)
		for (long at = 0; at < n;) {
			const struct gp_directory_entry *e = (const void *)(list + at);
			int r = list_entry(part, dir, e->name, files);

			at += e->size;
			part->started = true;
			part->position = e->offset;
			if (r)
				part->error = r;
			if (part->n == GP_NV_FILES_MAX || (++entries % LISTED_PER_CLOCK == 0 &&
							   gp_monotonic_ns() >= part->until_ns))
				return;
		}
	part->ended = true;
	if (n < 0)
		part->error = -errno;
}

static int list_part(void *data, struct gp_inquiry_files *files)
{
	struct part *part = data;
	char path[64];
	int dir;

	snprintf(path, sizeof path, "/proc/%d/fd", part->pid);
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	if (lseek(dir, part->position, SEEK_SET) < 0)
		part->error = -errno;
	else
		list_entries(part, dir, files);
	part->ended |= part->error && !part->started; /* else the next part begins here again */
	close(dir);
	return 0;
}

static void examine_part(struct gp_nv_listing *l, const struct part *part,
			 const struct gp_inquiry_files *files)
{
	for (unsigned i = 0; i < files->n; i++) {
		int is;

		if (l->n == GP_NV_FILES_MAX) {
			close(files->fd[i]);
			continue;
		}
		is = gp_nv_is_control_file(&l->mounts, l->pid, files->fd[i]);
		if (is > 0)
			l->file[l->n++] = part->file[i];
		else if (is < 0)
			l->error = is;
	}
	if (files->n < part->n) /* no descriptor is left here */
		l->error = -EMFILE;
}

bool gp_nv_listing_step(struct gp_nv_listing *l, uint64_t until_ns)
{
	while (l->under_way) {
		struct part part = {.pid = l->pid, .until_ns = until_ns, .position = l->position};
		struct gp_inquiry_files files = {0};
		int r = gp_inquire(l->pid, list_part, &part, sizeof part, &files);

		examine_part(l, &part, &files);
		l->started |= part.started;
		l->uses_cuda |= part.uses_cuda;
		l->position = part.position;
		if (r || part.error)
			l->error = r ? r : part.error;
		if (!r && !part.ended) {
			if (gp_monotonic_ns() >= until_ns)
				return true;
			continue;
		}
		if (!l->error && !l->started) /* every directory has "." */
			l->error = -EIO;
		l->under_way = false;
		qsort(l->file, l->n, sizeof *l->file, compare_int);
	}
	return false;
}

void gp_nv_listing_end(struct gp_nv_listing *l)
{
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
	if (code == -ETIMEDOUT)
		return gp_process_silent(err, pid, code);
	return gp_fail(err, code, "the files of process %d cannot be examined: %s", pid,
		       gp_error_name(code));
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
	/* The open pidfd keeps the pid from being reused before the start time is read. */
	r = gp_process_read_start_time(pid, &t->start_time);
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
		gp_nv_forget_objects(&t->client[i]);
	free(t->client);
	free(t->group);
	t->client = NULL;
	t->group = NULL;
	t->nclients = t->ngroups = t->nfiles = 0;
}

bool gp_nv_target_refresh_files(struct gp_nv_target *t, uint64_t until_ns)
{
	struct gp_nv_listing *l = &t->listing;

	if (!l->under_way && gp_nv_listing_begin(l, t->pid))
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

/* Duplicates the files that are not borrowed yet. A process that replaced a file meanwhile is left
 * alone from then on. */
static int borrow_missing(struct gp_nv_target *t, struct gp_nv_duplicates *d)
{
	struct gp_inquiry_files files = {0};
	unsigned next = 0;
	int r;

	for (unsigned i = 0; i < t->nfiles; i++)
		if (t->borrowed[i] < 0)
			d->file[d->n++] = t->file[i];
	r = d->n ? gp_inquire(t->pid, gp_nv_duplicate, d, sizeof *d, &files) : 0;
	if (!r && d->replaced) {
		t->distrusted = true;
		gp_log(GP_LOG_WARN, "file.replaced", "pid=%d", t->pid);
		gp_inquiry_blame(t->pid);
	}
	if (gp_pidfd_ended(t->pidfd)) /* the files may be those of another process */
		r = -ESRCH;
	for (unsigned i = 0, k = 0; i < t->nfiles && !r; i++) {
		if (t->borrowed[i] >= 0)
			continue;
		if (!d->error[k++])
			t->borrowed[i] = next < files.n ? files.fd[next++] : -1;
	}
	for (; next < files.n; next++)
		close(files.fd[next]);
	return r;
}

int gp_nv_target_borrow(struct gp_nv_target *t)
{
	struct gp_nv_duplicates d = {.pid = t->pid, .mounts = t->mounts};
	unsigned got = 0;
	int r;

	if (gp_pidfd_ended(t->pidfd))
		return -ESRCH;
	r = t->distrusted ? -EPERM : borrow_missing(t, &d);
	if (r == -ESRCH)
		return r;
	t->borrow_error = r;
	for (unsigned i = 0; i < d.n && !r; i++)
		if (d.error[i] && d.error[i] != -EBADF) /* EBADF: the process has closed it */
			t->borrow_error = d.error[i];
	for (unsigned i = 0; i < t->nfiles; i++)
		got += t->borrowed[i] >= 0;
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
