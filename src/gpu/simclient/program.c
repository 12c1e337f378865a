/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/simclient/program.h"

#include <sys/socket.h>

int gp_simgpu_join(const char *path, struct gp_simgpu_hello *hello, struct gp_error *err)
{
	struct gp_simgpu_welcome welcome;

	hello->kind = GP_SIMGPU_HELLO;
	hello->version = GP_SIMGPU_VERSION;
	hello->role = GP_SIMGPU_PROGRAM;
	return gp_simgpu_connect(path, hello, &welcome, NULL, err);
}

static int lost_or(int code)
{
	return code == EAGAIN || code == EINTR ? -EAGAIN : -EIO;
}

int gp_simgpu_submit(int fd, uint64_t tag, uint32_t kernels, uint64_t kernel_ns, uint64_t gap_ns)
{
	struct gp_simgpu_submit m = {.kind = GP_SIMGPU_SUBMIT,
				     .kernels = kernels,
				     .tag = tag,
				     .kernel_ns = kernel_ns,
				     .gap_ns = gap_ns};

	return send(fd, &m, sizeof m, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? lost_or(errno) : 0;
}

int gp_simgpu_take(int fd, struct gp_simgpu_done *done)
{
	ssize_t n = recv(fd, done, sizeof *done, MSG_DONTWAIT);

	if (n < 0)
		return lost_or(errno);
	return n == sizeof *done && done->kind == GP_SIMGPU_DONE ? 0 : -EIO;
}
