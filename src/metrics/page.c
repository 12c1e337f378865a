/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of a page, and metrics of the daemon itself. Metrics of the process have the names that
 * Prometheus defines. */
#include "metrics/page.h"

#include "base/clock.h"
#include "base/utf8.h"
#include "metrics/page_parts.h"

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

static void write_one(FILE *out, const char *name, const char *type, const char *help,
		      uint64_t value)
{
	gp_metrics_head(out, name, type, help);
	fputs(name, out);
	gp_metrics_count(out, value);
}

/* Omits a value that is not known (0). */
static void write_known(FILE *out, const char *name, const char *help, uint64_t value)
{
	if (value)
		write_one(out, name, "gauge", help, value);
}

static void write_process(FILE *out, const struct gp_metrics_page *p)
{
	gp_metrics_head(out, "process_cpu_seconds_total", "counter",
			"CPU time of the daemon, all threads.");
	fputs("process_cpu_seconds_total", out);
	gp_metrics_seconds(out, p->cpu_ns);
	write_known(out, "process_resident_memory_bytes", "Memory of the daemon.",
		    p->resident_bytes);
	write_known(out, "process_open_fds", "Open file descriptors of the daemon.", p->open_fds);
	write_known(out, "process_max_fds", "Limit of open file descriptors.", p->max_fds);
	write_known(out, "process_start_time_seconds",
		    "Start time of the daemon, in seconds since 1970.", p->started_s);
}

static void write_service(FILE *out, const struct gp_metrics_page *p)
{
	write_one(out, "gpreempt_clients", "gauge", "Connected clients.", p->clients);
	write_one(out, "gpreempt_clients_refused_total", "counter",
		  "Connections refused because too many clients were connected.", p->refused);
	write_one(out, "gpreempt_clients_cut_off_total", "counter",
		  "Connections closed because of a limit or malformed input.", p->cut_off);
	write_one(out, "gpreempt_requests_total", "counter", "Requests of clients.", p->requests);
	write_one(out, "gpreempt_request_errors_total", "counter",
		  "Requests answered with an error.", p->errors);
	write_one(out, "gpreempt_events_lost_total", "counter",
		  "Events that clients lost because they read too slowly.", p->events_lost);
	write_one(out, "gpreempt_processes", "gauge", "Processes the daemon knows.", p->processes);
	write_one(out, "gpreempt_keeper_up", "gauge",
		  "1: the keeper is running; it releases all tasks if the daemon dies.", p->keeper);
	write_one(out, "gpreempt_memory_limit_passed_total", "counter",
		  "How often a process exceeded its GPU memory limit.", p->limits_passed);
	write_one(out, "gpreempt_processes_over_memory_limit", "gauge",
		  "Processes that exceed their GPU memory limit now.", p->over_limit);
}

void gp_metrics_write(FILE *out, const struct gp_metrics_page *p)
{
	gp_metrics_head(out, "gpreempt_build_info", "gauge", "Always 1; the version is a label.");
	fputs("gpreempt_build_info{", out);
	gp_metrics_label(out, "version", p->version);
	fputc('}', out);
	gp_metrics_count(out, 1);
	write_process(out, p);
	write_service(out, p);
	gp_metrics_devices(out, p);
	gp_metrics_tasks(out, p);
}
