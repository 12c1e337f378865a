/* SPDX-License-Identifier: Apache-2.0 */
/* A session ends with DISABLE, with its debugger, or with its target: however they go. */
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cases.h"

static void disable_twice(void)
{
	struct peer p = peer_start_debugged();

	say("%s", answer(disable(p.pid)));
	say("%s", answer(disable(p.pid)));
}

static void nothing_works_after_disable(void)
{
	struct peer p = peer_start_ready();

	disable(p.pid);
	say("%s", answer(count_queues(p.pid)));
	say("%s", answer(suspend(p.pid, NULL, 0)));
	say("%s", answer(send_event(p.pid, KFD_EC_PROCESS_RUNTIME)));
}

static void target_goes_on_after_disable(void)
{
	struct peer p = peer_start_ready();

	disable(p.pid);
	say("%s", answer(peer_call(&p, set_runtime, 0)));
	say("%s", answer(peer_call(&p, set_runtime, KFD_RUNTIME_ENABLE_MODE_ENABLE)));
}

/* The debugger has a session with the target; the caller wants one, which it gets when the first is
 * over. */
static void say_free_again(const struct peer *target)
{
	must("seize", repeat_while(-EPERM, seize, target->pid));
	say("%s", answer(repeat_while(-EALREADY, enable, target->pid)));
}

/* In its own thread, so that the link is gone when the session is still there. */
static long debug_without_link(long pid)
{
	return in_thread(seize_and_enable, pid);
}

static void debugger_is_killed(void)
{
	struct peer p = peer_start_open(), debugger = peer_start_open();

	say("%s", answer(peer_call(&debugger, seize_and_enable, p.pid)));
	peer_kill(&debugger);
	say_free_again(&p);
}

static void debugger_exits(void)
{
	struct peer p = peer_start_open(), debugger = peer_start_open();

	say("%s", answer(peer_call(&debugger, debug_without_link, p.pid)));
	peer_ask(&debugger, exit_normally, 0);
	waitpid(debugger.pid, NULL, 0);
	say_free_again(&p);
}

static void debugger_execs(void)
{
	struct peer p = peer_start_open(), debugger = peer_start_open();

	say("%s", answer(peer_call(&debugger, debug_without_link, p.pid)));
	say("%s", answer(peer_call(&debugger, exec_self, 0)));
	say_free_again(&p);
}

static void debugger_with_several_targets_is_killed(void)
{
	struct peer debugger = peer_start_open(), p[3];

	for (int i = 0; i < 3; i++) {
		p[i] = peer_start_open();
		say("%s", answer(peer_call(&debugger, seize_and_enable, p[i].pid)));
	}
	peer_kill(&debugger);
	for (int i = 0; i < 3; i++)
		say_free_again(&p[i]);
}

static void debugger_closes_the_device(void)
{
	struct peer p = peer_start_debugged();

	say("%s", answer(close_kfd(0)));
	say("%s", answer(open_kfd(0)));
	say("%s", answer(enable(p.pid)));
	say("%s", answer(count_queues(p.pid)));
}

static void debugger_closes_the_device_without_link(void)
{
	struct peer p = peer_start_debugged();

	detach(p.pid);
	close_kfd(0);
	open_kfd(0);
	say("%s", answer(count_queues(p.pid)));
	say("%s", answer(disable(p.pid)));
}

/* The first one's death is no longer the end of the session. */
static void first_debugger_dies_after_a_second_took_over(void)
{
	struct peer p = peer_start_open(), first = peer_start_open(), second = peer_start_open();

	say("%s", answer(peer_call(&first, debug_without_link, p.pid)));
	must("seize", repeat_while(-EPERM, seize, p.pid));
	must("detach", detach(p.pid));
	say("%s", answer(peer_call(&second, seize_and_enable, p.pid)));
	peer_kill(&first);
	say("%s", answer(peer_call(&second, count_queues, p.pid)));
	say("%s", answer(peer_call(&second, disable, p.pid)));
}

/* It only had the session by a failed ENABLE: its death ends nothing, and the first one has lost
 * it. The third must come before the target ends: until then the driver keeps a pointer to the
 * dead. */
