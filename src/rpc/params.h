/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads typed values from a JSON object and explains errors. If `present` is NULL, the key is
 * required; else `*present` says whether it exists. A missing key leaves `*value` unchanged, so
 * that it keeps its default. null counts as missing. Returns 0 or -EINVAL.
 */
#ifndef GP_RPC_PARAMS_H
#define GP_RPC_PARAMS_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* Refuses keys that are not in the list and suggests the nearest one. */
int gp_params_known(struct json_object *params, const char *const *key, unsigned nkeys,
		    struct gp_error *err);
#define GP_PARAMS_KNOWN(params, err, ...)                           \
	gp_params_known(params, (const char *const[]){__VA_ARGS__}, \
			sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *), err)

int gp_params_u64(struct json_object *params, const char *key, uint64_t min, uint64_t max,
		  uint64_t *value, bool *present, struct gp_error *err);
int gp_params_bool(struct json_object *params, const char *key, bool *value, bool *present,
		   struct gp_error *err);

/* The string is borrowed from `params`; it has 1 to `max` bytes and no control characters. */
int gp_params_string(struct json_object *params, const char *key, size_t max, const char **value,
		     bool *present, struct gp_error *err);

/* The index of the value in the list of words. */
int gp_params_choice(struct json_object *params, const char *key, const char *const *word,
		     unsigned nwords, unsigned *value, bool *present, struct gp_error *err);

/* The value is borrowed from `params`. */
int gp_params_object(struct json_object *params, const char *key, struct json_object **value,
		     bool *present, struct gp_error *err);
int gp_params_array(struct json_object *params, const char *key, unsigned max,
		    struct json_object **value, bool *present, struct gp_error *err);

#endif
