/* SPDX-License-Identifier: Apache-2.0 */
/* A session ends with DISABLE, with its debugger, or with its target: however they go. */
#include <sys/stat.h>

#include "cases.h"

PEER_CASE(disable_twice, debugged, "2.5", 0, "0 EINVAL")
{
	SAY_ANSWERS(disable(p.pid), disable(p.pid));
}

PEER_CASE(nothing_works_after_disable, ready, "2.5", 0, "EINVAL EINVAL EINVAL")
{
	disable(p.pid);
	say_answer(count_queues(p.pid));
	say_answer(suspend(p.pid, NULL, 0));
	say_answer(send_event(p.pid, KFD_EC_PROCESS_RUNTIME));
}

PEER_CASE(target_goes_on_after_disable, ready, "2.5", 0, "0 0")
{
	disable(p.pid);
	say_answer(peer_call(&p, set_runtime, 0));
	say_answer(peer_call(&p, set_runtime, KFD_RUNTIME_ENABLE_MODE_ENABLE));
}

/* The debugger has a session with the target; the caller wants one, which it gets when the first is
 * over. */
static void say_free_again(const struct peer *target)
{
	must("seize", repeat_while(-EPERM, seize, target->pid));
	say_answer(repeat_while(-EALREADY, enable, target->pid));
}

/* In its own thread, so that the link is gone when the session is still there. */
static long debug_without_link(long pid)
{
	return in_thread(seize_and_enable, pid);
}

PEER_CASE(debugger_is_killed, open, "2.5", 0, "0 0")
{
	struct peer debugger = peer_start_open();

	say_answer(peer_call(&debugger, seize_and_enable, p.pid));
	peer_kill(&debugger);
	say_free_again(&p);
}

PEER_CASE(debugger_exits, open, "2.5", 0, "0 0")
{
	struct peer debugger = peer_start_open();

	say_answer(peer_call(&debugger, debug_without_link, p.pid));
	peer_ask(&debugger, exit_normally, 0);
	waitpid(debugger.pid, NULL, 0);
	say_free_again(&p);
}

PEER_CASE(debugger_execs, open, "2.5", 0, "0 0 0")
{
	struct peer debugger = peer_start_open();

	say_answer(peer_call(&debugger, debug_without_link, p.pid));
	say_answer(peer_call(&debugger, exec_self, 0));
	say_free_again(&p);
}

KFD_CASE(debugger_with_several_targets_is_killed, "2.5", 0, "0 0 0 0 0 0")
{
	struct peer debugger = peer_start_open(), p[3];

	for (int i = 0; i < 3; i++) {
		p[i] = peer_start_open();
		say_answer(peer_call(&debugger, seize_and_enable, p[i].pid));
	}
	peer_kill(&debugger);
	for (int i = 0; i < 3; i++)
		say_free_again(&p[i]);
}

PEER_CASE(debugger_closes_the_device, debugged, "2.5", 0, "0 0 EALREADY 0")
{
	SAY_ANSWERS(close_kfd(0), open_kfd(0), enable(p.pid), count_queues(p.pid));
}

PEER_CASE(debugger_closes_the_device_without_link, debugged, "2.5", NEEDS_NEW_RULE, "0 0")
{
	detach(p.pid);
	close_kfd(0);
	open_kfd(0);
	SAY_ANSWERS(count_queues(p.pid), disable(p.pid));
}

/* The first one's death is no longer the end of the session. */
PEER_CASE(first_debugger_dies_after_a_second_took_over, open, "2.2", NEEDS_NEW_RULE,
	  "0 EALREADY 0 0")
{
	struct peer first = peer_start_open(), second = peer_start_open();

	say_answer(peer_call(&first, debug_without_link, p.pid));
	must("seize", repeat_while(-EPERM, seize, p.pid));
	must("detach", detach(p.pid));
	say_answer(peer_call(&second, seize_and_enable, p.pid));
	peer_kill(&first);
	SAY_ANSWERS(peer_call(&second, count_queues, p.pid), peer_call(&second, disable, p.pid));
}

/* It only had the session by a failed ENABLE: its death ends nothing, and the first one has lost
 * it. The third must come before the target ends: until then the driver keeps a pointer to the
 * dead. */
