/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVIDIA's MPS for one run: a control daemon of our own, in its own directories, in the
 * foreground as our child, and told to quit afterwards.
 */
#ifndef BENCH_MPS_H
#define BENCH_MPS_H

#include "child.h"

struct mps {
	struct child daemon;
	const char *control; /* the program */
	char pipes[256], logs[256];
	char pipe_env[320], log_env[320]; /* what its clients need, as NAME=VALUE */
	char errors[320];
};

/* `directory` exists, is private, and short: the pipes are sockets. */
int mps_start(struct mps *m, const char *control, const char *directory, struct gp_error *err);

/* Quits, and ends by force what did not. Does nothing when it was not started. */
void mps_stop(struct mps *m);

#endif
