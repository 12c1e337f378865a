/* SPDX-License-Identifier: Apache-2.0 */
/* Splits a stream of bytes into lines. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/wire.h"

#define CAPACITY_MIN 4096u

/* Enlarges the buffer by at least one byte, to at most `max` bytes. */
static int grow(struct gp_lines *lines, size_t max)
{
	size_t capacity = lines->capacity ? 2 * lines->capacity : CAPACITY_MIN;
	char *bytes;

	if (capacity > max)
		capacity = max;
	if (capacity <= lines->capacity)
		return -EMSGSIZE;
	bytes = realloc(lines->bytes, capacity);
	if (!bytes)
		return -ENOMEM;
	lines->bytes = bytes;
	lines->capacity = capacity;
	return 0;
}

int gp_lines_room(struct gp_lines *lines, size_t max, char **room, size_t *size)
{
	size_t waiting = gp_lines_waiting(lines);
	int r = 0;

	if (lines->begin && waiting)
		memmove(lines->bytes, lines->bytes + lines->begin, waiting);
	lines->begin = 0;
	lines->end = waiting;
	if (lines->end == lines->capacity)
		r = grow(lines, max + 1);
	*room = lines->bytes + lines->end;
	*size = lines->capacity - lines->end;
	return r;
}

void gp_lines_added(struct gp_lines *lines, size_t size)
{
	lines->end += size;
}

bool gp_lines_ready(struct gp_lines *lines)
{
	size_t waiting = gp_lines_waiting(lines);
	const char *line, *newline;

	if (lines->found || waiting == lines->searched)
		return lines->found;
	line = lines->bytes + lines->begin;
	newline = memchr(line + lines->searched, '\n', waiting - lines->searched);
	lines->found = newline != NULL;
	lines->searched = newline ? (size_t)(newline - line) + 1 : waiting;
	return lines->found;
}

char *gp_lines_next(struct gp_lines *lines, size_t *length)
{
	char *line;

	if (!gp_lines_ready(lines))
		return NULL;
	line = lines->bytes + lines->begin;
	*length = lines->searched - 1;
	line[*length] = 0;
	lines->begin += lines->searched;
	lines->searched = 0;
	lines->found = false;
	return line;
}

void gp_lines_shrink(struct gp_lines *lines)
{
	if (!gp_lines_waiting(lines))
		gp_lines_free(lines);
}

void gp_lines_free(struct gp_lines *lines)
{
	free(lines->bytes);
	*lines = (struct gp_lines){0};
}
