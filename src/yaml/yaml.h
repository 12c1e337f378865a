/* SPDX-License-Identifier: Apache-2.0 */
/*
 * YAML read against tables: which keys there are, what each takes, and where its value goes.
 *
 * The events are taken as they come and no tree is kept, so a file costs no more than its length.
 * A small part of YAML is enough: keys, lists and words in one document. Anchors, aliases, tags
 * and directives are refused. Whatever is wrong is one sentence, "FILE:LINE: ...", and -EINVAL.
 */
#ifndef GP_YAML_YAML_H
#define GP_YAML_YAML_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct gp_yaml;

/* Reads what the reader stands before, and all of it. */
typedef int gp_yaml_read(struct gp_yaml *y, void *target);

enum gp_yaml_type {
	GP_YAML_TEXT,     /* one line; the place is an array of char */
	GP_YAML_NUMBER,   /* stored `scale` times, so that 10 keeps one decimal */
	GP_YAML_DURATION, /* stored in multiples of `scale` ns; min and max are in ns */
	GP_YAML_SIZE,     /* in bytes */
	GP_YAML_BOOL,
	GP_YAML_WORD,   /* stored as the place in `words` */
	GP_YAML_NESTED, /* `read` is called with the target of the map that has the key */
};

struct gp_yaml_key {
	const char *name;
	enum gp_yaml_type type;
	size_t offset; /* of the place in the target */
	size_t size;   /* ... in bytes; 0: checked and not kept */
	uint64_t min, max;
	uint64_t scale;
	const char *unit;         /* of a number, for the sentences; may be NULL */
	const char *const *words; /* ends with NULL */
	gp_yaml_read *read;
};

#define GP_YAML_KEYS_MAX 32

struct gp_yaml_map {
	const char *what; /* "a task" */
	unsigned nkeys;
	const struct gp_yaml_key *key;
};

/* What kind of file it is, for the sentences. */
struct gp_yaml_kind {
	const char *what;  /* "scenario" */
	const char *needs; /* the key that must be there; NULL: an empty file is one, too */
	const char *page;  /* of the manual */
};

/* Calls `read` with the document of `text`, which is at most 1 MiB; not if it is empty. */
int gp_yaml_parse(const struct gp_yaml_kind *kind, const char *path, const char *text,
                  size_t length, gp_yaml_read *read, void *target, struct gp_error *err);

/* `line[i]` becomes the line on which key i stands, 0 when it is not there. */
int gp_yaml_read_map(struct gp_yaml *y, const struct gp_yaml_map *map, void *target,
                     unsigned line[GP_YAML_KEYS_MAX]);

/* The value of one key, or an item of a list that is written like one. */
int gp_yaml_read_value(struct gp_yaml *y, const struct gp_yaml_key *key, void *target);

/*
 * As if `key: value` stood in the map that was just read, in place of what stands there. `key` must
 * be one of the map's, and not a nested one.
 */
int gp_yaml_set(struct gp_yaml *y, const struct gp_yaml_map *map, void *target,
                unsigned line[GP_YAML_KEYS_MAX], const char *key, const char *value);

/* Calls `read` for each item of the list that `key` names. */
int gp_yaml_read_list(struct gp_yaml *y, const char *key, gp_yaml_read *read, void *target);

#define GP_YAML_NAME_MAX 63

/* The reader stands before what belongs to `name`, which stands on `line`. */
typedef int gp_yaml_read_named(struct gp_yaml *y, const char *name, unsigned line, void *target);

/* Calls `read` for each entry of the map that `key` names, whose keys are people's own. */
int gp_yaml_read_names(struct gp_yaml *y, const char *key, gp_yaml_read_named *read, void *target);

/* The line the reader stands on. */
unsigned gp_yaml_line(const struct gp_yaml *y);

/* What somebody wrote, fit to stand in a sentence: in quotes, short, one line, whole characters. */
struct gp_yaml_shown {
	char text[48];
};
struct gp_yaml_shown gp_yaml_show_text(const char *text);

/* "FILE:LINE: sentence". Returns -EINVAL. */
int gp_yaml_fail_at(struct gp_error *err, const char *path, unsigned line, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
int gp_yaml_fail(const struct gp_yaml *y, unsigned line, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
