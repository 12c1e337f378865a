/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `priority` with the real engine, in real time, on the emulator: how soon latency-critical work
 * has the device, which tasks are held, and what is known of each.
 */
#include "scheduler.h"
#include "timing.h"

#define DETECT_NS (1 * GP_NS_PER_MS) /* GP_AMD_DETECT_NS: how soon a packet in a queue is seen */
#define REQUESTS  21
/* Between threads and processes, each as late as a timer may be: from a packet to a hold the watch,
 * its reader, the watch, the engine, the host and the driver; from a hint those from the engine on,
 * and the engine again. */
#define HANDOVERS      6
#define HINT_HANDOVERS 4

/* A request every 60 ms with this number of steps; a step is 0.1 ms. */
static struct kfd_load *start_service(struct amd_world *w, const char *steps)
{
	return aw_load(w, "--period", "60000", "--steps", steps);
}

static struct kfd_load *start_lc(struct amd_world *w)
{
	return start_service(w, "200");
}

static struct kfd_load *start_be(struct amd_world *w, const char *queues)
{
	return aw_load(w, "--queues", queues, "--steps", "50");
}

/* Discards the latencies of earlier requests. */
static void drain(const struct kfd_load *lc)
{
	struct pollfd p = {.fd = lc->out, .events = POLLIN};
	char ignored[512];

	while (poll(&p, 1, 0) == 1 && read(lc->out, ignored, sizeof ignored) > 0)
		;
}

static uint64_t read_latency_ns(const struct kfd_load *lc)
{
	char line[64] = "", byte;
	unsigned long us, n = 0;

	while (n < sizeof line - 1 && read(lc->out, &byte, 1) == 1 && byte != '\n')
		line[n++] = byte;
	if (sscanf(line, "latency %lu", &us) != 1)
		fail_msg("no latency: %s", line);
	return us * GP_NS_PER_US;
}

/* Of the next requests, half of them less. */
static uint64_t latency_ns(const struct kfd_load *lc, unsigned requests)
{
	uint64_t ns[REQUESTS];

	drain(lc);
	read_latency_ns(lc); /* one may have begun before */
	for (unsigned i = 0; i < requests; i++)
		ns[i] = read_latency_ns(lc);
	return percentile(ns, requests, 50);
}

static void latency_critical_work_comes_first(struct amd_world *w, const char *steps,
					      unsigned tasks, const char *queues)
{
	struct kfd_load *lc = start_service(w, steps), *be[3];
	uint64_t alone_ns = latency_ns(lc, 5), shared_ns, first_ns;
	struct scheduler s = {0};

	for (unsigned i = 0; i < tasks; i++)
		be[i] = start_be(w, queues);
	shared_ns = latency_ns(lc, 3);
	assert_true(shared_ns > 2 * alone_ns); /* or there is nothing to gain */
	sched_know(&s, lc->pid, GP_LATENCY_CRITICAL);
	for (unsigned i = 0; i < tasks; i++)
		sched_know(&s, be[i]->pid, GP_BEST_EFFORT);
	sched_begin(&s, w);
	for (unsigned i = 0; i < tasks; i++)
		TEST_WAIT(aw_suspended(w, be[i]->pid)); /* it has begun */
	first_ns = latency_ns(lc, REQUESTS);
	printf("alone %lu us, beside %u x %s queues %lu us, before them %lu us\n", alone_ns / 1000,
	       tasks, queues, shared_ns / 1000, first_ns / 1000);
	assert_true(first_ns < shared_ns / 2);
	sched_stop(&s);
	assert_true(gp_engine_stats(s.engine)->preemptions > REQUESTS / 2);
	assert_int_equal(s.records, tasks + 0u);
	sched_free(&s);
	assert_int_equal(kfd_load_stop(lc), 0);
	for (unsigned i = 0; i < tasks; i++) { /* preempted work ends with the right result */
		assert_int_equal(aw_suspended(w, be[i]->pid), 0);
		assert_false(aw_is_debugged(w, be[i]->pid));
		assert_int_equal(kfd_load_stop(be[i]), 0);
	}
}

AMD_TEST_ON(a_request_takes_the_device, mi250)
{
	latency_critical_work_comes_first(w, "200", 1, "9");
}

AMD_TEST_ON(it_takes_it_from_several, mi250)
{
	latency_critical_work_comes_first(w, "200", 3, "3");
}

/* GPUs without a count of occupied compute units: work is assumed to run for a fixed time. */
AMD_TEST_ON(a_short_request_takes_the_device, navi31_old)
{
	latency_critical_work_comes_first(w, "50", 1, "9");
}

AMD_TEST_ON(it_takes_it_from_several_as_well, navi31)
{
	latency_critical_work_comes_first(w, "50", 3, "3");
}

/* From a packet of the service to the moment in which the other has left the device, as the device
 * has it. On a busy machine a packet may be done before anyone looks: then another one is sent. */
