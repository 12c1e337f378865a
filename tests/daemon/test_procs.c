/* SPDX-License-Identifier: Apache-2.0 */
/* Processes are watched until they end. Where no file is left for that, they have not ended for us:
 * it is said once, and tried again. */
#include "support/test.h"

#include <sys/prctl.h>
#include <sys/resource.h>

#include "base/log.h"
#include "base/process.h"
#include "daemon/procs.h"

#define PATIENCE_ROUNDS 6000 /* of 10 ms at most */

struct world {
	sd_event *loop;
	struct gp_procs procs;
	unsigned ended; /* that we were told of */
	unsigned lines; /* in the log */
	struct rlimit files;
	pid_t child;
	uint64_t start_time;
};

static void count_end(void *arg, struct gp_proc *proc)
{
	struct world *w = arg;

	(void)proc;
	w->ended++;
}

static void count_line(void *arg, enum gp_log_level level, const char *line)
{
	struct world *w = arg;

	(void)level;
	w->lines += strstr(line, "process.unwatched") != NULL;
}

/* A process that does nothing, for as long as this one lives. */
static pid_t begin_child(void)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		pause();
}

static int set_up(void **state)
{
	static struct world w;

	w = (struct world){.child = begin_child()};
	w.start_time = gp_process_start_time(w.child);
	getrlimit(RLIMIT_NOFILE, &w.files);
	gp_log_set_sink(count_line, &w);
	if (w.child < 0 || sd_event_new(&w.loop) < 0)
		return -1;
	gp_procs_init(&w.procs, w.loop, count_end, &w);
	*state = &w;
	return 0;
}

static void end_child(struct world *w)
{
	kill(w->child, SIGKILL);
	waitpid(w->child, NULL, 0);
	w->child = -1;
}

static int tear_down(void **state)
{
	struct world *w = *state;

	setrlimit(RLIMIT_NOFILE, &w->files);
	if (w->child > 0)
		end_child(w);
	gp_procs_free(&w->procs);
	sd_event_unref(w->loop);
	gp_log_set_sink(NULL, NULL);
	return 0;
}

/* Only so many files can be opened from now on. */
static void leave_files(struct world *w, unsigned files)
{
	int next = dup(STDIN_FILENO);
	struct rlimit l = {.rlim_cur = (rlim_t)next + files, .rlim_max = w->files.rlim_max};

	assert_true(next >= 0);
	close(next);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &l), 0);
}

static void leave_all_files(struct world *w)
{
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &w->files), 0);
}

/* Whatever the loop has to do now. */
static void go_round(struct world *w)
{
	while (sd_event_run(w->loop, 0) > 0)
		;
}

static bool ends(struct world *w)
{
	for (unsigned i = 0; !w->ended && i < PATIENCE_ROUNDS; i++)
		sd_event_run(w->loop, 10000);
	return w->ended == 1;
}

TEST_IN(struct world, a_process_is_watched_until_it_ends, set_up, tear_down)
{
	struct gp_proc *p = gp_procs_get(&w->procs, w->child, w->start_time);

	assert_non_null(p);
	go_round(w);
	assert_false(gp_proc_ended(p));
	end_child(w);
	assert_true(gp_proc_ended(p));
	assert_true(ends(w));
	assert_int_equal(w->procs.n, 0);
	assert_int_equal(w->lines, 0);
}

TEST_IN(struct world, who_describes_it_with_uids_of_one_account_counts_once, set_up, tear_down)
{
	struct gp_account_range range = {.first = 100000, .count = 10, .account = 100000};
	struct gp_accounts accounts = {.range = &range, .n = 1};
	struct gp_proc *p = gp_procs_get(&w->procs, w->child, w->start_time);

	w->procs.accounts = &accounts;
	gp_proc_assign(p, GP_ATTR_BY_USER, 100001);
	assert_int_equal(gp_procs_set_by(&w->procs, 100002), 1);
	assert_int_equal(gp_procs_set_by(&w->procs, 100010), 0);
	gp_proc_assign(p, GP_ATTR_BY_DEFAULT, 0);
	w->procs.accounts = NULL;
}

TEST_IN(struct world, one_that_is_gone_already_ends_at_the_next_round, set_up, tear_down)
{
	struct gp_proc *p = gp_procs_get(&w->procs, w->child, w->start_time + 1);

	assert_non_null(p);
	assert_true(gp_proc_ended(p)); /* its pid is another's */
	assert_true(ends(w));
	assert_int_equal(w->procs.n, 0);
	assert_int_equal(w->lines, 0);
}

static void see_it_live_with(struct world *w, unsigned files)
{
	struct gp_proc *p;

	leave_files(w, files);
	p = gp_procs_get(&w->procs, w->child, w->start_time);
	assert_non_null(p);
	for (unsigned i = 0; i < 3; i++) {
		go_round(w);
		gp_procs_retry(&w->procs);
		assert_false(gp_proc_ended(p));
	}
	assert_int_equal(w->ended, 0);
	assert_true(p->unwatched);
	assert_int_equal(w->procs.unwatched, 1);
	assert_int_equal(w->lines, 1);
	leave_all_files(w);
}

static void expect_watched(struct world *w)
{
	const struct gp_proc *p = gp_procs_find(&w->procs, w->child, w->start_time);

	assert_non_null(p);
	assert_false(p->unwatched);
	assert_int_equal(w->procs.unwatched, 0);
	assert_int_equal(p->uid, geteuid());
	assert_string_not_equal(p->name, "");
	end_child(w);
	assert_true(ends(w));
}

TEST_IN(struct world, one_that_no_file_is_left_for_has_not_ended, set_up, tear_down)
{
	see_it_live_with(w, 0);
	gp_procs_retry(&w->procs);
	expect_watched(w);
	assert_int_equal(w->lines, 1);
}

/* It is opened, but which process it is cannot be read. */
TEST_IN(struct world, nor_one_that_only_one_file_is_left_for, set_up, tear_down)
{
	see_it_live_with(w, 1);
	gp_procs_retry(&w->procs);
	expect_watched(w);
}

TEST_IN(struct world, who_is_named_again_is_watched_at_once, set_up, tear_down)
{
	see_it_live_with(w, 0);
	assert_non_null(gp_procs_get(&w->procs, w->child, w->start_time));
	expect_watched(w);
}

TEST_IN(struct world, one_that_ended_meanwhile_is_noticed_later, set_up, tear_down)
{
	see_it_live_with(w, 0);
	end_child(w);
	gp_procs_retry(&w->procs);
	assert_true(ends(w));
	assert_int_equal(w->procs.n, 0);
	assert_int_equal(w->procs.unwatched, 0);
}

TEST_IN(struct world, a_second_shortage_is_said_again, set_up, tear_down)
{
	pid_t second = begin_child();

	see_it_live_with(w, 0);
	gp_procs_retry(&w->procs);
	leave_files(w, 0);
	assert_non_null(gp_procs_get(&w->procs, second, 1));
	leave_all_files(w);
	kill(second, SIGKILL);
	waitpid(second, NULL, 0);
	assert_int_equal(w->lines, 2);
}

TEST_IN(struct world, one_that_is_put_away_is_not_counted, set_up, tear_down)
{
	see_it_live_with(w, 0);
	gp_procs_drop_unused(&w->procs, gp_procs_find(&w->procs, w->child, w->start_time));
	assert_int_equal(w->procs.n, 0);
	assert_int_equal(w->procs.unwatched, 0);
}
