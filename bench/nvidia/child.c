/* SPDX-License-Identifier: Apache-2.0 */
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "stop.h"

#define WATCH_MAX 8

static int left_ms(uint64_t deadline_ns)
{
	uint64_t now_ns = gp_monotonic_ns();
	uint64_t ms = deadline_ns > now_ns ? (deadline_ns - now_ns) / GP_NS_PER_MS + 1 : 0;

	return ms < 3600000 ? (int)ms : 3600000;
}

/* ---- start ---- */

static void redirect(int from, int to)
{
	if (from < 0 || dup2(from, to) < 0)
		_exit(126);
}

static void become(const struct child_spec *spec, int in, int out, pid_t parent)
{
	/* Of its own group: Ctrl-C reaches the runner alone, which ends the others in order. */
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, spec->death_signal);
	if (getppid() != parent)
		_exit(126);
	stop_forget();
	redirect(in, STDIN_FILENO);
	redirect(out, STDOUT_FILENO);
	redirect(open(spec->stderr_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600),
	         STDERR_FILENO);
	for (unsigned i = 0; i < CHILD_ENV_MAX && spec->env[i]; i++) {
		char *copy = strdup(spec->env[i]);

		if (!copy || putenv(copy))
			_exit(126);
	}
	/* exec takes pointers to what it does not change; its prototype predates const. */
	execvp(spec->argv[0], (char *const *)(uintptr_t)spec->argv);
	dprintf(STDERR_FILENO, "cannot run %s: %s\n", spec->argv[0], strerror(errno));
	_exit(127);
}

