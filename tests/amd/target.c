/* SPDX-License-Identifier: Apache-2.0 */
#include "target.h"

long target_answer(struct target *t)
{
	char word[16];
	long value;

	if (fscanf(t->from, "%15s %ld", word, &value) != 2)
		return INT32_MIN;
	return !strcmp(word, "ok") ? value : -value;
}

void target_tell(struct target *t, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(t->to, format, args);
	va_end(args);
	fputc('\n', t->to);
	fflush(t->to);
}

bool target_has_answered(struct target *t)
{
	struct pollfd p = {.fd = fileno(t->from), .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

static pid_t target_fork(const void *arg)
{
	(void)arg;
	return fork();
}

long target_start_by(struct target *t, pid_t (*make)(const void *arg), const void *arg)
{
	char path[] = AMD_TARGET, *words[] = {path, NULL};
	int to[2], from[2];

	assert_int_equal(pipe2(to, O_CLOEXEC), 0);
	assert_int_equal(pipe2(from, O_CLOEXEC), 0);
	t->pid = make(arg);
	if (!t->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(to[0], 0);
		dup2(from[1], 1);
		execv(path, words);
		_exit(127);
	}
	close(to[0]);
	close(from[1]);
	t->to = fdopen(to[1], "w");
	t->from = fdopen(from[0], "r");
	return target_answer(t);
}

void target_start(struct target *t)
{
	long own = target_start_by(t, target_fork, NULL);

	assert_int_equal(own, t->pid);
}

void target_start_with(struct target *t, unsigned queues)
{
	target_start(t);
	target_do(t, "open");
	target_do(t, "runtime 1");
	for (unsigned i = 0; i < queues; i++)
		target_do(t, "queue aql");
}

void target_forget(struct target *t)
{
	fclose(t->to);
	fclose(t->from);
	*t = (struct target){0};
}

int target_wait(struct target *t)
{
	int status = -1;

	AW_WAIT(aw_state_of(t->pid) == 'Z');
	assert_int_equal(waitpid(t->pid, &status, 0), t->pid);
	target_forget(t);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void target_kill(struct target *t)
{
	if (!t->pid)
		return;
	kill(t->pid, SIGKILL);
	waitpid(t->pid, NULL, 0);
	target_forget(t);
}
