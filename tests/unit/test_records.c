/* SPDX-License-Identifier: Apache-2.0 */
/* Whose record it is has ended only if that is known: also where no file is left to read it with.
 */
#include "support/test.h"

#include <sys/prctl.h>
#include <sys/resource.h>

#include "base/process.h"
#include "hold/replay.h"

/* A process that does nothing, for as long as this one lives, and its record. */
static struct gp_undo_entry begin_child(void)
{
	pid_t pid = fork();

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	return (struct gp_undo_entry){
		.undo = {.pid = pid, .start_time = gp_process_start_time(pid)}};
}

static void end_child(const struct gp_undo_entry *e)
{
	kill(e->undo.pid, SIGKILL);
	waitpid(e->undo.pid, NULL, 0);
}

/* The same, while no more files can be opened. */
static bool lives_without_files(const struct gp_undo_entry *e)
{
	int next = dup(STDIN_FILENO);
	struct rlimit before, none;
	bool lives;

	assert_true(next >= 0);
	close(next);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit){.rlim_cur = (rlim_t)next, .rlim_max = before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(gp_process_start_time(e->undo.pid), 0); /* else this tests nothing */
	lives = gp_record_process_lives(e);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	return lives;
}

TEST(a_process_lives_until_it_ends)
{
	struct gp_undo_entry e = begin_child();

	assert_true(gp_record_process_lives(&e));
	e.undo.start_time++; /* the pid belongs to another process */
	assert_false(gp_record_process_lives(&e));
	e.undo.start_time--;
	end_child(&e);
	assert_false(gp_record_process_lives(&e));
}

TEST(one_that_no_file_is_left_for_has_not_ended)
{
	struct gp_undo_entry e = begin_child();

	assert_true(lives_without_files(&e));
	end_child(&e);
	assert_false(lives_without_files(&e));
}

TEST(nobody_does_not_live)
{
	struct gp_undo_entry e = {0};

	assert_false(gp_record_process_lives(&e));
}
