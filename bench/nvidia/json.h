/* SPDX-License-Identifier: Apache-2.0 */
/* Just enough JSON to read our own reports back. */
#ifndef BENCH_JSON_H
#define BENCH_JSON_H

#include <stdbool.h>

enum json_kind { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

struct json {
	enum json_kind kind;
	char *name; /* as a member of an object */
	char *string;
	double number; /* a bool is 0 or 1 */
	struct json *child, *next;
};

/* NULL for what is no JSON, or out of memory. */
struct json *json_parse(const char *text);
void json_free(struct json *j);

/* NULL when `j` is NULL, no object, or has no such member. */
const struct json *json_member(const struct json *j, const char *name);

/* "" or false when it is not there, or something else. */
const char *json_string(const struct json *j, const char *name);
bool json_number(const struct json *j, const char *name, double *value);

#endif
