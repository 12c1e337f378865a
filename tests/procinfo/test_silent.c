/* SPDX-License-Identifier: Apache-2.0 */
/* A process with memory that never answers costs a reader thread; other answers arrive. */
#include <dirent.h>
#include <sys/syscall.h>

#include "procinfo_world.h"

#define MEMORY (GP_PROCINFO_CMDLINE | GP_PROCINFO_ENVIRON)

static const struct gp_procinfo_limits quick = {.deadline_ns = GP_NS_PER_S};

static void ask(struct gp_procinfo_pool *pool, const struct target *t, uint64_t token)
{
	assert_int_equal(gp_procinfo_ask(pool, t->pid, t->start_time, GP_PROCINFO_ALL, token), 0);
}

static void wait_until_nobody_is_stuck(struct gp_procinfo_pool *pool)
{
	for (unsigned i = 0; i < PATIENCE_MS && gp_procinfo_stuck(pool); i++)
		usleep(1000);
	assert_int_equal(gp_procinfo_stuck(pool), 0);
}

static void let_answer(const struct target *t)
{
	assert_int_equal(write(t->input, "a", 1), 1);
}

/* What can be known is; the rest is not, and the reader comes back when the page does. */
TEST(after_the_deadline_the_answer_comes_without_what_is_in_memory)
{
	static const struct {
		const char *mode;
		uint32_t known;
	} modes[] = {
		{"silent-words", GP_PROCINFO_ALL & ~MEMORY},
		{"silent-environment", GP_PROCINFO_ALL & ~GP_PROCINFO_ENVIRON},
	};

	for (unsigned i = 0; i < 2; i++) {
		struct target t = start_target(modes[i].mode, 0);
		struct gp_procinfo_pool *pool;
		struct gp_procinfo *info;
		uint64_t token, began = gp_monotonic_ns();
		int fd;

		pool = make_pool(quick, &fd);
		ask(pool, &t, 1);
		info = wait_for(pool, fd, &token);
		assert_true(gp_monotonic_ns() - began >= quick.deadline_ns);
		assert_int_equal(info->gone, 0);
		assert_int_equal(info->known, modes[i].known);
		assert_int_equal(gp_procinfo_stuck(pool), 1);
		gp_procinfo_drop(info);
		let_answer(&t);
		wait_until_nobody_is_stuck(pool);
		gp_procinfo_free(pool);
		stop_target(&t);
	}
}

TEST(meanwhile_others_are_answered)
{
	struct target silent = start_target("silent-words", 0), plain = start_target("plain", 0);
	struct gp_procinfo *info;
	uint64_t token;
	int fd;
	struct gp_procinfo_pool *pool = make_pool(patient, &fd);

	ask(pool, &silent, 1);
	for (unsigned i = 2; i < 100; i++) {
		ask(pool, &plain, i);
		info = wait_for(pool, fd, &token);
		assert_int_equal(token, i);
		assert_int_equal(info->known, GP_PROCINFO_ALL);
		gp_procinfo_drop(info);
	}
	stop_target(&silent); /* which ends the wait, too */
	info = wait_for(pool, fd, &token);
	assert_int_equal(token, 1);
	gp_procinfo_drop(info);
	gp_procinfo_free(pool);
	stop_target(&plain);
}

/* Whether a thread of ours is reading memory of another process. */
static bool does_a_thread_read(void)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *entry;
	bool reads = false;

	while (dir && (entry = readdir(dir))) {
		char path[320], text[64] = "";
		FILE *f;

		snprintf(path, sizeof path, "/proc/self/task/%s/syscall", entry->d_name);
		f = fopen(path, "re");
		if (f && fgets(text, sizeof text, f))
			reads |= strtol(text, NULL, 10) == SYS_process_vm_readv;
		if (f)
			fclose(f);
	}
	if (dir)
		closedir(dir);
	return reads;
}

