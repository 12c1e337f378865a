/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Claims and heartbeats: a record of a dead owner is claimed by one process at a time, and by the
 * next one if that process dies. There is one scheduler. No content of the file is harmful.
 */
#include "undo_world.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "base/process.h"
#include "base/rng.h"
#include "support/mute_fuse.h"
#include "support/process.h"
#include "undo/undo_layout.h"

static char dir[64], path[96];
static struct gp_undo_file *file;

static int set_up(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/gp-guard-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof path, "%s/undo", dir);
	setenv("GPREEMPT_UNDO", path, 1);
	return gp_undo_open(&file, true, NULL);
}

static int tear_down(void **state)
{
	(void)state;
	gp_undo_close(file);
	unlink(path);
	return rmdir(dir);
}

static unsigned count(void)
{
	struct gp_undo_entry e;
	unsigned n = 0;

	for (unsigned i = 0; i < GP_UNDO_SLOTS; i++)
		n += gp_undo_get(file, i, &e) && !strcmp(e.backend, "x") && is_whole(&e);
	return n;
}

static int put(void *arg)
{
	struct gp_undo undo = record(*(uint64_t *)arg);

	return gp_undo_put(file, "x", &undo) < 0;
}

/* A record that a process left which has ended. */
static unsigned left_behind(uint64_t key, struct gp_undo_entry *e)
{
	assert_int_equal(in_child(put, &key), 0);
	for (unsigned i = 0; i < GP_UNDO_SLOTS; i++)
		if (gp_undo_get(file, i, e) && e->undo.key == key)
			return i;
	fail_msg("there is no record %llu", (unsigned long long)key);
	return 0;
}

TEST_WITH(what_the_living_hold_is_not_to_be_claimed, set_up, tear_down)
{
	struct gp_undo undo = record(1);
	struct gp_undo_entry e;
	int slot = gp_undo_put(file, "x", &undo);

	assert_true(gp_undo_get(file, (unsigned)slot, &e));
	assert_false(gp_undo_claim(file, (unsigned)slot, &e));
	assert_int_equal(e.owner, getpid());
	assert_int_equal(count(), 1);
}

TEST_WITH(what_the_dead_left_is_claimed_once, set_up, tear_down)
{
	struct gp_undo_entry e, second;
	unsigned slot = left_behind(7, &e);
	uint64_t changes = gp_undo_changes(file);
	struct gp_undo undo = record(7);

	second = e;
	assert_false(gp_undo_owner_lives(&e));
	assert_true(gp_undo_claim(file, slot, &e));
	assert_true(gp_undo_changes(file) != changes);
	assert_int_equal(e.owner, getpid());
	assert_int_equal(e.claimed, 1);
	assert_true(is_whole(&e));
	assert_false(gp_undo_claim(file, slot, &second));
	assert_false(gp_undo_drop_same(file, slot, &second)); /* it is not what he read */
	/* A process that wants to change the task must wait. */
	assert_int_equal(gp_undo_put(file, "x", &undo), -EBUSY);
	assert_true(gp_undo_drop_same(file, slot, &e));
	assert_int_equal(count(), 0);
	assert_true(gp_undo_put(file, "x", &undo) >= 0);
}

TEST_WITH(what_cannot_be_undone_is_nobodys_and_the_next_has_it, set_up, tear_down)
{
	struct gp_undo_entry e;
	unsigned slot = left_behind(7, &e);
	struct gp_undo undo = record(7);

	memset(undo.data, 0xee, sizeof undo.data);
	assert_true(gp_undo_claim(file, slot, &e));
	gp_undo_give_back(file, slot, &e);
	assert_true(gp_undo_get(file, slot, &e));
	assert_int_equal(e.owner, 0);
	assert_false(gp_undo_owner_lives(&e));
	assert_int_equal(gp_undo_put(file, "x", &undo), slot);
	assert_true(gp_undo_get(file, slot, &e));
	assert_int_equal(e.owner, getpid());
	assert_true(is_whole(&e)); /* the first one knows what was there before */
}

