/* SPDX-License-Identifier: Apache-2.0 */
/* The debugger is the thread that traces the target's leader, or the process that enabled before.
 */
#include <sys/ptrace.h>

#include "cases.h"

PEER_CASE(root_without_link, open, "2.2", 0, "uid=0 EPERM")
{
	say("uid=%u", geteuid());
	say_answer(enable(p.pid));
}

PEER_CASE(seized, open, "2.2", 0, "0 0 0")
{
	SAY_ANSWERS(seize(p.pid), enable(p.pid), peer_call(&p, get_version, 0));
}

PEER_CASE(attached, open, "2.2", 0, "0 0")
{
	SAY_ANSWERS(attach(p.pid), enable(p.pid));
}

static long trace_me(long unused)
{
	(void)unused;
	return ptrace(PTRACE_TRACEME, 0, NULL, NULL) ? -errno : 0;
}

PEER_CASE(trace_me_child, open, "2.2", 0, "0 0")
{
	SAY_ANSWERS(peer_call(&p, trace_me, 0), enable(p.pid));
}

PEER_CASE(other_thread_of_the_tracer, seized, "2.2", 0, "EPERM 0")
{
	SAY_ANSWERS(in_thread(enable, p.pid), enable(p.pid));
}

PEER_CASE(other_thread_after_enable, debugged, "2.2", NEEDS_NEW_RULE, "0 0")
{
	SAY_ANSWERS(in_thread(count_queues, p.pid), in_thread(disable, p.pid));
}

KFD_CASE_AGAIN(other_thread_after_enable_old, other_thread_after_enable, debugged, "2.2",
	       NEEDS_OLD_RULE, "EPERM 0")

PEER_CASE(thread_that_traces_and_ends, open, "2.2", 0, "0 0")
{
	SAY_ANSWERS(in_thread(seize_and_enable, p.pid), repeat_while(-EPERM, seize, p.pid));
}

PEER_CASE(session_outlives_the_tracing_thread, open, "2.2", NEEDS_NEW_RULE, "0 0 0")
{
	SAY_ANSWERS(in_thread(seize_and_enable, p.pid), count_queues(p.pid), disable(p.pid));
}

PEER_CASE(second_tracer, seized, "2.2", 0, "EPERM")
{
	struct peer other = peer_start_plain();

	say_answer(peer_call(&other, seize, p.pid));
}

PEER_CASE(only_another_thread_traced, open, "2.2", 0, "EPERM EPERM")
{
	long tid = must("thread", peer_call(&p, start_thread, 0));

	must("seize", seize(tid));
	SAY_ANSWERS(enable(p.pid), enable(tid));
}

/* Refused, but the process is now one that amdkfd knows. */
PEER_CASE(only_another_thread_traced_never_opened, plain, "2.1.3", 0, "ESRCH EPERM EPERM")
{
	struct peer other = peer_start_open();
	long tid = must("thread", peer_call(&p, start_thread, 0));

	must("seize", seize(tid));
	say_answer(peer_call(&other, enable, p.pid));
	say_answer(enable(tid));
	say_answer(peer_call(&other, enable, p.pid));
}

PEER_CASE(tid_of_a_traced_process, seized, "2.2", 0, "0 0 EALREADY 0")
{
	long tid = must("thread", peer_call(&p, start_thread, 0));

	SAY_ANSWERS(enable(tid), count_queues(tid), enable(p.pid), disable(p.pid));
}

PEER_CASE(tid_never_opened, plain, "2.1.3", 0, "ESRCH")
{
	long tid = must("thread", peer_call(&p, start_thread, 0));

	must("seize", seize(p.pid));
	say_answer(enable(tid));
}

KFD_CASE(oneself, "2.1", 0, "0 0 0 0 EINVAL")
{
	say_answer(enable(getpid()));
	say_answer(count_queues(getpid()));
	say_answer(in_thread(count_queues, getpid()));
	say_answer(disable(getpid()));
	say_answer(disable(getpid()));
}

