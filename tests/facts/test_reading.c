/* SPDX-License-Identifier: Apache-2.0 */
/* What is told of a process is what it is; and which of it nobody but root could have made up. */
#include <grp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "facts_world.h"
#include "facts/read.h"

/* ---- each fact --------------------------------------------------------------------------------
 */

static bool has_variable(const struct gp_facts *f, const char *variable)
{
	for (const char *at = f->environ; at < f->environ + f->environ_size; at += strlen(at) + 1)
		if (!strcmp(at, variable))
			return true;
	return false;
}

static void a_process_is_what_it_is(void **state)
{
	struct target t = start_target("plain", 0);
	struct gp_facts *f = facts_of(t.pid, t.start_time, GP_FACT_ALL);

	(void)state;
	assert_int_equal(f->gone, 0);
	assert_int_equal(f->pid, t.pid);
	assert_int_equal(f->start_time, t.start_time);
	assert_int_equal(f->known, GP_FACT_ALL);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(f->uid[i], getuid());
	assert_int_equal(f->gid, getgid());
	assert_false(f->other_pidns);
	assert_string_equal(f->exe, FACTS_TARGET);
	assert_string_equal(f->comm, "facts-target");
	assert_int_equal(strncmp(f->cmdline, "t plain 0 www", 13), 0);
	assert_int_equal(strlen(f->cmdline), GP_FACTS_CMDLINE_MAX); /* of more, the beginning */
	assert_true(has_variable(f, "COLOUR=red"));
	assert_true(has_variable(f, "LAST=1"));
	assert_false(has_variable(f, "COLOUR"));
	assert_int_equal(f->cgroup[0], '/');
	gp_facts_drop(f);
	stop_target(&t);
}

static void only_what_is_wanted_is_read(void **state)
{
	static const uint32_t facts[] = {GP_FACT_CGROUP, GP_FACT_EXE, GP_FACT_COMM, GP_FACT_CMDLINE,
	                                 GP_FACT_ENVIRON};
	struct target t = start_target("plain", 0);

	(void)state;
	for (unsigned i = 0; i < sizeof facts / sizeof *facts; i++) {
		struct gp_facts *f = facts_of(t.pid, t.start_time, facts[i]);

		assert_int_equal(f->known, facts[i] | GP_FACT_USER);
		gp_facts_drop(f);
	}
	stop_target(&t);
}

