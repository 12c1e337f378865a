/* SPDX-License-Identifier: Apache-2.0 */
/* SUSPEND_QUEUES and RESUME_QUEUES, and what becomes of the work. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

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

static void new_queue_is_not_suspended(void)
{
	struct peer p = peer_start_queues(1, false);

	say_suspend(p.pid, 0, IDS(0));
	say_suspend(p.pid, NEW, IDS(0));
	say("%s", answer(see_queues(p.pid)));
	say_suspend(p.pid, 0, IDS(0));
}

static void suspended_twice(void)
{
	struct peer p = peer_start_queues(1, true);

	say_suspend(p.pid, 0, IDS(0));
	say_suspend(p.pid, 0, IDS(0));
	say_resume(p.pid, IDS(0));
	say_resume(p.pid, IDS(0));
}

static void some_are_unknown(void)
{
	struct peer p = peer_start_queues(2, true);

	say_suspend(p.pid, 0, IDS(0, 7, 1));
	say_resume(p.pid, IDS(7, 1));
}

static void one_twice_in_the_array(void)
{
	struct peer p = peer_start_queues(1, true);

	say_suspend(p.pid, 0, IDS(0, 0));
	say_resume(p.pid, IDS(0, 0));
}

static void stale_bits(void)
{
	struct peer p = peer_start_queues(2, true);

	say_suspend(p.pid, 0, IDS(ERROR | 0, INVALID | 1));
	say_resume(p.pid, IDS(ERROR | 0, INVALID | 1));
}

static void clears_new_of_the_skipped(void)
{
	struct peer p = peer_start_queues(1, true);

	peer_call(&p, make_queue, KFD_QUEUE_COMPUTE_AQL);
	say_suspend(p.pid, NEW, IDS(0, 1));
	say_suspend(p.pid, 0, IDS(1));
}

static void clears_nothing_outside_the_array(void)
{
	struct peer p = peer_start_queues(1, true);

	peer_call(&p, make_queue, KFD_QUEUE_COMPUTE_AQL);
	say_suspend(p.pid, NEW, IDS(0));
	say_suspend(p.pid, 0, IDS(1));
}

static void resume_all_of_them(void)
{
	struct peer p = peer_start_queues(3, true);

	say_suspend(p.pid, 0, IDS(0, 2));
	say("%s", answer(resume(p.pid, NULL, 0)));
	say("%s", answer(resume(p.pid, NULL, 1)));
}

static void copy_queues_too(void)
{
	struct peer p = peer_start_queues(1, false);

	peer_call(&p, make_queue, KFD_QUEUE_SDMA);
	see_queues(p.pid);
	say_suspend(p.pid, 0, IDS(0, 1));
}

static void queues_of_two_gpus(void)
{
	struct peer p = peer_start_queues(1, false);

	peer_call(&p, make_queue, ON_GPU(KFD_QUEUE_COMPUTE_AQL, 1));
	see_queues(p.pid);
	say_suspend(p.pid, 0, IDS(0, 1));
	say("%s", answer(resume(p.pid, NULL, 0)));
}

static void disable_forgets_suspensions(void)
{
	struct peer p = peer_start_queues(1, true);

	say_suspend(p.pid, 0, IDS(0));
	say("%s", answer(disable(p.pid)));
	say("%s", answer(peer_call(&p, destroy_queue, 0)));
}

/* No snapshot is needed after it: nothing is NEW any more. */
static void second_session_suspends_at_once(void)
{
	struct peer p = peer_start_queues(1, false);

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

static void work_stands_while_suspended(void)
{
	struct peer p = peer_start_queues(1, true);

	submit_much(&p, 0);
	say_suspend(p.pid, 0, IDS(0));
	say_moves(&p, 0);
	say_resume(p.pid, IDS(0));
	say_right(&p, 0);
}

static void work_submitted_while_suspended(void)
{
	struct peer p = peer_start_queues(1, true);

	say_suspend(p.pid, 0, IDS(0));
	submit(&p, 0);
	say_moves(&p, 0);
	say("%s", answer(peer_call(&p, work_done, 0)));
	say_resume(p.pid, IDS(0));
	say_right(&p, 0);
}

static void other_queues_go_on(void)
{
	struct peer p = peer_start_queues(2, true);

	say_suspend(p.pid, 0, IDS(0));
	submit(&p, 0);
	submit(&p, 1);
	say_right(&p, 1);
	say_moves(&p, 0);
}

static void new_queues_run(void)
{
	struct peer p = peer_start_queues(1, true);

	say_suspend(p.pid, 0, IDS(0));
	say("%s", answer(peer_call(&p, make_queue, KFD_QUEUE_COMPUTE_AQL)));
	submit(&p, 1);
	say_right(&p, 1);
}

static void nothing_named_resumes_nothing(void)
{
	struct peer p = peer_start_queues(1, true);
	uint32_t id = 0;

	say_suspend(p.pid, 0, IDS(0));
	submit(&p, 0);
	say("%s", answer(resume(p.pid, &id, 0)));
	say_moves(&p, 0);
}

/* Only the count is lost with the array: the work stands. */
static void array_that_cannot_be_written(void)
{
	struct peer p = peer_start_queues(1, true);
	uint32_t id = 0;

	say("%s", answer(suspend(p.pid, read_only_copy(&id, sizeof(id)), 1)));
	submit(&p, 0);
	say_moves(&p, 0);
}

static void waves_are_in_the_save_area(void)
{
	struct peer p = peer_start_queues(1, true);

	say("%s", answer(peer_call(&p, waves_saved, 0)));
	submit_much(&p, 0);
	say_suspend(p.pid, 0, IDS(0));
	say("%s", answer(peer_call(&p, waves_saved, 0)));
}

static void disable_resumes(void)
{
	struct peer p = peer_start_queues(2, true);

	say_suspend(p.pid, 0, IDS(0, 1));
	submit(&p, 0);
	submit(&p, 1);
	say("%s", answer(disable(p.pid)));
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

static void death_of_the_debugger_resumes(void)
{
	struct peer p = peer_start_open(), debugger = peer_start_open();

	must("runtime", peer_call(&p, set_runtime, KFD_RUNTIME_ENABLE_MODE_ENABLE));
	must("queue", peer_call(&p, make_queue, KFD_QUEUE_COMPUTE_AQL));
	say("%s", answer(peer_call(&debugger, suspend_first, p.pid)));
	submit(&p, 0);
	say_moves(&p, 0);
	peer_kill(&debugger);
	say_right(&p, 0);
}

static void closing_the_device_resumes_nothing(void)
{
	struct peer p = peer_start_queues(1, true);

	say_suspend(p.pid, 0, IDS(0));
	submit(&p, 0);
	close_kfd(0);
	say_moves(&p, 0);
}

static void end_of_the_runtime_resumes(void)
{
	struct peer p = peer_start_queues(1, true);

	say_suspend(p.pid, 0, IDS(0));
	submit(&p, 0);
	must("send", send_event(p.pid, KFD_EC_PROCESS_RUNTIME));
	say("%s", answer(peer_call(&p, set_runtime, 0)));
	say_right(&p, 0);
	say_suspend(p.pid, 0, IDS(0));
}

static void percent_0_stops_it(void)
{
	struct peer p = peer_start_queues(1, true);

	say("%s", answer(peer_call(&p, set_percent, WITH(0, 0))));
	submit(&p, 0);
	say_moves(&p, 0);
	say("%s", answer(peer_call(&p, set_percent, WITH(0, 100))));
	say_right(&p, 0);
}

/* It counts as resumed, but has another reason to stand. */
static void resumed_is_not_running(void)
{
	struct peer p = peer_start_queues(1, true);

	say_suspend(p.pid, 0, IDS(0));
	say("%s", answer(peer_call(&p, set_percent, WITH(0, 0))));
	submit(&p, 0);
	say_resume(p.pid, IDS(0));
	say_moves(&p, 0);
	say("%s", answer(peer_call(&p, set_percent, WITH(0, 100))));
	say_right(&p, 0);
}

static void percent_100_does_not_resume(void)
{
	struct peer p = peer_start_queues(1, true);

	say_suspend(p.pid, 0, IDS(0));
	submit(&p, 0);
	say("%s", answer(peer_call(&p, set_percent, WITH(0, 100))));
	say_moves(&p, 0);
}

static void destroy_waits_for_resume(void)
{
	struct peer p = peer_start_queues(1, true);

	say_suspend(p.pid, 0, IDS(0));
	peer_ask(&p, destroy_queue, 0);
	say("%s", peer_is_blocked(&p) ? "blocked" : "not");
	say("%s", answer(count_queues(p.pid)));
	say_suspend(p.pid, 0, IDS(0)); /* it is already */
	say_resume(p.pid, IDS(0));
	say("%s", answer(peer_answer(&p)));
	say("%s", answer(count_queues(p.pid)));
}

static void destroy_is_let_through_by_disable(void)
{
	struct peer p = peer_start_queues(1, true);

	say_suspend(p.pid, 0, IDS(0));
	peer_ask(&p, destroy_queue, 0);
	say("%s", peer_is_blocked(&p) ? "blocked" : "not");
	disable(p.pid);
	say("%s", answer(peer_answer(&p)));
}

static void destroy_is_interrupted(void)
{
	struct peer p = peer_start_queues(1, true);

	detach(p.pid);
	must("signal", peer_call(&p, catch_signal, SIGUSR1));
	say_suspend(p.pid, 0, IDS(0));
	peer_ask(&p, destroy_queue, 0);
	say("%s", peer_is_blocked(&p) ? "blocked" : "not");
	kill(p.pid, SIGUSR1);
	say("%s", answer(peer_answer(&p)));
	say_resume(p.pid, IDS(0));
	say("%s", answer(peer_call(&p, destroy_queue, 0)));
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

static void destroyed_by_two(void)
{
	struct peer p = peer_start_queues(1, true);

	say_suspend(p.pid, 0, IDS(0));
	say("%s", answer(peer_call(&p, destroy_by_two_threads, 0)));
	say("%s", answer(resume(p.pid, NULL, 0)));
}

/* One debugged process at a time. */

static long report_state(pid_t pid)
{
	struct kfd_runtime_info info = {0};
	uint32_t size = sizeof(info);
	long rc = enable_with(pid, 0, notify_fd(), &info, &size);

	return rc < 0 ? rc : (long)info.runtime_state;
}

static void hardware_has_one_debug_slot(void)
{
	struct peer first = peer_start_ready(), second = peer_start_seized();
	uint32_t id = 0;

	must("runtime", peer_call(&second, set_runtime, KFD_RUNTIME_ENABLE_MODE_ENABLE));
	say("state=%s", answer(report_state(second.pid)));
	say("%s", answer(suspend(second.pid, &id, 1)));
	say("%s", answer(disable(second.pid)));
	say("%s", answer(disable(first.pid)));
	say("state=%s", answer(report_state(second.pid)));
	say("%s", answer(suspend(second.pid, &id, 1)));
}

const struct kfd_case preempt_cases[] = {
	{"new_queue_is_not_suspended", "0.3", NEEDS_GPU, "0 80000000 0 80000000 1 1 0",
	 new_queue_is_not_suspended},
	{"suspended_twice", "3.2", NEEDS_GPU, "1 0 1 0 1 0 1 0", suspended_twice},
	{"some_are_unknown", "3.2", NEEDS_GPU, "2 0 80000007 1 1 80000007 1", some_are_unknown},
	{"one_twice_in_the_array", "3.2", NEEDS_GPU, "1 0 80000000 1 0 80000000",
	 one_twice_in_the_array},
	{"stale_bits", "3.2", NEEDS_GPU, "1 c0000000 1 1 c0000000 1", stale_bits},
	{"clears_new_of_the_skipped", "3.2", NEEDS_GPU | NEEDS_HWS, "1 0 80000001 1 1",
	 clears_new_of_the_skipped},
	{"clears_new_of_the_suspended_only", "3.2", NEEDS_GPU | NEEDS_MES,
	 "1 0 80000001 0 80000001", clears_new_of_the_skipped},
	{"clears_nothing_outside_the_array", "3.2", NEEDS_GPU, "1 0 0 80000001",
	 clears_nothing_outside_the_array},
	{"resume_all_of_them", "3.1", NEEDS_GPU, "2 0 2 3 3", resume_all_of_them},
	{"copy_queues_too", "3.2", NEEDS_GPU, "2 0 1", copy_queues_too},
	{"queues_of_two_gpus", "3.2", NEEDS_GPU | NEEDS_TWO_GPU, "2 0 1 2", queues_of_two_gpus},
	{"disable_forgets_suspensions", "2.5", NEEDS_GPU, "1 0 0 0", disable_forgets_suspensions},
	{"second_session_suspends_at_once", "2.5", NEEDS_GPU, "1 0",
	 second_session_suspends_at_once},
	{"work_stands_while_suspended", "3.2", NEEDS_GPU, "1 0 stands 1 0 right",
	 work_stands_while_suspended},
	{"work_submitted_while_suspended", "3.2", NEEDS_GPU, "1 0 stands 0 1 0 right",
	 work_submitted_while_suspended},
	{"other_queues_go_on", "3.2", NEEDS_GPU, "1 0 right stands", other_queues_go_on},
	{"new_queues_run", "3.2", NEEDS_GPU, "1 0 1 right", new_queues_run},
	{"nothing_named_resumes_nothing", "3.1", NEEDS_GPU, "1 0 0 stands",
	 nothing_named_resumes_nothing},
	{"array_that_cannot_be_written", "3.1", NEEDS_GPU, "1 stands",
	 array_that_cannot_be_written},
	{"waves_are_in_the_save_area", "3.2", NEEDS_GPU, "0 1 0 1", waves_are_in_the_save_area},
	{"disable_resumes", "2.5", NEEDS_GPU, "2 0 1 0 right right", disable_resumes},
	{"death_of_the_debugger_resumes", "2.5", NEEDS_GPU, "1 stands right",
	 death_of_the_debugger_resumes},
	{"closing_the_device_resumes_nothing", "2.5", NEEDS_GPU, "1 0 stands",
	 closing_the_device_resumes_nothing},
	{"end_of_the_runtime_resumes", "2.4", NEEDS_GPU, "1 0 0 right EPERM 0",
	 end_of_the_runtime_resumes},
	{"percent_0_stops_it", "1.3", NEEDS_GPU, "0 stands 0 right", percent_0_stops_it},
	{"resumed_is_not_running", "3.3", NEEDS_GPU, "1 0 0 1 0 stands 0 right",
	 resumed_is_not_running},
	{"percent_100_does_not_resume", "3.3", NEEDS_GPU, "1 0 0 stands",
	 percent_100_does_not_resume},
	{"destroy_waits_for_resume", "3.4", NEEDS_GPU, "1 0 blocked 1 1 0 1 0 0 0",
	 destroy_waits_for_resume},
	{"destroy_is_let_through_by_disable", "3.4", NEEDS_GPU, "1 0 blocked 0",
	 destroy_is_let_through_by_disable},
	{"destroy_is_interrupted", "3.4", NEEDS_GPU | NEEDS_NEW_RULE, "1 0 blocked EINTR 1 0 0",
	 destroy_is_interrupted},
	{"destroyed_by_two", "3.4", NEEDS_GPU, "1 0 EBUSY 1", destroyed_by_two},
	{"hardware_has_one_debug_slot", "2.3", NEEDS_GPU | NEEDS_ONE_SLOT,
	 "state=2 EPERM 0 0 state=1 0", hardware_has_one_debug_slot},
	{0},
};
