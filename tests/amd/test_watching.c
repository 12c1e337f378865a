/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Activity as it is seen from outside: a program does one thing at a time, and the observation
 * afterwards is compared with what it does.
 */
#include "amd_world.h"

#include <signal.h>
#include <string.h>
#include <sys/resource.h>

#include "base/process.h"

/* The program is watched and not held. */
static uint32_t watch(struct amd_world *w, const struct target *t)
{
	uint32_t handle = aw_attach(w, t->pid);

	gp_gpu_prepare(w->gpu, handle, false);
	TEST_WAIT(aw_look(w, handle).known & GP_KNOWN_ACTIVE);
	return handle;
}

static bool is_active(struct amd_world *w, uint32_t handle)
{
	struct gp_observation o = aw_look(w, handle);

	return o.known & GP_KNOWN_ACTIVE && o.active;
}

static bool is_idle(struct amd_world *w, uint32_t handle)
{
	struct gp_observation o = aw_look(w, handle);

	return o.known & GP_KNOWN_ACTIVE && !o.active;
}

static void take_one_packet(struct amd_world *w, struct target *t, unsigned steps)
{
	target_do(t, "submit 0 1 %u", steps);
	TEST_WAIT(kfd_emu_queue_number(&w->emu, t->pid, 0, "rptr") ==
		  kfd_emu_queue_number(&w->emu, t->pid, 0, "wptr"));
}

AMD_TEST_ON(a_kernel_that_was_taken_is_seen_until_it_ends, mi250, vega20, mi300x)
{
	struct target *t = aw_target_with(w, 1);
	uint32_t handle = watch(w, t);

	TEST_WAIT(is_idle(w, handle));
	take_one_packet(w, t, 10000); /* 1 s */
	TEST_WAIT(is_active(w, handle));
	while (!target_ask(t, "done 0")) {
		bool active = is_active(w, handle);

		/* Only what was so before and after is certain. */
		if (target_ask(t, "done 0"))
			break;
		assert_true(active);
	}
	TEST_WAIT(is_idle(w, handle));
}

/* The watch finds it when it begins. */
AMD_TEST(one_that_was_taken_before_is_seen)
{
	struct target *t = aw_target_with(w, 1);
	uint32_t handle;

	take_one_packet(w, t, 20000);
	handle = aw_attach(w, t->pid);
	gp_gpu_prepare(w->gpu, handle, false);
	TEST_WAIT(is_active(w, handle));
	assert_false(target_ask(t, "done 0"));
}

/* Elsewhere for a moment. */
AMD_TEST_ON(without_occupancy_it_is_believed_to_run_for_a_while, navi31)
{
	struct target *t = aw_target_with(w, 1);
	uint32_t handle = watch(w, t);
	unsigned seen = 0;

	for (int i = 0; i < 20; i++) { /* a machine that is busy may look too late at times */
		TEST_WAIT(is_idle(w, handle));
		take_one_packet(w, t, 10);
		emulator_sleep_ms(3);
		seen += is_active(w, handle);
	}
	assert_in_range(seen, 10, 20);
	take_one_packet(w, t, 50000); /* 5 s: longer than the watch assumes */
	TEST_WAIT(is_idle(w, handle));
	assert_false(target_ask(t, "done 0"));
}

static int is_reader(void *arg, pid_t pid)
{
	char name[32];

	if (gp_process_parent(pid) != getpid() ||
	    strcmp(gp_process_name(pid, name, sizeof name), "gpreempt-helper") != 0)
		return 0;
	*(pid_t *)arg = pid;
	return 1;
}