KFD_CASE(second_debugger_dies_after_it_took_over, "2.2", NEEDS_NEW_RULE,
	 "EALREADY EPERM EALREADY 0")
{
	struct peer p = peer_start_debugged(), second = peer_start_open(),
		    third = peer_start_open();

	must("detach", detach(p.pid));
	say_answer(peer_call(&second, seize_and_enable, p.pid));
	peer_kill(&second);
	say_answer(count_queues(p.pid));
	say_answer(peer_call(&third, seize_and_enable, p.pid));
	say_answer(peer_call(&third, disable, p.pid));
}

PEER_CASE(runtime_survives_the_debugger, open, "2.5", 0, "0 0")
{
	struct peer debugger = peer_start_open();

	must("runtime", peer_call(&p, set_runtime, KFD_RUNTIME_ENABLE_MODE_ENABLE));
	must("debugger", peer_call(&debugger, seize_and_enable, p.pid));
	peer_kill(&debugger);
	say_free_again(&p);
	say_answer(suspend(p.pid, NULL, 0));
}

PEER_CASE(target_is_killed, debugged, "2.5", 0, "ESRCH ESRCH ESRCH")
{
	peer_kill(&p);
	SAY_ANSWERS(count_queues(p.pid), disable(p.pid), enable(p.pid));
}

PEER_CASE(target_is_a_zombie, debugged, "2.5", 0, "ESRCH ESRCH")
{
	siginfo_t info;

	kill(p.pid, SIGKILL);
	waitid(P_PID, (id_t)p.pid, &info, WEXITED | WNOWAIT);
	SAY_ANSWERS(count_queues(p.pid), disable(p.pid));
}

KFD_CASE(next_target_after_one_died, "2.5", 0, "0 0")
{
	struct peer p = peer_start_debugged(), next;

	peer_kill(&p);
	next = peer_start_seized();
	SAY_ANSWERS(enable(next.pid), disable(next.pid));
}

PEER_CASE(death_of_the_target_lets_the_file_go, debugged, "2.5", 0, "EPIPE")
{
	close(notify_fd());
	peer_kill(&p);
	say_answer(wait_for_dots(10000));
}

PEER_CASE(target_closes_the_device, debugged, "2.5", 0, "0 0 0 0")
{
	say_answer(peer_call(&p, close_kfd, 0));
	say_answer(count_queues(p.pid));
	say_answer(disable(p.pid));
	say_answer(enable(p.pid));
}

/* A tracer that does not wait would stop it at exec. */
PEER_CASE(target_execs, debugged, "2.5", NEEDS_NEW_RULE, "0 ESRCH ESRCH EPERM EPERM 0")
{
	detach(p.pid);
	SAY_ANSWERS(peer_call(&p, exec_self, 0), count_queues(p.pid), enable(p.pid));
	must("open", peer_call(&p, open_kfd, 0));
	SAY_ANSWERS(count_queues(p.pid), enable(p.pid));
	must("seize", seize(p.pid));
	say_answer(enable(p.pid));
}

PEER_CASE(exec_lets_the_file_go, debugged, "2.5", NEEDS_NEW_RULE, "EPIPE")
{
	close(notify_fd());
	detach(p.pid);
	must("exec", peer_call(&p, exec_self, 0));
	say_answer(wait_for_dots(10000));
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
PEER_CASE(leader_exits, debugged, "2.5", 0, "ESRCH 0 0")
{
	long tid = must("thread", peer_call(&p, start_thread, 0));

	peer_ask(&p, exit_leader, 0);
	repeat_while(0, leader_is_gone, p.pid);
	SAY_ANSWERS(count_queues(p.pid), count_queues((pid_t)tid), disable((pid_t)tid));
}

PEER_CASE(leader_exited_before, open, "2.5", 0, "EPERM 0 EINVAL")
{
	long tid = must("thread", peer_call(&p, start_thread, 0));

	peer_ask(&p, exit_leader, 0);
	repeat_while(0, leader_is_gone, p.pid);
	SAY_ANSWERS(seize(p.pid), seize(tid), enable(tid));
}

static bool has_folder(pid_t pid, const char *name)
{
	char path[512];
	struct stat st;

	snprintf(path, sizeof(path), "%s/proc/%d/%s", kfd_sysfs, pid, name);
	return !stat(path, &st);
}

PEER_CASE(folder_from_open_to_exit, plain, "5.2", NEEDS_SYSFS, "0 11 1 0")
{
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

PEER_CASE(folder_from_enable, plain, "5.2", NEEDS_SYSFS, "1")
{
	must("seize", seize(p.pid));
	must("enable", enable(p.pid));
	say("%d", has_folder(p.pid, "queues"));
}
