/* SPDX-License-Identifier: Apache-2.0 */
/* What the keeper's tests share: an emulator of either kind, loads on it, a scheduler, a keeper. */
#ifndef TESTS_KEEPER_KEEPER_WORLD_H
#define TESTS_KEEPER_KEEPER_WORLD_H

#include "support/process.h"

#include <poll.h>

#include "base/clock.h"
#include "base/process.h"
#include "emu/nvidia/emu.h"
#include "emu/common/emulator.h"
#include "emu/kfd/kfd_emu.h"
#include "undo/undo.h"

#define KW_LOADS 4
#define KW_SKIP  77

/* What runs below: NVIDIA, or AMD with the driver's newer or older rule about debugging. */
struct kw_machine {
	const char *rule; /* NULL: NVIDIA */
};

__attribute__((unused)) static struct kw_machine nvidia = {0}, amd = {.rule = "new"},
						 amd_old = {.rule = "old"};

/* A program of ours and what it says. */
struct kw_program {
	pid_t pid; /* 0: it does not run */
	int out;
};

struct kw {
	const struct kw_machine *machine;
	struct emu emu;
	struct kfd_emu kfd;
	struct emu_load nv_load[KW_LOADS];
	struct kfd_load amd_load[KW_LOADS];
	unsigned nloads;
	struct kw_program scheduler, keeper;
	char dir[64], path[96];
	struct gp_undo_file *undo;
};

/* TEST_WAIT(), and it must not take longer than that; says how long it took. */
#define KW_WITHIN(limit_ms, condition)                               \
	do {                                                         \
		uint64_t from_ = test_now_ns(), took_ms_;            \
                                                                     \
		TEST_WAIT(condition);                                \
		took_ms_ = (test_now_ns() - from_) / GP_NS_PER_MS;   \
		print_message("    %s: after %llu ms\n", #condition, \
			      (unsigned long long)took_ms_);         \
		assert_true(took_ms_ <= (limit_ms)*KW_PATIENCE);     \
	} while (0)

/* Seconds on a machine that others use as well. */
#define KW_PATIENCE 3ull

/* Programs. */

void kw_spawn(struct kw_program *p, char **words);
void kw_kill(struct kw_program *p);

/* Its exit status. */
int kw_wait_end(struct kw_program *p);
void kw_keeper_is_there(struct kw *w);

/* Its patience in seconds; NULL: as it has by itself. */
void kw_start_keeper(struct kw *w, const char *timeout);

/* Told which loads to hold, by number; -1: no more. s + 100: another slice instead. */
void kw_spawn_scheduler(struct kw *w, int first, int second);

/* Loads. */

static inline pid_t kw_pid(const struct kw *w, int load)
{
	return w->machine->rule ? w->amd_load[load].pid : w->nv_load[load].pid;
}

void kw_start_load(struct kw *w, int load);
void kw_kill_load(struct kw *w, int load);
int kw_load(struct kw *w);
bool kw_is_held(struct kw *w, int load);

static inline uint64_t kw_slice_us(struct kw *w, int load)
{
	return emu_group_sum(&w->emu, kw_pid(w, load), "slice_us");
}

void kw_wait_progress(struct kw *w, int load);

/* The scheduler. */

void kw_start_scheduler(struct kw *w, int first, int second);

/* A load that a scheduler holds, and a keeper with this patience; the number of the load. */
int kw_held(struct kw *w, const char *timeout);
void kw_stop_scheduler(struct kw *w);
unsigned kw_records(struct kw *w);

/* The owner of this load's record; 0: there is none. */
pid_t kw_holder(struct kw *w, int load);

/* The whole. */

int kw_set_up(void **state);
int kw_tear_down(void **state);

#define KEEPER_TEST_ADD(f, m)     TEST_ADD(#f " (" #m ")", f, kw_set_up, kw_tear_down, (void *)&(m))
#define KEEPER_TEST(f)            TEST_EACH_IN(struct kw, f, KEEPER_TEST_ADD, nvidia)
#define KEEPER_TEST_EVERYWHERE(f) TEST_EACH_IN(struct kw, f, KEEPER_TEST_ADD, nvidia, amd, amd_old)

#endif
