/* SPDX-License-Identifier: Apache-2.0 */
/* A process is taken from a holder that lives and does not let go; and only from that one. */
#include <sys/ptrace.h>

#include "amd_world.h"
#include "base/log.h"
#include "base/process.h"
#include "gpu/amd/kfd.h"

/* A process that holds a load, and says when it does, and when it no longer does. */
struct owner {
	struct test_child child;
	struct gp_undo undo;
};

static void tell(const void *what, size_t size)
{
	if (write(STDOUT_FILENO, what, size) != (ssize_t)size)
		_exit(1);
}

static void hold_until_taken(pid_t pid)
{
	struct gp_observation o = {0};
	struct gp_action a = {0};
	struct gp_undo undo;
	struct gp_seen seen;
	struct gp_gpu *gpu;
	int r;

	if (gp_amd_ops.open(0, 0, &gpu) || gp_gpu_find(gpu, pid, &seen, NULL) ||
	    gp_gpu_attach(gpu, seen.key, &a.handle))
		_exit(1);
	while (gp_gpu_undo_record(gpu, a.handle, &undo))
		usleep(1000);
	gp_gpu_hold(gpu, aw_now(), &a, 1);
	o.handle = a.handle;
	do
		gp_gpu_observe(gpu, aw_now(), &o, 1);
	while (!o.held);
	tell(&undo, sizeof undo);
	do {
		usleep(1000);
		gp_gpu_observe(gpu, aw_now(), &o, 1);
	} while (o.held);
	r = gp_gpu_undo_record(gpu, a.handle, &undo);
	if (r && r != -EAGAIN)
		_exit(1); /* it lives, and may be held again */
	tell("", 1);
	gp_gpu_hold(gpu, aw_now(), &a, 1);
	do
		gp_gpu_observe(gpu, aw_now(), &o, 1);
	while (!o.held);
	tell("", 1);
	for (;;)
		pause();
}

static void start_holder(struct owner *h, pid_t target)
{
	if (test_fork(&h->child))
		hold_until_taken(target);
	assert_int_equal(read(h->child.from, &h->undo, sizeof h->undo), sizeof h->undo);
}

static struct gp_undo taken_from(const struct gp_undo *undo, pid_t owner)
{
	struct gp_undo u = *undo;

	u.owner = owner;
	u.owner_start_time = gp_process_start_time(owner);
	return u;
}

/* The undo, in a process that ends afterwards, as the keeper does it; its result. */
static int undo_in_child(const struct gp_undo *undo)
{
	pid_t pid = fork();

	if (!pid)
		_exit(-gp_backend_undo(&gp_amd_ops, undo, NULL));
	return -test_exit_status(pid);
}

AMD_TEST_EVERYWHERE(a_process_is_taken_from_a_holder_that_is_stopped)
{
	struct kfd_load *load = aw_load(w);
	struct owner h;
	struct gp_undo undo;
	char byte;

	start_holder(&h, load->pid);
	assert_true(aw_suspended(w, load->pid) > 0);
	kill(h.child.pid, SIGSTOP);
	TEST_WAIT(test_process_state(h.child.pid) == 'T');
	undo = taken_from(&h.undo, h.child.pid);
	assert_int_equal(undo_in_child(&undo), 0);
	assert_int_equal(aw_suspended(w, load->pid), 0);
	aw_wait_progress(w, load->pid);
	assert_int_equal(undo_in_child(&undo), 0); /* there is nothing left to take */
	kill(h.child.pid, SIGCONT);
	assert_int_equal(read(h.child.from, &byte, 1), 1); /* it notices ... */
	assert_int_equal(read(h.child.from, &byte, 1), 1); /* and can hold it again */
	assert_true(aw_suspended(w, load->pid) > 0);
	test_child_end(&h.child);
	TEST_WAIT(aw_suspended(w, load->pid) == 0);
	assert_int_equal(undo_in_child(&undo), 0); /* the dead hold nothing */
	aw_wait_progress(w, load->pid);
}

