/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments of SUSPEND_QUEUES and RESUME_QUEUES, where there are no queues. */
#include "cases.h"

static void say_ids(const uint32_t *ids, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		say("%x", ids[i]);
}

PEER_CASE(suspend_no_array, ready, "3.1", 0, "0 EINVAL EINVAL")
{
	say_answer(suspend(p.pid, NULL, 0));
	say_answer(suspend(p.pid, NULL, 1));
	say_answer(suspend(p.pid, NULL, KFD_DBG_QUEUES_MAX + 1));
}

PEER_CASE(suspend_none, ready, "3.1", 0, "0 3 0")
{
	uint32_t ids[1] = {3};

	say_answer(suspend(p.pid, ids, 0));
	say_ids(ids, 1);
	say_answer(suspend(p.pid, bad_pointer(), 0));
}

PEER_CASE(suspend_unknown, ready, "3.2", 0, "0 80000000 80000005 bfffffff")
{
	uint32_t ids[] = {0, 5, 0x3fffffff};

	say_answer(suspend(p.pid, ids, 3));
	say_ids(ids, 3);
}

PEER_CASE(suspend_keeps_stale_bits, ready, "3.2", 0, "0 80000001 c0000001")
{
	uint32_t ids[] = {KFD_DBG_QUEUE_INVALID | 1, KFD_DBG_QUEUE_ERROR | 1};

	say_answer(suspend(p.pid, ids, 2));
	say_ids(ids, 2);
}

static void say_many(long (*act)(pid_t, uint32_t *, uint32_t), pid_t pid, uint32_t n)
{
	static uint32_t ids[KFD_DBG_QUEUES_MAX + 1];
	unsigned invalid = 0;

	memset(ids, 0, sizeof(ids));
	say_answer(act(pid, ids, n));
	for (unsigned i = 0; i <= KFD_DBG_QUEUES_MAX; i++)
		invalid += ids[i] == KFD_DBG_QUEUE_INVALID;
	say("invalid=%u", invalid);
}

PEER_CASE(suspend_many, ready, "3.1", 0, "0 invalid=1024 EINVAL invalid=0 EINVAL invalid=0")
{
	say_many(suspend, p.pid, KFD_DBG_QUEUES_MAX);
	say_many(suspend, p.pid, KFD_DBG_QUEUES_MAX + 1);
	say_many(suspend, p.pid, UINT32_MAX);
}

PEER_CASE(suspend_bad_array, ready, "3.1", 0, "EFAULT EINVAL")
{
	say_answer(suspend(p.pid, bad_pointer(), 1));
	say_answer(suspend(p.pid, bad_pointer(), KFD_DBG_QUEUES_MAX + 1));
}

/* That the bits could not be written is only a line in the kernel's log. */
PEER_CASE(suspend_read_only_array, ready, "3.1", 0, "0 4")
{
	uint32_t id = 4, *ids = read_only_copy(&id, sizeof(id));

	say_answer(suspend(p.pid, ids, 1));
	say_ids(ids, 1);
}

KFD_CASE(suspend_any_grace, "3.4", 0, "0 0 0 0 0 0")
{
	static const uint32_t grace[] = {0, 1, 255, 256, 512, 0xfffffffe};
	struct peer p = peer_start_ready();

	for (unsigned i = 0; i < sizeof(grace) / sizeof(grace[0]); i++) {
		struct kfd_dbg_trap args = {.pid = (uint32_t)p.pid, .op = KFD_DBG_SUSPEND_QUEUES};

		args.suspend_queues.grace_period = grace[i];
		say_answer(trap(&args));
	}
}

KFD_CASE(suspend_oneself, "2.1", 0, "0 80000000 0")
{
	uint32_t ids[] = {0};

	must("runtime", set_runtime(KFD_RUNTIME_ENABLE_MODE_ENABLE));
	must("enable", enable(getpid()));
	say_answer(suspend(getpid(), ids, 1));
	say_ids(ids, 1);
	say_answer(resume(getpid(), NULL, 0));
}

PEER_CASE(suspend_without_runtime, debugged, "2.1.6", 0, "EPERM 0 EPERM EPERM EPERM")
{
	uint32_t ids[] = {0};

	say_answer(suspend(p.pid, ids, 1));
	say_ids(ids, 1);
	SAY_ANSWERS(suspend(p.pid, NULL, 1), resume(p.pid, ids, 1), resume(p.pid, NULL, 0));
}

PEER_CASE(suspend_without_session, seized, "2.1.5", 0, "EINVAL EINVAL")
{
	uint32_t ids[] = {0};

	must("runtime", peer_call(&p, set_runtime, KFD_RUNTIME_ENABLE_MODE_ENABLE));
	SAY_ANSWERS(suspend(p.pid, ids, 1), resume(p.pid, NULL, 0));
}

PEER_CASE(resume_no_array, ready, "3.1", 0, "0 0 0")
{
	say_answer(resume(p.pid, NULL, 0));
	say_answer(resume(p.pid, NULL, 5));
	say_answer(resume(p.pid, NULL, KFD_DBG_QUEUES_MAX + 1));
}

PEER_CASE(resume_unknown, ready, "3.3", 0, "0 80000000 80000005 c0000006 0")
{
	uint32_t ids[] = {0, KFD_DBG_QUEUE_INVALID | 5, KFD_DBG_QUEUE_ERROR | 6};

	say_answer(resume(p.pid, ids, 3));
	say_ids(ids, 3);
	say_answer(resume(p.pid, ids, 0));
}

PEER_CASE(resume_many, ready, "3.1", 0, "0 invalid=1024 EINVAL invalid=0")
{
	say_many(resume, p.pid, KFD_DBG_QUEUES_MAX);
	say_many(resume, p.pid, KFD_DBG_QUEUES_MAX + 1);
}

PEER_CASE(resume_bad_array, ready, "3.1", 0, "EFAULT 0 EINVAL 0")
{
	uint32_t id = 4;

	say_answer(resume(p.pid, bad_pointer(), 1));
	say_answer(resume(p.pid, bad_pointer(), 0));
	say_answer(resume(p.pid, bad_pointer(), KFD_DBG_QUEUES_MAX + 1));
	say_answer(resume(p.pid, read_only_copy(&id, sizeof(id)), 1));
}
