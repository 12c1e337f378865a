/* SPDX-License-Identifier: Apache-2.0 */
/* SUSPEND_QUEUES and RESUME_QUEUES, and what becomes of the work. */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>

#include "queue.h"

#define IDS(...)                                              \
	(sizeof((uint32_t[]){__VA_ARGS__}) / 4), (uint32_t[]) \
	{                                                     \
		__VA_ARGS__                                   \
	}
#define NEW        KFD_EC_QUEUE_NEW
#define INVALID    KFD_DBG_QUEUE_INVALID
#define ERROR      KFD_DBG_QUEUE_ERROR
#define SOME       30   /* packets */
#define MUCH       1000 /* not done before a debugger comes, however slow this machine is */
#define A_WHILE_US 100000

PEER_CASE(new_queue_is_not_suspended, new_queue, "0.3", NEEDS_GPU, "0 80000000 0 80000000 1 1 0")
{
	say_suspend(p.pid, 0, IDS(0));
	say_suspend(p.pid, NEW, IDS(0));
	say_answer(see_queues(p.pid));
	say_suspend(p.pid, 0, IDS(0));
}

PEER_CASE(suspended_twice, seen_queue, "3.2", NEEDS_GPU, "1 0 1 0 1 0 1 0")
{
	say_suspend(p.pid, 0, IDS(0));
	say_suspend(p.pid, 0, IDS(0));
	say_resume(p.pid, IDS(0));
	say_resume(p.pid, IDS(0));
}

PEER_CASE(some_are_unknown, two_seen_queues, "3.2", NEEDS_GPU, "2 0 80000007 1 1 80000007 1")
{
	say_suspend(p.pid, 0, IDS(0, 7, 1));
	say_resume(p.pid, IDS(7, 1));
}

PEER_CASE(one_twice_in_the_array, seen_queue, "3.2", NEEDS_GPU, "1 0 80000000 1 0 80000000")
{
	say_suspend(p.pid, 0, IDS(0, 0));
	say_resume(p.pid, IDS(0, 0));
}

PEER_CASE(stale_bits, two_seen_queues, "3.2", NEEDS_GPU, "1 c0000000 1 1 c0000000 1")
{
	say_suspend(p.pid, 0, IDS(ERROR | 0, INVALID | 1));
	say_resume(p.pid, IDS(ERROR | 0, INVALID | 1));
}

PEER_CASE(clears_new_of_the_skipped, seen_queue, "3.2", NEEDS_GPU | NEEDS_HWS, "1 0 80000001 1 1")
{
	peer_call(&p, make_queue, KFD_QUEUE_COMPUTE_AQL);
	say_suspend(p.pid, NEW, IDS(0, 1));
	say_suspend(p.pid, 0, IDS(1));
}

KFD_CASE_AGAIN(clears_new_of_the_suspended_only, clears_new_of_the_skipped, seen_queue, "3.2",
	       NEEDS_GPU | NEEDS_MES, "1 0 80000001 0 80000001")

PEER_CASE(clears_nothing_outside_the_array, seen_queue, "3.2", NEEDS_GPU, "1 0 0 80000001")
{
	peer_call(&p, make_queue, KFD_QUEUE_COMPUTE_AQL);
	say_suspend(p.pid, NEW, IDS(0));
	say_suspend(p.pid, 0, IDS(1));
}

KFD_CASE(resume_all_of_them, "3.1", NEEDS_GPU, "2 0 2 3 3")
{
	struct peer p = peer_start_queues(3, true);

	say_suspend(p.pid, 0, IDS(0, 2));
	SAY_ANSWERS(resume(p.pid, NULL, 0), resume(p.pid, NULL, 1));
}

PEER_CASE(copy_queues_too, new_queue, "3.2", NEEDS_GPU, "2 0 1")
{
	peer_call(&p, make_queue, KFD_QUEUE_SDMA);
	see_queues(p.pid);
	say_suspend(p.pid, 0, IDS(0, 1));
}

PEER_CASE(queues_of_two_gpus, new_queue, "3.2", NEEDS_GPU | NEEDS_TWO_GPU, "2 0 1 2")
{
	peer_call(&p, make_queue, ON_GPU(KFD_QUEUE_COMPUTE_AQL, 1));
	see_queues(p.pid);
	say_suspend(p.pid, 0, IDS(0, 1));
	say_answer(resume(p.pid, NULL, 0));
}

PEER_CASE(disable_forgets_suspensions, seen_queue, "2.5", NEEDS_GPU, "1 0 0 0")
{
	say_suspend(p.pid, 0, IDS(0));
	SAY_ANSWERS(disable(p.pid), peer_call(&p, destroy_queue, 0));
}

/* No snapshot is needed after it: nothing is NEW any more. */
PEER_CASE(second_session_suspends_at_once, new_queue, "2.5", NEEDS_GPU, "1 0")
{
	disable(p.pid);
	must("enable", enable(p.pid));
	say_suspend(p.pid, 0, IDS(0));
}

static void submit(const struct peer *p, long id)
{
	must("submit", peer_call(p, submit_work, WITH(id, SOME)));
}

