/* SPDX-License-Identifier: Apache-2.0 */
/* ENABLE: what it refuses, what it reports, and where its notifications go. */
#include <sys/eventfd.h>

#include "cases.h"

#define UNTOUCHED 0x5a
#define TOLD      "blocked dots=1 0 0"
#define NOT_TOLD  "blocked dots=0 0 0"

PEER_CASE(twice, seized, "2.3", 0, "0 EALREADY 0")
{
	SAY_ANSWERS(enable(p.pid), enable(p.pid), count_queues(p.pid));
}

PEER_CASE(bad_file, seized, "2.3", 0, "EBADF size=16 EINVAL 0")
{
	uint32_t size = 16;
	struct kfd_runtime_info info;

	say_answer(enable_with(p.pid, 0, 999, &info, &size));
	say("size=%u", size);
	SAY_ANSWERS(count_queues(p.pid), enable(p.pid));
}

PEER_CASE(bad_info, seized, "2.3", 0, "EFAULT size=16 EINVAL 0")
{
	uint32_t size = 12;

	say_answer(enable_with(p.pid, 0, notify_fd(), bad_pointer(), &size));
	say("size=%u", size);
	SAY_ANSWERS(count_queues(p.pid), enable(p.pid));
}

/* The same where there is more to undo. */
PEER_CASE(bad_info_runtime_enabled, seized, "2.3", 0, "EFAULT 0 0")
{
	uint32_t size = 16;

	must("runtime", peer_call(&p, set_runtime, KFD_RUNTIME_ENABLE_MODE_ENABLE));
	say_answer(enable_with(p.pid, 0, notify_fd(), bad_pointer(), &size));
	say_answer(enable(p.pid));
	say_answer(suspend(p.pid, NULL, 0));
}

PEER_CASE(order_of_refusals, seized, "2.3", 0, "EBADF EALREADY size=16")
{
	uint32_t size = 16;

	say_answer(enable_with(p.pid, 0, -1, bad_pointer(), &size));
	must("enable", enable(p.pid));
	size = 16;
	say_answer(enable_with(p.pid, 0, -1, bad_pointer(), &size));
	say("size=%u", size);
}

PEER_CASE(again_after_disable, seized, "2.5", 0, "0 0 0 0 0 0")
{
	for (int i = 0; i < 3; i++) {
		SAY_ANSWERS(enable(p.pid), disable(p.pid));
	}
}

/* ENABLE with room for `size`: how many bytes of 64 were written. */
static void say_written(pid_t pid, uint32_t size)
{
	unsigned char info[64];
	unsigned written = sizeof(info);
	long rc;

	memset(info, UNTOUCHED, sizeof(info));
	rc = enable_with(pid, 0, notify_fd(), info, &size);
	while (written && info[written - 1] == UNTOUCHED)
		written--;
	say("%s,%u,%u", answer(rc), written, size);
	disable(pid);
}

PEER_CASE(sizes_of_the_report, seized, "2.3", 0, "0,0,16 0,4,16 0,8,16 0,16,16 0,16,16 0,16,16")
{
	say_written(p.pid, 0);
	say_written(p.pid, 4);
	say_written(p.pid, 8);
	say_written(p.pid, 16);
	say_written(p.pid, 32);
	say_written(p.pid, UINT32_MAX);
}

PEER_CASE(size_0_needs_no_pointer, seized, "2.3", 0, "0 0")
{
	uint32_t size = 0;

	say_answer(enable_with(p.pid, 0, notify_fd(), NULL, &size));
	disable(p.pid);
	size = 0;
	say_answer(enable_with(p.pid, 0, notify_fd(), bad_pointer(), &size));
}

static void say_report(pid_t pid)
{
	struct kfd_runtime_info info = {0};
	uint32_t size = sizeof(info);
	long rc = enable_with(pid, 0, notify_fd(), &info, &size);

	say_answer(rc);
	say("state=%u r_debug=%lx ttmp=%u", info.runtime_state, info.r_debug, info.ttmp_setup);
}

PEER_CASE(report_runtime_disabled, seized, "2.3", 0, "0 state=0 r_debug=0 ttmp=0")
{
	say_report(p.pid);
}

