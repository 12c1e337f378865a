/* SPDX-License-Identifier: Apache-2.0 */
/* Who counts as a debugger: the thread that traces the target's leader, and who enabled before. */
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cases.h"

static void root_without_link(void)
{
	struct peer p = peer_start_open();

	say("uid=%u", geteuid());
	say("%s", answer(enable(p.pid)));
}

static void seized(void)
{
	struct peer p = peer_start_open();

	say("%s", answer(seize(p.pid)));
	say("%s", answer(enable(p.pid)));
	say("%s", answer(peer_call(&p, get_version, 0)));
}

static void attached(void)
{
	struct peer p = peer_start_open();

	say("%s", answer(attach(p.pid)));
	say("%s", answer(enable(p.pid)));
}

static long trace_me(long unused)
{
	(void)unused;
	return ptrace(PTRACE_TRACEME, 0, NULL, NULL) ? -errno : 0;
}

static void trace_me_child(void)
{
	struct peer p = peer_start_open();

	say("%s", answer(peer_call(&p, trace_me, 0)));
	say("%s", answer(enable(p.pid)));
}

static void other_thread_of_the_tracer(void)
{
	struct peer p = peer_start_seized();

	say("%s", answer(in_thread(enable, p.pid)));
	say("%s", answer(enable(p.pid)));
}

static void other_thread_after_enable(void)
{
	struct peer p = peer_start_debugged();

	say("%s", answer(in_thread(count_queues, p.pid)));
	say("%s", answer(in_thread(disable, p.pid)));
}

static void thread_that_traces_and_ends(void)
{
	struct peer p = peer_start_open();

	say("%s", answer(in_thread(seize_and_enable, p.pid)));
	say("%s", answer(repeat_while(-EPERM, seize, p.pid)));
}

static void session_outlives_the_tracing_thread(void)
{
	struct peer p = peer_start_open();

	say("%s", answer(in_thread(seize_and_enable, p.pid)));
	say("%s", answer(count_queues(p.pid)));
	say("%s", answer(disable(p.pid)));
}

static void second_tracer(void)
{
	struct peer p = peer_start_seized(), other = peer_start();

	say("%s", answer(peer_call(&other, seize, p.pid)));
}

static void only_another_thread_traced(void)
{
	struct peer p = peer_start_open();
	long tid = must("thread", peer_call(&p, start_thread, 0));

	must("seize", seize(tid));
	say("%s", answer(enable(p.pid)));
	say("%s", answer(enable(tid)));
}

/* Refused, but the process is now one that amdkfd knows. */
static void only_another_thread_traced_never_opened(void)
{
	struct peer p = peer_start(), other = peer_start_open();
	long tid = must("thread", peer_call(&p, start_thread, 0));

	must("seize", seize(tid));
	say("%s", answer(peer_call(&other, enable, p.pid)));
	say("%s", answer(enable(tid)));
	say("%s", answer(peer_call(&other, enable, p.pid)));
}

static void tid_of_a_traced_process(void)
{
	struct peer p = peer_start_seized();
	long tid = must("thread", peer_call(&p, start_thread, 0));

	say("%s", answer(enable(tid)));
	say("%s", answer(count_queues(tid)));
	say("%s", answer(enable(p.pid)));
	say("%s", answer(disable(p.pid)));
}

static void tid_never_opened(void)
{
	struct peer p = peer_start();
	long tid = must("thread", peer_call(&p, start_thread, 0));

	must("seize", seize(p.pid));
	say("%s", answer(enable(tid)));
}

static void oneself(void)
{
	say("%s", answer(enable(getpid())));
	say("%s", answer(count_queues(getpid())));
	say("%s", answer(in_thread(count_queues, getpid())));
	say("%s", answer(disable(getpid())));
	say("%s", answer(disable(getpid())));
}

static void oneself_by_tid(void)
{
	long tid = start_thread(0);

	say("%s", answer(enable(tid)));
	say("%s", answer(disable(getpid())));
}

static void target_ends_its_session(void)
{
	struct peer p = peer_start_debugged();

	say("%s", answer(peer_call(&p, count_queues, p.pid)));
	say("%s", answer(peer_call(&p, enable, p.pid)));
	say("%s", answer(peer_call(&p, disable, p.pid)));
	say("%s", answer(count_queues(p.pid)));
}

/* Who debugs itself is not closed to others: the tracer shares the session. */
static void tracer_of_one_that_debugs_itself(void)
{
	struct peer p = peer_start_seized();

	say("%s", answer(peer_call(&p, enable, p.pid)));
	say("%s", answer(enable(p.pid)));
	say("%s", answer(count_queues(p.pid)));
	say("%s", answer(disable(p.pid)));
	say("%s", answer(peer_call(&p, count_queues, p.pid)));
}

static void detached(void)
{
	struct peer p = peer_start_debugged();

	say("%s", answer(detach(p.pid)));
	say("%s", answer(count_queues(p.pid)));
	say("%s", answer(enable(p.pid)));
	say("%s", answer(disable(p.pid)));
}

