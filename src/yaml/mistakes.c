/* SPDX-License-Identifier: Apache-2.0 */
/* Error messages: where the mistake is, what is allowed, and which key may have been meant. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/suggest.h"
#include "yaml/reader.h"
#include "yaml/value.h"

#define PATH_SHOWN 80 /* of a longer path only the end is shown, so that the message fits */

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

bool gp_yaml_is_control(const char *c)
{
	return (unsigned char)c[0] < 0x20 || c[0] == 0x7f ||
	       (c[0] == '\xc2' && (unsigned char)c[1] < 0xa0);
}

struct gp_yaml_shown gp_yaml_show_text(const char *text)
{
	struct gp_yaml_shown s = {"'"};
	size_t at = 1, room = sizeof s.text - sizeof "'...'";

	for (; *text && at < room; text++) {
		bool control = gp_yaml_is_control(text);

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

struct gp_yaml_shown gp_yaml_show_event(const struct gp_yaml *y)
{
	switch (y->event.type) {
	case YAML_SEQUENCE_START_EVENT: return (struct gp_yaml_shown){"a list"};
	case YAML_MAPPING_START_EVENT: return (struct gp_yaml_shown){"a set of keys"};
	default:
		return *gp_yaml_scalar(y) ? gp_yaml_show_text(gp_yaml_scalar(y))
					  : (struct gp_yaml_shown){"nothing"};
	}
}

static void list_words(char *list, size_t size, const char *word, bool first)
{
	size_t used = strlen(list);

	snprintf(list + used, size - used, "%s%s", first ? "" : ", ", word);
}

int gp_yaml_wrong_value(const struct gp_yaml *y, const struct gp_yaml_key *k)
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
			    gp_yaml_show_event(y).text);
}

#define KEYS_LISTED 10 /* more keys would not fit into the message */

int gp_yaml_unknown_key(const struct gp_yaml *y, const struct gp_yaml_map *map)
{
	struct gp_suggest suggest;
	char all[160] = "";

	gp_suggest_begin(&suggest, gp_yaml_scalar(y));
	for (unsigned i = 0; i < map->nkeys; i++) {
		list_words(all, sizeof all, map->key[i].name, !i);
		gp_suggest_offer(&suggest, map->key[i].name);
	}
	if (suggest.nearest)
		return gp_yaml_fail(
			y, gp_yaml_line(y), "unknown key %s in %s; perhaps '%s' is meant",
			gp_yaml_show_text(gp_yaml_scalar(y)).text, map->what, suggest.nearest);
	if (map->nkeys > KEYS_LISTED)
		return gp_yaml_fail(
			y, gp_yaml_line(y), "unknown key %s in %s; %s lists what it takes",
			gp_yaml_show_text(gp_yaml_scalar(y)).text, map->what, y->kind->page);
	return gp_yaml_fail(y, gp_yaml_line(y), "unknown key %s in %s, which takes %s",
			    gp_yaml_show_text(gp_yaml_scalar(y)).text, map->what, all);
}