static int claim(void *arg)
{
	struct gp_undo_entry e;
	unsigned slot = *(unsigned *)arg;

	return !(gp_undo_get(file, slot, &e) && gp_undo_claim(file, slot, &e));
}

TEST_WITH(who_dies_over_an_undo_leaves_it_to_the_next, set_up, tear_down)
{
	struct gp_undo_entry e;
	unsigned slot = left_behind(7, &e);

	for (int i = 0; i < 3; i++)
		assert_int_equal(in_child(claim, &slot), 0);
	assert_true(gp_undo_get(file, slot, &e));
	assert_true(gp_undo_claim(file, slot, &e));
	assert_true(is_whole(&e));
}

/* A zombie owns no record: its parent may never wait for it. */
TEST_WITH(who_has_ended_and_is_not_waited_for_is_dead, set_up, tear_down)
{
	struct gp_undo_entry e;
	uint64_t key = 9;
	pid_t pid = fork();
	siginfo_t info;

	if (!pid)
		_exit(put(&key));
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	for (unsigned i = 0; i < GP_UNDO_SLOTS; i++)
		if (gp_undo_get(file, i, &e))
			assert_true(gp_undo_claim(file, i, &e));
	assert_int_equal(e.owner, getpid());
	waitpid(pid, NULL, 0);
}

/* The state of a record that is being taken over by the process. */
static uint64_t taken_by(pid_t pid, uint64_t start_time)
{
	return 0x500 | GP_UNDO_TAKING |
	       (start_time & ((1u << GP_UNDO_START_BITS) - 1))
		       << (GP_UNDO_STATE_BITS + GP_UNDO_COUNTER_BITS) |
	       (uint64_t)pid << (64 - GP_UNDO_PID_BITS);
}

/* As after a kill at any instruction between two states. */
TEST_WITH(a_record_survives_who_is_killed_while_he_takes_it, set_up, tear_down)
{
	struct gp_undo_slot *s;
	struct gp_undo_entry e;
	unsigned slot = left_behind(7, &e);
	pid_t gone = fork();

	if (!gone)
		_exit(0);
	waitpid(gone, NULL, 0);
	s = &file->map->slot[slot];
	s->state = taken_by(getpid(), gp_process_start_time(getpid()));
	assert_false(gp_undo_get(file, slot, &e)); /* in our hands */
	s->state = taken_by(gone, gp_process_start_time(getpid()));
	for (size_t i = 2; i < 4; i++)
		s->word[i] = 0x1234567812345678; /* the holder was half written */
	assert_true(gp_undo_get(file, slot, &e));
	assert_true(is_whole(&e));
	assert_false(gp_undo_owner_lives(&e));
	assert_true(gp_undo_claim(file, slot, &e));
	assert_true(gp_undo_drop_same(file, slot, &e));
}

/* The pid of the killed process belongs to a process that started later. */
TEST_WITH(a_taker_is_told_from_a_later_process_with_its_pid, set_up, tear_down)
{
	struct gp_undo_entry e;
	unsigned slot = left_behind(7, &e);
	struct gp_undo_slot *s = &file->map->slot[slot];

	s->state = taken_by(getpid(), gp_process_start_time(getpid()) + 1);
	assert_true(gp_undo_get(file, slot, &e));
	assert_true(is_whole(&e));
	assert_false(gp_undo_owner_lives(&e));
	assert_true(gp_undo_claim(file, slot, &e));
	assert_true(gp_undo_drop_same(file, slot, &e));
}

