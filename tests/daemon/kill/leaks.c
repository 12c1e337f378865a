/* SPDX-License-Identifier: Apache-2.0 */
/* Open files and memory of the daemon and the keeper must not grow, however often others die. */
#include <dirent.h>
#include <stdio.h>

#include "base/clock.h"
#include "emu/common/emulator.h"
#include "world.h"

#define FILES_SPARE 2   /* a client that is just being served, a file that is just being read */
#define KB_SPARE    512 /* of a heap that finds its size */
#define SAMPLES     50

static unsigned usual_daemon, usual_keeper;
static uint64_t first_daemon_kb, first_keeper_kb;

unsigned open_files(pid_t pid)
{
	char path[48];
	unsigned n = 0;
	DIR *dir;

	snprintf(path, sizeof path, "/proc/%d/fd", pid);
	dir = opendir(path);
	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n;
}

/* Without files: pages of the undo file come in as it is used. */
uint64_t resident_kb(pid_t pid)
{
	char path[48], line[128];
	unsigned long kb = 0;
	FILE *f;

	snprintf(path, sizeof path, "/proc/%d/status", pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof line, f))
		if (sscanf(line, "RssAnon: %lu", &kb) == 1)
			break;
	if (f)
		fclose(f);
	return kb;
}

static unsigned more(unsigned a, unsigned b)
{
	return a > b ? a : b;
}

/* Every target was held once, or twice: some files are opened for that. */
void learn_files(struct world *w)
{
	struct limit limit = limit_begin(w, 10 * LIMIT_MS);

	while (atomic_load(&w->shared->holds) < 2ull * TARGETS) {
		if (limit_is_over(w, &limit))
			fail(w, "the client that steers does not get on");
		read_targets(w);
		emulator_sleep_ms(10);
	}
	for (unsigned i = 0; i < SAMPLES; i++) {
		usual_daemon = more(usual_daemon, open_files(w->daemon));
		usual_keeper = more(usual_keeper, open_files(w->keeper));
		emulator_sleep_ms(10);
	}
}

static void check(struct world *w, const char *who, pid_t pid, unsigned usual)
{
	struct limit limit = limit_begin(w, LIMIT_MS);
	unsigned n;

	while ((n = open_files(pid)) > usual + FILES_SPARE) {
		if (limit_is_over(w, &limit))
			fail(w, "%s has %u open files, and had %u", who, n, usual);
		read_targets(w);
		emulator_sleep_ms(10);
	}
}

void check_files(struct world *w)
{
	check(w, "gpreemptd", w->daemon, usual_daemon);
	check(w, "gpreempt-keeper", w->keeper, usual_keeper);
}

void check_memory(struct world *w, bool first)
{
	uint64_t daemon_kb = resident_kb(w->daemon), keeper_kb = resident_kb(w->keeper);

	if (first) {
		first_daemon_kb = daemon_kb;
		first_keeper_kb = keeper_kb;
		return;
	}
	printf("memory: gpreemptd %llu kB then, %llu kB now; gpreempt-keeper %llu kB, %llu kB\n",
	       (unsigned long long)first_daemon_kb, (unsigned long long)daemon_kb,
	       (unsigned long long)first_keeper_kb, (unsigned long long)keeper_kb);
	if (SANITIZED) /* which keep what was freed */
		return;
	if (daemon_kb > first_daemon_kb + first_daemon_kb / 10 + KB_SPARE)
		fail(w, "gpreemptd grows");
	if (keeper_kb > first_keeper_kb + first_keeper_kb / 10 + KB_SPARE)
		fail(w, "gpreempt-keeper grows");
}
