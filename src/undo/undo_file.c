/* SPDX-License-Identifier: Apache-2.0 */
/* The undo file: its path, the checks of its owner, and files of another version. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process.h"
#include "base/run_dir.h"
#include "undo/undo_layout.h"

#define OPEN_TRIES 16 /* while other processes replace the file */

/* Sizes in version 1; its head does not contain them. */
#define V1_HEAD_SIZE 24
#define V1_SLOT_SIZE 312

/* The path from the environment, or NULL. */
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

/* A path from GPREEMPT_UNDO gets its folder without the checks of gp_run_dir_make: the user chose
 * it. */
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
		mkdir(directory, 0755); /* it may exist already */
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

/* Checks that no other user may write to the file. */
static int check_file(int fd, const char *path, struct gp_error *err)
{
	struct stat s;

	if (fstat(fd, &s))
		return -errno;
	if (!S_ISREG(s.st_mode) || s.st_uid != geteuid() || (s.st_mode & 022))
		return gp_fail(err, -EPERM,
			       "%s is not a file that belongs to user %u and only that user may "
			       "write to; remove it",
			       path, geteuid());
	return 0;
}

/* Files of another version. */

/* Counts the records, at the offsets that the head gives. */
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

/* Removes the file unless another process has replaced it already: a process must not remove the
 * new file. */
static int remove_file(int fd, const char *path)
{
	struct stat mine, there;
	int r = 0;

	if (flock(fd, LOCK_EX) || fstat(fd, &mine))
		return -errno;
	if (!lstat(path, &there) && there.st_ino == mine.st_ino && there.st_dev == mine.st_dev &&
	    unlink(path))
		r = -errno;
	return r; /* closing the file unlocks it */
}

/* Allocates the whole file now: a write to a mapped page without disk space would raise SIGBUS. */
static int make_room(int fd)
{
	if (ftruncate(fd, sizeof(struct gp_undo_map)))
		return -errno;
	if (fallocate(fd, 0, 0, sizeof(struct gp_undo_map)) && errno != EOPNOTSUPP)
		return -errno;
	return 0;
}

/* Makes a truncated file a new one. Its records are lost, and the processes that use it must
 * notice: a new head has another time. */
static int renew_if_truncated(int fd)
{
	struct stat s = {0};
	int r = flock(fd, LOCK_EX) || fstat(fd, &s) ? -errno : 0;

	if (!r && s.st_size < (off_t)sizeof(struct gp_undo_map) && ftruncate(fd, 0))
		r = -errno;
	if (!r)
		r = make_room(fd);
	flock(fd, LOCK_UN);
	return r;
}

/* Checks the head of the file. 0: the file can be used; 1: it was removed, open it again; or
 * -errno. */
static int check_head(int fd, const char *path, struct gp_error *err)
{
	struct gp_undo_head head = {0};
	unsigned records;
	int r;

	if (pread(fd, &head, sizeof head, 0) < 0)
		return -errno;
	if (!head.magic) /* new, or its creator was killed before it wrote the magic number */
		return make_room(fd);
	if (head.magic == GP_UNDO_MAGIC && head.version == GP_UNDO_VERSION &&
	    head.slots == GP_UNDO_SLOTS && head.head_size == sizeof(struct gp_undo_head) &&
	    head.slot_size == sizeof(struct gp_undo_slot))
		return renew_if_truncated(fd);
	if (head.magic != GP_UNDO_MAGIC || head.version == GP_UNDO_VERSION)
		return gp_fail(err, -EPROTO,
			       "%s is not an undo file; remove it when no process is held", path);
	records = count_records(fd, &head);
	if (records)
		return gp_fail(err, -EPROTO,
			       "%s has version %u instead of %u, and it has %u record%s: run "
			       "gpreempt resume --all of the version that wrote it, or end the "
			       "held programs and remove the file",
			       path, head.version, GP_UNDO_VERSION, records,
			       records == 1 ? "" : "s");
	r = remove_file(fd, path);
	return r ? r : 1;
}

/* A new file is all zero. Several processes may write the head at the same time; all write the same
 * values, except that the time is the first process's. The magic number is written last. */
