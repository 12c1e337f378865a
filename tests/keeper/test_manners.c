/* SPDX-License-Identifier: Apache-2.0 */
/* The keeper as a program and a service: --once, one at a time, cheap, and not to be hung. */
#include <sys/socket.h>
#include <sys/un.h>

#include "keeper_world.h"

/* Runs it to its end; its exit status. */
static int run_keeper(char *first, char *second)
{
	char program[] = KEEPER, *words[] = {program, first, second, NULL};
	struct kw_program p = {0};

	kw_spawn(&p, words);
	return kw_wait_end(&p);
}

static char once[] = "--once", timeout[] = "--timeout";

KEEPER_TEST_EVERYWHERE(once_puts_back_what_the_dead_left_and_ends)
{
	int held = kw_load(w);

	assert_int_equal(run_keeper(once, NULL), 0); /* there is nothing */
	kw_start_scheduler(w, held, -1);
	assert_int_equal(run_keeper(once, NULL), 0);
	assert_true(kw_is_held(w, held)); /* a living scheduler is left alone */
	kw_stop_scheduler(w);
	assert_int_equal(run_keeper(once, NULL), 0);
	assert_true(kw_is_held(w, held)); /* also when it is silent */
	kw_kill(&w->scheduler);
	assert_int_equal(run_keeper(once, NULL), 0);
	assert_false(kw_is_held(w, held));
	assert_int_equal(kw_records(w), 0);
	kw_wait_progress(w, held);
}

/* As the service manager does it when the daemon's unit stops, while the keeper's unit runs. */
KEEPER_TEST(once_and_the_keeper_do_not_get_into_each_others_way)
{
	int held = kw_load(w);

	kw_start_keeper(w, NULL);
	for (int i = 0; i < 3; i++) {
		kw_start_scheduler(w, held, -1);
		kw_kill(&w->scheduler);
		assert_int_equal(run_keeper(once, NULL), 0);
		KW_WITHIN(1000, !kw_is_held(w, held));
		TEST_WAIT(kw_records(w) == 0);
	}
	kw_keeper_is_there(w);
}

KEEPER_TEST(once_without_a_file_has_nothing_to_do)
{
	unlink(w->path);
	assert_int_equal(run_keeper(once, NULL), 0);
	assert_int_equal(access(w->path, F_OK), -1); /* and makes none */
}

KEEPER_TEST(once_says_when_something_is_left)
{
	struct gp_undo undo = {.key = 1, .pid = getpid(), .start_time = 1};
	pid_t pid = fork();

	undo.start_time = gp_process_start_time(undo.pid);
	if (!pid)
		_exit(gp_undo_put(w->undo, "unknown", &undo) < 0);
	waitpid(pid, NULL, 0);
	assert_int_equal(run_keeper(once, NULL), 1);
	assert_int_equal(kw_records(w), 1);
}

KEEPER_TEST(wrong_usage_is_said)
{
	static char *const bad[] = {"0", "-1", "x", "1x", "nan", "1e9", ""};
	char wrong[] = "--nonsense", word[] = "4711", text[16];

	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		snprintf(text, sizeof text, "%s", bad[i]);
		assert_int_equal(run_keeper(timeout, text), 2);
	}
	assert_int_equal(run_keeper(wrong, NULL), 2);
	assert_int_equal(run_keeper(word, NULL), 2);
}

KEEPER_TEST(there_is_one_keeper)
{
	kw_start_keeper(w, NULL);
	assert_int_equal(run_keeper(NULL, NULL), 1);
	kill(w->keeper.pid, SIGTERM);
	assert_int_equal(kw_wait_end(&w->keeper), 0);
	kw_start_keeper(w, NULL);
}

KEEPER_TEST(there_is_one_scheduler)
{
	struct kw_program second, first;
	int held = kw_load(w);

	kw_start_scheduler(w, held, -1);
	first = w->scheduler;
	w->scheduler.pid = 0;
	kw_spawn_scheduler(w, held, -1);
	second = w->scheduler;
	assert_int_equal(kw_wait_end(&second), 3);
	w->scheduler = first;
	assert_true(kw_is_held(w, held));
}

/* The file was removed, and the next scheduler created a new one. */
KEEPER_TEST(a_new_file_is_followed)
{
	int held = kw_load(w);

	kw_start_keeper(w, NULL);
	gp_undo_close(w->undo);
	unlink(w->path);
	assert_int_equal(gp_undo_open(&w->undo, true, NULL), 0);
	kw_keeper_is_there(w);
	kw_start_scheduler(w, held, -1);
	kw_kill(&w->scheduler);
	KW_WITHIN(1000, !kw_is_held(w, held));
	TEST_WAIT(kw_records(w) == 0);
}

