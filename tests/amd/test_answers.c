/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver's answers are checked: counts, error bits, sizes and signals. A hold or a release
 * counts only if the driver confirms it, and a release that fails is repeated until the session
 * itself is ended.
 */
#include "amd_world.h"

#include <string.h>

#include "gpu/amd/kfd.h"

/* Neither "held" nor "released" is claimed unless it is so. */
static void is_not_misreported(struct amd_world *w, uint32_t handle, pid_t pid)
{
	struct gp_observation o = aw_look(w, handle);
	uint64_t suspended = aw_suspended(w, pid);

	if (!o.unsure)
		assert_int_equal(o.held ? kfd_emu_queues(&w->emu, pid) : 0, suspended);
}

AMD_TEST_ON(a_suspend_whose_count_is_wrong_is_not_a_hold, mi250, navi31)
{
	static const char *const lie[] = {"ignore suspend_queues 0", "ignore suspend_queues 1",
					  "result suspend_queues 0", "result suspend_queues 1",
					  "result suspend_queues 7"};
	static const char *const words[] = {"0 of its 2", "1 of its 2", "0 of its 2", "1 of its 2",
					    "7 of its 2"};
	struct kfd_load *load = aw_load(w, "--queues", "2");
	uint32_t handle = aw_prepared(w, load->pid);

	for (unsigned i = 0; i < sizeof lie / sizeof lie[0]; i++) {
		aw_disturb(w, "%s %d", lie[i], AW_ALWAYS);
		assert_int_equal(aw_hold(w, handle).failed, -EPROTO);
		assert_false(aw_look(w, handle).held);
		is_not_misreported(w, handle, load->pid);
		aw_must_say(w, handle, words[i]);
		aw_wait_released(w, load->pid);
		aw_calm(w);
		aw_must_hold(w, handle);
		aw_must_release(w, handle);
	}
}

/* The call did its work: the queues are resumed all the same, whichever code it returns. If they
 * cannot be, the session is ended. */
AMD_TEST_ON(a_suspend_that_works_and_then_fails_is_undone, mi250, mi250_old, navi31)
{
	static const int code[] = {EIO, EPERM, EINVAL, ESRCH, EBUSY};
	static const int answer[] = {-EIO, -EPROTO, -EPROTO, -EPROTO, -EBUSY};
	struct kfd_load *load = aw_load(w, "--queues", "2");
	uint32_t handle = aw_prepared(w, load->pid);

	for (unsigned i = 0; i < sizeof code / sizeof code[0]; i++) {
		aw_disturb(w, "late_errno suspend_queues %d %d", code[i], AW_ALWAYS);
		assert_int_equal(aw_hold(w, handle).failed, answer[i]);
		is_not_misreported(w, handle, load->pid);
		aw_wait_released(w, load->pid);
		aw_calm(w);
		aw_must_hold(w, handle);
		aw_must_release(w, handle);
	}
}

AMD_TEST_ON(a_suspend_that_works_and_fails_as_the_resume_does_ends_the_session, mi250, mi250_old,
	    navi31)
{
	struct kfd_load *load = aw_load(w, "--queues", "2");
	uint32_t handle = aw_prepared(w, load->pid);

	aw_disturb(w, "late_errno suspend_queues %d %d", EPERM, AW_ALWAYS);
	aw_disturb(w, "errno resume_queues %d %d", EPERM, AW_ALWAYS);
	assert_int_equal(aw_hold(w, handle).failed, -EPERM);
	assert_false(aw_is_debugged(w, load->pid));
	aw_wait_released(w, load->pid);
	aw_calm(w);
	aw_must_hold(w, handle);
	aw_disturb(w, "errno disable %d %d", EIO, AW_ALWAYS);
	aw_disturb(w, "errno resume_queues %d %d", EPERM, AW_ALWAYS);
	aw_disturb(w, "late_errno suspend_queues %d %d", EPERM, AW_ALWAYS);
	for (int i = 0; i < 3; i++)
		aw_release(w, handle);
	assert_true(aw_look(w, handle).unsure);
	aw_calm(w);
	aw_wait_released(w, load->pid);
}

