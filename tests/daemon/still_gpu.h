/* SPDX-License-Identifier: Apache-2.0 */
/* A device with nothing but tasks: as many as the test says, all of this process, which do nothing
 * and can be held. */
#ifndef TESTS_DAEMON_STILL_GPU_H
#define TESTS_DAEMON_STILL_GPU_H

#include "support/test.h"

#include <pthread.h>

#include "base/process.h"
#include "daemon/device_thread.h"

#define STILL_MAX 2048

struct still_gpu {
	struct gp_gpu base;
	pthread_mutex_t gate; /* nobody looks while the test has it */
	_Atomic unsigned at_gate;
	_Atomic unsigned tasks;
	uint64_t start_time; /* of this process */
	bool held[STILL_MAX];
	_Atomic bool holds_nobody; /* every attempt fails */
	_Atomic bool spares_first; /* every attempt to hold the first task */
};

/* Belongs to the host that is started with it. */
struct still_gpu *still_new(unsigned tasks, uint32_t caps);
int still_start(struct still_gpu *g, struct gp_assignments *assignments, int wake_fd,
		const char *policy, struct gp_device_thread **host, struct gp_error *err);

#endif