static void complete_head(struct gp_undo_head *head)
{
	uint64_t none = 0;

	if (__atomic_load_n(&head->magic, __ATOMIC_ACQUIRE))
		return;
	__atomic_compare_exchange_n(&head->made_ns, &none, gp_monotonic_ns(), false,
				    __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
	__atomic_store_n(&head->version, GP_UNDO_VERSION, __ATOMIC_RELAXED);
	__atomic_store_n(&head->slots, GP_UNDO_SLOTS, __ATOMIC_RELAXED);
	__atomic_store_n(&head->head_size, sizeof *head, __ATOMIC_RELAXED);
	__atomic_store_n(&head->slot_size, sizeof(struct gp_undo_slot), __ATOMIC_RELAXED);
	__atomic_store_n(&head->magic, GP_UNDO_MAGIC, __ATOMIC_RELEASE);
}

/* Truncated files. A signal handler has no argument, so the open files are in a global list. */

#define FILES_MAX 128

static struct gp_undo_file *files[FILES_MAX]; /* accessed with atomic operations only */

static void note_open(struct gp_undo_file *file)
{
	for (unsigned i = 0; i < FILES_MAX; i++) {
		struct gp_undo_file *none = NULL;

		if (__atomic_compare_exchange_n(&files[i], &none, file, false, __ATOMIC_ACQ_REL,
						__ATOMIC_RELAXED))
			return;
	}
}

static void note_closed(struct gp_undo_file *file)
{
	for (unsigned i = 0; i < FILES_MAX; i++) {
		struct gp_undo_file *this = file;

		__atomic_compare_exchange_n(&files[i], &this, NULL, false, __ATOMIC_ACQ_REL,
					    __ATOMIC_RELAXED);
	}
}

static void on_bus_error(int number, siginfo_t *info, void *context)
{
	(void)context;
	for (unsigned i = 0; i < FILES_MAX; i++) {
		struct gp_undo_file *file = __atomic_load_n(&files[i], __ATOMIC_ACQUIRE);
		uintptr_t at = (uintptr_t)info->si_addr;

		if (!file || at < (uintptr_t)file->map || at >= (uintptr_t)(file->map + 1))
			continue;
		file->is_lost = true;
		if (mmap(file->map, sizeof *file->map, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED)
			return;
	}
	signal(number, SIG_DFL); /* the access is repeated, and ends the process */
}

void gp_undo_survive_truncation(void)
{
	struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO};

	sigaction(SIGBUS, &action, NULL);
}

/* Opens the file, checks it and returns a descriptor, or -errno. */
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
	return gp_fail(err, -EAGAIN, "other processes keep replacing %s; try again", path);
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
		r = gp_fail(err, -errno, "cannot map %s: %s", path, gp_error_name(-errno));
	close(fd);
	if (r)
		return r;
	*file = calloc(1, sizeof **file);
	if (!*file) {
		munmap(map, sizeof *map);
		return gp_fail(err, -ENOMEM, "not enough memory to open the undo file");
	}
	**file = (struct gp_undo_file){.map = map,
				       .pid = getpid(),
				       .start_time = gp_process_start_time(getpid()),
				       .device = s.st_dev,
				       .inode = s.st_ino};
	note_open(*file);
	complete_head(&map->head);
	(*file)->made_ns = __atomic_load_n(&map->head.made_ns, __ATOMIC_ACQUIRE);
	return 0;
}

bool gp_undo_is_current(const struct gp_undo_file *file)
{
	char path[GP_UNDO_PATH_SIZE];
	struct stat s;

	return !lstat(gp_undo_path(path, sizeof path), &s) && s.st_dev == file->device &&
	       s.st_ino == file->inode && s.st_size >= (off_t)sizeof(struct gp_undo_map) &&
	       !file->is_lost &&
	       __atomic_load_n(&file->map->head.made_ns, __ATOMIC_ACQUIRE) == file->made_ns;
}

void gp_undo_close(struct gp_undo_file *file)
{
	if (!file)
		return;
	note_closed(file);
	munmap(file->map, sizeof *file->map);
	free(file);
}
