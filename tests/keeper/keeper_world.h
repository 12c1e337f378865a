/* SPDX-License-Identifier: Apache-2.0 */
/* What the keeper's tests share: an emulator of either kind, loads on it, a scheduler, a keeper. */
#ifndef TESTS_KEEPER_KEEPER_WORLD_H
#define TESTS_KEEPER_KEEPER_WORLD_H

#include "support/test.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/process.h"
#include "emu/nvidia/emu.h"
#include "emu/common/emulator.h"
#include "emu/kfd/kfd_emu.h"
#include "undo/undo.h"

#define KW_LOADS 4
#define KW_SKIP  77

/* What runs below: NVIDIA, or AMD with the driver's newer or older rule of who may debug. */
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

static inline uint64_t kw_now(void)
{
	return gp_monotonic_ns();
}

/* Waits for it, up to 20 s: machines are slow, and under a sanitizer slower. */
#define KW_WAIT(condition)                                     \
	do {                                                   \
		uint64_t until_ = kw_now() + 20 * GP_NS_PER_S; \
		bool so_ = (condition);                        \
                                                               \
		while (!so_ && kw_now() < until_) {            \
			usleep(1000);                          \
			so_ = (condition);                     \
		}                                              \
		if (!so_)                                      \
			fail_msg("never: %s", #condition);     \
	} while (0)

/* The same, and it must not take longer than that; says how long it took. */
#define KW_WITHIN(limit_ms, condition)                               \
	do {                                                         \
		uint64_t from_ = kw_now(), took_ms_;                 \
                                                                     \
		KW_WAIT(condition);                                  \
		took_ms_ = (kw_now() - from_) / GP_NS_PER_MS;        \
		print_message("    %s: after %llu ms\n", #condition, \
		              (unsigned long long)took_ms_);         \
		assert_true(took_ms_ <= (limit_ms)*KW_PATIENCE);     \
	} while (0)

/* Seconds on a machine that others use as well. */
#define KW_PATIENCE 3ull

/* ---- programs ---------------------------------------------------------------------------------
 */

static inline void kw_spawn(struct kw_program *p, char **words)
{
	assert_int_equal(p->pid, 0);
	assert_int_equal(emulator_spawn(words, SIGKILL, &p->pid, &p->out), 0);
}

static inline void kw_forget(struct kw_program *p)
{
	close(p->out);
	p->pid = 0;
}

static inline void kw_kill(struct kw_program *p)
{
	if (!p->pid)
		return;
	kill(p->pid, SIGKILL);
	waitpid(p->pid, NULL, 0);
	kw_forget(p);
}

/* Its exit status. */
static inline int kw_wait_end(struct kw_program *p)
{
	int status = emulator_wait_end(p->pid);

	kw_forget(p);
	return status;
}

static inline void kw_keeper_is_there(struct kw *w)
{
	struct gp_undo_scheduler k;

	KW_WAIT((gp_undo_keeper(w->undo, &k), k.lives && k.pid == w->keeper.pid && k.heartbeats));
}

/* Its patience in seconds; NULL: as it has by itself. */
static inline void kw_start_keeper(struct kw *w, const char *timeout)
{
	char program[] = KEEPER, option[] = "--timeout", value[16];
	char *words[] = {program, timeout ? option : NULL, value, NULL};

	snprintf(value, sizeof value, "%s", timeout ? timeout : "");
	kw_spawn(&w->keeper, words);
	kw_keeper_is_there(w);
}

/* Told which loads to hold, by number; -1: no more. s + 100: another slice instead. */
static inline void kw_spawn_scheduler(struct kw *w, int first, int second);

/* ---- loads ------------------------------------------------------------------------------------
 */

static inline pid_t kw_pid(const struct kw *w, int load)
{
	return w->machine->rule ? w->amd_load[load].pid : w->nv_load[load].pid;
}

static inline void kw_start_load(struct kw *w, int load)
{
	if (w->machine->rule)
		assert_int_equal(kfd_load_start(&w->amd_load[load], NULL), 0);
	else
		assert_int_equal(emu_load_start(&w->nv_load[load], "--memory", "1000000000", NULL),
		                 0);
}

static inline void kw_kill_load(struct kw *w, int load)
{
	if (w->machine->rule)
		kfd_load_kill(&w->amd_load[load]);
	else
		emu_load_kill(&w->nv_load[load]);
}

static inline int kw_load(struct kw *w)
{
	assert_true(w->nloads < KW_LOADS);
	kw_start_load(w, (int)w->nloads);
	return (int)w->nloads++;
}

static inline bool kw_is_held(struct kw *w, int load)
{
	return w->machine->rule ? kfd_emu_process_sum(&w->kfd, kw_pid(w, load), "suspended")
	                        : emu_groups_held(&w->emu, kw_pid(w, load));
}

static inline uint64_t kw_slice_us(struct kw *w, int load)
{
	return emu_group_sum(&w->emu, kw_pid(w, load), "slice_us");
}

static inline uint64_t kw_done(struct kw *w, int load)
{
	return w->machine->rule ? kfd_emu_process_sum(&w->kfd, kw_pid(w, load), "executed")
	                        : emu_group_sum(&w->emu, kw_pid(w, load), "run_ns");
}

static inline void kw_wait_progress(struct kw *w, int load)
{
	uint64_t before = kw_done(w, load);

	KW_WAIT(kw_done(w, load) > before);
}

/* ---- the scheduler ----------------------------------------------------------------------------
 */

static inline void kw_spawn_scheduler(struct kw *w, int first, int second)
{
	char program[] = SCHEDULER, text[2][24], *words[] = {program, NULL, NULL, NULL};
	int load[2] = {first, second};

	for (int i = 0; i < 2 && load[i] >= 0; i++) {
		snprintf(text[i], sizeof text[i], "%s%d", load[i] >= 100 ? "s:" : "",
		         kw_pid(w, load[i] % 100));
		words[i + 1] = text[i];
	}
	kw_spawn(&w->scheduler, words);
}

/* The next thing it says. */
static inline void kw_says(struct kw_program *p, const char *word)
{
	char line[16] = "";
	struct pollfd said = {.fd = p->out, .events = POLLIN};

	for (size_t n = 0; n < sizeof line - 1; n++) {
		assert_int_equal(poll(&said, 1, 20000), 1);
		assert_int_equal(read(p->out, &line[n], 1), 1);
		if (line[n] == '\n') {
			line[n] = 0;
			break;
		}
	}
	assert_string_equal(line, word);
}

static inline void kw_start_scheduler(struct kw *w, int first, int second)
{
	kw_spawn_scheduler(w, first, second);
	kw_says(&w->scheduler, "ready");
}

/* As /proc has it: T is stopped. */
static inline char kw_state(pid_t pid)
{
	char path[48], text[512] = "";
	const char *end;
	FILE *f;

	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	f = fopen(path, "re");
	if (f) {
		if (!fgets(text, sizeof text, f))
			text[0] = 0;
		fclose(f);
	}
	end = strrchr(text, ')');
	if (!end)
		return 0;
	return end[2];
}

static inline void kw_stop_scheduler(struct kw *w)
{
	kill(w->scheduler.pid, SIGSTOP);
	KW_WAIT(kw_state(w->scheduler.pid) == 'T');
}

static inline unsigned kw_records(struct kw *w)
{
	struct gp_undo_entry e;
	unsigned n = 0;

	for (unsigned i = 0; i < GP_UNDO_SLOTS; i++)
		n += gp_undo_get(w->undo, i, &e);
	return n;
}

/* Of this load, and who has it; 0: there is none. */
static inline pid_t kw_holder(struct kw *w, int load)
{
	struct gp_undo_entry e;

	for (unsigned i = 0; i < GP_UNDO_SLOTS; i++)
		if (gp_undo_get(w->undo, i, &e) && e.undo.pid == kw_pid(w, load))
			return e.owner;
	return 0;
}

/* ---- the whole --------------------------------------------------------------------------------
 */

static inline int kw_set_up(void **state)
{
	struct kw *w = calloc(1, sizeof *w);

	if (!w)
		return -1;
	w->machine = *state ? *state : &nvidia;
	*state = w;
	strcpy(w->dir, "/tmp/gp-keeper-XXXXXX");
	if (!mkdtemp(w->dir))
		return -1;
	snprintf(w->path, sizeof w->path, "%s/undo", w->dir);
	setenv("GPREEMPT_UNDO", w->path, 1);
	unsetenv("NOTIFY_SOCKET");
	if (w->machine->rule) {
		setenv("GPREEMPT_NVIDIACTL", "/nonexistent/nvidiactl", 1);
		setenv("LSAN_OPTIONS", "detect_leaks=0", 1); /* not of who is traced at its end */
		if (kfd_emu_start(&w->kfd, "--gpu", "mi300x", "--rule", w->machine->rule, "--slots",
		                  "1", NULL))
			return -1;
	} else {
		setenv("GPREEMPT_KFD", "/nonexistent/kfd", 1);
		if (emu_start(&w->emu, "--gpus", "2", NULL))
			return -1;
	}
	return gp_undo_open(&w->undo, true, NULL);
}

static inline int kw_tear_down(void **state)
{
	struct kw *w = *state;
	int r;

	kw_kill(&w->keeper);
	kw_kill(&w->scheduler);
	for (unsigned i = 0; i < w->nloads; i++)
		kw_kill_load(w, (int)i);
	r = w->machine->rule ? kfd_emu_stop(&w->kfd) : emu_stop(&w->emu);
	gp_undo_close(w->undo);
	unlink(w->path);
	r |= rmdir(w->dir);
	unsetenv("LSAN_OPTIONS");
	free(w);
	return r;
}

#define KEEPER_TEST_ADD(f, m)     TEST_ADD(#f " (" #m ")", f, kw_set_up, kw_tear_down, (void *)&(m))
#define KEEPER_TEST(f)            TEST_EACH(f, KEEPER_TEST_ADD, nvidia)
#define KEEPER_TEST_EVERYWHERE(f) TEST_EACH(f, KEEPER_TEST_ADD, nvidia, amd, amd_old)

/* Skips the tests where there is no FUSE. */
TEST_BEGIN
{
	struct emu emu;

	if (emu_start(&emu, NULL) == -ENODEV)
		exit(KW_SKIP);
	emu_stop(&emu);
}

#endif