/* The request changes nothing else, and only the owner's drop ends it. */
TEST_WITH(an_owner_is_asked_to_release_and_its_record_stays, set_up, tear_down)
{
	struct gp_undo undo = {.key = 9, .pid = 1, .start_time = 2};
	int slot = gp_undo_put(file, "x", &undo);
	uint64_t changes = gp_undo_changes(file);
	struct gp_undo_entry e, was;

	assert_true(slot >= 0);
	assert_true(gp_undo_get(file, (unsigned)slot, &was));
	assert_int_equal(was.release_asked, 0);
	assert_true(gp_undo_ask_release(file, (unsigned)slot, &was));
	assert_true(gp_undo_changes(file) != changes);
	assert_true(gp_undo_ask_release(file, (unsigned)slot, &was)); /* once more */
	assert_true(gp_undo_get(file, (unsigned)slot, &e));
	assert_int_equal(e.release_asked, 1);
	assert_int_equal(e.owner, getpid());
	assert_int_equal(gp_undo_put(file, "x", &undo), slot); /* the same record, still asked */
	assert_true(gp_undo_get(file, (unsigned)slot, &e));
	assert_int_equal(e.release_asked, 1);
	assert_false(gp_undo_claim(file, (unsigned)slot, &e)); /* its owner lives */
	assert_true(gp_undo_drop_same(file, (unsigned)slot, &e));
	assert_false(gp_undo_ask_release(file, (unsigned)slot, &was));
	assert_int_equal(gp_undo_put(file, "x", &undo), slot);
	assert_true(gp_undo_get(file, (unsigned)slot, &e));
	assert_int_equal(e.release_asked, 0); /* a new record is not asked for */
	assert_true(gp_undo_drop_same(file, (unsigned)slot, &e));
}

#define RECORDS   200
#define CLAIMANTS 4

static unsigned *had; /* by key: how often a record was claimed; shared by the processes */

/* Claims and drops all records that it finds. */
static int claim_all(unsigned number)
{
	struct gp_undo_entry e;

	(void)number;
	for (unsigned i = 0; i < GP_UNDO_SLOTS; i++)
		if (gp_undo_get(file, i, &e) && !gp_undo_owner_lives(&e) &&
		    gp_undo_claim(file, i, &e)) {
			__atomic_add_fetch(&had[e.undo.key], 1, __ATOMIC_RELAXED);
			gp_undo_drop_same(file, i, &e);
		}
	return 0;
}

static int put_many(void *arg)
{
	(void)arg;
	for (uint64_t i = 0; i < RECORDS; i++)
		if (put(&i))
			return 1;
	return 0;
}

TEST_WITH(of_many_that_replay_each_record_has_one, set_up, tear_down)
{
	had = mmap(NULL, RECORDS * sizeof *had, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		   -1, 0);
	assert_int_equal(in_child(put_many, NULL), 0);
	assert_int_equal(count(), RECORDS);
	in_children(CLAIMANTS, claim_all);
	assert_int_equal(count(), 0);
	for (int i = 0; i < RECORDS; i++)
		assert_int_equal(had[i], 1);
	munmap(had, RECORDS * sizeof *had);
}

/* Killed at any time, in any call: a record is whole, or was not there yet. */
TEST_WITH(records_survive_claimants_that_are_killed, set_up, tear_down)
{
	uint64_t until_ns = gp_monotonic_ns() + 2 * GP_NS_PER_S;
	struct gp_undo_entry e;
	unsigned rounds = 0;

	assert_int_equal(in_child(put_many, NULL), 0);
	while (gp_monotonic_ns() < until_ns) {
		pid_t pid = fork();

		if (!pid)
			for (;;)
				for (unsigned i = 0; i < GP_UNDO_SLOTS; i++)
					if (gp_undo_get(file, i, &e) &&
					    (e.claimed || gp_undo_claim(file, i, &e)))
						gp_undo_give_back(file, i, &e);
		usleep(500 + 97 * (rounds % 64));
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		rounds++;
		assert_int_equal(count(), RECORDS);
	}
	assert_true(rounds > 10);
}

TEST_WITH(a_record_is_found_wherever_it_had_to_go, set_up, tear_down)
{
	static int slot[GP_UNDO_SLOTS];

	for (uint64_t i = 0; i < GP_UNDO_SLOTS; i++) { /* until sets are full, and all of it */
		struct gp_undo undo = record(i);

		slot[i] = gp_undo_put(file, "x", &undo);
		assert_true(slot[i] >= 0);
	}
	for (uint64_t i = 0; i < GP_UNDO_SLOTS; i++) {
		struct gp_undo undo = record(i);

		assert_int_equal(gp_undo_put(file, "x", &undo), slot[i]);
	}
}

static int be_guard(void *arg)
{
	return gp_undo_scheduler_begin(file, arg) ? 1 : 0;
}

