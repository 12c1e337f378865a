/* SPDX-License-Identifier: Apache-2.0 */
/* Events: which are reported to which debugger, and until when. Events of the runtime need no GPU.
 */
#include "cases.h"

#define RUNTIME      KFD_EC_PROCESS_RUNTIME
#define CODE_QUEUE   31 /* EC_QUEUE_NEW */
#define CODE_DEVICE  33 /* EC_DEVICE_MEMORY_VIOLATION */
#define CODE_RUNTIME 48
#define CODE_NONE    40
#define NO_QUEUE     5
#define NO_GPU       0x1234
#define RAISED       "0,800000000000"

static void say_event(pid_t pid, uint64_t clear)
{
	uint64_t raised = 0;
	long rc = query_event(pid, clear, &raised);

	say("%s,%lx", answer(rc), raised);
}

static long subscribe(pid_t pid, uint64_t exceptions)
{
	struct kfd_dbg_trap args = {.pid = (uint32_t)pid, .op = KFD_DBG_SET_EXCEPTIONS_ENABLED};

	args.set_exceptions_enabled.exception_mask = exceptions;
	return trap(&args);
}

/* A target with a raised EC_PROCESS_RUNTIME; it does not wait for an answer. */
static struct peer start_raised(uint64_t subscribed)
{
	struct peer p = peer_start_seized();
	uint32_t size = 0;

	must("enable", enable_with(p.pid, subscribed, notify_fd(), NULL, &size));
	must("send", send_event(p.pid, RUNTIME));
	must("runtime", peer_call(&p, set_runtime, KFD_RUNTIME_ENABLE_MODE_ENABLE));
	return p;
}

PEER_CASE(no_event, debugged, "4", 0, "EAGAIN,0 EAGAIN,0")
{
	say_event(p.pid, 0);
	say_event(p.pid, UINT64_MAX);
}

KFD_CASE(event_stays_until_cleared, "4", 0, RAISED " " RAISED " " RAISED " EAGAIN,0")
{
	struct peer p = start_raised(RUNTIME);

	say_event(p.pid, 0);
	say_event(p.pid, KFD_EC_QUEUE_NEW);
	say_event(p.pid, RUNTIME);
	say_event(p.pid, 0);
}

KFD_CASE(event_has_no_gpu_and_queue, "4", 0, "0 0 0")
{
	struct peer p = start_raised(RUNTIME);
	struct kfd_dbg_trap args = {.pid = (uint32_t)p.pid, .op = KFD_DBG_QUERY_DEBUG_EVENT};

	args.query_debug_event.gpu_id = 77;
	args.query_debug_event.queue_id = 77;
	say_answer(trap(&args));
	say("%u %u", args.query_debug_event.gpu_id, args.query_debug_event.queue_id);
}

KFD_CASE(unsubscribed_event_is_recorded, "2.3", 0, "dots=0 EAGAIN,0 0 dots=1 " RAISED)
{
	struct peer p = start_raised(0);

	say("dots=%s", answer(dots_seen()));
	say_event(p.pid, 0);
	say_answer(subscribe(p.pid, RUNTIME));
	say("dots=%s", answer(dots_seen()));
	say_event(p.pid, 0);
}

KFD_CASE(subscribing_again_tells_again, "2.3", 0, "dots=2 dots=0 EAGAIN,0 dots=1")
{
	struct peer p = start_raised(0);

	subscribe(p.pid, RUNTIME);
	subscribe(p.pid, RUNTIME | KFD_EC_QUEUE_NEW);
	say("dots=%s", answer(dots_seen()));
	subscribe(p.pid, KFD_EC_QUEUE_NEW);
	say("dots=%s", answer(dots_seen()));
	say_event(p.pid, RUNTIME);
	subscribe(p.pid, RUNTIME);
	say("dots=%s", answer(dots_seen()));
}

PEER_CASE(subscribing_to_nothing_pending, debugged, "2.3", 0, "0 dots=0")
{
	say_answer(subscribe(p.pid, UINT64_MAX));
	say("dots=%s", answer(dots_seen()));
}

KFD_CASE(disable_clears_events, "2.5", 0, "EAGAIN,0")
{
	struct peer p = start_raised(RUNTIME);

	disable(p.pid);
	must("enable", enable(p.pid));
	say_event(p.pid, 0);
}

KFD_CASE(failed_enable_keeps_the_subscription, "2.3", 0, "EALREADY " RAISED)
{
	struct peer p = start_raised(RUNTIME);
	uint32_t size = 0;

	say_answer(enable_with(p.pid, 0, notify_fd(), NULL, &size));
	say_event(p.pid, 0);
}

/* Nothing happened before there was a session, as far as it is concerned. */
PEER_CASE(earlier_event_is_not_recorded, ready, "2.4", 0, "EAGAIN,0")
{
	say_event(p.pid, 0);
}

static void say_info(pid_t pid, uint32_t code, uint32_t source, void *to, uint32_t size, bool clear)
{
	struct kfd_dbg_trap args = {.pid = (uint32_t)pid, .op = KFD_DBG_QUERY_EXCEPTION_INFO};
	long rc;

	args.query_exception_info.info_ptr = (uintptr_t)to;
	args.query_exception_info.info_size = size;
	args.query_exception_info.source_id = source;
	args.query_exception_info.exception_code = code;
	args.query_exception_info.clear_exception = clear;
	rc = trap(&args);
	say("%s,%u", answer(rc), args.query_exception_info.info_size);
}

