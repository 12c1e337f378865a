/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of the library share: a machine with GPUs of either kind, loads on it, and what
 * the emulated driver itself says of them. A test says LIB_TEST(f) and runs on both.
 */
#ifndef TESTS_LIB_LIB_WORLD_H
#define TESTS_LIB_LIB_WORLD_H

#include "support/test.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

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
	struct lw_load load[LW_LOADS]; /* killed at the end, if they still are */
	unsigned nloads;
};

/* What is open: closed at the end of a test that failed half way, or the next has its devices. */
static struct gpreempt *lw_opened[LW_HANDLES];

static inline void lw_close(struct gpreempt *g)
{
	for (unsigned i = 0; i < LW_HANDLES; i++)
		if (g && lw_opened[i] == g)
			lw_opened[i] = NULL;
	gpreempt_close(g);
}

/* ---- machines ---------------------------------------------------------------------------------
 */

/* No driver of this machine, and no record of it, is touched. */
static inline void lw_hide_drivers(void)
{
	setenv("GPREEMPT_NVIDIACTL", "/nonexistent/nvidiactl", 1);
	setenv("GPREEMPT_KFD", "/nonexistent/kfd", 1);
	setenv("GPREEMPT_KFD_SYSFS", "/nonexistent/sysfs", 1);
}

static inline int lw_start(struct lib_world *w, enum lw_vendor vendor)
{
	int fd;

	w->vendor = vendor;
	lw_hide_drivers();
	snprintf(w->undo, sizeof w->undo, "/tmp/lib-undo-XXXXXX");
	fd = mkstemp(w->undo);
	if (fd < 0)
		return -errno;
	close(fd);
	setenv("GPREEMPT_UNDO", w->undo, 1);
	if (vendor == LW_NVIDIA)
		return emu_start(&w->nvidia, "--gpus", "2", NULL);
	return kfd_emu_start(&w->amd, "--gpu", "mi250", "--gpu", "mi250", NULL);
}

static inline int lw_set_up(void **state)
{
	enum lw_vendor vendor = *(const enum lw_vendor *)*state;
	struct lib_world *w = calloc(1, sizeof *w);

	*state = w;
	return w && !lw_start(w, vendor) ? 0 : -1;
}

static inline int lw_stop_load(struct lib_world *w, struct lw_load *load)
{
	load->pid = 0;
	return w->vendor == LW_NVIDIA ? emu_load_stop(&load->is.nvidia)
	                              : kfd_load_stop(&load->is.amd);
}

static inline void lw_kill_load(struct lib_world *w, struct lw_load *load)
{
	if (!load->pid)
		return;
	load->pid = 0;
	if (w->vendor == LW_NVIDIA)
		emu_load_kill(&load->is.nvidia);
	else
		kfd_load_kill(&load->is.amd);
}

static inline int lw_tear_down(void **state)
{
	struct lib_world *w = *state;
	int r;

	for (unsigned i = 0; i < LW_HANDLES; i++)
		lw_close(lw_opened[i]);
	for (unsigned i = 0; i < w->nloads; i++)
		lw_kill_load(w, &w->load[i]);
	r = w->vendor == LW_NVIDIA ? emu_stop(&w->nvidia) : kfd_emu_stop(&w->amd);
	unlink(w->undo);
	free(w);
	return r;
}

__attribute__((unused)) static enum lw_vendor lw_nvidia = LW_NVIDIA, lw_amd = LW_AMD;

