/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A simulated GPU in the hands of a test: the real server process in a folder of its own, programs
 * that use it, and the back end. Nothing depends on how fast the machine is: tests wait for what
 * they want to see. Include first.
 */
#ifndef TESTS_SIMGPU_SIMGPU_WORLD_H
#define TESTS_SIMGPU_SIMGPU_WORLD_H

#include "support/process.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/process.h"
#include "gpu/simclient/simclient_device.h"
#include "gpu/simclient/connection.h"

#define WORLD_PROGRAMS 8
#define PATIENCE_NS    (30 * GP_NS_PER_S)

struct world {
	char folder[32];
	char path[64]; /* of the socket */
	pid_t server;
	pid_t program[WORLD_PROGRAMS];
	unsigned nprograms;
};

static inline uint64_t now(void)
{
	return gp_monotonic_ns();
}

static inline void pause_shortly(void)
{
	usleep(1000);
}

/* Waits until an expression is true. */
#define WAIT_FOR(condition) TEST_WAIT_S(PATIENCE_NS / GP_NS_PER_S, condition)

/* Starts a program and waits for its first line, `ready`. The program dies with the test. */
pid_t world_spawn(const char *const *argv);
void world_start_server(struct world *w, const char *model, const char *activity,
			const char *devices);
void world_begin(struct world *w, const char *model, const char *activity);
void world_kill(pid_t *pid, int number);
void world_end(struct world *w);

/* A closed loop of kernels; its pid. */
pid_t world_load(struct world *w, const char *kernel, const char *name);

/* A test on two simulated H200 that report all activity. */
int world_set_up(void **state);
int world_tear_down(void **state);

#define SIM_TEST(f) TEST_IN(struct world, f, world_set_up, world_tear_down)

/* The back end. */

/* What is open at the end of the world is closed then. */
struct gp_gpu *world_open(unsigned index);
void world_close(struct gp_gpu *gpu);

/* Starts a program called `train` and opens the first device. */
struct gp_gpu *world_train(struct world *w);
uint32_t world_attach(struct gp_gpu *gpu, pid_t pid);
struct gp_observation world_look(struct gp_gpu *gpu, uint32_t handle);

/* A hold, release or slice: asked for, and waited for. */
void world_act(struct gp_gpu *gpu, uint32_t handle, enum gp_simgpu_kind kind, uint32_t slice_us);
unsigned world_count(struct gp_gpu *gpu);

/* Whether it gets anything done, over some time. */
bool world_gets_on(struct gp_gpu *gpu, uint32_t handle);

/* Whether there was news since the last call. */
bool world_news(struct gp_gpu *gpu);

#endif
