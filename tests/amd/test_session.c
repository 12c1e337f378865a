/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One session with one process: what kfdtest expects of the driver (AttachToSpawnedProcess,
 * AttachToRunningProcess, SuspendQueues), through our code; which process is traced meanwhile;
 * and processes that cannot be attached to.
 */
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>

#include "gpu/amd/session.h"
#include "amd_world.h"

/* A debugger, and what it is attached to. */
struct debugger {
	int kfd;
	enum gp_amd_rule rule;
	struct gp_amd_session session;
	struct gp_error err;
};

static struct debugger be_debugger(void)
{
	struct debugger d = {.kfd = gp_kfd_open(NULL)};

	assert_true(d.kfd >= 0);
	return d;
}

static int attach(struct debugger *d, pid_t pid)
{
	d->err = (struct gp_error){0};
	return gp_amd_session_open(&d->session, d->kfd, pid, &d->rule, &d->err);
}

static void must_attach(struct debugger *d, pid_t pid)
{
	if (attach(d, pid))
		fail_msg("attach: %s", d->err.text);
}

static struct debugger attached_to(pid_t pid)
{
	struct debugger d = be_debugger();

	must_attach(&d, pid);
	return d;
}

static bool has_events(const struct gp_amd_session *s)
{
	struct pollfd p = {.fd = s->event_fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

/* What the owner of a session does all the time. True: something changed. */
static bool pump(struct debugger *d)
{
	if (d->session.link != GP_AMD_UNLINKED)
		gp_amd_session_tick(&d->session);
	return has_events(&d->session) && gp_amd_session_events(&d->session) > 0;
}

#define PUMP_UNTIL(d, condition) TEST_WAIT((pump(d), (condition)))

static long pumped_answer(struct debugger *d, struct target *t)
{
	PUMP_UNTIL(d, target_has_answered(t));
	return target_answer(t);
}

static void let_go(struct debugger *d)
{
	gp_amd_session_close(&d->session);
	close(d->kfd);
}

static bool is_any(const void *arg, const struct kfd_queue_snapshot_entry *queue)
{
	(void)arg;
	(void)queue;
	return true;
}

static const struct gp_amd_choice all = {.is_meant = is_any};

static int suspend(struct debugger *d)
{
	return gp_amd_session_suspend(&d->session, &all, KFD_GRACE_DEFAULT);
}

static int resume(struct debugger *d)
{
	return gp_amd_session_resume(&d->session, &all);
}

static uint64_t queue_is(struct amd_world *w, const struct target *t, uint32_t id,
			 const char *field)
{
	return kfd_emu_queue_number(&w->emu, t->pid, id, field);
}

AMD_TEST_EVERYWHERE(a_process_is_attached_to_before_its_runtime_is_there)
{
	struct target *t = aw_target(w);
	struct debugger d = attached_to(t->pid);

	assert_int_equal(d.session.runtime_state, KFD_RUNTIME_DISABLED);
	assert_int_equal(d.session.nqueues, 0);
	target_tell(t, "open");
	assert_int_equal(pumped_answer(&d, t), 0);

	target_tell(t, "runtime 1");
	TEST_WAIT(has_events(&d.session));
	assert_false(target_has_answered(t)); /* it waits for us */
	assert_int_equal(gp_amd_session_events(&d.session), 1);
	assert_int_equal(pumped_answer(&d, t), 0);
	assert_int_equal(d.session.runtime_state, KFD_RUNTIME_ENABLED);
	assert_int_equal(gp_amd_session_check(&d.session, 0, NULL), 0);

	target_tell(t, "runtime 0");
	TEST_WAIT(has_events(&d.session));
	assert_false(target_has_answered(t));
	assert_int_equal(gp_amd_session_events(&d.session), 1);
	assert_int_equal(pumped_answer(&d, t), 0);
	assert_int_equal(d.session.runtime_state, KFD_RUNTIME_DISABLED);
	assert_int_equal(aw_process(w, t->pid, "waiting_answers"), 0); /* none too many */

	let_go(&d);
	assert_int_equal(aw_process(w, t->pid, "debugged"), 0);
	target_tell(t, "exit 0");
	assert_int_equal(target_wait(t), 0);
}

AMD_TEST_EVERYWHERE(a_running_process_is_attached_to_and_answered_at_its_end)
{
	struct target *t = aw_target_with(w, 1);
	struct debugger d = attached_to(t->pid);

	assert_int_equal(d.session.runtime_state, KFD_RUNTIME_ENABLED);
	assert_int_equal(d.session.nqueues, 1);
	target_tell(t, "destroy 0");
	PUMP_UNTIL(&d, target_has_answered(t) && !d.session.nqueues);
	assert_int_equal(target_answer(t), 0);
	target_tell(t, "runtime 0");
	assert_int_equal(pumped_answer(&d, t), 0);
	let_go(&d);
	assert_int_equal(aw_process(w, t->pid, "debugged"), 0);
	target_tell(t, "exit 0");
	assert_int_equal(target_wait(t), 0);
}

AMD_TEST_EVERYWHERE(queues_are_suspended_and_resumed)
{
	struct target *t = aw_target_with(w, 3);
	struct debugger d = attached_to(t->pid);

	assert_int_equal(aw_process(w, t->pid, "new_count"), 0); /* the snapshot saw to it */
	assert_int_equal(suspend(&d), 3);
	assert_int_equal(aw_process(w, t->pid, "suspended_count"), 3);
	target_tell(t, "submit 1 5 1");
	assert_int_equal(pumped_answer(&d, t), 0);
	emulator_sleep_ms(50);
	assert_int_equal(queue_is(w, t, 1, "executed"), 0);
	assert_int_equal(suspend(&d), 0); /* nothing left to do */
	assert_int_equal(resume(&d), 3);
	PUMP_UNTIL(&d, queue_is(w, t, 1, "executed") == 5);
	assert_int_equal(aw_process(w, t->pid, "suspended_count"), 0);
	assert_int_equal(resume(&d), 0);
	let_go(&d);
	assert_int_equal(target_ask(t, "done 1"), 1);
}

AMD_TEST_EVERYWHERE(a_queue_that_is_made_later_can_be_suspended_too)
{
	struct target *t = aw_target_with(w, 1);
	struct debugger d = attached_to(t->pid);

	assert_int_equal(suspend(&d), 1);
	target_tell(t, "queue aql");
	PUMP_UNTIL(&d, target_has_answered(t) && d.session.nqueues == 2);
	assert_int_equal(target_answer(t), 1);
	assert_int_equal(suspend(&d), 1); /* the other is already */
	assert_int_equal(aw_process(w, t->pid, "suspended_count"), 2);
	assert_int_equal(resume(&d), 2);
	let_go(&d);
}

/* Its event has not been looked at: the call finds out by itself. */
AMD_TEST_ON(a_queue_that_nobody_has_looked_at_is_suspended_with_the_others, mi250, navi31)
{
	struct target *t = aw_target_with(w, 2);
	struct debugger d = attached_to(t->pid);

	PUMP_UNTIL(&d, d.session.link != GP_AMD_UNLINKING);
	target_do(t, "destroy 0");
	target_do(t, "queue aql"); /* is number 0 again, and new */
	assert_int_equal(suspend(&d), 2);
	assert_int_equal(aw_process(w, t->pid, "suspended_count"), 2);
	let_go(&d);
	assert_int_equal(aw_process(w, t->pid, "suspended_count"), 0);
}

/* Its id and its ring may be the same as those of a suspended queue. */
AMD_TEST_ON(a_queue_in_the_place_of_a_suspended_one_is_not_taken_for_it, mi250, navi31)
{
	struct target *t = aw_target_with(w, 1);
	struct debugger d = attached_to(t->pid);

	PUMP_UNTIL(&d, d.session.link != GP_AMD_UNLINKING);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(suspend(&d), 1);
		target_tell(t, "destroy 0");
		TEST_WAIT(queue_is(w, t, 0, "being_destroyed") == 1);
		assert_false(target_has_answered(t)); /* until it is resumed */
		assert_int_equal(resume(&d), 1);
		assert_int_equal(target_answer(t), 0);
		target_do(t, "queue aql");
		PUMP_UNTIL(&d, d.session.nqueues == 1 && !has_events(&d.session));
		assert_false(d.session.queue[0].suspended);
	}
	let_go(&d);
}

AMD_TEST_ON(queues_that_copy_are_never_suspended, mi250)
{
	struct target *t = aw_target_with(w, 1);
	struct debugger d = be_debugger();

	target_do(t, "queue sdma");
	must_attach(&d, t->pid);
	assert_int_equal(d.session.nqueues, 2);
	assert_int_equal(suspend(&d), 1);
	assert_int_equal(queue_is(w, t, 1, "suspended"), 0);
	target_tell(t, "submit 1 5 1");
	PUMP_UNTIL(&d, queue_is(w, t, 1, "executed") == 5);
	let_go(&d);
}

/* More than a first snapshot has room for. */
AMD_TEST_ON(sixty_queues_are_suspended_by_one_call, mi250, navi31)
{
	struct target *t = aw_target_with(w, 60);
	struct debugger d = attached_to(t->pid);
	uint64_t calls = kfd_emu_count(&w->emu, "suspend_queues");

	assert_int_equal(suspend(&d), 60);
	assert_int_equal(kfd_emu_count(&w->emu, "suspend_queues"), calls + 1);
	assert_int_equal(aw_process(w, t->pid, "suspended_count"), 60);
	assert_int_equal(resume(&d), 60);
	let_go(&d);
}

AMD_TEST_ON(with_the_new_rule_nobody_traces_the_target_after_the_beginning, mi250)
{
	struct target *t = aw_target_with(w, 1);
	int status;
	struct debugger d = attached_to(t->pid);

	assert_int_equal(d.rule, GP_AMD_RULE_DEBUGGER);
	PUMP_UNTIL(&d, !aw_tracer(t->pid));
	assert_int_equal(d.session.link, GP_AMD_UNLINKED);
	assert_int_equal(suspend(&d), 1);
	assert_int_equal(resume(&d), 1);
	/* Other processes may. */
	assert_int_equal(ptrace(PTRACE_SEIZE, t->pid, NULL, NULL), 0);
	assert_int_equal(ptrace(PTRACE_INTERRUPT, t->pid, NULL, NULL), 0);
	assert_int_equal(waitpid(t->pid, &status, __WALL), t->pid);
	assert_int_equal(suspend(&d), 1);
	assert_int_equal(aw_process(w, t->pid, "suspended_count"), 1);
	assert_int_equal(ptrace(PTRACE_DETACH, t->pid, NULL, NULL), 0);
	let_go(&d);
	assert_int_equal(target_ask(t, "signals"), 0);
}

AMD_TEST_ON(with_the_old_rule_the_target_is_traced_until_the_end, mi250_old)
{
	struct target *t = aw_target_with(w, 1);
	struct debugger d = attached_to(t->pid);

	assert_int_equal(d.rule, GP_AMD_RULE_TRACER);
	assert_int_equal(aw_tracer(t->pid), getpid());
	assert_int_equal(suspend(&d), 1);
	let_go(&d);
	assert_int_equal(aw_tracer(t->pid), 0);
	assert_int_equal(target_ask(t, "signals"), 0); /* and is not stopped */
}

AMD_TEST_ON(signals_reach_the_target, mi250, mi250_old)
{
	struct target *t = aw_target_with(w, 1);
	struct debugger d = attached_to(t->pid);

	for (int i = 1; i <= 20; i++) {
		kill(t->pid, SIGUSR1);
		/* The question is only read when the signal has been taken. */
		for (long n = -1; n != i;) {
			target_tell(t, "signals");
			n = pumped_answer(&d, t);
			assert_in_range(n, i - 1, i);
		}
	}
	let_go(&d);
	assert_int_equal(target_ask(t, "signals"), 20);
}

static bool is_stopped(pid_t pid)
{
	char state = test_process_state(pid);

	return state == 'T' || state == 't';
}

AMD_TEST_ON(who_stops_the_target_can_let_it_go_on, mi250, mi250_old)
{
	struct target *t = aw_target_with(w, 1);
	struct debugger d = attached_to(t->pid);

	for (int i = 0; i < 5; i++) {
		kill(t->pid, SIGSTOP);
		PUMP_UNTIL(&d, is_stopped(t->pid));
		target_tell(t, "signals");
		for (int k = 0; k < 20; k++, usleep(1000))
			pump(&d);
		assert_true(is_stopped(t->pid)); /* it stays so */
		assert_false(target_has_answered(t));
		kill(t->pid, SIGCONT);
		assert_int_equal(pumped_answer(&d, t), 0);
	}
	let_go(&d);
	assert_false(is_stopped(t->pid));
}

AMD_TEST_ON(a_stopped_target_stays_stopped_when_it_is_attached_to_and_let_go, mi250, mi250_old)
{
	struct target *t = aw_target_with(w, 1);
	struct debugger d = be_debugger();

	kill(t->pid, SIGSTOP);
	TEST_WAIT(test_process_state(t->pid) == 'T');
	must_attach(&d, t->pid);
	for (int k = 0; k < 20; k++, usleep(1000))
		pump(&d);
	assert_int_equal(suspend(&d), 1);
	let_go(&d);
	TEST_WAIT(test_process_state(t->pid) == 'T');
	assert_int_equal(aw_tracer(t->pid), 0);
	target_tell(t, "signals");
	usleep(20000);
	assert_false(target_has_answered(t));
	kill(t->pid, SIGCONT);
	assert_int_equal(target_answer(t), 0);
}

/* It may be our own child; its parent must still get the exit status. */
AMD_TEST_ON(the_exit_status_of_the_target_is_left_to_its_parent, mi250, mi250_old)
{
	struct target *t = aw_target_with(w, 1);
	struct debugger d = attached_to(t->pid);

	PUMP_UNTIL(&d, d.session.link != GP_AMD_UNLINKING);
	target_tell(t, "exit 3");
	PUMP_UNTIL(&d, test_process_state(t->pid) == 'Z' || !test_process_state(t->pid));
	for (int k = 0; k < 20; k++, usleep(1000))
		pump(&d);
	let_go(&d);
	assert_int_equal(target_wait(t), 3);
}

AMD_TEST_ON(a_target_that_waits_for_an_answer_gets_it_at_the_end, mi250, mi250_old)
{
	struct target *t = aw_target(w);
	struct debugger d = be_debugger();

	target_do(t, "open");
	must_attach(&d, t->pid);
	PUMP_UNTIL(&d, d.session.link != GP_AMD_UNLINKING);
	target_tell(t, "runtime 1");
	TEST_WAIT(has_events(&d.session));
	let_go(&d); /* without a look at the news */
	assert_int_equal(target_answer(t), 0);
}

/* Starts the target's runtime when the driver has begun to end the session. */
struct late {
	struct amd_world *w;
	struct target *t;
};

static void *start_runtime_late(void *arg)
{
	struct late *l = arg;

	for (int i = 0; i < 20000 && !kfd_emu_count(&l->w->emu, "disable"); i++)
		usleep(1000);
	target_tell(l->t, "runtime 1");
	return NULL;
}

/* After our last look at the news, before the end of the session, which does not wake it. */
static void begins_to_wait_in_the_last_moment(struct amd_world *w, bool in_another_thread)
{
	struct target *t = aw_target(w);
	struct debugger d = be_debugger();
	struct late late = {w, t};
	pthread_t thread;

	target_do(t, "open");
	if (in_another_thread)
		target_do(t, "step_aside");
	must_attach(&d, t->pid);
	PUMP_UNTIL(&d, d.session.link != GP_AMD_UNLINKING);
	kfd_emu_control(&w->emu, "delay disable 1s");
	assert_int_equal(pthread_create(&thread, NULL, start_runtime_late, &late), 0);
	let_go(&d);
	pthread_join(thread, NULL);
	TEST_WAIT(target_has_answered(t));
	assert_int_equal(target_answer(t), 0);
}

AMD_TEST_ON(a_target_that_begins_to_wait_in_the_last_moment_does_not_wait_for_ever, mi250,
	    mi250_old)
{
	begins_to_wait_in_the_last_moment(w, false);
}

AMD_TEST_ON(nor_does_one_of_its_other_threads, mi250, mi250_old)
{
	begins_to_wait_in_the_last_moment(w, true);
}

AMD_TEST_ON(a_target_that_ended_is_let_go_of, mi250, mi250_old)
{
	struct target *t = aw_target_with(w, 2);
	struct debugger d = attached_to(t->pid);

	assert_int_equal(suspend(&d), 2);
	target_kill(t);
	TEST_WAIT(gp_amd_session_refresh(&d.session) == -ESRCH);
	assert_int_equal(resume(&d), -ESRCH);
	let_go(&d);
}

AMD_TEST_ON(nothing_is_left_open_after_many_sessions, mi250, mi250_old)
{
	struct target *t = aw_target_with(w, 2);
	struct debugger d = be_debugger();
	unsigned files = test_open_files(getpid());

	for (int i = 0; i < 50; i++) {
		must_attach(&d, t->pid);
		assert_int_equal(suspend(&d), 2);
		gp_amd_session_close(&d.session);
		assert_true(attach(&d, 0x3fffff) < 0); /* there is none */
	}
	assert_int_equal(test_open_files(getpid()), files);
	close(d.kfd);
}

/* A process that traces another and does nothing else. */
static void start_tracer(struct test_child *tracer, pid_t pid)
{
	char byte;

	if (test_fork(tracer)) {
		prctl(PR_SET_NAME, "some-debugger");
		if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) || write(STDOUT_FILENO, ".", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	assert_int_equal(read(tracer->from, &byte, 1), 1);
}

AMD_TEST(one_that_is_traced_already_is_refused_and_its_tracer_named)
{
	struct target *t = aw_target_with(w, 1);
	struct debugger d = be_debugger();
	char number[32];
	struct test_child tracer;

	start_tracer(&tracer, t->pid);
	assert_int_equal(attach(&d, t->pid), -EBUSY);
	snprintf(number, sizeof number, "process %d)", tracer.pid);
	assert_non_null(strstr(d.err.text, "some-debugger"));
	assert_non_null(strstr(d.err.text, number));
	test_child_end(&tracer);
	must_attach(&d, t->pid); /* now it can be */
	let_go(&d);
}

/* Another debugger, in a process of its own, which ends when its input is closed. */
struct other {
	struct test_child child;
	struct {
		int result; /* of its attach */
		char text[256];
	} answer;
};

/* Attaches, suspends everything if it can, and stays until it is told to end. */
static void be_other(struct other *o, pid_t target)
{
	struct debugger d = be_debugger();
	char byte;

	o->answer.result = attach(&d, target);
	while (!o->answer.result && d.session.link == GP_AMD_UNLINKING)
		pump(&d);
	if (!o->answer.result)
		suspend(&d);
	memcpy(o->answer.text, d.err.text, sizeof o->answer.text);
	if (write(STDOUT_FILENO, &o->answer, sizeof o->answer) != sizeof o->answer ||
	    read(STDIN_FILENO, &byte, 1) < 0)
		_exit(1);
	_exit(0);
}

static void start_other(struct other *o, pid_t target)
{
	if (test_fork(&o->child))
		be_other(o, target);
	assert_int_equal(read(o->child.from, &o->answer, sizeof o->answer), sizeof o->answer);
	close(o->child.from);
}

static void end_other(struct other *o)
{
	close(o->child.to);
	assert_int_equal(test_exit_status(o->child.pid), 0);
}

AMD_TEST_ON(one_in_other_hands_is_refused_and_stays_in_them, mi250, mi250_old)
{
	struct target *t = aw_target_with(w, 2);
	struct other first, second;

	start_other(&first, t->pid);
	assert_int_equal(first.answer.result, 0);
	assert_int_equal(aw_process(w, t->pid, "suspended_count"), 2);
	start_other(&second, t->pid);
	assert_int_equal(second.answer.result, -EBUSY);
	assert_true(strlen(second.answer.text) > 20);
	end_other(&second);
	/* Neither the attempt nor the end of the second debugger affects the first. */
	TEST_WAIT(aw_process(w, second.child.pid, "debugged") == UINT64_MAX);
	emulator_sleep_ms(50);
	assert_int_equal(aw_process(w, t->pid, "debugged"), 1);
	assert_int_equal(aw_process(w, t->pid, "suspended_count"), 2);
	assert_int_equal(aw_process(w, t->pid, "debugger"), first.child.pid);
	end_other(&first); /* which resumes everything, without a word of its own */
	TEST_WAIT(aw_process(w, t->pid, "debugged") == 0 &&
		  aw_process(w, t->pid, "suspended_count") == 0);
}

AMD_TEST(one_without_a_runtime_cannot_be_suspended)
{
	struct target *t = aw_target(w);
	struct debugger d = be_debugger();

	target_do(t, "open");
	target_do(t, "queue aql");
	must_attach(&d, t->pid);
	assert_int_equal(gp_amd_session_check(&d.session, 0, &d.err), -ENOTSUP);
	assert_non_null(strstr(d.err.text, "runtime"));
	assert_int_equal(suspend(&d), -EPERM);
	let_go(&d);
}

AMD_TEST_ON(where_there_is_one_place_the_second_is_told_so, vega20, vega20_old)
{
	struct debugger first = be_debugger(), second = be_debugger();
	struct target *t[2];

	for (int i = 0; i < 2; i++)
		t[i] = aw_target_with(w, 1);
	must_attach(&first, t[0]->pid);
	assert_int_equal(gp_amd_session_check(&first.session, 0, NULL), 0);
	must_attach(&second, t[1]->pid);
	assert_int_equal(gp_amd_session_check(&second.session, 0, &second.err), -EBUSY);
	assert_non_null(strstr(second.err.text, "one process at a time"));
	assert_non_null(strstr(second.err.text, "gpreempt resume"));
	gp_amd_session_close(&second.session);
	assert_int_equal(suspend(&first), 1); /* as before */
	gp_amd_session_close(&first.session);
	must_attach(&second, t[1]->pid);
	assert_int_equal(gp_amd_session_check(&second.session, 0, NULL), 0);
	assert_int_equal(suspend(&second), 1);
	let_go(&second);
	close(first.kfd);
}

AMD_TEST_ON(where_there_are_many_places_two_are_suspended_together, mi300x, navi31)
{
	struct debugger d[2] = {be_debugger(), be_debugger()};
	struct target *t[2];

	for (int i = 0; i < 2; i++) {
		t[i] = aw_target_with(w, 1);
		must_attach(&d[i], t[i]->pid);
		assert_int_equal(gp_amd_session_check(&d[i].session, 0, NULL), 0);
		assert_int_equal(suspend(&d[i]), 1);
	}
	for (int i = 0; i < 2; i++) {
		assert_int_equal(aw_process(w, t[i]->pid, "suspended_count"), 1);
		let_go(&d[i]);
	}
}

AMD_TEST(one_that_ended_is_not_there)
{
	struct target *t = aw_target_with(w, 1);
	struct debugger d = be_debugger();
	pid_t pid;

	pid = t->pid;
	kill(pid, SIGKILL);
	TEST_WAIT(test_process_state(pid) == 'Z'); /* not waited for yet */
	assert_int_equal(attach(&d, pid), -ESRCH);
	assert_true(strlen(d.err.text) > 10);
	target_kill(t);
	assert_int_equal(attach(&d, pid), -ESRCH);
	assert_non_null(strstr(d.err.text, "no process"));
	close(d.kfd);
}

AMD_TEST(one_that_never_used_a_gpu_has_nothing_to_suspend)
{
	struct target *t = aw_target(w);
	struct debugger d = be_debugger();

	must_attach(&d, t->pid); /* it may open the device later */
	assert_int_equal(gp_amd_session_check(&d.session, 0, &d.err), -ENOTSUP);
	let_go(&d);
	assert_int_equal(aw_tracer(t->pid), 0);
	assert_int_equal(target_ask(t, "signals"), 0);
}

AMD_TEST(one_whose_first_thread_has_ended_is_refused)
{
	struct target *t = aw_target_with(w, 1);
	struct debugger d = be_debugger();

	target_do(t, "leave");
	TEST_WAIT(test_process_state(t->pid) == 'Z');
	assert_true(attach(&d, t->pid) < 0);
	assert_true(strlen(d.err.text) > 10);
	assert_int_equal(target_ask(t, "signals"), 0);
	close(d.kfd);
}