/* Even a failed ENABLE takes the session of another process. */
AMD_TEST_ON(only_where_the_driver_finds_no_session_one_is_begun, mi250, navi31_old)
{
	static const int code[] = {EIO, ENOMEM, EPERM, EACCES, EFAULT, EAGAIN, EBUSY};
	struct kfd_load *load = aw_load(w, "--queues", "2");
	uint32_t handle = aw_attach(w, load->pid);

	for (unsigned i = 0; i < sizeof code / sizeof code[0]; i++) {
		aw_disturb(w, "errno get_queue_snapshot %d", code[i]);
		assert_int_equal(aw_hold(w, handle).failed, -code[i]);
		aw_must_say(w, handle, "not known whether another debugger");
	}
	aw_disturb(w, "errno get_queue_snapshot %d", ESRCH);
	assert_int_equal(aw_hold(w, handle).failed, -EIO); /* it lists queues of the process */
	assert_int_equal(kfd_emu_count(&w->emu, "enable"), 0);
	aw_calm(w);
	aw_must_hold(w, handle);
}

AMD_TEST_ON(a_resume_whose_count_is_wrong_is_not_a_release, mi250, navi31)
{
	static const char *const lie[] = {"ignore resume_queues 0", "ignore resume_queues 1",
					  "result resume_queues 0"};
	struct kfd_load *load = aw_load(w, "--queues", "2");
	uint32_t handle = aw_prepared(w, load->pid);

	for (unsigned i = 0; i < sizeof lie / sizeof lie[0]; i++) {
		aw_must_hold(w, handle);
		aw_disturb(w, "%s 1", lie[i]);
		assert_int_equal(aw_release(w, handle).failed, -EPROTO);
		assert_true(aw_look(w, handle).unsure);
		aw_must_say(w, handle, " of its 2");
		aw_must_release(w, handle);
		assert_false(aw_look(w, handle).unsure);
		aw_wait_released(w, load->pid);
	}
}

/* The driver reports a time-out or a reset during RESUME as error bits. */
AMD_TEST_ON(a_release_that_times_out_is_not_reported_as_one, mi250, navi31)
{
	struct kfd_load *load = aw_load(w, "--queues", "2");
	struct gp_observation o;
	uint32_t handle = aw_prepared(w, load->pid);

	aw_must_hold(w, handle);
	aw_disturb(w, "preempt_timeout 1");
	o = aw_release(w, handle);
	assert_int_equal(o.failed, -EIO);
	assert_true(o.unsure);
	aw_must_release(w, handle);
	assert_false(aw_look(w, handle).unsure);
	aw_wait_released(w, load->pid);
}

AMD_TEST_ON(a_release_that_fails_three_times_ends_the_session, mi250, mi250_old, navi31)
{
	struct kfd_load *load = aw_load(w, "--queues", "2");
	uint32_t handle = aw_prepared(w, load->pid);

	aw_must_hold(w, handle);
	aw_disturb(w, "errno resume_queues %d %d", EIO, AW_ALWAYS);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(aw_release(w, handle).failed, -EIO);
		assert_true(aw_look(w, handle).unsure);
		assert_int_equal(aw_suspended(w, load->pid), 2);
	}
	aw_must_release(w, handle); /* by the end of the session */
	assert_false(aw_look(w, handle).unsure);
	assert_false(aw_is_debugged(w, load->pid));
	aw_wait_released(w, load->pid);
	aw_calm(w);
	aw_must_hold(w, handle); /* attaches again */
	aw_must_release(w, handle);
	aw_wait_released(w, load->pid);
}

/* The driver counts all queues and sets no bit: only the work that goes on shows it. */
AMD_TEST_ON(a_suspend_that_is_confirmed_without_effect_is_not_a_hold, mi250, navi31)
{
	struct kfd_load *load = aw_load(w, "--queues", "2");
	struct gp_observation o;
	uint32_t handle;

	aw_open(w);
	handle = aw_prepared(w, load->pid);
	aw_disturb(w, "ignore suspend_queues 2 %d", AW_ALWAYS);
	o = aw_hold(w, handle);
	assert_true(!o.held || o.unsure || o.unproven);
	TEST_WAIT((o = aw_look(w, handle)).failed);
	assert_int_equal(o.failed, -EREMOTEIO);
	assert_true(!o.held || o.unsure);
	aw_must_say(w, handle, "the driver says that");
	aw_wait_released(w, load->pid);
	aw_calm(w);
	aw_must_hold(w, handle);
	TEST_WAIT(!aw_look(w, handle).unproven);
	assert_true(aw_look(w, handle).held && !aw_look(w, handle).unsure);
	aw_must_release(w, handle);
	aw_wait_released(w, load->pid);
}

