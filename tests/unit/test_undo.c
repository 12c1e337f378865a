/* SPDX-License-Identifier: Apache-2.0 */
/* The file of undo records: records survive their writer, and no other user's file is used. */
#include "undo_world.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "base/process.h"
#include "undo/undo_layout.h"

#define NOBODY 65534

static char dir[64], sub[80], path[96];

static int set_up(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/gp-undo-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(sub, sizeof sub, "%s/sub", dir);
	snprintf(path, sizeof path, "%s/undo", sub);
	return setenv("GPREEMPT_UNDO", path, 1);
}

static int tear_down(void **state)
{
	(void)state;
	unsetenv("GPREEMPT_RUN");
	unlink(path);
	rmdir(sub);
	return rmdir(dir);
}

static struct gp_undo_file *open_it(void)
{
	struct gp_undo_file *file = NULL;
	struct gp_error err = {0};

	if (gp_undo_open(&file, true, &err))
		fail_msg("%s", err.text);
	return file;
}

static void drop(struct gp_undo_file *file, unsigned slot)
{
	struct gp_undo_entry e;

	if (gp_undo_get(file, slot, &e))
		gp_undo_drop_same(file, slot, &e);
}

TEST_WITH(a_record_is_there_until_it_is_dropped, set_up, tear_down)
{
	struct gp_undo_file *file = open_it(), *other = open_it();
	struct gp_undo undo = record(5);
	struct gp_undo_entry e;
	int slot;

	assert_int_equal(count_records(file), 0);
	slot = gp_undo_put(file, "nvidia", &undo);
	assert_in_range(slot, 0, GP_UNDO_SLOTS - 1);
	assert_true(gp_undo_get(other, (unsigned)slot,
				&e)); /* every process that has the file sees it */
	assert_string_equal(e.backend, "nvidia");
	assert_int_equal(e.owner, getpid());
	assert_int_equal(e.owner_start_time, gp_process_start_time(getpid()));
	assert_int_equal(e.undo.key, 5);
	assert_true(is_whole(&e));
	drop(other, (unsigned)slot);
	assert_false(gp_undo_get(file, (unsigned)slot, &e));
	gp_undo_close(file);
	gp_undo_close(other);
	gp_undo_close(NULL);
}

TEST_WITH(the_older_record_of_a_task_stays_unless_it_proved_wrong, set_up, tear_down)
{
	struct gp_undo_file *file = open_it();
	struct gp_undo undo = record(5), newer = record(5);
	struct gp_undo_entry e;
	int slot = gp_undo_put(file, "nvidia", &undo);

	memset(newer.data, 0xee, sizeof newer.data);
	assert_int_equal(gp_undo_put(file, "nvidia", &newer), slot);
	assert_int_equal(count_records(file), 1);
	assert_true(gp_undo_get(file, (unsigned)slot, &e));
	assert_true(is_whole(&e));
	newer.corrected = true; /* the older one proved wrong */
	assert_int_equal(gp_undo_put(file, "nvidia", &newer), slot);
	assert_int_equal(count_records(file), 1);
	assert_true(gp_undo_get(file, (unsigned)slot, &e));
	assert_memory_equal(e.undo.data, newer.data, sizeof newer.data);
	/* A different back end, pid or start time means a different task. */
	assert_true(gp_undo_put(file, "amd", &undo) != slot);
	newer = undo;
	newer.pid = 99;
	assert_true(gp_undo_put(file, "nvidia", &newer) != slot);
	newer = undo;
	newer.start_time = 99;
	assert_true(gp_undo_put(file, "nvidia", &newer) != slot);
	assert_int_equal(count_records(file), 4);
	gp_undo_close(file);
}