static void second_debugger_dies_after_it_took_over(void)
{
	struct peer p = peer_start_debugged(), second = peer_start_open(),
		    third = peer_start_open();

	must("detach", detach(p.pid));
	say("%s", answer(peer_call(&second, seize_and_enable, p.pid)));
	peer_kill(&second);
	say("%s", answer(count_queues(p.pid)));
	say("%s", answer(peer_call(&third, seize_and_enable, p.pid)));
	say("%s", answer(peer_call(&third, disable, p.pid)));
}

static void runtime_survives_the_debugger(void)
{
	struct peer p = peer_start_open(), debugger = peer_start_open();

	must("runtime", peer_call(&p, set_runtime, KFD_RUNTIME_ENABLE_MODE_ENABLE));
	must("debugger", peer_call(&debugger, seize_and_enable, p.pid));
	peer_kill(&debugger);
	say_free_again(&p);
	say("%s", answer(suspend(p.pid, NULL, 0)));
}

static void target_is_killed(void)
{
	struct peer p = peer_start_debugged();

	peer_kill(&p);
	say("%s", answer(count_queues(p.pid)));
	say("%s", answer(disable(p.pid)));
	say("%s", answer(enable(p.pid)));
}

static void target_is_a_zombie(void)
{
	struct peer p = peer_start_debugged();
	siginfo_t info;

	kill(p.pid, SIGKILL);
	waitid(P_PID, (id_t)p.pid, &info, WEXITED | WNOWAIT);
	say("%s", answer(count_queues(p.pid)));
	say("%s", answer(disable(p.pid)));
}

static void next_target_after_one_died(void)
{
	struct peer p = peer_start_debugged(), next;

	peer_kill(&p);
	next = peer_start_seized();
	say("%s", answer(enable(next.pid)));
	say("%s", answer(disable(next.pid)));
}

static void death_of_the_target_lets_the_file_go(void)
{
	struct peer p = peer_start_debugged();

	close(notify_fd());
	peer_kill(&p);
	say("%s", answer(wait_for_dots(10000)));
}

static void target_closes_the_device(void)
{
	struct peer p = peer_start_debugged();

	say("%s", answer(peer_call(&p, close_kfd, 0)));
	say("%s", answer(count_queues(p.pid)));
	say("%s", answer(disable(p.pid)));
	say("%s", answer(enable(p.pid)));
}

/* A tracer that does not wait would stop it at exec. */
static void target_execs(void)
{
	struct peer p = peer_start_debugged();

	detach(p.pid);
	say("%s", answer(peer_call(&p, exec_self, 0)));
	say("%s", answer(count_queues(p.pid)));
	say("%s", answer(enable(p.pid)));
	must("open", peer_call(&p, open_kfd, 0));
	say("%s", answer(count_queues(p.pid)));
	say("%s", answer(enable(p.pid)));
	must("seize", seize(p.pid));
	say("%s", answer(enable(p.pid)));
}

static void exec_lets_the_file_go(void)
{
	struct peer p = peer_start_debugged();

	close(notify_fd());
	detach(p.pid);
	must("exec", peer_call(&p, exec_self, 0));
	say("%s", answer(wait_for_dots(10000)));
}

static bool is_zombie(pid_t pid)
{
	char path[64], state = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "r");
	if (f) {
		if (fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
			state = 0;
		fclose(f);
	}
	return state == 'Z';
}

static long leader_is_gone(long pid)
{
	return is_zombie((pid_t)pid);
}

/* Its number is that of a task without memory, which is enough to be refused. */
static void leader_exits(void)
{
	struct peer p = peer_start_debugged();
	long tid = must("thread", peer_call(&p, start_thread, 0));

	peer_ask(&p, exit_leader, 0);
	repeat_while(0, leader_is_gone, p.pid);
	say("%s", answer(count_queues(p.pid)));
	say("%s", answer(count_queues((pid_t)tid)));
	say("%s", answer(disable((pid_t)tid)));
}