AMD_TEST_ON(a_resume_that_is_confirmed_without_effect_ends_the_session, mi250, navi31)
{
	struct kfd_load *load = aw_load(w, "--queues", "2");
	struct gp_observation o;
	uint32_t handle;

	aw_open(w);
	handle = aw_prepared(w, load->pid);
	aw_must_hold(w, handle);
	aw_disturb(w, "ignore resume_queues 2 %d", AW_ALWAYS);
	o = aw_release(w, handle);
	assert_true(o.unproven);
	TEST_WAIT((o = aw_look(w, handle)).unsure);
	assert_int_equal(o.failed, -ETIME);
	aw_must_say(w, handle, "it has done no work");
	aw_must_release(w, handle);
	TEST_WAIT(!aw_look(w, handle).unproven);
	assert_false(aw_look(w, handle).unsure);
	assert_false(aw_is_debugged(w, load->pid));
	aw_wait_released(w, load->pid);
}

/* RESUME and DISABLE do nothing, and the driver finds no session afterwards. */
static void lie_about_the_end(struct amd_world *w)
{
	aw_disturb(w, "ignore resume_queues 2 %d", AW_ALWAYS);
	aw_disturb(w, "ignore disable 0 %d", AW_ALWAYS);
	aw_disturb(w, "errno get_queue_snapshot %d %d", EINVAL, AW_ALWAYS);
}

AMD_TEST_ON(lies_in_agreement_about_the_end_of_a_session_are_not_believed, mi250, mi250_old, navi31)
{
	struct kfd_load *load = aw_load(w, "--queues", "2");
	uint32_t handle = aw_prepared(w, load->pid);

	aw_must_hold(w, handle);
	lie_about_the_end(w);
	aw_release(w, handle);
	TEST_WAIT(aw_look(w, handle).unsure);
	for (int i = 0; i < 3; i++) {
		assert_true(aw_release(w, handle).failed < 0);
		assert_true(aw_look(w, handle).unsure);
	}
	aw_must_say(w, handle, "does not end the debug session");
	assert_int_equal(aw_suspended(w, load->pid), 2);
	aw_calm(w);
	TEST_WAIT(!aw_look(w, handle).unsure && !aw_look(w, handle).unproven);
	aw_wait_released(w, load->pid);
	assert_false(aw_is_debugged(w, load->pid));
}

/* Nothing that the program does shows it: only the pipe of the session, which is still open. */
AMD_TEST_ON(lies_about_the_session_of_an_idle_program_are_not_believed, mi250, mi250_old)
{
	struct target *t = aw_target_with(w, 2);
	uint32_t handle = aw_prepared(w, t->pid);

	aw_must_hold(w, handle);
	lie_about_the_end(w);
	aw_disturb(w, "errno resume_queues %d %d", EIO, AW_ALWAYS);
	for (int i = 0; i < 4; i++)
		assert_true(aw_release(w, handle).failed < 0);
	assert_true(aw_look(w, handle).unsure);
	aw_calm(w);
	TEST_WAIT(!aw_look(w, handle).unsure);
	assert_int_equal(aw_suspended(w, t->pid), 0);
}

/* The session ends, and its queues stay off the hardware: the driver ignores that failure. */
AMD_TEST_ON(the_end_of_a_session_without_effect_is_not_a_release, mi250)
{
	struct kfd_load *load = aw_load(w, "--queues", "2");
	uint32_t handle = aw_prepared(w, load->pid);
	struct gp_observation o;

	aw_must_hold(w, handle);
	aw_disturb(w, "ignore resume_queues 2 %d", AW_ALWAYS);
	aw_release(w, handle);
	TEST_WAIT(aw_look(w, handle).unsure);
	aw_disturb(w, "preempt_timeout %d", AW_ALWAYS);
	assert_true(aw_release(w, handle).unproven);
	TEST_WAIT((o = aw_look(w, handle)).unsure);
	assert_int_equal(o.failed, -ETIME);
	assert_false(aw_is_debugged(w, load->pid));
	aw_must_say(w, handle, "not known whether process");
	aw_calm(w);
	aw_release(w, handle); /* attaches and detaches, which maps the queues */
	TEST_WAIT(!aw_look(w, handle).unproven);
	assert_false(aw_look(w, handle).unsure);
	aw_wait_released(w, load->pid);
}

