/* SPDX-License-Identifier: Apache-2.0 */
/* The order in which DBG_TRAP checks: the first that fails decides the answer. */
#include <sched.h>
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cases.h"

#define NO_SUCH_PID 0x3ffffff /* above any pid_max */
#define NO_SUCH_OP  15
#define SOME_GPU    0x1234
#define PF_KTHREAD  0x200000ul

/* Says what operations first to last answer, runs of the same answer in one word. */
static void say_ops(pid_t pid, uint32_t first, uint32_t last)
{
	uint32_t op = first;

	while (op <= last) {
		long rc = trap_op(pid, op);
		uint32_t begin = op++;

		while (op <= last && trap_op(pid, op) == rc)
			op++;
		if (op - 1 == begin)
			say("%u:%s", begin, answer(rc));
		else
			say("%u-%u:%s", begin, op - 1, answer(rc));
	}
}

static void without_hws(void)
{
	struct peer p = peer_start_seized();

	say("%s", answer(enable(p.pid)));
	say("%s", answer(enable(NO_SUCH_PID)));
	say("%s", answer(disable(getpid())));
	say("%s", answer(get_version(0)));
	say("%s", answer(peer_call(&p, set_runtime, KFD_RUNTIME_ENABLE_MODE_ENABLE)));
}

static void no_such_pid(void)
{
	say("%s", answer(enable(0)));
	say("%s", answer(enable(NO_SUCH_PID)));
	say("%s", answer(enable(-1)));
	say("%s", answer(disable(NO_SUCH_PID)));
	say("%s", answer(trap_op(NO_SUCH_PID, NO_SUCH_OP)));
}

static void pid_of_the_past(void)
{
	struct peer p = peer_start_open();

	peer_kill(&p);
	say("%s", answer(enable(p.pid)));
}

static void zombie(void)
{
	struct peer p = peer_start_open();
	siginfo_t info;

	kill(p.pid, SIGKILL);
	waitid(P_PID, (id_t)p.pid, &info, WEXITED | WNOWAIT);
	say("%s", answer(enable(p.pid)));
	say("%s", answer(disable(p.pid)));
}

static bool is_kernel_thread(long pid)
{
	unsigned long flags = 0;
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%ld/stat", pid);
	f = fopen(path, "r");
	if (!f)
		return false;
	if (fscanf(f, "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %lu", &flags) != 1)
		flags = 0;
	fclose(f);
	return flags & PF_KTHREAD;
}

static void kernel_thread(void)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	long pid;

	while (proc && (entry = readdir(proc))) {
		pid = strtol(entry->d_name, NULL, 10);
		if (pid > 0 && is_kernel_thread(pid)) {
			say("%s", answer(enable(pid)));
			closedir(proc);
			return;
		}
	}
	cannot("no kernel thread in sight");
}

/* The caller has pid 1 in a namespace of its own. */
static long ask_from_namespace(long outside)
{
	int status;
	pid_t pid;

	if (unshare(CLONE_NEWPID))
		return -errno;
	pid = fork();
	if (!pid) {
		open_kfd(0);
		_exit((int)-(outside ? enable(outside) : enable(1)));
	}
	waitpid(pid, &status, 0);
	return -WEXITSTATUS(status);
}

static void pid_is_the_callers(void)
{
	struct peer p = peer_start();

	say("%s", answer(peer_call(&p, ask_from_namespace, 0)));
}

static void pid_outside_the_namespace(void)
{
	struct peer p = peer_start();

	say("%s", answer(peer_call(&p, ask_from_namespace, getpid())));
}

/* 3: has it opened the device. */

static void never_opened(void)
{
	struct peer p = peer_start();

	say("%s", answer(enable(p.pid)));
	say_ops(p.pid, KFD_DBG_ENABLE, NO_SUCH_OP);
}

static void never_opened_but_traced(void)
{
	struct peer p = peer_start();

	must("seize", seize(p.pid));
	say_ops(p.pid, KFD_DBG_DISABLE, NO_SUCH_OP);
	say("%s", answer(enable(p.pid)));
	say("%s", answer(count_queues(p.pid)));
}

static void untraced(void)
{
	struct peer p = peer_start_open();

	say_ops(p.pid, KFD_DBG_ENABLE, NO_SUCH_OP);
}

