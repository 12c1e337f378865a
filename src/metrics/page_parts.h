/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a page, shared by its files and by nobody else. */
#ifndef GP_METRICS_PAGE_PARTS_H
#define GP_METRICS_PAGE_PARTS_H

#include "metrics/page.h"

/* devices.c */
void gp_metrics_devices(FILE *out, const struct gp_metrics_page *page);
/* tasks.c: how many in which state, and each one where asked for. */
void gp_metrics_tasks(FILE *out, const struct gp_metrics_page *page);

#endif