/* It looks like one that is still suspended. */
AMD_TEST_ON(a_program_that_waits_for_its_host_is_not_attached_to_again_and_again, mi250, navi31)
{
	struct target *t = aw_target_with(w, 1);
	uint32_t handle = aw_prepared(w, t->pid);
	uint64_t enables;

	aw_must_hold(w, handle);
	target_do(t, "submit 0 1 1");
	target_do(t, "delay 0 1");
	for (int i = 0; i < 6; i++) {
		aw_release(w, handle);
		TEST_WAIT(aw_look(w, handle).unsure);
	}
	aw_must_say(w, handle, "wait for its host");
	enables = kfd_emu_count(&w->emu, "enable");
	assert_in_range(enables, 2, 3);
	assert_int_equal(aw_release(w, handle).failed, -ETIME);
	assert_int_equal(kfd_emu_count(&w->emu, "enable"), enables);
	target_do(t, "delay 0 0");
	TEST_WAIT(!aw_look(w, handle).unsure);
	assert_int_equal(aw_look(w, handle).failed, 0);
	TEST_WAIT(target_ask(t, "done 0") == 1);
	aw_must_hold(w, handle);
	aw_must_release(w, handle);
}

/* The queue that was resumed makes progress, and the other does not. */
AMD_TEST_ON(a_resume_of_some_queues_that_is_confirmed_for_all_ends_the_session, mi250, navi31)
{
	struct kfd_load *load = aw_load(w, "--queues", "2");
	struct gp_observation o;
	uint32_t handle;

	aw_open(w);
	handle = aw_prepared(w, load->pid);
	for (int i = 0; i < 2; i++) {
		aw_must_hold(w, handle);
		aw_disturb(w, "part resume_queues %d", i ? 1 : 0);
		o = aw_release(w, handle);
		assert_true(o.unproven);
		TEST_WAIT(!(o = aw_look(w, handle)).unproven);
		assert_true(o.unsure);
		assert_int_equal(o.failed, -ETIME);
		assert_int_equal(aw_suspended(w, load->pid), i ? 1 : 2);
		aw_must_say(w, handle, i ? "some of its queues have done no work" : "it has done");
		aw_must_release(w, handle);
		assert_false(aw_is_debugged(w, load->pid));
		aw_wait_released(w, load->pid);
	}
}

AMD_TEST_ON(a_suspend_of_some_queues_that_is_confirmed_for_all_is_not_a_hold, mi250, navi31)
{
	struct kfd_load *load = aw_load(w, "--queues", "2");
	struct gp_observation o;
	uint32_t handle;

	aw_open(w);
	handle = aw_prepared(w, load->pid);
	aw_disturb(w, "part suspend_queues 1");
	aw_hold(w, handle);
	/* Later than the answer if a busy machine lets the queue do nothing during the look. */
	TEST_WAIT((o = aw_look(w, handle)).failed);
	assert_int_equal(o.failed, -EREMOTEIO);
	assert_true(o.unsure);
	aw_must_release(w, handle);
	aw_wait_released(w, load->pid);
}

/* The queue that is suspended has waiting packets, and the other one has a short kernel now and
 * then: between two of them no work is visible. */
AMD_TEST_ON(a_suspend_of_some_queues_does_not_look_proven_between_two_kernels, mi250, mi300x)
{
	struct target *t = aw_target_with(w, 2);
	uint32_t handle = aw_prepared(w, t->pid);
	struct gp_observation o;
	uint64_t late_ns = 0;

	target_do(t, "submit 1 500 10");
	aw_disturb(w, "part suspend_queues 1 %d", AW_ALWAYS);
	for (int i = 0; i < 5; i++) {
		aw_hold(w, handle);
		assert_int_equal(aw_suspended(w, t->pid), 1);
		for (uint64_t begun_ns = aw_now(); !(o = aw_look(w, handle)).failed;) {
			late_ns = aw_now() - begun_ns;
			assert_true(o.unproven || late_ns > 10 * GP_NS_PER_MS);
			begun_ns = aw_now();
			target_do(t, "submit 0 1 1");
			usleep(2000);
		}
		assert_int_equal(o.failed, -EREMOTEIO);
		aw_must_release(w, handle);
	}
}