/* Its pid may be reused by the end: the result is about a process that is gone. */
TEST(who_ends_while_he_is_read_is_gone)
{
	struct gp_procinfo_limits limits[] = {patient, quick}; /* read to the end; left behind */

	for (unsigned i = 0; i < 2; i++) {
		struct target t = start_target("orphan-words", 0);
		int input = dup(t.input), fd;
		struct gp_procinfo_pool *pool;
		struct gp_procinfo *info;
		uint64_t token;

		pool = make_pool(limits[i], &fd);
		ask(pool, &t, 1);
		for (unsigned j = 0; j < PATIENCE_MS && !does_a_thread_read(); j++)
			usleep(1000);
		assert_true(does_a_thread_read());
		stop_target(&t);
		if (i == 0)
			close(input); /* now the page comes */
		info = wait_for(pool, fd, &token);
		assert_int_equal(info->gone, -ESRCH);
		assert_int_equal(info->known, 0);
		assert_int_equal(gp_procinfo_stuck(pool), i);
		gp_procinfo_drop(info);
		if (i == 1)
			close(input);
		wait_until_nobody_is_stuck(pool);
		gp_procinfo_free(pool);
	}
}

TEST(another_process_with_that_pid_is_not_even_touched)
{
	struct target t = start_target("silent-words", 0);
	struct gp_procinfo *info;
	uint64_t token;
	int fd;
	struct gp_procinfo_pool *pool = make_pool(quick, &fd);

	assert_int_equal(gp_procinfo_ask(pool, t.pid, t.start_time + 1, GP_PROCINFO_ALL, 1), 0);
	info = wait_for(pool, fd, &token);
	assert_int_equal(info->gone, -ESRCH);
	assert_int_equal(gp_procinfo_stuck(pool), 0);
	gp_procinfo_drop(info);
	gp_procinfo_free(pool);
	stop_target(&t);
}

/* All readers are stuck, and there are more questions: others take their place. */
TEST(who_is_stuck_is_replaced)
{
	struct gp_procinfo_limits one = {.deadline_ns = GP_NS_PER_S, .readers = 1};
	struct target silent = start_target("silent-words", 0),
		      plain = start_target("plain", NOBODY);
	struct gp_procinfo *info;
	uint64_t token;
	int fd;
	struct gp_procinfo_pool *pool = make_pool(one, &fd);

	ask(pool, &silent, 1);
	ask(pool, &plain, 2);
	info = wait_for(pool, fd, &token);
	assert_int_equal(token, 1);
	gp_procinfo_drop(info);
	info = wait_for(pool, fd, &token);
	assert_int_equal(token, 2);
	assert_true(info->known & GP_PROCINFO_USER);
	gp_procinfo_drop(info);
	let_answer(&silent);
	wait_until_nobody_is_stuck(pool);
	gp_procinfo_free(pool);
	stop_target(&silent);
	stop_target(&plain);
}

/* Also with more processes to read, the number of stuck threads is limited. */
TEST(with_too_many_stuck_memory_is_unknown_at_once)
{
	struct gp_procinfo_limits few = {.deadline_ns = GP_NS_PER_S, .stuck = 1, .distrust_ns = 1};
	struct target silent = start_target("silent-words", 0);
	struct target other = start_target("silent-words", NOBODY);
	struct gp_procinfo *info;
	uint64_t token;
	int fd;
	struct gp_procinfo_pool *pool = make_pool(few, &fd);

	ask(pool, &silent, 1);
	gp_procinfo_drop(wait_for(pool, fd, &token));
	assert_int_equal(gp_procinfo_stuck(pool), 1);
	for (unsigned i = 0; i < 10; i++) {
		ask(pool, &other, 2);
		info = wait_for(pool, fd, &token);
		assert_int_equal(info->known & MEMORY, 0);
		assert_true(info->known & GP_PROCINFO_USER);
		gp_procinfo_drop(info);
	}
	assert_int_equal(gp_procinfo_stuck(pool), 1); /* no caller waited for it */
	let_answer(&silent);
	wait_until_nobody_is_stuck(pool);
	gp_procinfo_free(pool);
	stop_target(&silent);
	stop_target(&other);
}

