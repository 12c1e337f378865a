/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments of SUSPEND_QUEUES and RESUME_QUEUES, where there are no queues. */
#include <string.h>
#include <unistd.h>

#include "cases.h"

static void say_ids(const uint32_t *ids, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		say("%x", ids[i]);
}

static void suspend_no_array(void)
{
	struct peer p = peer_start_ready();

	say("%s", answer(suspend(p.pid, NULL, 0)));
	say("%s", answer(suspend(p.pid, NULL, 1)));
	say("%s", answer(suspend(p.pid, NULL, KFD_DBG_QUEUES_MAX + 1)));
}

static void suspend_none(void)
{
	struct peer p = peer_start_ready();
	uint32_t ids[1] = {3};

	say("%s", answer(suspend(p.pid, ids, 0)));
	say_ids(ids, 1);
	say("%s", answer(suspend(p.pid, bad_pointer(), 0)));
}

static void suspend_unknown(void)
{
	struct peer p = peer_start_ready();
	uint32_t ids[] = {0, 5, 0x3fffffff};

	say("%s", answer(suspend(p.pid, ids, 3)));
	say_ids(ids, 3);
}

static void suspend_keeps_stale_bits(void)
{
	struct peer p = peer_start_ready();
	uint32_t ids[] = {KFD_DBG_QUEUE_INVALID | 1, KFD_DBG_QUEUE_ERROR | 1};

	say("%s", answer(suspend(p.pid, ids, 2)));
	say_ids(ids, 2);
}

static void say_many(long (*act)(pid_t, uint32_t *, uint32_t), pid_t pid, uint32_t n)
{
	static uint32_t ids[KFD_DBG_QUEUES_MAX + 1];
	unsigned invalid = 0;

	memset(ids, 0, sizeof(ids));
	say("%s", answer(act(pid, ids, n)));
	for (unsigned i = 0; i <= KFD_DBG_QUEUES_MAX; i++)
		invalid += ids[i] == KFD_DBG_QUEUE_INVALID;
	say("invalid=%u", invalid);
}

static void suspend_many(void)
{
	struct peer p = peer_start_ready();

	say_many(suspend, p.pid, KFD_DBG_QUEUES_MAX);
	say_many(suspend, p.pid, KFD_DBG_QUEUES_MAX + 1);
	say_many(suspend, p.pid, UINT32_MAX);
}

static void suspend_bad_array(void)
{
	struct peer p = peer_start_ready();

	say("%s", answer(suspend(p.pid, bad_pointer(), 1)));
	say("%s", answer(suspend(p.pid, bad_pointer(), KFD_DBG_QUEUES_MAX + 1)));
}

/* That the bits could not be written is only a line in the kernel's log. */
static void suspend_read_only_array(void)
{
	struct peer p = peer_start_ready();
	uint32_t id = 4, *ids = read_only_copy(&id, sizeof(id));

	say("%s", answer(suspend(p.pid, ids, 1)));
	say_ids(ids, 1);
}

static void suspend_any_grace(void)
{
	static const uint32_t grace[] = {0, 1, 255, 256, 512, 0xfffffffe};
	struct peer p = peer_start_ready();

	for (unsigned i = 0; i < sizeof(grace) / sizeof(grace[0]); i++) {
		struct kfd_dbg_trap args = {.pid = (uint32_t)p.pid, .op = KFD_DBG_SUSPEND_QUEUES};

		args.suspend_queues.grace_period = grace[i];
		say("%s", answer(trap(&args)));
	}
}

static void suspend_oneself(void)
{
	uint32_t ids[] = {0};

	must("runtime", set_runtime(KFD_RUNTIME_ENABLE_MODE_ENABLE));
	must("enable", enable(getpid()));
	say("%s", answer(suspend(getpid(), ids, 1)));
	say_ids(ids, 1);
	say("%s", answer(resume(getpid(), NULL, 0)));
}

