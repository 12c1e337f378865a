/* SPDX-License-Identifier: Apache-2.0 */
/* Values out of the daemon's answers. What is not there is not known, and never 0 or "". */
#ifndef GP_CLI_ASK_FIELDS_H
#define GP_CLI_ASK_FIELDS_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>

#include "cli/lib/grid.h"

/* Borrowed; NULL: not there. `object` may be NULL. */
struct json_object *gp_field(struct json_object *object, const char *key);

/* Borrowed; NULL: not there, or no string. */
const char *gp_field_text(struct json_object *object, const char *key);

/* False: not there, or no whole number from 0 on. */
bool gp_field_number(struct json_object *object, const char *key, uint64_t *value);

/* `otherwise`: what it is when it is not there. */
uint64_t gp_field_number_or(struct json_object *object, const char *key, uint64_t otherwise);

bool gp_field_true(struct json_object *object, const char *key);

/* How many elements the array has: 0 also when there is none. */
size_t gp_field_count(struct json_object *object, const char *key);

/* The words of an array with commas between them. Returns `out`, or NULL when there are none. */
const char *gp_field_words(struct json_object *object, const char *key, char *out, size_t size);

/* Cells of a table. `ns` and `bytes` as people read them. */
void gp_field_cell(struct gp_grid *grid, struct json_object *object, const char *key);
void gp_field_cell_ns(struct gp_grid *grid, struct json_object *object, const char *key);
void gp_field_cell_bytes(struct gp_grid *grid, struct json_object *object, const char *key);

/* Puts a number into an object. */
void gp_field_put(struct json_object *object, const char *key, uint64_t value);

/* Writes an object and a newline, and sees to it that who waits at a pipe has it. */
void gp_print_json(struct json_object *object);

#endif
