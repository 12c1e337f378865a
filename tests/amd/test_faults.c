/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the driver can answer, how long it can take, and what can become of a target meanwhile: it
 * is told in a sentence, nothing stays suspended, and the next try works.
 */
#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mount.h>
#include <sys/syscall.h>

#include "amd_world.h"

/* There is a sentence for what failed. */
static void is_explained(struct amd_world *w, uint32_t handle, int code)
{
	struct gp_error err = {0};

	gp_gpu_why(w->gpu, handle, &err);
	assert_int_equal(err.code, code);
	assert_true(strlen(err.text) > 20);
}

static void works_again(struct amd_world *w, uint32_t handle, pid_t pid)
{
	aw_calm(w);
	aw_must_hold(w, handle);
	assert_int_equal(aw_suspended(w, pid), kfd_emu_queues(&w->emu, pid));
	aw_must_release(w, handle);
	aw_wait_released(w, pid);
}

AMD_TEST_ON(a_hold_that_the_hardware_does_not_obey_fails_and_is_undone, mi250, navi31)
{
	struct kfd_load *load = aw_load(w, "--queues", "3");
	struct gp_observation o;
	uint32_t handle = aw_prepared(w, load->pid);

	for (unsigned failures = 1; failures <= 3; failures++) {
		aw_disturb(w, "preempt_timeout %u", failures); /* the undoing fails, too */
		o = aw_hold(w, handle);
		assert_int_equal(o.failed, -EIO);
		assert_false(o.held && !aw_suspended(w, load->pid));
		is_explained(w, handle, -EIO);
		aw_calm(w);
		aw_must_release(w, handle);
		aw_wait_released(w, load->pid);
		works_again(w, handle, load->pid);
	}
	assert_int_equal(kfd_load_stop(load), 0);
}

/* HWS fails as a whole; MES at the first queue that it is asked for, the newest. */
AMD_TEST_ON(the_queues_that_failed_are_named, mi250, navi31)
{
	struct kfd_load *load = aw_load(w, "--queues", "12");
	uint32_t handle = 0;
	bool mes;

	aw_open(w);
	mes = !(w->gpu->info.caps & GP_CAP_PREEMPT_MODE);
	handle = aw_prepared(w, load->pid);
	aw_disturb(w, "preempt_timeout 1");
	assert_int_equal(aw_hold(w, handle).failed, -EIO);
	aw_must_say(w, handle,
		    mes ? " stop queue 11 of "
			: " stop queues 0, 1, 2, 3, 4, 5, 6, 7 and 4 more of ");
	aw_must_release(w, handle);
	aw_must_hold(w, handle);
	aw_disturb(w, "preempt_timeout 1");
	assert_int_equal(aw_release(w, handle).failed, -EIO);
	aw_must_say(w, handle, mes ? " start queue 11 of " : " start queues 0, 1, 2");
	works_again(w, handle, load->pid);
	assert_int_equal(kfd_load_stop(load), 0);
}

AMD_TEST_ON(a_release_that_the_hardware_does_not_obey_is_told_and_can_be_repeated, mi250, navi31)
{
	struct kfd_load *load = aw_load(w, "--queues", "3"), *other = aw_load(w);
	struct gp_observation o;
	uint32_t handle = 0;

	(void)other; /* so that there is something to preempt */
	handle = aw_prepared(w, load->pid);
	aw_must_hold(w, handle);
	aw_disturb(w, "preempt_timeout 1");
	o = aw_release(w, handle);
	assert_int_equal(o.failed, -EIO);
	is_explained(w, handle, -EIO);
	works_again(w, handle, load->pid);
	assert_int_equal(kfd_load_stop(load), 0);
}

AMD_TEST_ON(while_the_gpu_is_reset_a_hold_fails_and_nothing_hangs, mi300x, navi31)
{
	struct kfd_load *load = aw_load(w, "--queues", "2");
	int failed;
	uint32_t handle = aw_prepared(w, load->pid);

	aw_disturb(w, "reset 0 begin");
	failed = aw_hold(w, handle).failed;
	if (failed) /* where single queues are taken off, there is none to take */
		aw_must_say(w, handle, "the driver is resetting AMD ");
	assert_true(failed || kfd_emu_count(&w->emu, "messages"));
	aw_disturb(w, "reset 0 end"); /* its processes stay evicted */
	aw_release(w, handle);
	TEST_WAIT(!aw_suspended(w, load->pid));
	gp_gpu_detach(w->gpu, handle);
	TEST_WAIT(!aw_is_debugged(w, load->pid));
}

