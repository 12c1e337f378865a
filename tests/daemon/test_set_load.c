/* SPDX-License-Identifier: Apache-2.0 */
/* The cost of calls: that of `set` does not grow with the number of known processes, and calls that
 * change nothing, or come too often, are not logged. */
#include "control_world.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/log.h"
#include "base/process.h"

#define CHILDREN 40

static unsigned polls, lines;

/* Replaces that of the C library. */
int poll(struct pollfd *fds, nfds_t n, int timeout)
{
	struct timespec t = {.tv_sec = timeout / 1000, .tv_nsec = timeout % 1000 * 1000000L};

	polls++;
	return (int)syscall(SYS_ppoll, fds, n, timeout < 0 ? NULL : &t, NULL, 0);
}

static void count_line(void *arg, enum gp_log_level level, const char *line)
{
	(void)arg;
	(void)level;
	lines += strstr(line, "process.attributes-set") || strstr(line, "-requested");
}

static void ignore_end(void *arg, struct gp_proc *proc)
{
	(void)arg;
	(void)proc;
}

static void set_weight(struct world *w, unsigned weight)
{
	char params[80];

	snprintf(params, sizeof params, "{\"target\":{\"self\":true},\"weight\":%u}", weight);
	world_expect_result(w, "set", params);
}

CONTROL_TEST(a_set_call_does_not_poll_the_processes_that_its_user_has_described, 0, GP_CAP_HOLD)
{
	pid_t child[CHILDREN];

	w->c.procs.on_end = ignore_end;
	for (unsigned i = 0; i < CHILDREN; i++) {
		struct gp_proc *p;

		child[i] = fork();
		if (!child[i]) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			for (;;)
				pause();
		}
		p = gp_procs_get(&w->c.procs, child[i], gp_process_start_time(child[i]));
		assert_non_null(p);
		gp_proc_assign(p, GP_ATTR_BY_USER, getuid());
	}
	assert_int_equal(gp_procs_set_by(&w->c.procs, getuid()), CHILDREN);
	polls = 0;
	set_weight(w, 5);
	assert_true(polls < CHILDREN);
	for (unsigned i = 0; i < CHILDREN; i++) {
		kill(child[i], SIGKILL);
		waitpid(child[i], NULL, 0);
	}
	/* Ended processes are no longer counted when the next request is handled. */
	set_weight(w, 6);
	assert_int_equal(gp_procs_set_by(&w->c.procs, getuid()), 0);
}

CONTROL_TEST(a_set_call_that_changes_nothing_is_not_logged, 0, GP_CAP_HOLD)
{
	gp_log_set_sink(count_line, NULL);
	lines = 0;
	for (unsigned i = 0; i < 50; i++)
		set_weight(w, 7);
	gp_log_set_sink(NULL, NULL);
	assert_int_equal(lines, 1);
}

static bool has_task(struct world *w)
{
	return w->c.procs.first && w->c.procs.first->ntasks;
}

/* The limit is per second. Most of the calls come within the first, unless the machine is slow. */
CONTROL_TEST(calls_that_come_too_often_are_not_logged, 1, GP_CAP_HOLD)
{
	uint64_t begin_ns = gp_monotonic_ns(), seconds;

	assert_true(world_until(w, has_task));
	gp_log_set_sink(count_line, NULL);
	lines = 0;
	for (unsigned i = 0; i < 100; i++) {
		world_expect_result(w, "hold", "{}");
		world_expect_result(w, "release", "{}");
		set_weight(w, 10 + i);
	}
	gp_log_set_sink(NULL, NULL);
	seconds = (gp_monotonic_ns() - begin_ns) / GP_NS_PER_S + 2; /* begun, at most */
	assert_in_range(lines, 1, seconds * GP_LOG_LIMIT_LINES);
}

/* Another uid of the account has caused all the lines of this second. */
CONTROL_TEST(all_uids_of_an_account_share_their_log_lines, 0, GP_CAP_HOLD)
{
	struct gp_account_range range = {.first = getuid(), .count = 1, .account = getuid() + 1};
	unsigned ignored, weight = 10;
	uint64_t begin_ns;

	w->c.accounts = (struct gp_accounts){.range = &range, .n = 1};
	gp_log_set_sink(count_line, NULL);
	do {
		begin_ns = gp_monotonic_ns();
		for (unsigned i = 0; i < GP_LOG_LIMIT_LINES; i++)
			gp_log_limit_pass(&w->c.call_log, range.account, begin_ns, &ignored);
		lines = 0;
		set_weight(w, weight++);
	} while (gp_monotonic_ns() / GP_NS_PER_S != begin_ns / GP_NS_PER_S);
	gp_log_set_sink(NULL, NULL);
	assert_int_equal(lines, 0);
	w->c.accounts = (struct gp_accounts){0};
}

TEST(a_user_causes_a_limited_number_of_log_lines_per_second)
{
	struct gp_log_limit limit = {0};
	unsigned left_out, logged = 0;

	for (unsigned i = 0; i < 1000; i++) /* one second of user 7; user 8 has its own lines */
		logged += gp_log_limit_pass(&limit, 7, i * GP_NS_PER_MS, &left_out);
	assert_int_equal(logged, GP_LOG_LIMIT_LINES);
	assert_true(gp_log_limit_pass(&limit, 8, 999 * GP_NS_PER_MS, &left_out));
	assert_int_equal(left_out, 0);
	assert_true(gp_log_limit_pass(&limit, 7, 1000 * GP_NS_PER_MS, &left_out));
	assert_int_equal(left_out, 1000 - GP_LOG_LIMIT_LINES);
}

/* Uids 7, 263 and 519 began in the same bucket: each could use up the lines of the others, and was
 * named for their calls. */
TEST(no_user_uses_up_the_log_lines_of_another)
{
	struct gp_log_limit limit = {0};
	unsigned left_out;

	for (unsigned i = 0; i < 1000; i++)
		gp_log_limit_pass(&limit, 7, 0, &left_out);
	for (uid_t uid = 7 + GP_LOG_LIMIT_BUCKETS; uid < 1000; uid += GP_LOG_LIMIT_BUCKETS) {
		assert_true(gp_log_limit_pass(&limit, uid, 0, &left_out));
		assert_int_equal(left_out, 0);
	}
	for (uid_t uid = 8; uid < 8 + 2 * GP_LOG_LIMIT_BUCKETS; uid++) /* more than buckets */
		gp_log_limit_pass(&limit, uid, GP_NS_PER_S, &left_out);
}
