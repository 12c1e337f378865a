/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kfd_emu.h"

#define MAX_WORDS        32
#define START_TIMEOUT_MS 20000
#define STOP_TIMEOUT_MS  60000
#define WAIT_TIMEOUT_MS  20000

void kfd_emu_sleep_ms(unsigned ms)
{
	struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};

	while (nanosleep(&time, &time) && errno == EINTR)
		;
}

bool kfd_emu_wait(bool (*is_so)(void *arg), void *arg)
{
	for (int i = 0; i < WAIT_TIMEOUT_MS / 5; i++) {
		if (is_so(arg))
			return true;
		kfd_emu_sleep_ms(5);
	}
	return is_so(arg);
}

/* ---- processes ------------------------------------------------------------------------------- */
static void become_child(const char *program, char **words, int out, int death_signal)
{
	prctl(PR_SET_PDEATHSIG, death_signal);
	dup2(out, STDOUT_FILENO);
	execv(program, words);
	perror(program);
	_exit(127);
}

/* Waits for a line that begins with `ready`. The rest stays in the pipe. */
static int wait_ready(int fd)
{
	struct pollfd ready = {.fd = fd, .events = POLLIN};
	char line[256];
	size_t length = 0;

	while (poll(&ready, 1, START_TIMEOUT_MS) == 1 && read(fd, &line[length], 1) == 1) {
		if (line[length] != '\n') {
			length += length < sizeof(line) - 2;
			continue;
		}
		if (length >= 5 && !memcmp(line, "ready", 5))
			return 0;
		length = 0;
	}
	return -ENODEV;
}

static int spawn(const char *program, char **words, int death_signal, pid_t *pid, int *out)
{
	int pipes[2];

	*pid = *out = -1;
	if (pipe2(pipes, O_CLOEXEC))
		return -errno;
	*pid = fork();
	if (!*pid)
		become_child(program, words, pipes[1], death_signal);
	close(pipes[1]);
	*out = pipes[0];
	return *pid < 0 ? -errno : 0;
}

/* Ends only: stops of one that the test itself traces are for somebody else. */
static bool has_ended(pid_t pid, int *status)
{
	siginfo_t info = {0};

	/* The kernel tells tracers of stops, too, whatever they ask for. */
	if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG) || !info.si_pid ||
	    info.si_code == CLD_TRAPPED || info.si_code == CLD_STOPPED)
		return false;
	*status = info.si_code == CLD_EXITED ? info.si_status : -1;
	return true;
}

/* Exit status, or -1. Kills what does not end. */
static int wait_end(pid_t pid)
{
	int status = -1;

	for (int i = 0; i < STOP_TIMEOUT_MS / 10; i++) {
		if (has_ended(pid, &status))
			return status;
		kfd_emu_sleep_ms(10);
	}
	kill(pid, SIGKILL);
	for (int i = 0; i < 100 && !has_ended(pid, &status); i++)
		kfd_emu_sleep_ms(10);
	return -1;
}

static void collect(char **words, char *program, va_list list)
{
	int n = 0;

	words[n++] = program;
	while (n < MAX_WORDS - 2 && (words[n] = va_arg(list, char *)))
		n++;
	words[n] = NULL;
}

/* ---- the emulator ---------------------------------------------------------------------------- */
static void set_paths(struct kfd_emu *emu)
{
	snprintf(emu->kfd, sizeof(emu->kfd), "%s/kfd", emu->dir);
	snprintf(emu->sysfs, sizeof(emu->sysfs), "%s/sysfs", emu->dir);
	snprintf(emu->debugfs, sizeof(emu->debugfs), "%s/debugfs", emu->dir);
	setenv("GPREEMPT_KFD", emu->kfd, 1);
	setenv("GPREEMPT_KFD_SYSFS", emu->sysfs, 1);
	setenv("GPREEMPT_KFD_DEBUGFS", emu->debugfs, 1);
}

static int start_in_folder(struct kfd_emu *emu, char *program, char **words)
{
	int out = -1, n = 0, result;

	while (words[n])
		n++;
	words[n] = emu->dir;
	words[n + 1] = NULL;
	result = spawn(program, words, SIGTERM, &emu->pid, &out);
	if (!result)
		result = wait_ready(out);
	close(out);
	return result;
}