AMD_TEST_ON(a_reset_while_it_is_held_does_not_keep_us, mi300x, navi31)
{
	struct kfd_load *load = aw_load(w, "--queues", "2");
	uint32_t handle = aw_prepared(w, load->pid);

	aw_must_hold(w, handle);
	aw_disturb(w, "reset 0 begin");
	aw_release(w, handle);
	aw_close(w);
	assert_false(aw_is_debugged(w, load->pid));
	assert_int_equal(aw_suspended(w, load->pid), 0);
	aw_disturb(w, "reset 0 end");
}

static const int codes[] = {EIO, ENOMEM, EINTR, EAGAIN, EFAULT};

AMD_TEST(a_suspend_that_fails_is_told_and_overcome)
{
	struct kfd_load *load = aw_load(w, "--queues", "2");
	struct gp_observation o;
	uint32_t handle = aw_prepared(w, load->pid);

	for (unsigned i = 0; i < sizeof codes / sizeof codes[0]; i++) {
		aw_disturb(w, "errno suspend_queues %d %d", codes[i], AW_ALWAYS);
		o = aw_hold(w, handle);
		assert_int_equal(o.failed, -codes[i]);
		assert_false(o.held);
		is_explained(w, handle, -codes[i]);
		aw_wait_released(w, load->pid);
		works_again(w, handle, load->pid);
	}
	assert_int_equal(kfd_load_stop(load), 0);
}

AMD_TEST(a_resume_that_fails_is_told_and_overcome)
{
	struct kfd_load *load = aw_load(w, "--queues", "2");
	struct gp_observation o;
	uint32_t handle = aw_prepared(w, load->pid);

	for (unsigned i = 0; i < sizeof codes / sizeof codes[0]; i++) {
		aw_must_hold(w, handle);
		aw_disturb(w, "errno resume_queues %d %d", codes[i], AW_ALWAYS);
		o = aw_release(w, handle);
		assert_int_equal(o.failed, -codes[i]);
		assert_true(o.held); /* which is the truth */
		is_explained(w, handle, -codes[i]);
		aw_calm(w);
		aw_must_release(w, handle);
		aw_wait_released(w, load->pid);
	}
	assert_int_equal(kfd_load_stop(load), 0);
}

AMD_TEST(an_attach_that_fails_leaves_nothing_behind)
{
	struct kfd_load *load = aw_load(w, "--queues", "2");
	uint32_t handle = 0;

	aw_open(w);
	for (unsigned i = 0; i < sizeof codes / sizeof codes[0]; i++) {
		/* An interrupted call is repeated, for a while. */
		aw_disturb(w, "errno enable %d %d", codes[i], codes[i] == EINTR ? AW_ALWAYS : 1);
		handle = aw_attach(w, load->pid);
		assert_int_equal(aw_hold(w, handle).failed, -codes[i]);
		is_explained(w, handle, -codes[i]);
		assert_false(aw_is_debugged(w, load->pid));
		TEST_WAIT(!aw_tracer(load->pid));
		works_again(w, handle, load->pid);
		gp_gpu_detach(w->gpu, handle);
		TEST_WAIT(!aw_is_debugged(w, load->pid));
		/* After ENABLE: the first snapshot that matters, whichever it is. */
		for (unsigned after = 0; after < 4; after++) {
			aw_disturb(w, "errno get_queue_snapshot %d 1 %u", codes[i], after);
			handle = aw_attach(w, load->pid);
			if (aw_hold(w, handle).failed)
				is_explained(w, handle, -codes[i]);
			works_again(w, handle, load->pid);
			gp_gpu_detach(w->gpu, handle);
			TEST_WAIT(!aw_is_debugged(w, load->pid) && !aw_tracer(load->pid));
		}
	}
	assert_int_equal(kfd_load_stop(load), 0);
}

