/* SPDX-License-Identifier: Apache-2.0 */
/* A process with memory or an executable that never answers costs a child process, which is killed;
 * other answers arrive. */
#include <sys/syscall.h>

#include "base/log.h"
#include "procinfo_world.h"
#include "support/mute_fuse.h"

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

/* What can be known is; the rest is not, and the reader is ended. */
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
		gp_procinfo_drop(info);
		wait_until_nobody_is_stuck(pool);
		gp_procinfo_free(pool);
		stop_target(&t);
	}
}

TEST(meanwhile_others_are_answered)
{
	struct target silent = start_target("silent-words", 0), plain = start_target("plain", 0);
	struct gp_procinfo_pool *pool;
	struct gp_procinfo *info;
	uint64_t token;
	int fd;

	pool = make_pool(patient, &fd);
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

/* Whether a child of ours is reading memory of another process. */
static bool does_a_child_read(void)
{
	char path[64], text[64];
	FILE *children;
	bool reads = false;
	int pid;

	snprintf(path, sizeof path, "/proc/self/task/%d/children", getpid());
	children = fopen(path, "re");
	while (children && fscanf(children, "%d", &pid) == 1) {
		FILE *f;

		snprintf(path, sizeof path, "/proc/%d/syscall", pid);
		f = fopen(path, "re");
		if (f && fgets(text, sizeof text, f))
			reads |= strtol(text, NULL, 10) == SYS_process_vm_readv;
		if (f)
			fclose(f);
	}
	if (children)
		fclose(children);
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
		/* The reader asks for permission first, which is given here. */
		for (unsigned j = 0; j < PATIENCE_MS && !does_a_child_read(); j++) {
			assert_int_equal(gp_procinfo_take(pool, &info, &token), -EAGAIN);
			usleep(1000);
		}
		assert_true(does_a_child_read());
		stop_target(&t);
		if (i == 0)
			close(input); /* now the page comes */
		info = wait_for(pool, fd, &token);
		assert_int_equal(info->gone, -ESRCH);
		assert_int_equal(info->known, 0);
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
	struct gp_procinfo_pool *pool;
	struct gp_procinfo *info;
	uint64_t token;
	int fd;

	pool = make_pool(quick, &fd);
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
	struct gp_procinfo_pool *pool;
	struct gp_procinfo *info;
	uint64_t token;
	int fd;

	pool = make_pool(one, &fd);
	ask(pool, &silent, 1);
	ask(pool, &plain, 2);
	info = wait_for(pool, fd, &token);
	assert_int_equal(token, 1);
	gp_procinfo_drop(info);
	info = wait_for(pool, fd, &token);
	assert_int_equal(token, 2);
	assert_true(info->known & GP_PROCINFO_USER);
	gp_procinfo_drop(info);
	wait_until_nobody_is_stuck(pool);
	gp_procinfo_free(pool);
	stop_target(&silent);
	stop_target(&plain);
}

/* FUSE that does not answer any more: whoever reads its file is in state D, and SIGKILL does not
 * help. */
struct silent_file {
	struct mute_fuse fuse;
	char path[64];
};

static void begin_silence(struct silent_file *f)
{
	if (!mute_fuse_start(&f->fuse, "/mnt", NULL))
		skip();
	mute_fuse_path(&f->fuse, "/mnt/file", f->path, sizeof f->path);
}

/* Aborts the connection. All readers end then. */
static void end_silence(struct silent_file *f, struct gp_procinfo_pool *pool)
{
	mute_fuse_stop(&f->fuse);
	wait_until_nobody_is_stuck(pool);
}

static uint32_t known_of(struct gp_procinfo_pool *pool, int fd, const struct target *t)
{
	struct gp_procinfo *info;
	uint64_t token;
	uint32_t known;

	ask(pool, t, 1);
	info = wait_for(pool, fd, &token);
	assert_int_equal(info->gone, 0);
	known = info->known;
	gp_procinfo_drop(info);
	return known;
}

/* One user keeps readers in the kernel, as many as one may; the others' processes are read. */
TEST(a_user_whose_readers_never_end_is_not_read_and_other_users_are)
{
	struct gp_procinfo_limits limits = {
		.deadline_ns = GP_NS_PER_S / 2, .distrust_ns = 1, .stuck_per_user = 2};
	struct silent_file file[3]; /* a second reader of the same page could be killed */
	struct gp_procinfo_pool *pool;
	struct target silent[3], same, other;
	int fd;

	for (unsigned i = 0; i < 3; i++) {
		begin_silence(&file[i]);
		silent[i] = start_target_on("silent-environment", NOBODY, file[i].path);
		mute_fuse_silence(&file[i].fuse);
	}
	same = start_target("plain", NOBODY);
	other = start_target("plain", 0);
	pool = make_pool(limits, &fd);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(known_of(pool, fd, &silent[i]) & GP_PROCINFO_ENVIRON, 0);
		assert_int_equal(gp_procinfo_stuck(pool), i + 1);
	}
	for (unsigned i = 0; i < 10; i++) /* no reader is risked for it */
		assert_int_equal(known_of(pool, fd, &silent[2]) & MEMORY, 0);
	assert_int_equal(gp_procinfo_stuck(pool), 2);
	assert_int_equal(known_of(pool, fd, &same) & MEMORY, 0);
	assert_int_equal(known_of(pool, fd, &other), GP_PROCINFO_ALL);
	for (unsigned i = 0; i < 3; i++)
		mute_fuse_stop(&file[i].fuse);
	wait_until_nobody_is_stuck(pool);
	assert_int_equal(known_of(pool, fd, &same), GP_PROCINFO_ALL);
	gp_procinfo_free(pool);
	for (unsigned i = 0; i < 3; i++)
		stop_target(&silent[i]);
	stop_target(&same);
	stop_target(&other);
}

