/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Readers that hang: a file in a FUSE that does not answer takes the place of the sysfs file with
 * the compute units that a process occupies. A reader of it is in state D, and SIGKILL does not end
 * it.
 */
#include "folder.h"

#include <linux/kcmp.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "gpu/amd/memory_reader.h"
#include "support/mute_fuse.h"

#define GPU_ID 7u
#define SOON   (20 * GP_NS_PER_MS) /* time limit of readings that hang */
#define LATE   (20 * GP_NS_PER_S)  /* of others */

static struct folder sysfs;
static char occupancy[128];
static struct mute_fuse fuse[GP_AMD_READERS_MAX]; /* one for each reader that hangs */
static unsigned nfuse;
static uint64_t pointer; /* read and write pointer of a queue in which nothing waits */

static int set_up(void **state)
{
	char name[64];

	(void)state;
	folder_make(&sysfs, "GPREEMPT_KFD_SYSFS");
	snprintf(name, sizeof name, "proc/%d/stats_%u/cu_occupancy", getpid(), GPU_ID);
	folder_write(&sysfs, name, "", 0); /* makes the folders */
	snprintf(occupancy, sizeof occupancy, "%s/%s", sysfs.path, name);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	folder_remove(&sysfs);
	return 0;
}

/* The file does not answer from now on. SIGKILL ends a second reader of the same FUSE. */
static void be_silent(void)
{
	char path[64];

	if (!mute_fuse_start(&fuse[nfuse], "/mnt", NULL))
		skip();
	assert_int_equal(unlink(occupancy), 0);
	mute_fuse_path(&fuse[nfuse], "/mnt/file", path, sizeof path);
	assert_int_equal(access(path, R_OK), 0); /* waits until the server has begun */
	assert_int_equal(symlink(path, occupancy), 0);
	mute_fuse_silence(&fuse[nfuse++]);
}

/* All readers that hang end. */
static void end_silence(void)
{
	while (nfuse)
		mute_fuse_stop(&fuse[--nfuse]);
}

static struct gp_amd_readers make_readers(void)
{
	struct gp_amd_readers readers;

	gp_amd_readers_init(&readers);
	return readers;
}

/* Room for a reading of this process as one of this user. */
static struct gp_amd_reading *prepare(struct gp_amd_readers *readers, uid_t uid, bool hangs)
{
	struct gp_amd_reading *g = gp_amd_readers_room(readers, 1);

	assert_non_null(g);
	*g = (struct gp_amd_reading){.pid = getpid(),
				     .key = 64 * (uint64_t)getpid(),
				     .uid = uid,
				     .gpu_id = GPU_ID,
				     .has_occupancy = hangs,
				     .n = 1,
				     .pointer = {{.read_address = (uintptr_t)&pointer,
						  .write_address = (uintptr_t)&pointer,
						  .mask = UINT64_MAX}}};
	return g;
}

static char state_of(pid_t pid)
{
	char path[64], text[512] = "";
	FILE *f;

	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	f = fopen(path, "re");
	assert_non_null(f);
	assert_non_null(fgets(text, sizeof text, f));
	fclose(f);
	return strrchr(text, ')')[2];
}

/* Leaves a reader in state D. SIGKILL ends a reader if the FUSE server has not taken its request
 * yet; then the next reader is tried. */
static pid_t hang_in_silence(struct gp_amd_readers *readers, uid_t uid)
{
	pid_t pid;

	readers->patience_ns = SOON;
	do {
		prepare(readers, uid, true);
		assert_int_equal(gp_amd_readers_run(readers, 1), 0);
		pid = readers->out[readers->nout - 1].helper.pid;
		TEST_WAIT(state_of(pid) == 'D' || state_of(pid) == 'Z');
	} while (state_of(pid) != 'D');
	return pid;
}

static pid_t hang(struct gp_amd_readers *readers, uid_t uid)
{
	be_silent();
	return hang_in_silence(readers, uid);
}

static void read_well(struct gp_amd_readers *readers, uid_t uid)
{
	struct gp_amd_reading *g = prepare(readers, uid, false);

	readers->patience_ns = LATE;
	assert_int_equal(gp_amd_readers_run(readers, 1), GP_AMD_READ_ALL);
	assert_true(g->known);
}

/* gp_amd_readers_room() frees readers that have ended. */
static void wait_until_none_is_stuck(struct gp_amd_readers *readers)
{
	TEST_WAIT((gp_amd_readers_room(readers, 1), !readers->nout));
}

/* Only readers that hang now count, however often readers hung before. */
TEST(the_number_of_stuck_readers_is_limited_and_a_reader_that_ends_is_replaced)
{
	struct gp_amd_readers readers = make_readers();

	for (int round = 0; round < 2; round++) {
		for (unsigned i = 0; i < GP_AMD_READERS_MAX; i++)
			hang(&readers, 0);
		assert_null(gp_amd_readers_room(&readers, 1));
		end_silence();
		wait_until_none_is_stuck(&readers);
		read_well(&readers, 0);
	}
	gp_amd_readers_end(&readers);
}

