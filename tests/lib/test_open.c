/* SPDX-License-Identifier: Apache-2.0 */
/* Handles: processes that can be opened, access rights, and the messages of failures. */
#include "lib_world.h"

static int open_why(pid_t pid, unsigned flags, char why[256])
{
	struct gpreempt *g = (struct gpreempt *)&g;
	int r = gpreempt_open(pid, flags, &g, why, 256);

	if (r) {
		assert_null(g);
		assert_true(*why);
	} else {
		gpreempt_close(g);
	}
	return r;
}

TEST(without_a_gpu_there_is_nothing_to_open)
{
	char why[256];

	lw_hide_drivers();
	assert_int_equal(open_why(getpid(), 0, why), -ENODEV);
	assert_non_null(strstr(why, "gpreempt doctor"));
	assert_int_equal(gpreempt_open(getpid(), 0, NULL, NULL, 0), -EINVAL);
}

LIB_TEST(no_process_is_told_from_one_without_queues)
{
	struct gpreempt_queue queue;
	struct gpreempt *g;
	char why[256];

	assert_int_equal(open_why(4194303, 0, why), -ESRCH);
	assert_int_equal(open_why(0, 0, why), -ESRCH);
	assert_int_equal(open_why(-1, 0, why), -ESRCH);
	assert_int_equal(open_why(getpid(), 1u << 31, why), -EINVAL);
	/* Its queues may come. */
	g = lw_open(getpid());
	LW_CALL(g, gpreempt_get_all_queues(g, &queue, 1), 0);
	LW_CALL(g, gpreempt_suspend_queues(g, NULL, 0), -ENODEV);
	assert_true(*gpreempt_why(g));
	LW_CALL(g, gpreempt_resume_queues(g, NULL, 0), 0);
	assert_string_equal(gpreempt_why(g), "");
}

LIB_TEST(errno_is_left_alone)
{
	struct lw_load *load = lw_load(w, "2");
	struct gpreempt *g;
	struct gpreempt_snapshot snapshot;
	char why[256];

	errno = 4711;
	assert_int_equal(gpreempt_open(4194303, 0, &g, why, sizeof why), -ESRCH);
	assert_int_equal(gpreempt_open(load->pid, 0, &g, NULL, 0), 0);
	assert_int_equal(gpreempt_suspend_queues(g, NULL, 0), 2);
	assert_true(gpreempt_snapshot(g, &snapshot) >= 2);
	gpreempt_snapshot_free(&snapshot);
	assert_int_equal(gpreempt_suspend_queues(g, NULL, 1), -EINVAL);
	assert_int_equal(gpreempt_resume_queues(g, NULL, 0), 2);
	lw_close(g);
	assert_int_equal(errno, 4711);
	assert_int_equal(gpreempt_get_all_queues(NULL, NULL, 0), -EINVAL);
	gpreempt_close(NULL);
}

LIB_TEST(devices_have_names)
{
	struct gpreempt *g = lw_open(getpid());

	assert_non_null(gpreempt_device_name(g, 0));
	assert_non_null(gpreempt_device_name(g, 1));
	assert_null(gpreempt_device_name(g, 2));
}

/* In a child without any rights. */
static int as_nobody(pid_t pid, int (*try)(pid_t pid))
{
	int status = 0;
	pid_t child = fork();

	if (!child) {
		if (setgid(TEST_NOBODY) || setuid(TEST_NOBODY))
			_exit(99);
		_exit(-try(pid));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return -WEXITSTATUS(status);
}

static int try_to_hold(pid_t pid)
{
	struct gpreempt *g;
	char why[256];
	int r = gpreempt_open(pid, 0, &g, why, sizeof why);

	if (!r) {
		r = gpreempt_suspend_queues(g, NULL, 0);
		snprintf(why, sizeof why, "%s", gpreempt_why(g));
		gpreempt_close(g);
	}
	if (r < 0 && !strstr(why, "run as root"))
		return -98;
	return r;
}

LIB_TEST(others_processes_are_not_for_everybody)
{
	struct lw_load *load = lw_load(w, "1");
	int r = as_nobody(load->pid, try_to_hold);

	if (r != -EPERM && r != -EACCES)
		fail_msg("user nobody got %d", r);
	assert_int_equal(lw_held(w, load->pid), 0);
}

static int use_copies(struct gpreempt *g, pid_t pid)
{
	struct gpreempt *own;
	char why[256];

	if (gpreempt_get_all_queues(g, NULL, 0) != -EBADF || !*gpreempt_why(g))
		return 1;
	if (gpreempt_resume_queues(g, NULL, 0) != -EBADF)
		return 2;
	if (gpreempt_open(pid, 0, &own, why, sizeof why) != -EBUSY || own)
		return 3;
	gpreempt_close(g);
	return 0;
}

/* With what the library does at exit; but a leak checker does not know the stacks of threads that
 * are not here. */
static void end_child(int status)
{
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
	_exit(status);
#endif
#elif defined(__SANITIZE_ADDRESS__)
	_exit(status);
#endif
	exit(status);
}

LIB_TEST(a_fork_has_copies_that_do_nothing)
{
	struct lw_load *load = lw_load(w, "2");
	struct gpreempt *g = lw_open(load->pid);
	int status = 0;
	pid_t child;

	LW_CALL(g, gpreempt_suspend_queues(g, NULL, 0), 2);
	child = fork();
	if (!child)
		end_child(use_copies(g, load->pid));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(lw_held(w, load->pid), 2);
	LW_CALL(g, gpreempt_resume_queues(g, NULL, 0), 2);
}