KFD_CASE(info_needs_a_pointer, "1.2", 0, "EINVAL,16 EFAULT,16")
{
	struct peer p = start_raised(RUNTIME);

	say_info(p.pid, CODE_RUNTIME, 0, NULL, 16, false);
	say_info(p.pid, CODE_RUNTIME, 0, bad_pointer(), 16, false);
}

PEER_CASE(info_of_what_did_not_happen, debugged, "1.2", 0,
	  "ENODATA,16 EINVAL,16 EINVAL,16 EINVAL,16")
{
	struct kfd_runtime_info info;

	say_info(p.pid, CODE_RUNTIME, 0, &info, sizeof(info), false);
	say_info(p.pid, CODE_QUEUE, NO_QUEUE, &info, sizeof(info), false);
	say_info(p.pid, CODE_DEVICE, NO_GPU, &info, sizeof(info), false);
	say_info(p.pid, CODE_NONE, 0, &info, sizeof(info), false);
}

KFD_CASE(info_about_the_runtime, "1.2", 0, "0,16 state=1 r_debug=1234567800")
{
	struct peer p = start_raised(RUNTIME);
	struct kfd_runtime_info info = {0};

	say_info(p.pid, CODE_RUNTIME, 0, &info, sizeof(info), false);
	say("state=%u r_debug=%lx", info.runtime_state, info.r_debug);
}

KFD_CASE(info_is_cut_to_its_room, "1.2", 0, "0,16 state=77 r_debug=1234567800")
{
	struct peer p = start_raised(RUNTIME);
	struct kfd_runtime_info info = {.runtime_state = 77};

	say_info(p.pid, CODE_RUNTIME, 0, &info, 8, false);
	say("state=%u r_debug=%lx", info.runtime_state, info.r_debug);
}

KFD_CASE(info_clears, "1.2", 0, "0,16 ENODATA,16 EAGAIN,0")
{
	struct peer p = start_raised(RUNTIME);
	struct kfd_runtime_info info;

	say_info(p.pid, CODE_RUNTIME, 0, &info, sizeof(info), true);
	say_info(p.pid, CODE_RUNTIME, 0, &info, sizeof(info), true);
	say_event(p.pid, 0);
}

/* It looks at what was recorded, not at what is subscribed. */
KFD_CASE(info_of_an_unsubscribed_event, "1.2", 0, "0,16")
{
	struct peer p = start_raised(0);
	struct kfd_runtime_info info;

	say_info(p.pid, CODE_RUNTIME, 0, &info, sizeof(info), false);
}

PEER_CASE(send_to_nobody, debugged, "1.2", 0, "0 0 ENODEV")
{
	say_answer(send_event(p.pid, 0));
	say_answer(send_event(p.pid, KFD_EC_QUEUE_NEW));
	say_answer(send_event(p.pid, KFD_EC_MEMORY_VIOLATION));
}

/* Refused as a whole: the handshake is not let through. */
PEER_CASE(send_with_unknown_gpu, debugged, "1.2", 0, "ENODEV blocked")
{
	say_answer(send_event(p.pid, KFD_EC_MEMORY_VIOLATION | RUNTIME));
	peer_ask(&p, set_runtime, KFD_RUNTIME_ENABLE_MODE_ENABLE);
	say("%s", peer_is_blocked(&p) ? "blocked" : "not");
}

static long set_launch_mode(pid_t pid, uint32_t mode)
{
	struct kfd_dbg_trap args = {.pid = (uint32_t)pid, .op = KFD_DBG_SET_WAVE_LAUNCH_MODE};

	args.launch_mode.launch_mode = mode;
	return trap(&args);
}

PEER_CASE(launch_modes, ready, "1.2", 0, "0 0 EINVAL 0 EINVAL 0")
{
	for (uint32_t mode = 0; mode < 5; mode++)
		say_answer(set_launch_mode(p.pid, mode));
	say_answer(set_launch_mode(p.pid, 0x101)); /* cut to 8 bits */
}

PEER_CASE(launch_override_without_gpu, ready, "1.2", NEEDS_NO_GPU, "0 ffffffff")
{
	struct kfd_dbg_trap args = {.pid = (uint32_t)p.pid, .op = KFD_DBG_SET_WAVE_LAUNCH_OVERRIDE};

	args.launch_override.support_request_mask = 3;
	say_answer(trap(&args));
	say("%x", args.launch_override.support_request_mask);
}

static void say_flags(pid_t pid, uint32_t flags)
{
	struct kfd_dbg_trap args = {.pid = (uint32_t)pid, .op = KFD_DBG_SET_FLAGS};
	long rc;

	args.set_flags.flags = flags;
	rc = trap(&args);
	say("%s,%x", answer(rc), args.set_flags.flags);
}

PEER_CASE(flags_without_gpu, ready, "1.2", NEEDS_NO_GPU, "0,0 0,1 0,6 0,0 0,0")
{
	say_flags(p.pid, 1);
	say_flags(p.pid, 6);
	say_flags(p.pid, 0);
	disable(p.pid);
	must("enable", enable(p.pid));
	say_flags(p.pid, 1);
	disable(p.pid);
	must("enable", enable(p.pid));
	say_flags(p.pid, 0);
}