TEST(who_let_us_wait_is_not_read_for_a_while_and_others_are)
{
	struct target silent = start_target("silent-words", NOBODY);
	struct target same = start_target("plain", NOBODY), other = start_target("plain", 0);
	struct gp_procinfo *info;
	uint64_t token;
	int fd;
	struct gp_procinfo_pool *pool = make_pool(quick, &fd);

	ask(pool, &silent, 1);
	gp_procinfo_drop(wait_for(pool, fd, &token));
	let_answer(&silent);
	wait_until_nobody_is_stuck(pool);
	ask(pool, &same, 2);
	info = wait_for(pool, fd, &token);
	assert_int_equal(info->known & MEMORY, 0);
	gp_procinfo_drop(info);
	ask(pool, &other, 3);
	info = wait_for(pool, fd, &token);
	assert_int_equal(info->known & MEMORY, MEMORY);
	gp_procinfo_drop(info);
	gp_procinfo_free(pool);
	stop_target(&silent);
	stop_target(&same);
	stop_target(&other);
}

/* As if the daemon was stopped for a while: the wait does not count. */
TEST(who_looks_much_too_late_blames_nobody)
{
	struct gp_procinfo_limits brief = {.deadline_ns = GP_NS_PER_S / 4};
	struct target t = start_target("silent-words", 0);
	struct gp_procinfo *info;
	uint64_t token;
	int fd;
	struct gp_procinfo_pool *pool = make_pool(brief, &fd);

	ask(pool, &t, 1);
	usleep(1000000);
	assert_int_equal(gp_procinfo_take(pool, &info, &token), -EAGAIN);
	let_answer(&t);
	info = wait_for(pool, fd, &token);
	assert_int_equal(info->known & MEMORY, MEMORY);
	gp_procinfo_drop(info);
	gp_procinfo_free(pool);
	stop_target(&t);
}

TEST(a_pool_ends_while_somebody_is_stuck)
{
	struct target t = start_target("silent-words", 0);
	uint64_t token;
	int fd;
	struct gp_procinfo_pool *pool = make_pool(quick, &fd);

	ask(pool, &t, 1);
	gp_procinfo_drop(wait_for(pool, fd, &token));
	gp_procinfo_free(pool); /* one was left behind before */
	pool = make_pool(quick, &fd);
	ask(pool, &t, 1);
	gp_procinfo_free(pool); /* and this one is now */
	let_answer(&t);
	stop_target(&t);
}

/* A daemon that is killed must end, whatever its readers wait for. */
TEST(a_process_with_a_stuck_reader_can_be_killed)
{
	struct target t = start_target("silent-words", 0);
	int ready[2], status;
	pid_t pid, ended = 0;
	char byte;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid = fork();
	if (!pid) {
		struct gp_procinfo_pool *pool;
		uint64_t token;
		int fd;

		if (gp_procinfo_new_limited(&quick, &pool, &fd) ||
		    gp_procinfo_ask(pool, t.pid, t.start_time, GP_PROCINFO_ALL, 1))
			_exit(1);
		gp_procinfo_drop(wait_for(pool, fd, &token));
		if (gp_procinfo_stuck(pool) != 1 || write(ready[1], "s", 1) != 1)
			_exit(2);
		for (;;)
			pause();
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	kill(pid, SIGKILL);
	for (unsigned i = 0; i < PATIENCE_MS / 10 && !ended; i++) {
		ended = waitpid(pid, &status, WNOHANG);
		if (!ended)
			usleep(1000);
	}
	stop_target(&t); /* so that it ends in any case */
	if (!ended)
		waitpid(pid, &status, 0);
	assert_int_equal(ended, pid);
}