static uint64_t take_device_ns(struct amd_world *w, struct target *lc, pid_t be)
{
	uint64_t rung_ns, left_ns;
	unsigned sent = 0;

	do {
		assert_in_range(++sent, 1, 200);
		TEST_WAIT(!aw_suspended(w, be));
		target_do(lc, "submit 0 1 50");
		rung_ns = kfd_emu_queue_number(&w->emu, lc->pid, 0, "rung_ns");
		TEST_WAIT(target_ask(lc, "done 0") > 0);
		left_ns = aw_process(w, be, "suspended_ns");
	} while (left_ns <= rung_ns);
	return left_ns - rung_ns;
}

AMD_TEST_ON(a_request_has_the_device_after_a_look_and_a_suspend, mi250, mi300x_old, navi31)
{
	struct kfd_load *be = start_be(w, "4");
	uint64_t ns[REQUESTS], p50, bare_ns = bare_suspend_ns(be->pid, REQUESTS), bound_ns;
	uint64_t late_ns = timer_lateness_ns();
	struct target *lc = aw_target_with(w, 1);
	struct scheduler s = {0};

	sched_begin_with(&s, w, lc->pid, be->pid);
	/* Until it has been found, and the other is attached to. */
	TEST_WAIT((target_ask(lc, "submit 0 1 50"), aw_suspended(w, be->pid)));
	TEST_WAIT(target_ask(lc, "done 0") > 0);
	for (unsigned i = 0; i < REQUESTS; i++)
		ns[i] = take_device_ns(w, lc, be->pid);
	late_ns = worse_lateness_ns(late_ns);
	p50 = percentile(ns, REQUESTS, 50);
	bound_ns = DETECT_NS + bare_ns + HANDOVERS * late_ns;
	printf("from a packet to the hold %lu us (at most %lu us); a bare suspend: %lu us; a timer "
	       "is late by %lu us\n",
	       p50 / 1000, bound_ns / 1000, bare_ns / 1000, late_ns / 1000);
	assert_true(p50 <= bound_ns);
	sched_end(&s);
	assert_int_equal(kfd_load_stop(be), 0);
}

static struct gp_task_stats task_of(const struct scheduler *s, pid_t pid)
{
	struct gp_task_stats task = {0};

	for (unsigned i = 0; i < gp_engine_tasks(s->engine) && task.pid != pid; i++)
		gp_engine_task_stats(s->engine, i, &task);
	return task.pid == pid ? task : (struct gp_task_stats){0};
}

/* Drives the engine here until the process is held, or is not. How long it took. */
static uint64_t step_until(struct scheduler *s, pid_t pid, bool held)
{
	struct pollfd news = {.fd = gp_gpu_event_fd(s->w->gpu), .events = POLLIN};
	uint64_t begin_ns = aw_now();

	for (;;) {
		uint64_t ignored;

		gp_engine_step(s->engine, aw_now());
		if (task_of(s, pid).held == held)
			return aw_now() - begin_ns;
		assert_true(aw_now() - begin_ns < 20 * GP_NS_PER_S);
		poll(&news, 1, 1);
		if (read(news.fd, &ignored, sizeof ignored) > 0)
			gp_engine_trigger(s->engine, true);
	}
}

/* The service says that a request comes, before it submits anything. */
AMD_TEST_ON(who_says_so_has_the_device_after_one_suspend, mi300x, mi250_old)
{
	struct kfd_load *be = start_be(w, "4"), *lc = aw_load(w, "--idle");
	uint64_t ns[REQUESTS], p50, bare_ns = bare_suspend_ns(be->pid, REQUESTS);
	uint64_t key, late_ns = timer_lateness_ns();
	struct scheduler s = {0};

	sched_know_both(&s, lc->pid, be->pid);
	sched_make(&s, w);
	while (!task_of(&s, be->pid).pid || !task_of(&s, lc->pid).pid ||
	       !aw_is_debugged(w, be->pid)) {
		gp_engine_step(s.engine, aw_now());
		usleep(1000);
	}
	key = task_of(&s, lc->pid).key;
	for (unsigned i = 0; i < REQUESTS; i++) {
		assert_int_equal(gp_engine_hint(s.engine, aw_now(), key, 20 * GP_NS_PER_S), 0);
		ns[i] = step_until(&s, be->pid, true);
		assert_int_equal(aw_suspended(w, be->pid), 4);
		assert_int_equal(gp_engine_hint(s.engine, aw_now(), key, 0), 0);
		step_until(&s, be->pid, false);
		assert_int_equal(aw_suspended(w, be->pid), 0);
	}
	late_ns = worse_lateness_ns(late_ns);
	p50 = percentile(ns, REQUESTS, 50);
	printf("from the word to the hold: %lu us; a bare suspend: %lu us; a timer is late by %lu "
	       "us\n",
	       p50 / 1000, bare_ns / 1000, late_ns / 1000);
	assert_true(p50 <= bare_ns + HINT_HANDOVERS * late_ns);
	sched_free(&s);
	assert_int_equal(kfd_load_stop(be), 0);
	assert_int_equal(kfd_load_stop(lc), 0);
}

