/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/server/target_process.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/process.h"
#include "rpc/params.h"
#include "rpc/server/internal.h"

/* Reads the pid from the fdinfo of a pidfd; -EBADF: not a pidfd. */
static int pid_of(int pidfd, pid_t *pid)
{
	char path[64], line[128];
	int r = -EBADF;
	FILE *f;

	snprintf(path, sizeof path, "/proc/self/fdinfo/%d", pidfd);
	f = fopen(path, "re");
	if (!f)
		return -errno;
	while (r && fgets(line, sizeof line, f)) {
		char *end = line;

		if (strncmp(line, "Pid:", 4) != 0)
			continue;
		*pid = (pid_t)strtol(line + 4, &end, 10);
		r = end > line + 4 ? 0 : -EBADF;
	}
	fclose(f);
	return r;
}

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
	*out = (struct gp_target){
		.pid = pid, .start_time = gp_process_start_time(pid), .pidfd = fd};
	r = gp_rpc_fd_give(call, fd);
	if (r)
		return gp_fail(err, r, "too many targets in one request; send several requests");
	if (!out->start_time || gp_pidfd_ended(fd))
		return gp_fail(err, -ESRCH, "process %d has ended", pid);
	return 0;
}

static int read_self(struct gp_rpc_call *call, struct gp_target *out, struct gp_error *err)
{
	const struct gp_rpc_peer *peer = gp_rpc_peer(call);

	if (peer->pidfd < 0)
		return gp_fail(err, -EPERM,
			       "the process that connected cannot be identified; send a pidfd "
			       "instead of self");
	if (gp_pidfd_ended(peer->pidfd))
		return gp_fail(err, -ESRCH, "the process that connected has ended");
	*out = (struct gp_target){
		.pid = peer->pid, .start_time = peer->start_time, .pidfd = peer->pidfd};
	return 0;
}

static int read_pidfd(struct gp_rpc_call *call, struct json_object *target, struct gp_target *out,
		      struct gp_error *err)
{
	uint64_t index = 0;
	pid_t pid = 0;
	int fd, r;

	r = gp_params_u64(target, "pidfd", 0, GP_RPC_FDS_MAX - 1, &index, NULL, err);
	if (r)
		return r;
	fd = gp_rpc_fd(call, (unsigned)index);
	if (fd < 0)
		return gp_fail(err, -EINVAL,
			       "no file descriptor %u came with this line; send the pidfd with it",
			       (unsigned)index);
	r = pid_of(fd, &pid);
	if (r)
		return gp_fail(err, -EINVAL, "file descriptor %u is not a pidfd", (unsigned)index);
	if (pid < 0)
		return gp_fail(err, -ESRCH, "the process of that pidfd has ended");
	if (!pid)
		return gp_fail(err, -EPERM,
			       "the process of that pidfd is in a pid namespace that the daemon "
			       "cannot see; use a daemon in that namespace");
	r = open_process(call, pid, out, err);
	if (!r && gp_pidfd_ended(fd))
		r = gp_fail(err, -ESRCH, "the process of that pidfd has ended");
	return r;
}

static int read_pid(struct gp_rpc_call *call, struct json_object *target, struct gp_target *out,
		    struct gp_error *err)
{
	uint64_t pid = 0, start_time = 0;
	bool has_start_time;
	int r;

	r = gp_params_u64(target, "pid", 1, INT32_MAX, &pid, NULL, err);
	if (!r)
		r = gp_params_u64(target, "start_time", 1, UINT64_MAX, &start_time, &has_start_time,
				  err);
	if (r)
		return r;
	if (!gp_rpc_peer(call)->same_pidns)
		return gp_fail(
			err, -EPERM,
			"a pid of your pid namespace means another process here; send a pidfd");
	r = open_process(call, (pid_t)pid, out, err);
	if (!r && has_start_time && start_time != out->start_time)
		r = gp_fail(err, -ESRCH, "process %d has ended and its pid was reused", (pid_t)pid);
	return r;
}

static int read_target(struct gp_rpc_call *call, struct json_object *target, struct gp_target *out,
		       struct gp_error *err)
{
	bool self = false, has_self, has_pidfd, has_pid, has_start_time;
	int r = GP_PARAMS_KNOWN(target, err, "self", "pidfd", "pid", "start_time");

	if (!r)
		r = gp_params_bool(target, "self", &self, &has_self, err);
	if (r)
		return r;
	has_pidfd = json_object_object_get_ex(target, "pidfd", NULL);
	has_pid = json_object_object_get_ex(target, "pid", NULL);
	has_start_time = json_object_object_get_ex(target, "start_time", NULL);
	if ((int)has_self + has_pidfd + has_pid != 1 || has_self != self ||
	    (has_start_time && !has_pid))
		return gp_fail(err, -EINVAL,
			       "a target is {\"self\": true}, {\"pidfd\": INDEX} or {\"pid\": PID, "
			       "\"start_time\": TICKS}");
	if (self)
		return read_self(call, out, err);
	return has_pidfd ? read_pidfd(call, target, out, err) : read_pid(call, target, out, err);
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
