/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of the library share: a machine with GPUs of either kind, loads on it, and what
 * the emulated driver itself says of them. A test says LIB_TEST(f) and runs on both.
 */
#ifndef TESTS_LIB_LIB_WORLD_H
#define TESTS_LIB_LIB_WORLD_H

#include "support/process.h"

#include <pthread.h>

#include "emu/nvidia/emu.h"
#include "gpreempt.h"
#include "emu/kfd/kfd_emu.h"

#define LW_LOADS   4
#define LW_HANDLES 8

enum lw_vendor { LW_NVIDIA, LW_AMD };

struct lw_load {
	pid_t pid;
	union {
		struct emu_load nvidia;
		struct kfd_load amd;
	} is;
};

struct lib_world {
	enum lw_vendor vendor;
	struct emu nvidia;
	struct kfd_emu amd;
	char undo[32];
	struct lw_load load[LW_LOADS];
	unsigned nloads;
};

/* What is open: closed at the end of the test, or the next has its devices. */
extern struct gpreempt *lw_opened[LW_HANDLES];
void lw_close(struct gpreempt *g);

/* Machines. */

/* No driver of this machine, and no record of it, is touched. */
void lw_hide_drivers(void);
int lw_set_up(void **state);
int lw_stop_load(struct lib_world *w, struct lw_load *load);
void lw_kill_load(struct lib_world *w, struct lw_load *load);
int lw_tear_down(void **state);

__attribute__((unused)) static enum lw_vendor lw_nvidia = LW_NVIDIA, lw_amd = LW_AMD;

#define LIB_TEST_ADD(f, vendor) \
	TEST_ADD(#f " (" #vendor ")", f, lw_set_up, lw_tear_down, &lw_##vendor)
#define LIB_TEST_ON(f, vendor) TEST_EACH_IN(struct lib_world, f, LIB_TEST_ADD, vendor)
#define LIB_TEST(f)            TEST_EACH_IN(struct lib_world, f, LIB_TEST_ADD, nvidia, amd)

/* Loads, and what the driver says of them. */

/* Options of rm-load or kfd-load, up to NULL: three words at most. */
struct lw_load *lw_load_with(struct lib_world *w, const char *a, const char *b, const char *c,
			     const char *d);

/* A load that keeps this number of compute queues busy. */
struct lw_load *lw_load(struct lib_world *w, const char *queues);
unsigned lw_held(struct lib_world *w, pid_t pid);
void lw_must_run(struct lib_world *w, pid_t pid);

/* While a second load goes on. */
void lw_must_stand(struct lib_world *w, pid_t pid, pid_t other);

/* It ends by itself, and no work was lost or done twice. The end of each test asserts it, too, of
 * every load that still runs then. */
#define LW_ENDS_RIGHT(w, load) assert_int_equal(lw_stop_load(w, load), 0)

/* The library. */

struct gpreempt *lw_open_with(pid_t pid, unsigned flags);

static inline struct gpreempt *lw_open(pid_t pid)
{
	return lw_open_with(pid, 0);
}

/* It must come to `expected`; otherwise the sentence is shown. */
#define LW_CALL(g, call, expected)                                                         \
	do {                                                                               \
		int got_ = (call);                                                         \
                                                                                           \
		if (got_ != (expected))                                                    \
			fail_msg("%s: %d instead of %d: %s", #call, got_, (int)(expected), \
				 gpreempt_why(g));                                         \
	} while (0)

/* The n-th queue that computes. */
struct gpreempt_queue lw_queue(struct gpreempt *g, unsigned n);

/* Programs. */

/* lib-holder, holding; *in ends it when it is closed. */
pid_t lw_start_holder(pid_t target, const char *mode, int *in);

/* Exit status of a shell command. */
__attribute__((format(printf, 1, 2))) int lw_sh(const char *format, ...);

#endif
