/* SPDX-License-Identifier: Apache-2.0 */
/* ENABLE: what it refuses, what it reports, and where its notifications go. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "cases.h"

#define UNTOUCHED 0x5a

static void twice(void)
{
	struct peer p = peer_start_seized();

	say("%s", answer(enable(p.pid)));
	say("%s", answer(enable(p.pid)));
	say("%s", answer(count_queues(p.pid)));
}

static void bad_file(void)
{
	struct peer p = peer_start_seized();
	uint32_t size = 16;
	struct kfd_runtime_info info;

	say("%s", answer(enable_with(p.pid, 0, 999, &info, &size)));
	say("size=%u", size);
	say("%s", answer(count_queues(p.pid)));
	say("%s", answer(enable(p.pid)));
}

static void bad_info(void)
{
	struct peer p = peer_start_seized();
	uint32_t size = 12;

	say("%s", answer(enable_with(p.pid, 0, notify_fd(), bad_pointer(), &size)));
	say("size=%u", size);
	say("%s", answer(count_queues(p.pid)));
	say("%s", answer(enable(p.pid)));
}

/* The same where there is more to undo. */
static void bad_info_runtime_enabled(void)
{
	struct peer p = peer_start_seized();
	uint32_t size = 16;

	must("runtime", peer_call(&p, set_runtime, KFD_RUNTIME_ENABLE_MODE_ENABLE));
	say("%s", answer(enable_with(p.pid, 0, notify_fd(), bad_pointer(), &size)));
	say("%s", answer(enable(p.pid)));
	say("%s", answer(suspend(p.pid, NULL, 0)));
}

static void order_of_refusals(void)
{
	struct peer p = peer_start_seized();
	uint32_t size = 16;

	say("%s", answer(enable_with(p.pid, 0, -1, bad_pointer(), &size)));
	must("enable", enable(p.pid));
	size = 16;
	say("%s", answer(enable_with(p.pid, 0, -1, bad_pointer(), &size)));
	say("size=%u", size);
}

