/* SPDX-License-Identifier: Apache-2.0 */
#include "procinfo_world.h"

static struct target start_program(const char *path, const char *mode, unsigned uid,
				   const char *file)
{
	static char padding[PADDING_SIZE], variable[PADDING_SIZE + 16];
	char user[16], kind[32], byte, page_file[64];
	char name[] = "t", colour[] = "COLOUR=red", last[] = "LAST=1";
	char *words[] = {name, kind, user, padding, file ? page_file : NULL, NULL};
	char *environment[] = {colour, variable, last, NULL};
	int in[2], out[2], status;
	struct target t;

	memset(padding, 'w', sizeof padding - 1);
	snprintf(variable, sizeof variable, "PADDING=%s", padding);
	snprintf(user, sizeof user, "%u", uid);
	snprintf(kind, sizeof kind, "%s", mode);
	snprintf(page_file, sizeof page_file, "%s", file ? file : "");
	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	t.pid = fork();
	if (!t.pid) {
		dup2(in[0], STDIN_FILENO);
		dup2(out[1], STDOUT_FILENO);
		execve(path, words, environment);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	t.input = in[1];
	if (read(out[0], &byte, 1) != 1) {
		assert_int_equal(waitpid(t.pid, &status, 0), t.pid);
		close(out[0]);
		close(in[1]);
		assert_int_equal(WEXITSTATUS(status), 77);
		skip();
	}
	close(out[0]);
	t.start_time = gp_process_start_time(t.pid);
	return t;
}

struct target start_target(const char *mode, unsigned uid)
{
	return start_program(PROCINFO_TARGET, mode, uid, NULL);
}

struct target start_target_on(const char *mode, unsigned uid, const char *file)
{
	return start_program(PROCINFO_TARGET, mode, uid, file);
}

struct target start_copy(const char *program)
{
	return start_program(program, "plain", 0, NULL);
}

void stop_target(struct target *t)
{
	kill(t->pid, SIGKILL);
	waitpid(t->pid, NULL, 0);
	close(t->input);
}

struct gp_procinfo_pool *make_pool(struct gp_procinfo_limits limits, int *fd)
{
	struct gp_procinfo_pool *pool;

	assert_int_equal(gp_procinfo_new(&limits, &pool, fd), 0);
	return pool;
}

const struct gp_procinfo_limits patient = {.deadline_ns = PATIENCE_MS * GP_NS_PER_MS};

bool is_readable(int fd, int timeout_ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, timeout_ms) == 1;
}

struct gp_procinfo *wait_for(struct gp_procinfo_pool *pool, int fd, uint64_t *token)
{
	struct gp_procinfo *info;
	uint64_t until = gp_monotonic_ns() + PATIENCE_MS * GP_NS_PER_MS;

	while (gp_monotonic_ns() < until) {
		is_readable(fd, PATIENCE_MS);
		if (!gp_procinfo_take(pool, &info, token))
			return info;
	}
	fail_msg("no answer");
	return NULL;
}

struct gp_procinfo *info_of(pid_t pid, uint64_t start_time, uint32_t want)
{
	struct gp_procinfo *info;
	uint64_t token = 0;
	int fd;
	struct gp_procinfo_pool *pool = make_pool(patient, &fd);

	assert_int_equal(gp_procinfo_ask(pool, pid, start_time, want, 99), 0);
	info = wait_for(pool, fd, &token);
	assert_int_equal(token, 99);
	gp_procinfo_free(pool);
	return info;
}

pid_t start_child(bool (*prepare)(void))
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

void stop_child(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}