/* DISABLE does nothing, and the driver finds no session. The holder stays the debugger, so that its
 * end releases the process. */
AMD_TEST_ON(a_driver_that_denies_the_session_of_a_stopped_holder_is_not_believed, mi250, mi250_old)
{
	struct kfd_load *load = aw_load(w, "--queues", "2");
	struct owner h;
	struct gp_undo undo;

	start_holder(&h, load->pid);
	kill(h.child.pid, SIGSTOP);
	TEST_WAIT(test_process_state(h.child.pid) == 'T');
	undo = taken_from(&h.undo, h.child.pid);
	aw_disturb(w, "ignore disable 0 %d", AW_ALWAYS);
	aw_disturb(w, "errno get_queue_snapshot %d %d", EINVAL, AW_ALWAYS);
	assert_int_equal(undo_in_child(&undo), -ETIME);
	assert_true(aw_suspended(w, load->pid) > 0);
	test_child_end(&h.child);
	aw_wait_released(w, load->pid);
	assert_int_equal(undo_in_child(&undo), 0);
}

/* An undo in the caller's own process, as in a command, leaves the target untraced. */
AMD_TEST_ON(the_process_is_not_traced_afterwards, mi300x, mi300x_old)
{
	struct kfd_load *load = aw_load(w);
	struct owner h;
	struct gp_undo undo;

	start_holder(&h, load->pid);
	kill(h.child.pid, SIGSTOP);
	TEST_WAIT(test_process_state(h.child.pid) == 'T');
	undo = taken_from(&h.undo, h.child.pid);
	assert_int_equal(gp_backend_undo(&gp_amd_ops, &undo, NULL), 0);
	assert_int_equal(aw_suspended(w, load->pid), 0);
	assert_true(aw_tracer(load->pid) != getpid());
	test_child_end(&h.child);
	TEST_WAIT(aw_tracer(load->pid) == 0);
	aw_wait_progress(w, load->pid);
}

static char logged[4096];

static void keep_log(void *arg, enum gp_log_level level, const char *line)
{
	size_t length = strlen(logged);

	(void)arg;
	(void)level;
	snprintf(logged + length, sizeof logged - length, "%s\n", line);
}

/* Undoes it as a process that has claimed the record of an owner that has ended. */
static void undo_must_log(const struct gp_undo *undo, const char *words)
{
	logged[0] = '\0';
	assert_int_equal(gp_backend_undo(&gp_amd_ops, undo, NULL), 0);
	if (!strstr(logged, words))
		fail_msg("logged: %s", logged);
}

/* The driver resumes the queues when the owner ends; whether it has done so is looked for. */
AMD_TEST_ON(the_end_of_an_owner_is_confirmed_or_said_not_to_be, mi250, mi250_old)
{
	struct kfd_load *load = aw_load(w);
	struct gp_error err = {0};
	struct owner h;

	gp_log_set_sink(keep_log, NULL);
	start_holder(&h, load->pid);
	test_child_end(&h.child);
	TEST_WAIT(aw_suspended(w, load->pid) == 0);
	undo_must_log(&h.undo, "session=none");
	aw_disturb(w, "errno get_queue_snapshot %d", EIO);
	logged[0] = '\0';
	assert_int_equal(gp_backend_undo(&gp_amd_ops, &h.undo, &err), -EIO);
	assert_non_null(strstr(err.text, "not known whether"));
	assert_non_null(strstr(logged, "session=unknown errno=5"));
	undo_must_log(&h.undo, "session=none");
	TEST_WAIT(aw_tracer(load->pid) == 0);
	aw_wait_progress(w, load->pid);
	gp_log_set_sink(NULL, NULL);
}

/* The failed ENABLE of a process that then ends: the driver has recorded it as the debugger. */
static void take_session_and_end(pid_t pid)
{
	pid_t thief = fork();

	if (!thief) {
		struct kfd_runtime_info ignored;
		int kfd = gp_kfd_open(NULL);

		if (ptrace(PTRACE_SEIZE, pid, NULL, NULL))
			_exit(1);
		_exit(gp_kfd_enable(kfd, pid, 0, kfd, &ignored) != -EALREADY);
	}
	assert_int_equal(test_exit_status(thief), 0);
}

