/* SPDX-License-Identifier: Apache-2.0 */
#include "undo_world.h"

struct gp_undo record(uint64_t key)
{
	struct gp_undo undo = {.key = key, .pid = 1, .start_time = 2, .size = 240};

	memset(undo.data, (int)(key % 251), sizeof undo.data);
	return undo;
}

bool is_whole(const struct gp_undo_entry *e)
{
	struct gp_undo want = record(e->undo.key);

	return e->undo.pid == want.pid && e->undo.start_time == want.start_time &&
	       e->undo.size == want.size && !memcmp(e->undo.data, want.data, sizeof want.data);
}

unsigned count_records(const struct gp_undo_file *file)
{
	struct gp_undo_entry e;
	unsigned n = 0;

	for (unsigned i = 0; i < GP_UNDO_SLOTS; i++)
		n += gp_undo_get(file, i, &e);
	return n;
}

int in_child(int (*what)(void *arg), void *arg)
{
	pid_t pid = fork();
	int status;

	if (!pid)
		_exit(what(arg));
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void in_children(unsigned n, int (*what)(unsigned number))
{
	int go[2], status;
	pid_t pid[16];

	assert_true(n <= 16);
	assert_int_equal(pipe(go), 0);
	for (unsigned i = 0; i < n; i++) {
		pid[i] = fork();
		if (!pid[i]) {
			char byte;

			close(go[1]);
			(void)!read(go[0], &byte, 1);
			_exit(what(i));
		}
	}
	close(go[0]);
	close(go[1]);
	for (unsigned i = 0; i < n; i++) {
		waitpid(pid[i], &status, 0);
		assert_int_equal(status, 0);
	}
}