static void leader_exited_before(void)
{
	struct peer p = peer_start_open();
	long tid = must("thread", peer_call(&p, start_thread, 0));

	peer_ask(&p, exit_leader, 0);
	repeat_while(0, leader_is_gone, p.pid);
	say("%s", answer(seize(p.pid)));
	say("%s", answer(seize(tid)));
	say("%s", answer(enable(tid)));
}

static bool has_folder(pid_t pid, const char *name)
{
	char path[512];
	struct stat st;

	snprintf(path, sizeof(path), "%s/proc/%d/%s", kfd_sysfs, pid, name);
	return !stat(path, &st);
}

static void folder_from_open_to_exit(void)
{
	struct peer p = peer_start();

	say("%d", has_folder(p.pid, "queues"));
	peer_call(&p, open_kfd, 0);
	say("%d%d", has_folder(p.pid, "queues"), has_folder(p.pid, "pasid"));
	peer_call(&p, close_kfd, 0);
	say("%d", has_folder(p.pid, "queues"));
	peer_kill(&p);
	for (int i = 0; i < 1000 && has_folder(p.pid, "queues"); i++)
		usleep(10000);
	say("%d", has_folder(p.pid, "queues"));
}

static void folder_from_enable(void)
{
	struct peer p = peer_start();

	must("seize", seize(p.pid));
	must("enable", enable(p.pid));
	say("%d", has_folder(p.pid, "queues"));
}

const struct kfd_case death_cases[] = {
	{"disable_twice", "2.5", 0, "0 EINVAL", disable_twice},
	{"nothing_works_after_disable", "2.5", 0, "EINVAL EINVAL EINVAL",
	 nothing_works_after_disable},
	{"target_goes_on_after_disable", "2.5", 0, "0 0", target_goes_on_after_disable},
	{"debugger_is_killed", "2.5", 0, "0 0", debugger_is_killed},
	{"debugger_exits", "2.5", 0, "0 0", debugger_exits},
	{"debugger_execs", "2.5", 0, "0 0 0", debugger_execs},
	{"debugger_with_several_targets_is_killed", "2.5", 0, "0 0 0 0 0 0",
	 debugger_with_several_targets_is_killed},
	{"debugger_closes_the_device", "2.5", 0, "0 0 EALREADY 0", debugger_closes_the_device},
	{"debugger_closes_the_device_without_link", "2.5", NEEDS_NEW_RULE, "0 0",
	 debugger_closes_the_device_without_link},
	{"first_debugger_dies_after_a_second_took_over", "2.2", NEEDS_NEW_RULE, "0 EALREADY 0 0",
	 first_debugger_dies_after_a_second_took_over},
	{"second_debugger_dies_after_it_took_over", "2.2", NEEDS_NEW_RULE,
	 "EALREADY EPERM EALREADY 0", second_debugger_dies_after_it_took_over},
	{"runtime_survives_the_debugger", "2.5", 0, "0 0", runtime_survives_the_debugger},
	{"target_is_killed", "2.5", 0, "ESRCH ESRCH ESRCH", target_is_killed},
	{"target_is_a_zombie", "2.5", 0, "ESRCH ESRCH", target_is_a_zombie},
	{"next_target_after_one_died", "2.5", 0, "0 0", next_target_after_one_died},
	{"death_of_the_target_lets_the_file_go", "2.5", 0, "EPIPE",
	 death_of_the_target_lets_the_file_go},
	{"target_closes_the_device", "2.5", 0, "0 0 0 0", target_closes_the_device},
	{"target_execs", "2.5", NEEDS_NEW_RULE, "0 ESRCH ESRCH EPERM EPERM 0", target_execs},
	{"exec_lets_the_file_go", "2.5", NEEDS_NEW_RULE, "EPIPE", exec_lets_the_file_go},
	{"leader_exits", "2.5", 0, "ESRCH 0 0", leader_exits},
	{"leader_exited_before", "2.5", 0, "EPERM 0 EINVAL", leader_exited_before},
	{"folder_from_open_to_exit", "5.2", NEEDS_SYSFS, "0 11 1 0", folder_from_open_to_exit},
	{"folder_from_enable", "5.2", NEEDS_SYSFS, "1", folder_from_enable},
	{0},
};
