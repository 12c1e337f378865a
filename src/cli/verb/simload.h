/* SPDX-License-Identifier: Apache-2.0 */
/* The work of gpreempt simload and its results. Private to simload.c and simload_run.c. */
#ifndef GP_CLI_VERB_SIMLOAD_H
#define GP_CLI_VERB_SIMLOAD_H

#include <stdatomic.h>

#include "base/hist.h"
#include "gpu/simclient/connection.h"

enum gp_simload_when { GP_SIMLOAD_CLOSED, GP_SIMLOAD_PERIODIC, GP_SIMLOAD_POISSON };

struct gp_simload_work {
	struct gp_simgpu_hello program;
	enum gp_simload_when when;
	uint64_t every_ns;
	uint32_t ahead; /* with GP_SIMLOAD_CLOSED: number of queued requests */
	uint32_t kernels;
	uint64_t kernel_ns, gap_ns;
	uint64_t for_ns;   /* GP_NEVER: until a signal */
	uint64_t requests; /* 0: any number */
	uint64_t seed;
};

/* In shared memory; each process writes its own. */
struct gp_simload_result {
	atomic_bool is_ready; /* the context exists */
	uint64_t requests;    /* done */
	uint64_t left;        /* submitted, but not done at the end */
	uint64_t wrong;       /* requests with kernels that were not executed exactly once */
	uint64_t checksum;    /* of all values, in order */
	uint64_t took_ns;
	struct gp_hist response_ns;
	struct gp_hist device_ns; /* from arrival at the device until the end */
	struct gp_error err;
};

/* Runs until the work is done or a signal comes (cli/lib/stop.h). Calls `ready`, if not NULL, when
 * the context exists. 0 or -errno with a message in the result. */
int gp_simload_run(const struct gp_simload_work *work, uint64_t stream,
		   struct gp_simload_result *result, void (*ready)(void));

#endif
