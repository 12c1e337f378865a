/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Typed values out of a JSON object, with a sentence for whoever wrote it. `*present` says whether
 * the key is there; `present` NULL means that it must be. A value that is not there leaves
 * `*value` alone, which so holds the default. null counts as not there. 0 or -EINVAL.
 */
#ifndef GP_RPC_PARAMS_H
#define GP_RPC_PARAMS_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* Keys other than these are refused, with the one that is perhaps meant. */
int gp_params_known(struct json_object *params, const char *const *key, unsigned nkeys,
                    struct gp_error *err);
#define GP_PARAMS_KNOWN(params, err, ...)                           \
	gp_params_known(params, (const char *const[]){__VA_ARGS__}, \
	                sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *), err)

int gp_params_u64(struct json_object *params, const char *key, uint64_t min, uint64_t max,
                  uint64_t *value, bool *present, struct gp_error *err);
int gp_params_bool(struct json_object *params, const char *key, bool *value, bool *present,
                   struct gp_error *err);

/* Whole or with a fraction. */
int gp_params_number(struct json_object *params, const char *key, double min, double max,
                     double *value, bool *present, struct gp_error *err);

/* Borrowed from `params`; 1 to `max` bytes, no control characters. */
int gp_params_string(struct json_object *params, const char *key, size_t max, const char **value,
                     bool *present, struct gp_error *err);

/* One of the words, by its index. */
int gp_params_choice(struct json_object *params, const char *key, const char *const *word,
                     unsigned nwords, unsigned *value, bool *present, struct gp_error *err);

/* Borrowed. */
int gp_params_object(struct json_object *params, const char *key, struct json_object **value,
                     bool *present, struct gp_error *err);
int gp_params_array(struct json_object *params, const char *key, unsigned max,
                    struct json_object **value, bool *present, struct gp_error *err);

#endif
