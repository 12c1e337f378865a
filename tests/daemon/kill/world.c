/* SPDX-License-Identifier: Apache-2.0 */
#include "world.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/run_dir.h"
#include "emu/common/emulator.h"

#define SKIP         77
#define LOG_LINES    60   /* shown when something went wrong */
#define ORPHANS_MS   6000 /* of a keeper: a child has 5 s for a driver that does not answer */
#define TICKS_A_CALL 10
#define ON_TIME_NS   (200 * GP_NS_PER_US)

static const struct target targets[TARGETS] = {
	{.class = "lc", .source = BY_RULE, .lasting = true},
	{.class = "be", .source = BY_RULE, .busy = true, .lasting = true},
	[STEERED] = {.class = "be", .source = BY_USER, .busy = true},
	{.class = "lc", .source = BY_USER},
	{.class = "be", .source = BY_RULE, .busy = true},
	[UNMANAGED] = {.class = "unmanaged", .source = BY_NOBODY},
};

/* Turns are short so that everybody has one within the limit. */
static const char config[] = "policy: priority:quantum=50\n"
			     "log: warn\n"
			     "rules:\n"
			     "  - match: {env: KILL_TEST_CLASS=lc}\n"
			     "    class: lc\n"
			     "  - match: {env: KILL_TEST_CLASS=be}\n"
			     "    class: be\n";

static void show_log(const struct world *w)
{
	char text[64 * 1024] = "";
	FILE *f = fopen(w->log, "re");
	const char *line;
	size_t n = 0;

	if (!f)
		return;
	fseek(f, 0, SEEK_END);
	fseek(f, ftell(f) > (long)sizeof text - 1 ? -(long)sizeof text + 1 : -ftell(f), SEEK_END);
	n = fread(text, 1, sizeof text - 1, f);
	fclose(f);
	text[n] = 0;
	line = text + n;
	for (unsigned lines = 0; line > text && lines <= LOG_LINES; line--)
		lines += line[-1] == '\n';
	fprintf(stderr, "---- the log's end\n%s\n", line);
}

static void show_driver(const struct world *w)
{
	struct gpu_look look;

	w->gpu->look(&look);
	for (unsigned i = 0; i < look.n; i++)
		fprintf(stderr, "driver: pid %d run %llu ms, slice %llu us%s%s\n", look.task[i].pid,
			(unsigned long long)look.task[i].run_ns / GP_NS_PER_MS,
			(unsigned long long)look.task[i].slice_us,
			look.task[i].held ? ", held" : "", look.task[i].changed ? ", changed" : "");
	for (unsigned i = 0; i < TARGETS; i++)
		fprintf(stderr, "target %u: pid %d %s, had run %llu ms\n", i, w->target[i].load.pid,
			w->target[i].class,
			(unsigned long long)w->target[i].mark_ns / GP_NS_PER_MS);
}

/* Where its threads are. */
static void show_threads(pid_t pid)
{
	char path[64], command[512];

	snprintf(path, sizeof path, "/proc/%d/task", pid);
	snprintf(command, sizeof command,
		 "for t in %s/*; do echo \"$(cat $t/comm): state $(cut -d' ' -f3 $t/stat), in "
		 "$(cat $t/wchan)\"; done >&2",
		 path);
	if (access(path, F_OK) || system(command)) /* NOLINT(cert-env33-c): our own words */
		fprintf(stderr, "%s is not there\n", path);
}

void fail(struct world *w, const char *format, ...)
{
	va_list list;

	fflush(stdout);
	fprintf(stderr, "%s, seed %llu, round %u (%s): ", w->gpu->name, (unsigned long long)w->seed,
		w->round, w->doing);
	va_start(list, format);
	vfprintf(stderr, format, list);
	va_end(list);
	fprintf(stderr, "\ngpreemptd %d, gpreempt-keeper %d\n", w->daemon, w->keeper);
	if (w->hostile) /* the first byte is 0 when the rule was cleared */
		fprintf(stderr, "the last rule of the hostile driver: *%s", w->hostile->text + 1);
	show_threads(w->daemon);
	show_driver(w);
	show_log(w);
	if (getenv("GPREEMPT_PAUSE")) /* to look at it */
		pause();
	world_abandon(w);
	exit(1);
}

static void make_folder(struct world *w)
{
	char run[80];
	FILE *f;

	/* In memory, as /run is: who writes a record to a file on a disk waits for the disk. */
	snprintf(w->folder, sizeof w->folder, "%s/gpreempt-kill-XXXXXX",
		 access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
	if (!mkdtemp(w->folder))
		fail(w, "%s: %d", w->folder, errno);
	snprintf(run, sizeof run, "%s/run", w->folder);
	snprintf(w->config, sizeof w->config, "%s/gpreempt.yaml", w->folder);
	snprintf(w->log, sizeof w->log, "%s/log", w->folder);
	setenv("GPREEMPT_RUN", run, 1);
	unsetenv("GPREEMPT_UNDO");
	unsetenv("GPREEMPT_SOCKET");
	unsetenv("NOTIFY_SOCKET");
	f = fopen(w->config, "we");
	if (!f || fputs(config, f) < 0 || fclose(f))
		fail(w, "%s: %d", w->config, errno);
}

static void remove_folder(const char *path)
{
	struct dirent *e;
	char name[512];
	DIR *dir = opendir(path);

	while (dir && (e = readdir(dir))) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		snprintf(name, sizeof name, "%s/%s", path, e->d_name);
		if (e->d_type == DT_DIR)
			remove_folder(name);
		else
			unlink(name);
	}
	if (dir)
		closedir(dir);
	rmdir(path);
}

