/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

#include "base/suggest.h"
#include "yaml/yaml.h"
#include "yaml/value.h"

#define TEXT_MAX   ((size_t)1 << 20)
#define PATH_SHOWN 80 /* of a longer path only the end is shown, so that the message fits */

struct gp_yaml {
	yaml_parser_t parser;
	yaml_event_t event; /* the event at the current position */
	const struct gp_yaml_kind *kind;
	const char *path;
	const char *text;
	size_t length;
	struct gp_error *err;
};

static const char *scalar(const struct gp_yaml *y)
{
	return (const char *)y->event.data.scalar.value;
}

unsigned gp_yaml_line(const struct gp_yaml *y)
{
	return (unsigned)y->event.start_mark.line + 1;
}

/* Error messages: where the mistake is, what is allowed, and which key may have been meant. */

static int fail_at(struct gp_error *err, const char *path, unsigned line, const char *format,
		   va_list args)
{
	size_t length = strlen(path);
	bool cut = length > PATH_SHOWN;
	char text[sizeof err->text];

	vsnprintf(text, sizeof text, format, args);
	return gp_fail(err, -EINVAL, "%s%s:%u: %s", cut ? "..." : "",
		       path + (cut ? length - PATH_SHOWN : 0), line, text);
}

int gp_yaml_fail_at(struct gp_error *err, const char *path, unsigned line, const char *format, ...)
{
	va_list args;
	int r;

	va_start(args, format);
	r = fail_at(err, path, line, format, args);
	va_end(args);
	return r;
}

int gp_yaml_fail(const struct gp_yaml *y, unsigned line, const char *format, ...)
{
	va_list args;
	int r;

	va_start(args, format);
	r = fail_at(y->err, y->path, line, format, args);
	va_end(args);
	return r;
}

static bool is_control(const char *c)
{
	return (unsigned char)c[0] < 0x20 || c[0] == 0x7f ||
	       (c[0] == '\xc2' && (unsigned char)c[1] < 0xa0);
}

struct gp_yaml_shown gp_yaml_show_text(const char *text)
{
	struct gp_yaml_shown s = {"'"};
	size_t at = 1, room = sizeof s.text - sizeof "'...'";

	for (; *text && at < room; text++) {
		bool control = is_control(text);

		text += control && *text == '\xc2'; /* a control character of two bytes */
		s.text[at] = *text;
		if (control)
			s.text[at] = '?';
		at++;
	}
	if (*text) {
		while ((*text & 0xc0) == 0x80) {
			text--;
			at--;
		}
		memcpy(s.text + at, "...", 3);
		at += 3;
	}
	memcpy(s.text + at, "'", 2);
	return s;
}

static struct gp_yaml_shown show_event(const struct gp_yaml *y)
{
	switch (y->event.type) {
	case YAML_SEQUENCE_START_EVENT: return (struct gp_yaml_shown){"a list"};
	case YAML_MAPPING_START_EVENT: return (struct gp_yaml_shown){"a set of keys"};
	default:
		return *scalar(y) ? gp_yaml_show_text(scalar(y))
				  : (struct gp_yaml_shown){"nothing"};
	}
}

static void list_words(char *list, size_t size, const char *word, bool first)
{
	size_t used = strlen(list);

	snprintf(list + used, size - used, "%s%s", first ? "" : ", ", word);
}

