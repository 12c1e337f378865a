/* SPDX-License-Identifier: Apache-2.0 */
/* The file itself: where it is, whose it must be, and what becomes of one of another version. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/process.h"
#include "base/run_dir.h"
#include "undo/undo_layout.h"

#define OPEN_TRIES 16 /* while others replace it */

/* Version 1 said neither of these in its head. */
#define V1_HEAD_SIZE 24
#define V1_SLOT_SIZE 312

/* NULL: not set. */
static const char *own_path(void)
{
	const char *path = secure_getenv("GPREEMPT_UNDO");

	return path && *path ? path : NULL;
}

const char *gp_undo_path(char *out, unsigned size)
{
	char dir[GP_RUN_DIR_SIZE];

	if (own_path())
		snprintf(out, size, "%s", own_path());
	else
		snprintf(out, size, "%s/undo", gp_run_dir(dir, sizeof dir));
	return out;
}

/* A file elsewhere has a folder of its own, which is as good as who named it. */
static int make_directory(const char *path, struct gp_error *err)
{
	char directory[GP_UNDO_PATH_SIZE];
	char *slash;

	if (!own_path())
		return gp_run_dir_make(err);
	snprintf(directory, sizeof directory, "%s", path);
	slash = strrchr(directory, '/');
	if (slash && slash != directory) {
		*slash = 0;
		mkdir(directory, 0755); /* it may be there */
	}
	return 0;
}

static int open_file(const char *path, bool create, struct gp_error *err)
{
	int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW, fd, r;

	fd = open(path, flags);
	if (fd >= 0 || errno != ENOENT || !create)
		return fd < 0 ? -errno : fd;
	r = make_directory(path, err);
	if (r)
		return r;
	fd = open(path, flags | O_CREAT, 0600);
	return fd < 0 ? -errno : fd;
}

/* Nobody else may write to it; room for the whole. */
static int check_file(int fd, const char *path, struct gp_error *err)
{
	struct stat s;

	if (fstat(fd, &s))
		return -errno;
	if (!S_ISREG(s.st_mode) || s.st_uid != geteuid() || (s.st_mode & 022))
		return gp_fail(err, -EPERM, "%s is not a file that only we may write", path);
	return 0;
}

/* ---- another version --------------------------------------------------------------------------
 */

/* How many records are in it, as far as its head tells where they are. */
static unsigned count_records(int fd, const struct gp_undo_head *head)
{
	off_t at = head->version > 1 ? head->head_size : V1_HEAD_SIZE;
	off_t step = head->version > 1 ? head->slot_size : V1_SLOT_SIZE;
	unsigned records = 0;
	uint64_t state;

	for (uint32_t i = 0; i < head->slots && step >= (off_t)sizeof state; i++, at += step) {
		if (pread(fd, &state, sizeof state, at) != sizeof state)
			break;
		records += (state & 0xff) >= GP_UNDO_READY;
	}
	return records;
}

/* Takes the file away, unless somebody has done so: two that replace it must not take each other's.
 */
static int remove_file(int fd, const char *path)
{
	struct stat mine, there;
	int r = 0;

	if (flock(fd, LOCK_EX) || fstat(fd, &mine))
		return -errno;
	if (!lstat(path, &there) && there.st_ino == mine.st_ino && there.st_dev == mine.st_dev &&
	    unlink(path))
		r = -errno;
	return r; /* who closes it unlocks it */
}

/* All of it, now: a page for which there is no room later kills who writes to it. */
static int make_room(int fd)
{
	if (ftruncate(fd, sizeof(struct gp_undo_map)))
		return -errno;
	if (fallocate(fd, 0, 0, sizeof(struct gp_undo_map)) && errno != EOPNOTSUPP)
		return -errno;
	return 0;
}

