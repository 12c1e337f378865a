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

#include "emu.h"

#define MAX_WORDS        32
#define START_TIMEOUT_MS 10000
#define STOP_TIMEOUT_MS  20000

void emu_sleep_ms(unsigned ms)
{
	struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};

	while (nanosleep(&time, &time) && errno == EINTR)
		;
}

bool emu_wait(bool (*is_so)(void *arg), void *arg)
{
	for (int i = 0; i < 1000; i++) {
		if (is_so(arg))
			return true;
		emu_sleep_ms(5);
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

static int start(const char *program, char **words, int death_signal, pid_t *pid, int *out)
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
	return *pid < 0 ? -errno : wait_ready(*out);
}

/* Exit status, or -1. Kills what does not end. */
static int wait_end(pid_t pid)
{
	int status;

	for (int i = 0; i < STOP_TIMEOUT_MS / 10; i++) {
		if (waitpid(pid, &status, WNOHANG) == pid)
			return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
		emu_sleep_ms(10);
	}
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
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
int emu_start(struct emu *emu, ...)
{
	char *words[MAX_WORDS], program[] = RM_EMU;
	int out = -1, n = 0, result;
	va_list list;

	memset(emu, 0, sizeof(*emu));
	if (access("/dev/fuse", R_OK | W_OK) || geteuid() != 0) {
		fprintf(stderr, "the emulator needs /dev/fuse and root\n");
		return -ENODEV;
	}
	va_start(list, emu);
	collect(words, program, list);
	va_end(list);
	strcpy(emu->dir, "/tmp/rm-emu-XXXXXX");
	if (!mkdtemp(emu->dir))
		return -errno;
	while (words[n])
		n++;
	words[n] = emu->dir;
	words[n + 1] = NULL;
	result = start(program, words, SIGTERM, &emu->pid, &out);
	close(out);
	snprintf(emu->ctl, sizeof(emu->ctl), "%s/nvidiactl", emu->dir);
	setenv("GPREEMPT_NVIDIACTL", emu->ctl, 1);
	setenv("GPREEMPT_NVML", NVML_EMU, 1);
	if (result)
		emu_stop(emu);
	return result;
}

int emu_stop(struct emu *emu)
{
	int status = 0;

	if (emu->pid > 0) {
		kill(emu->pid, SIGTERM);
		status = wait_end(emu->pid);
	}
	if (status)
		fprintf(stderr, "rm-emu ended with status %d\n", status);
	umount2(emu->dir, MNT_DETACH); /* where it was killed */
	rmdir(emu->dir);
	emu->pid = 0;
	return status ? -1 : 0;
}

int emu_control(const struct emu *emu, const char *format, ...)
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

static FILE *open_file(const struct emu *emu, const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", emu->dir, name);
	return fopen(path, "re");
}

char *emu_state(const struct emu *emu)
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
uint64_t emu_count(const struct emu *emu, const char *name)
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

/* Calls `add` for every line of the state. */
static void each_line(const struct emu *emu, void (*add)(const char *line, void *arg), void *arg)
{
	FILE *in = open_file(emu, "state");
	char *line = NULL;
	size_t size = 0;

	while (in && getline(&line, &size, in) > 0)
		add(line, arg);
	free(line);
	if (in)
		fclose(in);
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
	*value = strtoull(at + strlen(key), NULL, 10);
	return true;
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

	if (!number_in(line, "engine", &engine) || !number_in(line, "pid", &pid) || engine != 1 ||
	    pid != search->pid)
		return;
	search->lines++;
	search->held += strstr(line, "\"held\":true") != NULL;
	if (search->field && number_in(line, search->field, &value))
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
		number_in(line, "memory", &search->sum);
}

uint32_t emu_groups(const struct emu *emu, pid_t pid)
{
	struct search search = {.pid = (uint64_t)pid};

	each_line(emu, add_group, &search);
	return search.lines;
}

uint32_t emu_groups_held(const struct emu *emu, pid_t pid)
{
	struct search search = {.pid = (uint64_t)pid};

	each_line(emu, add_group, &search);
	return search.held;
}

uint64_t emu_group_sum(const struct emu *emu, pid_t pid, const char *field)
{
	struct search search = {.pid = (uint64_t)pid, .field = field};

	each_line(emu, add_group, &search);
	return search.sum;
}

uint32_t emu_clients(const struct emu *emu)
{
	struct search search = {0};

	each_line(emu, add_client, &search);
	return search.lines;
}

uint64_t emu_memory(const struct emu *emu)
{
	struct search search = {0};

	each_line(emu, add_memory, &search);
	return search.sum;
}

/* ---- loads ----------------------------------------------------------------------------------- */
int emu_load_start(struct emu_load *load, ...)
{
	char *words[MAX_WORDS], program[] = RM_LOAD;
	va_list list;
	int result;

	va_start(list, load);
	collect(words, program, list);
	va_end(list);
	result = start(program, words, SIGKILL, &load->pid, &load->out);
	if (result)
		emu_load_kill(load);
	return result;
}

int emu_load_wait(struct emu_load *load)
{
	int status = wait_end(load->pid);

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
	kill(load->pid, SIGKILL);
	emu_load_wait(load);
}