AMD_TEST_ON(a_holder_whose_session_was_taken_releases_all_the_same, mi250, navi31)
{
	struct kfd_load *load = aw_load(w, "--queues", "2");
	uint32_t handle = aw_attach(w, load->pid);

	for (int again = 0; again < 2; again++) {
		aw_must_hold(w, handle);
		take_session_and_end(load->pid);
		assert_int_equal(aw_suspended(w, load->pid), 2);
		aw_release(w, handle); /* may have to be asked for twice */
		assert_int_equal(aw_suspended(w, load->pid), 0);
		aw_must_release(w, handle);
		aw_wait_progress(w, load->pid);
	}
	aw_must_hold(w, handle);
	take_session_and_end(load->pid);
	aw_close(w);
	assert_int_equal(aw_suspended(w, load->pid), 0);
	TEST_WAIT(!aw_tracer(load->pid));
	assert_int_equal(kfd_load_stop(load), 0);
}

/* A debugger keeps this process from ending it: nothing says that it was released. */
AMD_TEST_ON(a_taken_session_that_cannot_be_ended_counts_as_held, mi250)
{
	struct kfd_load *load = aw_load(w, "--queues", "2");
	uint32_t handle = aw_attach(w, load->pid);
	struct gp_observation o;
	pid_t debugger;

	aw_must_hold(w, handle);
	take_session_and_end(load->pid);
	debugger = fork();
	if (!debugger) {
		if (ptrace(PTRACE_SEIZE, load->pid, NULL, NULL))
			_exit(1);
		for (;;)
			pause();
	}
	TEST_WAIT(aw_tracer(load->pid) == debugger);
	for (int i = 0; i < 3; i++) {
		o = aw_release(w, handle);
		assert_int_not_equal(o.failed, 0);
		assert_true(o.unsure);
		aw_must_say(w, handle, "may stay suspended");
	}
	assert_int_equal(aw_suspended(w, load->pid), 2);
	kill(debugger, SIGKILL);
	waitpid(debugger, NULL, 0);
	TEST_WAIT(!aw_suspended(w, load->pid)); /* it is tried again */
	aw_wait_progress(w, load->pid);
}

/* The driver does not resume the queues when the holder ends; so the undo does. */
AMD_TEST_ON(a_session_without_an_owner_is_ended, mi250, mi300x)
{
	struct kfd_load *load = aw_load(w, "--queues", "2");
	bool released = false;
	struct owner h;

	gp_log_set_sink(keep_log, NULL);
	for (int recorded = 0; recorded < 2; recorded++) {
		start_holder(&h, load->pid);
		take_session_and_end(load->pid);
		test_child_end(&h.child);
		assert_int_equal(aw_suspended(w, load->pid), 2);
		if (recorded)
			undo_must_log(&h.undo, "session=ended");
		else
			assert_int_equal(
				gp_backend_release_process(&gp_amd_ops, load->pid, &released, NULL),
				2);
		assert_int_equal(aw_suspended(w, load->pid), 0);
		TEST_WAIT(!aw_tracer(load->pid));
		aw_wait_progress(w, load->pid);
	}
	assert_true(released);
	released = false;
	assert_int_equal(gp_backend_release_process(&gp_amd_ops, load->pid, &released, NULL), 2);
	assert_false(released);
	assert_int_equal(kfd_load_stop(load), 0);
	gp_log_set_sink(NULL, NULL);
}