TEST_WITH(there_is_one_scheduler_at_a_time, set_up, tear_down)
{
	struct gp_undo_scheduler guard;
	struct gp_error err = {0};
	char number[16];
	pid_t pid;

	gp_undo_scheduler(file, &guard);
	assert_int_equal(guard.pid, 0);
	assert_false(guard.lives);
	assert_int_equal(gp_undo_scheduler_begin(file, NULL), 0);
	assert_int_equal(gp_undo_scheduler_begin(file, NULL), 0); /* it is us */
	assert_int_equal(in_child(be_guard, NULL), 1);
	gp_undo_scheduler(file, &guard);
	assert_int_equal(guard.pid, getpid());
	assert_int_equal(guard.start_time, gp_process_start_time(getpid()));
	assert_true(guard.lives);
	gp_undo_scheduler_end(file);
	assert_int_equal(in_child(be_guard, NULL), 0);
	gp_undo_scheduler(file, &guard);
	assert_int_not_equal(guard.pid, 0);
	assert_false(guard.lives); /* a dead process is no scheduler */
	pid = fork();
	if (!pid) {
		gp_undo_scheduler_begin(file, NULL);
		for (;;)
			pause();
	}
	do
		gp_undo_scheduler(file, &guard);
	while (guard.pid != pid);
	assert_int_equal(gp_undo_scheduler_begin(file, &err), -EBUSY);
	snprintf(number, sizeof number, "%d", pid);
	assert_non_null(strstr(err.text, number));
	gp_undo_scheduler_end(file); /* not ours to end */
	gp_undo_scheduler(file, &guard);
	assert_int_equal(guard.pid, pid);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_int_equal(gp_undo_scheduler_begin(file, NULL), 0); /* the next one is */
}

/* A child that is the scheduler, and closes the file after a byte from `go`. */
static pid_t start_scheduler_with(int fd, int go)
{
	pid_t pid = fork();
	char byte;

	if (pid)
		return pid;
	gp_undo_scheduler_begin(file, NULL);
	_exit(read(go, &byte, 1) != 1 || close(fd));
}

static bool is_closing_a_file(pid_t pid)
{
	char name[32], text[32] = "";
	FILE *f;

	snprintf(name, sizeof name, "/proc/%d/syscall", pid);
	f = fopen(name, "re");
	if (!f)
		return false;
	(void)!fgets(text, sizeof text, f);
	fclose(f);
	return *text != 'r' && strtol(text, NULL, 10) == SYS_close; /* "running" */
}

/* The end of a FUSE file waits for its server; SIGKILL does not end that. */
TEST_WITH(a_scheduler_that_was_killed_and_hangs_in_the_kernel_is_replaced, set_up, tear_down)
{
	struct gp_undo_scheduler hung = {0};
	struct mute_fuse fuse;
	char name[64];
	int fd, go[2];
	pid_t pid;

	if (!mute_fuse_start(&fuse, "/mnt", NULL))
		skip();
	fd = open(mute_fuse_path(&fuse, "/mnt/file", name, sizeof name), O_RDONLY | O_CLOEXEC);
	assert_return_code(fd, errno);
	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	pid = start_scheduler_with(fd, go[0]);
	close(fd); /* while it is answered */
	mute_fuse_silence(&fuse);
	TEST_WAIT((gp_undo_scheduler(file, &hung), hung.pid == pid));
	assert_int_equal(gp_undo_scheduler_begin(file, NULL), -EBUSY);
	assert_int_equal(write(go[1], "g", 1), 1);
	TEST_WAIT(is_closing_a_file(pid));
	kill(pid, SIGKILL);
	TEST_WAIT(test_process_state(pid) == 'D');
	TEST_WAIT(!gp_undo_scheduler_begin(file, NULL));
	assert_true(gp_undo_replaces_hung_scheduler(file));
	assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
	mute_fuse_stop(&fuse);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	close(go[0]);
	close(go[1]);
}