PEER_CASE(report_runtime_enabled, seized, "2.3", 0, "0 state=1 r_debug=1234567800 ttmp=0")
{
	must("runtime", peer_call(&p, set_runtime, KFD_RUNTIME_ENABLE_MODE_ENABLE));
	say_report(p.pid);
}

PEER_CASE(report_ttmp, seized, "2.3", 0, "0 state=1 r_debug=1234567800 ttmp=1")
{
	must("runtime",
	     peer_call(&p, set_runtime,
		       KFD_RUNTIME_ENABLE_MODE_ENABLE | KFD_RUNTIME_ENABLE_MODE_TTMP_SAVE));
	say_report(p.pid);
}

PEER_CASE(report_runtime_disabled_again, seized, "2.4", 0, "0 state=0 r_debug=0 ttmp=0")
{
	must("runtime",
	     peer_call(&p, set_runtime,
		       KFD_RUNTIME_ENABLE_MODE_ENABLE | KFD_RUNTIME_ENABLE_MODE_TTMP_SAVE));
	must("runtime", peer_call(&p, set_runtime, 0));
	say_report(p.pid);
}

PEER_CASE(report_of_a_second_session, ready, "2.5", 0, "0 state=1 r_debug=1234567800 ttmp=0")
{
	disable(p.pid);
	say_report(p.pid);
}

static long enable_on(pid_t pid, int fd, uint64_t exceptions)
{
	uint32_t size = 0;
	long rc = enable_with(pid, exceptions, fd, NULL, &size);

	return rc;
}

/* Lets the target come to the handshake, and say whether the session's pipe was written to. */
static void say_notified(const struct peer *p)
{
	peer_ask(p, set_runtime, KFD_RUNTIME_ENABLE_MODE_ENABLE);
	say("%s", peer_is_blocked(p) ? "blocked" : "went on");
	say("dots=%s", answer(dots_seen()));
	SAY_ANSWERS(send_event(p->pid, KFD_EC_PROCESS_RUNTIME), peer_answer(p));
}

PEER_CASE(pipe_is_written_to, seized, "2.3", 0, "0 " TOLD)
{
	say_answer(enable_on(p.pid, notify_fd(), KFD_EC_PROCESS_RUNTIME));
	say_notified(&p);
}

PEER_CASE(pipe_is_not_written_to_unsubscribed, seized, "2.3", 0, "0 " NOT_TOLD)
{
	say_answer(enable_on(p.pid, notify_fd(), KFD_EC_QUEUE_NEW));
	say_notified(&p);
}

PEER_CASE(eventfd_is_accepted_and_useless, seized, "2.3", 0, "0 " NOT_TOLD " EAGAIN")
{
	int fd = eventfd(0, EFD_NONBLOCK);
	uint64_t count = 0;

	notify_fd();
	say_answer(enable_on(p.pid, fd, KFD_EC_PROCESS_RUNTIME));
	say_notified(&p);
	say("%s", read(fd, &count, sizeof(count)) < 0 ? answer(-errno) : "counted");
}

PEER_CASE(kfd_itself_is_accepted_and_useless, seized, "2.3", 0, "0 " NOT_TOLD)
{
	notify_fd();
	say_answer(enable_on(p.pid, kfd_fd(), KFD_EC_PROCESS_RUNTIME));
	say_notified(&p);
}

/* Nothing is written to it here: that would leave a warning in the kernel's log. */
PEER_CASE(read_only_file_is_accepted, seized, "2.3", 0, "0")
{
	int fd = open("/proc/self/status", O_RDONLY);

	say_answer(enable_on(p.pid, fd, 0));
}

PEER_CASE(closed_after_enable, seized, "2.3", 0, "0 " TOLD)
{
	int fd = dup(notify_fd());

	say_answer(enable_on(p.pid, fd, KFD_EC_PROCESS_RUNTIME));
	close(fd);
	say_notified(&p);
}

PEER_CASE(disable_lets_the_file_go, seized, "2.5", 0, "0 EPIPE")
{
	must("enable", enable(p.pid));
	close(notify_fd());
	say_answer(wait_for_dots(0));
	disable(p.pid);
	say_answer(wait_for_dots(10000));
}

PEER_CASE(any_exception_mask, seized, "2.3", 0, "0 0")
{
	SAY_ANSWERS(enable_on(p.pid, notify_fd(), UINT64_MAX), dots_seen());
}
