/* SPDX-License-Identifier: Apache-2.0 */
/* Undos that fail are repeated soon enough: a program stands still until one succeeds. */
#include "support/test.h"

#include <string.h>
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

int gp_record_undo(const struct gp_undo_entry *entry, struct gp_error *err)
{
	(void)entry;
	return gp_fail(err, -EIO, "the driver fails");
}

struct gp_undo_entry gp_record_to_take(const struct gp_undo_entry *entry)
{
	return *entry;
}

static int set_up(void **state)
{
	(void)state;
	gp_log_set_level(GP_LOG_ERROR);
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
	return unlink(path);
}

/* The slot of a record of this process, whose owner has ended. */
static unsigned put_record_of_the_dead(void)
{
	struct gp_undo undo = {
		.key = 1, .pid = getpid(), .start_time = gp_process_start_time(getpid())};
	struct gp_undo_entry e;
	unsigned slot = 0;
	int status;
	pid_t pid = fork();

	if (!pid)
		_exit(gp_undo_put(file, "nvidia", &undo) < 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	while (slot < GP_UNDO_SLOTS && !gp_undo_get(file, slot, &e))
		slot++;
	assert_true(slot < GP_UNDO_SLOTS);
	return slot;
}

TEST_WITH(a_failed_undo_is_repeated_within_a_second_however_often_it_failed, set_up, tear_down)
{
	unsigned slot = put_record_of_the_dead();
	struct gp_watched_record *record = &watch.record[slot];
	bool is_check;

	for (unsigned i = 0; i < ATTEMPTS; i++) {
		uint64_t from_ns = gp_monotonic_ns();

		record->not_before_ns = watch.search_ns = 0; /* as if that time had passed */
		watch.must_search = true;
		TEST_WAIT((gp_watch_run(&watch, gp_monotonic_ns(), &is_check),
			   record->not_before_ns));
		assert_true(record->not_before_ns > from_ns);
		assert_true(record->not_before_ns <= gp_monotonic_ns() + BETWEEN_NS);
		assert_true(watch.search_ns <= record->not_before_ns);
	}
}