/* The reader is killed because memory is short, for example, and no other can be started. */
AMD_TEST(without_a_reader_activity_is_unknown)
{
	struct target *t = aw_target_with(w, 1);
	uint32_t handle = watch(w, t);
	struct rlimit files, none;
	pid_t reader = 0;

	TEST_WAIT(is_idle(w, handle));
	gp_process_each(is_reader, &reader);
	assert_true(reader > 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
	none = (struct rlimit){.rlim_cur = 3, .rlim_max = files.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(kill(reader, SIGKILL), 0);
	TEST_WAIT(!(aw_look(w, handle).known & GP_KNOWN_ACTIVE));
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
	TEST_WAIT(is_idle(w, handle));
}

/* The new queue has the number or the count of the old one, not its memory. */
AMD_TEST_ON(a_queue_in_the_place_of_another_is_found, vega20, mi250)
{
	struct target *t = aw_target_with(w, 1);
	uint32_t handle = watch(w, t);

	for (unsigned i = 0; i < 4; i++) {
		unsigned id = i % 2, other = !id;

		TEST_WAIT(is_idle(w, handle));
		assert_int_equal(target_ask(t, "queue aql"), other);
		target_do(t, "destroy %u", id);
		target_do(t, "submit %u 3 2500", other);
		TEST_WAIT(is_active(w, handle));
		TEST_WAIT(target_ask(t, "done %u", other) > 0);
	}
	assert_false(aw_process(w, t->pid, "debugged"));
}

/* The memory that was open is that of the program before. */
AMD_TEST(a_program_that_began_another_is_found)
{
	struct target *t = aw_target_with(w, 1);
	uint32_t handle = watch(w, t);

	target_tell(t, "exec");
	assert_int_equal(target_answer(t), t->pid);
	target_do(t, "open");
	target_do(t, "queue aql");
	target_do(t, "submit 0 1 20000");
	TEST_WAIT(is_active(w, handle));
}

/* Nothing can be found out about them, again and again. */
AMD_TEST(processes_that_nobody_named_keep_nobody_waiting)
{
	struct kfd_load *other[3], *lc;
	uint32_t handle;

	for (unsigned i = 0; i < 3; i++)
		other[i] = aw_load(w, "--idle");
	lc = aw_load(w, "--idle");
	setenv("GPREEMPT_KFD_DEBUGFS", "/nonexistent", 1);
	aw_open(w);
	for (unsigned i = 0; i < 3; i++)
		aw_attach(w, other[i]->pid);
	handle = aw_attach(w, lc->pid);
	gp_gpu_prepare(w->gpu, handle, false);
	TEST_WAIT(is_idle(w, handle));
	for (unsigned i = 0; i < 3; i++)
		assert_false(aw_process(w, other[i]->pid, "debugged"));
}

/* Nothing that is known of the process says anything about it. */
AMD_TEST(a_queue_that_is_a_task_is_idle_beside_a_busy_one)
{
	struct target *t = aw_target_with(w, 2);
	struct gp_seen seen;
	uint32_t handle = 0;

	target_do(t, "submit 0 10 50000");
	aw_open(w);
	assert_int_equal(gp_gpu_split(w->gpu, t->pid, 1, &seen, NULL), 0);
	TEST_WAIT(!gp_gpu_attach(w->gpu, seen.key, &handle));
	gp_gpu_prepare(w->gpu, handle, false);
	TEST_WAIT(is_idle(w, handle));
	target_do(t, "submit 1 10 50000");
	TEST_WAIT(is_active(w, handle));
}

/* The read pointer of such a queue begins again at the end of its ring, of 1,024 packets; the write
 * pointer does not. */
AMD_TEST_ON(a_pm4_queue_that_went_round_is_idle, vega20)
{
	struct target *t = aw_target_with(w, 0);
	uint32_t handle;

	target_do(t, "queue pm4");
	handle = aw_attach(w, t->pid);
	gp_gpu_prepare(w->gpu, handle, false);
	for (int i = 0; i < 3; i++) {
		target_do(t, "submit 0 600 0");
		TEST_WAIT(target_ask(t, "done 0") > 0);
		TEST_WAIT(is_idle(w, handle));
	}
	target_do(t, "submit 0 2 10000");
	TEST_WAIT(is_active(w, handle));
}
