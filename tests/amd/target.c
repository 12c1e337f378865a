/* SPDX-License-Identifier: Apache-2.0 */
#include "target.h"

#include <poll.h>

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

long target_start_by(struct target *t, pid_t (*make)(const void *arg), const void *arg)
{
	struct test_child child;

	if (test_fork_by(&child, make, arg)) {
		execl(AMD_TARGET, AMD_TARGET, (char *)NULL);
		_exit(127);
	}
	t->pid = child.pid;
	t->to = fdopen(child.to, "w");
	t->from = fdopen(child.from, "r");
	return target_answer(t);
}

void target_start(struct target *t)
{
	long own = target_start_by(t, NULL, NULL);

	assert_int_equal(own, t->pid);
}

void target_become_rocm(struct target *t, unsigned queues)
{
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
	int status;

	TEST_WAIT(test_process_state(t->pid) == 'Z');
	status = test_exit_status(t->pid);
	target_forget(t);
	return status;
}

void target_kill(struct target *t)
{
	if (!t->pid)
		return;
	kill(t->pid, SIGKILL);
	assert_int_equal(waitpid(t->pid, NULL, 0), t->pid);
	target_forget(t);
}
