/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cgroup of a process. With one hierarchy (v2) there is no choice. With several, those in which
 * the process is at the root are skipped; then v2 is preferred, then systemd's, then the first of
 * the list. Container runtimes use the same path in all.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "procinfo/read.h"

#define LIST_MAX 16384u
#define MOUNTED  "/sys/fs/cgroup"

/* A line "4:memory:/path". */
struct line {
	const char *controllers;
	const char *path;
};

static bool split(char *text, struct line *line)
{
	char *first = strchr(text, ':'), *second = first ? strchr(first + 1, ':') : NULL;

	if (!second)
		return false;
	*second = '\0';
	*line = (struct line){.controllers = first + 1, .path = second + 1};
	return true;
}

static unsigned rank(const struct line *l)
{
	if (!strcmp(l->path, "/"))
		return 0;
	if (!l->controllers[0])
		return 3;
	return !strcmp(l->controllers, "name=systemd") ? 2 : 1;
}

/*
 * The owner of a cgroup folder can create folders in it and move its processes there. So every
 * folder above the last must belong to root; the last may be delegated to the user.
 */
static bool is_trusted(const struct line *l)
{
	const char *name =
		!strncmp(l->controllers, "name=", 5) ? l->controllers + 5 : l->controllers;
	const char *mounts[] = {"", *name ? name : "unified"};
	char *slash;

	if (strstr(l->path, "/..") || !strcmp(l->path, "/"))
		return !strcmp(l->path, "/"); /* "/.." is not visible from here; "/" is trusted */
	for (unsigned i = *name ? 1 : 0; i < 2; i++) {
		char path[PATH_MAX];

		if (snprintf(path, sizeof path, MOUNTED "%s%s%s", *mounts[i] ? "/" : "", mounts[i],
			     l->path) >= (int)sizeof path)
			return false;
		slash = strrchr(path, '/');
		*slash = '\0';
		if (gp_procinfo_path_is_roots(path))
			return true;
	}
	return false;
}

int gp_procinfo_read_cgroup(pid_t pid, char **path, bool *trusted)
{
	char *list = malloc(LIST_MAX), *rest = list, *text;
	ssize_t n = list ? gp_procinfo_read_file(pid, "cgroup", list, LIST_MAX) : -ENOMEM;
	struct line best = {0}, line;

	while (n > 0 && (text = strsep(&rest, "\n")) && *text)
		if (split(text, &line) && (!best.path || rank(&line) > rank(&best)))
			best = line;
	if (n >= 0)
		n = best.path ? 0 : -ENOENT;
	if (!n) {
		*path = strdup(best.path);
		*trusted = is_trusted(&best);
		n = *path ? 0 : -ENOMEM;
	}
	free(list);
	return (int)n;
}
