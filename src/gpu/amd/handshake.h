/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a program's runtime waits for its debugger, as its threads show: the driver does not say.
 */
#ifndef GP_GPU_AMD_HANDSHAKE_H
#define GP_GPU_AMD_HANDSHAKE_H

#include <stdbool.h>
#include <sys/types.h>

/* Takes up to 10 ms: who is in that call at two looks waits there, who runs may be on the way. */
bool gp_amd_is_in_handshake(pid_t pid);

#endif