/* "'priority' must be a whole number from 0 to 15, not '16'" */
static int wrong_value(const struct gp_yaml *y, const struct gp_yaml_key *k)
{
	char right[160] = "";

	switch (k->type) {
	case GP_YAML_TEXT:
		snprintf(right, sizeof right, "one line of text of at most %zu bytes", k->size - 1);
		break;
	case GP_YAML_NUMBER:
		snprintf(right, sizeof right, "a %snumber from %s to %s%s%s",
			 k->scale == 1 ? "whole " : "",
			 gp_value_show_decimal(k->min, k->scale).text,
			 gp_value_show_decimal(k->max, k->scale).text, k->unit ? " " : "",
			 k->unit ? k->unit : "");
		break;
	case GP_YAML_DURATION:
		snprintf(right, sizeof right, "a time from %s to %s (units: %sus, ms, s, m, h)",
			 gp_value_show_duration(k->min).text, gp_value_show_duration(k->max).text,
			 k->scale == 1 ? "ns, " : "whole ");
		break;
	case GP_YAML_SIZE:
		snprintf(right, sizeof right,
			 "a whole size from %s to %s (units: B, KiB, MiB, GiB, TiB)",
			 gp_value_show_size(k->min).text, gp_value_show_size(k->max).text);
		break;
	case GP_YAML_BOOL: snprintf(right, sizeof right, "true or false"); break;
	case GP_YAML_WORD:
		snprintf(right, sizeof right, "%s", k->words[1] ? "one of " : "");
		for (unsigned i = 0; k->words[i]; i++)
			list_words(right, sizeof right, k->words[i], !i);
		break;
	case GP_YAML_NESTED: break;
	}
	return gp_yaml_fail(y, gp_yaml_line(y), "'%s' must be %s, not %s", k->name, right,
			    show_event(y).text);
}

#define KEYS_LISTED 10 /* more keys would not fit into the message */

static int unknown_key(const struct gp_yaml *y, const struct gp_yaml_map *map)
{
	struct gp_suggest suggest;
	char all[160] = "";

	gp_suggest_begin(&suggest, scalar(y));
	for (unsigned i = 0; i < map->nkeys; i++) {
		list_words(all, sizeof all, map->key[i].name, !i);
		gp_suggest_offer(&suggest, map->key[i].name);
	}
	if (suggest.nearest)
		return gp_yaml_fail(y, gp_yaml_line(y),
				    "unknown key %s in %s; perhaps '%s' is meant",
				    gp_yaml_show_text(scalar(y)).text, map->what, suggest.nearest);
	if (map->nkeys > KEYS_LISTED)
		return gp_yaml_fail(y, gp_yaml_line(y),
				    "unknown key %s in %s; %s lists the valid keys",
				    gp_yaml_show_text(scalar(y)).text, map->what, y->kind->page);
	return gp_yaml_fail(y, gp_yaml_line(y), "unknown key %s in %s, which takes %s",
			    gp_yaml_show_text(scalar(y)).text, map->what, all);
}

/* The reader. */

static unsigned line_of(const struct gp_yaml *y, size_t offset)
{
	unsigned line = 1;

	for (size_t i = 0; i < offset && i < y->length; i++)
		line += y->text[i] == '\n';
	return line;
}

static bool tab_indents(const struct gp_yaml *y, unsigned line)
{
	const char *at = y->text, *end = y->text + y->length;

	for (; line > 1; line--, at++) {
		at = memchr(at, '\n', (size_t)(end - at));
		if (!at)
			return false;
	}
	while (at < end && *at == ' ')
		at++;
	return at < end && *at == '\t';
}

static int not_yaml(struct gp_yaml *y)
{
	const yaml_parser_t *p = &y->parser;
	unsigned line = (unsigned)p->problem_mark.line + 1;

	if (p->error == YAML_MEMORY_ERROR)
		return gp_fail(y->err, -ENOMEM, "%s: not enough memory", y->path);
	if (p->error == YAML_READER_ERROR)
		line = line_of(y, p->problem_offset);
	else if (tab_indents(y, line))
		return gp_yaml_fail(y, line, "a tab indents this line; YAML requires spaces (%s)",
				    p->problem);
	return gp_yaml_fail(y, line, "this is not YAML: %s%s%s", p->problem, p->context ? " " : "",
			    p->context ? p->context : "");
}

