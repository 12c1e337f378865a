/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
#include <string.h>

#include "emu/common/emulator.h"
#include "gpu.h"
#include "emu/kfd/kfd_emu.h"

static struct kfd_emu emu;

/* Who may debug is found by the newer rule, or by the older one that needs ptrace. */
static int start(void)
{
	return kfd_emu_start(&emu, "--gpu", "mi300x", "--rule", "new", "--slots", "1", NULL);
}

static int start_old(void)
{
	return kfd_emu_start(&emu, "--gpu", "mi250", "--rule", "old", "--slots", "1", NULL);
}

static int stop(void)
{
	return kfd_emu_stop(&emu);
}

static const char *folder(void)
{
	return emu.dir;
}

/* A step is 100 us. */
static int load(struct load *load, bool busy)
{
	struct kfd_load l;
	int r = busy ? kfd_load_start(&l, "-q", "2", "-s", "40", NULL)
		     : kfd_load_start(&l, "-q", "1", "-s", "5", "-p", "10000", NULL);

	*load = (struct load){.pid = l.pid, .out = l.out};
	return r;
}

/* The head of a process is on a line, each of its queues on one below. */
static void look_at(const char *line, void *arg)
{
	struct gpu_look *look = arg;
	uint64_t pid = 0, run_ns = 0, suspended = 0;
	struct gpu_task *task;

	if (emulator_number(line, "process", &pid))
		gpu_look_at_owner(look, (pid_t)pid);
	if (!emulator_number(line, "pid", &pid) || !strstr(line, "\"queue\":"))
		return;
	task = gpu_look_task(look, (pid_t)pid);
	if (!task)
		return;
	emulator_number(line, "run_ns", &run_ns);
	emulator_number(line, "suspended", &suspended);
	task->run_ns += run_ns;
	task->held |= suspended;
	task->changed |= suspended;
}

static void look(struct gpu_look *look)
{
	*look = (struct gpu_look){0};
	emulator_each_line(emu.dir, look_at, look);
}

const struct gpu gpu_amd = {
	.name = "amd",
	.kind = "amd",
	.start = start,
	.stop = stop,
	.folder = folder,
	.load = load,
	.look = look,
};

const struct gpu gpu_amd_old = {
	.name = "amd-old",
	.kind = "amd",
	.start = start_old,
	.stop = stop,
	.folder = folder,
	.load = load,
	.look = look,
};