KFD_CASE(oneself_by_tid, "2.1", 0, "0 0")
{
	long tid = start_thread(0);

	SAY_ANSWERS(enable(tid), disable(getpid()));
}

PEER_CASE(target_ends_its_session, debugged, "2.1", 0, "0 EALREADY 0 EINVAL")
{
	say_answer(peer_call(&p, count_queues, p.pid));
	say_answer(peer_call(&p, enable, p.pid));
	say_answer(peer_call(&p, disable, p.pid));
	say_answer(count_queues(p.pid));
}

/* A process that debugs itself can be traced: the tracer shares the session. */
PEER_CASE(tracer_of_one_that_debugs_itself, seized, "2.1", 0, "0 EALREADY 0 0 EINVAL")
{
	say_answer(peer_call(&p, enable, p.pid));
	say_answer(enable(p.pid));
	say_answer(count_queues(p.pid));
	say_answer(disable(p.pid));
	say_answer(peer_call(&p, count_queues, p.pid));
}

PEER_CASE(detached, debugged, "2.2", NEEDS_NEW_RULE, "0 0 EALREADY 0")
{
	SAY_ANSWERS(detach(p.pid), count_queues(p.pid), enable(p.pid), disable(p.pid));
}

KFD_CASE_AGAIN(detached_old, detached, debugged, "2.2", NEEDS_OLD_RULE, "0 EPERM EPERM 0")

PEER_CASE(detached_and_disabled, debugged, "2.2", NEEDS_NEW_RULE, "0 EPERM EPERM")
{
	detach(p.pid);
	SAY_ANSWERS(disable(p.pid), enable(p.pid), disable(p.pid));
}

KFD_CASE_AGAIN(detached_and_disabled_old, detached_and_disabled, debugged, "2.2", NEEDS_OLD_RULE,
	       "0 EPERM EINVAL")

PEER_CASE(stranger, debugged, "2.2", NEEDS_NEW_RULE, "EPERM EPERM EPERM 0")
{
	struct peer other = peer_start_open();

	say_answer(peer_call(&other, enable, p.pid));
	say_answer(peer_call(&other, count_queues, p.pid));
	say_answer(peer_call(&other, disable, p.pid));
	say_answer(count_queues(p.pid));
}

KFD_CASE_AGAIN(stranger_old, stranger, debugged, "2.2", NEEDS_OLD_RULE, "EPERM EPERM 0 EINVAL")

/* The right comes from having asked, not from having been given it. */
PEER_CASE(failed_enable_counts, seized, "2.2", NEEDS_NEW_RULE, "EBADF EINVAL 0 0")
{
	uint32_t size = 0;

	say_answer(enable_with(p.pid, 0, -1, NULL, &size));
	detach(p.pid);
	SAY_ANSWERS(count_queues(p.pid), enable(p.pid), disable(p.pid));
}

KFD_CASE_AGAIN(failed_enable_counts_old, failed_enable_counts, seized, "2.2", NEEDS_OLD_RULE,
	       "EBADF EPERM EPERM EINVAL")

/* The second one fails, and has the session. */
PEER_CASE(second_debugger_takes_over, debugged, "2.2", NEEDS_NEW_RULE, "EALREADY EPERM EPERM 0 0")
{
	struct peer other = peer_start_open();

	detach(p.pid);
	say_answer(peer_call(&other, seize_and_enable, p.pid));
	say_answer(count_queues(p.pid));
	say_answer(disable(p.pid));
	say_answer(peer_call(&other, count_queues, p.pid));
	say_answer(peer_call(&other, disable, p.pid));
}

PEER_CASE(child_of_the_debugger, debugged, "2.2", 0, "EPERM")
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		open_kfd(0);
		_exit((int)-count_queues(p.pid));
	}
	waitpid(pid, &status, 0);
	say_answer(-WEXITSTATUS(status));
}
