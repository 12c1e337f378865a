/* SPDX-License-Identifier: Apache-2.0 */
#include "gpreempt.h"

#include <assert.h>

#include "base/error.h"
#include "build_config.h"

/* The sizes that programs were compiled with. They never change; see `Growth` in gpreempt.h. */
static_assert(sizeof(struct gpreempt_queue) == 160, "queue");
static_assert(sizeof(struct gpreempt_snapshot) == 56, "snapshot");
static_assert(sizeof(struct gpreempt_history) == 48, "history");
static_assert(sizeof(struct gpreempt_count) == 24, "count");
static_assert(sizeof(struct gpreempt_series) == 64, "series");
static_assert(sizeof(struct gpreempt_sighting) == 64, "sighting");
static_assert(sizeof(struct gpreempt_statistics) == 88, "statistics");

const char *gpreempt_version(void)
{
	return GP_VERSION;
}

const char *gpreempt_error_text(int code)
{
	return gp_error_name(code);
}
