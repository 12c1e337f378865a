/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/wire.h"

#include <errno.h>
#include <string.h>

#define ERRNO_MAX 256 /* above the highest errno */

enum gp_rpc_code gp_rpc_code_of(int error)
{
	switch (-error) {
	case EINVAL: return GP_RPC_INVALID_PARAMS;
	case EPERM:
	case EACCES: return GP_RPC_NOT_PERMITTED;
	case ESRCH: return GP_RPC_NO_PROCESS;
	case ENODEV: return GP_RPC_NO_DEVICE;
	case ENOSYS:
	case ENOTSUP: return GP_RPC_NOT_SUPPORTED;
	case EAGAIN:
	case EBUSY: return GP_RPC_BUSY;
	case ETIMEDOUT: return GP_RPC_TIMED_OUT;
	case E2BIG:
	case EDQUOT:
	case EMFILE:
	case EMSGSIZE:
	case EUSERS:
	case ENOMEM:
	case ENOSPC: return GP_RPC_LIMIT;
	case ECANCELED:
	case ESHUTDOWN: return GP_RPC_ENDING;
	default: return GP_RPC_FAILED;
	}
}

const char *gp_rpc_errno_name(int error)
{
	const char *name = error < 0 ? strerrorname_np(-error) : NULL;

	return name ? name : "EIO";
}

int gp_rpc_errno_parse(const char *name)
{
	for (int e = 1; e < ERRNO_MAX; e++) {
		const char *known = strerrorname_np(e);

		if (known && strcmp(known, name) == 0)
			return -e;
	}
	return -EIO;
}
