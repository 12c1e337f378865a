/* SPDX-License-Identifier: Apache-2.0 */
/* Calls to RM as a program makes them: for the load and for the emulator's tests. */
#ifndef EMU_NVIDIA_RM_CLIENT_H
#define EMU_NVIDIA_RM_CLIENT_H

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>

#include "emu_abi.h"

#define RM_ERRNO 0x80000000u /* and an errno: the ioctl itself failed */

static inline uint32_t rm_call_alloc(int fd, uint32_t root, uint32_t parent, uint32_t *object,
				     uint32_t class, void *params, uint32_t size)
{
	struct nv_rm_alloc args = {.root = root,
				   .parent = parent,
				   .object = *object,
				   .class = class,
				   .params = (uint64_t)(uintptr_t)params,
				   .params_size = size};

	if (ioctl(fd, NV_ESC_RM_ALLOC, &args))
		return RM_ERRNO | (uint32_t)errno;
	*object = args.object;
	return args.status;
}

static inline uint32_t rm_call_control(int fd, uint32_t client, uint32_t object, uint32_t cmd,
				       void *params, uint32_t size)
{
	struct nv_rm_control args = {.client = client,
				     .object = object,
				     .cmd = cmd,
				     .params = (uint64_t)(uintptr_t)params,
				     .params_size = size};

	if (ioctl(fd, NV_ESC_RM_CONTROL, &args))
		return RM_ERRNO | (uint32_t)errno;
	return args.status;
}

static inline uint32_t rm_call_free(int fd, uint32_t client, uint32_t object)
{
	struct nv_rm_free args = {.root = client, .object = object};

	if (ioctl(fd, NV_ESC_RM_FREE, &args))
		return RM_ERRNO | (uint32_t)errno;
	return args.status;
}

#endif
