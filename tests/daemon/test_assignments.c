/* SPDX-License-Identifier: Apache-2.0 */
/* What was said about processes is found, inherited, kept over a restart, and forgotten. */
#include "support/test.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include "base/process.h"
#include "daemon/assignments.h"

struct world {
	char folder[64];
	char path[80];
	struct gp_assignments *assignments;
};

static void open_assignments(struct world *w)
{
	struct gp_error err = {0};

	assert_int_equal(gp_assignments_open(w->path, &w->assignments, &err), 0);
}

static void reopen(struct world *w)
{
	gp_assignments_close(w->assignments);
	open_assignments(w);
}

static int set_up(void **state)
{
	static struct world w;

	w = (struct world){.folder = "/tmp/gpreempt-assignments-XXXXXX"};
	if (!mkdtemp(w.folder))
		return -1;
	snprintf(w.path, sizeof w.path, "%s/assignments", w.folder);
	*state = &w;
	open_assignments(&w);
	return 0;
}

static int tear_down(void **state)
{
	struct world *w = *state;

	gp_assignments_close(w->assignments);
	unlink(w->path);
	return rmdir(w->folder);
}

static struct gp_assignment said_of(pid_t pid, uint8_t class)
{
	struct gp_assignment e = {.pid = pid,
				  .start_time = gp_process_start_time(pid),
				  .source = GP_ATTR_BY_USER,
				  .by = getuid(),
				  .attr = GP_TASK_ATTR_DEFAULT};

	e.attr.class = class;
	return e;
}

static void put(struct world *w, const struct gp_assignment *e)
{
	struct gp_error err = {0};

	assert_int_equal(gp_assignments_put(w->assignments, e, &err), 0);
}

static pid_t start_child(void)
{
	pid_t pid = fork();

	if (!pid)
		for (;;)
			pause();
	return pid;
}

static void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

TEST_IN(struct world, all_that_was_said_outlives_the_daemon, set_up, tear_down)
{
	struct gp_assignment e = said_of(getpid(), GP_LATENCY_CRITICAL), found;

	e.inherit = true;
	e.attr = (struct gp_task_attr){.class = GP_LATENCY_CRITICAL,
				       .priority = 7,
				       .weight = 300,
				       .share_permille = 400,
				       .ceiling_permille = 900,
				       .deadline_ns = 3000000,
				       .budget_ns = 200000,
				       .gang = 77};
	snprintf(e.gang, sizeof e.gang, "two words");
	put(w, &e);
	reopen(w);
	assert_true(gp_assignments_get(w->assignments, e.pid, e.start_time, &found));
	assert_true(gp_task_attr_same(&found.attr, &e.attr));
	assert_string_equal(found.gang, e.gang);
	assert_true(found.inherit);
	assert_int_equal(found.by, e.by);
}

TEST_IN(struct world, what_rules_said_is_made_anew, set_up, tear_down)
{
	struct gp_assignment e = said_of(getpid(), GP_BEST_EFFORT), found;

	e.source = GP_ATTR_BY_RULE;
	put(w, &e);
	assert_true(gp_assignments_get(w->assignments, e.pid, e.start_time, &found));
	gp_assignments_drop_rules(w->assignments);
	assert_false(gp_assignments_get(w->assignments, e.pid, e.start_time, &found));
	put(w, &e);
	reopen(w);
	assert_false(gp_assignments_get(w->assignments, e.pid, e.start_time, &found));
}

TEST_IN(struct world, a_child_inherits_only_where_that_was_said, set_up, tear_down)
{
	struct gp_assignment e = said_of(getpid(), GP_BEST_EFFORT), own, found;
	pid_t child = start_child();
	uint64_t start_time = gp_process_start_time(child);

	put(w, &e);
	assert_false(gp_assignments_find(w->assignments, child, start_time, &found));
	e.inherit = true;
	put(w, &e);
	assert_true(gp_assignments_find(w->assignments, child, start_time, &found));
	assert_int_equal(found.pid, getpid());
	own = said_of(child, GP_LATENCY_CRITICAL);
	put(w, &own);
	assert_true(gp_assignments_find(w->assignments, child, start_time, &found));
	assert_int_equal(found.attr.class, GP_LATENCY_CRITICAL);
	e.by = 12345; /* somebody else's word is not about our processes */
	put(w, &e);
	gp_assignments_drop(w->assignments, child, start_time);
	assert_false(gp_assignments_find(w->assignments, child, start_time, &found));
	e.by = GP_BY_ADMIN; /* an administrator's is */
	put(w, &e);
	assert_true(gp_assignments_find(w->assignments, child, start_time, &found));
	end_child(child);
}

TEST_IN(struct world, who_is_gone_or_was_dropped_is_not_read_again, set_up, tear_down)
{
	pid_t a = start_child(), b = start_child(), c = start_child();
	struct gp_assignment ea = said_of(a, GP_BEST_EFFORT), eb = said_of(b, GP_BEST_EFFORT),
			     ec = said_of(c, GP_BEST_EFFORT), found;

	put(w, &ea);
	put(w, &eb);
	put(w, &ec);
	end_child(a);
	gp_assignments_drop(w->assignments, b, eb.start_time);
	reopen(w);
	assert_false(gp_assignments_get(w->assignments, a, ea.start_time, &found));
	assert_false(gp_assignments_get(w->assignments, b, eb.start_time, &found));
	assert_true(gp_assignments_get(w->assignments, c, ec.start_time, &found));
	end_child(b);
	end_child(c);
}