static void not_enabled(void)
{
	struct peer p = peer_start_seized();

	say_ops(p.pid, KFD_DBG_DISABLE, NO_SUCH_OP);
}

static void not_enabled_though_runtime_is(void)
{
	struct peer p = peer_start_seized();

	must("runtime", peer_call(&p, set_runtime, KFD_RUNTIME_ENABLE_MODE_ENABLE));
	say_ops(p.pid, KFD_DBG_DISABLE, NO_SUCH_OP);
}

static void runtime_is_not_enabled(void)
{
	struct peer p = peer_start_debugged();

	say_ops(p.pid, KFD_DBG_SEND_RUNTIME_EVENT, NO_SUCH_OP);
}

static void unknown_gpu(void)
{
	struct peer p = peer_start_ready();
	struct kfd_dbg_trap args = {.pid = (uint32_t)p.pid, .op = KFD_DBG_SET_NODE_ADDRESS_WATCH};

	say_ops(p.pid, KFD_DBG_SET_NODE_ADDRESS_WATCH, KFD_DBG_CLEAR_NODE_ADDRESS_WATCH);
	args.set_node_address_watch.gpu_id = SOME_GPU;
	say("%s", answer(trap(&args)));
}

static void unknown_operation(void)
{
	struct peer p = peer_start_ready();

	say("%s", answer(trap_op(p.pid, NO_SUCH_OP)));
	say("%s", answer(trap_op(p.pid, UINT32_MAX)));
}

/* Without arguments: what each operation does with nothing but zeros. */
static void every_operation_of_a_session(void)
{
	struct peer p = peer_start_ready();

	say_ops(p.pid, KFD_DBG_ENABLE, KFD_DBG_ENABLE);
	say_ops(p.pid, KFD_DBG_SEND_RUNTIME_EVENT, KFD_DBG_SET_EXCEPTIONS_ENABLED);
	say_ops(p.pid, KFD_DBG_SUSPEND_QUEUES, KFD_DBG_CLEAR_NODE_ADDRESS_WATCH);
	say_ops(p.pid, KFD_DBG_QUERY_DEBUG_EVENT, NO_SUCH_OP);
	say_ops(p.pid, KFD_DBG_DISABLE, KFD_DBG_DISABLE);
}

const struct kfd_case ladder_cases[] = {
	{"without_hws", "2.1.1", NEEDS_NO_HWS, "EINVAL EINVAL EINVAL 0 0", without_hws},
	{"no_such_pid", "2.1.2", 0, "ESRCH ESRCH ESRCH ESRCH ESRCH", no_such_pid},
	{"pid_of_the_past", "2.1.2", 0, "ESRCH", pid_of_the_past},
	{"zombie", "2.1.2", 0, "ESRCH ESRCH", zombie},
	{"kernel_thread", "2.1.2", 0, "ESRCH", kernel_thread},
	{"pid_is_the_callers", "2.1.2", 0, "0", pid_is_the_callers},
	{"pid_outside_the_namespace", "2.1.2", 0, "ESRCH", pid_outside_the_namespace},
	{"never_opened", "2.1.3", 0, "ESRCH 0-15:ESRCH", never_opened},
	{"never_opened_but_traced", "2.1.3", 0, "1-15:ESRCH 0 0", never_opened_but_traced},
	{"untraced", "2.1.4", NEEDS_NEW_RULE, "0-15:EPERM", untraced},
	{"untraced_old", "2.1.4", NEEDS_OLD_RULE, "0:EPERM 1:EINVAL 2-15:EPERM", untraced},
	{"not_enabled", "2.1.5", 0, "1-15:EINVAL", not_enabled},
	{"not_enabled_though_runtime_is", "2.1.5", 0, "1-15:EINVAL", not_enabled_though_runtime_is},
	{"runtime_is_not_enabled", "2.1.6", 0, "2-3:0 4-10:EPERM 11:EAGAIN 12-15:EINVAL",
	 runtime_is_not_enabled},
	{"unknown_gpu", "2.1.7", 0, "8-9:ENODEV ENODEV", unknown_gpu},
	{"unknown_operation", "2.1.8", 0, "EINVAL EINVAL", unknown_operation},
	{"every_operation_of_a_session", "2.1", 0,
	 "0:EALREADY 2-3:0 6-7:0 8-9:ENODEV 11:EAGAIN 12-15:EINVAL 1:0",
	 every_operation_of_a_session},
	{0},
};
