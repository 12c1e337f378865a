/* SPDX-License-Identifier: Apache-2.0 */
#include "undo/undo.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/process.h"
#include "base/run_dir.h"

#define MAGIC   0x6f646e7567707067ull /* "gpppundo" */
#define VERSION 1

enum slot_state { FREE, WRITING, READY };

/* The state: 8 bits of enum slot_state, 24 of a number that grows with every change, 32 of who
 * writes. Atomic operations only. */
struct slot {
	uint64_t state;
	struct gp_undo_entry entry;
};

static enum slot_state kind(uint64_t state)
{
	return (enum slot_state)(state & 0xff);
}

static uint64_t next_state(uint64_t state, enum slot_state kind, pid_t writer)
{
	return ((state + 0x100) & 0xffffff00u) | kind | (uint64_t)(uint32_t)writer << 32;
}

/* From what it was to being written by us; false: somebody was faster. */
static bool begin_change(struct slot *s, uint64_t was)
{
	return __atomic_compare_exchange_n(&s->state, &was, next_state(was, WRITING, getpid()),
	                                   false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static void end_change(struct slot *s, enum slot_state kind)
{
	uint64_t state = __atomic_load_n(&s->state, __ATOMIC_RELAXED);

	__atomic_store_n(&s->state, next_state(state, kind, 0), __ATOMIC_RELEASE);
}

struct file {
	uint64_t magic;
	uint32_t version;
	uint32_t slots;
	uint64_t epoch;
	struct slot slot[GP_UNDO_SLOTS];
};

struct gp_undo_file {
	struct file *map;
};

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

/* A new file is all zero: whoever comes first writes the head, and all write the same. Whoever died
 * before the end of that left no magic number. */
static int check_head(struct file *f, const char *path, struct gp_error *err)
{
	if (!__atomic_load_n(&f->magic, __ATOMIC_ACQUIRE)) {
		f->version = VERSION;
		f->slots = GP_UNDO_SLOTS;
		__atomic_store_n(&f->magic, MAGIC, __ATOMIC_RELEASE);
	}
	if (f->magic != MAGIC || f->version != VERSION || f->slots != GP_UNDO_SLOTS)
		return gp_fail(err, -EPROTO,
		               "%s is not an undo file of this version; once nothing is held, "
		               "remove it",
		               path);
	return 0;
}

int gp_undo_open(struct gp_undo_file **file, bool create, struct gp_error *err)
{
	char path[GP_UNDO_PATH_SIZE];
	struct stat s;
	struct file *map;
	int fd, r;

	*file = NULL;
	fd = open_file(gp_undo_path(path, sizeof path), create, err);
	if (fd < 0)
		return gp_fail(err, fd, "cannot open %s: %s%s", path, gp_error_name(fd),
		               fd == -EACCES ? "; run as root" : "");
	r = fstat(fd, &s) ? -errno : 0;
	if (!r && (!S_ISREG(s.st_mode) || s.st_uid != geteuid() || (s.st_mode & 022)))
		r = gp_fail(err, -EPERM, "%s is not a file that only we may write", path);
	if (!r && s.st_size < (off_t)sizeof(struct file) && ftruncate(fd, sizeof(struct file)))
		r = -errno;
	map = r ? MAP_FAILED : mmap(NULL, sizeof *map, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (!r && map == MAP_FAILED)
		r = -errno;
	close(fd);
	if (r)
		return gp_fail(err, r, "cannot use %s: %s", path, gp_error_name(r));
	r = check_head(map, path, err);
	*file = r ? NULL : calloc(1, sizeof **file);
	if (!*file) {
		munmap(map, sizeof *map);
		return r ? r : -ENOMEM;
	}
	(*file)->map = map;
	return 0;
}

void gp_undo_close(struct gp_undo_file *file)
{
	if (!file)
		return;
	munmap(file->map, sizeof *file->map);
	free(file);
}

/* The record and the state it was read in; false: there is none. */
static bool read_slot(const struct slot *s, struct gp_undo_entry *entry, uint64_t *state)
{
	*state = __atomic_load_n(&s->state, __ATOMIC_ACQUIRE);
	if (kind(*state) != READY)
		return false;
	*entry = s->entry;
	entry->backend[sizeof entry->backend - 1] = 0;
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return __atomic_load_n(&s->state, __ATOMIC_RELAXED) == *state; /* not another by now */
}

bool gp_undo_get(const struct gp_undo_file *file, unsigned slot, struct gp_undo_entry *entry)
{
	uint64_t state;

	return read_slot(&file->map->slot[slot], entry, &state);
}

bool gp_undo_holder_lives(const struct gp_undo_entry *entry)
{
	return entry->holder > 0 &&
	       gp_process_start_time(entry->holder) == entry->holder_start_time;
}

static void write_holder(struct gp_undo_entry *entry)
{
	entry->holder = getpid();
	entry->holder_start_time = gp_process_start_time(getpid());
}

/* A record of the same task gets a new holder: its slot, -EBUSY, or -1 when there is none. */
static int take_over(struct gp_undo_file *file, const char *backend, const struct gp_undo *undo)
{
	struct gp_undo_entry e;
	uint64_t state;

	for (unsigned i = 0; i < GP_UNDO_SLOTS; i++) {
		struct slot *s = &file->map->slot[i];

		if (!read_slot(s, &e, &state) || e.undo.key != undo->key ||
		    e.undo.pid != undo->pid || e.undo.start_time != undo->start_time ||
		    strcmp(e.backend, backend) != 0)
			continue;
		if (e.holder == getpid())
			return (int)i;
		if (gp_undo_holder_lives(&e) || !begin_change(s, state))
			return -EBUSY;
		write_holder(&s->entry);
		end_change(s, READY);
		return (int)i;
	}
	return -1;
}

/* Takes a free slot, or one whose writer died half way. */
static int claim(struct gp_undo_file *file)
{
	for (unsigned i = 0; i < GP_UNDO_SLOTS; i++) {
		struct slot *s = &file->map->slot[i];
		uint64_t state = __atomic_load_n(&s->state, __ATOMIC_ACQUIRE);

		if (kind(state) == READY ||
		    (kind(state) == WRITING && gp_process_start_time((pid_t)(state >> 32))))
			continue;
		if (begin_change(s, state))
			return (int)i;
	}
	return -ENOSPC;
}

int gp_undo_put(struct gp_undo_file *file, const char *backend, const struct gp_undo *undo)
{
	int slot = take_over(file, backend, undo);
	struct slot *s;

	if (slot != -1)
		return slot;
	slot = claim(file);
	if (slot < 0)
		return slot;
	s = &file->map->slot[slot];
	memset(&s->entry, 0, sizeof s->entry);
	snprintf(s->entry.backend, sizeof s->entry.backend, "%s", backend);
	write_holder(&s->entry);
	s->entry.undo = *undo;
	end_change(s, READY);
	return slot;
}

void gp_undo_drop(struct gp_undo_file *file, unsigned slot)
{
	end_change(&file->map->slot[slot], FREE);
}

bool gp_undo_drop_same(struct gp_undo_file *file, unsigned slot, const struct gp_undo_entry *was)
{
	struct slot *s = &file->map->slot[slot];
	struct gp_undo_entry e;
	uint64_t state;

	if (!read_slot(s, &e, &state) || e.holder != was->holder ||
	    e.holder_start_time != was->holder_start_time || e.undo.key != was->undo.key ||
	    e.undo.pid != was->undo.pid || e.undo.start_time != was->undo.start_time ||
	    !begin_change(s, state))
		return false;
	end_change(s, FREE);
	return true;
}

uint64_t gp_undo_epoch(const struct gp_undo_file *file)
{
	return __atomic_load_n(&file->map->epoch, __ATOMIC_ACQUIRE);
}

void gp_undo_bump(struct gp_undo_file *file)
{
	__atomic_add_fetch(&file->map->epoch, 1, __ATOMIC_ACQ_REL);
}