AMD_TEST_ON(a_detach_whose_calls_fail_once_releases_all_the_same, mi250, mi250_old)
{
	struct kfd_load *load = aw_load(w, "--queues", "2");
	static const char *const call[] = {"disable", "resume_queues", "query_debug_event"};
	uint32_t handle = 0;

	aw_open(w);
	for (unsigned i = 0; i < 3; i++) {
		handle = aw_prepared(w, load->pid);
		aw_must_hold(w, handle);
		aw_disturb(w, "errno %s %d", call[i], EINTR);
		gp_gpu_detach(w->gpu, handle);
		TEST_WAIT(!aw_is_debugged(w, load->pid) && !aw_tracer(load->pid));
		aw_wait_released(w, load->pid);
		aw_calm(w);
	}
	assert_int_equal(kfd_load_stop(load), 0);
}

/* A waiting target gets its answer, although a call before it fails. */
AMD_TEST(an_answer_whose_calls_fail_once_is_given_all_the_same)
{
	static const char *const call[] = {"query_debug_event", "send_runtime_event",
					   "get_queue_snapshot", "suspend_queues"};

	aw_open(w);
	for (unsigned i = 0; i < 4; i++) {
		struct kfd_load *load = aw_load(w, "--queues", "1");

		aw_prepared(w, load->pid);
		aw_disturb(w, "errno %s %d", call[i], i % 2 ? EINTR : ENOMEM);
		kill(load->pid, SIGTERM);
		TEST_WAIT(test_process_state(load->pid) == 'Z');
		assert_int_equal(kfd_load_wait(load), 0);
		aw_calm(w);
	}
}

AMD_TEST(without_a_driver_every_call_fails_and_none_hangs)
{
	struct kfd_load *load = aw_load(w, "--queues", "2");
	struct gp_error err = {0};
	struct gp_observation o;
	uint32_t handle = aw_prepared(w, load->pid);

	kill(w->emu.pid, SIGKILL);
	waitpid(w->emu.pid, NULL, 0);
	w->emu.pid = 0;
	o = aw_hold(w, handle);
	assert_true(o.failed < 0);
	assert_false(o.held);
	/* The end of the session is tried again meanwhile, and may have failed in another way. */
	gp_gpu_why(w->gpu, handle, &err);
	assert_true(err.code < 0 && strlen(err.text) > 20);
	aw_close(w);
}

AMD_TEST_ON(a_target_may_die_at_any_call, mi250, mi250_old)
{
	static const char *const call[] = {"enable",        "get_queue_snapshot", "suspend_queues",
					   "resume_queues", "query_debug_event",  "disable"};
	struct kfd_load *other = aw_load(w, "--queues", "2");
	uint32_t safe;

	safe = aw_attach(w, other->pid);
	for (unsigned i = 0; i < sizeof call / sizeof call[0]; i++)
		for (unsigned after = 0; after < 2; after++) {
			struct kfd_load load;
			struct gp_action a = {0};

			assert_int_equal(kfd_load_start(&load, "--queues", "2", NULL), 0);
			a.handle = aw_attach(w, load.pid);
			aw_disturb(w, "kill_on %s %d 1 %u", call[i], load.pid, after);
			gp_gpu_hold(w->gpu, aw_now(), &a, 1);
			gp_gpu_release(w->gpu, aw_now(), &a, 1);
			aw_settled(w, a.handle);
			kill(load.pid, SIGKILL); /* if it has not come to that call */
			kfd_load_wait(&load);
			TEST_WAIT(!aw_look(w, a.handle).held);
			aw_calm(w);
			assert_true(aw_hold(w, a.handle).failed < 0);
			is_explained(w, a.handle, aw_look(w, a.handle).failed);
			gp_gpu_detach(w->gpu, a.handle);
			aw_must_hold(w, safe); /* the others are not concerned */
			aw_must_release(w, safe);
		}
	assert_int_equal(kfd_load_stop(other), 0);
}

AMD_TEST_ON(a_target_that_runs_another_program_is_a_new_one, mi250, mi250_old)
{
	struct target *t = aw_target_with(w, 2);
	uint32_t handle = aw_attach(w, t->pid);

	aw_must_hold(w, handle);
	target_tell(t, "exec");
	assert_int_equal(target_answer(t), t->pid);
	TEST_WAIT(!aw_look(w, handle).held);
	assert_int_equal(target_ask(t, "signals"), 0); /* it was not stopped */
	target_do(t, "open");
	target_do(t, "runtime 1"); /* does not wait for a debugger */
	target_do(t, "queue aql");
	TEST_WAIT(!aw_hold(w, handle).failed && aw_suspended(w, t->pid) == 1);
	aw_must_release(w, handle);
	target_do(t, "submit 0 5 1");
	TEST_WAIT(target_ask(t, "done 0") == 1);
}

