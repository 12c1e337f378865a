/* SPDX-License-Identifier: Apache-2.0 */
#include "kfd_emu.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

const char kfd_load_program[] = KFD_LOAD;

static void set_paths(struct kfd_emu *emu)
{
	snprintf(emu->kfd, sizeof(emu->kfd), "%s/kfd", emu->dir);
	snprintf(emu->sysfs, sizeof(emu->sysfs), "%s/sysfs", emu->dir);
	snprintf(emu->debugfs, sizeof(emu->debugfs), "%s/debugfs", emu->dir);
	setenv("GPREEMPT_KFD", emu->kfd, 1);
	setenv("GPREEMPT_KFD_SYSFS", emu->sysfs, 1);
	setenv("GPREEMPT_KFD_DEBUGFS", emu->debugfs, 1);
}

int kfd_emu_start(struct kfd_emu *emu, ...)
{
	char *words[EMULATOR_WORDS_MAX], program[] = KFD_EMU;
	va_list list;
	int result;

	*emu = (struct kfd_emu){.dir = "/tmp/kfd-emu-XXXXXX"};
	va_start(list, emu);
	emulator_collect(words, program, list);
	va_end(list);
	result = emulator_start(words, emu->dir, &emu->pid);
	if (!result)
		set_paths(emu);
	return result;
}

int kfd_emu_stop(struct kfd_emu *emu)
{
	return emulator_stop(emu->dir, &emu->pid);
}

static struct emulator_search find(const struct kfd_emu *emu, const char *key, uint64_t wanted,
				   const char *field)
{
	return emulator_find(
		emu->dir, (struct emulator_search){.key = key, .wanted = wanted, .field = field});
}

uint64_t kfd_emu_queue_number(const struct kfd_emu *emu, pid_t pid, uint32_t queue,
			      const char *field)
{
	return emulator_find(emu->dir, (struct emulator_search){.key = "pid",
								.wanted = (uint64_t)pid,
								.second = "queue",
								.wanted_second = queue,
								.field = field})
		.first;
}

uint64_t kfd_emu_process_number(const struct kfd_emu *emu, pid_t pid, const char *field)
{
	return find(emu, "process", (uint64_t)pid, field).first;
}

uint64_t kfd_emu_device_number(const struct kfd_emu *emu, uint32_t device, const char *field)
{
	return find(emu, "device", device, field).first;
}

uint64_t kfd_emu_process_sum(const struct kfd_emu *emu, pid_t pid, const char *field)
{
	return find(emu, "pid", (uint64_t)pid, field).sum;
}

uint32_t kfd_emu_queues(const struct kfd_emu *emu, pid_t pid)
{
	return find(emu, "pid", (uint64_t)pid, NULL).lines;
}