/* A child that does `prepare`, then waits. */
static pid_t start_child(bool (*prepare)(void))
{
	int ready[2];
	char byte = 0;
	pid_t pid;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid = fork();
	if (!pid) {
		byte = prepare() ? 'r' : 'c';
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (write(ready[1], &byte, 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	if (byte != 'r') {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		skip();
	}
	return pid;
}

static struct gp_facts *facts_of_child(pid_t pid)
{
	return facts_of(pid, gp_process_start_time(pid), GP_FACT_ALL);
}

static void stop_child(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static bool become_several(void)
{
	static const gid_t groups[] = {7, 8, 9};

	return !setgroups(3, groups) && !setresgid(70, 71, 72) && !setresuid(100, 101, 0);
}

static void users_and_groups_are_the_real_the_effective_and_the_saved(void **state)
{
	pid_t pid = start_child(become_several);
	struct gp_facts *f = facts_of_child(pid);

	(void)state;
	assert_true(f->known & GP_FACT_USER);
	assert_int_equal(f->uid[0], 100);
	assert_int_equal(f->uid[1], 101);
	assert_int_equal(f->uid[2], 0);
	assert_int_equal(f->gid, 70); /* not that of a set-gid program */
	assert_int_equal(f->ngroups, 3);
	assert_int_equal(f->group[0], 7);
	assert_int_equal(f->group[2], 9);
	gp_facts_drop(f);
	stop_child(pid);
}

static bool call_itself_names(void)
{
	return !prctl(PR_SET_NAME, "\nUid:\t0\t0\t0\t0") && !setgid(NOBODY) && !setuid(NOBODY);
}

static void a_name_does_not_make_up_a_user(void **state)
{
	pid_t pid = start_child(call_itself_names);
	struct gp_facts *f = facts_of_child(pid);

	(void)state;
	assert_int_equal(f->uid[0], NOBODY);
	assert_int_equal(f->uid[1], NOBODY);
	assert_string_equal(f->comm, "\nUid:\t0\t0\t0\t0");
	gp_facts_drop(f);
	stop_child(pid);
}

static void a_process_in_a_container_is_said_to_be_in_one(void **state)
{
	int ready[2];
	struct gp_facts *f;
	pid_t pid, outer;

	(void)state;
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	outer = fork();
	if (!outer) {
		pid_t inner;

		if (unshare(CLONE_NEWPID))
			_exit(77);
		inner = fork();
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (inner && write(ready[1], &inner, sizeof inner) != sizeof inner)
			_exit(1);
		for (;;)
			pause();
	}
	close(ready[1]);
	if (read(ready[0], &pid, sizeof pid) != sizeof pid) {
		stop_child(outer);
		close(ready[0]);
		skip();
	}
	f = facts_of_child(pid);
	assert_true(f->other_pidns);
	gp_facts_drop(f);
	kill(pid, SIGKILL);
	stop_child(outer);
	close(ready[0]);
}

/* What a daemon without root can know. */
static int look_as_nobody(const struct target *own, const struct target *roots)
{
	const uint32_t memory = GP_FACT_CMDLINE | GP_FACT_ENVIRON;
	struct gp_facts *f;
	int wrong;

	if (setgroups(0, NULL) || setgid(NOBODY) || setuid(NOBODY))
		return 2;
	f = facts_of(own->pid, own->start_time, GP_FACT_ALL);
	wrong = (f->known & memory) != memory || !has_variable(f, "COLOUR=red");
	gp_facts_drop(f);
	f = facts_of(roots->pid, roots->start_time, GP_FACT_ALL);
	wrong |= f->known & memory || !(f->known & GP_FACT_USER) || !(f->known & GP_FACT_COMM);
	gp_facts_drop(f);
	return wrong;
}

static void without_root_the_memory_of_others_is_unknown_and_not_empty(void **state)
{
	struct target own = start_target("plain", NOBODY), roots = start_target("plain", 0);
	int status;
	pid_t pid;

	(void)state;
	if (geteuid())
		skip();
	pid = fork();
	if (!pid)
		_exit(look_as_nobody(&own, &roots));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	stop_target(&own);
	stop_target(&roots);
}

/* ---- which process ----------------------------------------------------------------------------
 */

static void another_process_with_that_pid_is_not_the_one(void **state)
{
	struct target t = start_target("plain", 0);
	struct gp_facts *f = facts_of(t.pid, t.start_time + 1, GP_FACT_ALL);

	(void)state;
	assert_int_equal(f->gone, -ESRCH);
	assert_int_equal(f->known, 0);
	gp_facts_drop(f);
	stop_target(&t);
	f = facts_of(t.pid, t.start_time, GP_FACT_ALL); /* it has ended */
	assert_int_equal(f->gone, -ESRCH);
	assert_int_equal(f->known, 0);
	gp_facts_drop(f);
}

/* ---- what users can make up -------------------------------------------------------------------
 */

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
	struct gp_facts *f = facts_of_child(pid);
	bool trusted = f->exe_trusted;

	assert_true(f->known & GP_FACT_EXE);
	gp_facts_drop(f);
	stop_child(pid);
	return trusted;
}

static void copy_program(const char *from, const char *to)
{
	char command[256];

	snprintf(command, sizeof command, "cp '%s' '%s'", from, to);
	assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c) */
}

static void a_program_is_trusted_where_only_root_can_change_it_or_the_way_to_it(void **state)
{
	char folder[] = "/opt/gp-facts-XXXXXX", path[64], open_folder[64], deep[128];

	(void)state;
	if (geteuid() || !gp_facts_path_is_roots("/usr/bin/sleep") ||
	    !gp_facts_path_is_roots("/opt") || !mkdtemp(folder))
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

/* Whoever has a mount namespace of his own can put any file where a trusted one is. */
static bool hide_sleep(void)
{
	char program[] = FACTS_TARGET;

	return !unshare(CLONE_NEWNS) && !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
	       !mount(program, "/usr/bin/sleep", NULL, MS_BIND, NULL);
}

static void a_file_of_the_same_name_in_another_mount_namespace_is_not_trusted(void **state)
{
	struct gp_facts *f;
	int ready[2];
	char byte;
	pid_t pid;

	(void)state;
	if (geteuid() || !gp_facts_path_is_roots("/usr/bin/sleep"))
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
	if (read(ready[0], &byte, 1) != 1) { /* facts-target says ready */
		waitpid(pid, NULL, 0);
		close(ready[0]);
		skip();
	}
	close(ready[0]);
	f = facts_of_child(pid);
	assert_string_equal(f->exe, "/usr/bin/sleep");
	assert_false(f->exe_trusted);
	gp_facts_drop(f);
	stop_child(pid);
}

/* ---- cgroups ----------------------------------------------------------------------------------
 */

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
	struct gp_facts *f = facts_of_child(pid);
	bool trusted = f->cgroup_trusted;
	size_t length = strlen(f->cgroup), wanted = strlen(end);

	assert_true(f->known & GP_FACT_CGROUP);
	assert_true(length >= wanted);
	assert_string_equal(f->cgroup + length - wanted, end);
	gp_facts_drop(f);
	return trusted;
}

static bool do_nothing(void)
{
	return true;
}

static void a_cgroup_is_trusted_where_only_root_can_make_one(void **state)
{
	char cgroup[64], inner[80], end[64];
	pid_t pid;

	(void)state;
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

/* ---- many -------------------------------------------------------------------------------------
 */

static void every_question_has_exactly_one_answer(void **state)
{
	enum { QUESTIONS = 5000 };
	static unsigned char answered[QUESTIONS];
	struct target t = start_target("plain", 0);
	struct gp_facts_pool *pool;
	struct gp_facts *f;
	uint64_t token;
	int fd;

	(void)state;
	pool = make_pool(patient, &fd);
	assert_false(is_readable(fd, 0));
	assert_int_equal(gp_facts_take(pool, &f, &token), -EAGAIN);
	for (unsigned i = 0; i < QUESTIONS; i++)
		assert_int_equal(gp_facts_ask(pool, t.pid, t.start_time + i % 2, GP_FACT_COMM, i),
		                 0);
	for (unsigned i = 0; i < QUESTIONS; i++) {
		f = wait_for(pool, fd, &token);
		assert_true(token < QUESTIONS);
		assert_int_equal(answered[token]++, 0);
		assert_int_equal(f->gone, token % 2 ? -ESRCH : 0);
		gp_facts_drop(f);
	}
	assert_int_equal(gp_facts_take(pool, &f, &token), -EAGAIN);
	assert_false(is_readable(fd, 0));
	gp_facts_free(pool);
	stop_target(&t);
}

static void too_many_questions_are_refused_until_answers_are_taken(void **state)
{
	struct gp_facts_limits limits = {.questions = 3};
	struct gp_facts_pool *pool;
	struct gp_facts *f;
	uint64_t token;
	int fd;

	(void)state;
	pool = make_pool(limits, &fd);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(gp_facts_ask(pool, 1, 1, 0, i), 0);
	assert_int_equal(gp_facts_ask(pool, 1, 1, 0, 3), -EAGAIN);
	f = wait_for(pool, fd, &token);
	gp_facts_drop(f);
	assert_int_equal(gp_facts_ask(pool, 1, 1, 0, 3), 0);
	gp_facts_free(pool); /* with three that nobody takes */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_process_is_what_it_is),
		cmocka_unit_test(only_what_is_wanted_is_read),
		cmocka_unit_test(users_and_groups_are_the_real_the_effective_and_the_saved),
		cmocka_unit_test(a_name_does_not_make_up_a_user),
		cmocka_unit_test(a_process_in_a_container_is_said_to_be_in_one),
		cmocka_unit_test(without_root_the_memory_of_others_is_unknown_and_not_empty),
		cmocka_unit_test(another_process_with_that_pid_is_not_the_one),
		cmocka_unit_test(
			a_program_is_trusted_where_only_root_can_change_it_or_the_way_to_it),
		cmocka_unit_test(a_file_of_the_same_name_in_another_mount_namespace_is_not_trusted),
		cmocka_unit_test(a_cgroup_is_trusted_where_only_root_can_make_one),
		cmocka_unit_test(every_question_has_exactly_one_answer),
		cmocka_unit_test(too_many_questions_are_refused_until_answers_are_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