TEST_WITH(the_slices_of_a_record_count_from_the_first_change_of_the_slice_on, set_up, tear_down)
{
	struct gp_undo_file *file = open_it();
	struct gp_undo hold = record(5), slice = record(5);
	struct gp_undo_entry e;
	int slot;

	hold.hold_only = true;
	slot = gp_undo_put(file, "nvidia", &hold);
	assert_true(gp_undo_get(file, (unsigned)slot, &e) && e.undo.hold_only);
	assert_int_equal(gp_undo_put(file, "nvidia", &slice), slot);
	assert_true(gp_undo_get(file, (unsigned)slot, &e) && !e.undo.hold_only);
	assert_int_equal(gp_undo_put(file, "nvidia", &hold), slot); /* also for a later hold */
	assert_true(gp_undo_get(file, (unsigned)slot, &e) && !e.undo.hold_only);
	assert_true(is_whole(&e));
	gp_undo_close(file);
}

TEST_WITH(slots_are_used_again_and_a_full_file_says_so, set_up, tear_down)
{
	struct gp_undo_file *file = open_it();
	struct gp_undo_entry e;

	for (uint64_t i = 0; i < GP_UNDO_SLOTS; i++) {
		struct gp_undo undo = record(i);

		assert_true(gp_undo_put(file, "x", &undo) >= 0);
	}
	for (int round = 0; round < 3; round++) {
		struct gp_undo undo = record(5000), again = record(7), was;

		assert_int_equal(gp_undo_put(file, "x", &undo), -ENOSPC);
		assert_true(gp_undo_put(file, "x", &again) >= 0); /* it has its place */
		assert_true(gp_undo_get(file, 300, &e));
		was = e.undo;
		drop(file, 300);
		assert_int_equal(gp_undo_put(file, "x", &undo), 300);
		drop(file, 300);
		assert_int_equal(gp_undo_put(file, "x", &was), 300);
	}
	for (unsigned i = 0; i < GP_UNDO_SLOTS; i++) {
		assert_true(gp_undo_get(file, i, &e));
		assert_true(is_whole(&e));
	}
	gp_undo_close(file);
}

TEST_WITH(an_epoch_grows_by_one_for_everybody, set_up, tear_down)
{
	struct gp_undo_file *file = open_it(), *other = open_it();
	uint64_t epoch = gp_undo_epoch(file);

	gp_undo_bump(file);
	assert_int_equal(gp_undo_epoch(other), epoch + 1);
	gp_undo_close(file);
	gp_undo_close(other);
}

TEST_WITH(records_survive_a_writer_that_is_killed, set_up, tear_down)
{
	struct gp_undo_file *file = open_it();
	struct gp_undo_entry e;
	unsigned all = 0;

	for (unsigned round = 0; round < 60; round++) {
		pid_t pid = fork();
		unsigned whole = 0;

		if (!pid) {
			struct gp_undo_file *mine;
			struct gp_undo undo;

			if (gp_undo_open(&mine, true, NULL))
				_exit(1);
			for (uint64_t i = 0;; i++) {
				int slot;

				undo = record(1000ull * round + i % 900);
				slot = gp_undo_put(mine, "x", &undo);
				if (slot >= 0 && i % 3)
					drop(mine, (unsigned)slot);
			}
		}
		while (!count_records(file)) /* it has begun */
			usleep(100);
		usleep(round * 37);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		for (unsigned i = 0; i < GP_UNDO_SLOTS; i++)
			if (gp_undo_get(file, i, &e)) {
				assert_true(is_whole(&e));
				assert_int_equal(e.owner, pid);
				whole++;
				drop(file, i);
			}
		all += whole;
	}
	assert_true(all > 0);
	/* Slots that were being written when their writer died are not lost. */
	for (uint64_t i = 0; i < GP_UNDO_SLOTS; i++) {
		struct gp_undo undo = record(i);

		assert_true(gp_undo_put(file, "x", &undo) >= 0);
	}
	assert_int_equal(count_records(file), GP_UNDO_SLOTS);
	gp_undo_close(file);
}

#define WRITERS 6
#define EACH    100

