/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu.h"

#include <stddef.h>

#include "base/process.h"

const struct gpu_task *gpu_look_find(const struct gpu_look *look, pid_t pid)
{
	for (unsigned i = 0; i < look->n; i++)
		if (look->task[i].pid == pid)
			return &look->task[i];
	return NULL;
}

struct gpu_task *gpu_look_task(struct gpu_look *look, pid_t pid)
{
	for (unsigned i = 0; i < look->n; i++)
		if (look->task[i].pid == pid)
			return &look->task[i];
	if (look->n == GPU_TASKS_MAX)
		return NULL;
	look->task[look->n] = (struct gpu_task){.pid = pid};
	return &look->task[look->n++];
}

void gpu_look_at_owner(struct gpu_look *look, pid_t pid)
{
	if (pid > 0 && !gp_process_start_time(pid))
		look->dead = pid;
}
