/* SPDX-License-Identifier: Apache-2.0 */
#include "json.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 16

static struct json *parse_value(const char **at, unsigned depth);

static void skip_space(const char **at)
{
	while (isspace((unsigned char)**at))
		(*at)++;
}

void json_free(struct json *j)
{
	while (j) {
		struct json *next = j->next;

		json_free(j->child);
		free(j->name);
		free(j->string);
		free(j);
		j = next;
	}
}

/* Only what we write ourselves: \" \\ \u00XX. */
static char *parse_string(const char **at)
{
	const char *end = *at + 1;
	char *text, *to;

	if (**at != '"')
		return NULL;
	while (*end && *end != '"')
		end += *end == '\\' && end[1] ? 2 : 1;
	if (!*end)
		return NULL;
	text = to = malloc((size_t)(end - *at));
	for (const char *from = *at + 1; text && from < end; from++) {
		if (*from == '\\' && *++from == 'u') {
			char code[5] = {0};

			if (end - from < 5)
				break;
			memcpy(code, from + 1, 4);
			*to++ = (char)strtol(code, NULL, 16);
			from += 4;
		} else {
			*to++ = *from;
		}
	}
	if (text)
		*to = '\0';
	*at = end + 1;
	return text;
}

/* Members of an array or an object, up to the closing bracket. */
static bool parse_members(struct json *j, const char **at, unsigned depth)
{
	char close = j->kind == JSON_ARRAY ? ']' : '}';
	struct json **to = &j->child;

	(*at)++;
	skip_space(at);
	if (**at == close) {
		(*at)++;
		return true;
	}
	for (;;) {
		char *name = NULL;

		skip_space(at);
		if (j->kind == JSON_OBJECT) {
			name = parse_string(at);
			skip_space(at);
			if (!name || *(*at)++ != ':') {
				free(name);
				return false;
			}
		}
		*to = parse_value(at, depth + 1);
		if (!*to) {
			free(name);
			return false;
		}
		(*to)->name = name;
		to = &(*to)->next;
		skip_space(at);
		if (**at == close) {
			(*at)++;
			return true;
		}
		if (**at != ',')
			return false;
		(*at)++;
	}
}

static bool parse_word(struct json *j, const char **at)
{
	static const struct {
		const char *word;
		enum json_kind kind;
		double number;
	} words[] = {{"null", JSON_NULL, 0}, {"true", JSON_BOOL, 1}, {"false", JSON_BOOL, 0}};
	char *end;

	for (unsigned i = 0; i < 3; i++)
		if (!strncmp(*at, words[i].word, strlen(words[i].word))) {
			j->kind = words[i].kind;
			j->number = words[i].number;
			*at += strlen(words[i].word);
			return true;
		}
	j->kind = JSON_NUMBER;
	j->number = strtod(*at, &end);
	if (end == *at)
		return false;
	*at = end;
	return true;
}

static struct json *parse_value(const char **at, unsigned depth)
{
	struct json *j = calloc(1, sizeof *j);
	bool good = false;

	skip_space(at);
	if (!j || depth > DEPTH_MAX) {
		free(j);
		return NULL;
	}
	if (**at == '[' || **at == '{') {
		j->kind = **at == '[' ? JSON_ARRAY : JSON_OBJECT;
		good = parse_members(j, at, depth);
	} else if (**at == '"') {
		j->kind = JSON_STRING;
		j->string = parse_string(at);
		good = j->string;
	} else {
		good = parse_word(j, at);
	}
	if (good)
		return j;
	json_free(j);
	return NULL;
}

struct json *json_parse(const char *text)
{
	struct json *j = parse_value(&text, 0);

	skip_space(&text);
	if (j && !*text)
		return j;
	json_free(j);
	return NULL;
}

const struct json *json_member(const struct json *j, const char *name)
{
	if (!j || j->kind != JSON_OBJECT)
		return NULL;
	for (const struct json *c = j->child; c; c = c->next)
		if (!strcmp(c->name, name))
			return c;
	return NULL;
}

const char *json_string(const struct json *j, const char *name)
{
	const struct json *m = json_member(j, name);

	return m && m->kind == JSON_STRING ? m->string : "";
}

bool json_number(const struct json *j, const char *name, double *value)
{
	const struct json *m = json_member(j, name);

	if (!m || (m->kind != JSON_NUMBER && m->kind != JSON_BOOL))
		return false;
	*value = m->number;
	return true;
}