/* Refuses the parts of YAML that gpreempt's files do not need. */
static int check_event(const struct gp_yaml *y)
{
	const yaml_char_t *anchor = NULL, *tag = NULL;

	switch (y->event.type) {
	case YAML_ALIAS_EVENT: anchor = y->event.data.alias.anchor; break;
	case YAML_SCALAR_EVENT:
		anchor = y->event.data.scalar.anchor;
		tag = y->event.data.scalar.tag;
		if (strlen(scalar(y)) != y->event.data.scalar.length)
			return gp_yaml_fail(y, gp_yaml_line(y),
					    "this value contains a NUL character; remove it");
		break;
	case YAML_SEQUENCE_START_EVENT:
		anchor = y->event.data.sequence_start.anchor;
		tag = y->event.data.sequence_start.tag;
		break;
	case YAML_MAPPING_START_EVENT:
		anchor = y->event.data.mapping_start.anchor;
		tag = y->event.data.mapping_start.tag;
		break;
	default: break;
	}
	if (anchor)
		return gp_yaml_fail(y, gp_yaml_line(y),
				    "anchors and aliases (& and *) are not supported; write the "
				    "value out");
	if (tag)
		return gp_yaml_fail(y, gp_yaml_line(y),
				    "tags (!) are not supported; remove the tag");
	return 0;
}

static int next_event(struct gp_yaml *y)
{
	yaml_event_delete(&y->event);
	if (!yaml_parser_parse(&y->parser, &y->event))
		return not_yaml(y);
	return check_event(y);
}

static void store(const struct gp_yaml_key *k, void *target, uint64_t value)
{
	char *member = (char *)target + k->offset;

	switch (k->size) {
	case sizeof(uint8_t): memcpy(member, &(uint8_t){(uint8_t)value}, sizeof(uint8_t)); break;
	case sizeof(uint32_t):
		memcpy(member, &(uint32_t){(uint32_t)value}, sizeof(uint32_t));
		break;
	case sizeof(uint64_t): memcpy(member, &value, sizeof value); break;
	default: break;
	}
}

static int read_text(const struct gp_yaml *y, const struct gp_yaml_key *k, void *target)
{
	const char *text = scalar(y);
	size_t length = strlen(text);

	while (length && (text[length - 1] == '\n' || text[length - 1] == ' '))
		length--; /* a folded scalar ends with a newline */
	if (!length || length >= k->size)
		return wrong_value(y, k);
	for (size_t i = 0; i < length; i++)
		if (is_control(text + i))
			return wrong_value(y, k);
	memset((char *)target + k->offset, 0, k->size);
	memcpy((char *)target + k->offset, text, length);
	return 0;
}

static int read_number(const struct gp_yaml *y, const struct gp_yaml_key *k, void *target)
{
	const char *end;
	uint64_t value;

	if (gp_value_decimal(scalar(y), k->scale, &value, &end) || *end || value < k->min ||
	    value > k->max)
		return wrong_value(y, k);
	store(k, target, value);
	return 0;
}

static int read_duration(const struct gp_yaml *y, const struct gp_yaml_key *k, void *target)
{
	uint64_t ns;
	int r = gp_value_duration(scalar(y), &ns);

	if (r == -ENODATA)
		return gp_yaml_fail(y, gp_yaml_line(y),
				    "'%s' needs a unit, as in 3ms (ns, us, ms, s, m or h)",
				    k->name);
	if (r == -EDOM)
		return gp_yaml_fail(y, gp_yaml_line(y), "'%s' must be in steps of 1ns, not %s",
				    k->name, gp_yaml_show_text(scalar(y)).text);
	if (r || ns < k->min || ns > k->max || ns % k->scale)
		return wrong_value(y, k);
	store(k, target, ns / k->scale);
	return 0;
}

static int read_size(const struct gp_yaml *y, const struct gp_yaml_key *k, void *target)
{
	uint64_t bytes;
	int r = gp_value_size(scalar(y), &bytes);

	if (r == -ENODATA)
		return gp_yaml_fail(y, gp_yaml_line(y),
				    "'%s' needs a unit, as in 4GiB (B, KiB, MiB, GiB or TiB)",
				    k->name);
	if (r || bytes < k->min || bytes > k->max)
		return wrong_value(y, k);
	store(k, target, bytes);
	return 0;
}

static int read_word(const struct gp_yaml *y, const struct gp_yaml_key *k, const char *const *words,
		     void *target)
{
	for (unsigned i = 0; words[i]; i++)
		if (!strcmp(scalar(y), words[i])) {
			store(k, target, i);
			return 0;
		}
	return wrong_value(y, k);
}