static void submit_much(const struct peer *p, long id)
{
	must("submit", peer_call(p, submit_work, WITH(id, MUCH)));
}

/* Whether it goes on: not, if nothing is done for a while, though there is something to do. */
static void say_moves(const struct peer *p, long id)
{
	long before = peer_call(p, work_done, id), all = peer_call(p, submit_work, WITH(id, 0));

	usleep(A_WHILE_US);
	say("%s", before < all && peer_call(p, work_done, id) == before ? "stands" : "moves");
}

static void say_right(const struct peer *p, long id)
{
	say("%s", peer_call(p, work_is_right, id) ? "right" : "WRONG");
}

PEER_CASE(work_stands_while_suspended, seen_queue, "3.2", NEEDS_GPU, "1 0 stands 1 0 right")
{
	submit_much(&p, 0);
	say_suspend(p.pid, 0, IDS(0));
	say_moves(&p, 0);
	say_resume(p.pid, IDS(0));
	say_right(&p, 0);
}

PEER_CASE(work_submitted_while_suspended, seen_queue, "3.2", NEEDS_GPU, "1 0 stands 0 1 0 right")
{
	say_suspend(p.pid, 0, IDS(0));
	submit(&p, 0);
	say_moves(&p, 0);
	say_answer(peer_call(&p, work_done, 0));
	say_resume(p.pid, IDS(0));
	say_right(&p, 0);
}

PEER_CASE(other_queues_go_on, two_seen_queues, "3.2", NEEDS_GPU, "1 0 right stands")
{
	say_suspend(p.pid, 0, IDS(0));
	submit(&p, 0);
	submit(&p, 1);
	say_right(&p, 1);
	say_moves(&p, 0);
}

PEER_CASE(new_queues_run, seen_queue, "3.2", NEEDS_GPU, "1 0 1 right")
{
	say_suspend(p.pid, 0, IDS(0));
	say_answer(peer_call(&p, make_queue, KFD_QUEUE_COMPUTE_AQL));
	submit(&p, 1);
	say_right(&p, 1);
}

PEER_CASE(nothing_named_resumes_nothing, seen_queue, "3.1", NEEDS_GPU, "1 0 0 stands")
{
	uint32_t id = 0;

	say_suspend(p.pid, 0, IDS(0));
	submit(&p, 0);
	say_answer(resume(p.pid, &id, 0));
	say_moves(&p, 0);
}

/* Only the count is lost with the array: the work stands. */
PEER_CASE(array_that_cannot_be_written, seen_queue, "3.1", NEEDS_GPU, "1 stands")
{
	uint32_t id = 0;

	say_answer(suspend(p.pid, read_only_copy(&id, sizeof(id)), 1));
	submit(&p, 0);
	say_moves(&p, 0);
}

PEER_CASE(waves_are_in_the_save_area, seen_queue, "3.2", NEEDS_GPU, "0 1 0 1")
{
	say_answer(peer_call(&p, waves_saved, 0));
	submit_much(&p, 0);
	say_suspend(p.pid, 0, IDS(0));
	say_answer(peer_call(&p, waves_saved, 0));
}

PEER_CASE(disable_resumes, two_seen_queues, "2.5", NEEDS_GPU, "2 0 1 0 right right")
{
	say_suspend(p.pid, 0, IDS(0, 1));
	submit(&p, 0);
	submit(&p, 1);
	say_answer(disable(p.pid));
	say_right(&p, 0);
	say_right(&p, 1);
}

static long suspend_first(long pid)
{
	uint32_t id = 0;
	long rc = seize_and_enable(pid);

	if (!rc)
		rc = see_queues(pid);
	return rc < 0 ? rc : suspend((pid_t)pid, &id, 1);
}

PEER_CASE(death_of_the_debugger_resumes, open, "2.5", NEEDS_GPU, "1 stands right")
{
	struct peer debugger = peer_start_open();

	must("runtime", peer_call(&p, set_runtime, KFD_RUNTIME_ENABLE_MODE_ENABLE));
	must("queue", peer_call(&p, make_queue, KFD_QUEUE_COMPUTE_AQL));
	say_answer(peer_call(&debugger, suspend_first, p.pid));
	submit(&p, 0);
	say_moves(&p, 0);
	peer_kill(&debugger);
	say_right(&p, 0);
}

PEER_CASE(closing_the_device_resumes_nothing, seen_queue, "2.5", NEEDS_GPU, "1 0 stands")
{
	say_suspend(p.pid, 0, IDS(0));
	submit(&p, 0);
	close_kfd(0);
	say_moves(&p, 0);
}

PEER_CASE(end_of_the_runtime_resumes, seen_queue, "2.4", NEEDS_GPU, "1 0 0 right EPERM 0")
{
	say_suspend(p.pid, 0, IDS(0));
	submit(&p, 0);
	must("send", send_event(p.pid, KFD_EC_PROCESS_RUNTIME));
	say_answer(peer_call(&p, set_runtime, 0));
	say_right(&p, 0);
	say_suspend(p.pid, 0, IDS(0));
}

