/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the back end share: an emulator, the back end's GPU 0 on it, short waits. */
#ifndef TESTS_AMD_AMD_WORLD_H
#define TESTS_AMD_AMD_WORLD_H

#include "support/test.h"

#include <poll.h>

#include "base/clock.h"
#include "gpu/amd/amd_backend.h"
#include "emu/kfd/kfd_emu.h"
#include "target.h"

#define AW_LOADS   8
#define AW_TARGETS 4

struct amd_world {
	struct kfd_emu emu;
	struct gp_gpu *gpu;
	struct kfd_load load[AW_LOADS]; /* killed at the end, if they still are */
	unsigned nloads;
	struct target target[AW_TARGETS]; /* likewise */
	unsigned ntargets;
};

/* Which machine a test runs on. `slots`: queues of a GPU that run at full speed together; else 1.
 */
struct aw_machine {
	const char *gpu, *rule, *second_gpu, *slots;
};

/* HWS and MES; one session for a GPU (vega20) or many. */
__attribute__((unused)) static struct aw_machine
	mi250 = {.gpu = "mi250", .rule = "new"},
	mi250_old = {.gpu = "mi250", .rule = "old"}, mi300x = {.gpu = "mi300x", .rule = "new"},
	mi300x_old = {.gpu = "mi300x", .rule = "old"}, vega20 = {.gpu = "vega20", .rule = "new"},
	vega20_old = {.gpu = "vega20", .rule = "old"}, navi31 = {.gpu = "navi31", .rule = "new"},
	navi31_old = {.gpu = "navi31", .rule = "old"},
	two_mi250 = {.gpu = "mi250", .rule = "new", .second_gpu = "mi250"},
	mixed = {.gpu = "mi250", .rule = "new", .second_gpu = "vega20"},
	two_navi31 = {.gpu = "navi31", .rule = "new", .second_gpu = "navi31"};

/* A sanitizer cannot look for leaks in a process that is traced when it ends. */
void aw_expect_leak_checks(bool possible);
int aw_set_up(void **state);
void aw_close(struct amd_world *w);
int aw_tear_down(void **state);

#define AMD_TEST(f)         TEST_IN(struct amd_world, f, aw_set_up, aw_tear_down)
#define AMD_TEST_ADD(f, m)  TEST_ADD(#f " (" #m ")", f, aw_set_up, aw_tear_down, (void *)&(m))
#define AMD_TEST_ON(f, ...) TEST_EACH_IN(struct amd_world, f, AMD_TEST_ADD, __VA_ARGS__)
/* On each GPU, under both rules about debugging. */
#define AMD_TEST_EVERYWHERE(f) \
	AMD_TEST_ON(f, mi250, mi250_old, mi300x, mi300x_old, vega20, vega20_old, navi31, navi31_old)

static inline uint64_t aw_now(void)
{
	return gp_monotonic_ns();
}

/* Loads. */

/* A load with options of kfd-load, up to NULL; it is killed at the end of the test. */
#define aw_load(w, ...)                                                                  \
	({                                                                               \
		struct kfd_load *load_ = &(w)->load[(w)->nloads++];                      \
                                                                                         \
		assert_in_range((w)->nloads, 1, AW_LOADS);                               \
		assert_int_equal(kfd_load_start(load_, ##__VA_ARGS__, (char *)NULL), 0); \
		load_;                                                                   \
	})

static inline uint64_t aw_sum(struct amd_world *w, pid_t pid, const char *field)
{
	return kfd_emu_process_sum(&w->emu, pid, field);
}

static inline uint64_t aw_suspended(struct amd_world *w, pid_t pid)
{
	return aw_sum(w, pid, "suspended");
}

/* A number of a process in the emulator's state; UINT64_MAX: there is none. */
static inline uint64_t aw_process(struct amd_world *w, pid_t pid, const char *field)
{
	return kfd_emu_process_number(&w->emu, pid, field);
}

static inline bool aw_is_debugged(struct amd_world *w, pid_t pid)
{
	return aw_process(w, pid, "debugged") == 1;
}

/* It goes on executing. */
void aw_wait_progress(struct amd_world *w, pid_t pid);

/* It executes nothing while its neighbour, or the clock, goes on. */
void aw_stands_still(struct amd_world *w, pid_t pid);

/* None of its queues is suspended any more, and it goes on executing. */
void aw_wait_released(struct amd_world *w, pid_t pid);

/* The thread that traces it; 0: none. */
static inline long aw_tracer(pid_t pid)
{
	return test_process_status(pid, "TracerPid");
}

/* Targets. */

/* A target that has not opened the device; it is killed at the end of the test. */
struct target *aw_target(struct amd_world *w);

/* As a ROCm program: device opened, runtime enabled, this number of queues. */
struct target *aw_target_with(struct amd_world *w, unsigned queues);

/* Faults of the driver. */

#define AW_ALWAYS 1000000 /* as a number of failing calls */

/* A command for the emulator's file `control`, and the end of all faults. */
#define aw_disturb(w, ...) assert_int_equal(kfd_emu_control(&(w)->emu, __VA_ARGS__), 0)
#define aw_calm(w)         aw_disturb(w, "clear_faults")

/* The device. */

static inline void aw_open(struct amd_world *w)
{
	assert_int_equal(gp_amd_ops.open(0, 0, &w->gpu), 0);
}

/* Finds and attaches a process; its handle. aw_attach() opens the device if it is not open. */
uint32_t aw_attach_on(struct gp_gpu *gpu, pid_t pid);
uint32_t aw_attach(struct amd_world *w, pid_t pid);

/* The same, and the process has a debug session. */
uint32_t aw_prepared(struct amd_world *w, pid_t pid);

struct gp_observation aw_look_on(struct gp_gpu *gpu, uint32_t handle);

static inline struct gp_observation aw_look(struct amd_world *w, uint32_t handle)
{
	return aw_look_on(w->gpu, handle);
}

/* The observation once nothing is under way. */
struct gp_observation aw_settled_on(struct gp_gpu *gpu, uint32_t handle);

static inline struct gp_observation aw_settled(struct amd_world *w, uint32_t handle)
{
	return aw_settled_on(w->gpu, handle);
}

/* Asks for it, and waits for its end; the observation then. */
struct gp_observation aw_act_on(struct gp_gpu *gpu, bool hold, uint32_t handle);

static inline struct gp_observation aw_hold(struct amd_world *w, uint32_t handle)
{
	return aw_act_on(w->gpu, true, handle);
}

static inline struct gp_observation aw_release(struct amd_world *w, uint32_t handle)
{
	return aw_act_on(w->gpu, false, handle);
}

/* The same, and it must come to pass. */
void aw_must_hold(struct amd_world *w, uint32_t handle);
void aw_must_release(struct amd_world *w, uint32_t handle);

/* The back end's sentence about the last failure contains these words. */
void aw_must_say(struct amd_world *w, uint32_t handle, const char *words);

/* The task that is all of this process. */
bool aw_sees(struct amd_world *w, pid_t pid, struct gp_seen *out);

#endif
