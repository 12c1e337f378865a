/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of the emulator share: each has an emulator of its own. They call the driver
 * directly: the emulator is tested, not the code that uses it.
 */
#ifndef TESTS_EMU_KFD_WORLD_H
#define TESTS_EMU_KFD_WORLD_H

#include "support/test.h"

#include <poll.h>
#include <pthread.h>
#include <sys/ptrace.h>

#include "emu/kfd/kfd_emu.h"
#include "emu/kfd/load_queue.h"

#define EVENTS (KFD_EC_PROCESS_RUNTIME | KFD_EC_QUEUE_NEW | KFD_EC_QUEUE_DELETE)

struct world {
	struct kfd_emu emu;
	int fd;      /* the debugger's own */
	int pipe[2]; /* where it is notified */
	struct kfd_load load;
	struct load_queue queue; /* see own_queue() */
	bool has_queue;
};

int set_up_with(void **state, const char *model, const char *more, const char *value);

static inline int kfd_set_up(void **state)
{
	return set_up_with(state, "mi250", NULL, NULL);
}

static inline int set_up_mes(void **state)
{
	return set_up_with(state, "navi31", NULL, NULL);
}

int kfd_tear_down(void **state);

#define WORLD_TEST(f)   TEST_IN(struct world, f, kfd_set_up, kfd_tear_down)
#define MES_TEST(f)     TEST_IN(struct world, f, set_up_mes, kfd_tear_down)
#define WITH_TEST(f, s) TEST_IN(struct world, f, s, kfd_tear_down)
/* On a GPU with HWS and on one with MES. */
#define WORLD_AND_MES_TEST(f)                            \
	static void f(void **state);                     \
	TEST_ADD(#f, f, kfd_set_up, kfd_tear_down, NULL) \
	MES_TEST(f)

/* Calls: what they return, or -errno. */

int call(int fd, unsigned long cmd, void *args);
int dbg(int fd, pid_t pid, uint32_t op, struct kfd_dbg_trap *args);
int dbg_plain(const struct world *w, pid_t pid, uint32_t op);
int dbg_enable(const struct world *w, pid_t pid, struct kfd_runtime_info *info);

static inline int dbg_disable(const struct world *w, pid_t pid)
{
	return dbg_plain(w, pid, KFD_DBG_DISABLE);
}

/* How many queues there are; `room` of them into `entries`. */
int dbg_snapshot(const struct world *w, pid_t pid, uint64_t clear,
		 struct kfd_queue_snapshot_entry *entries, uint32_t room);
void clear_new(const struct world *w, pid_t pid);
int dbg_suspend(const struct world *w, pid_t pid, uint64_t clear, uint32_t *ids, uint32_t count);
int dbg_resume(const struct world *w, pid_t pid, uint32_t *ids, uint32_t count);

/* What was raised, or -errno. */
int64_t dbg_query(const struct world *w, pid_t pid, uint64_t clear);
int dbg_answer(const struct world *w, pid_t pid);

/* The target. */

static inline void seize(pid_t pid)
{
	assert_int_equal(ptrace(PTRACE_SEIZE, pid, 0, 0), 0);
}

void detach(pid_t pid);

/* As a scheduler does it: traces the target only for as long as ENABLE takes. */
void attach(const struct world *w, pid_t pid);

/* Starts the load of the world with options of kfd-load; its pid. */
#define start_load(w, ...)                                                          \
	({                                                                          \
		assert_int_equal(kfd_load_start(&(w)->load, __VA_ARGS__, NULL), 0); \
		(w)->load.pid;                                                      \
	})

/* Starts a load with this number of queues and attaches to it; also clears what is new of them. */
pid_t attach_load(struct world *w, const char *queues);
pid_t attach_seen_load(struct world *w, const char *queues);

/* A compute queue of this process, closed at the end of the test; and a session with itself. */
struct load_queue *own_queue(struct world *w);
void enable_self(const struct world *w);
bool has_ended(pid_t pid);

/* Answers what the load asks at its end, until it has ended; its exit status. */
int stop_load(struct world *w);

/* Waiting. */

void wait_sum(const struct world *w, pid_t pid, const char *field, uint64_t at_least);

/* Waits until it has executed this number of packets more. */
static inline void wait_progress(const struct world *w, pid_t pid)
{
	wait_sum(w, pid, "executed", kfd_emu_process_sum(&w->emu, pid, "executed") + 20);
}

/* The emulator's own clock says so: no device time was given, however long this really takes. */
void assert_stands_still(const struct world *w, pid_t pid);

#endif
