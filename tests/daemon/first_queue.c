/* SPDX-License-Identifier: Apache-2.0 */
/*
 * daemon-first-queue: says when it asked for its first queue on the simulated GPU (ns since the
 * epoch, as events have it), once it has it, and waits to be ended.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "gpu/simclient/connection.h"

int main(void)
{
	struct gp_simgpu_hello hello = {0};
	struct gp_error err = {0};
	char usual[GP_SIMGPU_PATH_SIZE];
	const char *path = gp_simgpu_path(usual, sizeof usual);
	struct timespec asked;

	prctl(PR_SET_PDEATHSIG, SIGKILL); /* not to outlive a test that fails */
	clock_gettime(CLOCK_REALTIME, &asked);
	if (gp_simgpu_join(path, &hello, &err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	printf("%" PRId64 "\n", (int64_t)asked.tv_sec * 1000000000 + asked.tv_nsec);
	if (fflush(stdout))
		return 1;
	for (;;)
		pause();
}
