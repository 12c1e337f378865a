/* SPDX-License-Identifier: Apache-2.0 */
/* A program that holds its own queues from inside. This one has queues itself. */
#include <sys/mman.h>

#include "lib_world.h"
#include "emu/kfd/load_queue.h"

#define OWN_MAX  8
#define PRIORITY 11

/* Queues of this process; the emulator of a test is the test's own, and so is the file. */
static struct own {
	int fd;
	struct gpu gpu[2];
	unsigned n;
	struct load_queue queue[OWN_MAX];
} own;

static struct kfd_emu emu;
static char undo[32];

static int start_on(const char *model)
{
	int fd;

	alarm(100); /* a call that waits for ever is a failure, too */
	lw_hide_drivers();
	snprintf(undo, sizeof undo, "/tmp/lib-undo-XXXXXX");
	fd = mkstemp(undo);
	if (fd < 0)
		return -1;
	close(fd);
	setenv("GPREEMPT_UNDO", undo, 1);
	if (kfd_emu_start(&emu, "--gpu", model, "--gpu", model, NULL))
		return -1;
	own = (struct own){.fd = load_open()};
	for (unsigned i = 0; i < 2; i++)
		own.gpu[i] = load_gpu(own.fd, i);
	return 0;
}

static int start_emu(void **state)
{
	return start_on(*(const char **)*state);
}

static int stop_emu(void **state)
{
	(void)state;
	for (unsigned i = 0; i < LW_HANDLES; i++)
		lw_close(lw_opened[i]);
	for (unsigned i = 0; i < own.n; i++)
		queue_close(own.fd, &own.queue[i]);
	close(own.fd);
	unlink(undo);
	return kfd_emu_stop(&emu);
}

static const char *on_mi250 = "mi250", *on_mi300x = "mi300x", *on_navi31 = "navi31";