int kfd_emu_start(struct kfd_emu *emu, ...)
{
	char *words[MAX_WORDS + 1], program[] = KFD_EMU;
	va_list list;
	int result;

	memset(emu, 0, sizeof(*emu));
	if (access("/dev/fuse", R_OK | W_OK) || geteuid() != 0) {
		fprintf(stderr, "the emulator needs /dev/fuse and root\n");
		return -ENODEV;
	}
	va_start(list, emu);
	collect(words, program, list);
	va_end(list);
	strcpy(emu->dir, "/tmp/kfd-emu-XXXXXX");
	if (!mkdtemp(emu->dir))
		return -errno;
	result = start_in_folder(emu, program, words);
	if (result)
		kfd_emu_stop(emu);
	else
		set_paths(emu);
	return result;
}

int kfd_emu_stop(struct kfd_emu *emu)
{
	int status = 0;

	if (emu->pid > 0) {
		kill(emu->pid, SIGTERM);
		status = wait_end(emu->pid);
	}
	if (status)
		fprintf(stderr, "kfd-emu ended with status %d\n", status);
	umount2(emu->dir, MNT_DETACH); /* where it was killed */
	rmdir(emu->dir);
	emu->pid = 0;
	return status ? -1 : 0;
}

int kfd_emu_control(const struct kfd_emu *emu, const char *format, ...)
{
	char path[128], text[256];
	va_list list;
	int fd, length, result = 0;

	va_start(list, format);
	length = vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	snprintf(path, sizeof(path), "%s/control", emu->dir);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (write(fd, text, (size_t)length) != length)
		result = -errno;
	close(fd);
	return result;
}

static FILE *open_file(const struct kfd_emu *emu, const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", emu->dir, name);
	return fopen(path, "re");
}

char *kfd_emu_state(const struct kfd_emu *emu)
{
	FILE *in = open_file(emu, "state");
	char *text = NULL;
	size_t size = 0;

	if (!in)
		return NULL;
	if (getdelim(&text, &size, '\0', in) < 0) {
		free(text);
		text = NULL;
	}
	fclose(in);
	return text;
}

/* ---- looking something up -------------------------------------------------------------------- */
uint64_t kfd_emu_count(const struct kfd_emu *emu, const char *name)
{
	FILE *in = open_file(emu, "counts");
	char word[64];
	unsigned long value = 0;

	while (in && fscanf(in, "%63s %lu", word, &value) == 2) {
		if (!strcmp(word, name))
			break;
		value = 0;
	}
	if (in)
		fclose(in);
	return value;
}

/* The first "name":number of a line. */
static bool number_in(const char *line, const char *name, uint64_t *value)
{
	char key[64];
	const char *at;

	snprintf(key, sizeof(key), "\"%s\":", name);
	at = strstr(line, key);
	if (!at)
		return false;
	at += strlen(key);
	*value = *at == 't' ? 1 : strtoull(at, NULL, 10);
	return true;
}

/* A line of `state` has "key":wanted and perhaps "second":wanted_second. */
struct search {
	const char *key, *second, *field;
	uint64_t wanted, wanted_second;
	uint64_t first, sum;
	uint32_t lines;
};

static void look_at(struct search *search, const char *line)
{
	uint64_t value;

	if (!number_in(line, search->key, &value) || value != search->wanted)
		return;
	if (search->second &&
	    (!number_in(line, search->second, &value) || value != search->wanted_second))
		return;
	if (search->field && number_in(line, search->field, &value)) {
		search->sum += value;
		if (search->first == UINT64_MAX)
			search->first = value;
	}
	search->lines++;
}

static struct search find(const struct kfd_emu *emu, struct search search)
{
	FILE *in = open_file(emu, "state");
	char *line = NULL;
	size_t size = 0;

	search.first = UINT64_MAX;
	while (in && getline(&line, &size, in) > 0)
		look_at(&search, line);
	free(line);
	if (in)
		fclose(in);
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

/* ---- loads ----------------------------------------------------------------------------------- */
static int spawn_load(struct kfd_load *load, va_list list)
{
	char *words[MAX_WORDS], program[] = KFD_LOAD;

	collect(words, program, list);
	return spawn(program, words, SIGKILL, &load->pid, &load->out);
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
	return wait_ready(load->out);
}

int kfd_load_start(struct kfd_load *load, ...)
{
	va_list list;
	int result;

	va_start(list, load);
	result = spawn_load(load, list);
	va_end(list);
	if (!result)
		result = wait_ready(load->out);
	if (result)
		kfd_load_kill(load);
	return result;
}

int kfd_load_wait(struct kfd_load *load)
{
	int status = wait_end(load->pid);

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
