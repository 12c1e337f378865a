/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the runtime of a program waits for its debugger. The driver does not report it; the
 * system calls of the threads show it. */
#ifndef GP_GPU_AMD_HANDSHAKE_H
#define GP_GPU_AMD_HANDSHAKE_H

#include <stdbool.h>
#include <sys/types.h>

/* Takes up to 10 ms. A thread that is in the call at two checks waits there; a running thread may
 * be about to enter it. */
bool gp_amd_is_in_handshake(pid_t pid);

#endif
