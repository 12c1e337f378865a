/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the back end share: an emulator, the back end's GPU 0 on it, short waits. */
#ifndef TESTS_NVIDIA_GPU_WORLD_H
#define TESTS_NVIDIA_GPU_WORLD_H

#include "support/test.h"

#include <poll.h>

#include "base/clock.h"
#include "emu/nvidia/emu.h"
#include "gpu/nvidia/nvidia_backend.h"

#define GW_LOADS 16
#define GW_HANDS 4

struct hand;

struct gpu_world {
	struct emu emu;
	struct gp_gpu *gpu;
	struct emu_load load[GW_LOADS]; /* killed at the end of the test, if they still run */
	unsigned nloads;
	struct hand *hand[GW_HANDS]; /* likewise; see hand_made.h */
	unsigned nhands;
};

static inline void gw_open(struct gpu_world *w)
{
	assert_int_equal(gp_nvidia_ops.open(0, 0, &w->gpu), 0);
}

void gw_close(struct gpu_world *w);
int gw_set_up(void **state);
int gw_tear_down(void **state);

#define GPU_TEST(f) TEST_IN(struct gpu_world, f, gw_set_up, gw_tear_down)

/* A load with options of rm-load. */
#define gw_load(w, ...)                                                                  \
	({                                                                               \
		struct emu_load *load_ = &(w)->load[(w)->nloads++];                      \
                                                                                         \
		assert_in_range((w)->nloads, 1, GW_LOADS);                               \
		assert_int_equal(emu_load_start(load_, ##__VA_ARGS__, (char *)NULL), 0); \
		load_;                                                                   \
	})

/* Kills it and returns what its pid was. */
pid_t gw_kill(struct emu_load *load);

static inline uint64_t gw_now(void)
{
	return gp_monotonic_ns();
}

/* Finds and attaches a process; its handle. Opens the device if it is not open. */
uint32_t gw_attach(struct gpu_world *w, pid_t pid);
struct gp_observation gw_look(struct gpu_world *w, uint32_t handle);

/* The observation once nothing is under way, and the task is known. */
struct gp_observation gw_settled(struct gpu_world *w, uint32_t handle);

/* An action on an attached process with a known state. */
struct gp_action gw_settled_action(struct gpu_world *w, pid_t pid, uint32_t slice_us);

/* Starts `n` loads, with an action on each of them. */
void gw_load_batch(struct gpu_world *w, struct emu_load **load, struct gp_action *a, unsigned n);

enum gw_action { GW_HOLD, GW_RELEASE, GW_SLICE };

/* Asks for it, and waits for its end; the observation then. */
struct gp_observation gw_act(struct gpu_world *w, enum gw_action what, uint32_t handle,
			     uint32_t slice_us);

/* A slice of 1 us, and a hold. */
void gw_slice_and_hold(struct gpu_world *w, uint32_t handle);

/* GPU time of the process's compute groups up to now. */
static inline uint64_t gw_run_ns(struct gpu_world *w, pid_t pid)
{
	return emu_group_sum(&w->emu, pid, "run_ns");
}

bool gw_makes_progress(struct gpu_world *w, pid_t pid);
bool gw_state_has(struct gpu_world *w, const char *text);

/* Tasks that are seen. */

/* The task that is all of this process, or 0. */
bool gw_sees(struct gpu_world *w, pid_t pid, struct gp_seen *out);

/* How many queues of this type the task has. */
unsigned gw_queues(struct gpu_world *w, uint64_t key, const char *type);

/* GPU `index` instead of the first. */
struct gp_gpu *gw_open_index(unsigned index);

#endif