TEST_IN(struct world, another_process_with_the_pid_is_another_one, set_up, tear_down)
{
	struct gp_assignment e = said_of(getpid(), GP_BEST_EFFORT), found;

	put(w, &e);
	assert_false(gp_assignments_get(w->assignments, e.pid, e.start_time + 1, &found));
}

static void append(const struct world *w, const char *text)
{
	int fd = open(w->path, O_WRONLY | O_APPEND);

	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

/* It was killed while it wrote. */
TEST_IN(struct world, half_a_line_and_nonsense_are_left_out, set_up, tear_down)
{
	struct gp_assignment e = said_of(getpid(), GP_BEST_EFFORT), found;
	char half[128];

	put(w, &e);
	append(w, "set x y\nset 1\n\n\x01\xff\nset 1 2 9 0 100 0 0 0 0 0 0 0 \n");
	snprintf(half, sizeof half, "set %d %llu 2 0 100 0 0 0 0 0 0 0 ", getpid(),
		 (unsigned long long)e.start_time);
	append(w, half);
	reopen(w);
	assert_true(gp_assignments_get(w->assignments, e.pid, e.start_time, &found));
	assert_int_equal(found.attr.class, GP_BEST_EFFORT);
}

TEST_IN(struct world, the_file_does_not_grow_for_ever, set_up, tear_down)
{
	struct gp_assignment e = said_of(getpid(), GP_BEST_EFFORT), found;
	FILE *f;

	for (unsigned i = 0; i < 40000; i++) {
		e.attr.weight = 1 + i % 10000;
		put(w, &e);
	}
	f = fopen(w->path, "r");
	fseek(f, 0, SEEK_END);
	assert_true(ftell(f) < 1100000);
	fclose(f);
	reopen(w);
	assert_true(gp_assignments_get(w->assignments, e.pid, e.start_time, &found));
	assert_int_equal(found.attr.weight, e.attr.weight);
}

static off_t size_of_file(const struct world *w)
{
	struct stat s;

	assert_int_equal(stat(w->path, &s), 0);
	return s.st_size;
}

TEST_IN(struct world, what_was_said_as_the_file_was_written_anew_is_in_it, set_up, tear_down)
{
	struct gp_assignment e = said_of(getpid(), GP_BEST_EFFORT), found;
	off_t before, after = 0;

	do {
		before = after;
		e.attr.weight = e.attr.weight % 10000 + 1;
		put(w, &e);
		after = size_of_file(w);
	} while (after > before);
	reopen(w);
	assert_true(gp_assignments_get(w->assignments, e.pid, e.start_time, &found));
	assert_int_equal(found.attr.weight, e.attr.weight);
}

static void limit_files(rlim_t size)
{
	assert_int_equal(setrlimit(RLIMIT_FSIZE,
				   &(struct rlimit){.rlim_cur = size, .rlim_max = RLIM_INFINITY}),
			 0);
}

/* As on a file system that is full. */
TEST_IN(struct world, half_a_line_spoils_no_other, set_up, tear_down)
{
	struct gp_assignment e = said_of(getpid(), GP_BEST_EFFORT), found;
	struct gp_error err = {0};

	signal(SIGXFSZ, SIG_IGN);
	put(w, &e);
	e.attr.weight = 7;
	limit_files((rlim_t)size_of_file(w) + 9);
	assert_true(gp_assignments_put(w->assignments, &e, &err) < 0);
	limit_files(RLIM_INFINITY);
	assert_true(gp_assignments_get(w->assignments, e.pid, e.start_time, &found));
	assert_int_not_equal(found.attr.weight, 7); /* who was told no is believed */
	e.attr.weight = 8;
	put(w, &e);
	reopen(w);
	assert_true(gp_assignments_get(w->assignments, e.pid, e.start_time, &found));
	assert_int_equal(found.attr.weight, 8);
}

TEST_IN(struct world, the_policy_that_a_user_chose_is_kept_with_user_and_time, set_up, tear_down)
{
	struct gp_error err = {0};
	struct gp_chosen_policy rr = {.text = "rr", .by = 1000, .at_ns = 5, .configured = 7},
				priority = {.text = "priority:quantum=50", .by = 1001, .at_ns = 6};
	const struct gp_chosen_policy *kept = gp_assignments_policy(w->assignments);

	assert_string_equal(kept->text, "");
	assert_int_equal(gp_assignments_set_policy(w->assignments, &priority, &err), 0);
	assert_int_equal(gp_assignments_set_policy(w->assignments, &rr, &err), 0);
	reopen(w);
	reopen(w);
	kept = gp_assignments_policy(w->assignments);
	assert_string_equal(kept->text, "rr");
	assert_int_equal(kept->by, 1000);
	assert_int_equal(kept->at_ns, 5);
	assert_int_equal(kept->configured, 7);
	assert_int_equal(
		gp_assignments_set_policy(w->assignments, &(struct gp_chosen_policy){0}, &err), 0);
	reopen(w);
	assert_string_equal(gp_assignments_policy(w->assignments)->text, "");
}
