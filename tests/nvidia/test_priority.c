/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `priority` with the real engine, in real time, on the emulator: what it promises is looked at
 * from outside, in the emulator's state.
 */
#include <pthread.h>
#include <sys/eventfd.h>

#include "engine/real_time.h"
#include "gpu_world.h"
#include "policy/registry.h"

#define MAX_LOADS 6
#define TINY_US   10

/* A scheduler in a thread. Classes go by pid. */
struct scheduler {
	struct gpu_world *w;
	struct gp_engine *engine;
	pthread_t thread;
	int stop_fd;
	pthread_mutex_t lock;
	struct {
		pid_t pid;
		enum gp_class class;
	} known[MAX_LOADS];
	unsigned nknown;
	enum gp_class others; /* of tasks without a class */
	int result;
};

static void classify(void *arg, const struct gp_seen *seen, struct gp_task_attr *attr)
{
	struct scheduler *s = arg;

	pthread_mutex_lock(&s->lock);
	attr->class = (uint8_t)s->others;
	for (unsigned i = 0; i < s->nknown; i++)
		if (s->known[i].pid == seen->pid)
			attr->class = (uint8_t)s->known[i].class;
	pthread_mutex_unlock(&s->lock);
}

static void *drive(void *arg)
{
	struct scheduler *s = arg;

	s->result = gp_drive(s->engine, s->w->gpu, s->stop_fd, NULL, NULL);
	return NULL;
}

static void know(struct scheduler *s, pid_t pid, enum gp_class class)
{
	pthread_mutex_lock(&s->lock);
	s->known[s->nknown].pid = pid;
	s->known[s->nknown++].class = class;
	pthread_mutex_unlock(&s->lock);
}

static void prepare(struct scheduler *s, struct gpu_world *w)
{
	*s = (struct scheduler){.w = w, .lock = PTHREAD_MUTEX_INITIALIZER, .others = GP_UNMANAGED};
}

static void begin(struct scheduler *s)
{
	struct gp_engine_config config = {.classify = classify, .arg = s};
	struct gp_policy_choice choice;
	struct gp_error err = {0};

	gw_open(s->w);
	config.gpu = s->w->gpu;
	s->stop_fd = eventfd(0, EFD_CLOEXEC);
	assert_int_equal(gp_engine_new(&config, &s->engine), 0);
	assert_int_equal(gp_policy_parse("priority", &choice, &err), 0);
	assert_int_equal(gp_engine_set_policy(s->engine, gw_now(), &choice, &err), 0);
	assert_int_equal(pthread_create(&s->thread, NULL, drive, s), 0);
}

static void end(struct scheduler *s)
{
	eventfd_write(s->stop_fd, 1);
	pthread_join(s->thread, NULL);
	assert_int_equal(s->result, 0);
	assert_string_equal(gp_engine_policy(s->engine)->name, "priority"); /* not ejected */
	gp_engine_free(s->engine);
	gw_close(s->w);
	close(s->stop_fd);
}

static uint64_t slice(struct gpu_world *w, pid_t pid)
{
	return emu_group_sum(&w->emu, pid, "slice_us");
}

static struct emu_load *start_lc(struct gpu_world *w)
{
	return gw_load(w, "--kernel-us", "100", "--period-us", "3000");
}

static struct emu_load *start_be(struct gpu_world *w)
{
	return gw_load(w, "--kernel-us", "500");
}

static void is_restored(struct gpu_world *w, pid_t pid)
{
	assert_int_equal(emu_groups_held(&w->emu, pid), 0);
	assert_int_equal(slice(w, pid), 2048);
}