AMD_TEST_ON(a_target_that_ends_its_runtime_is_not_held_any_more, mi250, navi31_old)
{
	struct target *t = aw_target_with(w, 1);
	uint32_t handle = aw_attach(w, t->pid);

	aw_must_hold(w, handle);
	target_do(t, "submit 0 5 1");
	target_do(t, "runtime 0"); /* is answered */
	TEST_WAIT(!aw_look(w, handle).held);
	TEST_WAIT(target_ask(t, "done 0") == 1);
	assert_int_equal(aw_hold(w, handle).failed, -EPERM);
	is_explained(w, handle, -EPERM);
	target_do(t, "destroy 0");
	target_do(t, "runtime 1");
	target_do(t, "queue aql");
	TEST_WAIT(!aw_hold(w, handle).failed && aw_suspended(w, t->pid) == 1);
}

AMD_TEST(who_is_evicted_stays_held_and_comes_back)
{
	struct kfd_load *load = aw_load(w, "--queues", "2");
	uint32_t handle = aw_prepared(w, load->pid);

	aw_disturb(w, "evict %d", load->pid);
	aw_must_hold(w, handle);
	aw_disturb(w, "restore %d", load->pid);
	aw_stands_still(w, load->pid);
	aw_disturb(w, "evict %d", load->pid);
	aw_must_release(w, handle);
	aw_stands_still(w, load->pid); /* for want of memory */
	aw_disturb(w, "restore %d", load->pid);
	aw_wait_released(w, load->pid);
	assert_int_equal(kfd_load_stop(load), 0);
}

/* A release without an effect is disproved after 250 ms, unless the driver says why. */
AMD_TEST_ON(a_release_of_an_evicted_task_is_no_failure, mi250, navi31)
{
	struct kfd_load *load = aw_load(w, "--queues", "2");
	uint32_t handle = aw_prepared(w, load->pid);
	uint64_t released_ns, sessions;

	aw_must_hold(w, handle);
	sessions = kfd_emu_count(&w->emu, "disable");
	assert_int_equal(aw_look(w, handle).evicted_ns, 0);
	aw_disturb(w, "evict %d", load->pid);
	TEST_WAIT(aw_look(w, handle).evicted_ns);
	aw_must_release(w, handle);
	for (released_ns = aw_now(); aw_now() < released_ns + 600 * GP_NS_PER_MS; usleep(10000)) {
		struct gp_observation o = aw_look(w, handle);

		assert_false(o.held || o.unsure || o.failed);
		assert_true(o.evicted_ns && !o.evicted_by_reset);
	}
	assert_true(aw_look(w, handle).evicted_ns >= 600 * GP_NS_PER_MS);
	aw_disturb(w, "put_off %d", load->pid); /* the driver tried, and it stays evicted */
	emulator_sleep_ms(150);
	assert_true(aw_look(w, handle).evicted_ns);
	aw_disturb(w, "restore %d", load->pid);
	TEST_WAIT(!aw_look(w, handle).evicted_ns);
	aw_wait_released(w, load->pid);
	assert_int_equal(kfd_emu_count(&w->emu, "disable"), sessions);
	assert_int_equal(kfd_load_stop(load), 0);
}

/* The driver confirms the release and does nothing. That shows when it has restored the task. */
AMD_TEST(after_the_restore_a_release_is_looked_at_again)
{
	struct kfd_load *load = aw_load(w, "--queues", "2");
	uint32_t handle = aw_prepared(w, load->pid);

	aw_must_hold(w, handle);
	aw_disturb(w, "evict %d", load->pid);
	TEST_WAIT(aw_look(w, handle).evicted_ns);
	aw_disturb(w, "ignore resume_queues 2 1");
	aw_must_release(w, handle);
	assert_int_equal(aw_suspended(w, load->pid), 2);
	emulator_sleep_ms(400);
	assert_int_equal(aw_look(w, handle).failed, 0);
	aw_disturb(w, "restore %d", load->pid);
	TEST_WAIT(aw_look(w, handle).failed == -ETIME);
	aw_must_release(w, handle); /* ends the session */
	aw_wait_released(w, load->pid);
	assert_int_equal(kfd_load_stop(load), 0);
}