/* What to do with what is there: 0: use it; 1: it was replaced, open again; -errno. */
static int check_head(int fd, const char *path, struct gp_error *err)
{
	struct gp_undo_head head = {0};
	unsigned records;
	int r;

	if (pread(fd, &head, sizeof head, 0) < 0)
		return -errno;
	if (!head.magic) /* new, or who made it was killed before the end of that */
		return make_room(fd);
	if (head.magic == GP_UNDO_MAGIC && head.version == GP_UNDO_VERSION &&
	    head.slots == GP_UNDO_SLOTS && head.head_size == sizeof(struct gp_undo_head) &&
	    head.slot_size == sizeof(struct gp_undo_slot))
		return make_room(fd);
	if (head.magic != GP_UNDO_MAGIC || head.version == GP_UNDO_VERSION)
		return gp_fail(err, -EPROTO,
		               "%s is not an undo file; once nothing is held, remove it", path);
	records = count_records(fd, &head);
	if (records)
		return gp_fail(err, -EPROTO,
		               "%s is of version %u, this is %u, and it has %u record%s: run "
		               "gpreempt resume --all of the version that wrote it, or end the "
		               "programs that were held and remove it",
		               path, head.version, GP_UNDO_VERSION, records,
		               records == 1 ? "" : "s");
	r = remove_file(fd, path);
	return r ? r : 1;
}

/* ---- opening ----------------------------------------------------------------------------------
 */

/* A new file is all zero: whoever comes first writes the head, and all write the same. The magic
 * number is what comes last. */
static void complete_head(struct gp_undo_head *head)
{
	if (__atomic_load_n(&head->magic, __ATOMIC_ACQUIRE))
		return;
	__atomic_store_n(&head->version, GP_UNDO_VERSION, __ATOMIC_RELAXED);
	__atomic_store_n(&head->slots, GP_UNDO_SLOTS, __ATOMIC_RELAXED);
	__atomic_store_n(&head->head_size, sizeof *head, __ATOMIC_RELAXED);
	__atomic_store_n(&head->slot_size, sizeof(struct gp_undo_slot), __ATOMIC_RELAXED);
	__atomic_store_n(&head->magic, GP_UNDO_MAGIC, __ATOMIC_RELEASE);
}

/* A descriptor of a file that is good, or -errno. */
static int open_good(const char *path, bool create, struct gp_error *err)
{
	for (int i = 0; i < OPEN_TRIES; i++) {
		int fd = open_file(path, create, err), r;

		if (fd < 0)
			return gp_fail(err, fd, "cannot open %s: %s%s", path, gp_error_name(fd),
			               fd == -EACCES ? "; run as root" : "");
		r = check_file(fd, path, err);
		if (!r)
			r = check_head(fd, path, err);
		if (!r)
			return fd;
		close(fd);
		if (r < 0)
			return gp_fail(err, r, "cannot use %s: %s", path, gp_error_name(r));
	}
	return gp_fail(err, -EAGAIN, "%s is replaced again and again", path);
}

int gp_undo_open(struct gp_undo_file **file, bool create, struct gp_error *err)
{
	char path[GP_UNDO_PATH_SIZE];
	struct gp_undo_map *map;
	struct stat s;
	int fd, r = 0;

	*file = NULL;
	fd = open_good(gp_undo_path(path, sizeof path), create, err);
	if (fd < 0)
		return fd;
	map = fstat(fd, &s) ? MAP_FAILED
	                    : mmap(NULL, sizeof *map, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		r = gp_fail(err, -errno, "cannot use %s: %s", path, gp_error_name(-errno));
	close(fd);
	if (r)
		return r;
	*file = calloc(1, sizeof **file);
	if (!*file) {
		munmap(map, sizeof *map);
		return gp_fail(err, -ENOMEM, "no memory");
	}
	complete_head(&map->head);
	**file = (struct gp_undo_file){.map = map,
	                               .pid = getpid(),
	                               .start_time = gp_process_start_time(getpid()),
	                               .device = s.st_dev,
	                               .inode = s.st_ino};
	return 0;
}

bool gp_undo_is_current(const struct gp_undo_file *file)
{
	char path[GP_UNDO_PATH_SIZE];
	struct stat s;

	return !lstat(gp_undo_path(path, sizeof path), &s) && s.st_dev == file->device &&
	       s.st_ino == file->inode;
}

void gp_undo_close(struct gp_undo_file *file)
{
	if (!file)
		return;
	munmap(file->map, sizeof *file->map);
	free(file);
}