static int write_some(unsigned writer)
{
	struct gp_undo_file *file;

	if (gp_undo_open(&file, true, NULL))
		return 1;
	/* Some come and go, so that slots are fought for. */
	for (uint64_t round = 0; round < 4; round++)
		for (uint64_t i = 0; i < EACH; i++) {
			struct gp_undo undo = record((writer + 1) * 10000ull + i);
			int slot = gp_undo_put(file, "x", &undo);

			if (slot < 0)
				return 2;
			if (round < 3)
				drop(file, (unsigned)slot);
		}
	return 0;
}

/* The state of a slot whose owner is being changed by a process. */
static uint64_t taken_by(pid_t pid, uint64_t start_time)
{
	unsigned start_at = GP_UNDO_STATE_BITS + GP_UNDO_COUNTER_BITS;

	return (uint64_t)pid << (start_at + GP_UNDO_START_BITS) |
	       (start_time & ((1u << GP_UNDO_START_BITS) - 1)) << start_at | GP_UNDO_TAKING;
}

/* This process has the pid of one that died while it took the record over. */
TEST_WITH(a_later_process_with_the_pid_of_a_dead_writer_does_not_hide_the_record, set_up, tear_down)
{
	uint64_t start_time = gp_process_start_time(getpid());
	struct gp_undo_file *file = open_it();
	struct gp_undo undo = record(5);
	unsigned slot = (unsigned)gp_undo_put(file, "nvidia", &undo);
	struct gp_undo_entry e;

	file->map->slot[slot].state = taken_by(getpid(), start_time);
	assert_false(gp_undo_get(file, slot, &e)); /* the writer lives, and has not finished */
	file->map->slot[slot].state = taken_by(getpid(), start_time - 1);
	assert_true(gp_undo_get(file, slot, &e));
	assert_true(is_whole(&e));
	assert_int_equal(e.owner, 0);
	drop(file, slot);
	assert_int_equal(count_records(file), 0);
	gp_undo_close(file);
}

TEST_WITH(writers_do_not_take_each_others_slots, set_up, tear_down)
{
	struct gp_undo_file *file = open_it();

	in_children(WRITERS, write_some);
	assert_int_equal(count_records(file), WRITERS * EACH);
	for (unsigned i = 0; i < GP_UNDO_SLOTS; i++) {
		struct gp_undo_entry e;

		if (gp_undo_get(file, i, &e))
			assert_true(is_whole(&e));
	}
	gp_undo_close(file);
}

static int make_file(unsigned number)
{
	(void)number;
	return gp_undo_open(&(struct gp_undo_file *){0}, true, NULL) != 0;
}

TEST_WITH(a_file_that_many_make_at_once_is_good_for_all, set_up, tear_down)
{
	for (int round = 0; round < 30; round++) {
		unlink(path);
		in_children(8, make_file);
	}
}

static int try_open(void)
{
	struct gp_undo_file *file = NULL;
	struct gp_error err = {0};
	int r = gp_undo_open(&file, true, &err);

	if (r) {
		assert_null(file);
		assert_int_equal(err.code, r);
		assert_non_null(strstr(err.text, path));
	}
	gp_undo_close(file);
	return r;
}

TEST_WITH(without_a_file_there_is_none_unless_it_is_made, set_up, tear_down)
{
	struct gp_undo_file *file = NULL;
	struct stat s;

	assert_int_equal(gp_undo_open(&file, false, NULL), -ENOENT);
	assert_null(file);
	assert_int_equal(try_open(), 0);
	assert_int_equal(gp_undo_open(&file, false, NULL), 0);
	gp_undo_close(file);
	assert_int_equal(stat(path, &s), 0);
	assert_int_equal(s.st_mode & 07777, 0600);
}

TEST_WITH(a_damaged_head_is_refused, set_up, tear_down)
{
	static const uint8_t wrong = 0x5a;
	int fd;

	for (off_t at = 0; at < 24; at++) {
		uint8_t was;

		if (at >= 8 && at < 12)
			continue; /* the version: other tests cover it */
		unlink(path);
		assert_int_equal(try_open(), 0);
		fd = open(path, O_RDWR);
		assert_int_equal(pread(fd, &was, 1, at), 1);
		assert_int_equal(pwrite(fd, &wrong, 1, at), 1);
		assert_int_equal(try_open(), -EPROTO);
		assert_int_equal(pwrite(fd, &was, 1, at), 1);
		assert_int_equal(try_open(), 0);
		close(fd);
	}
}

