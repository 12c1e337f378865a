/* SPDX-License-Identifier: Apache-2.0 */
/* What is told of a process is what it is, once for each question. */
#include <grp.h>
#include <sched.h>
#include <sys/prctl.h>

#include "procinfo_world.h"

static bool has_variable(const struct gp_procinfo *f, const char *variable)
{
	for (const char *at = f->environ; at < f->environ + f->environ_size; at += strlen(at) + 1)
		if (!strcmp(at, variable))
			return true;
	return false;
}

TEST(a_process_is_what_it_is)
{
	struct target t = start_target("plain", 0);
	struct gp_procinfo *f = info_of(t.pid, t.start_time, GP_PROCINFO_ALL);

	assert_int_equal(f->gone, 0);
	assert_int_equal(f->pid, t.pid);
	assert_int_equal(f->start_time, t.start_time);
	assert_int_equal(f->known, GP_PROCINFO_ALL);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(f->uid[i], getuid());
	assert_int_equal(f->gid, getgid());
	assert_false(f->other_pidns);
	assert_string_equal(f->exe, PROCINFO_TARGET);
	assert_string_equal(f->comm, "procinfo-target");
	assert_int_equal(strncmp(f->cmdline, "t plain 0 www", 13), 0);
	assert_int_equal(strlen(f->cmdline), GP_PROCINFO_CMDLINE_MAX); /* of more, the beginning */
	assert_true(has_variable(f, "COLOUR=red"));
	assert_true(has_variable(f, "LAST=1"));
	assert_false(has_variable(f, "COLOUR"));
	assert_int_equal(f->cgroup[0], '/');
	gp_procinfo_drop(f);
	stop_target(&t);
}

TEST(only_what_is_wanted_is_read)
{
	static const uint32_t info[] = {GP_PROCINFO_CGROUP, GP_PROCINFO_EXE, GP_PROCINFO_COMM,
					GP_PROCINFO_CMDLINE, GP_PROCINFO_ENVIRON};
	struct target t = start_target("plain", 0);

	for (unsigned i = 0; i < sizeof info / sizeof *info; i++) {
		struct gp_procinfo *f = info_of(t.pid, t.start_time, info[i]);

		assert_int_equal(f->known, info[i] | GP_PROCINFO_USER);
		gp_procinfo_drop(f);
	}
	stop_target(&t);
}

static bool become_several(void)
{
	static const gid_t groups[] = {7, 8, 9};

	return !setgroups(3, groups) && !setresgid(70, 71, 72) && !setresuid(100, 101, 0);
}

TEST(users_and_groups_are_the_real_the_effective_and_the_saved)
{
	pid_t pid = start_child(become_several);
	struct gp_procinfo *f = info_of_child(pid);

	assert_true(f->known & GP_PROCINFO_USER);
	assert_int_equal(f->uid[0], 100);
	assert_int_equal(f->uid[1], 101);
	assert_int_equal(f->uid[2], 0);
	assert_int_equal(f->gid, 70); /* not that of a set-gid program */
	assert_int_equal(f->ngroups, 3);
	assert_int_equal(f->group[0], 7);
	assert_int_equal(f->group[2], 9);
	gp_procinfo_drop(f);
	stop_child(pid);
}

static bool call_itself_names(void)
{
	return !prctl(PR_SET_NAME, "\nUid:\t0\t0\t0\t0") && !setgid(NOBODY) && !setuid(NOBODY);
}

TEST(a_name_does_not_make_up_a_user)
{
	pid_t pid = start_child(call_itself_names);
	struct gp_procinfo *f = info_of_child(pid);

	assert_int_equal(f->uid[0], NOBODY);
	assert_int_equal(f->uid[1], NOBODY);
	assert_string_equal(f->comm, "\nUid:\t0\t0\t0\t0");
	gp_procinfo_drop(f);
	stop_child(pid);
}

