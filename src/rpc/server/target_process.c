/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/server/target_process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/process.h"
#include "rpc/params.h"
#include "rpc/server/internal.h"

#ifndef NS_GET_PID_FROM_PIDNS
#define NS_GET_PID_FROM_PIDNS _IOR(0xb7, 0x6, int) /* Linux 6.11 */
#endif

/*
 * Opens `pid` and reads its start time. The caller then verifies that it is the right process. If
 * the new pidfd has not ended by then, pid, start time and pidfd belong together.
 */
static int open_process(struct gp_rpc_call *call, pid_t pid, struct gp_target *out,
			struct gp_error *err)
{
	int fd = gp_pidfd_open(pid), r;

	if (fd == -ESRCH)
		return gp_fail(err, -ESRCH, "process %d has ended", pid);
	if (fd == -EINVAL || fd == -ENOENT)
		return gp_fail(err, -ESRCH,
			       "%d is a thread, not a process; use the pid of its process", pid);
	if (fd < 0)
		return gp_fail(err, fd, "cannot open process %d: %s", pid, gp_error_name(fd));
	*out = (struct gp_target){.pid = pid, .pidfd = fd};
	r = gp_rpc_fd_give(call, fd);
	if (r)
		return gp_fail(err, r, "too many targets in one request; send several requests");
	if (gp_process_read_start_time(pid, &out->start_time) == -ETIMEDOUT)
		return gp_process_silent(err, pid, -EAGAIN);
	if (!out->start_time || gp_pidfd_ended(fd))
		return gp_fail(err, -ESRCH, "process %d has ended", pid);
	return 0;
}

static int read_self(struct gp_rpc_call *call, struct gp_target *out, struct gp_error *err)
{
	const struct gp_rpc_peer *peer = gp_rpc_peer(call);

	if (peer->pidfd < 0)
		return gp_fail(err, -EPERM,
			       "the process that connected cannot be identified; run gpreempt "
			       "in the daemon's pid namespace");
	if (gp_pidfd_ended(peer->pidfd))
		return gp_fail(err, -ESRCH, "the process that connected has ended");
	*out = (struct gp_target){
		.pid = peer->pid, .start_time = peer->start_time, .pidfd = peer->pidfd};
	return 0;
}

/*
 * Translates a pid of the client's pid namespace. The client has not ended after the translation,
 * so the namespace was its own. -ENOTTY: the kernel cannot translate.
 */
static int translate(const struct gp_rpc_peer *peer, pid_t *pid, struct gp_error *err)
{
	int fd, n = -1;

	if (peer->pidfd < 0)
		return gp_fail(err, -EPERM,
			       "the process that connected cannot be identified, and a pid of "
			       "another pid namespace means another process here; run gpreempt in "
			       "the daemon's pid namespace");
	fd = gp_process_open(peer->pid, "ns/pid", O_RDONLY);
	if (fd >= 0) {
		n = ioctl(fd, NS_GET_PID_FROM_PIDNS, *pid);
		if (n <= 0)
			n = errno == ESRCH ? -ESRCH : -ENOTTY;
		close(fd);
	}
	if (fd == -ETIMEDOUT)
		return gp_process_silent(err, peer->pid, -EAGAIN);
	if (fd < 0 || gp_pidfd_ended(peer->pidfd))
		return gp_fail(err, -ESRCH, "the process that connected has ended");
	if (n == -ESRCH)
		return gp_fail(err, -ESRCH, "there is no process %d", *pid);
	if (n < 0)
		return gp_fail(err, -EPERM,
			       "a pid of your pid namespace means another process here, and this "
			       "kernel cannot translate it (Linux 6.11 can); use self, or run "
			       "gpreempt in the daemon's pid namespace");
	*pid = n;
	return 0;
}

static int read_pid(struct gp_rpc_call *call, struct json_object *target, struct gp_target *out,
		    struct gp_error *err)
{
	uint64_t number = 0, start_time = 0;
	bool has_start_time;
	pid_t pid;
	int r;

	r = gp_params_u64(target, "pid", 1, INT32_MAX, &number, NULL, err);
	if (!r)
		r = gp_params_u64(target, "start_time", 1, UINT64_MAX, &start_time, &has_start_time,
				  err);
	if (r)
		return r;
	pid = (pid_t)number;
	if (!gp_rpc_peer(call)->same_pidns)
		r = translate(gp_rpc_peer(call), &pid, err);
	if (!r)
		r = open_process(call, pid, out, err);
	if (!r && has_start_time && start_time != out->start_time)
		r = gp_fail(err, -ESRCH, "process %d has ended and its pid was reused",
			    (pid_t)number);
	return r;
}

static int read_target(struct gp_rpc_call *call, struct json_object *target, struct gp_target *out,
		       struct gp_error *err)
{
	bool self = false, has_self, has_pid, has_start_time;
	int r = GP_PARAMS_KNOWN(target, err, "self", "pid", "start_time");

	if (!r)
		r = gp_params_bool(target, "self", &self, &has_self, err);
	if (r)
		return r;
	has_pid = json_object_object_get_ex(target, "pid", NULL);
	has_start_time = json_object_object_get_ex(target, "start_time", NULL);
	if (has_self == has_pid || has_self != self || (has_start_time && !has_pid))
		return gp_fail(err, -EINVAL,
			       "a target is {\"self\": true} or {\"pid\": PID, \"start_time\": "
			       "TICKS}");
	return self ? read_self(call, out, err) : read_pid(call, target, out, err);
}

int gp_target_param(struct gp_rpc_call *call, struct json_object *params, struct gp_target *out,
		    struct gp_error *err)
{
	struct json_object *target = NULL;
	bool present;
	int r = gp_params_object(params, "target", &target, &present, err);

	if (r)
		return r;
	return present ? read_target(call, target, out, err) : read_self(call, out, err);
}
