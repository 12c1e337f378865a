/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What gpreemptd knows of itself and its devices, as a page for Prometheus (text exposition format
 * 0.0.4). A function of plain data: no clock, no I/O but the stream it writes to. Times are
 * seconds, counters end in _total, and what a device cannot show is absent, not 0.
 */
#ifndef GP_METRICS_PAGE_H
#define GP_METRICS_PAGE_H

#include <stdio.h>

#include "engine/engine.h"

#define GP_METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* At most so many tasks have series of their own, of all devices together. */
#define GP_METRICS_TASKS_MAX 200u

/* All of it is borrowed. */
struct gp_metrics_device {
	const char *name;    /* "NVIDIA H200 #0" */
	const char *backend; /* "nvidia" */
	const char *policy;  /* in force; NULL = not known yet */
	const char *wanted;  /* the policy that was asked for */
	uint32_t caps;       /* GP_CAP_* */
	bool stuck;          /* its thread does not look any more */
	uint64_t starve_limit_ns;
	const struct gp_engine_stats *stats;
	const struct gp_hist *lag_ns; /* how late its thread woke up */
	unsigned ntasks;
	const struct gp_task_stats *task;
};

struct gp_metrics_page {
	const char *version;

	/* The process; 0 = not known. */
	uint64_t started_s; /* since 1970 */
	uint64_t cpu_ns;
	uint64_t resident_bytes;
	uint64_t open_fds, max_fds;

	/* Whom it serves. */
	uint64_t clients, refused, requests, errors, cut_off, events_lost;
	uint64_t processes; /* that it knows */

	bool keeper;            /* is there */
	uint64_t limits_passed; /* how often a process passed its limit of GPU memory ... */
	uint64_t over_limit;    /* ... and how many are above it now */

	bool tasks; /* with series for each task */
	unsigned ndevices;
	const struct gp_metrics_device *device;
};

/* Errors are those of the stream. */
void gp_metrics_write(FILE *out, const struct gp_metrics_page *page);

#endif