#define LIB_TEST_ADD(f, vendor) \
	TEST_ADD(#f " (" #vendor ")", f, lw_set_up, lw_tear_down, &lw_##vendor)
#define LIB_TEST_ON(f, vendor) TEST_EACH(f, LIB_TEST_ADD, vendor)
#define LIB_TEST(f)            TEST_EACH(f, LIB_TEST_ADD, nvidia, amd)

/* Skips the tests where there is no FUSE. */
TEST_BEGIN
{
	struct emu emu;

	if (emu_start(&emu, NULL) == -ENODEV)
		exit(EMU_SKIP);
	emu_stop(&emu);
}

/* ---- time -------------------------------------------------------------------------------------
 */

static inline uint64_t lw_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Waits for it, up to 20 s: machines are slow, and under a sanitizer slower. */
#define LW_WAIT(condition)                                 \
	do {                                               \
		uint64_t until_ = lw_now_ms() + 20000;     \
		bool so_ = (condition);                    \
                                                           \
		while (!so_ && lw_now_ms() < until_) {     \
			usleep(2000);                      \
			so_ = (condition);                 \
		}                                          \
		if (!so_)                                  \
			fail_msg("never: %s", #condition); \
	} while (0)

/* ---- loads, and what the driver says of them ----------------------------------------------------
 */

/* Options of rm-load or kfd-load, up to NULL: three words at most. */
static inline struct lw_load *lw_load_with(struct lib_world *w, const char *a, const char *b,
                                           const char *c, const char *d)
{
	struct lw_load *load = &w->load[w->nloads++];
	int r;

	assert_in_range(w->nloads, 1, LW_LOADS);
	if (w->vendor == LW_NVIDIA) {
		r = emu_load_start(&load->is.nvidia, a, b, c, d, NULL);
		load->pid = load->is.nvidia.pid;
	} else {
		r = kfd_load_start(&load->is.amd, a, b, c, d, NULL);
		load->pid = load->is.amd.pid;
	}
	assert_int_equal(r, 0);
	return load;
}

/* One that has so many queues that compute, and keeps them busy. */
static inline struct lw_load *lw_load(struct lib_world *w, const char *queues)
{
	return lw_load_with(w, w->vendor == LW_NVIDIA ? "--contexts" : "--queues", queues, NULL,
	                    NULL);
}

static inline uint64_t lw_run_ns(struct lib_world *w, pid_t pid)
{
	return w->vendor == LW_NVIDIA ? emu_group_sum(&w->nvidia, pid, "run_ns")
	                              : kfd_emu_process_sum(&w->amd, pid, "run_ns");
}

static inline unsigned lw_held(struct lib_world *w, pid_t pid)
{
	return w->vendor == LW_NVIDIA ? emu_groups_held(&w->nvidia, pid)
	                              : (unsigned)kfd_emu_process_sum(&w->amd, pid, "suspended");
}

static inline void lw_must_run(struct lib_world *w, pid_t pid)
{
	uint64_t before = lw_run_ns(w, pid);

	LW_WAIT(lw_run_ns(w, pid) > before);
}

/* While another one goes on. */
static inline void lw_must_stand(struct lib_world *w, pid_t pid, pid_t other)
{
	uint64_t before = lw_run_ns(w, pid);

	lw_must_run(w, other);
	lw_must_run(w, other);
	assert_int_equal(lw_run_ns(w, pid), before);
}

/* It ends by itself, and no work was lost or done twice. */
#define LW_ENDS_RIGHT(w, load) assert_int_equal(lw_stop_load(w, load), 0)

/* ---- the library ------------------------------------------------------------------------------
 */

static inline struct gpreempt *lw_open_with(pid_t pid, unsigned flags)
{
	struct gpreempt *g = NULL;
	char why[256] = "";
	int r = gpreempt_open(pid, flags, &g, why, sizeof why);

	if (r)
		fail_msg("open %d: %d: %s", pid, r, why);
	for (unsigned i = 0; i < LW_HANDLES; i++)
		if (!lw_opened[i]) {
			lw_opened[i] = g;
			break;
		}
	return g;
}

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
static inline struct gpreempt_queue lw_queue(struct gpreempt *g, unsigned n)
{
	struct gpreempt_queue queue[64];
	int count = gpreempt_get_all_queues(g, queue, 64);

	assert_in_range(count, 1, 64);
	for (int i = 0; i < count; i++)
		if (!queue[i].copies && !n--)
			return queue[i];
	fail_msg("there are not so many queues that compute");
	return queue[0];
}

/* ---- programs ---------------------------------------------------------------------------------
 */

/* lib-holder, holding; *in ends it when it is closed. */
static inline pid_t lw_start_holder(pid_t target, const char *mode, int *in)
{
	int to[2], from[2];
	char number[16], line[512] = "";
	pid_t pid;
	FILE *out;

	snprintf(number, sizeof number, "%d", target);
	assert_int_equal(pipe2(to, O_CLOEXEC), 0);
	assert_int_equal(pipe2(from, O_CLOEXEC), 0);
	pid = fork();
	if (!pid) {
		dup2(to[0], STDIN_FILENO);
		dup2(from[1], STDOUT_FILENO);
		execl(LIB_HOLDER, "lib-holder", number, mode, (char *)NULL);
		_exit(127);
	}
	close(to[0]);
	close(from[1]);
	*in = to[1];
	out = fdopen(from[0], "r");
	if (!out || !fgets(line, sizeof line, out) || strncmp(line, "held", 4) != 0)
		fail_msg("lib-holder: %s", line);
	fclose(out);
	return pid;
}

/* Exit status of a shell command. */
__attribute__((format(printf, 1, 2))) static inline int lw_sh(const char *format, ...)
{
	char command[512];
	va_list args;
	int status;

	va_start(args, format);
	vsnprintf(command, sizeof command, format, args);
	va_end(args);
	status = system(command); /* NOLINT(cert-env33-c): of a test's own making */
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

#endif