static void again_after_disable(void)
{
	struct peer p = peer_start_seized();

	for (int i = 0; i < 3; i++) {
		say("%s", answer(enable(p.pid)));
		say("%s", answer(disable(p.pid)));
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

static void sizes_of_the_report(void)
{
	struct peer p = peer_start_seized();

	say_written(p.pid, 0);
	say_written(p.pid, 4);
	say_written(p.pid, 8);
	say_written(p.pid, 16);
	say_written(p.pid, 32);
	say_written(p.pid, UINT32_MAX);
}

static void size_0_needs_no_pointer(void)
{
	struct peer p = peer_start_seized();
	uint32_t size = 0;

	say("%s", answer(enable_with(p.pid, 0, notify_fd(), NULL, &size)));
	disable(p.pid);
	size = 0;
	say("%s", answer(enable_with(p.pid, 0, notify_fd(), bad_pointer(), &size)));
}

static void say_report(pid_t pid)
{
	struct kfd_runtime_info info = {0};
	uint32_t size = sizeof(info);
	long rc = enable_with(pid, 0, notify_fd(), &info, &size);

	say("%s", answer(rc));
	say("state=%u r_debug=%lx ttmp=%u", info.runtime_state, info.r_debug, info.ttmp_setup);
}

static void report_runtime_disabled(void)
{
	struct peer p = peer_start_seized();

	say_report(p.pid);
}

static void report_runtime_enabled(void)
{
	struct peer p = peer_start_seized();

	must("runtime", peer_call(&p, set_runtime, KFD_RUNTIME_ENABLE_MODE_ENABLE));
	say_report(p.pid);
}

static void report_ttmp(void)
{
	struct peer p = peer_start_seized();

	must("runtime",
	     peer_call(&p, set_runtime,
		       KFD_RUNTIME_ENABLE_MODE_ENABLE | KFD_RUNTIME_ENABLE_MODE_TTMP_SAVE));
	say_report(p.pid);
}

static void report_runtime_disabled_again(void)
{
	struct peer p = peer_start_seized();

	must("runtime",
	     peer_call(&p, set_runtime,
		       KFD_RUNTIME_ENABLE_MODE_ENABLE | KFD_RUNTIME_ENABLE_MODE_TTMP_SAVE));
	must("runtime", peer_call(&p, set_runtime, 0));
	say_report(p.pid);
}

static void report_of_a_second_session(void)
{
	struct peer p = peer_start_ready();

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
	say("%s", answer(send_event(p->pid, KFD_EC_PROCESS_RUNTIME)));
	say("%s", answer(peer_answer(p)));
}

static void pipe_is_written_to(void)
{
	struct peer p = peer_start_seized();

	say("%s", answer(enable_on(p.pid, notify_fd(), KFD_EC_PROCESS_RUNTIME)));
	say_notified(&p);
}

static void pipe_is_not_written_to_unsubscribed(void)
{
	struct peer p = peer_start_seized();

	say("%s", answer(enable_on(p.pid, notify_fd(), KFD_EC_QUEUE_NEW)));
	say_notified(&p);
}

static void eventfd_is_accepted_and_useless(void)
{
	struct peer p = peer_start_seized();
	int fd = eventfd(0, EFD_NONBLOCK);
	uint64_t count = 0;

	notify_fd();
	say("%s", answer(enable_on(p.pid, fd, KFD_EC_PROCESS_RUNTIME)));
	say_notified(&p);
	say("%s", read(fd, &count, sizeof(count)) < 0 ? answer(-errno) : "counted");
}

static void kfd_itself_is_accepted_and_useless(void)
{
	struct peer p = peer_start_seized();

	notify_fd();
	say("%s", answer(enable_on(p.pid, kfd_fd(), KFD_EC_PROCESS_RUNTIME)));
	say_notified(&p);
}

/* Nothing is written to it here: that would leave a warning in the kernel's log. */
static void read_only_file_is_accepted(void)
{
	struct peer p = peer_start_seized();
	int fd = open("/proc/self/status", O_RDONLY);

	say("%s", answer(enable_on(p.pid, fd, 0)));
}

static void closed_after_enable(void)
{
	struct peer p = peer_start_seized();
	int fd = dup(notify_fd());

	say("%s", answer(enable_on(p.pid, fd, KFD_EC_PROCESS_RUNTIME)));
	close(fd);
	say_notified(&p);
}

static void disable_lets_the_file_go(void)
{
	struct peer p = peer_start_seized();

	must("enable", enable(p.pid));
	close(notify_fd());
	say("%s", answer(wait_for_dots(0)));
	disable(p.pid);
	say("%s", answer(wait_for_dots(10000)));
}

static void any_exception_mask(void)
{
	struct peer p = peer_start_seized();

	say("%s", answer(enable_on(p.pid, notify_fd(), UINT64_MAX)));
	say("%s", answer(dots_seen()));
}

#define TOLD     "blocked dots=1 0 0"
#define NOT_TOLD "blocked dots=0 0 0"

const struct kfd_case enable_cases[] = {
	{"twice", "2.3", 0, "0 EALREADY 0", twice},
	{"bad_file", "2.3", 0, "EBADF size=16 EINVAL 0", bad_file},
	{"bad_info", "2.3", 0, "EFAULT size=16 EINVAL 0", bad_info},
	{"bad_info_runtime_enabled", "2.3", 0, "EFAULT 0 0", bad_info_runtime_enabled},
	{"order_of_refusals", "2.3", 0, "EBADF EALREADY size=16", order_of_refusals},
	{"again_after_disable", "2.5", 0, "0 0 0 0 0 0", again_after_disable},
	{"sizes_of_the_report", "2.3", 0, "0,0,16 0,4,16 0,8,16 0,16,16 0,16,16 0,16,16",
	 sizes_of_the_report},
	{"size_0_needs_no_pointer", "2.3", 0, "0 0", size_0_needs_no_pointer},
	{"report_runtime_disabled", "2.3", 0, "0 state=0 r_debug=0 ttmp=0",
	 report_runtime_disabled},
	{"report_runtime_enabled", "2.3", 0, "0 state=1 r_debug=1234567800 ttmp=0",
	 report_runtime_enabled},
	{"report_ttmp", "2.3", 0, "0 state=1 r_debug=1234567800 ttmp=1", report_ttmp},
	{"report_runtime_disabled_again", "2.4", 0, "0 state=0 r_debug=0 ttmp=0",
	 report_runtime_disabled_again},
	{"report_of_a_second_session", "2.5", 0, "0 state=1 r_debug=1234567800 ttmp=0",
	 report_of_a_second_session},
	{"pipe_is_written_to", "2.3", 0, "0 " TOLD, pipe_is_written_to},
	{"pipe_is_not_written_to_unsubscribed", "2.3", 0, "0 " NOT_TOLD,
	 pipe_is_not_written_to_unsubscribed},
	{"eventfd_is_accepted_and_useless", "2.3", 0, "0 " NOT_TOLD " EAGAIN",
	 eventfd_is_accepted_and_useless},
	{"kfd_itself_is_accepted_and_useless", "2.3", 0, "0 " NOT_TOLD,
	 kfd_itself_is_accepted_and_useless},
	{"read_only_file_is_accepted", "2.3", 0, "0", read_only_file_is_accepted},
	{"closed_after_enable", "2.3", 0, "0 " TOLD, closed_after_enable},
	{"disable_lets_the_file_go", "2.5", 0, "0 EPIPE", disable_lets_the_file_go},
	{"any_exception_mask", "2.3", 0, "0 0", any_exception_mask},
	{0},
};
