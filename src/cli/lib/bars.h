/* SPDX-License-Identifier: Apache-2.0 */
/* Times as a histogram with powers of two. */
#ifndef GP_CLI_LIB_BARS_H
#define GP_CLI_LIB_BARS_H

#include <json-c/json.h>
#include <stdio.h>

#include "base/hist.h"

/* For people: a line for each power of two of microseconds, from the smallest to the largest. */
void gp_bars_print(FILE *out, const char *title, const struct gp_hist *ns);

/* [{"from_us":256,"to_us":512,"count":7},...]. The caller puts it. */
struct json_object *gp_bars_json(const struct gp_hist *ns);

#endif
