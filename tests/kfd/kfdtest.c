/* SPDX-License-Identifier: Apache-2.0 */
/* The sequences of ROCr's own tests of this interface (KFDDBGTest), with the answers they want. */
#include <sys/ptrace.h>

#include "queue.h"

#define ENABLED_TTMP (KFD_RUNTIME_ENABLE_MODE_ENABLE | KFD_RUNTIME_ENABLE_MODE_TTMP_SAVE)
#define HANDSHAKE    "dots=1 0 800000000000 0 0"

static long stop_for_parent(long unused)
{
	(void)unused;
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
		return -errno;
	raise(SIGSTOP);
	return 0;
}

static void say_enable(pid_t pid)
{
	struct kfd_runtime_info info = {0};
	uint32_t size = sizeof(info);
	long rc = enable_with(pid, KFD_EC_PROCESS_RUNTIME, notify_fd(), &info, &size);

	say("%s state=%u ttmp=%u", answer(rc), info.runtime_state, info.ttmp_setup);
}

/* The target is on its way into a change of its runtime: let it through. */
static void say_handshake(const struct peer *p)
{
	uint64_t raised;

	say("dots=%s", answer(wait_for_dots(10000)));
	say_answer(query_event(p->pid, KFD_EC_PROCESS_RUNTIME, &raised));
	say("%lx", raised);
	SAY_ANSWERS(send_event(p->pid, KFD_EC_PROCESS_RUNTIME), peer_answer(p));
}

static void say_end(const struct peer *p)
{
	int status = 0;

	SAY_ANSWERS(disable(p->pid), detach(p->pid));
	peer_ask(p, exit_normally, 0);
	waitpid(p->pid, &status, 0);
	say("exit=%d", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

/* The child stops before it opens the device. */
PEER_CASE(attach_to_spawned_process, plain, "7", 0,
	  "0 state=0 ttmp=0 " HANDSHAKE " " HANDSHAKE " 0 0 exit=0")
{
	int status;

	peer_ask(&p, stop_for_parent, 0);
	waitpid(p.pid, &status, 0);
	say_enable(p.pid);
	ptrace(PTRACE_CONT, p.pid, NULL, NULL);
	must("stop", peer_answer(&p));
	must("open", peer_call(&p, open_kfd, 0));
	peer_ask(&p, set_runtime, ENABLED_TTMP);
	say_handshake(&p);
	peer_ask(&p, set_runtime, 0);
	say_handshake(&p);
	say_answer(disable(p.pid));
	kill(p.pid, SIGSTOP); /* ptrace detaches from a stopped process only */
	waitpid(p.pid, &status, 0);
	say_answer(ptrace(PTRACE_DETACH, p.pid, NULL, NULL));
	peer_ask(&p, exit_normally, 0);
	waitpid(p.pid, &status, 0);
	say("exit=%d", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

PEER_CASE(attach_to_running_process, open, "7", 0, "0 state=1 ttmp=1 " HANDSHAKE " 0 0 exit=0")
{
	must("runtime", peer_call(&p, set_runtime, ENABLED_TTMP));
	must("seize", seize(p.pid));
	say_enable(p.pid);
	peer_ask(&p, set_runtime, 0);
	say_handshake(&p);
	say_end(&p);
}

static void say_snapshot(uint64_t clear, uint32_t room)
{
	struct kfd_dbg_trap args = {.pid = (uint32_t)getpid(), .op = KFD_DBG_GET_QUEUE_SNAPSHOT};
	struct kfd_queue_snapshot_entry entry = {0};
	long rc;

	args.queue_snapshot.exception_mask = clear;
	args.queue_snapshot.snapshot_buf_ptr = (uintptr_t)&entry;
	args.queue_snapshot.num_queues = room;
	args.queue_snapshot.entry_size = sizeof(entry);
	rc = trap(&args);
	say("%s,%u", answer(rc), args.queue_snapshot.num_queues);
	say("area=%d", entry.ctx_save_restore_area_size > 0);
}

KFD_CASE(suspend_queues, "7", NEEDS_GPU, "0 80000000 0,1 area=0 0,1 area=1 1 0 1 0 0 0")
{
	uint32_t id;

	must("runtime", set_runtime(ENABLED_TTMP));
	must("enable", enable(getpid()));
	id = (uint32_t)must("queue", make_queue(KFD_QUEUE_COMPUTE_AQL));
	say_suspend(getpid(), 0, 1, &id);
	say_snapshot(0, 0);
	say_snapshot(KFD_EC_QUEUE_NEW, 1);
	say_suspend(getpid(), 0, 1, &id);
	say_resume(getpid(), 1, &id);
	SAY_ANSWERS(destroy_queue(id), disable(getpid()));
}