static void detached_and_disabled(void)
{
	struct peer p = peer_start_debugged();

	detach(p.pid);
	say("%s", answer(disable(p.pid)));
	say("%s", answer(enable(p.pid)));
	say("%s", answer(disable(p.pid)));
}

static void stranger(void)
{
	struct peer p = peer_start_debugged(), other = peer_start_open();

	say("%s", answer(peer_call(&other, enable, p.pid)));
	say("%s", answer(peer_call(&other, count_queues, p.pid)));
	say("%s", answer(peer_call(&other, disable, p.pid)));
	say("%s", answer(count_queues(p.pid)));
}

/* The right comes from having asked, not from having been given it. */
static void failed_enable_counts(void)
{
	struct peer p = peer_start_seized();
	uint32_t size = 0;

	say("%s", answer(enable_with(p.pid, 0, -1, NULL, &size)));
	detach(p.pid);
	say("%s", answer(count_queues(p.pid)));
	say("%s", answer(enable(p.pid)));
	say("%s", answer(disable(p.pid)));
}

/* The second one fails, and has the session. */
static void second_debugger_takes_over(void)
{
	struct peer p = peer_start_debugged(), other = peer_start_open();

	detach(p.pid);
	say("%s", answer(peer_call(&other, seize_and_enable, p.pid)));
	say("%s", answer(count_queues(p.pid)));
	say("%s", answer(disable(p.pid)));
	say("%s", answer(peer_call(&other, count_queues, p.pid)));
	say("%s", answer(peer_call(&other, disable, p.pid)));
}

static void child_of_the_debugger(void)
{
	struct peer p = peer_start_debugged();
	int status;
	pid_t pid = fork();

	if (!pid) {
		open_kfd(0);
		_exit((int)-count_queues(p.pid));
	}
	waitpid(pid, &status, 0);
	say("%s", answer(-WEXITSTATUS(status)));
}

const struct kfd_case link_cases[] = {
	{"root_without_link", "2.2", 0, "uid=0 EPERM", root_without_link},
	{"seized", "2.2", 0, "0 0 0", seized},
	{"attached", "2.2", 0, "0 0", attached},
	{"trace_me_child", "2.2", 0, "0 0", trace_me_child},
	{"other_thread_of_the_tracer", "2.2", 0, "EPERM 0", other_thread_of_the_tracer},
	{"other_thread_after_enable", "2.2", NEEDS_NEW_RULE, "0 0", other_thread_after_enable},
	{"other_thread_after_enable_old", "2.2", NEEDS_OLD_RULE, "EPERM 0",
	 other_thread_after_enable},
	{"thread_that_traces_and_ends", "2.2", 0, "0 0", thread_that_traces_and_ends},
	{"session_outlives_the_tracing_thread", "2.2", NEEDS_NEW_RULE, "0 0 0",
	 session_outlives_the_tracing_thread},
	{"second_tracer", "2.2", 0, "EPERM", second_tracer},
	{"only_another_thread_traced", "2.2", 0, "EPERM EPERM", only_another_thread_traced},
	{"only_another_thread_traced_never_opened", "2.1.3", 0, "ESRCH EPERM EPERM",
	 only_another_thread_traced_never_opened},
	{"tid_of_a_traced_process", "2.2", 0, "0 0 EALREADY 0", tid_of_a_traced_process},
	{"tid_never_opened", "2.1.3", 0, "ESRCH", tid_never_opened},
	{"oneself", "2.1", 0, "0 0 0 0 EINVAL", oneself},
	{"oneself_by_tid", "2.1", 0, "0 0", oneself_by_tid},
	{"target_ends_its_session", "2.1", 0, "0 EALREADY 0 EINVAL", target_ends_its_session},
	{"tracer_of_one_that_debugs_itself", "2.1", 0, "0 EALREADY 0 0 EINVAL",
	 tracer_of_one_that_debugs_itself},
	{"detached", "2.2", NEEDS_NEW_RULE, "0 0 EALREADY 0", detached},
	{"detached_old", "2.2", NEEDS_OLD_RULE, "0 EPERM EPERM 0", detached},
	{"detached_and_disabled", "2.2", NEEDS_NEW_RULE, "0 EPERM EPERM", detached_and_disabled},
	{"detached_and_disabled_old", "2.2", NEEDS_OLD_RULE, "0 EPERM EINVAL",
	 detached_and_disabled},
	{"stranger", "2.2", NEEDS_NEW_RULE, "EPERM EPERM EPERM 0", stranger},
	{"stranger_old", "2.2", NEEDS_OLD_RULE, "EPERM EPERM 0 EINVAL", stranger},
	{"failed_enable_counts", "2.2", NEEDS_NEW_RULE, "EBADF EINVAL 0 0", failed_enable_counts},
	{"failed_enable_counts_old", "2.2", NEEDS_OLD_RULE, "EBADF EPERM EPERM EINVAL",
	 failed_enable_counts},
	{"second_debugger_takes_over", "2.2", NEEDS_NEW_RULE, "EALREADY EPERM EPERM 0 0",
	 second_debugger_takes_over},
	{"child_of_the_debugger", "2.2", 0, "EPERM", child_of_the_debugger},
	{0},
};