AMD_TEST_ON(a_session_that_does_not_end_fails_the_undo, mi250)
{
	struct kfd_load *load = aw_load(w);
	struct gp_error err = {0};
	struct owner h;

	start_holder(&h, load->pid);
	take_session_and_end(load->pid);
	test_child_end(&h.child);
	aw_disturb(w, "errno disable %d %d", EIO, AW_ALWAYS);
	assert_int_equal(gp_backend_undo(&gp_amd_ops, &h.undo, &err), -EIO);
	assert_non_null(strstr(err.text, "may stay suspended"));
	aw_calm(w);
	assert_int_equal(gp_backend_undo(&gp_amd_ops, &h.undo, NULL), 0);
	aw_wait_released(w, load->pid);
}

static pid_t start_debugger(pid_t pid)
{
	pid_t debugger = fork();

	if (!debugger) {
		if (ptrace(PTRACE_SEIZE, pid, NULL, NULL))
			_exit(1);
		for (;;)
			pause();
	}
	TEST_WAIT(aw_tracer(pid) == debugger);
	return debugger;
}

static void end_debugger(pid_t debugger)
{
	kill(debugger, SIGKILL);
	waitpid(debugger, NULL, 0);
}

/* Its queues stay suspended: neither the undo nor a release without a record succeeds. */
AMD_TEST_ON(a_session_that_cannot_be_looked_for_fails_the_undo, mi250, navi31)
{
	static const char *const fault[] = {"errno get_queue_snapshot 5",
					    "errno get_queue_snapshot 3",
					    "out_size get_queue_snapshot 32", "version 1.12", NULL};
	struct kfd_load *load = aw_load(w, "--queues", "2");
	struct owner h;

	start_holder(&h, load->pid);
	take_session_and_end(load->pid);
	test_child_end(&h.child);
	for (unsigned i = 0; i < sizeof fault / sizeof fault[0]; i++) {
		pid_t debugger = fault[i] ? 0 : start_debugger(load->pid);
		struct gp_error err = {0};

		if (fault[i])
			aw_disturb(w, "%s %d", fault[i], AW_ALWAYS);
		assert_true(gp_backend_undo(&gp_amd_ops, &h.undo, &err) < 0);
		assert_non_null(strstr(err.text, "not known whether"));
		assert_true(gp_backend_release_process(&gp_amd_ops, load->pid, NULL, NULL) < 0);
		assert_int_equal(aw_suspended(w, load->pid), 2);
		aw_calm(w);
		aw_disturb(w, "version 1.17");
		if (debugger)
			end_debugger(debugger);
	}
	assert_int_equal(gp_backend_undo(&gp_amd_ops, &h.undo, NULL), 0);
	aw_wait_released(w, load->pid);
}

/* A debugger has it, and the record belongs to a different process. */
AMD_TEST(what_another_traces_is_left_alone)
{
	struct kfd_load *load = aw_load(w);
	struct gp_undo undo = {.pid = load->pid, .start_time = gp_process_start_time(load->pid)};
	struct gp_error err = {0};
	pid_t debugger;
	pid_t other = fork();

	if (!other)
		for (;;)
			pause();
	debugger = fork();
	if (!debugger) {
		if (ptrace(PTRACE_SEIZE, load->pid, NULL, NULL))
			_exit(1);
		for (;;)
			pause();
	}
	TEST_WAIT(aw_tracer(load->pid) == debugger);
	undo = taken_from(&undo, other);
	assert_int_equal(gp_backend_undo(&gp_amd_ops, &undo, &err), -EBUSY);
	assert_non_null(strstr(err.text, "traced"));
	kill(other, SIGKILL);
	kill(debugger, SIGKILL);
	waitpid(other, NULL, 0);
	waitpid(debugger, NULL, 0);
}

AMD_TEST(a_process_with_the_same_pid_is_another)
{
	struct kfd_load *load = aw_load(w);
	struct owner h;
	struct gp_undo undo;

	start_holder(&h, load->pid);
	undo = taken_from(&h.undo, h.child.pid);
	undo.start_time++;
	assert_int_equal(gp_backend_undo(&gp_amd_ops, &undo, NULL), -ESRCH);
	assert_true(aw_suspended(w, load->pid) > 0);
	test_child_end(&h.child);
}