/* Where the driver counts no waves, a long kernel looks like a held one. */
AMD_TEST_ON(a_hold_says_whether_work_was_seen_to_stand_still, mi250, navi31)
{
	struct kfd_load *load = aw_load(w, "--queues", "2");
	uint32_t handle = aw_prepared(w, load->pid);
	bool counts_waves = !strstr(w->gpu->info.name, "gfx11");

	aw_must_hold(w, handle);
	TEST_WAIT(!aw_look(w, handle).unproven);
	assert_int_equal(aw_look(w, handle).evidence,
			 counts_waves ? GP_EVIDENCE_ENOUGH : GP_EVIDENCE_DRIVER);
	aw_must_release(w, handle);
	TEST_WAIT(!aw_look(w, handle).unproven);
	assert_int_equal(aw_look(w, handle).evidence, GP_EVIDENCE_ENOUGH);
}

/* Where no packet waits, there is nothing to see but the driver's answer. */
AMD_TEST_ON(a_hold_and_a_release_of_an_idle_program_are_confirmed_by_the_driver_only, mi250, navi31)
{
	struct target *t = aw_target_with(w, 1);
	uint32_t handle = aw_prepared(w, t->pid);

	aw_must_hold(w, handle);
	TEST_WAIT(!aw_look(w, handle).unproven);
	assert_int_equal(aw_look(w, handle).evidence, GP_EVIDENCE_DRIVER);
	aw_must_release(w, handle);
	TEST_WAIT(!aw_look(w, handle).unproven);
	assert_int_equal(aw_look(w, handle).evidence, GP_EVIDENCE_DRIVER);
	target_do(t, "submit 0 1 1");
	TEST_WAIT(aw_look(w, handle).evidence == GP_EVIDENCE_ENOUGH);
}

/* As beside a service: most of the time held. Returns the longest time without work. */
static uint64_t longest_stop_ns(struct amd_world *w, uint32_t handle, pid_t pid, uint64_t for_ns)
{
	uint64_t begin_ns = aw_now(), moved_ns = begin_ns, longest_ns = 0, now_ns;
	uint64_t before = aw_sum(w, pid, "executed"), done;

	while ((now_ns = aw_now()) < begin_ns + for_ns) {
		aw_release(w, handle);
		usleep(2000);
		aw_hold(w, handle);
		usleep(10000);
		done = aw_sum(w, pid, "executed");
		longest_ns = now_ns - moved_ns > longest_ns ? now_ns - moved_ns : longest_ns;
		moved_ns = done == before ? moved_ns : now_ns;
		before = done;
	}
	return longest_ns;
}

AMD_TEST_ON(a_resume_without_effect_is_noticed_over_short_releases, mi250, mi300x, navi31)
{
	struct kfd_load *load = aw_load(w, "--queues", "1", "--steps", "3");
	uint32_t handle = aw_prepared(w, load->pid);

	aw_must_hold(w, handle);
	aw_disturb(w, "ignore resume_queues 1 %d", AW_ALWAYS);
	assert_in_range(longest_stop_ns(w, handle, load->pid, 4 * GP_NS_PER_S), 1,
			1500 * GP_NS_PER_MS);
	aw_calm(w);
	aw_release(w, handle);
	aw_wait_released(w, load->pid);
}

/* Each of its kernels needs about 10 such releases. */
AMD_TEST_ON(short_releases_of_long_kernels_do_not_look_like_a_stop, mi250, navi31)
{
	struct kfd_load *load = aw_load(w, "--queues", "1", "--steps", "200");
	uint32_t handle = aw_prepared(w, load->pid);

	aw_must_hold(w, handle);
	longest_stop_ns(w, handle, load->pid, 3 * GP_NS_PER_S);
	assert_int_equal(kfd_emu_count(&w->emu, "enable"), 1);
	assert_true(aw_is_debugged(w, load->pid));
	assert_int_equal(aw_look(w, handle).failed, 0);
}

/* Nothing has to be seen of a program that does nothing. */
AMD_TEST_ON(holds_and_releases_of_an_idle_program_need_no_proof, mi250, navi31)
{
	struct kfd_load *load = aw_load(w, "--idle");
	uint32_t handle;

	aw_open(w);
	handle = aw_prepared(w, load->pid);
	for (int i = 0; i < 3; i++) {
		aw_must_hold(w, handle);
		TEST_WAIT(!aw_look(w, handle).unproven);
		assert_int_equal(aw_suspended(w, load->pid), 1);
		aw_must_release(w, handle);
		TEST_WAIT(!aw_look(w, handle).unproven);
	}
	assert_true(aw_is_debugged(w, load->pid));
}

/* The release of an idle program is answered at once. Only its next packet shows that the driver
 * has not resumed it. */
