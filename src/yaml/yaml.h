/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads YAML with tables that name the allowed keys, the type of each value and where it is stored.
 *
 * The parser's events are handled one by one and no tree is built, so the cost is linear in the
 * size of the file. Only a small part of YAML is accepted: maps, lists and scalars in one document.
 * Anchors, aliases, tags and directives are refused. Every error is one sentence, "FILE:LINE: ...",
 * and -EINVAL.
 */
#ifndef GP_YAML_YAML_H
#define GP_YAML_YAML_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct gp_yaml;

/* Reads the whole value at the current position. */
typedef int gp_yaml_read(struct gp_yaml *y, void *target);

enum gp_yaml_type {
	GP_YAML_TEXT,     /* one line of text, stored in an array of char */
	GP_YAML_NUMBER,   /* stored multiplied by `scale`: 10 keeps one decimal */
	GP_YAML_DURATION, /* stored in units of `scale` ns; min and max are in ns */
	GP_YAML_SIZE,     /* stored in bytes */
	GP_YAML_BOOL,
	GP_YAML_WORD,   /* stored as its index in `words` */
	GP_YAML_NESTED, /* calls `read` with the target of the map that contains the key */
};

struct gp_yaml_key {
	const char *name;
	enum gp_yaml_type type;
	size_t offset; /* offset of the member in the target */
	size_t size;   /* size of the member in bytes; 0: checked but not stored */
	uint64_t min, max;
	uint64_t scale;
	const char *unit;         /* unit of a number, for messages; may be NULL */
	const char *const *words; /* terminated by NULL */
	gp_yaml_read *read;
};

#define GP_YAML_KEYS_MAX 32

struct gp_yaml_map {
	const char *what; /* "a task" */
	unsigned nkeys;
	const struct gp_yaml_key *key;
};

/* The kind of file, for messages. */
struct gp_yaml_kind {
	const char *what;  /* "scenario" */
	const char *needs; /* a required key; NULL: an empty file is valid */
	const char *page;  /* manual page */
};

/* Parses `text`, at most 1 MiB, and calls `read` for its document. An empty text has no document.
 */
int gp_yaml_parse(const struct gp_yaml_kind *kind, const char *path, const char *text,
		  size_t length, gp_yaml_read *read, void *target, struct gp_error *err);

/* Reads a map. Sets `line[i]` to the line of key i, or to 0 if the key is absent. */
int gp_yaml_read_map(struct gp_yaml *y, const struct gp_yaml_map *map, void *target,
		     unsigned line[GP_YAML_KEYS_MAX]);

/* Reads the value of one key, or an item of a list that is written like a value. */
int gp_yaml_read_value(struct gp_yaml *y, const struct gp_yaml_key *key, void *target);

/* Sets a key of the map that was just read, as if `key: value` had replaced its value in the file.
 * `key` must belong to the map and must not be nested. */
int gp_yaml_set(struct gp_yaml *y, const struct gp_yaml_map *map, void *target,
		unsigned line[GP_YAML_KEYS_MAX], const char *key, const char *value);

/* Calls `read` for each item of the list that `key` names. */
int gp_yaml_read_list(struct gp_yaml *y, const char *key, gp_yaml_read *read, void *target);

#define GP_YAML_NAME_MAX 63

/* The current position is the value of `name`; `line` is the line of `name`. */
typedef int gp_yaml_read_named(struct gp_yaml *y, const char *name, unsigned line, void *target);

/* Calls `read` for each entry of the map `key`; the entries have arbitrary names. */
int gp_yaml_read_names(struct gp_yaml *y, const char *key, gp_yaml_read_named *read, void *target);

/* The line of the current position. */
unsigned gp_yaml_line(const struct gp_yaml *y);

/* A text of the file in the form in which a message shows it: quoted, short, one line, without
 * broken characters. */
struct gp_yaml_shown {
	char text[48];
};
struct gp_yaml_shown gp_yaml_show_text(const char *text);

/* Writes "FILE:LINE: sentence" and returns -EINVAL. */
int gp_yaml_fail_at(struct gp_error *err, const char *path, unsigned line, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
int gp_yaml_fail(const struct gp_yaml *y, unsigned line, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