KEEPER_TEST(the_service_manager_hears_of_it)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct pollfd p = {.fd = fd, .events = POLLIN};
	bool ready = false;
	unsigned watchdog = 0;
	char text[128];

	snprintf(at.sun_path, sizeof at.sun_path, "%s/notify", w->dir);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
	setenv("NOTIFY_SOCKET", at.sun_path, 1);
	kw_start_keeper(w, NULL);
	unsetenv("NOTIFY_SOCKET");
	while (watchdog < 3) {
		ssize_t n;

		assert_int_equal(poll(&p, 1, 10000), 1);
		n = recv(fd, text, sizeof text - 1, 0);
		assert_true(n > 0);
		text[n] = 0;
		ready |= !strncmp(text, "READY=1", 7);
		watchdog += !strcmp(text, "WATCHDOG=1");
		assert_true(ready); /* that is the first thing it says */
	}
	kill(w->keeper.pid, SIGTERM);
	assert_int_equal(kw_wait_end(&w->keeper), 0);
	do {
		ssize_t n = recv(fd, text, sizeof text - 1, MSG_DONTWAIT);

		assert_true(n > 0);
		text[n] = 0;
	} while (strcmp(text, "STOPPING=1") != 0);
	close(fd);
	unlink(at.sun_path);
}

static unsigned long wakeups(pid_t pid)
{
	long n = test_process_status(pid, "voluntary_ctxt_switches");

	assert_true(n >= 0);
	return (unsigned long)n;
}

KEEPER_TEST(it_wakes_up_no_more_than_four_times_a_second)
{
	unsigned long before, woken;
	uint64_t from_ns, ms;

	kw_held(w, NULL);
	emulator_sleep_ms(500);
	from_ns = test_now_ns();
	before = wakeups(w->keeper.pid);
	emulator_sleep_ms(3000);
	woken = wakeups(w->keeper.pid) - before;
	ms = (test_now_ns() - from_ns) / GP_NS_PER_MS;
	if (!woken || woken > 4 * ms / 1000 + 1)
		fail_msg("%lu wakeups in %lu ms", woken, (unsigned long)ms);
}

/* It has no file of a driver: a copy would keep the memory of a process that ended. */
KEEPER_TEST(it_has_no_file_of_a_driver_and_leaks_none)
{
	int held = kw_load(w);
	unsigned files;

	kw_start_keeper(w, NULL);
	files = test_open_files(w->keeper.pid);
	for (int i = 0; i < 3; i++) {
		char path[64], to[256];

		kw_start_scheduler(w, held, -1);
		emulator_sleep_ms(500);
		for (int fd = 3; fd < 64; fd++) {
			ssize_t n;

			snprintf(path, sizeof path, "/proc/%d/fd/%d", w->keeper.pid, fd);
			n = readlink(path, to, sizeof to - 1);
			if (n < 0)
				continue;
			to[n] = 0;
			if (strstr(to, w->emu.dir))
				fail_msg("the keeper has %s", to);
		}
		kw_kill(&w->scheduler);
		TEST_WAIT(kw_records(w) == 0);
	}
	TEST_WAIT(test_open_files(w->keeper.pid) == files);
}

KEEPER_TEST(a_driver_that_hangs_does_not_hang_the_keeper)
{
	int held = kw_held(w, NULL);
	struct gp_undo_scheduler before, after;

	assert_int_equal(emu_control(&w->emu, "latency enable 7s"), 0);
	kw_kill(&w->scheduler);
	TEST_WAIT(kw_holder(w, held) == w->keeper.pid); /* it is at it ... */
	gp_undo_keeper(w->undo, &before);
	emulator_sleep_ms(1000);
	assert_true(kw_is_held(w, held)); /* no effect yet */
	TEST_WAIT((gp_undo_keeper(w->undo, &after), after.heartbeats > before.heartbeats + 2));
	assert_int_equal(emu_control(&w->emu, "latency enable 0ms"), 0);
	/* The call is given up, the driver returns, and the call is repeated. */
	KW_WITHIN(10000, !kw_is_held(w, held));
	TEST_WAIT(kw_records(w) == 0);
	kw_wait_progress(w, held);
}