AMD_TEST_ON(a_resume_of_an_idle_program_without_effect_is_noticed_later, mi250, mi250_old, navi31)
{
	struct target *t = aw_target_with(w, 2);
	uint32_t handle;

	aw_open(w);
	handle = aw_prepared(w, t->pid);
	aw_must_hold(w, handle);
	TEST_WAIT(!aw_look(w, handle).unproven);
	aw_disturb(w, "ignore resume_queues 2");
	aw_must_release(w, handle);
	TEST_WAIT(!aw_look(w, handle).unproven);
	usleep(400 * 1000);
	assert_true(aw_is_debugged(w, t->pid)); /* nothing shows it */
	assert_int_equal(aw_suspended(w, t->pid), 2);
	target_do(t, "submit 1 1 1");
	TEST_WAIT(aw_suspended(w, t->pid) == 0);
	TEST_WAIT(target_ask(t, "done 1") == 1);
	TEST_WAIT(!aw_look(w, handle).unsure && !aw_look(w, handle).failed);
	assert_false(aw_is_debugged(w, t->pid));
}

AMD_TEST_ON(a_released_program_that_is_idle_for_a_while_keeps_its_session, mi250, navi31)
{
	struct target *t = aw_target_with(w, 2);
	uint32_t handle;

	aw_open(w);
	handle = aw_prepared(w, t->pid);
	for (int i = 0; i < 3; i++) {
		aw_must_hold(w, handle);
		TEST_WAIT(!aw_look(w, handle).unproven);
		aw_must_release(w, handle);
		usleep(300 * 1000);
		target_do(t, "submit 1 1 1");
		TEST_WAIT(target_ask(t, "done 1") == 1);
	}
	usleep(300 * 1000);
	assert_true(aw_is_debugged(w, t->pid));
	assert_int_equal(aw_look(w, handle).failed, 0);
}

/* The driver counts and lists queues in sysfs as well. */
AMD_TEST(a_snapshot_that_lacks_queues_is_not_believed)
{
	struct kfd_load *load = aw_load(w, "--queues", "2");
	uint32_t handle;

	aw_open(w);
	handle = aw_attach(w, load->pid);
	aw_disturb(w, "out_count get_queue_snapshot 0 %d", AW_ALWAYS);
	gp_gpu_prepare(w->gpu, handle, true);
	aw_settled(w, handle);
	aw_must_say(w, handle, "cannot be true");
	aw_wait_released(w, load->pid);
}

/* A queue that is thought to copy, or to be on another GPU, would not be suspended. */
AMD_TEST_ON(a_snapshot_that_contradicts_sysfs_is_not_believed, two_mi250)
{
	static const char *const lie[] = {"out_type get_queue_snapshot 1",
					  "out_gpu get_queue_snapshot 1"};
	static const char *const words[] = {"type 1", "GPU 1"};
	struct kfd_load *load = aw_load(w, "--queues", "3");
	char queue[64];

	snprintf(queue, sizeof queue, "queue 2 of process %d", load->pid);
	aw_open(w);
	for (unsigned i = 0; i < sizeof lie / sizeof lie[0]; i++) {
		uint32_t handle = aw_attach(w, load->pid);

		aw_disturb(w, "%s %d", lie[i], AW_ALWAYS);
		assert_int_equal(aw_hold(w, handle).failed, -EBADMSG);
		assert_false(aw_look(w, handle).held);
		aw_must_say(w, handle, words[i]);
		aw_must_say(w, handle, queue);
		aw_calm(w);
		aw_wait_released(w, load->pid);
		aw_disturb(w, "%s 3", lie[i]); /* the next look is true */
		aw_must_hold(w, handle);
		assert_int_equal(aw_suspended(w, load->pid), 3);
		aw_must_release(w, handle);
		gp_gpu_detach(w->gpu, handle);
		TEST_WAIT(!aw_is_debugged(w, load->pid));
	}
}

/* The hold of a queue that is created later fails with the same sentence. */
AMD_TEST(a_snapshot_that_contradicts_sysfs_while_attached_is_not_believed)
{
	struct target *t = aw_target_with(w, 1);
	uint32_t handle = aw_prepared(w, t->pid);

	aw_disturb(w, "out_type get_queue_snapshot 1 %d", AW_ALWAYS);
	target_do(t, "queue aql 0");
	TEST_WAIT(aw_hold(w, handle).failed == -EBADMSG);
	assert_false(aw_look(w, handle).held);
	aw_must_say(w, handle, "type 1");
	aw_calm(w);
	TEST_WAIT(!aw_hold(w, handle).failed);
	assert_int_equal(aw_suspended(w, t->pid), 2);
	aw_must_release(w, handle);
}