/* The process that made the file was killed at any byte of the head. */
TEST_WITH(a_half_written_head_is_completed, set_up, tear_down)
{
	uint8_t head[16];
	int fd;

	assert_int_equal(try_open(), 0);
	fd = open(path, O_RDWR);
	assert_int_equal(pread(fd, head, sizeof head, 0), sizeof head);
	memset(head, 0, 8); /* the magic number is what comes last */
	assert_int_equal(pwrite(fd, head, sizeof head, 0), sizeof head);
	close(fd);
	assert_int_equal(try_open(), 0);
}

TEST_WITH(a_link_is_not_followed, set_up, tear_down)
{
	char target[96];

	snprintf(target, sizeof target, "%s/target", dir);
	assert_int_equal(mkdir(sub, 0700), 0);
	close(open(target, O_CREAT | O_RDWR | O_CLOEXEC, 0600));
	assert_int_equal(symlink(target, path), 0);
	assert_int_equal(try_open(), -ELOOP);
	unlink(target);
	assert_int_equal(try_open(), -ELOOP); /* also one to nowhere */
}

TEST_WITH(what_is_no_plain_file_is_refused, set_up, tear_down)
{
	assert_int_equal(mkdir(sub, 0700), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(try_open(), -EPERM);
	unlink(path);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_true(try_open() < 0);
	rmdir(path);
}

TEST_WITH(a_file_of_another_user_is_refused, set_up, tear_down)
{
	if (geteuid())
		skip();
	assert_int_equal(try_open(), 0);
	assert_int_equal(chown(path, NOBODY, NOBODY), 0);
	assert_int_equal(try_open(), -EPERM);
}

/* A process that can write to the file decides what root does to processes. */
TEST_WITH(a_file_that_others_may_write_to_is_refused, set_up, tear_down)
{
	assert_int_equal(try_open(), 0);
	assert_int_equal(chmod(path, 0666), 0);
	assert_int_equal(try_open(), -EPERM);
}

static int open_as_nobody(void *arg)
{
	(void)arg;
	if (setgid(NOBODY) || setuid(NOBODY))
		return 1;
	return try_open() == -EACCES ? 0 : 2;
}

TEST_WITH(a_directory_that_may_not_be_written_to_is_said_so, set_up, tear_down)
{
	if (geteuid())
		skip();
	assert_int_equal(in_child(open_as_nobody, NULL), 0);
}

TEST_WITH(the_path_is_in_the_run_time_folder_unless_it_is_named, set_up, tear_down)
{
	char text[128];

	assert_string_equal(gp_undo_path(text, sizeof text), path);
	unsetenv("GPREEMPT_UNDO");
	setenv("GPREEMPT_RUN", "/somewhere", 1);
	assert_string_equal(gp_undo_path(text, sizeof text), "/somewhere/undo");
	setenv("GPREEMPT_UNDO", "", 1);
	assert_string_equal(gp_undo_path(text, sizeof text), "/somewhere/undo");
}

/* A file that another user can replace would decide what root does to processes. */
TEST_WITH(no_file_is_made_in_a_folder_that_is_not_ours_alone, set_up, tear_down)
{
	unsetenv("GPREEMPT_UNDO");
	setenv("GPREEMPT_RUN", sub, 1);
	assert_int_equal(mkdir(sub, 0700), 0);
	assert_int_equal(chmod(sub, 0777), 0);
	assert_int_equal(gp_undo_open(&(struct gp_undo_file *){0}, true, NULL), -EPERM);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(chmod(sub, 0755), 0);
	assert_int_equal(try_open(), 0);
}

/* A file as version 1 wrote it, with that number of records. */
static void write_version_1(unsigned records)
{
	const uint64_t magic = 0x6f646e7567707067ull;
	const uint32_t head[] = {1, 1024};
	int fd;

	assert_int_equal(try_open(), 0);
	unlink(path);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(ftruncate(fd, 24 + 1024 * 312), 0);
	assert_int_equal(pwrite(fd, &magic, sizeof magic, 0), sizeof magic);
	assert_int_equal(pwrite(fd, head, sizeof head, 8), sizeof head);
	for (unsigned i = 0; i < records; i++) {
		const uint64_t ready = 0x102;

		assert_int_equal(pwrite(fd, &ready, sizeof ready, 24 + 312 * (700 + i)),
				 sizeof ready);
	}
	close(fd);
}

TEST_WITH(an_empty_file_of_another_version_is_replaced, set_up, tear_down)
{
	struct gp_undo undo = record(5);
	struct gp_undo_file *file;
	const uint32_t newer = 77;
	int fd;

	write_version_1(0);
	assert_int_equal(try_open(), 0);
	assert_int_equal(try_open(), 0);
	fd = open(path, O_RDWR);
	assert_int_equal(pwrite(fd, &newer, sizeof newer, 8), sizeof newer);
	close(fd);
	assert_int_equal(try_open(), 0);
	file = open_it();
	assert_true(gp_undo_put(file, "x", &undo) >= 0);
	gp_undo_close(file);
}

TEST_WITH(records_of_another_version_are_not_thrown_away, set_up, tear_down)
{
	struct gp_undo undo = record(5);
	struct gp_undo_file *file = NULL;
	struct gp_error err = {0};
	const uint32_t newer = 77, this = 4;
	int fd;

	write_version_1(2);
	assert_int_equal(gp_undo_open(&file, true, &err), -EPROTO);
	assert_non_null(strstr(err.text, "has 2 records"));
	assert_non_null(strstr(err.text, "gpreempt resume --all"));
	assert_int_equal(try_open(), -EPROTO);
	unlink(path);
	file = open_it();
	assert_true(gp_undo_put(file, "x", &undo) >= 0);
	fd = open(path, O_RDWR);
	assert_int_equal(pwrite(fd, &newer, sizeof newer, 8), sizeof newer);
	assert_int_equal(try_open(), -EPROTO);
	assert_int_equal(pwrite(fd, &this, sizeof this, 8), sizeof this);
	assert_int_equal(try_open(), 0);
	close(fd);
	assert_int_equal(count_records(file), 1);
	gp_undo_close(file);
}

static int replace_file(unsigned number)
{
	struct gp_undo undo = record(number);
	struct gp_undo_file *file;

	return gp_undo_open(&file, true, NULL) || gp_undo_put(file, "x", &undo) < 0;
}

/* Each must end with the same file, and none with one that another took away. */
TEST_WITH(many_replace_an_old_file_at_once, set_up, tear_down)
{
	for (int round = 0; round < 30; round++) {
		struct gp_undo_file *file;

		write_version_1(0);
		in_children(8, replace_file);
		file = open_it();
		assert_int_equal(count_records(file), 8);
		gp_undo_close(file);
	}
}

/* In a namespace of its own, with a file system that is too small. Returns its exit status. */
static int open_on_a_full_disk(void *arg)
{
	struct gp_undo_file *file;
	struct gp_error err = {0};
	struct gp_undo undo = record(1);

	(void)arg;
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mkdir(sub, 0755) || mount("none", sub, "tmpfs", 0, "size=64k,mode=755"))
		return TEST_SKIPPED;
	if (gp_undo_open(&file, true, &err))
		return *err.text ? 0 : 1;
	for (undo.key = 1; undo.key <= GP_UNDO_SLOTS; undo.key++)
		gp_undo_put(file, "fake", &undo);
	return 2;
}

TEST_WITH(a_file_for_which_there_is_no_room_is_refused_and_kills_nobody, set_up, tear_down)
{
	int status = in_child(open_on_a_full_disk, NULL);

	if (status == TEST_SKIPPED)
		skip();
	assert_int_equal(status, 0); /* it did not end by SIGBUS */
}
