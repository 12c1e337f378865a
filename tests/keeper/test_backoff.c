/* SPDX-License-Identifier: Apache-2.0 */
/* Undos that fail: they are repeated soon enough, because a program stands still until one
 * succeeds, and a silent owner is killed if only it can release. */
#include "support/test.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/process.h"
#include "hold/replay.h"
#include "keeper/heartbeat_watch.h"

#define ATTEMPTS   10
#define BETWEEN_NS GP_NS_PER_S /* at most, from a failed attempt to the next */

static char path[64];
static struct gp_undo_file *file;
static struct gp_watch watch;

/* Shared with the keeper's workers. */
static struct {
	int code;                 /* of each undo */
	unsigned backend, keeper; /* warnings that were logged */
} * shared;

enum gp_evidence gp_record_look(const struct gp_undo_entry *entry, uint64_t limit_ns)
{
	(void)entry;
	(void)limit_ns;
	return GP_EVIDENCE_ENOUGH;
}

int gp_record_undo(const struct gp_undo_entry *entry, struct gp_error *err)
{
	(void)entry;
	gp_log(GP_LOG_WARN, "undo.not-confirmed", "errno=%d", -shared->code);
	return gp_fail(err, shared->code, "the driver fails");
}

static void count_line(void *arg, enum gp_log_level level, const char *line)
{
	(void)arg;
	(void)level;
	shared->backend += !strncmp(line, "warn undo.not-confirmed", 23);
	shared->keeper += !strncmp(line, "warn undo.failed", 16);
}

struct gp_undo_entry gp_record_to_take(const struct gp_undo_entry *entry)
{
	return *entry;
}

static int set_up(void **state)
{
	(void)state;
	gp_log_set_level(GP_LOG_WARN);
	gp_log_set_sink(count_line, NULL);
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	shared->code = -EIO;
	strcpy(path, "/tmp/gp-backoff-XXXXXX");
	close(mkstemp(path));
	setenv("GPREEMPT_UNDO", path, 1);
	return gp_undo_open(&file, true, NULL) || gp_watch_begin(&watch, file, GP_NEVER, NULL);
}

static int tear_down(void **state)
{
	(void)state;
	gp_watch_end(&watch);
	gp_undo_close(file);
	gp_log_set_sink(NULL, NULL);
	munmap(shared, sizeof *shared);
	return unlink(path);
}

/* The slot of the only record; GP_UNDO_SLOTS: there is none yet. */
static unsigned find_record(void)
{
	struct gp_undo_entry e;
	unsigned slot = 0;

	while (slot < GP_UNDO_SLOTS && !gp_undo_get(file, slot, &e))
		slot++;
	return slot;
}

/* The slot of a record of this process, whose owner has ended. */
static unsigned put_record_of_the_dead(void)
{
	struct gp_undo undo = {
		.key = 1, .pid = getpid(), .start_time = gp_process_start_time(getpid())};
	unsigned slot;
	int status;
	pid_t pid = fork();

	if (!pid)
		_exit(gp_undo_put(file, "nvidia", &undo) < 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	slot = find_record();
	assert_true(slot < GP_UNDO_SLOTS);
	return slot;
}

/* A process that has sent one heartbeat for its record of this process, and no more. */
static pid_t start_silent_owner(void)
{
	struct gp_undo undo = {
		.key = 1, .pid = getpid(), .start_time = gp_process_start_time(getpid())};
	pid_t pid = fork();

	if (!pid) {
		int mine = gp_undo_put(file, "nvidia", &undo);

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		gp_undo_record_heartbeat(file, (unsigned)mine, 1);
		for (;;)
			pause();
	}
	TEST_WAIT(find_record() < GP_UNDO_SLOTS &&
		  gp_undo_record_heartbeat_ns(file, find_record()));
	return pid;
}

/* As if the time until the next attempt had passed. */
static void try_now(struct gp_watched_record *record)
{
	bool is_check;

	record->not_before_ns = watch.search_ns = 0;
	watch.must_search = true;
	TEST_WAIT((gp_watch_run(&watch, gp_monotonic_ns(), &is_check), record->not_before_ns));
}

TEST_WITH(a_failure_that_repeats_is_logged_once, set_up, tear_down)
{
	struct gp_watched_record *record = &watch.record[put_record_of_the_dead()];

	for (unsigned i = 1; i <= 2; i++) {
		for (unsigned k = 0; k < ATTEMPTS; k++)
			try_now(record);
		assert_int_equal(shared->backend, i);
		assert_int_equal(shared->keeper, i);
		shared->code = -EBUSY; /* another failure */
	}
}

TEST_WITH(a_failed_undo_is_repeated_within_a_second_however_often_it_failed, set_up, tear_down)
{
	unsigned slot = put_record_of_the_dead();
	struct gp_watched_record *record = &watch.record[slot];

	for (unsigned i = 0; i < ATTEMPTS; i++) {
		uint64_t from_ns = gp_monotonic_ns();

		try_now(record);
		assert_true(record->not_before_ns > from_ns);
		assert_true(record->not_before_ns <= gp_monotonic_ns() + BETWEEN_NS);
		assert_true(watch.search_ns <= record->not_before_ns);
	}
}

/* The driver says that the owner has nothing to release: its target may wait for its host. */
TEST_WITH(an_owner_is_killed_if_it_alone_can_release_and_not_if_only_work_is_missing, set_up,
	  tear_down)
{
	pid_t owner = start_silent_owner();
	struct gp_watched_record *record = &watch.record[find_record()];
	bool is_check;
	int status;

	watch.timeout_ns = 0;
	TEST_WAIT((gp_watch_run(&watch, gp_monotonic_ns(), &is_check), record->heartbeat_ns));
	shared->code = -ETIME;
	for (unsigned i = 0; i < ATTEMPTS; i++)
		try_now(record);
	assert_int_equal(waitpid(owner, &status, WNOHANG), 0);
	shared->code = -EBUSY;
	for (unsigned i = 0; i < ATTEMPTS; i++)
		try_now(record);
	TEST_WAIT(waitpid(owner, &status, WNOHANG) == owner);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}
