/* SPDX-License-Identifier: Apache-2.0 */
/* One run: some loads together, in one arm, for one window. */
#ifndef BENCH_TRIAL_H
#define BENCH_TRIAL_H

#include "cells.h"
#include "loadlog.h"

/* Programs and places; the same for all runs. */
struct bench {
	const char *load, *python, *torch_script, *gpreempt, *policy, *mps_control;
	const char *logs; /* where the loads write; kept if the user named it */
	const char *own;  /* a private directory with a short name, for pipes and the lock */
	unsigned ready_s; /* how long a CUDA load may take to get ready */
	unsigned trials;  /* so far: names the files */
};

struct trial {
	const char *label; /* for file names */
	enum arm arm;
	const struct lc_load *lc; /* NULL: best-effort only */
	unsigned requests;
	uint64_t iterations; /* of the lc load's kernel; 0: it finds out */
	const enum be_kind *be;
	unsigned nbe;
	unsigned settle_ms;
	unsigned window_ms; /* without lc */
	unsigned seed;
};

struct outcome {
	struct samples latency;
	double window_s;
	double work[BE_MAX]; /* kernels or steps done in the window */
	uint64_t iterations, kernel_ns, late;
	char gpu[128];
	bool skipped;    /* a load says it cannot run here */
	bool mismatched; /* a result was wrong */
	bool starved;    /* lc did not end in time */
};

/*
 * 0, or -errno and why; nothing that was started still runs then, either. The caller frees the
 * samples in every case.
 */
int trial_run(struct bench *b, const struct trial *t, struct outcome *out, struct gp_error *err);

#endif
