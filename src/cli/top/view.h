/* SPDX-License-Identifier: Apache-2.0 */
/* Which tasks are looked at: in which order, which of them, which one. */
#ifndef GP_CLI_TOP_VIEW_H
#define GP_CLI_TOP_VIEW_H

#include "cli/top/columns.h"

struct gp_top_view {
	enum gp_top_column sort; /* GP_COL_SHARE: by the GPU time of the last seconds */
	char filter[64];         /* part of a name or user, in any case; "" = all */

	/* Whom the keys are about. It stays the same one when the order changes. */
	bool selected;
	unsigned device;
	uint64_t id;
	unsigned place; /* in the order: who takes over when it leaves */

	unsigned first;  /* the first that is on the screen */
	unsigned n;      /* that pass the filter */
	unsigned *order; /* owned: indices in the shot */
	unsigned capacity;
};

/* The next column by which it can be sorted, and back to the first. */
enum gp_top_column gp_top_next_sort(enum gp_top_column sort);

/* After the shot, the filter or the order changed, or the screen: who is shown where. Nobody is
 * shown for want of memory. */
void gp_top_view_update(struct gp_top_view *view, const struct gp_top_snapshot *snapshot,
                        unsigned rows);

/* Selects the one so many places further down, or as far as there is one. */
void gp_top_view_move(struct gp_top_view *view, const struct gp_top_snapshot *snapshot, long by,
                      unsigned rows);

/* NULL: there is none. */
const struct gp_top_task *gp_top_view_selected(const struct gp_top_view *view,
                                               const struct gp_top_snapshot *snapshot);

void gp_top_view_free(struct gp_top_view *view);

#endif
