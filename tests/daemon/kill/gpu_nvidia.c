/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
#include <string.h>

#include "emu/nvidia/emu.h"
#include "emu/common/emulator.h"
#include "gpu.h"

#define MEMORY        1048576 /* of a load */
#define MEMORY_TEXT   "1048576"
#define CUDA_SLICE_US 2048 /* what a CUDA program gives itself */
#define ENGINE_GR0    1

static struct emu emu;

static int start(void)
{
	return emu_start(&emu, NULL);
}

static int stop(void)
{
	return emu_stop(&emu);
}

static const char *folder(void)
{
	return emu.dir;
}

static int load(struct load *load, bool busy)
{
	struct emu_load l;
	int r = busy ? emu_load_start(&l, "-k", "4000", "-m", MEMORY_TEXT, NULL)
		     : emu_load_start(&l, "-k", "500", "-p", "10000", "-m", MEMORY_TEXT, NULL);

	*load = (struct load){.pid = l.pid, .out = l.out};
	return r;
}

/* A client is on a line, each of its groups on one below, and so is the memory in use. */
static void look_at(const char *line, void *arg)
{
	struct gpu_look *look = arg;
	uint64_t pid = 0, engine, run_ns = 0, slice_us = 0;
	struct gpu_task *task;

	if (!strncmp(line, "\"memory\":", 9))
		emulator_number(line, "memory", &look->memory);
	if (!emulator_number(line, "pid", &pid))
		return;
	gpu_look_at_owner(look, (pid_t)pid);
	if (!emulator_number(line, "engine", &engine) || engine != ENGINE_GR0)
		return;
	task = gpu_look_task(look, (pid_t)pid);
	if (!task)
		return;
	emulator_number(line, "run_ns", &run_ns);
	emulator_number(line, "slice_us", &slice_us);
	task->run_ns += run_ns;
	task->held |= strstr(line, "\"held\":true") != NULL;
	task->slice_us = slice_us;
	task->changed |= task->held || slice_us != CUDA_SLICE_US;
}

static void look(struct gpu_look *look)
{
	*look = (struct gpu_look){0};
	emulator_each_line(emu.dir, look_at, look);
}

const struct gpu gpu_nvidia = {
	.name = "nvidia",
	.kind = "nvidia",
	.memory = MEMORY,
	.start = start,
	.stop = stop,
	.folder = folder,
	.load = load,
	.look = look,
};