static void suspend_without_runtime(void)
{
	struct peer p = peer_start_debugged();
	uint32_t ids[] = {0};

	say("%s", answer(suspend(p.pid, ids, 1)));
	say_ids(ids, 1);
	say("%s", answer(suspend(p.pid, NULL, 1)));
	say("%s", answer(resume(p.pid, ids, 1)));
	say("%s", answer(resume(p.pid, NULL, 0)));
}

static void suspend_without_session(void)
{
	struct peer p = peer_start_seized();
	uint32_t ids[] = {0};

	must("runtime", peer_call(&p, set_runtime, KFD_RUNTIME_ENABLE_MODE_ENABLE));
	say("%s", answer(suspend(p.pid, ids, 1)));
	say("%s", answer(resume(p.pid, NULL, 0)));
}

static void resume_no_array(void)
{
	struct peer p = peer_start_ready();

	say("%s", answer(resume(p.pid, NULL, 0)));
	say("%s", answer(resume(p.pid, NULL, 5)));
	say("%s", answer(resume(p.pid, NULL, KFD_DBG_QUEUES_MAX + 1)));
}

static void resume_unknown(void)
{
	struct peer p = peer_start_ready();
	uint32_t ids[] = {0, KFD_DBG_QUEUE_INVALID | 5, KFD_DBG_QUEUE_ERROR | 6};

	say("%s", answer(resume(p.pid, ids, 3)));
	say_ids(ids, 3);
	say("%s", answer(resume(p.pid, ids, 0)));
}

static void resume_many(void)
{
	struct peer p = peer_start_ready();

	say_many(resume, p.pid, KFD_DBG_QUEUES_MAX);
	say_many(resume, p.pid, KFD_DBG_QUEUES_MAX + 1);
}

static void resume_bad_array(void)
{
	struct peer p = peer_start_ready();
	uint32_t id = 4;

	say("%s", answer(resume(p.pid, bad_pointer(), 1)));
	say("%s", answer(resume(p.pid, bad_pointer(), 0)));
	say("%s", answer(resume(p.pid, bad_pointer(), KFD_DBG_QUEUES_MAX + 1)));
	say("%s", answer(resume(p.pid, read_only_copy(&id, sizeof(id)), 1)));
}

const struct kfd_case suspend_cases[] = {
	{"suspend_no_array", "3.1", 0, "0 EINVAL EINVAL", suspend_no_array},
	{"suspend_none", "3.1", 0, "0 3 0", suspend_none},
	{"suspend_unknown", "3.2", 0, "0 80000000 80000005 bfffffff", suspend_unknown},
	{"suspend_keeps_stale_bits", "3.2", 0, "0 80000001 c0000001", suspend_keeps_stale_bits},
	{"suspend_many", "3.1", 0, "0 invalid=1024 EINVAL invalid=0 EINVAL invalid=0",
	 suspend_many},
	{"suspend_bad_array", "3.1", 0, "EFAULT EINVAL", suspend_bad_array},
	{"suspend_read_only_array", "3.1", 0, "0 4", suspend_read_only_array},
	{"suspend_any_grace", "3.4", 0, "0 0 0 0 0 0", suspend_any_grace},
	{"suspend_oneself", "2.1", 0, "0 80000000 0", suspend_oneself},
	{"suspend_without_runtime", "2.1.6", 0, "EPERM 0 EPERM EPERM EPERM",
	 suspend_without_runtime},
	{"suspend_without_session", "2.1.5", 0, "EINVAL EINVAL", suspend_without_session},
	{"resume_no_array", "3.1", 0, "0 0 0", resume_no_array},
	{"resume_unknown", "3.3", 0, "0 80000000 80000005 c0000006 0", resume_unknown},
	{"resume_many", "3.1", 0, "0 invalid=1024 EINVAL invalid=0", resume_many},
	{"resume_bad_array", "3.1", 0, "EFAULT 0 EINVAL 0", resume_bad_array},
	{0},
};