TEST_WITH(beats_are_seen_and_scheduler_and_keeper_are_two, set_up, tear_down)
{
	struct gp_undo_scheduler guard, keeper;

	assert_int_equal(gp_undo_scheduler_begin(file, NULL), 0);
	assert_int_equal(gp_undo_keeper_begin(file, NULL), 0);
	gp_undo_heartbeat(file, 500);
	gp_undo_heartbeat(file, 700);
	gp_undo_keeper_heartbeat(file, 900);
	gp_undo_scheduler(file, &guard);
	gp_undo_keeper(file, &keeper);
	assert_int_equal(guard.heartbeats, 2);
	assert_int_equal(guard.heartbeat_ns, 700);
	assert_int_equal(keeper.heartbeats, 1);
	assert_int_equal(keeper.heartbeat_ns, 900);
	gp_undo_keeper_end(file);
	gp_undo_keeper(file, &keeper);
	assert_int_equal(keeper.pid, 0);
	gp_undo_scheduler(file, &guard);
	assert_int_equal(guard.pid, getpid());
}

/* Of several that start at once, one is. */
TEST_WITH(of_many_schedulers_one_begins, set_up, tear_down)
{
	for (int round = 0; round < 20; round++) {
		int go[2], told[2], all[2], began = 0;
		pid_t pid[6];
		char byte;

		assert_int_equal(pipe(go), 0);
		assert_int_equal(pipe(told), 0);
		assert_int_equal(pipe(all), 0);
		for (int i = 0; i < 6; i++) {
			pid[i] = fork();
			if (!pid[i]) {
				close(go[1]);
				close(all[1]);
				(void)!read(go[0], &byte, 1);
				byte = (char)(gp_undo_scheduler_begin(file, NULL) == 0);
				(void)!write(told[1], &byte, 1);
				(void)!read(all[0], &byte, 1); /* lives until all have tried */
				_exit(0);
			}
		}
		close(go[0]);
		close(go[1]);
		for (int i = 0; i < 6; i++) {
			assert_int_equal(read(told[0], &byte, 1), 1);
			began += byte;
		}
		close(all[0]);
		close(all[1]);
		close(told[0]);
		close(told[1]);
		for (int i = 0; i < 6; i++)
			waitpid(pid[i], NULL, 0);
		assert_int_equal(began, 1);
	}
}

static void use_all_of_it(void)
{
	struct gp_undo_scheduler guard;
	struct gp_undo_entry e;

	for (unsigned i = 0; i < GP_UNDO_SLOTS; i++) {
		if (!gp_undo_get(file, i, &e))
			continue;
		assert_true(strlen(e.backend) < sizeof e.backend);
		assert_true(e.undo.size <= sizeof e.undo.data);
		assert_true(e.undo.pid > 0);
		if (gp_undo_claim(file, i, &e) && i % 2)
			gp_undo_give_back(file, i, &e);
		else
			gp_undo_drop_same(file, i, &e);
	}
	for (uint64_t i = 0; i < 50; i++) {
		struct gp_undo undo = record(i);
		int slot = gp_undo_put(file, "x", &undo);

		assert_true(slot < GP_UNDO_SLOTS);
	}
	gp_undo_scheduler(file, &guard);
	gp_undo_keeper(file, &guard);
	gp_undo_scheduler_begin(file, NULL);
	gp_undo_scheduler_end(file);
	gp_undo_bump(file);
}

TEST_WITH(whatever_is_in_the_file_nobody_falls_over_it, set_up, tear_down)
{
	struct gp_rng rng;

	gp_rng_init(&rng, 4711, 0);
	for (int round = 0; round < 30; round++) {
		uint8_t *bytes = (uint8_t *)file->map;
		size_t from = round % 3 ? offsetof(struct gp_undo_head, epoch)
					: sizeof(struct gp_undo_head);

		for (size_t i = from; i < sizeof *file->map; i++)
			bytes[i] = (uint8_t)gp_rng_below(&rng, 256);
		for (unsigned i = 0; i < GP_UNDO_SLOTS; i++) /* states that mean something */
			bytes[offsetof(struct gp_undo_map, slot) +
			      i * sizeof(struct gp_undo_slot)] = (uint8_t)gp_rng_below(&rng, 5);
		use_all_of_it();
	}
}
