/* SPDX-License-Identifier: Apache-2.0 */
/* Arrival times of requests from a file: one time per line. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/scenario/parse_scenario.h"
#include "yaml/value.h"

#define FILE_MAX ((size_t)16 << 20)

int gp_arrivals_add(struct arrivals *a, uint64_t at_ns)
{
	uint32_t room = a->room ? 2 * a->room : 64;
	uint64_t *grown;

	if (a->n == a->room) {
		grown = reallocarray(a->at_ns, room, sizeof *grown);
		if (!grown)
			return -ENOMEM;
		a->at_ns = grown;
		a->room = room;
	}
	a->at_ns[a->n++] = at_ns;
	return 0;
}

/* Removes a comment (#) and the space on both sides. */
static char *trim(char *line)
{
	size_t length = strcspn(line, "#");

	while (length && strchr(" \t\r", line[length - 1]))
		length--;
	line[length] = '\0';
	return line + strspn(line, " \t");
}

static int add_line(struct arrivals *a, const char *path, unsigned number, const char *word,
		    struct gp_error *err)
{
	uint64_t at_ns;
	int r = gp_value_duration(word, &at_ns);

	if (r == -ENODATA)
		return gp_yaml_fail_at(err, path, number,
				       "the time needs a unit, as in 3ms (ns, us, ms, s, m or h)");
	if (r || at_ns > ARRIVAL_MAX)
		return gp_yaml_fail_at(err, path, number,
				       "a line must be a time of at most 24h, as in 12.5ms");
	if (a->n && at_ns < a->at_ns[a->n - 1])
		return gp_yaml_fail_at(
			err, path, number,
			"the times must be in order; this time is before the previous one");
	return gp_arrivals_add(a, at_ns);
}

static int add_lines(struct arrivals *a, const char *path, char *text, struct gp_error *err)
{
	unsigned number = 0;
	char *line, *word;
	int r = 0;

	while (!r && (line = strsep(&text, "\n"))) {
		number++;
		word = trim(line);
		if (*word)
			r = add_line(a, path, number, word, err);
	}
	if (!r && !a->n)
		return gp_fail(err, -EINVAL, "%s: the file has no arrival time", path);
	return r;
}

static int load_file(struct arrivals *a, const char *path, struct gp_error *err)
{
	char *text = malloc(FILE_MAX + 1);
	ssize_t n = text ? gp_scenario_read_file(path, text, FILE_MAX + 1) : -ENOMEM;
	int r;

	if (n < 0) {
		r = gp_fail(err, (int)n, "cannot read the trace %s: %s", path,
			    gp_error_name((int)n));
	} else if ((size_t)n > FILE_MAX || memchr(text, '\0', (size_t)n)) {
		r = gp_fail(err, -EINVAL, "%s: a trace must be a text file of at most 16 MiB",
			    path);
	} else {
		text[n] = '\0';
		r = add_lines(a, path, text, err);
	}
	free(text);
	return r;
}

int gp_arrivals_load(struct arrivals *a, const char *scenario, const char *name,
		     struct gp_error *err)
{
	const char *slash = strrchr(scenario, '/');
	char *path;
	int r;

	if (asprintf(&path, "%.*s%s", slash ? (int)(slash + 1 - scenario) : 0, scenario, name) < 0)
		return -ENOMEM;
	r = load_file(a, path, err);
	free(path);
	return r;
}
