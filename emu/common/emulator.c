/* SPDX-License-Identifier: Apache-2.0 */
#include "emulator.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define START_TIMEOUT_MS 20000
#define STOP_TIMEOUT_MS  60000

void emulator_sleep_ms(unsigned ms)
{
	struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};

	while (nanosleep(&time, &time) && errno == EINTR)
		;
}

void emulator_collect(char *words[EMULATOR_WORDS_MAX], char *program, va_list list)
{
	int n = 0;

	words[n++] = program;
	while (n < EMULATOR_WORDS_MAX - 2 && (words[n] = va_arg(list, char *)))
		n++;
	words[n] = NULL;
}

static void become_child(char **words, int out, int death_signal)
{
	prctl(PR_SET_PDEATHSIG, death_signal);
	dup2(out, STDOUT_FILENO);
	execv(words[0], words);
	perror(words[0]);
	_exit(127);
}

int emulator_spawn(char **words, int death_signal, pid_t *pid, int *out)
{
	int pipes[2];

	*pid = *out = -1;
	if (pipe2(pipes, O_CLOEXEC))
		return -errno;
	*pid = fork();
	if (!*pid)
		become_child(words, pipes[1], death_signal);
	close(pipes[1]);
	*out = pipes[0];
	return *pid < 0 ? -errno : 0;
}

int emulator_wait_ready(int fd)
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

/* Exits only: the test handles stops of a process that it traces. */
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

int emulator_wait_end(pid_t pid)
{
	int status = -1;

	for (int i = 0; i < STOP_TIMEOUT_MS / 10; i++) {
		if (has_ended(pid, &status))
			return status;
		emulator_sleep_ms(10);
	}
	kill(pid, SIGKILL);
	for (int i = 0; i < 100 && !has_ended(pid, &status); i++)
		emulator_sleep_ms(10);
	return -1;
}

static int spawn_load(struct emulator_load *load, const char *program, va_list list)
{
	char *words[EMULATOR_WORDS_MAX], path[PATH_MAX];

	snprintf(path, sizeof(path), "%s", program);
	emulator_collect(words, path, list);
	return emulator_spawn(words, SIGKILL, &load->pid, &load->out);
}

int emulator_load_spawn(struct emulator_load *load, const char *program, ...)
{
	va_list list;
	int result;

	va_start(list, program);
	result = spawn_load(load, program, list);
	va_end(list);
	return result;
}

int emulator_load_start(struct emulator_load *load, const char *program, ...)
{
	va_list list;
	int result;

	va_start(list, program);
	result = spawn_load(load, program, list);
	va_end(list);
	if (!result)
		result = emulator_wait_ready(load->out);
	if (result)
		emulator_load_kill(load);
	return result;
}

int emulator_load_wait(struct emulator_load *load)
{
	int status = emulator_wait_end(load->pid);

	close(load->out);
	load->pid = 0;
	return status;
}

int emulator_load_stop(struct emulator_load *load)
{
	kill(load->pid, SIGTERM);
	return emulator_load_wait(load);
}

void emulator_load_kill(struct emulator_load *load)
{
	if (load->pid <= 0)
		return;
	kill(load->pid, SIGKILL);
	emulator_load_wait(load);
}

static int start_in(char **words, char *dir, pid_t *pid)
{
	int out = -1, n = 0, result;

	while (words[n])
		n++;
	words[n] = dir;
	words[n + 1] = NULL;
	result = emulator_spawn(words, SIGTERM, pid, &out);
	if (!result)
		result = emulator_wait_ready(out);
	close(out);
	return result;
}

int emulator_start(char **words, char *dir, pid_t *pid)
{
	int result;

	if (access("/dev/fuse", R_OK | W_OK) || geteuid() != 0) {
		fprintf(stderr, "the emulator needs /dev/fuse and root\n");
		return -ENODEV;
	}
	if (!mkdtemp(dir))
		return -errno;
	result = start_in(words, dir, pid);
	if (result)
		emulator_stop(dir, pid);
	return result;
}

int emulator_stop(const char *dir, pid_t *pid)
{
	int status = 0;

	if (*pid > 0) {
		kill(*pid, SIGTERM);
		status = emulator_wait_end(*pid);
	}
	if (status)
		fprintf(stderr, "the emulator in %s ended with status %d\n", dir, status);
	umount2(dir, MNT_DETACH); /* where it was killed */
	rmdir(dir);
	*pid = 0;
	return status ? -1 : 0;
}

int emulator_control(const char *dir, const char *format, ...)
{
	char path[128], text[256];
	int length, fd, result = 0;
	va_list list;

	va_start(list, format);
	length = vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	snprintf(path, sizeof(path), "%s/control", dir);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (write(fd, text, (size_t)length) != length)
		result = -errno;
	close(fd);
	return result;
}

static FILE *open_file(const char *dir, const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return fopen(path, "re");
}

char *emulator_state(const char *dir)
{
	FILE *in = open_file(dir, "state");
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

uint64_t emulator_count(const char *dir, const char *name)
{
	FILE *in = open_file(dir, "counts");
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

void emulator_each_line(const char *dir, void (*add)(const char *line, void *arg), void *arg)
{
	FILE *in = open_file(dir, "state");
	char *line = NULL;
	size_t size = 0;

	while (in && getline(&line, &size, in) > 0)
		add(line, arg);
	free(line);
	if (in)
		fclose(in);
}

bool emulator_number(const char *line, const char *name, uint64_t *value)
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

static bool has(const char *line, const char *key, uint64_t wanted)
{
	uint64_t value;

	return !key || (emulator_number(line, key, &value) && value == wanted);
}

static void look_at(const char *line, void *arg)
{
	struct emulator_search *search = arg;
	uint64_t value;

	if (!has(line, search->key, search->wanted) ||
	    !has(line, search->second, search->wanted_second))
		return;
	if (search->field && emulator_number(line, search->field, &value)) {
		search->sum += value;
		if (search->first == UINT64_MAX)
			search->first = value;
	}
	search->lines++;
}

struct emulator_search emulator_find(const char *dir, struct emulator_search search)
{
	search.first = UINT64_MAX;
	emulator_each_line(dir, look_at, &search);
	return search;
}
