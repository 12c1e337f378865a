/* SPDX-License-Identifier: Apache-2.0 */
/* The order in which DBG_TRAP checks: the first that fails decides the answer. */
#include <sched.h>
#include <dirent.h>

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

PEER_CASE(without_hws, seized, "2.1.1", NEEDS_NO_HWS, "EINVAL EINVAL EINVAL 0 0")
{
	say_answer(enable(p.pid));
	say_answer(enable(NO_SUCH_PID));
	say_answer(disable(getpid()));
	say_answer(get_version(0));
	say_answer(peer_call(&p, set_runtime, KFD_RUNTIME_ENABLE_MODE_ENABLE));
}

KFD_CASE(no_such_pid, "2.1.2", 0, "ESRCH ESRCH ESRCH ESRCH ESRCH")
{
	say_answer(enable(0));
	say_answer(enable(NO_SUCH_PID));
	say_answer(enable(-1));
	say_answer(disable(NO_SUCH_PID));
	say_answer(trap_op(NO_SUCH_PID, NO_SUCH_OP));
}

PEER_CASE(pid_of_the_past, open, "2.1.2", 0, "ESRCH")
{
	peer_kill(&p);
	say_answer(enable(p.pid));
}

PEER_CASE(zombie, open, "2.1.2", 0, "ESRCH ESRCH")
{
	siginfo_t info;

	kill(p.pid, SIGKILL);
	waitid(P_PID, (id_t)p.pid, &info, WEXITED | WNOWAIT);
	SAY_ANSWERS(enable(p.pid), disable(p.pid));
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

KFD_CASE(kernel_thread, "2.1.2", 0, "ESRCH")
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	long pid;

	while (proc && (entry = readdir(proc))) {
		pid = strtol(entry->d_name, NULL, 10);
		if (pid > 0 && is_kernel_thread(pid)) {
			say_answer(enable(pid));
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

PEER_CASE(pid_is_the_callers, plain, "2.1.2", 0, "0")
{
	say_answer(peer_call(&p, ask_from_namespace, 0));
}

PEER_CASE(pid_outside_the_namespace, plain, "2.1.2", 0, "ESRCH")
{
	say_answer(peer_call(&p, ask_from_namespace, getpid()));
}

/* 3: has it opened the device. */

PEER_CASE(never_opened, plain, "2.1.3", 0, "ESRCH 0-15:ESRCH")
{
	say_answer(enable(p.pid));
	say_ops(p.pid, KFD_DBG_ENABLE, NO_SUCH_OP);
}

PEER_CASE(never_opened_but_traced, plain, "2.1.3", 0, "1-15:ESRCH 0 0")
{
	must("seize", seize(p.pid));
	say_ops(p.pid, KFD_DBG_DISABLE, NO_SUCH_OP);
	SAY_ANSWERS(enable(p.pid), count_queues(p.pid));
}

PEER_CASE(untraced, open, "2.1.4", NEEDS_NEW_RULE, "0-15:EPERM")
{
	say_ops(p.pid, KFD_DBG_ENABLE, NO_SUCH_OP);
}

KFD_CASE_AGAIN(untraced_old, untraced, open, "2.1.4", NEEDS_OLD_RULE, "0:EPERM 1:EINVAL 2-15:EPERM")

PEER_CASE(not_enabled, seized, "2.1.5", 0, "1-15:EINVAL")
{
	say_ops(p.pid, KFD_DBG_DISABLE, NO_SUCH_OP);
}

PEER_CASE(not_enabled_though_runtime_is, seized, "2.1.5", 0, "1-15:EINVAL")
{
	must("runtime", peer_call(&p, set_runtime, KFD_RUNTIME_ENABLE_MODE_ENABLE));
	say_ops(p.pid, KFD_DBG_DISABLE, NO_SUCH_OP);
}

PEER_CASE(runtime_is_not_enabled, debugged, "2.1.6", 0, "2-3:0 4-10:EPERM 11:EAGAIN 12-15:EINVAL")
{
	say_ops(p.pid, KFD_DBG_SEND_RUNTIME_EVENT, NO_SUCH_OP);
}

PEER_CASE(unknown_gpu, ready, "2.1.7", 0, "8-9:ENODEV ENODEV")
{
	struct kfd_dbg_trap args = {.pid = (uint32_t)p.pid, .op = KFD_DBG_SET_NODE_ADDRESS_WATCH};

	say_ops(p.pid, KFD_DBG_SET_NODE_ADDRESS_WATCH, KFD_DBG_CLEAR_NODE_ADDRESS_WATCH);
	args.set_node_address_watch.gpu_id = SOME_GPU;
	say_answer(trap(&args));
}

PEER_CASE(unknown_operation, ready, "2.1.8", 0, "EINVAL EINVAL")
{
	SAY_ANSWERS(trap_op(p.pid, NO_SUCH_OP), trap_op(p.pid, UINT32_MAX));
}

/* Without arguments: what each operation does with nothing but zeros. */
PEER_CASE(every_operation_of_a_session, ready, "2.1", 0,
	  "0:EALREADY 2-3:0 6-7:0 8-9:ENODEV 11:EAGAIN 12-15:EINVAL 1:0")
{
	say_ops(p.pid, KFD_DBG_ENABLE, KFD_DBG_ENABLE);
	say_ops(p.pid, KFD_DBG_SEND_RUNTIME_EVENT, KFD_DBG_SET_EXCEPTIONS_ENABLED);
	say_ops(p.pid, KFD_DBG_SUSPEND_QUEUES, KFD_DBG_CLEAR_NODE_ADDRESS_WATCH);
	say_ops(p.pid, KFD_DBG_QUERY_DEBUG_EVENT, NO_SUCH_OP);
	say_ops(p.pid, KFD_DBG_DISABLE, KFD_DBG_DISABLE);
}