static int read_scalar(const struct gp_yaml *y, const struct gp_yaml_key *k, void *target)
{
	static const char *const bools[] = {"false", "true", NULL};

	switch (k->type) {
	case GP_YAML_TEXT: return read_text(y, k, target);
	case GP_YAML_NUMBER: return read_number(y, k, target);
	case GP_YAML_DURATION: return read_duration(y, k, target);
	case GP_YAML_SIZE: return read_size(y, k, target);
	case GP_YAML_BOOL: return read_word(y, k, bools, target);
	case GP_YAML_WORD: return read_word(y, k, k->words, target);
	case GP_YAML_NESTED: break;
	}
	return 0;
}

int gp_yaml_read_value(struct gp_yaml *y, const struct gp_yaml_key *k, void *target)
{
	int r;

	if (k->type == GP_YAML_NESTED)
		return k->read(y, target);
	if (y->event.type != YAML_SCALAR_EVENT)
		return wrong_value(y, k);
	r = read_scalar(y, k, target);
	return r ? r : next_event(y);
}

static int read_pair(struct gp_yaml *y, const struct gp_yaml_map *map, void *target,
		     unsigned line[])
{
	unsigned i = 0;
	int r;

	if (y->event.type != YAML_SCALAR_EVENT)
		return gp_yaml_fail(y, gp_yaml_line(y), "a key must be a word, not %s",
				    show_event(y).text);
	while (i < map->nkeys && strcmp(scalar(y), map->key[i].name) != 0)
		i++;
	if (i == map->nkeys)
		return unknown_key(y, map);
	if (line[i])
		return gp_yaml_fail(y, gp_yaml_line(y),
				    "'%s' is set here and on line %u; remove one of them",
				    map->key[i].name, line[i]);
	line[i] = gp_yaml_line(y);
	r = next_event(y);
	return r ? r : gp_yaml_read_value(y, &map->key[i], target);
}

int gp_yaml_read_map(struct gp_yaml *y, const struct gp_yaml_map *map, void *target,
		     unsigned line[GP_YAML_KEYS_MAX])
{
	int r;

	memset(line, 0, GP_YAML_KEYS_MAX * sizeof *line);
	if (y->event.type != YAML_MAPPING_START_EVENT)
		return gp_yaml_fail(y, gp_yaml_line(y),
				    "%s must be keys with values, as in '%s: ...', not %s",
				    map->what, map->key[0].name, show_event(y).text);
	r = next_event(y);
	while (!r && y->event.type != YAML_MAPPING_END_EVENT)
		r = read_pair(y, map, target, line);
	return r ? r : next_event(y);
}

/* Makes `word` the event at the current position, on the line of `mark`. */
static int set_event(struct gp_yaml *y, const char *word, yaml_mark_t mark)
{
	yaml_event_delete(&y->event);
	if (!yaml_scalar_event_initialize(&y->event, NULL, NULL, (const yaml_char_t *)word,
					  (int)strlen(word), 1, 1, YAML_PLAIN_SCALAR_STYLE))
		return -ENOMEM;
	y->event.start_mark = mark;
	return 0;
}

int gp_yaml_set(struct gp_yaml *y, const struct gp_yaml_map *map, void *target,
		unsigned line[GP_YAML_KEYS_MAX], const char *key, const char *value)
{
	yaml_event_t before = y->event;
	unsigned i = 0;
	int r;

	memset(&y->event, 0, sizeof y->event);
	r = set_event(y, key, before.start_mark);
	while (!r && i < map->nkeys && strcmp(key, map->key[i].name) != 0)
		i++;
	if (!r && i == map->nkeys)
		r = unknown_key(y, map);
	else if (!r && map->key[i].type == GP_YAML_NESTED)
		r = gp_yaml_fail(y, gp_yaml_line(y), "'%s' is not a single value", key);
	if (!r)
		r = set_event(y, value, before.start_mark);
	if (!r)
		r = read_scalar(y, &map->key[i], target);
	if (!r)
		line[i] = gp_yaml_line(y);
	yaml_event_delete(&y->event);
	y->event = before;
	return r;
}

