/* SPDX-License-Identifier: Apache-2.0 */
#include "loadlog.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int samples_add(struct samples *s, uint64_t ns)
{
	if (s->count == s->room) {
		size_t room = s->room ? 2 * s->room : 1024;
		uint64_t *grown = realloc(s->ns, room * sizeof *grown);

		if (!grown)
			return -ENOMEM;
		s->ns = grown;
		s->room = room;
	}
	s->ns[s->count++] = ns;
	return 0;
}

int samples_append(struct samples *to, const struct samples *from)
{
	for (size_t i = 0; i < from->count; i++)
		if (samples_add(to, from->ns[i]))
			return -ENOMEM;
	return 0;
}

void samples_free(struct samples *s)
{
	free(s->ns);
	*s = (struct samples){0};
}

static int ascending(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

void samples_sort(struct samples *s)
{
	if (s->count)
		qsort(s->ns, s->count, sizeof *s->ns, ascending);
}

uint64_t samples_quantile(const struct samples *sorted, double share)
{
	double rank = share * (double)sorted->count;
	size_t i = (size_t)rank;

	if (!sorted->count)
		return 0;
	if ((double)i < rank)
		i++;
	return sorted->ns[i ? i - 1 : 0];
}

/* ---- file ---- */

static bool take_number(const char **text, uint64_t *value)
{
	char *end;
	unsigned long long number = strtoull(*text, &end, 10);

	if (end == *text)
		return false;
	*text = end;
	*value = number;
	return true;
}

/* Whether the line is that word and a number. */
static bool is_number(const char *line, const char *word, uint64_t *value)
{
	size_t length = strlen(word);
	const char *text = line + length;

	return !strncmp(line, word, length) && *text == ' ' && take_number(&text, value);
}

static bool is_window(const char *line, struct loadlog *log)
{
	const char *text = line + strlen("window ");

	return !strncmp(line, "window ", strlen("window ")) && take_number(&text, &log->from_ns) &&
	       take_number(&text, &log->to_ns);
}

static int take_line(struct loadlog *log, const char *line, bool *finished)
{
	uint64_t ns;

	if (is_number(line, "l", &ns))
		return samples_add(&log->latency, ns);
	if (is_number(line, "d", &ns))
		return samples_add(&log->done, ns);
	if (!strncmp(line, "gpu ", 4))
		snprintf(log->gpu, sizeof log->gpu, "%.*s", (int)sizeof log->gpu - 1, line + 4);
	else if (!strncmp(line, "check ", 6))
		snprintf(log->check, sizeof log->check, "%.*s", (int)sizeof log->check - 1,
		         line + 6);
	else if (!strcmp(line, "end"))
		*finished = true;
	else if (!is_window(line, log) && !is_number(line, "iterations", &log->iterations) &&
	         !is_number(line, "kernel_ns", &log->kernel_ns))
		is_number(line, "late", &log->late);
	return 0;
}

int loadlog_read(struct loadlog *log, const char *path, struct gp_error *err)
{
	FILE *file = fopen(path, "r");
	const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	char line[256];
	bool finished = false;
	int rc = 0;

	*log = (struct loadlog){0};
	if (!file)
		return gp_fail(err, -errno, "no results in %s: %s", name, strerror(errno));
	while (!rc && fgets(line, sizeof line, file)) {
		line[strcspn(line, "\n")] = '\0';
		rc = take_line(log, line, &finished);
	}
	fclose(file);
	if (rc)
		return gp_fail(err, rc, "%s: out of memory", name);
	if (!finished)
		return gp_fail(err, -ENODATA, "%s: the results are incomplete", name);
	log->right = !strcmp(log->check, "ok") || !strncmp(log->check, "ok ", 3);
	return 0;
}

void loadlog_free(struct loadlog *log)
{
	samples_free(&log->latency);
	samples_free(&log->done);
}

/* Kernels done at that time, counted from the first one's end, before which nothing is known. */
static double done_at(const struct samples *done, uint64_t at_ns)
{
	size_t low = 0, high = done->count; /* the first one that ended after `at_ns` */

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (done->ns[middle] <= at_ns)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return 0;
	if (low == done->count)
		return (double)(low - 1);
	return (double)(low - 1) +
	       (double)(at_ns - done->ns[low - 1]) / (double)(done->ns[low] - done->ns[low - 1]);
}

double loadlog_work(const struct loadlog *log, uint64_t from_ns, uint64_t to_ns)
{
	return done_at(&log->done, to_ns) - done_at(&log->done, from_ns);
}