TEST(an_account_whose_readers_do_not_return_is_refused_and_other_accounts_are_not)
{
	struct gp_amd_readers readers = make_readers();

	for (unsigned i = 0; i < GP_AMD_READERS_PER_ACCOUNT; i++) {
		assert_false(gp_amd_readers_refuse(&readers, 1000));
		hang(&readers, 1000);
	}
	assert_true(gp_amd_readers_refuse(&readers, 1000));
	assert_false(gp_amd_readers_refuse(&readers, 1001));
	read_well(&readers, 1001);
	end_silence();
	TEST_WAIT(!gp_amd_readers_refuse(&readers, 1000));
	gp_amd_readers_end(&readers);
}

/* It hangs in the kernel after SIGKILL. The end of the readers does not wait for it. */
TEST(a_reader_in_state_d_does_not_delay_the_end)
{
	struct gp_amd_readers readers = make_readers();
	pid_t pid;

	pid = hang(&readers, 0);
	alarm(60); /* ends the test if this waits */
	gp_amd_readers_end(&readers);
	alarm(0);
	assert_int_equal(state_of(pid), 'D');
	end_silence();
	assert_int_equal(waitpid(pid, NULL, __WALL), pid);
}

/* /dev/kfd would stay open after the end of the daemon, and its holds with it. */
TEST(a_reader_has_no_file_and_no_memory_of_its_parent)
{
	struct gp_amd_readers readers = make_readers();
	int pipe[2];
	pid_t pid;
	char byte;

	be_silent();
	assert_int_equal(pipe2(pipe, O_CLOEXEC), 0);
	pid = hang_in_silence(&readers, 0);
	close(pipe[1]);
	assert_int_equal(read(pipe[0], &byte, 1), 0);
	close(pipe[0]);
	assert_true(syscall(SYS_kcmp, getpid(), pid, KCMP_VM, 0, 0) > 0);
	end_silence();
	wait_until_none_is_stuck(&readers);
	gp_amd_readers_end(&readers);
}

/* A program that uses the library may wait for all its children. */
TEST(wait_does_not_see_readers)
{
	struct gp_amd_readers readers = make_readers();

	read_well(&readers, 0);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
	gp_amd_readers_end(&readers);
}

/* Shared with readers: they have the handlers of this program. */
static atomic_int *handled;

static void note_signal(int number)
{
	(void)number;
	++*handled;
}

/* Ctrl-C goes to the readers of a program, too. */
TEST(a_signal_does_not_run_the_handlers_of_the_program_in_a_reader)
{
	struct gp_amd_readers readers = make_readers();

	handled = mmap(NULL, sizeof *handled, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		       -1, 0);
	assert_true(handled != MAP_FAILED);
	assert_true(signal(SIGINT, note_signal) != SIG_ERR);
	read_well(&readers, 0);
	assert_int_equal(kill(readers.reader.pid, SIGINT), 0);
	read_well(&readers, 0); /* the signal comes before the question */
	assert_int_equal(*handled, 0);
	signal(SIGINT, SIG_DFL);
	gp_amd_readers_end(&readers);
	munmap(handled, sizeof *handled);
}

static void kill_reader(const struct gp_amd_readers *readers)
{
	struct pollfd ended = {.fd = readers->reader.pidfd, .events = POLLIN};

	assert_int_equal(kill(readers->reader.pid, SIGKILL), 0);
	assert_int_equal(poll(&ended, 1, -1), 1);
}

/* This happens when memory is short, for example. No process is to blame. */
TEST(a_reader_that_is_killed_is_replaced_and_no_account_counts_it)
{
	struct gp_amd_readers readers = make_readers();

	read_well(&readers, 0);
	kill_reader(&readers);
	read_well(&readers, 0);
	for (unsigned i = 0; i < GP_AMD_READERS_PER_ACCOUNT; i++) {
		prepare(&readers, 0, false);
		kill_reader(&readers);
		assert_int_equal(gp_amd_readers_run(&readers, 1), GP_AMD_READ_NONE);
		assert_false(gp_amd_readers_refuse(&readers, 0));
	}
	read_well(&readers, 0);
	assert_int_equal(readers.nout, 0);
	gp_amd_readers_end(&readers);
}

/* More readings than the first reader has room for. */
TEST(many_processes_are_read_together)
{
	struct gp_amd_readers readers = make_readers();
	struct gp_amd_reading *g;

	readers.patience_ns = LATE;
	for (unsigned n = 1; n < 1000; n *= 10) {
		prepare(&readers, 0, false);
		g = gp_amd_readers_room(&readers, n);
		assert_non_null(g);
		for (unsigned i = 0; i < n; i++)
			g[i] = *prepare(&readers, 0, false);
		assert_int_equal(gp_amd_readers_run(&readers, n), GP_AMD_READ_ALL);
		for (unsigned i = 0; i < n; i++)
			assert_true(g[i].known);
	}
	gp_amd_readers_end(&readers);
}

/* One queue may be gone, with its memory: the others are still read. */
TEST(a_queue_that_cannot_be_read_is_unknown_and_others_are_known)
{
	struct gp_amd_readers readers = make_readers();
	struct gp_amd_reading *g = prepare(&readers, 0, false);

	g->n = 2;
	g->pointer[1] = g->pointer[0];
	g->pointer[0].read_address = 8;
	readers.patience_ns = LATE;
	assert_int_equal(gp_amd_readers_run(&readers, 1), GP_AMD_READ_ALL);
	assert_false(g->known);
	assert_true(g->pointer[0].pending == UINT64_MAX);
	assert_true(g->pointer[1].pending == 0);
	gp_amd_readers_end(&readers);
}

TEST_GROUP(set_up, tear_down)
