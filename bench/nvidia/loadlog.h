/* SPDX-License-Identifier: Apache-2.0 */
/* What a load wrote about its run: see the top of load.cu for the format. */
#ifndef BENCH_LOADLOG_H
#define BENCH_LOADLOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct samples {
	uint64_t *ns;
	size_t count, room;
};

/* 0 or -ENOMEM. */
int samples_add(struct samples *s, uint64_t ns);
int samples_append(struct samples *to, const struct samples *from);
void samples_free(struct samples *s);

/* Sorts; then the value at or below which `share` of them lie, by nearest rank. 0 when empty. */
void samples_sort(struct samples *s);
uint64_t samples_quantile(const struct samples *sorted, double share);

struct loadlog {
	struct samples latency, done;
	uint64_t from_ns, to_ns; /* the window in which requests were served */
	uint64_t iterations, kernel_ns, late;
	bool right; /* every result was the reference's */
	char check[160], gpu[128];
};

/* -ENODATA for a file that was not finished. The caller frees in every case. */
int loadlog_read(struct loadlog *log, const char *path, struct gp_error *err);
void loadlog_free(struct loadlog *log);

/*
 * Kernels done in the window, with fractions: one under way at an edge counts by the part of its
 * time that lies inside.
 */
double loadlog_work(const struct loadlog *log, uint64_t from_ns, uint64_t to_ns);

#endif
