/* SPDX-License-Identifier: Apache-2.0 */
#include "kfd_emu.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "emu/common/emulator.h"

void kfd_emu_sleep_ms(unsigned ms)
{
	emulator_sleep_ms(ms);
}

bool kfd_emu_wait(bool (*is_so)(void *arg), void *arg)
{
	return emulator_wait(is_so, arg);
}

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

int kfd_emu_control(const struct kfd_emu *emu, const char *format, ...)
{
	va_list list;
	int result;

	va_start(list, format);
	result = emulator_control(emu->dir, format, list);
	va_end(list);
	return result;
}

char *kfd_emu_state(const struct kfd_emu *emu)
{
	return emulator_state(emu->dir);
}

uint64_t kfd_emu_count(const struct kfd_emu *emu, const char *name)
{
	return emulator_count(emu->dir, name);
}

/* A line of `state` has "key":wanted and perhaps "second":wanted_second. */
struct search {
	const char *key, *second, *field;
	uint64_t wanted, wanted_second;
	uint64_t first, sum;
	uint32_t lines;
};

static void look_at(const char *line, void *arg)
{
	struct search *search = arg;
	uint64_t value;

	if (!emulator_number(line, search->key, &value) || value != search->wanted)
		return;
	if (search->second &&
	    (!emulator_number(line, search->second, &value) || value != search->wanted_second))
		return;
	if (search->field && emulator_number(line, search->field, &value)) {
		search->sum += value;
		if (search->first == UINT64_MAX)
			search->first = value;
	}
	search->lines++;
}

static struct search find(const struct kfd_emu *emu, struct search search)
{
	search.first = UINT64_MAX;
	emulator_each_line(emu->dir, look_at, &search);
	return search;
}

uint64_t kfd_emu_queue_number(const struct kfd_emu *emu, pid_t pid, uint32_t queue,
			      const char *field)
{
	return find(emu, (struct search){.key = "pid",
					 .wanted = (uint64_t)pid,
					 .second = "queue",
					 .wanted_second = queue,
					 .field = field})
		.first;
}

uint64_t kfd_emu_process_number(const struct kfd_emu *emu, pid_t pid, const char *field)
{
	return find(emu, (struct search){.key = "process", .wanted = (uint64_t)pid, .field = field})
		.first;
}

uint64_t kfd_emu_device_number(const struct kfd_emu *emu, uint32_t device, const char *field)
{
	return find(emu, (struct search){.key = "device", .wanted = device, .field = field}).first;
}

uint64_t kfd_emu_process_sum(const struct kfd_emu *emu, pid_t pid, const char *field)
{
	return find(emu, (struct search){.key = "pid", .wanted = (uint64_t)pid, .field = field})
		.sum;
}

uint32_t kfd_emu_queues(const struct kfd_emu *emu, pid_t pid)
{
	return find(emu, (struct search){.key = "pid", .wanted = (uint64_t)pid}).lines;
}

static int spawn_load(struct kfd_load *load, va_list list)
{
	char *words[EMULATOR_WORDS_MAX], program[] = KFD_LOAD;

	emulator_collect(words, program, list);
	return emulator_spawn(words, SIGKILL, &load->pid, &load->out);
}

int kfd_load_spawn(struct kfd_load *load, ...)
{
	va_list list;
	int result;

	va_start(list, load);
	result = spawn_load(load, list);
	va_end(list);
	return result;
}

int kfd_load_wait_ready(struct kfd_load *load)
{
	return emulator_wait_ready(load->out);
}

int kfd_load_start(struct kfd_load *load, ...)
{
	va_list list;
	int result;

	va_start(list, load);
	result = spawn_load(load, list);
	va_end(list);
	if (!result)
		result = emulator_wait_ready(load->out);
	if (result)
		kfd_load_kill(load);
	return result;
}

int kfd_load_wait(struct kfd_load *load)
{
	int status = emulator_wait_end(load->pid);

	close(load->out);
	load->pid = 0;
	return status;
}

int kfd_load_stop(struct kfd_load *load)
{
	kill(load->pid, SIGTERM);
	return kfd_load_wait(load);
}

void kfd_load_kill(struct kfd_load *load)
{
	if (load->pid <= 0)
		return;
	kill(load->pid, SIGKILL);
	kfd_load_wait(load);
}
