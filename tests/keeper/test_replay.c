/* SPDX-License-Identifier: Apache-2.0 */
/* Workers that undo: a hanging or crashing worker does not affect the others. */
#include "support/test.h"

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/process.h"
#include "hold/replay.h"
#include "keeper/replay_workers.h"

#define SLOTS 200

static struct gp_undo_file *file;
static struct gp_replay replay;
static char path[64];
static volatile int *open_gate; /* a hanging worker waits for it; shared with the workers */

static struct {
	unsigned times; /* it was done */
	int result;
} outcome[GP_UNDO_SLOTS];

/* What becomes of a record is in its key. */
enum { GOOD, HANGS, FALLS_OVER, FAILS };

enum gp_evidence gp_record_look(const struct gp_undo_entry *entry, uint64_t limit_ns)
{
	(void)entry;
	(void)limit_ns;
	return GP_EVIDENCE_ENOUGH;
}

int gp_record_undo(const struct gp_undo_entry *entry, struct gp_error *err)
{
	switch (entry->undo.key) {
	case HANGS:
		while (!*open_gate)
			usleep(1000);
		return 0;
	case FALLS_OVER:
		setrlimit(RLIMIT_CORE, &(struct rlimit){0});
		signal(SIGSEGV, SIG_DFL);
		raise(SIGSEGV);
		return 0;
	case FAILS: return gp_fail(err, -EBUSY, "no");
	default: return 0;
	}
}

static void take(void *arg, unsigned slot, const struct gp_undo_entry *entry, int result)
{
	(void)arg;
	(void)entry;
	outcome[slot].times++;
	outcome[slot].result = result;
}

static int set_up(void **state)
{
	(void)state;
	memset(outcome, 0, sizeof outcome);
	open_gate = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	gp_log_set_level(GP_LOG_ERROR);
	strcpy(path, "/tmp/gp-replay-XXXXXX");
	close(mkstemp(path));
	setenv("GPREEMPT_UNDO", path, 1);
	return gp_undo_open(&file, true, NULL) || gp_replay_begin(&replay, file, NULL);
}

static int tear_down(void **state)
{
	(void)state;
	gp_replay_end(&replay);
	gp_undo_close(file);
	munmap((void *)(uintptr_t)open_gate, 4096);
	return unlink(path);
}

static void ask(unsigned slot, uint64_t what, bool claimed, uint64_t heartbeats)
{
	struct gp_undo_entry e = {.owner = getpid(),
				  .owner_start_time = gp_process_start_time(getpid()),
				  .undo = {.key = what, .pid = 1},
				  .claimed = claimed};

	assert_false(gp_replay_has(&replay, slot));
	gp_replay_ask(&replay, slot, &e, heartbeats, false);
	assert_true(gp_replay_has(&replay, slot));
}

/* As the keeper does, until `n` slots from the first have an outcome. */
static uint64_t run_until(unsigned first, unsigned n)
{
	uint64_t from_ns = gp_monotonic_ns(), now_ns = from_ns;
	struct pollfd p[GP_REPLAY_FDS];
	unsigned done = 0;

	while (done < n && now_ns < from_ns + 30 * GP_NS_PER_S) {
		uint64_t next_ns = gp_replay_run(&replay, now_ns, take, NULL);

		gp_replay_poll(&replay, p);
		done = 0;
		for (unsigned i = first; i < first + n; i++)
			done += outcome[i].times > 0;
		if (done < n)
			poll(p, GP_REPLAY_FDS,
			     next_ns > now_ns ? (int)((next_ns - now_ns) / GP_NS_PER_MS) : 0);
		now_ns = gp_monotonic_ns();
	}
	assert_int_equal(done, n);
	return now_ns - from_ns;
}

TEST_WITH(each_record_is_undone_once, set_up, tear_down)
{
	for (unsigned i = 0; i < SLOTS; i++)
		ask(i, i % 5 ? GOOD : FAILS, true, 0);
	run_until(0, SLOTS);
	for (unsigned i = 0; i < SLOTS; i++) {
		assert_int_equal(outcome[i].times, 1);
		assert_int_equal(outcome[i].result, i % 5 ? 0 : -EBUSY);
		assert_false(gp_replay_has(&replay, i));
	}
	assert_false(gp_replay_is_busy(&replay));
}