AMD_TEST_ON(a_session_that_does_not_end_is_ended_as_soon_as_the_driver_does_it, mi250, mi250_old)
{
	static const char *const refusal[] = {"errno disable 5", "errno disable 1",
					      "ignore disable 0"};
	struct kfd_load *load = aw_load(w, "--queues", "2");
	uint32_t handle = aw_prepared(w, load->pid);

	for (unsigned i = 0; i < sizeof refusal / sizeof refusal[0]; i++) {
		aw_must_hold(w, handle);
		aw_disturb(w, "errno resume_queues %d %d", EIO, AW_ALWAYS);
		aw_disturb(w, "%s %d", refusal[i], AW_ALWAYS);
		for (int k = 0; k < 5; k++) {
			assert_true(aw_release(w, handle).failed < 0);
			assert_true(aw_look(w, handle).unsure);
		}
		aw_must_say(w, handle, "does not end the debug session");
		aw_calm(w);
		TEST_WAIT(!aw_look(w, handle).unsure);
		aw_wait_released(w, load->pid);
	}
}

/* The driver answers ESRCH (no such process). The process lives, and sysfs lists its queues. */
AMD_TEST_ON(a_driver_that_does_not_find_a_process_with_queues_is_not_believed, mi250, mi250_old,
	    navi31)
{
	static const char *const call[] = {"disable", "get_queue_snapshot", "resume_queues"};
	struct kfd_load *load = aw_load(w, "--queues", "2");
	uint32_t handle = aw_prepared(w, load->pid);

	aw_must_hold(w, handle);
	for (unsigned i = 0; i < sizeof call / sizeof call[0]; i++)
		aw_disturb(w, "errno %s %d %d", call[i], ESRCH, AW_ALWAYS);
	for (int i = 0; i < 5; i++) {
		assert_true(aw_release(w, handle).failed < 0);
		assert_true(aw_look(w, handle).unsure);
		assert_int_equal(aw_suspended(w, load->pid), 2);
	}
	aw_must_say(w, handle, "does not end the debug session");
	aw_calm(w);
	TEST_WAIT(!aw_look(w, handle).unsure);
	aw_wait_released(w, load->pid);
}

AMD_TEST_ON(a_detach_whose_session_does_not_end_is_completed_later, mi250, mi250_old)
{
	struct kfd_load *load = aw_load(w, "--queues", "2");
	uint32_t handle = aw_prepared(w, load->pid);

	aw_must_hold(w, handle);
	aw_disturb(w, "errno disable %d %d", EIO, AW_ALWAYS);
	gp_gpu_detach(w->gpu, handle);
	TEST_WAIT(kfd_emu_count(&w->emu, "disable") > 3);
	handle = aw_attach(w, load->pid);
	assert_int_equal(aw_hold(w, handle).failed, -EBUSY);
	aw_must_say(w, handle, "an earlier debug session");
	aw_calm(w);
	TEST_WAIT(!aw_is_debugged(w, load->pid));
	aw_wait_released(w, load->pid);
	aw_must_hold(w, handle);
	aw_must_release(w, handle);
}

AMD_TEST_ON(interrupted_calls_are_repeated, mi250, mi250_old)
{
	static const char *const call[] = {"enable", "get_queue_snapshot", "suspend_queues",
					   "resume_queues", "disable"};
	struct kfd_load *load = aw_load(w, "--queues", "2");

	aw_open(w);
	for (unsigned i = 0; i < sizeof call / sizeof call[0]; i++) {
		uint32_t handle = aw_attach(w, load->pid);

		aw_disturb(w, "errno %s %d 3", call[i], EINTR);
		aw_must_hold(w, handle);
		assert_int_equal(aw_suspended(w, load->pid), 2);
		aw_must_release(w, handle);
		gp_gpu_detach(w->gpu, handle);
		TEST_WAIT(!aw_is_debugged(w, load->pid));
		aw_wait_released(w, load->pid);
		aw_calm(w);
	}
}

