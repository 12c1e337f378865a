/* SPDX-License-Identifier: Apache-2.0 */
/* Debugger and target of different users: only the ptrace link asks who they are. */
#include <unistd.h>

#include "cases.h"

static struct peer start_nobody(void)
{
	struct peer p = peer_start();

	must("setuid", peer_call(&p, become_user, NOBODY));
	must("open", peer_call(&p, open_kfd, 0));
	return p;
}

static void both_nobody(void)
{
	struct peer p = start_nobody(), debugger = start_nobody();

	say("%s", answer(peer_call(&debugger, enable, p.pid)));
	say("%s", answer(peer_call(&debugger, seize_and_enable, p.pid)));
	say("%s", answer(peer_call(&debugger, count_queues, p.pid)));
	say("%s", answer(peer_call(&debugger, disable, p.pid)));
}

static void nobody_wants_roots(void)
{
	struct peer p = peer_start_open(), debugger = start_nobody();

	say("%s", answer(peer_call(&debugger, seize, p.pid)));
	say("%s", answer(peer_call(&debugger, enable, p.pid)));
}

static void root_wants_nobodys(void)
{
	struct peer p = start_nobody();

	say("%s", answer(enable(p.pid)));
	say("%s", answer(seize(p.pid)));
	say("%s", answer(enable(p.pid)));
}

static void debugger_becomes_nobody(void)
{
	struct peer p = peer_start_open(), debugger = peer_start_open();

	must("enable", peer_call(&debugger, seize_and_enable, p.pid));
	must("detach", peer_call(&debugger, detach, p.pid));
	must("setuid", peer_call(&debugger, become_user, NOBODY));
	say("%s", answer(peer_call(&debugger, count_queues, p.pid)));
	say("%s", answer(peer_call(&debugger, disable, p.pid)));
	say("%s", answer(peer_call(&debugger, seize, p.pid)));
}

static void target_becomes_nobody(void)
{
	struct peer p = peer_start_debugged();

	must("setuid", peer_call(&p, become_user, NOBODY));
	say("%s", answer(count_queues(p.pid)));
	say("%s", answer(peer_call(&p, get_version, 0)));
	say("%s", answer(disable(p.pid)));
}

static void stranger_is_nobody(void)
{
	struct peer p = peer_start_debugged(), other = start_nobody();

	say("%s", answer(peer_call(&other, count_queues, p.pid)));
	say("%s", answer(peer_call(&other, disable, p.pid)));
}

static long suspend_self(long unused)
{
	long rc;

	(void)unused;
	rc = set_runtime(KFD_RUNTIME_ENABLE_MODE_ENABLE);
	if (rc)
		return rc;
	rc = enable(getpid());
	return rc ? rc : suspend(getpid(), NULL, 0);
}

static void nobody_itself(void)
{
	struct peer p = start_nobody();

	say("%s", answer(peer_call(&p, suspend_self, 0)));
}

const struct kfd_case user_cases[] = {
	{"both_nobody", "2.2", 0, "EPERM 0 0 0", both_nobody},
	{"nobody_wants_roots", "2.2", 0, "EPERM EPERM", nobody_wants_roots},
	{"root_wants_nobodys", "2.2", 0, "EPERM 0 0", root_wants_nobodys},
	{"debugger_becomes_nobody", "2.2", NEEDS_NEW_RULE, "0 0 EPERM", debugger_becomes_nobody},
	{"target_becomes_nobody", "2.2", 0, "0 0 0", target_becomes_nobody},
	{"stranger_is_nobody", "2.2", NEEDS_NEW_RULE, "EPERM EPERM", stranger_is_nobody},
	{"stranger_is_nobody_old", "2.2", NEEDS_OLD_RULE, "EPERM 0", stranger_is_nobody},
	{"nobody_itself", "2.1", 0, "0", nobody_itself},
	{0},
};
