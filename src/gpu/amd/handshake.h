/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the runtime of a program waits for its debugger. The driver does not report it; the
 * system calls of the threads show it. */
#ifndef GP_GPU_AMD_HANDSHAKE_H
#define GP_GPU_AMD_HANDSHAKE_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * True if a thread of the process waits in the ioctl RUNTIME_ENABLE. The thread must be seen there
 * twice, 1 ms apart, because a thread that is seen once may only pass through. Running threads may
 * be about to enter the ioctl, so the check is repeated for up to 10 ms while there are any.
 */
bool gp_amd_is_in_handshake(pid_t pid);

#endif
