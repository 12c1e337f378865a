/* SPDX-License-Identifier: Apache-2.0 */
/* RUNTIME_ENABLE, which the target calls, and how it waits for its debugger. */
#include "cases.h"

#define ENABLED  KFD_RUNTIME_ENABLE_MODE_ENABLE
#define DISABLED 0

KFD_CASE(on_and_off, "2.4", 0, "0 EBUSY 0 0 0")
{
	say_answer(set_runtime(ENABLED));
	say_answer(set_runtime(ENABLED));
	say_answer(set_runtime(DISABLED));
	say_answer(set_runtime(DISABLED));
	say_answer(set_runtime(ENABLED));
}

/* Bit 0 decides; without it the rest does not matter. */
KFD_CASE(mode_without_enable, "2.4", 0, "0 0")
{
	must("runtime", set_runtime(ENABLED));
	say_answer(set_runtime(KFD_RUNTIME_ENABLE_MODE_TTMP_SAVE));
	say_answer(set_runtime(ENABLED | 0xfffffff0));
}

KFD_CASE(capabilities_are_not_written, "1.3", 0, "0 55")
{
	struct kfd_runtime_enable args = {.mode_mask = ENABLED, .capabilities_mask = 0x55};

	say_answer(kfd_ioctl(KFD_IOC_RUNTIME_ENABLE, &args));
	say("%x", args.capabilities_mask);
}

PEER_CASE(each_process_its_own, open, "2.4", 0, "0 0")
{
	SAY_ANSWERS(set_runtime(ENABLED), peer_call(&p, set_runtime, ENABLED));
}

/* The target is debugged, free of its tracer, so that signals reach it, and waits. */
static struct peer start_waiting(long mode)
{
	struct peer p = peer_start_debugged();

	must("detach", detach(p.pid));
	must("signal", peer_call(&p, catch_signal, SIGUSR1));
	if (mode == DISABLED) {
		must("send", send_event(p.pid, KFD_EC_PROCESS_RUNTIME));
		must("runtime", peer_call(&p, set_runtime, ENABLED));
		dots_seen();
	}
	peer_ask(&p, set_runtime, mode);
	wait_for_dots(10000);
	return p;
}

static void say_blocked(const struct peer *p)
{
	say("%s", peer_is_blocked(p) ? "blocked" : "not");
}

PEER_CASE(handshake, debugged, "2.4", 0, "dots=1 blocked 0 800000000000 blocked 0 0")
{
	uint64_t raised;

	peer_ask(&p, set_runtime, ENABLED);
	say("dots=%s", answer(wait_for_dots(10000)));
	say_blocked(&p);
	say_answer(query_event(p.pid, KFD_EC_PROCESS_RUNTIME, &raised));
	say("%lx", raised);
	say_blocked(&p);
	SAY_ANSWERS(send_event(p.pid, KFD_EC_PROCESS_RUNTIME), peer_answer(&p));
}

PEER_CASE(handshake_at_the_end, ready, "2.4", 0, "dots=1 blocked 0 800000000000 0 0 EPERM")
{
	uint64_t raised;

	peer_ask(&p, set_runtime, DISABLED);
	say("dots=%s", answer(wait_for_dots(10000)));
	say_blocked(&p);
	say_answer(query_event(p.pid, KFD_EC_PROCESS_RUNTIME, &raised));
	say("%lx", raised);
	say_answer(send_event(p.pid, KFD_EC_PROCESS_RUNTIME));
	say_answer(peer_answer(&p));
	say_answer(suspend(p.pid, NULL, 0));
}

PEER_CASE(disable_though_never_enabled_waits_too, debugged, "2.4", 0, "dots=1 blocked 0")
{
	peer_ask(&p, set_runtime, DISABLED);
	say("dots=%s", answer(wait_for_dots(10000)));
	say_blocked(&p);
	send_event(p.pid, KFD_EC_PROCESS_RUNTIME);
	say_answer(peer_answer(&p));
}

PEER_CASE(twice_does_not_wait, ready, "2.4", 0, "EBUSY")
{
	say_answer(peer_call(&p, set_runtime, ENABLED));
}

KFD_CASE(other_events_do_not_unblock, "2.4", NEEDS_NEW_RULE, "0 0 blocked")
{
	struct peer p = start_waiting(ENABLED);

	SAY_ANSWERS(send_event(p.pid, KFD_EC_QUEUE_NEW), send_event(p.pid, 0));
	say_blocked(&p);
}

/* What was sent too early is not lost: it counts. */
PEER_CASE(stray_events_count, debugged, "2.4", 0, "0 0 0 0 blocked")
{
	say_answer(send_event(p.pid, KFD_EC_PROCESS_RUNTIME));
	say_answer(send_event(p.pid, KFD_EC_PROCESS_RUNTIME));
	say_answer(peer_call(&p, set_runtime, ENABLED));
	say_answer(peer_call(&p, set_runtime, DISABLED));
	peer_ask(&p, set_runtime, ENABLED);
	say_blocked(&p);
}

