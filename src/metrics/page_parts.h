/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a page; private to src/metrics. */
#ifndef GP_METRICS_PAGE_PARTS_H
#define GP_METRICS_PAGE_PARTS_H

#include <stdio.h>

#include "base/hist.h"
#include "base/log2_hist.h"
#include "metrics/page.h"

/* device_metrics.c */
void gp_metrics_devices(FILE *out, const struct gp_metrics_page *page);
/* task_metrics.c: the number of tasks in each state and, if requested, metrics of each task. */
void gp_metrics_tasks(FILE *out, const struct gp_metrics_page *page);

/* page.c: writes the lines of a page. Numbers are written without floating point, independent of
 * the locale. */

/* Writes the HELP and TYPE lines of a metric family; its samples follow. */
void gp_metrics_head(FILE *out, const char *name, const char *type, const char *help);

/* Writes name="value", escaped. Bytes that are not UTF-8 become U+FFFD. */
void gp_metrics_label(FILE *out, const char *name, const char *value);

/* Write the value of a sample and end its line. */
void gp_metrics_count(FILE *out, uint64_t value);
void gp_metrics_seconds(FILE *out, uint64_t ns);

/* Write all samples of a histogram, without HELP and TYPE, with `labels` ("device=\"0\"") on each.
 * The bucket bounds are powers of two of 1 us, up to 16 s. */
void gp_metrics_hist(FILE *out, const char *name, const char *labels, const struct gp_hist *h);
void gp_metrics_log2_hist(FILE *out, const char *name, const char *labels,
			  const struct gp_log2_hist *h);

#endif
