/* SPDX-License-Identifier: Apache-2.0 */
/* RUNTIME_ENABLE, which the target calls, and how it waits for its debugger. */
#include <signal.h>
#include <unistd.h>

#include "cases.h"

#define ENABLED  KFD_RUNTIME_ENABLE_MODE_ENABLE
#define DISABLED 0

static void on_and_off(void)
{
	say("%s", answer(set_runtime(ENABLED)));
	say("%s", answer(set_runtime(ENABLED)));
	say("%s", answer(set_runtime(DISABLED)));
	say("%s", answer(set_runtime(DISABLED)));
	say("%s", answer(set_runtime(ENABLED)));
}

/* Bit 0 decides; without it the rest does not matter. */
static void mode_without_enable(void)
{
	must("runtime", set_runtime(ENABLED));
	say("%s", answer(set_runtime(KFD_RUNTIME_ENABLE_MODE_TTMP_SAVE)));
	say("%s", answer(set_runtime(ENABLED | 0xfffffff0)));
}

static void capabilities_are_not_written(void)
{
	struct kfd_runtime_enable args = {.mode_mask = ENABLED, .capabilities_mask = 0x55};

	say("%s", answer(kfd_ioctl(KFD_IOC_RUNTIME_ENABLE, &args)));
	say("%x", args.capabilities_mask);
}