int gp_yaml_read_list(struct gp_yaml *y, const char *key, gp_yaml_read *read, void *target)
{
	int r;

	if (y->event.type != YAML_SEQUENCE_START_EVENT)
		return gp_yaml_fail(y, gp_yaml_line(y),
				    "'%s' must be a list with '- ' before each item, not %s", key,
				    show_event(y).text);
	r = next_event(y);
	while (!r && y->event.type != YAML_SEQUENCE_END_EVENT)
		r = read(y, target);
	return r ? r : next_event(y);
}

int gp_yaml_read_names(struct gp_yaml *y, const char *key, gp_yaml_read_named *read, void *target)
{
	int r;

	if (y->event.type != YAML_MAPPING_START_EVENT)
		return gp_yaml_fail(y, gp_yaml_line(y),
				    "'%s' must be names with ':' after each, not %s", key,
				    show_event(y).text);
	r = next_event(y);
	while (!r && y->event.type != YAML_MAPPING_END_EVENT) {
		unsigned line = gp_yaml_line(y);
		char name[GP_YAML_NAME_MAX + 1];
		struct gp_yaml_key k = {.name = key, .type = GP_YAML_TEXT, .size = sizeof name};

		r = gp_yaml_read_value(y, &k, name);
		if (!r)
			r = read(y, name, line, target);
	}
	return r ? r : next_event(y);
}

static bool begins_line(const char *text, size_t at)
{
	return !at || text[at - 1] == '\n' || text[at - 1] == '\r' ||
	       (at >= 2 && !memcmp(text + at - 2, "\xc2\x85", 2)) || /* NEL, LS, PS */
	       (at >= 3 && !memcmp(text + at - 3, "\xe2\x80\xa8", 3)) ||
	       (at >= 3 && !memcmp(text + at - 3, "\xe2\x80\xa9", 3));
}

/* Refuses text that must not reach libyaml. libyaml compares each %TAG directive with all earlier
 * ones, which took 27 s for 1 MiB. */
static int check_text(const struct gp_yaml *y)
{
	const char *nul = memchr(y->text, '\0', y->length);

	if (y->length > TEXT_MAX)
		return gp_yaml_fail(y, 1, "the file is larger than 1 MiB, the limit for a %s",
				    y->kind->what);
	if (nul)
		return gp_yaml_fail(y, line_of(y, (size_t)(nul - y->text)),
				    "this line contains a NUL byte; a %s is text in UTF-8",
				    y->kind->what);
	for (size_t i = 0; i < y->length; i++)
		if (y->text[i] == '%' && begins_line(y->text, i))
			return gp_yaml_fail(y, line_of(y, i),
					    "directives (%%) are not supported; remove the line");
	return 0;
}

static int read_document(struct gp_yaml *y, gp_yaml_read *read, void *target)
{
	int r = next_event(y); /* stream start */

	if (!r)
		r = next_event(y);
	if (!r && y->event.type == YAML_STREAM_END_EVENT)
		return y->kind->needs
			       ? gp_yaml_fail(y, 1, "the file is empty; a %s needs at least '%s'",
					      y->kind->what, y->kind->needs)
			       : 0;
	if (!r)
		r = next_event(y);
	if (!r)
		r = read(y, target);
	if (!r)
		r = next_event(y); /* document end */
	if (!r && y->event.type != YAML_STREAM_END_EVENT)
		return gp_yaml_fail(y, gp_yaml_line(y),
				    "a second document begins here; one file is one %s",
				    y->kind->what);
	return r;
}

int gp_yaml_parse(const struct gp_yaml_kind *kind, const char *path, const char *text,
		  size_t length, gp_yaml_read *read, void *target, struct gp_error *err)
{
	struct gp_yaml y = {.kind = kind,
			    .path = path,
			    .text = length ? text : "",
			    .length = length,
			    .err = err};
	int r = check_text(&y);

	if (r)
		return r;
	if (!yaml_parser_initialize(&y.parser))
		return gp_fail(err, -ENOMEM, "%s: not enough memory", path);
	yaml_parser_set_input_string(&y.parser, (const unsigned char *)y.text, length);
	r = read_document(&y, read, target);
	yaml_event_delete(&y.event);
	yaml_parser_delete(&y.parser);
	return r;
}
