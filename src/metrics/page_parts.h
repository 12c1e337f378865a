/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a page; private to src/metrics. */
#ifndef GP_METRICS_PAGE_PARTS_H
#define GP_METRICS_PAGE_PARTS_H

#include "metrics/page.h"

/* device_metrics.c */
void gp_metrics_devices(FILE *out, const struct gp_metrics_page *page);
/* task_metrics.c: the number of tasks in each state and, if requested, metrics of each task. */
void gp_metrics_tasks(FILE *out, const struct gp_metrics_page *page);

#endif
