/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of a page. Numbers are written without floating point and whatever the locale is. */
#ifndef GP_METRICS_SAMPLE_H
#define GP_METRICS_SAMPLE_H

#include <stdio.h>

#include "base/log2_hist.h"
#include "base/hist.h"

/* HELP and TYPE; the samples of the family follow. */
void gp_metrics_head(FILE *out, const char *name, const char *type, const char *help);

/* name="value", escaped; what is not UTF-8 in the value becomes U+FFFD. */
void gp_metrics_label(FILE *out, const char *name, const char *value);

/* The value of a sample and the end of its line. */
void gp_metrics_count(FILE *out, uint64_t value);
void gp_metrics_seconds(FILE *out, uint64_t ns);

/* All samples of a histogram but its head, with `labels` ("device=\"0\"") on each: buckets with
 * powers of two of 1 us up to 16 s as their bounds. */
void gp_metrics_hist(FILE *out, const char *name, const char *labels, const struct gp_hist *h);
void gp_metrics_coarse(FILE *out, const char *name, const char *labels,
                       const struct gp_log2_hist *h);

#endif
