/* SPDX-License-Identifier: Apache-2.0 */
/* The run-time folder: its path for each user, and that no other user's folder is used. */
#include "support/test.h"

#include <sys/stat.h>

#include "base/run_dir.h"

#define NOBODY 65534

static char dir[64], path[96];

static int set_up(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/gp-run-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof path, "%s/run", dir);
	unsetenv("XDG_RUNTIME_DIR");
	return setenv("GPREEMPT_RUN", path, 1);
}

static int tear_down(void **state)
{
	(void)state;
	if (rmdir(path))
		unlink(path);
	return rmdir(dir);
}

/* What it would be for `uid`, asked in a process of its own. */
static void expect_for(uid_t uid, const char *want)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		char text[GP_RUN_DIR_SIZE];

		if (uid != geteuid() && setuid(uid))
			_exit(1);
		_exit(strcmp(gp_run_dir(text, sizeof text), want) ? 2 : 0);
	}
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
}

TEST_WITH(where_it_is_depends_on_who_asks, set_up, tear_down)
{
	uid_t uid = geteuid() ? geteuid() : NOBODY;
	char own[64];

	snprintf(own, sizeof own, "/tmp/gpreempt-%u", uid);
	expect_for(uid, path);
	unsetenv("GPREEMPT_RUN");
	expect_for(uid, own);
	setenv("XDG_RUNTIME_DIR", "", 1);
	expect_for(uid, own);
	setenv("XDG_RUNTIME_DIR", "/run/user/4711", 1);
	setenv("GPREEMPT_RUN", "", 1);
	expect_for(uid, "/run/user/4711/gpreempt");
	if (geteuid())
		skip();
	expect_for(0, "/run/gpreempt");
	setenv("GPREEMPT_RUN", path, 1);
	expect_for(0, path);
}

TEST_WITH(it_is_made_once_and_stays, set_up, tear_down)
{
	mode_t mask = umask(0277);
	struct stat s;

	assert_int_equal(gp_run_dir_make(NULL), 0);
	umask(mask);
	assert_int_equal(stat(path, &s), 0);
	assert_int_equal(s.st_mode & 07777, geteuid() ? 0700 : 0755);
	assert_int_equal(gp_run_dir_make(NULL), 0);
}

static void expect_refused(int code)
{
	struct gp_error err = {0};

	assert_int_equal(gp_run_dir_make(&err), code);
	assert_int_equal(err.code, code);
	assert_non_null(strstr(err.text, dir));
}

TEST_WITH(one_that_others_may_write_to_is_refused, set_up, tear_down)
{
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(chmod(path, 0720), 0);
	expect_refused(-EPERM);
	assert_int_equal(chmod(path, 0702), 0);
	expect_refused(-EPERM);
	assert_int_equal(chmod(path, 0755), 0);
	assert_int_equal(gp_run_dir_make(NULL), 0);
}

TEST_WITH(one_of_another_user_is_refused, set_up, tear_down)
{
	if (geteuid())
		skip();
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(chown(path, NOBODY, NOBODY), 0);
	expect_refused(-EPERM);
}

/* Also to a folder that would be good: the owner of the link can point it elsewhere. */
TEST_WITH(a_link_or_a_file_is_refused, set_up, tear_down)
{
	assert_int_equal(symlink(dir, path), 0);
	expect_refused(-EPERM);
	unlink(path);
	assert_int_equal(symlink("/nonexistent", path), 0);
	expect_refused(-EPERM);
	unlink(path);
	close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	expect_refused(-EPERM);
}

TEST_WITH(what_cannot_be_made_is_said, set_up, tear_down)
{
	char far[400];

	snprintf(far, sizeof far, "%s/no/run", dir);
	setenv("GPREEMPT_RUN", far, 1);
	expect_refused(-ENOENT);
	snprintf(far, sizeof far, "%s/%0300d", dir, 0);
	setenv("GPREEMPT_RUN", far, 1);
	expect_refused(-ENAMETOOLONG);
}
