/* SPDX-License-Identifier: Apache-2.0 */
/* The emulator's own ioctls (emu_abi.h). 0 or -errno; each takes rm_lock. */
#ifndef EMU_NVIDIA_WORK_H
#define EMU_NVIDIA_WORK_H

#include "rm.h"

int work_submit(const struct caller *caller, const struct emu_submit *submit);
int work_query(const struct caller *caller, struct emu_query *query);
void work_gpus(struct emu_gpus *gpus);
int work_processes(struct emu_processes *all);

#endif
