/* SPDX-License-Identifier: Apache-2.0 */
#include "metrics/sample.h"

#include "base/clock.h"
#include "base/utf8.h"

#define POWERS 25 /* bounds from 2^0 to 2^24 us */

void gp_metrics_head(FILE *out, const char *name, const char *type, const char *help)
{
	fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void gp_metrics_label(FILE *out, const char *name, const char *value)
{
	fprintf(out, "%s=\"", name);
	while (*value) {
		unsigned n = gp_utf8_length(value);

		if (*value == '\n')
			fputs("\\n", out);
		else if (*value == '"' || *value == '\\')
			fprintf(out, "\\%c", *value);
		else
			fprintf(out, "%.*s", n ? (int)n : 3, n ? value : GP_UTF8_REPLACEMENT);
		value += n ? n : 1;
	}
	fputc('"', out);
}

void gp_metrics_count(FILE *out, uint64_t value)
{
	fprintf(out, " %llu\n", (unsigned long long)value);
}

void gp_metrics_seconds(FILE *out, uint64_t ns)
{
	fprintf(out, " %llu.%09llu\n", (unsigned long long)(ns / GP_NS_PER_S),
		(unsigned long long)(ns % GP_NS_PER_S));
}

static void write_bucket(FILE *out, const char *name, const char *labels, unsigned power,
			 uint64_t below)
{
	uint64_t us = 1ull << power;

	fprintf(out, "%s_bucket{%s,le=\"%llu.%06llu\"}", name, labels,
		(unsigned long long)(us / 1000000), (unsigned long long)(us % 1000000));
	gp_metrics_count(out, below);
}

static void write_sum(FILE *out, const char *name, const char *labels, uint64_t sum_ns,
		      uint64_t count)
{
	fprintf(out, "%s_bucket{%s,le=\"+Inf\"}", name, labels);
	gp_metrics_count(out, count);
	fprintf(out, "%s_sum{%s}", name, labels);
	gp_metrics_seconds(out, sum_ns);
	fprintf(out, "%s_count{%s}", name, labels);
	gp_metrics_count(out, count);
}

/* Returns the number of samples in a bucket and its last value. */
typedef uint64_t bucket_fn(const void *hist, unsigned index, uint64_t *last_ns);

/*
 * Powers of two of 1 us are bucket bounds of both kinds of histogram, so no bucket is split. A
 * duration that equals a bound is counted in the bucket above it, 1 ns too high.
 */
static void write_buckets(FILE *out, const char *name, const char *labels, const void *hist,
			  bucket_fn *bucket, unsigned nbuckets)
{
	uint64_t below = 0, count, last_ns;
	unsigned i = 0;

	for (unsigned power = 0; power < POWERS; power++) {
		for (; i < nbuckets; i++) {
			count = bucket(hist, i, &last_ns);
			if (last_ns >= GP_NS_PER_US << power)
				break;
			below += count;
		}
		write_bucket(out, name, labels, power, below);
	}
}

static uint64_t hist_bucket(const void *hist, unsigned index, uint64_t *last_ns)
{
	uint64_t first_ns;

	gp_hist_bounds(index, &first_ns, last_ns);
	return ((const struct gp_hist *)hist)->bucket[index];
}

static uint64_t log2_hist_bucket(const void *hist, unsigned index, uint64_t *last_ns)
{
	uint64_t first_ns;

	gp_log2_hist_bounds(index, &first_ns, last_ns);
	return ((const struct gp_log2_hist *)hist)->bucket[index];
}

void gp_metrics_hist(FILE *out, const char *name, const char *labels, const struct gp_hist *h)
{
	write_buckets(out, name, labels, h, hist_bucket, GP_HIST_BUCKETS);
	write_sum(out, name, labels, h->sum, h->count);
}

void gp_metrics_log2_hist(FILE *out, const char *name, const char *labels,
			  const struct gp_log2_hist *h)
{
	write_buckets(out, name, labels, h, log2_hist_bucket, GP_LOG2_HIST_BUCKETS);
	write_sum(out, name, labels, h->sum_ns, h->count);
}