static uint64_t now_ns(void)
{
	return gp_monotonic_ns();
}

static void time_a_call(struct shared *s, const char *path)
{
	uint64_t start_ns = now_ns(), took_ns;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	took_ns = now_ns() - start_ns;
	if (fd < 0)
		return;
	close(fd);
	if (!s->best_call_ns || took_ns < s->best_call_ns)
		atomic_store(&s->best_call_ns, took_ns);
	atomic_fetch_add(&s->call_ns, took_ns);
	atomic_fetch_add(&s->calls, 1);
}

/* How much later than a millisecond a bare timer comes, in all; every few of them, a call. */
static void start_timer(struct world *w)
{
	char path[96];

	w->timer = fork();
	if (w->timer)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_TIMERSLACK, 1ul);
	snprintf(path, sizeof path, "%s/counts", w->gpu->folder());
	for (unsigned ticks = 0;; ticks++) {
		uint64_t due_ns = now_ns() + GP_NS_PER_MS, at_ns;

		emulator_sleep_ms(1);
		at_ns = now_ns();
		if (at_ns > due_ns + ON_TIME_NS)
			atomic_fetch_add(&w->shared->late_ns, at_ns - due_ns);
		if (ticks % TICKS_A_CALL == 0)
			time_a_call(w->shared, path);
	}
}

/* From the beginning to the end. */

void world_begin(struct world *w, const struct gpu *gpu)
{
	struct gp_error err = {0};
	int r;

	w->gpu = gpu;
	w->doing = "the beginning";
	memcpy(w->target, targets, sizeof w->target);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	r = gpu->start();
	if (r)
		exit(r == -ENODEV ? SKIP : 1);
	make_folder(w);
	w->shared = mmap(NULL, sizeof *w->shared, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (w->shared == MAP_FAILED)
		fail(w, "no memory");
	start_timer(w);
	if (w->is_hostile)
		hostile_begin(w);
	r = gp_run_dir_make(&err);
	if (!r)
		r = gp_undo_open(&w->undo, true, &err);
	if (r)
		fail(w, "%s", err.text);
	start_keeper(w);
	start_daemon(w);
	for (unsigned i = 0; i < TARGETS; i++)
		start_target(w, i);
	start_client(w, LISTENER);
	start_client(w, STEERER);
}

static bool is_mounted(const char *folder)
{
	char line[1024];
	FILE *f = fopen("/proc/self/mountinfo", "re");
	bool found = false;

	while (f && !found && fgets(line, sizeof line, f))
		found = strstr(line, folder) != NULL;
	if (f)
		fclose(f);
	return found;
}

static void check_folder(struct world *w)
{
	static const char *const gone[] = {"gpreemptd.sock", "hint.sock"};
	char path[96];

	for (unsigned i = 0; i < sizeof gone / sizeof *gone; i++) {
		snprintf(path, sizeof path, "%s/run/%s", w->folder, gone[i]);
		if (!access(path, F_OK))
			fail(w, "%s is left", path);
	}
	if (is_mounted(w->gpu->folder()))
		fail(w, "%s is still mounted", w->gpu->folder());
}

void check_log(struct world *w, const char *bad)
{
	char line[1024];
	FILE *f = fopen(w->log, "re");
	bool found = false;

	while (f && !found && fgets(line, sizeof line, f))
		found = strstr(line, bad);
	if (f)
		fclose(f);
	if (found)
		fail(w, "in the log: %s", line);
}

static void end_services(struct world *w)
{
	struct limit limit;
	int status = end_orderly(&w->daemon);

	if (status)
		fail(w, "gpreemptd ended with status %d", status);
	limit = limit_begin(w, LIMIT_MS);
	mark_progress(w);
	settle_untouched(w, &limit);
	status = end_orderly(&w->keeper);
	if (status)
		fail(w, "gpreempt-keeper ended with status %d", status);
}

void world_end(struct world *w)
{
	w->doing = "the end";
	for (unsigned i = 0; i < CLIENTS; i++)
		kill_now(w, &w->client[i]);
	end_services(w);
	for (unsigned i = 0; i < TARGETS; i++)
		end_target(w, i);
	kill_now(w, &w->timer);
	gp_undo_close(w->undo);
	if (w->gpu->stop())
		fail(w, "the emulator failed");
	if (!nobody_is_left(w, ORPHANS_MS))
		fail(w, "a process is left that nobody waits for");
	check_folder(w);
	/* What a sanitizer found in a program that was killed before it could say so by its status.
	 */
	check_log(w, "Sanitizer");
	check_log(w, "runtime error:");
	munmap(w->shared, sizeof *w->shared);
	remove_folder(w->folder);
}

static void kill_quietly(pid_t pid)
{
	if (pid > 0)
		kill(pid, SIGKILL);
}

void world_abandon(struct world *w)
{
	kill_quietly(w->daemon);
	kill_quietly(w->keeper);
	kill_quietly(w->timer);
	for (unsigned i = 0; i < CLIENTS; i++)
		kill_quietly(w->client[i]);
	for (unsigned i = 0; i < TARGETS; i++)
		kill_quietly(w->target[i].load.pid);
	w->gpu->stop();
	if (!getenv("GPREEMPT_KEEP"))
		remove_folder(w->folder);
}