GPU_TEST(best_effort_work_gets_the_tiny_slice_and_latency_critical_a_long_one)
{
	struct scheduler s;
	uint64_t before;
	struct emu_load *lc = start_lc(w);
	struct emu_load *be = start_be(w);

	prepare(&s, w);
	know(&s, lc->pid, GP_LATENCY_CRITICAL);
	know(&s, be->pid, GP_BEST_EFFORT);
	begin(&s);
	TEST_WAIT(slice(w, be->pid) == 1 && slice(w, lc->pid) >= 100000);
	before = gw_run_ns(w, be->pid);
	emulator_sleep_ms(300);
	assert_true(gw_run_ns(w, be->pid) > before); /* and it goes on */
	assert_int_equal(emu_groups_held(&w->emu, lc->pid), 0);
	end(&s);
	is_restored(w, lc->pid);
	is_restored(w, be->pid);
	assert_int_equal(emu_load_stop(lc), 0);
	assert_int_equal(emu_load_stop(be), 0);
}

GPU_TEST(a_slice_that_the_process_sets_itself_is_applied_again)
{
	struct scheduler s;
	uint64_t seen_us;
	struct emu_load *lc = start_lc(w);
	struct emu_load *be = start_be(w);

	prepare(&s, w);
	know(&s, lc->pid, GP_LATENCY_CRITICAL);
	know(&s, be->pid, GP_BEST_EFFORT);
	begin(&s);
	for (int i = 0; i < 3; i++) {
		TEST_WAIT(slice(w, be->pid) == 1);
		emu_control(&w->emu, "undo %d", be->pid);
		seen_us = slice(w, be->pid);
		assert_true(seen_us == 2048 || seen_us == 1);
	}
	TEST_WAIT(slice(w, be->pid) == 1);
	end(&s);
	is_restored(w, be->pid);
}

/* One look from outside: never two of these runnable with a tiny slice. In one reading. */
static unsigned tiny_and_released(struct gpu_world *w, struct emu_load *const *be, unsigned n)
{
	char *json = emu_state(&w->emu), *rest = json, *line;
	unsigned found = 0;

	while ((line = strsep(&rest, "\n"))) {
		const char *pid = strstr(line, "\"pid\":"), *us = strstr(line, "\"slice_us\":");
		bool ours = false;

		if (!pid || !us || !strstr(line, "\"engine\":1,") || strstr(line, "\"held\":true"))
			continue;
		for (unsigned i = 0; i < n; i++)
			ours |= be[i]->pid && atoi(pid + 6) == be[i]->pid;
		found += ours && atoi(us + 11) <= TINY_US;
	}
	free(json);
	return found;
}

GPU_TEST(busy_best_effort_tasks_take_turns_and_are_never_tiny_together)
{
	uint64_t run_ns[2], end_ns;
	struct scheduler s;
	struct emu_load *be[2];
	unsigned held[2] = {0}, looks = 0, both_held = 0;
	struct emu_load *lc = start_lc(w);

	for (int i = 0; i < 2; i++)
		be[i] = start_be(w);
	prepare(&s, w);
	know(&s, lc->pid, GP_LATENCY_CRITICAL);
	for (int i = 0; i < 2; i++)
		know(&s, be[i]->pid, GP_BEST_EFFORT);
	begin(&s);
	TEST_WAIT(emu_groups_held(&w->emu, be[0]->pid) != emu_groups_held(&w->emu, be[1]->pid));
	for (int i = 0; i < 2; i++)
		run_ns[i] = gw_run_ns(w, be[i]->pid);
	for (end_ns = gw_now() + 2 * GP_NS_PER_S; gw_now() < end_ns; looks++) {
		bool is_held[2];

		assert_in_range(tiny_and_released(w, be, 2), 0, 1);
		for (int i = 0; i < 2; i++)
			held[i] += is_held[i] = emu_groups_held(&w->emu, be[i]->pid);
		both_held += is_held[0] && is_held[1];
		assert_int_equal(emu_groups_held(&w->emu, lc->pid), 0);
		usleep(2000);
	}
	for (int i = 0; i < 2; i++) {
		assert_true(held[i] > looks / 10);
		assert_true(gw_run_ns(w, be[i]->pid) > run_ns[i] + 100 * GP_NS_PER_MS);
	}
	assert_true(both_held < looks / 4); /* only while a turn changes */
	end(&s);
	is_restored(w, lc->pid);
	for (int i = 0; i < 2; i++) {
		is_restored(w, be[i]->pid);
		assert_int_equal(emu_load_stop(be[i]), 0);
	}
}