AMD_TEST(an_idle_best_effort_task_is_not_held)
{
	struct kfd_load *lc = start_lc(w), *be = aw_load(w, "--idle");
	struct scheduler s = {0};

	sched_begin_with(&s, w, lc->pid, be->pid);
	TEST_WAIT(aw_is_debugged(w, be->pid)); /* it could be */
	latency_ns(lc, 5);
	/* Until it is seen that it is idle it may be held once. */
	assert_in_range(kfd_emu_count(&w->emu, "suspend_queues"), 0, 1);
	TEST_WAIT(!aw_suspended(w, be->pid));
	sched_end(&s);
	assert_int_equal(kfd_load_stop(be), 0);
}

AMD_TEST(a_process_that_nobody_named_is_never_touched)
{
	struct kfd_load *lc = start_lc(w), *be = start_be(w, "2"), *other = start_be(w, "2");
	struct scheduler s = {0};

	sched_begin_with(&s, w, lc->pid, be->pid);
	TEST_WAIT(aw_suspended(w, be->pid));
	latency_ns(lc, 5);
	assert_int_equal(aw_process(w, other->pid, "suspends"), 0);
	assert_false(aw_is_debugged(w, other->pid));
	assert_int_equal(aw_process(w, lc->pid, "suspends"), 0);
	sched_end(&s);
}

AMD_TEST(who_comes_later_and_who_goes_is_seen)
{
	struct target *t = aw_target(w); /* its number is known before it has a queue */
	struct kfd_load *lc = start_lc(w), *be = start_be(w, "2");
	struct scheduler s = {0};

	sched_know_both(&s, lc->pid, be->pid);
	sched_know(&s, t->pid, GP_BEST_EFFORT);
	sched_begin(&s, w);
	TEST_WAIT(aw_suspended(w, be->pid));
	target_become_rocm(t, 1);
	target_do(t, "submit 0 200 1000"); /* more than it can have */
	TEST_WAIT(aw_suspended(w, t->pid));
	kfd_load_kill(be); /* held or not */
	kfd_load_kill(lc); /* no latency-critical task is left */
	TEST_WAIT(!aw_suspended(w, t->pid));
	emulator_sleep_ms(100);
	assert_int_equal(aw_suspended(w, t->pid), 0);
	sched_end(&s);
}

AMD_TEST_ON(nobody_attaches_to_a_service_that_can_be_watched_without, vega20, mi250)
{
	struct kfd_load *lc = start_lc(w), *be = start_be(w, "4");
	struct scheduler s = {0};

	sched_begin_with(&s, w, lc->pid, be->pid);
	TEST_WAIT(aw_suspended(w, be->pid)); /* so its work was seen */
	latency_ns(lc, 5);
	TEST_WAIT(aw_suspended(w, be->pid));
	TEST_WAIT(!aw_suspended(w, be->pid)); /* and its rest */
	assert_int_equal(kfd_emu_count(&w->emu, "enable"), 1);
	assert_false(aw_is_debugged(w, lc->pid));
	sched_end(&s);
	assert_int_equal(kfd_load_stop(be), 0);
}

static void hide_debugfs(void)
{
	setenv("GPREEMPT_KFD_DEBUGFS", "/nonexistent", 1);
}

AMD_TEST_ON(otherwise_it_is_attached_to, mi250)
{
	struct kfd_load *lc = start_lc(w), *be = start_be(w, "4");
	struct scheduler s = {0};

	hide_debugfs();
	sched_begin_with(&s, w, lc->pid, be->pid);
	TEST_WAIT(aw_is_debugged(w, lc->pid));
	TEST_WAIT(aw_suspended(w, be->pid));
	assert_int_equal(aw_process(w, lc->pid, "suspends"), 0);
	sched_end(&s);
	assert_int_equal(kfd_load_stop(lc), 0);
	assert_int_equal(kfd_load_stop(be), 0);
}

/* Its session would take the only slot from the task to be held. */
AMD_TEST_ON(where_there_is_one_place_its_work_is_not_known, vega20, mixed)
{
	struct kfd_load *lc = start_lc(w), *be = start_be(w, "4");
	uint32_t handle[2] = {0};

	hide_debugfs();
	handle[0] = aw_attach(w, lc->pid);
	handle[1] = aw_attach(w, be->pid);
	gp_gpu_prepare(w->gpu, handle[0], false);
	gp_gpu_prepare(w->gpu, handle[1], true);
	TEST_WAIT(aw_look(w, handle[1]).known & GP_KNOWN_ACTIVE);
	emulator_sleep_ms(300);
	assert_false(aw_look(w, handle[0]).known & GP_KNOWN_ACTIVE);
	assert_false(aw_is_debugged(w, lc->pid));
	aw_must_hold(w, handle[1]);
}