#define SELF_TEST_ADD(f, model) \
	TEST_ADD(#f " (" #model ")", f, start_emu, stop_emu, (void *)&on_##model)
#define SELF_TEST_ON(f, ...) TEST_EACH(f, SELF_TEST_ADD, __VA_ARGS__)
#define SELF_TEST(f)         SELF_TEST_ON(f, mi250)

static unsigned add_queue(unsigned gpu)
{
	queue_open(own.fd, &own.gpu[gpu], &own.queue[own.n], KFD_QUEUE_COMPUTE_AQL, PRIORITY);
	return own.n++;
}

/* As a ROCm program: the runtime first, then queues on both GPUs. */
static void add_queues(unsigned n)
{
	load_runtime(own.fd, true);
	for (unsigned i = 0; i < n; i++)
		add_queue(i & 1);
}

static struct gpreempt *open_with_queues(unsigned n)
{
	add_queues(n);
	return lw_open(getpid());
}

static uint64_t of_queue(unsigned i, const char *field)
{
	return kfd_emu_queue_number(&emu, getpid(), own.queue[i].id, field);
}

static void submit_all(void)
{
	for (unsigned i = 0; i < own.n; i++)
		for (unsigned k = 0; k < 4; k++)
			queue_submit(own.fd, &own.queue[i], 5);
}

/* While another process's work goes on. */
static void must_stand(void)
{
	struct kfd_load other;
	uint64_t before = kfd_emu_process_sum(&emu, getpid(), "run_ns"), done;

	assert_int_equal(kfd_load_start(&other, NULL), 0);
	done = kfd_emu_process_sum(&emu, other.pid, "executed");
	TEST_WAIT(kfd_emu_process_sum(&emu, other.pid, "executed") > done + 3);
	assert_int_equal(kfd_emu_process_sum(&emu, getpid(), "run_ns"), before);
	assert_int_equal(kfd_load_stop(&other), 0);
}

static void must_be_done(void)
{
	for (unsigned i = 0; i < own.n; i++) {
		TEST_WAIT(queue_is_done(&own.queue[i]));
		assert_true(queue_is_right(&own.queue[i]));
	}
}

SELF_TEST_ON(own_queues_stand_still_and_lose_nothing, mi250, mi300x, navi31)
{
	struct gpreempt *g = open_with_queues(3);

	for (int i = 0; i < 3; i++) {
		submit_all();
		LW_CALL(g, gpreempt_hold_self(g, 0), 3);
		submit_all();
		must_stand();
		LW_CALL(g, gpreempt_hold_self(g, 0), 3);
		LW_CALL(g, gpreempt_release_self(g), 3);
		LW_CALL(g, gpreempt_release_self(g), 0);
		must_be_done();
	}
	for (unsigned i = 0; i < own.n; i++) { /* as they were */
		assert_int_equal(of_queue(i, "percentage"), 100);
		assert_int_equal(of_queue(i, "priority"), PRIORITY);
	}
}

SELF_TEST(what_only_copies_goes_on)
{
	struct load_queue *copies = &own.queue[own.n];
	struct gpreempt *g = lw_open(getpid());

	queue_open(own.fd, &own.gpu[0], copies, KFD_QUEUE_SDMA, PRIORITY);
	own.n++;
	LW_CALL(g, gpreempt_hold_self(g, 0), -ENODEV);
	assert_non_null(strstr(gpreempt_why(g), "no queues that compute"));
	add_queue(0);
	LW_CALL(g, gpreempt_hold_self(g, 0), 1);
	queue_submit(own.fd, copies, 1);
	TEST_WAIT(queue_is_done(copies));
}

SELF_TEST(no_session_lasts_and_the_same_queues_need_no_second_one)
{
	uint64_t sessions = kfd_emu_count(&emu, "enable");
	struct gpreempt *g = open_with_queues(2);

	for (int i = 0; i < 3; i++) {
		LW_CALL(g, gpreempt_hold_self(g, 0), 2);
		assert_int_equal(kfd_emu_process_number(&emu, getpid(), "debugged"), 0);
		LW_CALL(g, gpreempt_release_self(g), 2);
	}
	assert_int_equal(kfd_emu_count(&emu, "enable"), sessions + 1);
	add_queue(0);
	LW_CALL(g, gpreempt_hold_self(g, 0), 3);
	assert_int_equal(kfd_emu_count(&emu, "enable"), sessions + 2);
	assert_int_equal(kfd_emu_count(&emu, "suspend_queues"), 0);
}

/* tinygrad and others, which no debugger can suspend. */
SELF_TEST(a_program_without_the_runtime_can)
{
	struct gpreempt *g = lw_open(getpid());

	add_queue(0);
	LW_CALL(g, gpreempt_hold_self(g, 0), 1);
	submit_all();
	must_stand();
	lw_close(g); /* which releases */
	must_be_done();
}

SELF_TEST(a_queue_made_later_runs_until_the_next_call)
{
	unsigned late;
	struct gpreempt *g = open_with_queues(1);

	LW_CALL(g, gpreempt_hold_self(g, 0), 1);
	late = add_queue(0);
	queue_submit(own.fd, &own.queue[late], 1);
	TEST_WAIT(queue_is_done(&own.queue[late]));
	LW_CALL(g, gpreempt_hold_self(g, 0), 2);
	submit_all();
	must_stand();
	LW_CALL(g, gpreempt_release_self(g), 2);
	must_be_done();
}

SELF_TEST(a_held_queue_is_destroyed_at_once_and_its_heir_is_left_alone)
{
	uint64_t updates;
	uint32_t id;
	struct gpreempt *g = open_with_queues(2);

	LW_CALL(g, gpreempt_hold_self(g, 0), 2);
	id = own.queue[0].id;
	queue_close(own.fd, &own.queue[0]);
	queue_open(own.fd, &own.gpu[0], &own.queue[0], KFD_QUEUE_COMPUTE_AQL, 3);
	assert_int_equal(own.queue[0].id, id);
	queue_submit(own.fd, &own.queue[0], 1);
	TEST_WAIT(queue_is_done(&own.queue[0]));
	updates = kfd_emu_count(&emu, "update_queue");
	LW_CALL(g, gpreempt_release_self(g), 1);
	assert_int_equal(kfd_emu_count(&emu, "update_queue"), updates + 1);
	assert_int_equal(of_queue(0, "priority"), 3);
	assert_int_equal(of_queue(1, "percentage"), 100);
}

SELF_TEST(a_priority_that_would_be_lost_is_not)
{
	struct gpreempt *g;

	setenv("GPREEMPT_KFD_DEBUGFS", "/nonexistent", 1);
	add_queues(2);
	g = lw_open(getpid());
	LW_CALL(g, gpreempt_hold_self(g, 0), -ENODATA);
	assert_non_null(strstr(gpreempt_why(g), "priority"));
	assert_int_equal(kfd_emu_count(&emu, "update_queue"), 0);
	/* The program knows better, or does not care. */
	LW_CALL(g, gpreempt_hold_self(g, GPREEMPT_NORMAL_PRIORITY), 2);
	LW_CALL(g, gpreempt_release_self(g), 2);
	assert_int_equal(of_queue(0, "priority"), 7);
	assert_int_equal(of_queue(1, "priority"), 7);
}

SELF_TEST_ON(which_xcc_a_pm4_queue_uses_is_not_known, mi300x)
{
	struct gpreempt *g = lw_open(getpid());

	queue_open(own.fd, &own.gpu[0], &own.queue[own.n++], KFD_QUEUE_COMPUTE, PRIORITY);
	LW_CALL(g, gpreempt_hold_self(g, 0), -ENOTSUP);
	assert_non_null(strstr(gpreempt_why(g), "XCC"));
	assert_int_equal(of_queue(0, "percentage"), 100);
}

/* lib-holder is our debugger: either hold is enough, and neither ends the other. */
SELF_TEST_ON(beside_a_debugger, mi250, navi31)
{
	uint64_t sessions;
	int in;
	struct gpreempt *g = open_with_queues(2);
	pid_t holder = lw_start_holder(getpid(), "wait", &in);

	assert_int_equal(kfd_emu_process_sum(&emu, getpid(), "suspended"), 2);
	sessions = kfd_emu_count(&emu, "enable");
	LW_CALL(g, gpreempt_hold_self(g, 0), 2);
	assert_int_equal(kfd_emu_count(&emu, "enable"), sessions);
	assert_int_equal(kfd_emu_process_number(&emu, getpid(), "debugger"), holder);
	submit_all();
	LW_CALL(g, gpreempt_release_self(g), 2);
	must_stand(); /* the debugger holds them */
	LW_CALL(g, gpreempt_hold_self(g, 0), 2);
	close(in);
	assert_int_equal(waitpid(holder, NULL, 0), holder);
	TEST_WAIT(kfd_emu_process_sum(&emu, getpid(), "suspended") == 0);
	must_stand(); /* we do */
	LW_CALL(g, gpreempt_release_self(g), 2);
	must_be_done();
}

SELF_TEST(an_evicted_queue_comes_back_held)
{
	struct gpreempt *g = open_with_queues(2);

	assert_int_equal(kfd_emu_control(&emu, "evict %d", getpid()), 0);
	LW_CALL(g, gpreempt_hold_self(g, 0), 2);
	submit_all();
	assert_int_equal(kfd_emu_control(&emu, "restore %d", getpid()), 0);
	must_stand();
	LW_CALL(g, gpreempt_release_self(g), 2);
	must_be_done();
}

SELF_TEST(it_is_one_handle_s_and_for_oneself_only)
{
	struct gpreempt *g, *second, *other;
	struct kfd_load load;
	int status = -1;
	pid_t pid;

	add_queues(1);
	g = lw_open(getpid());
	second = lw_open(getpid());
	assert_int_equal(kfd_load_start(&load, NULL), 0);
	other = lw_open(load.pid);
	LW_CALL(other, gpreempt_hold_self(other, 0), -EINVAL);
	LW_CALL(g, gpreempt_hold_self(g, 0x80), -EINVAL);
	LW_CALL(g, gpreempt_hold_self(g, 0), 1);
	LW_CALL(second, gpreempt_hold_self(second, 0), -EBUSY);
	LW_CALL(second, gpreempt_release_self(second), -EBUSY);
	pid = fork(); /* which has no queues, and only a copy of the handle */
	if (!pid)
		_exit(gpreempt_hold_self(g, 0) != -EBADF || gpreempt_release_self(g) != -EBADF);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	submit_all();
	must_stand();
	lw_close(g);
	must_be_done();
	LW_CALL(second, gpreempt_hold_self(second, 0), 1);
	/* A debugger it cannot be: what destroys a queue would wait for it. */
	LW_CALL(second, gpreempt_suspend_queues(second, NULL, 0), -ENODEV);
	assert_non_null(strstr(gpreempt_why(second), "gpreempt_hold_self"));
	assert_int_equal(gpreempt_hold_self(NULL, 0), -EINVAL);
	assert_int_equal(kfd_load_stop(&load), 0);
}

SELF_TEST(half_a_hold_is_none)
{
	struct gpreempt *g = open_with_queues(4);

	LW_CALL(g, gpreempt_hold_self(g, 0), 4); /* so that they are known */
	LW_CALL(g, gpreempt_release_self(g), 4);
	/* The third call: queues of both GPUs are off by then. */
	assert_int_equal(kfd_emu_control(&emu, "errno update_queue %d 1 2", EIO), 0);
	LW_CALL(g, gpreempt_hold_self(g, 0), -EIO);
	assert_non_null(strstr(gpreempt_why(g), "cannot be held"));
	for (unsigned i = 0; i < own.n; i++)
		assert_int_equal(of_queue(i, "percentage"), 100);
	submit_all();
	must_be_done();
	LW_CALL(g, gpreempt_hold_self(g, 0), 4);
}

/* The driver confirms all, and does nothing; or all but one queue. */
SELF_TEST_ON(a_hold_without_an_effect_is_none, mi250, navi31)
{
	struct gpreempt *g = open_with_queues(4);

	LW_CALL(g, gpreempt_hold_self(g, 0), 4); /* so that they are known */
	LW_CALL(g, gpreempt_release_self(g), 4);
	for (int i = 0; i < 2; i++) {
		for (unsigned k = 0; k < 40; k++)
			submit_all();
		assert_int_equal(kfd_emu_control(&emu, "ignore update_queue 0 %d", i ? 1 : 100), 0);
		LW_CALL(g, gpreempt_hold_self(g, 0), -EREMOTEIO);
		assert_non_null(strstr(gpreempt_why(g), "goes on working"));
		assert_int_equal(kfd_emu_control(&emu, "clear_faults"), 0);
		for (unsigned k = 0; k < own.n; k++)
			assert_int_equal(of_queue(k, "percentage"), 100);
		must_be_done();
	}
	submit_all();
	LW_CALL(g, gpreempt_hold_self(g, 0), 4);
	must_stand();
}

static void *end_runtime(void *arg)
{
	(void)arg;
	load_runtime(own.fd, false);
	return NULL;
}

/* The end of the runtime waits for a debugger's answer, if there is one in that moment: us. */
SELF_TEST(the_runtime_is_not_left_waiting)
{
	struct gpreempt *g = lw_open(getpid());
	pthread_t thread;

	for (int i = 0; i < 30; i++) {
		int r;

		load_runtime(own.fd, true);
		add_queue(0);
		assert_int_equal(pthread_create(&thread, NULL, end_runtime, NULL), 0);
		usleep((unsigned)i * 20);
		r = gpreempt_hold_self(g, 0);
		pthread_join(thread, NULL);
		LW_CALL(g, r, 1);
		queue_close(own.fd, &own.queue[--own.n]);
		LW_CALL(g, gpreempt_release_self(g), 0);
	}
}

static void *hold_often(void *arg)
{
	struct gpreempt *g = arg;

	for (int i = 0; i < 50; i++) {
		int r = gpreempt_hold_self(g, 0);

		if (r != 2 && r != -EBUSY)
			return g;
		r = gpreempt_release_self(g);
		if (r != 2 && r != 0 && r != -EBUSY)
			return g;
	}
	return NULL;
}

SELF_TEST(several_threads_take_turns)
{
	pthread_t thread[3];

	add_queues(2);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, hold_often, lw_open(getpid())),
				 0);
	for (unsigned k = 0; k < 20; k++)
		submit_all();
	for (unsigned i = 0; i < 3; i++) {
		void *wrong;

		pthread_join(thread[i], &wrong);
		assert_null(wrong);
	}
	must_be_done();
}

LIB_TEST_ON(nvidia_gpus_cannot, nvidia)
{
	struct gpreempt *g = lw_open(getpid());

	LW_CALL(g, gpreempt_hold_self(g, 0), -ENOTSUP);
	LW_CALL(g, gpreempt_release_self(g), 0);
}