PEER_CASE(percent_0_stops_it, seen_queue, "1.3", NEEDS_GPU, "0 stands 0 right")
{
	say_answer(peer_call(&p, set_percent, WITH(0, 0)));
	submit(&p, 0);
	say_moves(&p, 0);
	say_answer(peer_call(&p, set_percent, WITH(0, 100)));
	say_right(&p, 0);
}

/* It counts as resumed, but has another reason to stand. */
PEER_CASE(resumed_is_not_running, seen_queue, "3.3", NEEDS_GPU, "1 0 0 1 0 stands 0 right")
{
	say_suspend(p.pid, 0, IDS(0));
	say_answer(peer_call(&p, set_percent, WITH(0, 0)));
	submit(&p, 0);
	say_resume(p.pid, IDS(0));
	say_moves(&p, 0);
	say_answer(peer_call(&p, set_percent, WITH(0, 100)));
	say_right(&p, 0);
}

PEER_CASE(percent_100_does_not_resume, seen_queue, "3.3", NEEDS_GPU, "1 0 0 stands")
{
	say_suspend(p.pid, 0, IDS(0));
	submit(&p, 0);
	say_answer(peer_call(&p, set_percent, WITH(0, 100)));
	say_moves(&p, 0);
}

PEER_CASE(destroy_waits_for_resume, seen_queue, "3.4", NEEDS_GPU, "1 0 blocked 1 1 0 1 0 0 0")
{
	say_suspend(p.pid, 0, IDS(0));
	peer_ask(&p, destroy_queue, 0);
	say("%s", peer_is_blocked(&p) ? "blocked" : "not");
	say_answer(count_queues(p.pid));
	say_suspend(p.pid, 0, IDS(0)); /* it is already */
	say_resume(p.pid, IDS(0));
	SAY_ANSWERS(peer_answer(&p), count_queues(p.pid));
}

PEER_CASE(destroy_is_let_through_by_disable, seen_queue, "3.4", NEEDS_GPU, "1 0 blocked 0")
{
	say_suspend(p.pid, 0, IDS(0));
	peer_ask(&p, destroy_queue, 0);
	say("%s", peer_is_blocked(&p) ? "blocked" : "not");
	disable(p.pid);
	say_answer(peer_answer(&p));
}

PEER_CASE(destroy_is_interrupted, seen_queue, "3.4", NEEDS_GPU | NEEDS_NEW_RULE,
	  "1 0 blocked EINTR 1 0 0")
{
	detach(p.pid);
	must("signal", peer_call(&p, catch_signal, SIGUSR1));
	say_suspend(p.pid, 0, IDS(0));
	peer_ask(&p, destroy_queue, 0);
	say("%s", peer_is_blocked(&p) ? "blocked" : "not");
	kill(p.pid, SIGUSR1);
	say_answer(peer_answer(&p));
	say_resume(p.pid, IDS(0));
	say_answer(peer_call(&p, destroy_queue, 0));
}

static _Atomic pid_t destroyer;

static void *destroy_first(void *unused)
{
	(void)unused;
	destroyer = (pid_t)syscall(SYS_gettid);
	destroy_queue(0);
	return NULL;
}

/* In a call that sleeps, which for that thread can only be its one. */
static bool is_in_ioctl(pid_t tid)
{
	char path[64];
	long number = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", tid);
	f = fopen(path, "r");
	if (!f)
		return false;
	if (fscanf(f, "%ld", &number) != 1)
		number = -1;
	fclose(f);
	return number == SYS_ioctl;
}

static long destroy_by_two_threads(long unused)
{
	pthread_t thread;

	(void)unused;
	pthread_create(&thread, NULL, destroy_first, NULL);
	while (!destroyer || !is_in_ioctl(destroyer))
		usleep(1000);
	usleep(A_WHILE_US); /* on the emulator, until it has got there */
	return destroy_queue(0);
}

PEER_CASE(destroyed_by_two, seen_queue, "3.4", NEEDS_GPU, "1 0 EBUSY 1")
{
	say_suspend(p.pid, 0, IDS(0));
	SAY_ANSWERS(peer_call(&p, destroy_by_two_threads, 0), resume(p.pid, NULL, 0));
}

/* One debugged process at a time. */

static long report_state(pid_t pid)
{
	struct kfd_runtime_info info = {0};
	uint32_t size = sizeof(info);
	long rc = enable_with(pid, 0, notify_fd(), &info, &size);

	return rc < 0 ? rc : (long)info.runtime_state;
}

KFD_CASE(hardware_has_one_debug_slot, "2.3", NEEDS_GPU | NEEDS_ONE_SLOT,
	 "state=2 EPERM 0 0 state=1 0")
{
	struct peer first = peer_start_ready(), second = peer_start_seized();
	uint32_t id = 0;

	must("runtime", peer_call(&second, set_runtime, KFD_RUNTIME_ENABLE_MODE_ENABLE));
	say("state=%s", answer(report_state(second.pid)));
	SAY_ANSWERS(suspend(second.pid, &id, 1), disable(second.pid), disable(first.pid));
	say("state=%s", answer(report_state(second.pid)));
	say_answer(suspend(second.pid, &id, 1));
}
