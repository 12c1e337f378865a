/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Readers that hang: a FIFO without a writer takes the place of a sysfs file that never answers. It
 * is where sysfs has the compute units that a process occupies.
 */
#include "folder.h"
#include "gpu/amd/memory_reader.h"

#define GPU_ID 7u

static struct folder sysfs;
static char fifo[128];
static uint64_t pointer; /* read and write pointer of a queue in which nothing waits */

static int set_up(void **state)
{
	char name[64];

	(void)state;
	folder_make(&sysfs, "GPREEMPT_KFD_SYSFS");
	snprintf(name, sizeof name, "proc/%d/stats_%u/cu_occupancy", getpid(), GPU_ID);
	folder_write(&sysfs, name, "", 0); /* makes the folders */
	snprintf(fifo, sizeof fifo, "%s/%s", sysfs.path, name);
	assert_int_equal(unlink(fifo), 0);
	return mkfifo(fifo, 0600);
}

static int tear_down(void **state)
{
	(void)state;
	folder_remove(&sysfs);
	return 0;
}

/* Reads this process as one of this account, with the result of gp_amd_readers_run(). There must be
 * a free reader. */
static int look_as(struct gp_amd_readers *readers, uid_t account, bool at_fifo)
{
	struct gp_amd_reading *g = gp_amd_readers_room(readers, 1);

	assert_non_null(g);
	*g = (struct gp_amd_reading){.pid = getpid(),
				     .account = account,
				     .gpu_id = GPU_ID,
				     .mem_fd = -1,
				     .has_occupancy = at_fifo,
				     .n = 1,
				     .pointer = {{.read_address = (uintptr_t)&pointer,
						  .write_address = (uintptr_t)&pointer,
						  .mask = UINT64_MAX}}};
	return gp_amd_readers_run(readers, 1);
}

static int look(struct gp_amd_readers *readers, bool at_fifo)
{
	return look_as(readers, 0, at_fifo);
}

/* All threads that wait for the FIFO go on. */
static void answer(void)
{
	int fd = open(fifo, O_WRONLY | O_NONBLOCK | O_CLOEXEC);

	if (fd >= 0)
		close(fd);
}

/* However often it happens: it is those who are out now that count. */
TEST(who_comes_back_can_look_again)
{
	struct gp_amd_readers readers = {.patience_ns = 20 * GP_NS_PER_MS};

	for (int round = 0; round < 3; round++) {
		for (unsigned i = 0; i < GP_AMD_READERS_MAX; i++)
			assert_int_equal(look(&readers, true), 0);
		assert_null(gp_amd_readers_room(&readers, 1)); /* all are out */
		TEST_WAIT((answer(), gp_amd_readers_room(&readers, 1)));
		readers.patience_ns = 20 * GP_NS_PER_S;
		assert_int_equal(look(&readers, false), -1);
		assert_true(gp_amd_readers_room(&readers, 1)->known);
		readers.patience_ns = 20 * GP_NS_PER_MS;
		TEST_WAIT((answer(), gp_amd_readers_room(&readers, 1), !readers.nout));
	}
	gp_amd_readers_end(&readers);
}

TEST(an_account_whose_readers_do_not_return_is_refused_and_other_accounts_are_not)
{
	struct gp_amd_readers readers = {.patience_ns = 20 * GP_NS_PER_MS};

	for (unsigned i = 0; i < GP_AMD_READERS_PER_ACCOUNT; i++) {
		assert_false(gp_amd_readers_refuse(&readers, 1000));
		assert_int_equal(look_as(&readers, 1000, true), 0);
	}
	assert_true(gp_amd_readers_refuse(&readers, 1000));
	assert_false(gp_amd_readers_refuse(&readers, 1001));
	readers.patience_ns = 20 * GP_NS_PER_S;
	assert_int_equal(look_as(&readers, 1001, false), -1);
	TEST_WAIT((answer(), !gp_amd_readers_refuse(&readers, 1000)));
	TEST_WAIT((answer(), gp_amd_readers_room(&readers, 1), !readers.nout));
	gp_amd_readers_end(&readers);
}

/* They end by themselves, and free what they have: a sanitizer would say so. */
TEST(who_is_out_at_the_end_is_left_alone)
{
	struct gp_amd_readers readers = {.patience_ns = 20 * GP_NS_PER_MS};

	assert_int_equal(look(&readers, true), 0);
	gp_amd_readers_end(&readers);
	assert_int_equal(readers.nout, 0);
	answer();
	usleep(100000);
}

TEST_GROUP(set_up, tear_down)