PEER_CASE(stray_events_outlive_the_session, debugged, "2.4", 0, "0")
{
	send_event(p.pid, KFD_EC_PROCESS_RUNTIME);
	disable(p.pid);
	must("enable", enable(p.pid));
	say_answer(peer_call(&p, set_runtime, ENABLED));
}

/* The state has changed already, and the target's lock is free. */
KFD_CASE(operations_while_it_waits, "2.4", NEEDS_NEW_RULE, "0 0")
{
	struct peer p = start_waiting(ENABLED);

	SAY_ANSWERS(count_queues(p.pid), suspend(p.pid, NULL, 0));
	disable(p.pid);
}

PEER_CASE(report_while_it_waits, debugged, "2.4", 0, "0 state=1 0")
{
	struct kfd_runtime_info info = {0};
	uint32_t size = sizeof(info);

	peer_ask(&p, set_runtime, ENABLED);
	wait_for_dots(10000);
	disable(p.pid);
	say_answer(enable_with(p.pid, 0, notify_fd(), &info, &size));
	say("state=%u", info.runtime_state);
	send_event(p.pid, KFD_EC_PROCESS_RUNTIME);
	say_answer(peer_answer(&p));
}

static void say_interrupted(const struct peer *p)
{
	kill(p->pid, SIGUSR1);
	say_answer(peer_answer(p));
}

KFD_CASE(signal_interrupts, "2.4", NEEDS_NEW_RULE, "blocked EINTR")
{
	struct peer p = start_waiting(ENABLED);

	say_blocked(&p);
	say_interrupted(&p);
}

KFD_CASE(retry_waits_again, "2.4", NEEDS_NEW_RULE, "EINTR blocked dots=0 EAGAIN 0 EBUSY")
{
	struct peer p = start_waiting(ENABLED);
	uint64_t raised;

	say_interrupted(&p);
	query_event(p.pid, KFD_EC_PROCESS_RUNTIME, &raised);
	peer_ask(&p, set_runtime, ENABLED);
	say_blocked(&p);
	say("dots=%s", answer(dots_seen()));
	say_answer(query_event(p.pid, 0, &raised));
	send_event(p.pid, KFD_EC_PROCESS_RUNTIME);
	SAY_ANSWERS(peer_answer(&p), peer_call(&p, set_runtime, ENABLED));
}

KFD_CASE(signal_interrupts_the_end, "2.4", NEEDS_NEW_RULE, "blocked EINTR blocked 0")
{
	struct peer p = start_waiting(DISABLED);

	say_blocked(&p);
	say_interrupted(&p);
	peer_ask(&p, set_runtime, DISABLED);
	say_blocked(&p);
	send_event(p.pid, KFD_EC_PROCESS_RUNTIME);
	say_answer(peer_answer(&p));
}

/* Also one that only attaches, as our own suspend does. */
KFD_CASE(stop_by_a_tracer_interrupts, "2.4", NEEDS_NEW_RULE, "blocked EINTR")
{
	struct peer p = start_waiting(ENABLED);

	must("seize", seize(p.pid));
	say_blocked(&p);
	must("detach", detach(p.pid));
	say_answer(peer_answer(&p));
}

KFD_CASE(killed_while_it_waits, "2.4", NEEDS_NEW_RULE, "ESRCH")
{
	struct peer p = start_waiting(ENABLED);

	peer_kill(&p);
	say_answer(count_queues(p.pid));
}

/* It stays blocked until a signal; then it is let through, now and whenever it asks again. */
static void say_freed_by_a_signal(const struct peer *p)
{
	say_blocked(p);
	say_interrupted(p);
	SAY_ANSWERS(peer_call(p, set_runtime, ENABLED), peer_call(p, set_runtime, ENABLED));
}

KFD_CASE(disable_does_not_unblock, "2.4", NEEDS_NEW_RULE, "0 blocked EINTR 0 0")
{
	struct peer p = start_waiting(ENABLED);

	say_answer(disable(p.pid));
	say_freed_by_a_signal(&p);
}

static long seize_enable_detach(long pid)
{
	long rc = seize_and_enable(pid);

	return rc < 0 ? rc : detach(pid);
}

PEER_CASE(death_of_the_debugger_does_not_unblock, open, "2.4", 0, "blocked blocked EINTR 0 0")
{
	struct peer debugger = peer_start_open();

	must("signal", peer_call(&p, catch_signal, SIGUSR1));
	must("debugger", peer_call(&debugger, seize_enable_detach, p.pid));
	peer_ask(&p, set_runtime, ENABLED);
	say_blocked(&p);
	peer_kill(&debugger);
	say_freed_by_a_signal(&p);
}

PEER_CASE(oneself_waits_too, open, "2.4", 0, "blocked EINTR 0 0")
{
	must("enable", peer_call(&p, enable, p.pid));
	must("signal", peer_call(&p, catch_signal, SIGUSR1));
	peer_ask(&p, set_runtime, ENABLED);
	say_blocked(&p);
	say_interrupted(&p);
	SAY_ANSWERS(peer_call(&p, disable, p.pid), peer_call(&p, set_runtime, ENABLED));
}