AMD_TEST_ON(an_attach_that_works_and_then_fails_leaves_no_session, mi250, mi250_old)
{
	struct kfd_load *load = aw_load(w, "--queues", "2");
	uint32_t handle = aw_attach(w, load->pid);

	aw_disturb(w, "late_errno enable %d", EIO);
	assert_int_equal(aw_hold(w, handle).failed, -EIO);
	assert_false(aw_is_debugged(w, load->pid));
	aw_disturb(w, "late_errno enable %d 2", EINTR);
	aw_must_hold(w, handle);
	aw_must_release(w, handle);
}

/* A count of 100 million made it allocate and loop; unwritten entries were taken for queues. */
AMD_TEST(snapshots_that_cannot_be_true_are_refused)
{
	static const char *const lie[] = {"out_count get_queue_snapshot 100000000",
					  "out_count get_queue_snapshot 1025",
					  "out_count get_queue_snapshot 16",
					  "out_size get_queue_snapshot 32",
					  "out_size get_queue_snapshot 4096",
					  "ignore get_queue_snapshot 0",
					  "result get_queue_snapshot 3",
					  "ignore any 0"};
	struct kfd_load *load = aw_load(w, "--queues", "2");

	aw_open(w);
	for (unsigned i = 0; i < sizeof lie / sizeof lie[0]; i++) {
		uint32_t handle = aw_attach(w, load->pid);

		aw_disturb(w, "%s %d", lie[i], AW_ALWAYS);
		assert_int_equal(aw_hold(w, handle).failed, -EPROTO);
		assert_false(aw_look(w, handle).held);
		aw_must_say(w, handle, "cannot be true");
		aw_calm(w);
		gp_gpu_detach(w->gpu, handle);
		TEST_WAIT(!aw_is_debugged(w, load->pid) && !aw_tracer(load->pid));
		aw_wait_released(w, load->pid);
	}
}

/* The kernel allows 1,024 queues; and a call that writes nothing leaves what was there before. */
AMD_TEST(a_snapshot_is_bounded_and_what_the_driver_did_not_write_is_not_read)
{
	struct kfd_load *load = aw_load(w, "--queues", "2");
	struct kfd_queue_snapshot_entry entry[2];
	int kfd = gp_kfd_open(NULL);

	aw_prepared(w, load->pid);
	assert_int_equal(gp_kfd_snapshot(kfd, load->pid, 0, entry, 2), 2);
	aw_disturb(w, "out_count get_queue_snapshot 1025");
	assert_int_equal(gp_kfd_snapshot(kfd, load->pid, 0, entry, 2), -EPROTO);
	assert_int_equal(gp_kfd_snapshot(kfd, load->pid, 0, entry, 2), 2);
	aw_disturb(w, "ignore get_queue_snapshot 0");
	assert_int_equal(gp_kfd_snapshot(kfd, load->pid, 0, entry, 2), -EPROTO);
	close(kfd);
}

/* The answer would name descriptor 0, a file of this process. */
AMD_TEST(a_stream_of_events_that_is_no_file_of_the_driver_is_refused)
{
	int kfd = gp_kfd_open(NULL);

	assert_true(kfd >= 0);
	aw_disturb(w, "ignore smi_events 0 %d", AW_ALWAYS);
	assert_int_equal(gp_kfd_smi_events(kfd, 1), -EPROTO);
	aw_disturb(w, "errno smi_events 4 %d", AW_ALWAYS);
	assert_int_equal(gp_kfd_smi_events(kfd, 1), -EINTR);
	close(kfd);
}

AMD_TEST(a_process_that_dies_while_it_is_attached_to_is_reported_as_ended)
{
	struct kfd_load *load = aw_load(w, "--queues", "2");
	uint32_t handle = aw_attach(w, load->pid);

	aw_disturb(w, "kill_on enable %d", load->pid);
	assert_int_equal(aw_hold(w, handle).failed, -ESRCH);
	aw_must_say(w, handle, "has ended");
}

AMD_TEST(a_program_that_was_executed_while_held_is_not_attached_to)
{
	struct target *t = aw_target_with(w, 2);
	uint32_t handle = aw_attach(w, t->pid);

	aw_must_hold(w, handle);
	target_tell(t, "exec");
	assert_int_equal(target_answer(t), t->pid);
	TEST_WAIT(!aw_look(w, handle).held);
	assert_int_equal(aw_hold(w, handle).failed, -ESRCH);
	aw_must_say(w, handle, "another program");
	assert_int_equal(aw_tracer(t->pid), 0);
}
