/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of gpreemptd and its devices as a page for Prometheus (text exposition format 0.0.4). A
 * function of plain data: it reads no clock and does no I/O except on its output stream. Times are
 * in seconds, counters end in _total, and a value that a device cannot show is absent, not 0.
 */
#ifndef GP_METRICS_PAGE_H
#define GP_METRICS_PAGE_H

#include <stdio.h>

#include "engine/engine.h"

#define GP_METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* Limit of tasks with metrics of their own, over all devices. */
#define GP_METRICS_TASKS_MAX 200u

/* The caller owns everything that the members point to. */
struct gp_metrics_device {
	const char *name;    /* "NVIDIA H200 #0" */
	const char *backend; /* "nvidia" */
	const char *policy;  /* in force; NULL: not known yet */
	const char *wanted;  /* the requested policy */
	uint32_t caps;       /* GP_CAP_* */
	bool stuck;          /* its thread no longer ticks, or a driver call hangs */
	uint64_t starve_limit_ns;
	const struct gp_engine_stats *stats;
	const struct gp_hist *lag_ns; /* delay of its thread's wake-ups */
	unsigned ntasks;
	const struct gp_task_stats *task;
};

struct gp_metrics_page {
	const char *version;

	/* The daemon's process; 0: not known. */
	uint64_t started_s; /* seconds since 1970 */
	uint64_t cpu_ns;
	uint64_t resident_bytes;
	uint64_t open_fds, max_fds;

	/* Clients and their requests. */
	uint64_t clients, refused, requests, errors, cut_off, events_lost;
	uint64_t processes; /* processes that the daemon knows */

	bool keeper;            /* the keeper is running */
	uint64_t limits_passed; /* how often a process exceeded its GPU memory limit */
	uint64_t over_limit;    /* processes that exceed it now */

	bool tasks; /* write metrics of each task */
	unsigned ndevices;
	const struct gp_metrics_device *device;
};

/* Writes the page. Check the stream for errors. */
void gp_metrics_write(FILE *out, const struct gp_metrics_page *page);

#endif
