/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the back end share: an emulator, the back end's GPU 0 on it, short waits. */
#ifndef TESTS_NVIDIA_GPU_WORLD_H
#define TESTS_NVIDIA_GPU_WORLD_H

#include "support/test.h"

#include <poll.h>

#include "base/clock.h"
#include "emu/nvidia/emu.h"
#include "gpu/nvidia/nvidia_backend.h"

struct gpu_world {
	struct emu emu;
	struct gp_gpu *gpu;
};

static inline void gw_open(struct gpu_world *w)
{
	assert_int_equal(gp_nvidia_ops.open(0, 0, &w->gpu), 0);
}

static inline void gw_close(struct gpu_world *w)
{
	if (w->gpu)
		gp_nvidia_ops.close(w->gpu);
	w->gpu = NULL;
}

static inline int gw_set_up(void **state)
{
	struct gpu_world *w = calloc(1, sizeof *w);

	*state = w;
	return w && !emu_start(&w->emu, "--gpus", "2", NULL) ? 0 : -1;
}

static inline int gw_tear_down(void **state)
{
	struct gpu_world *w = *state;
	int r;

	gw_close(w);
	r = emu_stop(&w->emu);
	free(w);
	return r;
}

#define GPU_TEST(f) TEST_WITH(f, gw_set_up, gw_tear_down)

/* Skips the tests where there is no FUSE. */
TEST_BEGIN
{
	struct emu emu;

	if (emu_start(&emu, NULL) == -ENODEV)
		exit(EMU_SKIP);
	emu_stop(&emu);
}

static inline void gw_load(struct emu_load *load)
{
	assert_int_equal(emu_load_start(load, NULL), 0);
}

/* Kills it and returns what its pid was. */
static inline pid_t gw_kill(struct emu_load *load)
{
	pid_t pid = load->pid;

	emu_load_kill(load);
	return pid;
}

static inline uint64_t gw_now(void)
{
	return gp_monotonic_ns();
}

/* Finds and attaches a process; its handle. */
static inline uint32_t gw_attach(struct gpu_world *w, pid_t pid)
{
	struct gp_error err = {0};
	struct gp_seen seen;
	uint32_t handle = 0;
	int r = w->gpu->ops->find(w->gpu, pid, &seen, &err);

	if (r)
		fail_msg("find %d: %s", pid, err.text);
	assert_int_equal(gp_gpu_attach(w->gpu, seen.key, &handle), 0);
	return handle;
}

static inline struct gp_observation gw_look(struct gpu_world *w, uint32_t handle)
{
	struct gp_observation o = {.handle = handle};

	assert_int_equal(gp_gpu_observe(w->gpu, gw_now(), &o, 1), 0);
	return o;
}

/* The observation once nothing is under way, and the task is known. */
static inline struct gp_observation gw_settled(struct gpu_world *w, uint32_t handle)
{
	struct gp_observation o = {0};

	for (int i = 0; i < 5000; i++) {
		o = gw_look(w, handle);
		if (!o.under_way && (o.known & GP_KNOWN_HELD))
			break;
		usleep(1000);
	}
	assert_int_equal(o.under_way, 0);
	return o;
}

enum gw_action { GW_HOLD, GW_RELEASE, GW_SLICE };

/* Asks for it, and waits for its end; the observation then. */
static inline struct gp_observation gw_act(struct gpu_world *w, enum gw_action what,
                                           uint32_t handle, uint32_t slice_us)
{
	struct gp_action a = {.handle = handle, .slice_us = slice_us};
	int r = what == GW_HOLD      ? gp_gpu_hold(w->gpu, gw_now(), &a, 1)
	        : what == GW_RELEASE ? gp_gpu_release(w->gpu, gw_now(), &a, 1)
	                             : gp_gpu_set_slice(w->gpu, gw_now(), &a, 1);

	assert_int_equal(r, 0);
	assert_int_equal(a.status, -EINPROGRESS);
	return gw_settled(w, handle);
}

/* GPU time that the process's compute groups had so far. */
static inline uint64_t gw_run_ns(struct gpu_world *w, pid_t pid)
{
	return emu_group_sum(&w->emu, pid, "run_ns");
}

static inline bool gw_makes_progress(struct gpu_world *w, pid_t pid)
{
	uint64_t before = gw_run_ns(w, pid);

	emu_sleep_ms(60);
	return gw_run_ns(w, pid) > before;
}

static inline bool gw_state_has(struct gpu_world *w, const char *text)
{
	char *json = emu_state(&w->emu);
	bool has = json && strstr(json, text);

	free(json);
	return has;
}

/* Waits for it, up to 20 s: machines are slow, and under a sanitizer slower. */
#define GW_WAIT(condition)                                     \
	do {                                                   \
		uint64_t until_ = gw_now() + 20 * GP_NS_PER_S; \
		bool so_ = (condition);                        \
                                                               \
		while (!so_ && gw_now() < until_) {            \
			usleep(1000);                          \
			so_ = (condition);                     \
		}                                              \
		if (!so_)                                      \
			fail_msg("never: %s", #condition);     \
	} while (0)

/* ---- who is seen ------------------------------------------------------------------------------
 */

/* The task that is all of this process, or 0. */
static inline bool gw_sees(struct gpu_world *w, pid_t pid, struct gp_seen *out)
{
	struct gp_seen seen[64];
	int n = gp_gpu_scan(w->gpu, gw_now(), seen, 64);

	if (out)
		*out = (struct gp_seen){0};
	assert_in_range(n, 0, 64);
	for (int i = 0; i < n; i++)
		if (seen[i].pid == pid && seen[i].queue == GP_QUEUE_ALL) {
			if (out)
				*out = seen[i];
			return true;
		}
	return false;
}

/* How many queues of this type the task has. */
static inline unsigned gw_queues(struct gpu_world *w, uint64_t key, const char *type)
{
	struct gp_queue queue[64];
	int n = w->gpu->ops->queues(w->gpu, key, true, queue, 64, NULL);
	unsigned found = 0;

	assert_in_range(n, 0, 64);
	for (int i = 0; i < n; i++)
		found += !strcmp(queue[i].type, type);
	return found;
}

/* GPU `index` instead of the first. */
static inline struct gp_gpu *gw_open_index(unsigned index)
{
	struct gp_gpu *gpu = NULL;

	assert_int_equal(gp_nvidia_ops.open(index, 0, &gpu), 0);
	return gpu;
}

#endif