int child_start(struct child *c, const struct child_spec *spec, struct gp_error *err)
{
	int in[2], out[2];
	pid_t parent = getpid();

	*c = (struct child){
		.name = spec->name, .stderr_path = spec->stderr_path, .pidfd = -1, .copy = -1};
	if (pipe2(in, O_CLOEXEC))
		return gp_fail(err, -errno, "%s: no pipe: %s", spec->name, strerror(errno));
	if (pipe2(out, O_CLOEXEC)) {
		int code = -errno;

		close(in[0]);
		close(in[1]);
		return gp_fail(err, code, "%s: no pipe: %s", spec->name, strerror(-code));
	}
	c->pid = fork();
	if (c->pid == 0)
		become(spec, in[0], out[1], parent);
	close(in[0]);
	close(out[1]);
	c->in = in[1];
	c->out = out[0];
	fcntl(c->out, F_SETFL, O_NONBLOCK);
	if (c->pid > 0) {
		c->pidfd = (int)syscall(SYS_pidfd_open, c->pid, 0);
		if (c->pidfd >= 0) {
			if (spec->stdout_path)
				c->copy = open(spec->stdout_path,
				               O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
			return 0;
		}
		kill(c->pid, SIGKILL);
		waitpid(c->pid, NULL, 0);
	}
	close(c->in);
	close(c->out);
	c->pid = 0;
	return gp_fail(err, -EAGAIN, "%s: cannot start a process", spec->name);
}

/* ---- end ---- */

int child_exit(const struct child *c)
{
	return WIFSIGNALED(c->status) ? 128 + WTERMSIG(c->status) : WEXITSTATUS(c->status);
}

/* Reads what is there, so that a talkative child never blocks on a full pipe. */
static void drain(struct child *c)
{
	ssize_t n;

	if (c->length == sizeof c->text - 1)
		c->length = 0; /* a line that long is none we wait for */
	while ((n = read(c->out, c->text + c->length, sizeof c->text - 1 - c->length)) > 0) {
		if (c->copy >= 0 && write(c->copy, c->text + c->length, (size_t)n) < n)
			c->copy = -1; /* the copy is a courtesy */
		c->length += (size_t)n;
		if (c->length == sizeof c->text - 1)
			break;
	}
	c->text[c->length] = '\0';
}

static void reap(struct child *c)
{
	while (waitpid(c->pid, &c->status, 0) < 0 && errno == EINTR)
		;
	c->ended = true;
	drain(c);
	if (c->copy >= 0)
		close(c->copy);
	close(c->pidfd);
	close(c->out);
	if (c->in >= 0)
		close(c->in);
	c->in = -1;
}

const char *child_last_words(const struct child *c, char *out, size_t size)
{
	FILE *file = fopen(c->stderr_path, "r");
	char line[256];

	out[0] = '\0';
	if (!file)
		return out;
	while (fgets(line, sizeof line, file)) {
		line[strcspn(line, "\n")] = '\0';
		if (line[0])
			snprintf(out, size, "%s", line);
	}
	fclose(file);
	return out;
}

static int ended_early(struct child *c, struct gp_error *err)
{
	char words[192];

	reap(c);
	child_last_words(c, words, sizeof words);
	return gp_fail(err, -ECHILD, "%s ended with status %d%s%s", c->name, child_exit(c),
	               words[0] ? ": " : "", words);
}

/* True when it ended before the deadline. Not woken by the runner's own signals. */
static bool wait_end(struct child *c, uint64_t deadline_ns)
{
	for (;;) {
		struct pollfd p[] = {{.fd = c->pidfd, .events = POLLIN},
		                     {.fd = c->out, .events = POLLIN}};
		int n = poll(p, 2, left_ms(deadline_ns));

		if (p[0].revents & POLLIN)
			return true;
		if (n == 0)
			return false;
		drain(c);
		c->length = 0;
		if (p[1].revents & POLLHUP) /* closed its stdout: only its end is left to see */
			return poll(p, 1, left_ms(deadline_ns)) > 0;
	}
}

int child_end(struct child *c, bool terminate, unsigned grace_ms, struct gp_error *err)
{
	uint64_t deadline_ns = gp_monotonic_ns() + grace_ms * GP_NS_PER_MS;
	bool in_time;

	if (!c->pid || c->ended)
		return 0;
	close(c->in);
	c->in = -1;
	if (terminate)
		kill(c->pid, SIGTERM);
	in_time = wait_end(c, deadline_ns);
	if (!in_time)
		kill(c->pid, SIGKILL);
	reap(c);
	if (!in_time)
		return gp_fail(err, -ETIMEDOUT, "%s did not end within %u ms and was killed",
		               c->name, grace_ms);
	return 0;
}

/* ---- in between ---- */

void child_tell(struct child *c, const char *line)
{
	/* SIGPIPE is ignored, and a line always fits into an empty pipe. */
	if (write(c->in, line, strlen(line)) < 0 || write(c->in, "\n", 1) < 0)
		return;
}

static bool take_line(struct child *c, const char *line)
{
	char *end;

	while ((end = strchr(c->text, '\n'))) {
		size_t used = (size_t)(end - c->text) + 1;
		bool is_it;

		*end = '\0';
		is_it = !strcmp(c->text, line);
		c->length -= used;
		memmove(c->text, c->text + used, c->length + 1);
		if (is_it)
			return true;
	}
	return false;
}

int child_expect(struct child *c, const char *line, uint64_t deadline_ns, struct gp_error *err)
{
	for (;;) {
		struct pollfd p[] = {{.fd = c->out, .events = POLLIN},
		                     {.fd = c->pidfd, .events = POLLIN},
		                     {.fd = stop_fd(), .events = POLLIN}};
		int n = poll(p, 3, left_ms(deadline_ns));

		if (p[2].revents & POLLIN)
			return gp_fail(err, -EINTR, "told to stop");
		drain(c);
		if (take_line(c, line))
			return 0;
		if (p[1].revents & POLLIN)
			return ended_early(c, err);
		if (n == 0)
			return gp_fail(err, -ETIMEDOUT, "%s did not say '%s' in time", c->name,
			               line);
		if (p[0].revents & POLLHUP)
			poll(p + 1, 1, 100); /* its end follows; do not spin until then */
	}
}

int child_watch(struct child *const *child, unsigned n, const struct child *awaited,
                uint64_t deadline_ns, struct gp_error *err)
{
	struct pollfd p[WATCH_MAX + 1] = {{.fd = stop_fd(), .events = POLLIN}};
	int ready;

	for (unsigned i = 0; i < n; i++) {
		bool alive = child[i]->pid && !child[i]->ended;

		p[i + 1] = (struct pollfd){.fd = alive ? child[i]->pidfd : -1, .events = POLLIN};
	}
	do {
		ready = poll(p, n + 1, left_ms(deadline_ns));
	} while (ready < 0 && errno == EINTR);
	if (p[0].revents)
		return gp_fail(err, -EINTR, "told to stop");
	for (unsigned i = 0; i < n; i++)
		if (p[i + 1].revents && child[i] != awaited)
			return ended_early(child[i], err);
	for (unsigned i = 0; i < n; i++)
		if (p[i + 1].revents) {
			reap(child[i]);
			return 0;
		}
	return awaited ? gp_fail(err, -ETIMEDOUT, "%s did not end in time", awaited->name) : 0;
}

/* ---- what children leave behind ---- */

void child_adopt_orphans(void)
{
	prctl(PR_SET_CHILD_SUBREAPER, 1);
}

static bool signal_orphans(int with)
{
	char path[64], *word = NULL;
	size_t room = 0;
	FILE *file;
	bool any = false;

	snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
	file = fopen(path, "r");
	if (!file)
		return false;
	while (getdelim(&word, &room, ' ', file) > 0) {
		long pid = strtol(word, NULL, 10);

		if (pid <= 0) /* never a group, never everybody */
			continue;
		any = true;
		kill((pid_t)pid, with);
	}
	free(word);
	fclose(file);
	return any;
}

void child_end_orphans(void)
{
	const struct timespec pause = {.tv_nsec = 20 * (long)GP_NS_PER_MS};

	for (int i = 0; i < 150; i++) { /* 3 s, the last of them with SIGKILL */
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		if (!signal_orphans(i < 100 ? SIGTERM : SIGKILL))
			return;
		nanosleep(&pause, NULL);
	}
}