TEST_WITH(who_hangs_does_not_hold_up_the_others, set_up, tear_down)
{
	uint64_t took_ns;

	for (unsigned i = 0; i < 3; i++)
		ask(i, HANGS, true, 0);
	for (unsigned i = 3; i < SLOTS; i++)
		ask(i, GOOD, true, 0);
	took_ns = run_until(3, SLOTS - 3);
	assert_true(took_ns < GP_REPLAY_LIMIT_NS);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(outcome[i].times, 0);
	run_until(0, 3); /* they are given up */
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(outcome[i].result, -ETIMEDOUT);
	assert_false(gp_replay_is_busy(&replay));
	ask(0, GOOD, true, 0); /* and there is a worker for the next */
	outcome[0].times = 0;
	run_until(0, 1);
	assert_int_equal(outcome[0].result, 0);
}

/* /proc/PID/stat can wait for an execve of the process, which a program can prolong for ever. Here
 * it is a FIFO without a writer, in a mount namespace of its own. */
TEST_WITH(a_process_that_cannot_be_examined_does_not_hold_up_the_others, set_up, tear_down)
{
	pid_t pid = fork();
	char folder[32], stat[48];

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	snprintf(folder, sizeof folder, "/proc/%d", pid);
	snprintf(stat, sizeof stat, "%s/stat", folder);
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", folder, "tmpfs", 0, NULL)) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		skip();
	}
	assert_return_code(mkfifo(stat, 0600), errno);
	gp_replay_ask(&replay, 0,
		      &(struct gp_undo_entry){.undo = {.key = GOOD, .pid = pid, .start_time = 1},
					      .claimed = true},
		      0, false);
	for (unsigned i = 1; i < SLOTS; i++)
		ask(i, GOOD, true, 0);
	assert_true(run_until(1, SLOTS - 1) < GP_REPLAY_LIMIT_NS);
	run_until(0, 1);
	assert_int_equal(outcome[0].result, -ETIMEDOUT);
	assert_return_code(umount2(folder, MNT_DETACH), errno);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* The search for the heirs of ended processes can hang, and looks at all processes. */
TEST_WITH(what_lives_is_undone_before_what_has_ended, set_up, tear_down)
{
	struct gp_undo_entry e = {
		.undo = {.key = GOOD,
			 .pid = getpid(),
			 .start_time = gp_process_start_time(getpid())},
		.claimed = true,
	};

	for (unsigned i = 0; i < GP_REPLAY_WORKERS; i++)
		ask(i, HANGS, true, 0); /* of an ended process */
	gp_replay_ask(&replay, GP_REPLAY_WORKERS, &e, 0, false);
	run_until(GP_REPLAY_WORKERS, 1);
	for (unsigned i = 0; i < GP_REPLAY_WORKERS; i++)
		assert_int_equal(outcome[i].times, 0);
	*open_gate = 1;
	run_until(0, GP_REPLAY_WORKERS);
}

/* The number of workers is limited, also when all hang; later records wait. */
TEST_WITH(there_is_an_end_to_workers, set_up, tear_down)
{
	unsigned workers = 0;

	for (unsigned i = 0; i < 2 * GP_REPLAY_WORKERS; i++)
		ask(i, HANGS, true, 0);
	for (int i = 0; i < 25; i++) {
		gp_replay_run(&replay, gp_monotonic_ns(), take, NULL);
		usleep(50000);
	}
	for (unsigned i = 0; i < GP_REPLAY_WORKERS; i++)
		workers += replay.worker[i].pid > 0;
	assert_int_equal(workers, GP_REPLAY_WORKERS);
	*open_gate = 1;
	run_until(0, 2 * GP_REPLAY_WORKERS);
	for (unsigned i = 0; i < 2 * GP_REPLAY_WORKERS; i++)
		assert_int_equal(outcome[i].times, 1);
}

TEST_WITH(who_falls_over_a_record_fails_on_it_and_the_rest_is_done, set_up, tear_down)
{
	for (unsigned i = 0; i < 40; i++)
		ask(i, i % 10 == 3 ? FALLS_OVER : GOOD, true, 0);
	run_until(0, 40);
	for (unsigned i = 0; i < 40; i++) {
		assert_int_equal(outcome[i].times, 1);
		assert_int_equal(outcome[i].result, i % 10 == 3 ? -EIO : 0);
	}
}

TEST_WITH(what_a_living_scheduler_has_is_left_alone_once_it_beats, set_up, tear_down)
{
	struct gp_undo_scheduler guard;

	assert_int_equal(gp_undo_scheduler_begin(file, NULL), 0);
	gp_undo_heartbeat(file, 1);
	gp_undo_scheduler(file, &guard);
	ask(0, GOOD, false, guard.heartbeats);
	run_until(0, 1);
	assert_int_equal(outcome[0].result, 0);
	ask(1, GOOD, false, guard.heartbeats);
	ask(2, GOOD, true, 0);
	gp_undo_heartbeat(file, 2);
	run_until(1, 2);
	assert_int_equal(outcome[1].result, -ECANCELED);
	assert_int_equal(outcome[2].result, 0);
}
