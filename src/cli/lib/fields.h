/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading, building and printing JSON objects. A key that is absent means that the value is not
 * known; it is never shown as 0 or "".
 */
#ifndef GP_CLI_LIB_FIELDS_H
#define GP_CLI_LIB_FIELDS_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>

#include "task/task.h"

/* Borrowed; NULL: absent. `object` may be NULL. */
struct json_object *gp_field(struct json_object *object, const char *key);

/* Borrowed; NULL: absent, or no string. */
const char *gp_field_text(struct json_object *object, const char *key);

/* False: absent, or no whole number from 0 on. */
bool gp_field_number(struct json_object *object, const char *key, uint64_t *value);

/* The number, or `otherwise` where it is absent. */
uint64_t gp_field_number_or(struct json_object *object, const char *key, uint64_t otherwise);

bool gp_field_true(struct json_object *object, const char *key);

/* The number of elements of an array; 0 also where it is absent. */
size_t gp_field_count(struct json_object *object, const char *key);

/* The words of an array with commas between them. Returns `out`, or NULL when there are none. */
const char *gp_field_words(struct json_object *object, const char *key, char *out, size_t size);

/* Adds a value to an object. */
void gp_field_put(struct json_object *object, const char *key, uint64_t value);
void gp_field_put_text(struct json_object *object, const char *key, const char *value);
void gp_field_put_bool(struct json_object *object, const char *key, bool value);
void gp_field_put_decimal(struct json_object *object, const char *key, double value, int digits);
void gp_field_put_us(struct json_object *object, const char *key, uint64_t ns); /* 1 decimal */

/* From a task or an answer of the daemon. */
struct gp_eviction gp_field_eviction(struct json_object *object);
/* Adds `evicted_us` or `reset_us`, if the task is known to be evicted. */
void gp_field_put_eviction(struct json_object *object, const struct gp_eviction *evicted);
/* "; evicted by the driver 2 s ago: ...", or nothing. */
void gp_print_eviction(const struct gp_eviction *evicted);

/* `confirmed_by` of an answer to `hold` or `release`. */
enum gp_evidence gp_field_evidence(struct json_object *object);
/* " (only the driver confirms it, ...)" behind "held" or "released", or nothing. */
void gp_print_evidence(enum gp_evidence evidence, bool held);

/* Adds an empty array or object, and returns it, borrowed. */
struct json_object *gp_field_put_list(struct json_object *object, const char *key);
struct json_object *gp_field_put_object(struct json_object *object, const char *key);
struct json_object *gp_list_object(struct json_object *list); /* at the end of an array */

/* The same, but a value of 0 is not known and stays absent; an address is written as "0x1267". */
void gp_field_put_known(struct json_object *object, const char *key, uint64_t value);
void gp_field_put_address(struct json_object *object, const char *key, uint64_t value);

/* The text of an object, without a newline; valid until the object changes. */
const char *gp_json_line(struct json_object *object);

/* Writes an object and a newline, and flushes: the reader may wait at a pipe. */
void gp_print_json(struct json_object *object);

/* The same; the object is freed. */
void gp_print_json_once(struct json_object *object);

#endif