static uid_t one_account(void *arg, uid_t uid)
{
	(void)arg;
	(void)uid;
	return 7;
}

TEST(uids_that_count_for_the_same_user_share_the_limit)
{
	struct gp_procinfo_limits limits = {.deadline_ns = GP_NS_PER_S / 2,
					    .distrust_ns = 1,
					    .stuck_per_user = 1,
					    .account = one_account};
	struct silent_file file;
	struct gp_procinfo_pool *pool;
	struct target silent, other;
	int fd;

	begin_silence(&file);
	silent = start_target_on("silent-words", NOBODY, file.path);
	other = start_target("plain", NOBODY - 1);
	mute_fuse_silence(&file.fuse);
	pool = make_pool(limits, &fd);
	known_of(pool, fd, &silent);
	assert_int_equal(known_of(pool, fd, &other) & MEMORY, 0);
	end_silence(&file, pool);
	gp_procinfo_free(pool);
	stop_target(&silent);
	stop_target(&other);
}

static unsigned limited_lines, abandoned_lines;

static void count_lines(void *arg, enum gp_log_level level, const char *line)
{
	(void)arg;
	(void)level;
	limited_lines += strstr(line, "procinfo.limited") != NULL;
	abandoned_lines += strstr(line, "procinfo.reader-abandoned") != NULL;
}

/* Also with more processes to read, the number of stuck readers is limited, and the log says so. */
TEST(with_too_many_stuck_memory_is_unknown_at_once)
{
	struct gp_procinfo_limits few = {
		.deadline_ns = GP_NS_PER_S / 2, .stuck = 1, .distrust_ns = 1};
	struct silent_file file;
	struct gp_procinfo_pool *pool;
	struct target silent, other;
	uint32_t known;
	int fd;

	begin_silence(&file);
	silent = start_target_on("silent-words", 0, file.path);
	other = start_target_on("silent-words", NOBODY, file.path);
	mute_fuse_silence(&file.fuse);
	gp_log_set_sink(count_lines, NULL);
	pool = make_pool(few, &fd);
	known_of(pool, fd, &silent);
	assert_int_equal(gp_procinfo_stuck(pool), 1);
	for (unsigned i = 0; i < 10; i++) {
		known = known_of(pool, fd, &other);
		assert_int_equal(known & MEMORY, 0);
		assert_true(known & GP_PROCINFO_USER);
	}
	assert_int_equal(gp_procinfo_stuck(pool), 1); /* no caller waited for it */
	assert_int_equal(abandoned_lines, 1);
	assert_int_equal(limited_lines, 1);
	gp_log_set_sink(NULL, NULL);
	end_silence(&file, pool);
	gp_procinfo_free(pool);
	stop_target(&silent);
	stop_target(&other);
}

/* The user mounted it over a path that only root can change elsewhere. */
TEST(an_executable_in_a_file_system_that_does_not_answer_is_known_and_not_trusted)
{
	struct mute_fuse fuse;
	struct gp_procinfo_pool *pool;
	struct gp_procinfo *info;
	char path[64];
	struct target t;
	uint64_t token;
	int fd;

	if (!mute_fuse_start(&fuse, "/etc", PROCINFO_TARGET))
		skip();
	t = start_copy(mute_fuse_path(&fuse, "/etc/passwd", path, sizeof path));
	mute_fuse_silence(&fuse);
	pool = make_pool(quick, &fd);
	assert_int_equal(gp_procinfo_ask(pool, t.pid, t.start_time, GP_PROCINFO_EXE, 1), 0);
	info = wait_for(pool, fd, &token);
	assert_true(info->known & GP_PROCINFO_EXE);
	assert_string_equal(info->exe, "/etc/passwd");
	assert_false(info->exe_trusted);
	assert_int_equal(gp_procinfo_stuck(pool), 0);
	gp_procinfo_drop(info);
	gp_procinfo_free(pool);
	mute_fuse_stop(&fuse);
	stop_target(&t);
}

