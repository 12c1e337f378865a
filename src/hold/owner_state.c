/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the owner of an undo record is doing. The heartbeat is the evidence: a process that a cgroup
 * has frozen looks like one that sleeps. The reason for a missing heartbeat is read from /proc and
 * the cgroup file systems, for messages only.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process.h"
#include "hold/replay.h"

#define SILENT_NS (2 * GP_NS_PER_S) /* owners send a heartbeat about every 200 ms */
#define PATH_SIZE 512

/* Reads the beginning of a file. False: it cannot be read. */
static bool read_file(const char *path, char *text, size_t size)
{
	FILE *f = fopen(path, "re");
	size_t n;

	if (!f)
		return false;
	n = fread(text, 1, size - 1, f);
	text[n] = 0;
	fclose(f);
	return true;
}

/* Whether the file of a cgroup contains the word. */
static bool cgroup_says(const char *mount, const char *cgroup, const char *file, const char *word)
{
	char path[PATH_SIZE], text[256];

	snprintf(path, sizeof path, "%s%s/%s", mount, cgroup, file);
	return read_file(path, text, sizeof text) && strstr(text, word);
}

/* A line of /proc/PID/cgroup: "0::/PATH" for version 2, "6:freezer:/PATH" for version 1. */
static bool is_frozen_by(const char *line)
{
	const char *controller = strchr(line, ':');
	const char *cgroup = controller ? strchr(controller + 1, ':') : NULL;

	if (!cgroup++)
		return false;
	if (!strncmp(line, "0::", 3))
		return cgroup_says("/sys/fs/cgroup", cgroup, "cgroup.events", "frozen 1") ||
		       cgroup_says("/sys/fs/cgroup/unified", cgroup, "cgroup.events", "frozen 1");
	return !strncmp(controller, ":freezer:", 9) &&
	       cgroup_says("/sys/fs/cgroup/freezer", cgroup, "freezer.state", "FR");
}

static bool is_frozen(pid_t pid)
{
	char path[48], text[4096], *rest = NULL;

	snprintf(path, sizeof path, "/proc/%d/cgroup", pid);
	if (!read_file(path, text, sizeof text))
		return false;
	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		if (is_frozen_by(line))
			return true;
	return false;
}

static bool is_silent(const struct gp_undo_file *file, unsigned slot, const struct gp_undo_entry *e)
{
	uint64_t heartbeat_ns = gp_undo_record_heartbeat_ns(file, slot);
	struct gp_undo_scheduler scheduler;

	gp_undo_scheduler(file, &scheduler);
	if (gp_record_is_daemons(file, e))
		heartbeat_ns = scheduler.heartbeat_ns;
	return heartbeat_ns && gp_monotonic_ns() > heartbeat_ns + SILENT_NS;
}

enum gp_owner_state gp_record_owner_state(const struct gp_undo_file *file, unsigned slot,
					  const struct gp_undo_entry *e)
{
	char state;

	if (!gp_undo_owner_lives(e))
		return GP_OWNER_ENDED;
	if (!gp_undo_owner_can_run(e))
		return GP_OWNER_HUNG;
	state = gp_process_state(e->owner);
	if (state == 'T' || state == 't')
		return GP_OWNER_STOPPED;
	if (is_frozen(e->owner))
		return GP_OWNER_FROZEN;
	return is_silent(file, slot, e) ? GP_OWNER_SILENT : GP_OWNER_RUNS;
}

const char *gp_owner_state_text(enum gp_owner_state state)
{
	static const char *const texts[] = {
		[GP_OWNER_ENDED] = "has ended",
		[GP_OWNER_RUNS] = "runs",
		[GP_OWNER_STOPPED] = "is stopped by a signal or a debugger",
		[GP_OWNER_FROZEN] = "is frozen by its cgroup",
		[GP_OWNER_SILENT] = "has no heartbeat",
		[GP_OWNER_HUNG] = "was killed and hangs in the kernel",
		[GP_OWNER_DEAF] = "does not release it",
	};

	return texts[state];
}
