/* SPDX-License-Identifier: Apache-2.0 */
/* Programs and cgroups that only root can have created. */
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "procinfo_world.h"
#include "procinfo/read.h"

/* The program `path`, in a child, until it is stopped. */
static pid_t start_program(const char *path)
{
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0); /* closed by a successful exec */
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl(path, path, "1000", NULL);
		_exit(write(ready[1], "f", 1) == 1 ? 127 : 126);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 0);
	close(ready[0]);
	return pid;
}

static bool is_program_trusted(const char *path)
{
	pid_t pid = start_program(path);
	struct gp_procinfo *f = info_of_child(pid);
	bool trusted = f->exe_trusted;

	assert_true(f->known & GP_PROCINFO_EXE);
	gp_procinfo_drop(f);
	stop_child(pid);
	return trusted;
}

static void copy_program(const char *from, const char *to)
{
	char command[256];

	snprintf(command, sizeof command, "cp '%s' '%s'", from, to);
	assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c) */
}

TEST(a_program_is_trusted_where_only_root_can_change_it_or_the_way_to_it)
{
	char folder[] = "/opt/gp-facts-XXXXXX", path[64], open_folder[64], deep[128];

	if (geteuid() || !gp_procinfo_path_is_roots("/usr/bin/sleep") ||
	    !gp_procinfo_path_is_roots("/opt") || !mkdtemp(folder))
		skip();
	assert_true(is_program_trusted("/usr/bin/sleep"));
	chmod(folder, 0755);
	snprintf(path, sizeof path, "%s/program", folder);
	copy_program("/usr/bin/sleep", path);
	assert_true(is_program_trusted(path));
	chmod(path, 0775); /* the group may write it */
	assert_false(is_program_trusted(path));
	chmod(path, 0757);
	assert_false(is_program_trusted(path));
	chmod(path, 0755);
	assert_int_equal(chown(path, NOBODY, 0), 0);
	assert_false(is_program_trusted(path));
	snprintf(open_folder, sizeof open_folder, "%s/open", folder);
	snprintf(deep, sizeof deep, "%s/program", open_folder);
	assert_int_equal(mkdir(open_folder, 0755), 0);
	copy_program("/usr/bin/sleep", deep);
	assert_true(is_program_trusted(deep));
	chmod(open_folder, 01777); /* others may put theirs in its place */
	assert_false(is_program_trusted(deep));
	unlink(deep);
	rmdir(open_folder);
	unlink(path);
	rmdir(folder);
}

/* A user with an own mount namespace can put any file in the place of a trusted one. */
static bool hide_sleep(void)
{
	char program[] = PROCINFO_TARGET;

	return !unshare(CLONE_NEWNS) && !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
	       !mount(program, "/usr/bin/sleep", NULL, MS_BIND, NULL);
}

TEST(a_file_of_the_same_name_in_another_mount_namespace_is_not_trusted)
{
	struct gp_procinfo *f;
	int ready[2];
	char byte;
	pid_t pid;

	if (geteuid() || !gp_procinfo_path_is_roots("/usr/bin/sleep"))
		skip();
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(ready[1], STDOUT_FILENO);
		if (!hide_sleep())
			_exit(77);
		execl("/usr/bin/sleep", "sleep", "plain", "0", NULL);
		_exit(77);
	}
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1) { /* procinfo-target says ready */
		waitpid(pid, NULL, 0);
		close(ready[0]);
		skip();
	}
	close(ready[0]);
	f = info_of_child(pid);
	assert_string_equal(f->exe, "/usr/bin/sleep");
	assert_false(f->exe_trusted);
	gp_procinfo_drop(f);
	stop_child(pid);
}

/* A cgroup that can be made here, in v2 or in a hierarchy of v1; "" if there is none. */
static void make_cgroup(char *path, size_t size)
{
	static const char *const roots[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified",
					    "/sys/fs/cgroup/systemd"};

	for (unsigned i = 0; i < 3; i++) {
		char procs[128];

		snprintf(procs, sizeof procs, "%s/cgroup.procs", roots[i]);
		snprintf(path, size, "%s/gp-facts-%d", roots[i], getpid());
		if (!access(procs, W_OK) && !mkdir(path, 0755))
			return;
	}
	path[0] = '\0';
}

static bool join(const char *cgroup, pid_t pid)
{
	char path[256], text[16];
	int fd, n = snprintf(text, sizeof text, "%d", pid);
	bool joined;

	snprintf(path, sizeof path, "%s/cgroup.procs", cgroup);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	joined = fd >= 0 && write(fd, text, (size_t)n) == n;
	if (fd >= 0)
		close(fd);
	return joined;
}

static bool is_cgroup_trusted(pid_t pid, const char *end)
{
	struct gp_procinfo *f = info_of_child(pid);
	bool trusted = f->cgroup_trusted;
	size_t length = strlen(f->cgroup), wanted = strlen(end);

	assert_true(f->known & GP_PROCINFO_CGROUP);
	assert_true(length >= wanted);
	assert_string_equal(f->cgroup + length - wanted, end);
	gp_procinfo_drop(f);
	return trusted;
}

static bool do_nothing(void)
{
	return true;
}

TEST(a_cgroup_is_trusted_where_only_root_can_make_one)
{
	char cgroup[64], inner[80], end[64];
	pid_t pid;

	make_cgroup(cgroup, sizeof cgroup);
	if (geteuid() || !cgroup[0])
		skip();
	snprintf(inner, sizeof inner, "%s/inner", cgroup);
	snprintf(end, sizeof end, "/gp-facts-%d", getpid());
	assert_int_equal(mkdir(inner, 0755), 0);
	pid = start_child(do_nothing);
	assert_true(join(cgroup, pid));
	assert_true(is_cgroup_trusted(pid, end));
	assert_int_equal(chown(cgroup, NOBODY, NOBODY),
			 0); /* handed to a user: it keeps its name */
	assert_true(is_cgroup_trusted(pid, end));
	assert_true(join(inner, pid)); /* but in it he may make what he likes */
	assert_false(is_cgroup_trusted(pid, "/inner"));
	assert_int_equal(chown(cgroup, 0, 0), 0);
	assert_true(is_cgroup_trusted(pid, "/inner"));
	stop_child(pid);
	for (unsigned i = 0; i < 1000 && rmdir(inner); i++)
		usleep(1000);
	assert_int_equal(rmdir(cgroup), 0);
}