TEST(a_process_in_a_container_is_said_to_be_in_one)
{
	int ready[2];
	struct gp_procinfo *f;
	pid_t pid, outer;

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
	f = info_of_child(pid);
	assert_true(f->other_pidns);
	gp_procinfo_drop(f);
	kill(pid, SIGKILL);
	stop_child(outer);
	close(ready[0]);
}

/* What a daemon without root can know. */
static int look_as_nobody(const struct target *own, const struct target *roots)
{
	const uint32_t memory = GP_PROCINFO_CMDLINE | GP_PROCINFO_ENVIRON;
	struct gp_procinfo *f;
	int wrong;

	if (setgroups(0, NULL) || setgid(NOBODY) || setuid(NOBODY))
		return 2;
	f = info_of(own->pid, own->start_time, GP_PROCINFO_ALL);
	wrong = (f->known & memory) != memory || !has_variable(f, "COLOUR=red");
	gp_procinfo_drop(f);
	f = info_of(roots->pid, roots->start_time, GP_PROCINFO_ALL);
	wrong |= f->known & memory || !(f->known & GP_PROCINFO_USER) ||
		 !(f->known & GP_PROCINFO_COMM);
	gp_procinfo_drop(f);
	return wrong;
}

TEST(without_root_the_memory_of_others_is_unknown_and_not_empty)
{
	struct target own = start_target("plain", NOBODY), roots = start_target("plain", 0);
	int status;
	pid_t pid;

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

TEST(another_process_with_that_pid_is_not_the_one)
{
	struct target t = start_target("plain", 0);
	struct gp_procinfo *f = info_of(t.pid, t.start_time + 1, GP_PROCINFO_ALL);

	assert_int_equal(f->gone, -ESRCH);
	assert_int_equal(f->known, 0);
	gp_procinfo_drop(f);
	stop_target(&t);
	f = info_of(t.pid, t.start_time, GP_PROCINFO_ALL); /* it has ended */
	assert_int_equal(f->gone, -ESRCH);
	assert_int_equal(f->known, 0);
	gp_procinfo_drop(f);
}

TEST(every_question_has_exactly_one_answer)
{
	enum { QUESTIONS = 5000 };
	static unsigned char answered[QUESTIONS];
	struct target t = start_target("plain", 0);
	struct gp_procinfo *f;
	uint64_t token;
	int fd;
	struct gp_procinfo_pool *pool = make_pool(patient, &fd);

	assert_false(is_readable(fd, 0));
	assert_int_equal(gp_procinfo_take(pool, &f, &token), -EAGAIN);
	for (unsigned i = 0; i < QUESTIONS; i++)
		assert_int_equal(
			gp_procinfo_ask(pool, t.pid, t.start_time + i % 2, GP_PROCINFO_COMM, i), 0);
	for (unsigned i = 0; i < QUESTIONS; i++) {
		f = wait_for(pool, fd, &token);
		assert_true(token < QUESTIONS);
		assert_int_equal(answered[token]++, 0);
		assert_int_equal(f->gone, token % 2 ? -ESRCH : 0);
		gp_procinfo_drop(f);
	}
	assert_int_equal(gp_procinfo_take(pool, &f, &token), -EAGAIN);
	assert_false(is_readable(fd, 0));
	gp_procinfo_free(pool);
	stop_target(&t);
}

TEST(too_many_questions_are_refused_until_answers_are_taken)
{
	struct gp_procinfo_limits limits = {.questions = 3};
	struct gp_procinfo *f;
	uint64_t token;
	int fd;
	struct gp_procinfo_pool *pool = make_pool(limits, &fd);

	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(gp_procinfo_ask(pool, 1, 1, 0, i), 0);
	assert_int_equal(gp_procinfo_ask(pool, 1, 1, 0, 3), -EAGAIN);
	f = wait_for(pool, fd, &token);
	gp_procinfo_drop(f);
	assert_int_equal(gp_procinfo_ask(pool, 1, 1, 0, 3), 0);
	gp_procinfo_free(pool); /* with three results that are not taken */
}
