/* SPDX-License-Identifier: Apache-2.0 */
#include "emu.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "emu/common/emulator.h"

void emu_sleep_ms(unsigned ms)
{
	emulator_sleep_ms(ms);
}

bool emu_wait(bool (*is_so)(void *arg), void *arg)
{
	return emulator_wait(is_so, arg);
}

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

int emu_control(const struct emu *emu, const char *format, ...)
{
	va_list list;
	int result;

	va_start(list, format);
	result = emulator_control(emu->dir, format, list);
	va_end(list);
	return result;
}

char *emu_state(const struct emu *emu)
{
	return emulator_state(emu->dir);
}

uint64_t emu_count(const struct emu *emu, const char *name)
{
	return emulator_count(emu->dir, name);
}

struct search {
	uint64_t pid;
	const char *field;
	uint64_t sum;
	uint32_t lines, held;
};

/* state.c writes one group on a line. */
static void add_group(const char *line, void *arg)
{
	struct search *search = arg;
	uint64_t pid, engine, value = 0;

	if (!emulator_number(line, "engine", &engine) || !emulator_number(line, "pid", &pid) ||
	    engine != 1 || pid != search->pid)
		return;
	search->lines++;
	search->held += strstr(line, "\"held\":true") != NULL;
	if (search->field && emulator_number(line, search->field, &value))
		search->sum += value;
}

static void add_client(const char *line, void *arg)
{
	struct search *search = arg;

	search->lines += strstr(line, "\"index\":") && strstr(line, "\"uid\":");
}

static void add_memory(const char *line, void *arg)
{
	struct search *search = arg;

	if (!strncmp(line, "\"memory\":", 9))
		emulator_number(line, "memory", &search->sum);
}

uint32_t emu_groups(const struct emu *emu, pid_t pid)
{
	struct search search = {.pid = (uint64_t)pid};

	emulator_each_line(emu->dir, add_group, &search);
	return search.lines;
}

uint32_t emu_groups_held(const struct emu *emu, pid_t pid)
{
	struct search search = {.pid = (uint64_t)pid};

	emulator_each_line(emu->dir, add_group, &search);
	return search.held;
}

uint64_t emu_group_sum(const struct emu *emu, pid_t pid, const char *field)
{
	struct search search = {.pid = (uint64_t)pid, .field = field};

	emulator_each_line(emu->dir, add_group, &search);
	return search.sum;
}

uint32_t emu_clients(const struct emu *emu)
{
	struct search search = {0};

	emulator_each_line(emu->dir, add_client, &search);
	return search.lines;
}

uint64_t emu_memory(const struct emu *emu)
{
	struct search search = {0};

	emulator_each_line(emu->dir, add_memory, &search);
	return search.sum;
}

int emu_load_start(struct emu_load *load, ...)
{
	char *words[EMULATOR_WORDS_MAX], program[] = RM_LOAD;
	va_list list;
	int result;

	va_start(list, load);
	emulator_collect(words, program, list);
	va_end(list);
	result = emulator_spawn(words, SIGKILL, &load->pid, &load->out);
	if (!result)
		result = emulator_wait_ready(load->out);
	if (result)
		emu_load_kill(load);
	return result;
}

int emu_load_wait(struct emu_load *load)
{
	int status = emulator_wait_end(load->pid);

	close(load->out);
	load->pid = 0;
	return status;
}

int emu_load_stop(struct emu_load *load)
{
	kill(load->pid, SIGTERM);
	return emu_load_wait(load);
}

void emu_load_kill(struct emu_load *load)
{
	if (load->pid <= 0)
		return;
	kill(load->pid, SIGKILL);
	emu_load_wait(load);
}