/* SIGSTOP: it submits nothing more, and what it had submitted is soon done. */
GPU_TEST(a_best_effort_task_that_falls_idle_leaves_the_rotation)
{
	struct scheduler s;
	struct emu_load *be[2];
	struct emu_load *lc = start_lc(w);

	for (int i = 0; i < 2; i++)
		be[i] = start_be(w);
	prepare(&s, w);
	know(&s, lc->pid, GP_LATENCY_CRITICAL);
	for (int i = 0; i < 2; i++)
		know(&s, be[i]->pid, GP_BEST_EFFORT);
	begin(&s);
	TEST_WAIT(emu_groups_held(&w->emu, be[0]->pid) != emu_groups_held(&w->emu, be[1]->pid));
	kill(be[1]->pid, SIGSTOP);
	/* The other has the GPU to itself: never held for longer than several turns last. */
	TEST_WAIT(!emu_groups_held(&w->emu, be[0]->pid) && !emu_groups_held(&w->emu, be[1]->pid));
	for (int i = 0; i < 100; i++) {
		assert_in_range(tiny_and_released(w, be, 2), 0, 1);
		usleep(2000);
	}
	kill(be[1]->pid, SIGCONT);
	TEST_WAIT(emu_groups_held(&w->emu, be[0]->pid) || emu_groups_held(&w->emu, be[1]->pid));
	end(&s);
	for (int i = 0; i < 2; i++) {
		is_restored(w, be[i]->pid);
		emu_load_kill(be[i]);
	}
}

GPU_TEST(tasks_come_and_go)
{
	struct scheduler s;
	struct emu_load *be[2];
	struct emu_load *lc = start_lc(w);

	be[0] = start_be(w);
	prepare(&s, w);
	s.others = GP_BEST_EFFORT;
	know(&s, lc->pid, GP_LATENCY_CRITICAL);
	begin(&s);
	TEST_WAIT(slice(w, be[0]->pid) == 1);
	be[1] = start_be(w);
	TEST_WAIT(emu_groups_held(&w->emu, be[0]->pid) != emu_groups_held(&w->emu, be[1]->pid));
	emu_load_kill(be[0]); /* in its turn or out of it */
	TEST_WAIT(slice(w, be[1]->pid) == 1 && !emu_groups_held(&w->emu, be[1]->pid));
	emu_load_kill(lc); /* no latency-critical task is left */
	TEST_WAIT(slice(w, be[1]->pid) == 2048);
	assert_int_equal(emu_groups_held(&w->emu, be[1]->pid), 0);
	end(&s);
	is_restored(w, be[1]->pid);
	assert_int_equal(emu_load_stop(be[1]), 0);
}

GPU_TEST(a_process_that_nobody_named_is_never_touched)
{
	struct scheduler s;
	uint64_t end_ns;
	struct emu_load *lc = start_lc(w);
	struct emu_load *be = start_be(w);
	struct emu_load *other = start_be(w);

	prepare(&s, w);
	know(&s, lc->pid, GP_LATENCY_CRITICAL);
	know(&s, be->pid, GP_BEST_EFFORT);
	begin(&s);
	for (end_ns = gw_now() + GP_NS_PER_S; gw_now() < end_ns;) {
		assert_int_equal(slice(w, other->pid), 2048);
		assert_int_equal(emu_groups_held(&w->emu, other->pid), 0);
		usleep(2000);
	}
	assert_true(slice(w, be->pid) > TINY_US); /* beside one that cannot be held */
	end(&s);
	is_restored(w, be->pid);
}