static void each_process_its_own(void)
{
	struct peer p = peer_start_open();

	say("%s", answer(set_runtime(ENABLED)));
	say("%s", answer(peer_call(&p, set_runtime, ENABLED)));
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

static void handshake(void)
{
	struct peer p = peer_start_debugged();
	uint64_t raised;

	peer_ask(&p, set_runtime, ENABLED);
	say("dots=%s", answer(wait_for_dots(10000)));
	say_blocked(&p);
	say("%s", answer(query_event(p.pid, KFD_EC_PROCESS_RUNTIME, &raised)));
	say("%lx", raised);
	say_blocked(&p);
	say("%s", answer(send_event(p.pid, KFD_EC_PROCESS_RUNTIME)));
	say("%s", answer(peer_answer(&p)));
}

static void handshake_at_the_end(void)
{
	struct peer p = peer_start_ready();
	uint64_t raised;

	peer_ask(&p, set_runtime, DISABLED);
	say("dots=%s", answer(wait_for_dots(10000)));
	say_blocked(&p);
	say("%s", answer(query_event(p.pid, KFD_EC_PROCESS_RUNTIME, &raised)));
	say("%lx", raised);
	say("%s", answer(send_event(p.pid, KFD_EC_PROCESS_RUNTIME)));
	say("%s", answer(peer_answer(&p)));
	say("%s", answer(suspend(p.pid, NULL, 0)));
}

static void disable_though_never_enabled_waits_too(void)
{
	struct peer p = peer_start_debugged();

	peer_ask(&p, set_runtime, DISABLED);
	say("dots=%s", answer(wait_for_dots(10000)));
	say_blocked(&p);
	send_event(p.pid, KFD_EC_PROCESS_RUNTIME);
	say("%s", answer(peer_answer(&p)));
}

static void twice_does_not_wait(void)
{
	struct peer p = peer_start_ready();

	say("%s", answer(peer_call(&p, set_runtime, ENABLED)));
}

static void other_events_do_not_unblock(void)
{
	struct peer p = start_waiting(ENABLED);

	say("%s", answer(send_event(p.pid, KFD_EC_QUEUE_NEW)));
	say("%s", answer(send_event(p.pid, 0)));
	say_blocked(&p);
}

/* What was sent too early is not lost: it counts. */
static void stray_events_count(void)
{
	struct peer p = peer_start_debugged();

	say("%s", answer(send_event(p.pid, KFD_EC_PROCESS_RUNTIME)));
	say("%s", answer(send_event(p.pid, KFD_EC_PROCESS_RUNTIME)));
	say("%s", answer(peer_call(&p, set_runtime, ENABLED)));
	say("%s", answer(peer_call(&p, set_runtime, DISABLED)));
	peer_ask(&p, set_runtime, ENABLED);
	say_blocked(&p);
}

static void stray_events_outlive_the_session(void)
{
	struct peer p = peer_start_debugged();

	send_event(p.pid, KFD_EC_PROCESS_RUNTIME);
	disable(p.pid);
	must("enable", enable(p.pid));
	say("%s", answer(peer_call(&p, set_runtime, ENABLED)));
}

/* The state is the new one already, and nobody holds the target's lock. */
static void operations_while_it_waits(void)
{
	struct peer p = start_waiting(ENABLED);

	say("%s", answer(count_queues(p.pid)));
	say("%s", answer(suspend(p.pid, NULL, 0)));
	disable(p.pid);
}

static void report_while_it_waits(void)
{
	struct peer p = peer_start_debugged();
	struct kfd_runtime_info info = {0};
	uint32_t size = sizeof(info);

	peer_ask(&p, set_runtime, ENABLED);
	wait_for_dots(10000);
	disable(p.pid);
	say("%s", answer(enable_with(p.pid, 0, notify_fd(), &info, &size)));
	say("state=%u", info.runtime_state);
	send_event(p.pid, KFD_EC_PROCESS_RUNTIME);
	say("%s", answer(peer_answer(&p)));
}

static void say_interrupted(const struct peer *p)
{
	kill(p->pid, SIGUSR1);
	say("%s", answer(peer_answer(p)));
}

static void signal_interrupts(void)
{
	struct peer p = start_waiting(ENABLED);

	say_blocked(&p);
	say_interrupted(&p);
}

static void retry_waits_again(void)
{
	struct peer p = start_waiting(ENABLED);
	uint64_t raised;

	say_interrupted(&p);
	query_event(p.pid, KFD_EC_PROCESS_RUNTIME, &raised);
	peer_ask(&p, set_runtime, ENABLED);
	say_blocked(&p);
	say("dots=%s", answer(dots_seen()));
	say("%s", answer(query_event(p.pid, 0, &raised)));
	send_event(p.pid, KFD_EC_PROCESS_RUNTIME);
	say("%s", answer(peer_answer(&p)));
	say("%s", answer(peer_call(&p, set_runtime, ENABLED)));
}

static void signal_interrupts_the_end(void)
{
	struct peer p = start_waiting(DISABLED);

	say_blocked(&p);
	say_interrupted(&p);
	peer_ask(&p, set_runtime, DISABLED);
	say_blocked(&p);
	send_event(p.pid, KFD_EC_PROCESS_RUNTIME);
	say("%s", answer(peer_answer(&p)));
}

/* Also one that only attaches, as our own suspend does. */
static void stop_by_a_tracer_interrupts(void)
{
	struct peer p = start_waiting(ENABLED);

	must("seize", seize(p.pid));
	say_blocked(&p);
	must("detach", detach(p.pid));
	say("%s", answer(peer_answer(&p)));
}

static void killed_while_it_waits(void)
{
	struct peer p = start_waiting(ENABLED);

	peer_kill(&p);
	say("%s", answer(count_queues(p.pid)));
}

/* It stays blocked until a signal; then it is let through, now and whenever it asks again. */
static void say_freed_by_a_signal(const struct peer *p)
{
	say_blocked(p);
	say_interrupted(p);
	say("%s", answer(peer_call(p, set_runtime, ENABLED)));
	say("%s", answer(peer_call(p, set_runtime, ENABLED)));
}

static void disable_does_not_unblock(void)
{
	struct peer p = start_waiting(ENABLED);

	say("%s", answer(disable(p.pid)));
	say_freed_by_a_signal(&p);
}

static long seize_enable_detach(long pid)
{
	long rc = seize_and_enable(pid);

	return rc < 0 ? rc : detach(pid);
}

static void death_of_the_debugger_does_not_unblock(void)
{
	struct peer p = peer_start_open(), debugger = peer_start_open();

	must("signal", peer_call(&p, catch_signal, SIGUSR1));
	must("debugger", peer_call(&debugger, seize_enable_detach, p.pid));
	peer_ask(&p, set_runtime, ENABLED);
	say_blocked(&p);
	peer_kill(&debugger);
	say_freed_by_a_signal(&p);
}

static void oneself_waits_too(void)
{
	struct peer p = peer_start_open();

	must("enable", peer_call(&p, enable, p.pid));
	must("signal", peer_call(&p, catch_signal, SIGUSR1));
	peer_ask(&p, set_runtime, ENABLED);
	say_blocked(&p);
	say_interrupted(&p);
	say("%s", answer(peer_call(&p, disable, p.pid)));
	say("%s", answer(peer_call(&p, set_runtime, ENABLED)));
}

const struct kfd_case runtime_cases[] = {
	{"on_and_off", "2.4", 0, "0 EBUSY 0 0 0", on_and_off},
	{"mode_without_enable", "2.4", 0, "0 0", mode_without_enable},
	{"capabilities_are_not_written", "1.3", 0, "0 55", capabilities_are_not_written},
	{"each_process_its_own", "2.4", 0, "0 0", each_process_its_own},
	{"handshake", "2.4", 0, "dots=1 blocked 0 800000000000 blocked 0 0", handshake},
	{"handshake_at_the_end", "2.4", 0, "dots=1 blocked 0 800000000000 0 0 EPERM",
	 handshake_at_the_end},
	{"disable_though_never_enabled_waits_too", "2.4", 0, "dots=1 blocked 0",
	 disable_though_never_enabled_waits_too},
	{"twice_does_not_wait", "2.4", 0, "EBUSY", twice_does_not_wait},
	{"other_events_do_not_unblock", "2.4", NEEDS_NEW_RULE, "0 0 blocked",
	 other_events_do_not_unblock},
	{"stray_events_count", "2.4", 0, "0 0 0 0 blocked", stray_events_count},
	{"stray_events_outlive_the_session", "2.4", 0, "0", stray_events_outlive_the_session},
	{"operations_while_it_waits", "2.4", NEEDS_NEW_RULE, "0 0", operations_while_it_waits},
	{"report_while_it_waits", "2.4", 0, "0 state=1 0", report_while_it_waits},
	{"signal_interrupts", "2.4", NEEDS_NEW_RULE, "blocked EINTR", signal_interrupts},
	{"retry_waits_again", "2.4", NEEDS_NEW_RULE, "EINTR blocked dots=0 EAGAIN 0 EBUSY",
	 retry_waits_again},
	{"signal_interrupts_the_end", "2.4", NEEDS_NEW_RULE, "blocked EINTR blocked 0",
	 signal_interrupts_the_end},
	{"stop_by_a_tracer_interrupts", "2.4", NEEDS_NEW_RULE, "blocked EINTR",
	 stop_by_a_tracer_interrupts},
	{"killed_while_it_waits", "2.4", NEEDS_NEW_RULE, "ESRCH", killed_while_it_waits},
	{"disable_does_not_unblock", "2.4", NEEDS_NEW_RULE, "0 blocked EINTR 0 0",
	 disable_does_not_unblock},
	{"death_of_the_debugger_does_not_unblock", "2.4", 0, "blocked blocked EINTR 0 0",
	 death_of_the_debugger_does_not_unblock},
	{"oneself_waits_too", "2.4", 0, "blocked EINTR 0 0", oneself_waits_too},
	{0},
};