AMD_TEST(evictions_nest_and_belong_to_one_process)
{
	struct kfd_load *load = aw_load(w), *other = aw_load(w);
	uint32_t handle = aw_attach(w, load->pid), beside = aw_attach(w, other->pid);

	for (int i = 0; i < 2; i++)
		aw_disturb(w, "evict %d", load->pid);
	TEST_WAIT(aw_look(w, handle).evicted_ns);
	aw_disturb(w, "restore %d", load->pid);
	emulator_sleep_ms(150);
	assert_true(aw_look(w, handle).evicted_ns);
	assert_int_equal(aw_look(w, beside).evicted_ns, 0);
	aw_disturb(w, "restore %d", load->pid);
	TEST_WAIT(!aw_look(w, handle).evicted_ns);
}

AMD_TEST(a_reset_is_told_and_its_processes_stay_evicted)
{
	struct kfd_load *load = aw_load(w), *later;
	uint32_t handle = aw_attach(w, load->pid);

	aw_disturb(w, "reset 0 begin");
	TEST_WAIT(aw_look(w, handle).evicted_by_reset);
	aw_disturb(w, "reset 0 end");
	emulator_sleep_ms(150);
	assert_true(aw_look(w, handle).evicted_ns && aw_look(w, handle).evicted_by_reset);
	later = aw_load(w);
	assert_int_equal(aw_look(w, aw_attach(w, later->pid)).evicted_ns, 0);
}

/* Many commands in one write, so that they are done before a stream is read. */
static void disturb_at_once(struct amd_world *w, const char *commands)
{
	char path[128];
	int fd;

	snprintf(path, sizeof path, "%s/control", w->emu.dir);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, commands, strlen(commands)), strlen(commands));
	close(fd);
}

/* Its restore may be among the records that were dropped. */
AMD_TEST(after_lost_events_nothing_is_claimed)
{
	struct kfd_load *load = aw_load(w), *other = aw_load(w);
	uint32_t handle = aw_attach(w, load->pid);
	char many[20 * 40] = "";

	aw_disturb(w, "evict %d", load->pid);
	TEST_WAIT(aw_look(w, handle).evicted_ns);
	for (int k = 0; k < 20; k++)
		snprintf(many + strlen(many), sizeof many - strlen(many), "evict %d\nrestore %d\n",
			 other->pid, other->pid);
	for (int i = 0; i < 50 && !kfd_emu_count(&w->emu, "smi_dropped"); i++)
		disturb_at_once(w, many);
	assert_true(kfd_emu_count(&w->emu, "smi_dropped"));
	TEST_WAIT(!aw_look(w, handle).evicted_ns);
	assert_true(aw_look(w, handle).eviction_lost);
	assert_int_equal(aw_sum(w, load->pid, "evicted"), 1);
	aw_disturb(w, "restore %d", load->pid);
}

AMD_TEST_ON(signals_reach_a_target_that_is_traced_all_the_time, mi250_old)
{
	struct target *t = aw_target_with(w, 1);
	uint32_t handle = aw_prepared(w, t->pid);

	for (int i = 1; i <= 20; i++) {
		kill(t->pid, SIGUSR1);
		TEST_WAIT(target_ask(t, "signals") == i);
		if (i % 5)
			continue;
		kill(t->pid, SIGSTOP);
		TEST_WAIT(test_process_state(t->pid) == 'T' || test_process_state(t->pid) == 't');
		aw_must_hold(w, handle);
		aw_must_release(w, handle);
		kill(t->pid, SIGCONT);
	}
	assert_int_equal(target_ask(t, "signals"), 20);
}

/* While a hold takes half a second, looks and other questions take none of it. */
static void looks_do_not_wait(struct amd_world *w, uint32_t handle, uint32_t other)
{
	struct gp_action a = {.handle = handle};
	uint64_t longest_ns = 0, looks = 0;

	gp_gpu_hold(w->gpu, aw_now(), &a, 1);
	assert_int_equal(a.status, -EINPROGRESS);
	while (aw_look(w, handle).under_way) {
		uint64_t begin_ns = aw_now(), ns;
		struct gp_observation o[2] = {{.handle = handle}, {.handle = other}};
		struct gp_seen seen[8];

		gp_gpu_observe(w->gpu, begin_ns, o, 2);
		gp_gpu_scan(w->gpu, begin_ns, seen, 8);
		gp_gpu_prepare(w->gpu, other, false);
		ns = aw_now() - begin_ns;
		longest_ns = ns > longest_ns ? ns : longest_ns;
		looks++;
		usleep(1000);
	}
	assert_true(looks > 20);
	assert_true(longest_ns < 250 * GP_NS_PER_MS);
	assert_true(aw_look(w, handle).held);
	aw_must_release(w, handle);
}

