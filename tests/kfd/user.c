/* SPDX-License-Identifier: Apache-2.0 */
/* Debugger and target of different users: only ptrace checks users. */
#include "cases.h"

static struct peer start_nobody(void)
{
	struct peer p = peer_start_plain();

	must("setuid", peer_call(&p, become_user, NOBODY));
	must("open", peer_call(&p, open_kfd, 0));
	return p;
}

KFD_CASE(both_nobody, "2.2", 0, "EPERM 0 0 0")
{
	struct peer p = start_nobody(), debugger = start_nobody();

	say_answer(peer_call(&debugger, enable, p.pid));
	say_answer(peer_call(&debugger, seize_and_enable, p.pid));
	say_answer(peer_call(&debugger, count_queues, p.pid));
	say_answer(peer_call(&debugger, disable, p.pid));
}

PEER_CASE(nobody_wants_roots, open, "2.2", 0, "EPERM EPERM")
{
	struct peer debugger = start_nobody();

	SAY_ANSWERS(peer_call(&debugger, seize, p.pid), peer_call(&debugger, enable, p.pid));
}

KFD_CASE(root_wants_nobodys, "2.2", 0, "EPERM 0 0")
{
	struct peer p = start_nobody();

	SAY_ANSWERS(enable(p.pid), seize(p.pid), enable(p.pid));
}

PEER_CASE(debugger_becomes_nobody, open, "2.2", NEEDS_NEW_RULE, "0 0 EPERM")
{
	struct peer debugger = peer_start_open();

	must("enable", peer_call(&debugger, seize_and_enable, p.pid));
	must("detach", peer_call(&debugger, detach, p.pid));
	must("setuid", peer_call(&debugger, become_user, NOBODY));
	say_answer(peer_call(&debugger, count_queues, p.pid));
	say_answer(peer_call(&debugger, disable, p.pid));
	say_answer(peer_call(&debugger, seize, p.pid));
}

PEER_CASE(target_becomes_nobody, debugged, "2.2", 0, "0 0 0")
{
	must("setuid", peer_call(&p, become_user, NOBODY));
	SAY_ANSWERS(count_queues(p.pid), peer_call(&p, get_version, 0), disable(p.pid));
}

PEER_CASE(stranger_is_nobody, debugged, "2.2", NEEDS_NEW_RULE, "EPERM EPERM")
{
	struct peer other = start_nobody();

	SAY_ANSWERS(peer_call(&other, count_queues, p.pid), peer_call(&other, disable, p.pid));
}

KFD_CASE_AGAIN(stranger_is_nobody_old, stranger_is_nobody, debugged, "2.2", NEEDS_OLD_RULE,
	       "EPERM 0")

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

KFD_CASE(nobody_itself, "2.1", 0, "0")
{
	struct peer p = start_nobody();

	say_answer(peer_call(&p, suspend_self, 0));
}
