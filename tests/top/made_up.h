/* SPDX-License-Identifier: Apache-2.0 */
/* Made-up snapshots for tests of gpreempt top. */
#ifndef GP_TESTS_TOP_MADE_UP_H
#define GP_TESTS_TOP_MADE_UP_H

#include "support/test.h"

#include <locale.h>

#include "base/clock.h"
#include "cli/top/top.h"
#include "policy/policy.h"

#define MS GP_NS_PER_MS
#define S  GP_NS_PER_S

/* A snapshot of one device and `n` tasks with ids from 1 on; all counters 0, all known. */
struct gp_top_snapshot made_up_snapshot(unsigned n, uint64_t at_ns);

/* The grid as text, one line per row; the caller frees it. */
char *text_of(const struct gp_cells *cells);
void assert_shows(const struct gp_cells *cells, const char *part);
void assert_hides(const struct gp_cells *cells, const char *part);

#endif