TEST(who_let_us_wait_is_not_read_for_a_while_and_others_are)
{
	struct target silent = start_target("silent-words", NOBODY);
	struct target same = start_target("plain", NOBODY), other = start_target("plain", 0);
	struct gp_procinfo_pool *pool;
	struct gp_procinfo *info;
	uint64_t token;
	int fd;

	pool = make_pool(quick, &fd);
	ask(pool, &silent, 1);
	gp_procinfo_drop(wait_for(pool, fd, &token));
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
	struct gp_procinfo_pool *pool;
	struct gp_procinfo *info;
	uint64_t token;
	int fd;

	pool = make_pool(brief, &fd);
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
	struct gp_procinfo_pool *pool;
	uint64_t token;
	int fd;

	pool = make_pool(quick, &fd);
	ask(pool, &t, 1);
	gp_procinfo_drop(wait_for(pool, fd, &token));
	gp_procinfo_free(pool); /* one was left behind before */
	pool = make_pool(quick, &fd);
	ask(pool, &t, 1);
	gp_procinfo_free(pool); /* and this one is now */
	let_answer(&t);
	stop_target(&t);
}

/* SIGKILL does not end the reader, so the pool does not wait for it. */
TEST(a_pool_ends_while_a_reader_is_in_state_d)
{
	struct silent_file file;
	struct gp_procinfo_pool *pool;
	struct target t;
	int fd;

	begin_silence(&file);
	t = start_target_on("silent-environment", 0, file.path);
	mute_fuse_silence(&file.fuse);
	pool = make_pool(quick, &fd);
	known_of(pool, fd, &t);
	assert_int_equal(gp_procinfo_stuck(pool), 1);
	alarm(60); /* ends the test if this waits */
	gp_procinfo_free(pool);
	alarm(0);
	mute_fuse_stop(&file.fuse);
	stop_target(&t);
}

/* Kills a process with a stuck reader of `t`. True: it ended. */
static bool can_be_killed(const struct target *t)
{
	int ready[2], status;
	pid_t pid, ended = 0;
	char byte;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid = fork();
	if (!pid) {
		struct gp_procinfo_pool *pool;
		uint64_t token;
		int fd;

		if (gp_procinfo_new(&quick, &pool, &fd) ||
		    gp_procinfo_ask(pool, t->pid, t->start_time, GP_PROCINFO_ALL, 1))
			_exit(1);
		gp_procinfo_drop(wait_for(pool, fd, &token));
		if (write(ready[1], "s", 1) != 1)
			_exit(2);
		for (;;)
			pause();
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]); /* a reader that hangs does not have it */
	kill(pid, SIGKILL);
	for (unsigned i = 0; i < PATIENCE_MS / 10 && !ended; i++) {
		ended = waitpid(pid, &status, WNOHANG);
		if (!ended)
			usleep(1000);
	}
	return ended == pid;
}

/* A daemon that is killed must end, whatever its readers wait for. */
TEST(a_process_with_a_stuck_reader_can_be_killed)
{
	struct target t = start_target("silent-words", 0);
	bool ended = can_be_killed(&t);

	stop_target(&t);
	assert_true(ended);
}

TEST(a_process_with_a_reader_in_state_d_can_be_killed)
{
	struct silent_file file;
	struct target t;
	bool ended;

	begin_silence(&file);
	t = start_target_on("silent-environment", 0, file.path);
	mute_fuse_silence(&file.fuse);
	ended = can_be_killed(&t);
	mute_fuse_stop(&file.fuse); /* so that all end in any case */
	stop_target(&t);
	assert_true(ended);
}

/* The files of the daemon are not kept open by a reader, which may live longer. */
TEST(a_reader_has_no_file_of_the_daemon)
{
	struct silent_file file;
	struct gp_procinfo_pool *pool;
	struct target t;
	int fd, pipe[2];
	char byte;

	begin_silence(&file);
	t = start_target_on("silent-environment", 0, file.path);
	mute_fuse_silence(&file.fuse);
	assert_int_equal(pipe2(pipe, O_CLOEXEC), 0);
	pool = make_pool(quick, &fd);
	known_of(pool, fd, &t);
	assert_int_equal(gp_procinfo_stuck(pool), 1);
	close(pipe[1]);
	assert_int_equal(read(pipe[0], &byte, 1), 0);
	close(pipe[0]);
	end_silence(&file, pool);
	gp_procinfo_free(pool);
	stop_target(&t);
}
