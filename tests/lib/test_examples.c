/* SPDX-License-Identifier: Apache-2.0 */
/* The examples do what their first comment says, on either kind of GPU. */
#include "lib_world.h"

LIB_TEST(list_shows_the_queues)
{
	struct lw_load *load = lw_load(w, "2");
	const char *type = w->vendor == LW_NVIDIA ? "compute" : "aql";

	assert_int_equal(lw_sh("test $(%slist %d | grep -c '^queue [0-9]* on .*: %s') = 2",
			       EXAMPLES, load->pid, type),
			 0);
	assert_int_equal(lw_sh("%slist 4194303 2>&1 | grep -q 'no process 4194303'", EXAMPLES), 0);
	assert_int_equal(lw_sh("%slist 2>/dev/null", EXAMPLES), 2);
}

LIB_TEST(hold_holds_while_a_command_runs)
{
	struct lw_load *load = lw_load(w, "2");

	/* Seen by another example, which looks from within. */
	assert_int_equal(lw_sh("%shold %d sh -c 'exit 7' 2>&1 | grep -q '2 queues are held'",
			       EXAMPLES, load->pid),
			 0);
	assert_int_equal(lw_sh("%shold %d sh -c 'exit 7' 2>/dev/null", EXAMPLES, load->pid), 7);
	if (w->vendor == LW_NVIDIA) /* AMD takes one debugger at a time */
		assert_int_equal(lw_sh("test $(%shold %d %slist %d 2>/dev/null | grep -c held) = 2",
				       EXAMPLES, load->pid, EXAMPLES, load->pid),
				 0);
	assert_int_equal(lw_held(w, load->pid), 0);
	assert_int_equal(lw_sh("%shold %d /nonexistent 2>/dev/null", EXAMPLES, load->pid), 127);
	assert_int_equal(lw_sh("%shold $$ true 2>&1 | grep -q 'no queues'", EXAMPLES), 0);
	lw_must_run(w, load->pid);
}

LIB_TEST(watch_says_how_they_change)
{
	struct lw_load *load = lw_load(w, "2");

	assert_int_equal(
		lw_sh("%swatch %d 0.3 | grep -q ' samples, .*: stable'", EXAMPLES, load->pid), 0);
	assert_int_equal(lw_sh("%swatch %d 0.1 | grep -q ': 2 to 2 .*, 0 came, 0 went'", EXAMPLES,
			       load->pid),
			 0);
}

/* Into kfd-load, which knows nothing of it. */
static struct lw_load *load_with_aside(struct lib_world *w, const char *log)
{
	int before = dup(STDERR_FILENO),
	    to = open(log, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	struct lw_load *load;

	setenv("LD_PRELOAD", EXAMPLES "aside.so", 1);
	dup2(to, STDERR_FILENO);
	load = lw_load(w, "2");
	dup2(before, STDERR_FILENO);
	unsetenv("LD_PRELOAD");
	close(to);
	close(before);
	return load;
}

LIB_TEST_ON(aside_obeys_signals, amd)
{
	char log[] = "/tmp/lib-aside-XXXXXX";
	struct lw_load *load, *other = lw_load(w, "1");

	close(mkstemp(log));
	load = load_with_aside(w, log);
	lw_must_run(w, load->pid);
	for (int i = 0; i < 2; i++) {
		kill(load->pid, SIGUSR1);
		TEST_WAIT(lw_sh("test $(grep -c '2 queues are off' %s) = %d", log, i + 1) == 0);
		lw_must_stand(w, load->pid, other->pid);
		kill(load->pid, SIGUSR2);
		TEST_WAIT(lw_sh("test $(grep -c '2 queues are back on' %s) = %d", log, i + 1) == 0);
		lw_must_run(w, load->pid);
	}
	LW_ENDS_RIGHT(w, load);
	/* Its queues go with it, held or not. */
	load = load_with_aside(w, log);
	kill(load->pid, SIGUSR1);
	TEST_WAIT(lw_sh("grep -q '2 queues are off' %s", log) == 0);
	lw_kill_load(w, load);
	lw_must_run(w, other->pid);
	LW_ENDS_RIGHT(w, other);
	unlink(log);
}