AMD_TEST(nobody_waits_for_a_slow_driver)
{
	struct kfd_load *load = aw_load(w), *other = aw_load(w);
	uint32_t handle[2] = {0};

	handle[0] = aw_prepared(w, load->pid);
	handle[1] = aw_attach(w, other->pid);
	aw_disturb(w, "delay suspend_queues 500ms");
	looks_do_not_wait(w, handle[0], handle[1]);
	aw_disturb(w, "hold_mutex %d 500ms", load->pid); /* it maps a lot of memory */
	looks_do_not_wait(w, handle[0], handle[1]);
	assert_int_equal(kfd_load_stop(load), 0);
}

AMD_TEST(a_task_may_leave_while_its_hold_is_under_way)
{
	struct kfd_load *load = aw_load(w, "--queues", "2");
	struct gp_action a = {0};
	uint64_t begin_ns;

	aw_open(w);
	for (int i = 0; i < 3; i++) {
		a.handle = aw_prepared(w, load->pid);
		aw_disturb(w, "delay suspend_queues 300ms");
		gp_gpu_hold(w->gpu, aw_now(), &a, 1);
		begin_ns = aw_now();
		gp_gpu_detach(w->gpu, a.handle); /* does not wait for it either */
		assert_true(aw_now() - begin_ns < 200 * GP_NS_PER_MS);
		TEST_WAIT(!aw_is_debugged(w, load->pid));
		aw_wait_released(w, load->pid);
	}
	assert_int_equal(kfd_load_stop(load), 0);
}

/* A leader that cannot be reached. */

/* It sleeps in the driver, where it can be neither stopped nor let go of, until it is woken. */
static void send_to_sleep(struct amd_world *w, struct target *t)
{
	uint64_t before = kfd_emu_count(&w->emu, "create_queue");

	aw_disturb(w, "delay create_queue 60s");
	target_tell(t, "queue aql");
	TEST_WAIT(kfd_emu_count(&w->emu, "create_queue") > before);
}

static void wakes_up_and_goes_on(struct amd_world *w, struct target *t, long queue)
{
	assert_false(target_has_answered(t)); /* it still sleeps */
	aw_disturb(w, "wake");
	assert_int_equal(target_answer(t), queue);
	TEST_WAIT(!aw_tracer(t->pid));
	assert_int_equal(target_ask(t, "signals"), 0); /* not stopped */
	target_do(t, "submit %ld 5 1", queue);
	TEST_WAIT(target_ask(t, "done %ld", queue) == 1);
}

AMD_TEST_ON(one_that_sleeps_in_the_driver_is_held_and_let_go_of, mi250, mi250_old)
{
	struct target *t = aw_target_with(w, 1);
	uint32_t handle = aw_attach(w, t->pid);

	send_to_sleep(w, t);
	aw_must_hold(w, handle);
	assert_true(aw_is_debugged(w, t->pid));
	gp_gpu_detach(w->gpu, handle);
	TEST_WAIT(!aw_is_debugged(w, t->pid));
	wakes_up_and_goes_on(w, t, 1);
}

AMD_TEST_ON(one_that_sleeps_in_the_driver_can_be_attached_to_again_at_once, mi250, mi250_old)
{
	struct target *t = aw_target_with(w, 1);
	uint32_t handle = 0;

	aw_open(w);
	send_to_sleep(w, t);
	for (int i = 0; i < 5; i++) {
		handle = aw_attach(w, t->pid);
		aw_must_hold(w, handle);
		gp_gpu_detach(w->gpu, handle);
		TEST_WAIT(!aw_is_debugged(w, t->pid));
	}
	wakes_up_and_goes_on(w, t, 1);
}

AMD_TEST_ON(one_that_sleeps_in_the_driver_does_not_keep_us_from_ending, mi250, mi250_old)
{
	struct target *t = aw_target_with(w, 1);

	aw_open(w);
	send_to_sleep(w, t);
	aw_must_hold(w, aw_attach(w, t->pid));
	aw_close(w);
	wakes_up_and_goes_on(w, t, 1);
}
