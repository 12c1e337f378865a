/* SPDX-License-Identifier: Apache-2.0 */
#include "emu.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char emu_load_program[] = RM_LOAD;

int emu_start(struct emu *emu, ...)
{
	char *words[EMULATOR_WORDS_MAX], program[] = RM_EMU;
	va_list list;
	int result;

	*emu = (struct emu){.dir = "/tmp/rm-emu-XXXXXX"};
	va_start(list, emu);
	emulator_collect(words, program, list);
	va_end(list);
	result = emulator_start(words, emu->dir, &emu->pid);
	snprintf(emu->ctl, sizeof(emu->ctl), "%s/nvidiactl", emu->dir);
	setenv("GPREEMPT_NVIDIACTL", emu->ctl, 1);
	setenv("GPREEMPT_NVML", NVML_EMU, 1);
	return result;
}

int emu_stop(struct emu *emu)
{
	return emulator_stop(emu->dir, &emu->pid);
}

/* state.c writes one group on a line. Engine 1 computes. */
static struct emulator_search find_groups(const struct emu *emu, pid_t pid, const char *field)
{
	return emulator_find(emu->dir, (struct emulator_search){.key = "engine",
								.wanted = 1,
								.second = "pid",
								.wanted_second = (uint64_t)pid,
								.field = field});
}

uint32_t emu_groups(const struct emu *emu, pid_t pid)
{
	return find_groups(emu, pid, NULL).lines;
}

uint32_t emu_groups_held(const struct emu *emu, pid_t pid)
{
	return (uint32_t)find_groups(emu, pid, "held").sum;
}

uint32_t emu_disabled(const struct emu *emu, pid_t pid)
{
	return (uint32_t)find_groups(emu, pid, "disabled").sum;
}

uint64_t emu_group_sum(const struct emu *emu, pid_t pid, const char *field)
{
	return find_groups(emu, pid, field).sum;
}

static void add_client(const char *line, void *arg)
{
	*(uint32_t *)arg += strstr(line, "\"index\":") && strstr(line, "\"uid\":");
}

uint32_t emu_clients(const struct emu *emu)
{
	uint32_t clients = 0;

	emulator_each_line(emu->dir, add_client, &clients);
	return clients;
}

static void read_memory(const char *line, void *arg)
{
	if (!strncmp(line, "\"memory\":", 9))
		emulator_number(line, "memory", arg);
}

uint64_t emu_memory(const struct emu *emu)
{
	uint64_t bytes = 0;

	emulator_each_line(emu->dir, read_memory, &bytes);
	return bytes;
}
