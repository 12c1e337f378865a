/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine when nothing goes wrong: who is there, what is never touched, what a user's hold
 * means, desired state instead of commands, the order of actions, the undo record before the first
 * change, when it looks again, and what it counts.
 */
#include "fake_gpu.h"

#include <malloc.h>

/* ---- tasks come and go ---- */

static void tasks_come_in_with_rising_ids_and_go_out(void **state)
{
	struct rig *r = rig_new(8);

	(void)state;
	for (int i = 0; i < 3; i++)
		rig_add(r, GP_BEST_EFFORT);
	rig_start(r, &scripted);
	assert_int_equal(gp_engine_tasks(r->engine), 3);
	for (unsigned i = 0; i < 3; i++) {
		struct gp_task_stats s = rig_task(r, i);

		assert_int_equal(s.id, i + 1);
		assert_int_equal(s.key, i + 1);
		assert_int_equal(s.handle, i);
		assert_int_equal(s.pid, 1000 + i);
		assert_true(r->gpu.task[i].attached);
	}
	r->gpu.task[1].present = false;
	rig_run(r, 100 * MS);
	assert_int_equal(gp_engine_tasks(r->engine), 2);
	assert_int_equal(rig_task(r, 0).id, 1);
	assert_int_equal(rig_task(r, 1).id, 3);
	assert_false(r->gpu.task[1].attached);
	assert_int_equal(r->events[GP_EVENT_TASK_IN], 3);
	assert_int_equal(r->events[GP_EVENT_TASK_OUT], 1);
	assert_int_equal(r->last[GP_EVENT_TASK_OUT].task, 2);
	rig_free(r);
}

static void an_id_is_never_given_twice(void **state)
{
	struct rig *r = rig_new(4);
	uint64_t last_id = 0;

	(void)state;
	rig_add(r, GP_BEST_EFFORT);
	rig_add(r, GP_BEST_EFFORT);
	rig_start(r, &scripted);
	for (int round = 0; round < 10; round++) {
		assert_int_equal(gp_engine_tasks(r->engine), 2);
		for (unsigned i = 0; i < 2; i++) {
			assert_true(rig_task(r, i).id > last_id);
			last_id = rig_task(r, i).id;
		}
		r->gpu.task[0].present = r->gpu.task[1].present = false;
		rig_run(r, 100 * MS);
		assert_int_equal(gp_engine_tasks(r->engine), 0);
		r->gpu.task[0].present = r->gpu.task[1].present = true;
		rig_run(r, 100 * MS);
	}
	assert_int_equal(last_id, 20);
	rig_free(r);
}

static void a_task_that_cannot_be_attached_is_tried_again_at_the_next_scan(void **state)
{
	struct rig *r = rig_new(4);

	(void)state;
	rig_add(r, GP_BEST_EFFORT);
	rig_add(r, GP_BEST_EFFORT);
	r->gpu.task[0].refuses_attach = true;
	rig_start(r, &scripted);
	assert_int_equal(gp_engine_tasks(r->engine), 1);
	assert_int_equal(rig_task(r, 0).key, 2);
	r->gpu.task[0].refuses_attach = false;
	rig_run(r, 100 * MS);
	assert_int_equal(gp_engine_tasks(r->engine), 2);
	assert_int_equal(rig_task(r, 1).key, 1);
	assert_int_equal(rig_task(r, 1).id, 2);
	rig_free(r);
}

static void freeing_the_engine_puts_every_task_back(void **state)
{
	struct rig *r = rig_new(4);

	(void)state;
	rig_add(r, GP_BEST_EFFORT);
	rig_add(r, GP_BEST_EFFORT);
	want(1, GP_HOLD, 0);
	want(2, GP_RUN, 1);
	rig_start(r, &scripted);
	assert_true(rig_is(r, 0)->held);
	assert_int_equal(rig_is(r, 1)->slice_us, 1);
	gp_engine_free(r->engine);
	r->engine = NULL;
	assert_false(rig_is(r, 0)->held);
	assert_int_equal(rig_is(r, 1)->slice_us, 0);
	rig_free(r); /* finds that all are detached */
}

/* Policies with a blob per task: it says whose it is, and is looked at on every occasion. */
struct id_blob {
	uint64_t id;
	uint64_t decisions;
};

static unsigned blob_tasks_in, blob_tasks_out, blob_inits;

static void blob_init(const struct gp_policy_state *state)
{
	assert_int_equal(*(uint64_t *)state->device, 0);
	*(uint64_t *)state->device = 4711;
	blob_inits++;
}

static void blob_task_in(const struct gp_policy_state *state, const struct gp_task_view *task,
                         void *task_state)
{
	struct id_blob *b = task_state;

	assert_int_equal(*(uint64_t *)state->device, 4711);
	assert_int_equal(b->id, 0);
	assert_int_equal(b->decisions, 0);
	assert_int_equal((uintptr_t)b % 16, 0);
	b->id = task->id;
	blob_tasks_in++;
}

static void blob_task_out(const struct gp_policy_state *state, const struct gp_task_view *task,
                          void *task_state)
{
	assert_int_equal(*(uint64_t *)state->device, 4711);
	assert_int_equal(((struct id_blob *)task_state)->id, task->id);
	blob_tasks_out++;
}

static int blob_decide(const struct gp_view *view, const struct gp_policy_state *state,
                       struct gp_plan *plan)
{
	assert_int_equal(*(uint64_t *)state->device, 4711);
	assert_true(plan->next_ns == GP_NEVER);
	for (uint32_t i = 0; i < view->n; i++) {
		struct id_blob *b = gp_policy_task(state, i);

		assert_int_equal(b->id, view->task[i].id);
		assert_true(b->decisions < 1000000); /* 0 when new, not left over */
		b->decisions++;
		if (i)
			assert_true(view->task[i].id > view->task[i - 1].id);
		assert_int_equal(plan->task[i].want, GP_LEAVE);
		assert_int_equal(plan->task[i].slice_us, 0);
		/* Scribbles: it must be cleared before the next decision. */
		plan->task[i].want = view->task[i].class == GP_UNMANAGED ? GP_LEAVE : GP_RUN;
	}
	return 0;
}

static const struct gp_policy_ops blobs = {
	.name = "blobs",
	.summary = "remembers whose blob is whose",
	.device_state = sizeof(uint64_t),
	.task_state = sizeof(struct id_blob),
	.init = blob_init,
	.task_in = blob_task_in,
	.task_out = blob_task_out,
	.decide = blob_decide,
};

static void tasks_removed_from_the_middle_leave_the_others_their_blobs(void **state)
{
	struct rig *r = rig_new(200);
	struct gp_rng rng;

	(void)state;
	blob_tasks_in = blob_tasks_out = blob_inits = 0;
	gp_rng_init(&rng, 1, 0);
	for (unsigned i = 0; i < 200; i++)
		r->gpu.task[rig_add(r, GP_BEST_EFFORT)].present = gp_rng_below(&rng, 2);
	rig_start(r, &blobs);
	for (unsigned round = 0; round < 100; round++) {
		for (unsigned i = 0; i < 200; i++)
			r->gpu.task[i].present ^= gp_rng_below(&rng, 8) == 0;
		gp_engine_trigger(r->engine, true);
		rig_run(r, 1 * MS);
	}
	assert_int_equal(blob_inits, 1);
	assert_true(blob_tasks_out > 100);
	assert_int_equal(blob_tasks_in - blob_tasks_out, gp_engine_tasks(r->engine));
	rig_free(r);
}

static void a_new_policy_starts_with_clear_blobs_and_the_tasks_that_are_there(void **state)
{
	struct rig *r = rig_new(4);

	(void)state;
	blob_tasks_in = blob_tasks_out = blob_inits = 0;
	for (int i = 0; i < 3; i++)
		rig_add(r, GP_BEST_EFFORT);
	rig_start(r, &blobs);
	assert_int_equal(blob_inits, 1);
	assert_int_equal(blob_tasks_in, 3);
	rig_run(r, 10 * MS);
	rig_set_policy(r, &gp_policy_none);
	rig_run(r, 10 * MS);
	rig_set_policy(r, &blobs);
	assert_int_equal(blob_inits, 2);
	assert_int_equal(blob_tasks_in, 6);
	rig_run(r, 10 * MS);
	assert_int_equal(r->events[GP_EVENT_POLICY], 3);
	rig_free(r);
}

static void arrays_grow_for_as_many_tasks_as_there_are(void **state)
{
	struct rig *r = rig_new(1500);

	(void)state;
	for (int i = 0; i < 15; i++)
		rig_add(r, GP_BEST_EFFORT);
	rig_start(r, &blobs);
	for (unsigned n = 16; n <= 1500; n = n < 18 ? n + 1 : n * 3 / 2) {
		while (r->gpu.n < n)
			rig_add(r, r->gpu.n % 3 ? GP_BEST_EFFORT : GP_LATENCY_CRITICAL);
		gp_engine_trigger(r->engine, true);
		rig_run(r, 1 * MS);
		assert_int_equal(gp_engine_tasks(r->engine), n);
		assert_int_equal(gp_engine_view(r->engine)->n, n);
		for (unsigned i = 0; i < n; i++) {
			assert_int_equal(rig_task(r, i).id, i + 1);
			assert_int_equal(gp_engine_view(r->engine)->task[i].id, i + 1);
			assert_int_equal(gp_engine_plan(r->engine)->task[i].want, GP_RUN);
		}
	}
	assert_true(gp_engine_tasks(r->engine) > 1000);
	script.others.want = GP_HOLD;
	memset(script.want, 0, sizeof script.want);
	rig_set_policy(r, &scripted);
	rig_run(r, 1 * MS);
	assert_int_equal(rig_stats(r)->holds, gp_engine_tasks(r->engine) - (SCRIPT_MAX - 1));
	rig_free(r);
}

/* ---- attributes ---- */

static void attributes_come_from_classify(void **state)
{
	struct rig *r = rig_new(4);
	const struct gp_task_attr given = {.class = GP_LATENCY_CRITICAL,
	                                   .priority = 9,
	                                   .weight = 1234,
	                                   .share_permille = 250,
	                                   .deadline_ns = 5 * MS,
	                                   .budget_ns = 2 * MS};
	const struct gp_task_view *v;

	(void)state;
	rig_add(r, GP_UNMANAGED);
	rig_add(r, GP_UNMANAGED);
	r->attr[2] = given;
	rig_start(r, &scripted);
	assert_int_equal(rig_task(r, 0).attr.class, GP_UNMANAGED);
	v = &gp_engine_view(r->engine)->task[1];
	assert_int_equal(v->class, given.class);
	assert_int_equal(v->priority, given.priority);
	assert_int_equal(v->weight, given.weight);
	assert_int_equal(v->share_permille, given.share_permille);
	assert_int_equal(v->deadline_ns, given.deadline_ns);
	assert_int_equal(v->budget_ns, given.budget_ns);
	rig_free(r);
}

static void without_classify_every_task_is_unmanaged(void **state)
{
	struct rig *r = rig_new(4);

	(void)state;
	rig_add(r, GP_BEST_EFFORT);
	r->config.classify = NULL;
	rig_start(r, &scripted);
	assert_int_equal(rig_task(r, 0).attr.class, GP_UNMANAGED);
	assert_int_equal(rig_task(r, 0).attr.weight, 100);
	rig_free(r);
}

static void attributes_out_of_range_are_refused_and_change_nothing(void **state)
{
	struct rig *r = rig_new(4);
	const struct gp_task_attr good = {.class = GP_BEST_EFFORT, .weight = 100};
	struct gp_task_attr a;

	(void)state;
	rig_add(r, GP_BEST_EFFORT);
	rig_start(r, &scripted);
#define REFUSED(member, value)                                                                 \
	do {                                                                                   \
		a = good;                                                                      \
		a.member = (value);                                                            \
		assert_int_equal(gp_engine_set_attr(r->engine, 1, &a), -EINVAL);               \
		assert_int_equal(rig_task(r, 0).attr.member, good.member);                     \
		assert_int_not_equal(gp_engine_next_ns(r->engine), 0); /* no reason to look */ \
	} while (0)
	REFUSED(class, GP_LATENCY_CRITICAL + 1);
	REFUSED(priority, GP_PRIORITY_MAX + 1);
	REFUSED(weight, 0);
	REFUSED(weight, 10001);
	REFUSED(share_permille, 1001);
#undef REFUSED
	a = (struct gp_task_attr){.class = GP_LATENCY_CRITICAL,
	                          .priority = GP_PRIORITY_MAX,
	                          .weight = 10000,
	                          .share_permille = 1000};
	assert_int_equal(gp_engine_set_attr(r->engine, 1, &a), 0);
	assert_int_equal(gp_engine_next_ns(r->engine), 0);
	a.weight = 1;
	assert_int_equal(gp_engine_set_attr(r->engine, 1, &a), 0);
	rig_step(r);
	assert_int_equal(gp_engine_view(r->engine)->task[0].weight, 1);
	assert_int_equal(gp_engine_view(r->engine)->task[0].class, GP_LATENCY_CRITICAL);
	rig_free(r);
}

static void a_task_that_is_not_there_is_no_such_process(void **state)
{
	struct rig *r = rig_new(8);
	const struct gp_task_attr good = {.class = GP_BEST_EFFORT, .weight = 100};
	const uint64_t missing[] = {0, 2, 5, UINT64_MAX};

	(void)state;
	for (int i = 0; i < 4; i++)
		rig_add(r, GP_BEST_EFFORT);
	rig_start(r, &scripted);
	r->gpu.task[1].present = false;
	gp_engine_trigger(r->engine, true);
	rig_step(r);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(gp_engine_set_attr(r->engine, missing[i], &good), -ESRCH);
		assert_int_equal(gp_engine_user_hold(r->engine, missing[i]), -ESRCH);
		assert_int_equal(gp_engine_user_release(r->engine, missing[i]), -ESRCH);
	}
	for (uint64_t id = 1; id <= 4; id++)
		if (id != 2)
			assert_int_equal(gp_engine_set_attr(r->engine, id, &good), 0);
	rig_free(r);
}

/* ---- what is never touched ---- */

static const struct gp_policy_ops *const every_policy[] = {&gp_policy_none, &gp_policy_priority,
                                                           &gp_policy_rr, &scripted};

static void an_unmanaged_task_is_never_touched(void **state)
{
	(void)state;
	for (unsigned p = 0; p < 4; p++) {
		struct rig *r = rig_new(8);

		rig_add(r, GP_UNMANAGED);
		rig_add(r, GP_LATENCY_CRITICAL);
		rig_add(r, GP_BEST_EFFORT);
		rig_add(r, GP_BEST_EFFORT);
		rig_is(r, 0)->slice_us = 777; /* somebody else's */
		want(2, GP_HOLD, 0);
		want(3, GP_RUN, 1);
		rig_start(r, every_policy[p]);
		for (int i = 0; i < 20; i++) {
			rig_is(r, 0)->held = i % 2; /* and so is this */
			rig_is(r, 0)->active = i % 3;
			rig_is(r, 1)->active = i % 5;
			rig_run(r, 50 * MS);
		}
		for (enum fake_kind k = 0; k < FAKE_KINDS; k++)
			assert_int_equal(fake_count(&r->gpu, k, 0, 0), 0);
		assert_int_equal(rig_is(r, 0)->slice_us, 777);
		assert_int_equal(rig_task(r, 0).undone, 0);
		assert_null(gp_engine_ejection(r->engine));
		rig_free(r);
	}
}

static void what_the_plan_leaves_alone_is_left_alone(void **state)
{
	struct rig *r = rig_new(4);

	(void)state;
	rig_add(r, GP_BEST_EFFORT);
	rig_add(r, GP_BEST_EFFORT);
	rig_is(r, 0)->slice_us = 500;
	rig_start(r, &scripted); /* wants nothing */
	for (unsigned i = 0; i < 10; i++) {
		rig_run(r, 50 * MS);
		rig_is(r, 0)->slice_us = 100 * i;
	}
	assert_int_equal(r->gpu.nasked, 0);

	/* What was decided before stands while the plan says nothing. */
	want(1, GP_HOLD, 0);
	want(2, GP_RUN, 300);
	gp_engine_trigger(r->engine, false);
	rig_run(r, 50 * MS);
	want(1, GP_LEAVE, 0);
	want(2, GP_LEAVE, 0);
	r->gpu.nasked = 0;
	rig_run(r, 500 * MS);
	assert_int_equal(r->gpu.nasked, 0);
	assert_true(rig_is(r, 0)->held);
	assert_int_equal(rig_is(r, 1)->slice_us, 300);
	rig_free(r);
}

static void a_hold_by_somebody_else_is_left_alone_if_the_plan_says_leave(void **state)
{
	struct rig *r = rig_new(4);

	(void)state;
	rig_add(r, GP_BEST_EFFORT);
	rig_start(r, &scripted);
	rig_is(r, 0)->held = true; /* a debugger, another scheduler */
	rig_run(r, 300 * MS);
	assert_true(rig_is(r, 0)->held);
	assert_int_equal(r->gpu.nasked, 0);
	want(1, GP_RUN, 0);
	gp_engine_trigger(r->engine, false);
	rig_run(r, 10 * MS);
	assert_false(rig_is(r, 0)->held);
	rig_free(r);
}

static void a_hold_by_somebody_else_is_left_alone_whatever_else_was_changed(void **state)
{
	struct rig *r = rig_new(4);

	(void)state;
	rig_add(r, GP_BEST_EFFORT);
	want(1, GP_RUN, 3000);
	rig_start(r, &scripted);
	rig_run(r, 10 * MS);
	want(1, GP_LEAVE, 0);
	rig_is(r, 0)->held = true;
	rig_run(r, 300 * MS);
	assert_true(rig_is(r, 0)->held);
	assert_int_equal(r->gpu.nasked, 1);
	rig_free(r);
}

static void a_hold_by_somebody_else_is_not_taken_for_the_users(void **state)
{
	(void)state;
	for (int fails = 0; fails < 2; fails++) {
		struct rig *r = rig_new(4);

		rig_add(r, GP_UNMANAGED);
		for (enum fake_kind k = 0; k < FAKE_KINDS; k++)
			r->gpu.fault[k].observed = true;
		r->gpu.fault[FAKE_HOLD].status = fails ? -EBUSY : 0;
		rig_start(r, &scripted);
		gp_engine_user_hold(r->engine, 1);
		rig_run(r, 10 * MS);
		assert_int_equal(rig_is(r, 0)->held, !fails);
		gp_engine_user_release(r->engine, 1);
		rig_step(r); /* that was all the user wanted */
		assert_false(rig_is(r, 0)->held);
		rig_is(r, 0)->held = true;
		rig_run(r, 2 * S);
		assert_true(rig_is(r, 0)->held);
		rig_free(r);
	}
}

static void a_task_that_becomes_unmanaged_is_put_back_and_then_left_alone(void **state)
{
	struct rig *r = rig_new(4);
	struct gp_task_attr a = GP_TASK_ATTR_DEFAULT;

	(void)state;
	rig_add(r, GP_BEST_EFFORT);
	rig_add(r, GP_BEST_EFFORT);
	want(1, GP_HOLD, 0);
	want(2, GP_RUN, 7000);
	rig_start(r, &scripted);
	rig_run(r, 10 * MS);
	assert_true(rig_is(r, 0)->held);
	assert_int_equal(rig_is(r, 1)->slice_us, 7000);

	assert_int_equal(gp_engine_set_attr(r->engine, 1, &a), 0);
	assert_int_equal(gp_engine_set_attr(r->engine, 2, &a), 0);
	rig_run(r, 10 * MS);
	assert_false(rig_is(r, 0)->held);
	assert_int_equal(rig_is(r, 1)->slice_us, 0);
	assert_int_equal(rig_task(r, 0).held_by, 0);

	r->gpu.nasked = 0;
	rig_is(r, 0)->held = true;
	rig_is(r, 1)->slice_us = 99;
	rig_run(r, 1 * S);
	assert_int_equal(r->gpu.nasked, 0);
	assert_int_equal(rig_stats(r)->undone, 0);
	assert_true(rig_is(r, 0)->held);
	rig_free(r);
}

static void putting_back_an_unmanaged_task_is_repeated_until_it_is_done(void **state)
{
	struct rig *r = rig_new(4);
	struct gp_task_attr a = GP_TASK_ATTR_DEFAULT;

	(void)state;
	rig_add(r, GP_BEST_EFFORT);
	want(1, GP_RUN, 7000);
	rig_start(r, &scripted);
	rig_run(r, 10 * MS);
	r->gpu.fault[FAKE_SLICE].status = -EBUSY;
	gp_engine_set_attr(r->engine, 1, &a);
	rig_run(r, 200 * MS);
	assert_int_equal(rig_is(r, 0)->slice_us, 7000);
	r->gpu.fault[FAKE_SLICE].status = 0;
	rig_run(r, 300 * MS);
	assert_int_equal(rig_is(r, 0)->slice_us, 0);
	rig_free(r);
}

/* ---- the user's hold ---- */

static void a_user_holds_even_an_unmanaged_task_under_every_policy(void **state)
{
	(void)state;
	for (unsigned p = 0; p < 4; p++) {
		struct rig *r = rig_new(4);

		rig_add(r, GP_UNMANAGED);
		rig_add(r, GP_LATENCY_CRITICAL);
		want(1, GP_RUN, 0);
		want(2, GP_RUN, 0);
		rig_start(r, &gp_policy_none);
		for (uint64_t id = 1; id <= 2; id++)
			assert_int_equal(gp_engine_user_hold(r->engine, id), 0);
		assert_int_equal(gp_engine_next_ns(r->engine), 0);
		rig_run(r, 5 * MS);
		rig_set_policy(r, every_policy[p]);
		for (int i = 0; i < 50; i++) {
			rig_run(r, 20 * MS);
			for (uint32_t h = 0; h < 2; h++) {
				assert_true(rig_is(r, h)->held);
				assert_true(rig_task(r, h).held_by & GP_HELD_BY_USER);
				assert_true(gp_engine_view(r->engine)->task[h].held_by &
				            GP_HELD_BY_USER);
			}
		}
		assert_int_equal(fake_count(&r->gpu, FAKE_RELEASE, 0, 0), 0);
		assert_int_equal(fake_count(&r->gpu, FAKE_RELEASE, 1, 0), 0);
		assert_int_equal(gp_engine_user_release(r->engine, 1), 0);
		rig_run(r, 5 * MS);
		assert_false(rig_is(r, 0)->held);
		assert_true(rig_is(r, 1)->held);
		assert_int_equal(gp_engine_user_release(r->engine, 2), 0);
		rig_run(r, 5 * MS);
		assert_false(rig_is(r, 1)->held);
		assert_int_equal(rig_task(r, 1).held_by, 0);
		rig_free(r);
	}
}

static void a_user_hold_is_no_starvation_and_no_time_held_by_the_policy(void **state)
{
	struct rig *r = rig_new(4);

	(void)state;
	rig_add(r, GP_BEST_EFFORT);
	want(1, GP_RUN, 0);
	rig_start(r, &watching);
	gp_engine_user_hold(r->engine, 1);
	rig_run(r, 30 * S);
	assert_true(rig_is(r, 0)->held);
	assert_null(gp_engine_ejection(r->engine));
	assert_int_equal(rig_task(r, 0).held_ns, 0);
	assert_int_equal(rig_task(r, 0).preemptions, 0);
	rig_free(r);
}

static void policy_and_user_can_both_hold_and_each_lets_go_for_itself(void **state)
{
	struct rig *r = rig_new(4);

	(void)state;
	rig_add(r, GP_BEST_EFFORT);
	want(1, GP_HOLD, 0);
	rig_start(r, &scripted);
	gp_engine_user_hold(r->engine, 1);
	rig_run(r, 5 * MS);
	assert_int_equal(rig_task(r, 0).held_by, GP_HELD_BY_POLICY | GP_HELD_BY_USER);
	assert_int_equal(rig_task(r, 0).preemptions, 1);
	gp_engine_user_release(r->engine, 1);
	rig_run(r, 5 * MS);
	assert_true(rig_is(r, 0)->held);
	assert_int_equal(rig_task(r, 0).held_by, GP_HELD_BY_POLICY);
	gp_engine_user_hold(r->engine, 1);
	want(1, GP_RUN, 0);
	rig_run(r, 5 * MS);
	assert_true(rig_is(r, 0)->held);
	assert_int_equal(rig_task(r, 0).held_by, GP_HELD_BY_USER);
	want(1, GP_HOLD, 0);
	gp_engine_trigger(r->engine, false);
	rig_run(r, 5 * MS); /* who is held already is not preempted */
	assert_int_equal(rig_task(r, 0).preemptions, 1);
	assert_int_equal(fake_count(&r->gpu, FAKE_HOLD, 0, 0), 1);
	assert_int_equal(fake_count(&r->gpu, FAKE_RELEASE, 0, 0), 0);
	rig_free(r);
}

static void a_device_that_cannot_hold_refuses_a_users_hold(void **state)
{
	struct rig *r = rig_new(4);

	(void)state;
	rig_add(r, GP_BEST_EFFORT);
	r->gpu.base.info.caps = GP_CAP_SLICE;
	rig_start(r, &scripted);
	assert_int_equal(gp_engine_user_hold(r->engine, 1), -ENOTSUP);
	assert_int_equal(gp_engine_user_release(r->engine, 1), 0);
	rig_run(r, 10 * MS);
	assert_int_equal(r->gpu.nasked, 0);
	rig_free(r);
}

static void a_users_hold_spreads_over_the_gang_and_no_further(void **state)
{
	struct rig *r = rig_new(8);
	struct gp_task_attr a;

	(void)state;
	for (int i = 0; i < 5; i++)
		rig_add(r, GP_BEST_EFFORT);
	r->attr[2].gang = r->attr[4].gang = r->attr[5].gang = 42;
	r->attr[3].gang = 43;
	rig_start(r, &gp_policy_none);
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(gp_engine_view(r->engine)->task[i].gang, i == 3 || i == 4 ? 1 : i);
	gp_engine_user_hold(r->engine, 4); /* not the first of it */
	rig_run(r, 5 * MS);
	for (uint32_t i = 0; i < 5; i++) {
		bool member = i == 1 || i == 3 || i == 4;

		assert_int_equal(rig_is(r, i)->held, member);
		assert_int_equal(rig_task(r, i).held_by, member ? GP_HELD_BY_USER : 0);
	}
	/* One that leaves the gang is released, one that joins is held. */
	a = r->attr[2];
	a.gang = 0;
	gp_engine_set_attr(r->engine, 2, &a);
	a.gang = 42;
	gp_engine_set_attr(r->engine, 1, &a);
	rig_run(r, 5 * MS);
	assert_false(rig_is(r, 1)->held);
	assert_true(rig_is(r, 0)->held);
	/* Two members were asked for: taking one back leaves the other. */
	gp_engine_user_hold(r->engine, 5);
	gp_engine_user_release(r->engine, 4);
	rig_run(r, 5 * MS);
	assert_true(rig_is(r, 3)->held && rig_is(r, 4)->held);
	/* A member that is held only with its gang is released with it. */
	gp_engine_user_release(r->engine, 4);
	rig_run(r, 5 * MS);
	for (uint32_t i = 0; i < 5; i++)
		assert_false(rig_is(r, i)->held);
	rig_free(r);
}

static void an_unmanaged_task_is_in_no_gang(void **state)
{
	struct rig *r = rig_new(4);

	(void)state;
	rig_add(r, GP_UNMANAGED);
	rig_add(r, GP_BEST_EFFORT);
	rig_add(r, GP_BEST_EFFORT);
	r->attr[1].gang = r->attr[2].gang = r->attr[3].gang = 5;
	rig_start(r, &gp_policy_none);
	assert_int_equal(gp_engine_view(r->engine)->task[0].gang, 0);
	assert_int_equal(gp_engine_view(r->engine)->task[2].gang, 1);
	gp_engine_user_hold(r->engine, 2);
	rig_run(r, 5 * MS);
	assert_false(rig_is(r, 0)->held);
	assert_true(rig_is(r, 2)->held);
	gp_engine_user_release(r->engine, 2);
	gp_engine_user_hold(r->engine, 1);
	rig_run(r, 5 * MS);
	assert_true(rig_is(r, 0)->held);
	assert_false(rig_is(r, 1)->held || rig_is(r, 2)->held);
	rig_free(r);
}

static void users_can_hold_as_many_as_the_device_can_and_no_more(void **state)
{
	struct rig *r = rig_new(8);

	(void)state;
	for (int i = 0; i < 5; i++)
		rig_add(r, GP_BEST_EFFORT);
	r->attr[4].gang = r->attr[5].gang = 1;
	r->gpu.base.info.max_held = 3;
	rig_start(r, &gp_policy_none);
	assert_int_equal(gp_engine_user_hold(r->engine, 1), 0);
	assert_int_equal(gp_engine_user_hold(r->engine, 1), 0); /* the same is not one more */
	assert_int_equal(gp_engine_user_hold(r->engine, 2), 0);
	assert_int_equal(gp_engine_user_hold(r->engine, 5), -ENOSPC); /* a gang of two */
	assert_int_equal(gp_engine_user_hold(r->engine, 3), 0);
	rig_run(r, 5 * MS);
	assert_int_equal(gp_engine_user_release(r->engine, 1), 0);
	assert_int_equal(gp_engine_user_release(r->engine, 2), 0);
	assert_int_equal(gp_engine_user_hold(r->engine, 5), 0);
	rig_run(r, 10 * MS);
	for (uint32_t h = 0; h < 5; h++)
		assert_int_equal(rig_is(r, h)->held, h >= 2);
	assert_int_equal(r->gpu.most_held, 3);
	rig_free(r);
}

static void the_gang_lives_on_when_its_first_task_exits(void **state)
{
	struct rig *r = rig_new(4);

	(void)state;
	for (int i = 0; i < 3; i++)
		rig_add(r, GP_BEST_EFFORT);
	r->attr[1].gang = r->attr[2].gang = r->attr[3].gang = 7;
	rig_start(r, &gp_policy_none);
	gp_engine_user_hold(r->engine, 2);
	rig_run(r, 5 * MS);
	r->gpu.task[0].present = false;
	gp_engine_trigger(r->engine, true);
	rig_run(r, 5 * MS);
	assert_int_equal(gp_engine_tasks(r->engine), 2);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(gp_engine_view(r->engine)->task[i].gang, 0);
	assert_true(rig_is(r, 2)->held);
	rig_free(r);
}

/* ---- desired state ---- */

static void a_hold_that_somebody_undoes_is_counted_and_applied_again(void **state)
{
	struct rig *r = rig_new(4);

	(void)state;
	rig_add(r, GP_BEST_EFFORT);
	rig_add(r, GP_BEST_EFFORT);
	want(1, GP_HOLD, 0);
	want(2, GP_RUN, 5000);
	rig_start(r, &watching);
	rig_run(r, 10 * MS);
	assert_int_equal(rig_stats(r)->undone, 0);
	for (unsigned i = 1; i <= 5; i++) {
		rig_is(r, 0)->held = false;
		rig_run(r, 10 * MS);
		assert_true(rig_is(r, 0)->held);
		assert_int_equal(rig_task(r, 0).undone, i);
	}
	assert_int_equal(rig_task(r, 1).undone, 0);
	rig_is(r, 1)->slice_us = 2;
	rig_run(r, 10 * MS);
	assert_int_equal(rig_is(r, 1)->slice_us, 5000);
	assert_int_equal(rig_task(r, 1).undone, 1);
	assert_int_equal(rig_stats(r)->undone, 6);
	assert_int_equal(r->events[GP_EVENT_UNDONE], 6);
	assert_int_equal(r->last[GP_EVENT_UNDONE].task, 2);
	assert_int_equal(rig_stats(r)->failures, 0);
	rig_free(r);
}

static void an_action_on_its_way_that_is_late_is_not_called_undone(void **state)
{
	struct rig *r = rig_new(4);

	(void)state;
	rig_add(r, GP_BEST_EFFORT);
	want(1, GP_HOLD, 0);
	r->gpu.fault[FAKE_HOLD] = (struct fake_fault){.asks_to_wait = true, .delay_ns = 10 * MS};
	rig_start(r, &watching);
	rig_run(r, 9 * MS);
	assert_false(rig_is(r, 0)->held);
	assert_int_equal(r->gpu.nasked, 1); /* and is not asked for twice */
	rig_run(r, 5 * MS);
	assert_true(rig_task(r, 0).held);
	assert_int_equal(r->gpu.nasked, 1);
	assert_int_equal(rig_stats(r)->undone, 0);
	assert_int_equal(rig_stats(r)->failures, 0);
	assert_int_equal(rig_stats(r)->hold_ns.count, 1);
	assert_in_range(rig_stats(r)->hold_ns.max, 10 * MS, 12 * MS);
	rig_free(r);
}

static void what_others_do_while_an_action_is_under_way_is_not_called_undone(void **state)
{
	struct rig *r = rig_new(4);

	(void)state;
	rig_add(r, GP_BEST_EFFORT);
	rig_add(r, GP_BEST_EFFORT);
	want(1, GP_HOLD, 0);
	want(2, GP_RUN, 3000);
	r->gpu.fault[FAKE_HOLD] = (struct fake_fault){.asks_to_wait = true, .delay_ns = 10 * MS};
	r->gpu.fault[FAKE_SLICE] = (struct fake_fault){.asks_to_wait = true, .delay_ns = 10 * MS};
	rig_start(r, &watching);
	rig_run(r, 3 * MS);
	rig_is(r, 0)->held = true;
	rig_is(r, 1)->slice_us = 700;
	rig_run(r, 50 * MS);
	assert_true(rig_is(r, 0)->held);
	assert_int_equal(rig_is(r, 1)->slice_us, 3000);
	assert_int_equal(rig_stats(r)->undone, 0);
	rig_free(r);
}

static void an_order_that_is_reversed_on_its_way_is_not_called_undone(void **state)
{
	struct rig *r = rig_new(4);

	(void)state;
	rig_add(r, GP_BEST_EFFORT);
	want(1, GP_HOLD, 0);
	r->gpu.fault[FAKE_HOLD] = (struct fake_fault){.asks_to_wait = true, .delay_ns = 4 * MS};
	r->gpu.fault[FAKE_RELEASE] = (struct fake_fault){.asks_to_wait = true, .delay_ns = 4 * MS};
	rig_start(r, &watching);
	rig_run(r, 1 * MS);
	want(1, GP_RUN, 0); /* changes its mind before the hold is there */
	gp_engine_trigger(r->engine, false);
	rig_run(r, 50 * MS);
	assert_false(rig_is(r, 0)->held);
	assert_false(rig_task(r, 0).held);
	assert_int_equal(rig_stats(r)->undone, 0);
	rig_free(r);
}

static void nothing_is_asked_for_twice_while_all_is_as_it_should_be(void **state)
{
	struct rig *r = rig_new(4);

	(void)state;
	for (int i = 0; i < 3; i++)
		rig_add(r, GP_BEST_EFFORT);
	want(1, GP_HOLD, 0);
	want(2, GP_RUN, 5000);
	want(3, GP_RUN, 0);
	rig_start(r, &watching);
	rig_run(r, 1 * S);
	assert_int_equal(r->gpu.nasked, 2);
	assert_true(rig_stats(r)->looks > 100);
	rig_free(r);
}

static void what_can_never_be_seen_is_believed_when_accepted(void **state)
{
	struct rig *r = rig_new(4);

	(void)state;
	rig_add(r, GP_BEST_EFFORT);
	rig_add(r, GP_BEST_EFFORT);
	rig_is(r, 0)->known = rig_is(r, 1)->known = 0;
	want(1, GP_HOLD, 0);
	want(2, GP_RUN, 10);
	rig_start(r, &watching);
	rig_run(r, 200 * MS);
	assert_int_equal(r->gpu.nasked, 2);
	assert_true(rig_task(r, 0).held);
	assert_int_equal(rig_task(r, 1).slice_us, 10);
	assert_int_equal(rig_stats(r)->failures, 0);
	assert_int_equal(rig_stats(r)->hold_ns.count, 1);
	want(1, GP_RUN, 0);
	want(2, GP_RUN, 0);
	rig_run(r, 200 * MS);
	assert_false(rig_is(r, 0)->held);
	assert_int_equal(rig_is(r, 1)->slice_us, 0);
	assert_int_equal(rig_stats(r)->release_ns.count, 1);
	rig_free(r);
}

/* ---- actions ---- */

static void tasks_to_hold_or_release_go_in_one_call(void **state)
{
	struct rig *r = rig_new(32);

	(void)state;
	for (uint64_t id = 1; id <= 20; id++) {
		rig_add(r, GP_BEST_EFFORT);
		want(id, GP_HOLD, 0);
	}
	rig_start(r, &scripted);
	assert_int_equal(r->gpu.calls, 1);
	assert_int_equal(r->gpu.nasked, 20);
	assert_int_equal(rig_stats(r)->holds, 20);
	rig_run(r, 10 * MS);
	for (uint64_t id = 1; id <= 20; id++)
		want(id, GP_RUN, 4000);
	gp_engine_trigger(r->engine, false);
	rig_step(r);
	assert_int_equal(r->gpu.calls, 3);
	assert_int_equal(rig_stats(r)->slices, 20);
	assert_int_equal(rig_stats(r)->releases, 20);
	rig_free(r);
}

static void longer_slices_come_first_then_holds_tiny_slices_and_releases(void **state)
{
	struct rig *r = rig_new(8);
	const struct fake_act expected[] = {
		{.kind = FAKE_SLICE, .handle = 1, .slice_us = 3000},
		{.kind = FAKE_SLICE, .handle = 4, .slice_us = 0},
		{.kind = FAKE_HOLD, .handle = 2},
		{.kind = FAKE_SLICE, .handle = 0, .slice_us = 1},
		{.kind = FAKE_RELEASE, .handle = 3},
	};

	(void)state;
	for (int i = 0; i < 5; i++)
		rig_add(r, GP_BEST_EFFORT);
	want(1, GP_RUN, 0);
	want(2, GP_RUN, 0);
	want(3, GP_RUN, 0);
	want(4, GP_HOLD, 0);
	want(5, GP_RUN, 9000);
	for (enum fake_kind k = 0; k < FAKE_KINDS; k++)
		r->gpu.fault[k].observed = true;
	rig_start(r, &scripted);
	rig_step(r);
	r->gpu.nasked = 0;
	want(1, GP_RUN, 1);
	want(2, GP_RUN, 3000);
	want(3, GP_HOLD, 0);
	want(4, GP_RUN, 0);
	want(5, GP_RUN, 0);
	rig_step(r);
	assert_int_equal(r->gpu.nasked, 5);
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(r->gpu.asked[i].kind, expected[i].kind);
		assert_int_equal(r->gpu.asked[i].handle, expected[i].handle);
		assert_int_equal(r->gpu.asked[i].slice_us, expected[i].slice_us);
	}
	rig_free(r);
}

static void the_slice_of_a_held_task_is_set_before_its_release(void **state)
{
	struct rig *r = rig_new(8);

	(void)state;
	rig_add(r, GP_BEST_EFFORT);
	want(1, GP_HOLD, 0);
	rig_start(r, &scripted);
	want(1, GP_HOLD, 3000); /* means nothing while it is held */
	rig_run(r, 200 * MS);
	assert_int_equal(r->gpu.nasked, 1);
	want(1, GP_RUN, 3000);
	rig_run(r, 200 * MS);
	assert_int_equal(r->gpu.nasked, 3);
	assert_int_equal(r->gpu.asked[1].kind, FAKE_SLICE);
	assert_int_equal(r->gpu.asked[2].kind, FAKE_RELEASE);
	assert_false(rig_is(r, 0)->held);
	assert_int_equal(rig_is(r, 0)->slice_us, 3000);
	rig_free(r);
}

static void the_tiny_slice_changes_hands_only_behind_the_hold(void **state)
{
	struct rig *r = rig_new(8);

	(void)state;
	rig_add(r, GP_BEST_EFFORT);
	rig_add(r, GP_BEST_EFFORT);
	want(1, GP_RUN, 1);
	want(2, GP_HOLD, 0);
	for (enum fake_kind k = 0; k < FAKE_KINDS; k++)
		r->gpu.fault[k] = (struct fake_fault){.asks_to_wait = true, .delay_ns = 1 * MS};
	rig_start(r, &watching);
	for (int turn = 0; turn < 20; turn++) {
		rig_run(r, 20 * MS);
		want(1, turn % 2 ? GP_RUN : GP_HOLD, 1);
		want(2, turn % 2 ? GP_HOLD : GP_RUN, 1);
	}
	assert_false(r->gpu.two_tiny);
	assert_true(rig_stats(r)->deferred > 0);
	assert_int_equal(rig_stats(r)->failures, 0);
	assert_int_equal(rig_stats(r)->undone, 0);
	rig_free(r);
}

static void a_tiny_slice_that_the_plan_leaves_alone_keeps_others_from_having_one(void **state)
{
	struct rig *r = rig_new(8);

	(void)state;
	rig_add(r, GP_BEST_EFFORT);
	rig_add(r, GP_BEST_EFFORT);
	rig_add(r, GP_LATENCY_CRITICAL);
	rig_is(r, 2)->slice_us = GP_TINY_SLICE_US; /* not best-effort: does not count */
	want(1, GP_RUN, GP_TINY_SLICE_US);
	rig_start(r, &watching);
	rig_run(r, 10 * MS);
	assert_int_equal(rig_is(r, 0)->slice_us, GP_TINY_SLICE_US);
	want(1, GP_LEAVE, 0);
	want(2, GP_RUN, 1);
	rig_run(r, 200 * MS);
	assert_int_equal(rig_is(r, 1)->slice_us, 0);
	assert_true(rig_stats(r)->deferred > 0);
	want(1, GP_RUN, GP_TINY_SLICE_US + 1);
	rig_run(r, 10 * MS);
	assert_int_equal(rig_is(r, 1)->slice_us, 1);
	rig_free(r);
}

static void on_a_full_device_one_is_released_before_the_next_is_held(void **state)
{
	struct rig *r = rig_new(8);

	(void)state;
	rig_add(r, GP_BEST_EFFORT);
	rig_add(r, GP_BEST_EFFORT);
	r->gpu.base.info.max_held = 1;
	want(1, GP_RUN, 1);
	want(2, GP_HOLD, 0);
	for (enum fake_kind k = 0; k < FAKE_KINDS; k++)
		r->gpu.fault[k] = (struct fake_fault){.asks_to_wait = true, .delay_ns = 1 * MS};
	rig_start(r, &watching);
	for (int turn = 0; turn < 20; turn++) { /* with the tiny slice, each has to go first */
		rig_run(r, 30 * MS);
		assert_int_equal(rig_is(r, 0)->held, turn && !((turn - 1) % 2));
		assert_int_equal(rig_is(r, 1)->held, !turn || (turn - 1) % 2);
		want(1, turn % 2 ? GP_RUN : GP_HOLD, 1);
		want(2, turn % 2 ? GP_HOLD : GP_RUN, 1);
	}
	assert_int_equal(r->gpu.most_held, 1);
	assert_false(r->gpu.two_tiny);
	assert_true(rig_stats(r)->deferred > 0);
	assert_int_equal(rig_stats(r)->failures, 0);
	rig_free(r);
}

static void holds_of_one_batch_share_the_room_that_is_left(void **state)
{
	struct rig *r = rig_new(8);

	(void)state;
	for (int i = 0; i < 3; i++)
		rig_add(r, GP_BEST_EFFORT);
	r->gpu.base.info.max_held = 2;
	want(1, GP_HOLD, 0);
	want(2, GP_RUN, 0);
	want(3, GP_RUN, 0);
	rig_start(r, &watching);
	rig_run(r, 10 * MS);
	want(1, GP_RUN, 0);
	want(2, GP_HOLD, 0);
	want(3, GP_HOLD, 0);
	rig_run(r, 30 * MS);
	assert_true(rig_is(r, 1)->held && rig_is(r, 2)->held && !rig_is(r, 0)->held);
	assert_int_equal(r->gpu.most_held, 2);
	rig_free(r);
}

static void a_step_allocates_nothing_once_the_tasks_are_there(void **state)
{
	struct rig *r = rig_new(200);
	struct gp_task_attr a = {.class = GP_BEST_EFFORT, .weight = 100};
	size_t before;

	(void)state;
	for (uint64_t i = 1; i <= 200; i++)
		rig_add(r, i % 2 ? GP_BEST_EFFORT : GP_LATENCY_CRITICAL);
	rig_start(r, &gp_policy_priority);
	rig_run(r, 10 * MS);
	fake_reserve(&r->gpu, 100000); /* the test's own memory */
	before = mallinfo2().uordblks;
	for (uint64_t i = 1; i <= 200; i++) {
		a.gang = i;
		assert_int_equal(gp_engine_set_attr(r->engine, i, &a), 0);
		if (i % 5 == 0)
			gp_engine_user_hold(r->engine, i);
		rig_run(r, 2 * MS);
	}
	assert_int_equal(mallinfo2().uordblks, before);
	assert_true(r->gpu.nasked > 100);
	rig_free(r);
}

static void a_device_without_slices_or_holds_is_not_asked_for_them(void **state)
{
	struct rig *r = rig_new(4);

	(void)state;
	rig_add(r, GP_BEST_EFFORT);
	r->gpu.base.info.caps = 0;
	r->gpu.base.info.max_held = 0;
	want(1, GP_RUN, 0);
	rig_start(r, &scripted);
	rig_is(r, 0)->held = true;
	rig_is(r, 0)->slice_us = 5;
	rig_run(r, 1 * S);
	assert_int_equal(r->gpu.nasked, 0);
	rig_free(r);
}

/* ---- the undo record ---- */

struct undo_log {
	unsigned records;
	uint64_t key[16];
	int fails;
};

static struct undo_log undo_log;

static int keep_undo(void *arg, const struct gp_undo *undo)
{
	const struct rig *r = arg;
	uint32_t handle = (uint32_t)(undo->key - 1);

	assert_int_equal(undo->pid, 1000 + handle);
	assert_int_equal(undo->size, 1);
	assert_int_equal(undo->data[0], handle);
	for (enum fake_kind k = 0; k < FAKE_KINDS; k++) /* before anything was changed */
		assert_int_equal(fake_count(&r->gpu, k, handle, 0), 0);
	if (undo_log.fails)
		return undo_log.fails;
	undo_log.key[undo_log.records++] = undo->key;
	return 0;
}

static void the_undo_record_is_kept_once_before_the_first_change(void **state)
{
	struct rig *r = rig_new(4);

	(void)state;
	memset(&undo_log, 0, sizeof undo_log);
	for (int i = 0; i < 3; i++)
		rig_add(r, GP_BEST_EFFORT);
	r->config.before_change = keep_undo;
	want(1, GP_HOLD, 0);
	want(2, GP_RUN, 3000);
	rig_start(r, &watching);
	assert_int_equal(undo_log.records, 2);
	for (uint32_t turn = 0; turn < 10; turn++) {
		want(1, turn % 2 ? GP_HOLD : GP_RUN, 0);
		want(2, GP_RUN, 1000 + turn);
		rig_run(r, 20 * MS);
	}
	assert_int_equal(undo_log.records, 2);
	assert_int_equal(r->gpu.undo_records, 2);
	want(3, GP_HOLD, 0);
	rig_run(r, 20 * MS);
	assert_int_equal(undo_log.records, 3);
	assert_int_equal(undo_log.key[0] + undo_log.key[1], 1 + 2);
	assert_int_equal(undo_log.key[2], 3);
	rig_free(r);
}

static void without_an_undo_record_there_is_no_change_at_all(void **state)
{
	(void)state;
	for (int who = 0; who < 2; who++) {
		struct rig *r = rig_new(4);

		memset(&undo_log, 0, sizeof undo_log);
		rig_add(r, GP_BEST_EFFORT);
		rig_add(r, GP_BEST_EFFORT);
		r->config.before_change = keep_undo;
		undo_log.fails = who ? 0 : -ENOSPC;
		r->gpu.undo_fails = who ? -EIO : 0;
		want(1, GP_HOLD, 0);
		want(2, GP_RUN, 3000);
		rig_start(r, &watching);
		rig_run(r, 300 * MS);
		assert_int_equal(r->gpu.nasked, 0);
		assert_true(rig_stats(r)->failures > 4);
		assert_int_equal(r->last[GP_EVENT_ACTION_FAILED].code, who ? -EIO : -ENOSPC);
		undo_log.fails = r->gpu.undo_fails = 0;
		rig_run(r, 1100 * MS);
		assert_true(rig_is(r, 0)->held);
		assert_int_equal(rig_is(r, 1)->slice_us, 3000);
		rig_free(r);
	}
}

static void an_undo_record_that_could_not_be_kept_is_tried_again_when_it_is_due(void **state)
{
	struct rig *r = rig_new(4);

	(void)state;
	memset(&undo_log, 0, sizeof undo_log);
	rig_add(r, GP_BEST_EFFORT);
	r->config.before_change = keep_undo;
	undo_log.fails = -ENOSPC;
	want(1, GP_HOLD, 0);
	rig_start(r, &scripted); /* does not watch: nothing else makes the engine look */
	undo_log.fails = 0;
	rig_run(r, 5 * MS);
	assert_true(rig_is(r, 0)->held);
	rig_free(r);
}

/* ---- when to look again ---- */

static uint64_t wait_of(struct rig *r)
{
	return rig_step(r) - r->now_ns;
}

/* A rig whose next scan is far away. */
static struct rig *rig_without_scans(void)
{
	struct rig *r = rig_new(8);

	r->config.scan_every_ns = 3600 * S;
	return r;
}

static void it_polls_every_5_ms_where_nothing_announces_changes(void **state)
{
	struct rig *r = rig_without_scans();

	(void)state;
	rig_add(r, GP_BEST_EFFORT);
	rig_add(r, GP_UNMANAGED);
	rig_start(r, &watching);
	assert_int_equal(wait_of(r), 5 * MS);
	rig_set_policy(r, &scripted); /* does not watch */
	assert_int_equal(wait_of(r), 1 * S);
	rig_set_policy(r, &watching);
	r->gpu.base.info.caps |= GP_CAP_EVENTS;
	assert_int_equal(wait_of(r), 1 * S);
	rig_free(r);
}

static void it_does_not_poll_where_there_is_nothing_to_share(void **state)
{
	struct rig *r = rig_without_scans();
	struct gp_task_attr a = {.class = GP_BEST_EFFORT, .weight = 100};

	(void)state;
	rig_start(r, &watching);
	assert_int_equal(wait_of(r), 1 * S);
	rig_add(r, GP_UNMANAGED);
	rig_add(r, GP_UNMANAGED);
	gp_engine_trigger(r->engine, true);
	assert_int_equal(wait_of(r), 1 * S);
	gp_engine_set_attr(r->engine, 1, &a);
	assert_int_equal(wait_of(r), 5 * MS);
	r->gpu.task[1].present = false;
	gp_engine_trigger(r->engine, true);
	assert_int_equal(wait_of(r), 1 * S);
	rig_free(r);
}

static void rr_does_not_poll_where_the_hardware_takes_turns(void **state)
{
	struct rig *r = rig_without_scans();

	(void)state;
	rig_add(r, GP_BEST_EFFORT);
	rig_add(r, GP_BEST_EFFORT);
	rig_start(r, &gp_policy_rr);
	rig_run(r, 50 * MS);
	assert_int_equal(wait_of(r), 1 * S);
	rig_free(r);
}

static void it_polls_every_millisecond_with_a_latency_critical_task(void **state)
{
	struct rig *r = rig_without_scans();
	struct gp_task_attr a = {.class = GP_LATENCY_CRITICAL, .weight = 100};

	(void)state;
	for (int i = 0; i < 3; i++)
		rig_add(r, GP_BEST_EFFORT);
	rig_start(r, &watching);
	gp_engine_set_attr(r->engine, 2, &a);
	assert_int_equal(wait_of(r), 1 * MS);
	r->gpu.task[1].present = false;
	gp_engine_trigger(r->engine, true);
	assert_int_equal(wait_of(r), 5 * MS);
	rig_free(r);
}

static void it_never_polls_more_often_than_there_is_news(void **state)
{
	struct rig *r = rig_without_scans();

	(void)state;
	rig_add(r, GP_LATENCY_CRITICAL);
	rig_add(r, GP_BEST_EFFORT);
	r->gpu.base.info.news_every_ns = 167 * MS;
	rig_start(r, &watching);
	assert_int_equal(wait_of(r), 167 * MS);
	script.next_ns = r->now_ns + 3 * MS; /* the policy itself may ask for more */
	assert_int_equal(wait_of(r), 3 * MS);
	rig_free(r);
}

static void the_intervals_can_be_set(void **state)
{
	struct rig *r = rig_without_scans();

	(void)state;
	rig_add(r, GP_BEST_EFFORT);
	rig_add(r, GP_BEST_EFFORT);
	r->config.check_ns = 7 * MS;
	r->config.check_lc_ns = 2 * MS;
	r->config.check_quiet_ns = 3 * S;
	rig_start(r, &watching);
	assert_int_equal(wait_of(r), 7 * MS);
	rig_set_policy(r, &scripted);
	assert_int_equal(wait_of(r), 3 * S);
	rig_add(r, GP_LATENCY_CRITICAL);
	gp_engine_trigger(r->engine, true);
	rig_set_policy(r, &watching);
	assert_int_equal(wait_of(r), 2 * MS);
	rig_free(r);
}

static void the_plan_can_ask_for_an_earlier_look_but_not_for_a_later_one(void **state)
{
	struct rig *r = rig_without_scans();

	(void)state;
	rig_add(r, GP_BEST_EFFORT);
	rig_start(r, &scripted);
	script.next_ns = r->now_ns + 1;
	assert_int_equal(wait_of(r), 1);
	script.next_ns = r->now_ns + 12345;
	assert_int_equal(wait_of(r), 12345);
	script.next_ns = r->now_ns + 2 * S;
	assert_int_equal(wait_of(r), 1 * S);
	script.next_ns = GP_NEVER;
	assert_int_equal(wait_of(r), 1 * S);
	rig_free(r);
}

static void an_action_on_its_way_is_looked_at_soon(void **state)
{
	struct rig *r = rig_without_scans();

	(void)state;
	rig_add(r, GP_BEST_EFFORT);
	want(1, GP_HOLD, 0);
	r->gpu.fault[FAKE_HOLD] = (struct fake_fault){.asks_to_wait = true, .delay_ns = 2500000};
	rig_start(r, &scripted);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(gp_engine_next_ns(r->engine), r->now_ns + 1 * MS);
		r->now_ns += 1 * MS;
		rig_step(r);
	}
	assert_true(rig_task(r, 0).held);
	assert_int_equal(gp_engine_next_ns(r->engine), r->now_ns + 1 * S);
	rig_free(r);
}

static void a_trigger_wants_a_look_at_once(void **state)
{
	struct rig *r = rig_new(4);
	unsigned scans;

	(void)state;
	rig_make(r);
	assert_int_equal(gp_engine_next_ns(r->engine), 0); /* nothing was seen yet */
	rig_step(r);
	scans = r->gpu.scans;
	gp_engine_trigger(r->engine, false);
	assert_int_equal(gp_engine_next_ns(r->engine), 0);
	rig_step(r);
	assert_int_equal(r->gpu.scans, scans);
	gp_engine_trigger(r->engine, true);
	assert_int_equal(gp_engine_next_ns(r->engine), 0);
	gp_engine_trigger(r->engine, false); /* does not take the wish for a scan back */
	rig_step(r);
	assert_int_equal(r->gpu.scans, scans + 1);
	rig_free(r);
}

static void it_scans_every_100_ms(void **state)
{
	struct rig *r = rig_new(4);
	uint64_t begin_ns = r->now_ns;

	(void)state;
	rig_start(r, &scripted);
	assert_int_equal(r->gpu.scans, 1);
	assert_int_equal(gp_engine_next_ns(r->engine), begin_ns + 100 * MS);
	rig_run(r, 99 * MS);
	assert_int_equal(r->gpu.scans, 1);
	rig_run(r, 901 * MS);
	assert_int_equal(r->gpu.scans, 11);
	rig_set_policy(r, &watching); /* looking more often is not scanning more often */
	rig_run(r, 1 * S);
	assert_int_equal(r->gpu.scans, 21);
	rig_free(r);
}

static void a_scan_that_fails_changes_nothing(void **state)
{
	struct rig *r = rig_new(4);

	(void)state;
	rig_add(r, GP_BEST_EFFORT);
	want(1, GP_HOLD, 0);
	rig_start(r, &scripted);
	r->gpu.scan_fails = -EIO;
	rig_add(r, GP_BEST_EFFORT);
	rig_run(r, 1 * S);
	assert_int_equal(gp_engine_tasks(r->engine), 1);
	assert_int_equal(rig_task(r, 0).id, 1);
	assert_true(rig_is(r, 0)->held);
	assert_in_range(r->gpu.scans, 10, 12);
	r->gpu.scan_fails = 0;
	rig_run(r, 100 * MS);
	assert_int_equal(gp_engine_tasks(r->engine), 2);
	rig_free(r);
}

/* ---- what is seen and counted ---- */

static void what_is_not_known_is_not_in_the_view(void **state)
{
	struct rig *r = rig_new(4);
	const struct gp_task_view *v;

	(void)state;
	rig_add(r, GP_BEST_EFFORT);
	rig_is(r, 0)->known = GP_KNOWN_WAITED | GP_KNOWN_PENDING; /* WAITED is the engine's own */
	rig_is(r, 0)->pending = 3;
	rig_start(r, &scripted);
	v = gp_engine_view(r->engine)->task;
	assert_int_equal(v->known, GP_KNOWN_PENDING);
	assert_int_equal(v->pending, 3);
	assert_false(rig_task(r, 0).waited_known);
	assert_int_equal(rig_task(r, 0).run_source, GP_RUN_UNKNOWN);
	rig_is(r, 0)->known = GP_KNOWN_RUN | GP_KNOWN_ACTIVE_SINCE;
	rig_is(r, 0)->run_source = GP_RUN_MEASURED;
	rig_is(r, 0)->run_ns = 123;
	rig_is(r, 0)->active_since_ns = 456;
	rig_step(r);
	assert_int_equal(v->known, GP_KNOWN_RUN | GP_KNOWN_ACTIVE_SINCE | GP_KNOWN_WAITED);
	assert_int_equal(v->run_ns, 123);
	assert_int_equal(v->active_since_ns, 456);
	assert_int_equal(rig_task(r, 0).run_ns, 123);
	assert_int_equal(rig_task(r, 0).run_source, GP_RUN_MEASURED);
	rig_free(r);
}

static void the_view_carries_the_devices_properties(void **state)
{
	struct rig *r = rig_new(4);
	const struct gp_view *v;

	(void)state;
	r->gpu.base.info = (struct gp_gpu_info){.caps = GP_CAP_HOLD | GP_CAP_BRACKETS,
	                                        .max_held = 3,
	                                        .slice_default_us = 11,
	                                        .slice_min_us = 12,
	                                        .slice_max_us = 13,
	                                        .switch_cost_ns = 14,
	                                        .news_every_ns = 15};
	r->config.starve_limit_ns = 16;
	rig_start(r, &scripted);
	v = gp_engine_view(r->engine);
	assert_int_equal(v->now_ns, r->now_ns);
	assert_int_equal(v->caps, GP_CAP_HOLD | GP_CAP_BRACKETS);
	assert_int_equal(v->max_held, 3);
	assert_int_equal(v->slice_default_us, 11);
	assert_int_equal(v->slice_min_us, 12);
	assert_int_equal(v->slice_max_us, 13);
	assert_int_equal(v->switch_cost_ns, 14);
	assert_int_equal(v->news_every_ns, 15);
	assert_int_equal(v->starve_limit_ns, 16);
	assert_int_equal(v->n, 0);
	rig_free(r);
}

static uint64_t waited(const struct rig *r, unsigned i)
{
	const struct gp_task_view *v = &gp_engine_view(r->engine)->task[i];

	assert_true(v->known & GP_KNOWN_WAITED);
	return v->waited_ns;
}

/* One look after that long. */
static void look_after(struct rig *r, uint64_t after_ns)
{
	r->now_ns += after_ns;
	rig_step(r);
}

static void waiting_is_counted_while_a_busy_task_is_seen_off_the_hardware(void **state)
{
	struct rig *r = rig_new(4);

	(void)state;
	rig_add(r, GP_BEST_EFFORT);
	r->gpu.base.info.caps &= ~(uint32_t)GP_CAP_SLICE;
	rig_start(r, &scripted);
	rig_run(r, 50 * MS);
	rig_step(r);
	assert_int_equal(waited(r, 0), 0);
	rig_is(r, 0)->running = false;
	look_after(r, 30 * MS);
	assert_int_equal(waited(r, 0), 30 * MS);
	rig_is(r, 0)->active = false; /* wants nothing any more */
	look_after(r, 30 * MS);
	rig_is(r, 0)->active = true;
	look_after(r, 20 * MS);
	assert_int_equal(waited(r, 0), 20 * MS);
	rig_is(r, 0)->known = 0; /* nothing is known: neither is this */
	look_after(r, 10 * MS);
	assert_false(gp_engine_view(r->engine)->task[0].known & GP_KNOWN_WAITED);
	assert_false(rig_task(r, 0).waited_known);
	assert_int_equal(rig_task(r, 0).waited_max_ns, 30 * MS);
	rig_is(r, 0)->known = GP_KNOWN_RUNNING; /* off the hardware, and perhaps idle */
	look_after(r, 10 * MS);
	assert_false(gp_engine_view(r->engine)->task[0].known & GP_KNOWN_WAITED);
	rig_is(r, 0)->known = GP_KNOWN_ACTIVE | GP_KNOWN_RUNNING; /* counting starts again */
	look_after(r, 5 * MS);
	assert_int_equal(waited(r, 0), 5 * MS);
	rig_free(r);
}

static void being_off_the_hardware_says_nothing_where_it_takes_turns_by_itself(void **state)
{
	struct rig *r = rig_new(4);

	(void)state;
	rig_add(r, GP_BEST_EFFORT);
	rig_start(r, &scripted);
	rig_is(r, 0)->running = false;
	look_after(r, 30 * MS);
	assert_false(gp_engine_view(r->engine)->task[0].known & GP_KNOWN_WAITED);
	rig_free(r);
}

static void what_a_user_held_is_not_waited(void **state)
{
	struct rig *r = rig_new(4);

	(void)state;
	rig_add(r, GP_BEST_EFFORT);
	r->gpu.base.info.caps &= ~(uint32_t)GP_CAP_SLICE;
	rig_is(r, 0)->running = false;
	rig_start(r, &watching);
	gp_engine_user_hold(r->engine, 1);
	rig_run(r, 20 * S);
	gp_engine_user_release(r->engine, 1);
	rig_run(r, 5 * S);
	assert_false(rig_is(r, 0)->held);
	assert_in_range(waited(r, 0), 4990 * MS, 5000 * MS);
	assert_null(gp_engine_ejection(r->engine));
	rig_free(r);
}

static void waiting_is_counted_up_to_the_last_sample_of_the_run_time(void **state)
{
	struct rig *r = rig_new(4);
	struct gp_observation *is;

	(void)state;
	rig_add(r, GP_BEST_EFFORT);
	is = rig_is(r, 0);
	is->known = GP_KNOWN_RUN;
	is->run_source = GP_RUN_MEASURED;
	is->run_ns = 5;
	is->run_at_ns = r->now_ns;
	rig_start(r, &scripted);
	is->run_at_ns = r->now_ns + 40 * MS; /* the sample says it got nothing */
	r->now_ns += 60 * MS;
	rig_step(r);
	assert_int_equal(waited(r, 0), 40 * MS);
	is->run_ns +=
		1 * GP_NS_PER_US; /* a crumb counts: whether it was enough, the policy knows */
	is->run_at_ns = r->now_ns + 10 * MS;
	r->now_ns += 15 * MS;
	rig_step(r);
	assert_int_equal(waited(r, 0), 0);
	/* Crumbs make a meal: a fiftieth of the time is worth the name. */
	is->run_at_ns = r->now_ns;
	for (int i = 0; i < 10; i++) {
		is->run_ns += 20 * GP_NS_PER_US;
		is->run_at_ns += 1 * MS;
		r->now_ns += 1 * MS;
		rig_step(r);
	}
	assert_int_equal(waited(r, 0), 0);
	is->known |= GP_KNOWN_ACTIVE; /* doing nothing is not waiting */
	is->active = false;
	is->run_at_ns += 50 * MS;
	look_after(r, 50 * MS);
	is->active = true;
	is->run_at_ns += 7 * MS;
	look_after(r, 7 * MS);
	assert_int_equal(waited(r, 0), 7 * MS);
	rig_free(r);
}

static void a_held_task_waits_even_if_its_activity_is_not_known(void **state)
{
	struct rig *r = rig_new(4);

	(void)state;
	rig_add(r, GP_BEST_EFFORT);
	rig_is(r, 0)->known = GP_KNOWN_HELD;
	want(1, GP_HOLD, 0);
	rig_start(r, &scripted);
	r->now_ns += 1 * MS;
	rig_step(r);
	r->now_ns += 40 * MS;
	rig_step(r);
	assert_in_range(waited(r, 0), 40 * MS, 41 * MS);
	want(1, GP_RUN, 0); /* released, it is taken to have the device */
	rig_step(r);
	rig_step(r);
	assert_false(gp_engine_view(r->engine)->task[0].known & GP_KNOWN_WAITED);
	rig_free(r);
}

static void a_released_task_is_taken_to_have_the_device_unless_it_can_be_seen(void **state)
{
	struct rig *r = rig_new(4);

	(void)state;
	rig_add(r, GP_BEST_EFFORT);
	rig_is(r, 0)->known = GP_KNOWN_HELD | GP_KNOWN_RUN;
	rig_is(r, 0)->run_source = GP_RUN_MEASURED;
	want(1, GP_HOLD, 0);
	rig_start(r, &scripted);
	look_after(r, 1 * MS);
	look_after(r, 40 * MS);
	assert_in_range(waited(r, 0), 40 * MS, 41 * MS);
	want(1, GP_RUN, 0);
	rig_is(r, 0)->run_at_ns = r->now_ns;
	rig_step(r);
	look_after(r, 1 * MS); /* the last sample is from before that: it says nothing */
	assert_false(gp_engine_view(r->engine)->task[0].known & GP_KNOWN_WAITED);
	assert_true(rig_task(r, 0).waited_max_ns < 50 * MS);
	rig_is(r, 0)->run_at_ns = r->now_ns + 2 * MS;
	look_after(r, 3 * MS);
	assert_int_equal(waited(r, 0), 2 * MS);
	rig_free(r);
}

static void time_held_and_preemptions_are_counted(void **state)
{
	struct rig *r = rig_new(4);

	(void)state;
	rig_add(r, GP_BEST_EFFORT);
	rig_add(r, GP_BEST_EFFORT);
	rig_is(r, 1)->active = false; /* holding what does nothing preempts nobody */
	for (enum fake_kind k = 0; k < FAKE_KINDS; k++)
		r->gpu.fault[k].observed = true;
	rig_start(r, &watching);
	for (int i = 0; i < 3; i++) {
		want(1, GP_HOLD, 0);
		want(2, GP_HOLD, 0);
		rig_step(r);
		rig_run(r, 50 * MS);
		want(1, GP_RUN, 0);
		want(2, GP_RUN, 0);
		rig_step(r);
		rig_run(r, 50 * MS);
	}
	assert_int_equal(rig_task(r, 0).preemptions, 3);
	assert_int_equal(rig_task(r, 1).preemptions, 0);
	assert_int_equal(rig_stats(r)->preemptions, 3);
	assert_int_equal(rig_task(r, 0).held_ns, 150 * MS);
	assert_int_equal(rig_stats(r)->holds, 6);
	assert_int_equal(rig_stats(r)->releases, 6);
	assert_int_equal(rig_stats(r)->slices, 0);
	assert_int_equal(rig_stats(r)->hold_ns.count, 6);
	assert_int_equal(rig_stats(r)->hold_ns.max, 0); /* the back end saw the effect */
	assert_int_equal(rig_stats(r)->release_ns.count, 6);
	assert_int_equal(rig_stats(r)->decide_ns.count, 0); /* nobody measures */
	assert_int_equal(rig_stats(r)->looks, rig_stats(r)->decisions);
	rig_free(r);
}

static void events_say_what_happened_when_and_to_whom(void **state)
{
	struct rig *r = rig_new(4);
	uint64_t begin_ns = r->now_ns;

	(void)state;
	rig_add(r, GP_BEST_EFFORT);
	rig_add(r, GP_BEST_EFFORT);
	want(2, GP_HOLD, 0);
	rig_start(r, &watching);
	assert_int_equal(r->events[GP_EVENT_POLICY], 1);
	assert_int_equal(r->last[GP_EVENT_POLICY].now_ns, begin_ns);
	assert_int_equal(r->events[GP_EVENT_TASK_IN], 2);
	assert_int_equal(r->last[GP_EVENT_TASK_IN].task, 2);
	assert_int_equal(r->events[GP_EVENT_HELD], 0); /* asked for, not seen yet */
	rig_run(r, 5 * MS);
	assert_int_equal(r->events[GP_EVENT_HELD], 1);
	assert_int_equal(r->last[GP_EVENT_HELD].task, 2);
	assert_int_equal(r->last[GP_EVENT_HELD].now_ns, begin_ns + 1 * MS);
	want(2, GP_RUN, 0);
	rig_run(r, 10 * MS);
	assert_int_equal(r->events[GP_EVENT_RELEASED], 1);
	assert_int_equal(r->last[GP_EVENT_RELEASED].task, 2);
	r->gpu.fault[FAKE_HOLD].status = -EPERM;
	want(1, GP_HOLD, 0);
	gp_engine_trigger(r->engine, false);
	rig_step(r);
	assert_int_equal(r->events[GP_EVENT_ACTION_FAILED], 1);
	assert_int_equal(r->last[GP_EVENT_ACTION_FAILED].task, 1);
	assert_int_equal(r->last[GP_EVENT_ACTION_FAILED].code, -EPERM);
	assert_int_equal(r->last[GP_EVENT_ACTION_FAILED].driver_code, 0xbad);
	assert_int_equal(r->last[GP_EVENT_ACTION_FAILED].now_ns, r->now_ns);
	rig_free(r);
}

static void it_works_with_nobody_interested_in_events(void **state)
{
	struct rig *r = rig_new(4);

	(void)state;
	rig_add(r, GP_BEST_EFFORT);
	r->config.on_event = NULL;
	want(1, GP_HOLD, 0);
	rig_start(r, &watching);
	rig_run(r, 10 * MS);
	assert_true(rig_is(r, 0)->held);
	rig_free(r);
}

static void decisions_are_timed_where_there_is_a_clock(void **state)
{
	struct rig *r = rig_new(4);

	(void)state;
	r->config.decide_clock = &r->decide_clock.base;
	script.clock = &r->decide_clock;
	script.takes_ns = 250;
	rig_start(r, &scripted);
	rig_step(r);
	assert_int_equal(rig_stats(r)->decide_ns.count, 2);
	assert_int_equal(rig_stats(r)->decide_ns.min, 250);
	assert_int_equal(rig_stats(r)->decide_ns.max, 250);
	assert_null(gp_engine_ejection(r->engine));
	rig_free(r);
}

/* ---- policies ---- */

static void a_policy_that_needs_what_the_device_lacks_is_refused_in_one_sentence(void **state)
{
	static const struct {
		uint32_t cap;
		const char *word;
	} needs[] = {{GP_CAP_HOLD, "hold"},         {GP_CAP_SLICE, "slice"},
	             {GP_CAP_ACTIVITY, "activity"}, {GP_CAP_EVENTS, "event"},
	             {GP_CAP_BRACKETS, "bracket"},  {GP_CAP_PREEMPT_MODE, "preempt"}};
	struct rig *r = rig_new(4);

	(void)state;
	rig_start(r, &gp_policy_rr);
	for (unsigned i = 0; i < sizeof needs / sizeof *needs; i++) {
		const struct gp_policy_ops needy = {
			.name = "needy", .needs = needs[i].cap, .decide = script_decide};
		const struct gp_policy_choice choice = {.ops = &needy};
		struct gp_error err = {0};

		r->gpu.base.info.caps = ~needs[i].cap;
		assert_int_equal(gp_engine_set_policy(r->engine, r->now_ns, &choice, &err),
		                 -ENOTSUP);
		assert_int_equal(err.code, -ENOTSUP);
		assert_non_null(strstr(err.text, "needy"));
		assert_non_null(strstr(err.text, needs[i].word));
		assert_non_null(strstr(err.text, "fake GPU"));
		assert_null(strchr(err.text, '\n'));
		assert_ptr_equal(gp_engine_policy(r->engine), &gp_policy_rr);
		r->gpu.base.info.caps = needs[i].cap;
		assert_int_equal(gp_engine_set_policy(r->engine, r->now_ns, &choice, NULL), 0);
		rig_set_policy(r, &gp_policy_rr);
	}
	r->gpu.base.info.caps = FAKE_CAPS;
	rig_run(r, 10 * MS);
	rig_free(r);
}

static void the_policy_is_none_until_another_is_set(void **state)
{
	struct rig *r = rig_new(4);

	(void)state;
	rig_make(r);
	assert_ptr_equal(gp_engine_policy(r->engine), &gp_policy_none);
	rig_step(r);
	assert_null(gp_engine_ejection(r->engine));
	rig_set_policy(r, &scripted);
	assert_int_equal(gp_engine_next_ns(r->engine), 0);
	rig_free(r);
}

static void a_policy_reads_its_parameters(void **state)
{
	struct rig *r = rig_new(4);
	struct gp_policy_choice choice;
	struct gp_error err = {0};

	(void)state;
	rig_add(r, GP_BEST_EFFORT);
	rig_start(r, &gp_policy_none);
	assert_int_equal(gp_policy_parse("rr:quantum=4321", &choice, &err), 0);
	assert_int_equal(gp_engine_set_policy(r->engine, r->now_ns, &choice, &err), 0);
	memset(&choice, 0xff, sizeof choice); /* the engine has its own copy */
	rig_run(r, 10 * MS);
	assert_int_equal(rig_is(r, 0)->slice_us, 4321);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tasks_come_in_with_rising_ids_and_go_out),
		cmocka_unit_test(an_id_is_never_given_twice),
		cmocka_unit_test(a_task_that_cannot_be_attached_is_tried_again_at_the_next_scan),
		cmocka_unit_test(freeing_the_engine_puts_every_task_back),
		cmocka_unit_test(tasks_removed_from_the_middle_leave_the_others_their_blobs),
		cmocka_unit_test(a_new_policy_starts_with_clear_blobs_and_the_tasks_that_are_there),
		cmocka_unit_test(arrays_grow_for_as_many_tasks_as_there_are),
		cmocka_unit_test(attributes_come_from_classify),
		cmocka_unit_test(without_classify_every_task_is_unmanaged),
		cmocka_unit_test(attributes_out_of_range_are_refused_and_change_nothing),
		cmocka_unit_test(a_task_that_is_not_there_is_no_such_process),
		cmocka_unit_test(an_unmanaged_task_is_never_touched),
		cmocka_unit_test(what_the_plan_leaves_alone_is_left_alone),
		cmocka_unit_test(a_hold_by_somebody_else_is_left_alone_if_the_plan_says_leave),
		cmocka_unit_test(a_hold_by_somebody_else_is_left_alone_whatever_else_was_changed),
		cmocka_unit_test(a_hold_by_somebody_else_is_not_taken_for_the_users),
		cmocka_unit_test(a_task_that_becomes_unmanaged_is_put_back_and_then_left_alone),
		cmocka_unit_test(putting_back_an_unmanaged_task_is_repeated_until_it_is_done),
		cmocka_unit_test(a_user_holds_even_an_unmanaged_task_under_every_policy),
		cmocka_unit_test(a_user_hold_is_no_starvation_and_no_time_held_by_the_policy),
		cmocka_unit_test(policy_and_user_can_both_hold_and_each_lets_go_for_itself),
		cmocka_unit_test(a_device_that_cannot_hold_refuses_a_users_hold),
		cmocka_unit_test(a_users_hold_spreads_over_the_gang_and_no_further),
		cmocka_unit_test(an_unmanaged_task_is_in_no_gang),
		cmocka_unit_test(users_can_hold_as_many_as_the_device_can_and_no_more),
		cmocka_unit_test(the_gang_lives_on_when_its_first_task_exits),
		cmocka_unit_test(a_hold_that_somebody_undoes_is_counted_and_applied_again),
		cmocka_unit_test(an_action_on_its_way_that_is_late_is_not_called_undone),
		cmocka_unit_test(what_others_do_while_an_action_is_under_way_is_not_called_undone),
		cmocka_unit_test(an_order_that_is_reversed_on_its_way_is_not_called_undone),
		cmocka_unit_test(nothing_is_asked_for_twice_while_all_is_as_it_should_be),
		cmocka_unit_test(what_can_never_be_seen_is_believed_when_accepted),
		cmocka_unit_test(tasks_to_hold_or_release_go_in_one_call),
		cmocka_unit_test(longer_slices_come_first_then_holds_tiny_slices_and_releases),
		cmocka_unit_test(the_slice_of_a_held_task_is_set_before_its_release),
		cmocka_unit_test(the_tiny_slice_changes_hands_only_behind_the_hold),
		cmocka_unit_test(
			a_tiny_slice_that_the_plan_leaves_alone_keeps_others_from_having_one),
		cmocka_unit_test(on_a_full_device_one_is_released_before_the_next_is_held),
		cmocka_unit_test(holds_of_one_batch_share_the_room_that_is_left),
		cmocka_unit_test(a_step_allocates_nothing_once_the_tasks_are_there),
		cmocka_unit_test(a_device_without_slices_or_holds_is_not_asked_for_them),
		cmocka_unit_test(the_undo_record_is_kept_once_before_the_first_change),
		cmocka_unit_test(without_an_undo_record_there_is_no_change_at_all),
		cmocka_unit_test(
			an_undo_record_that_could_not_be_kept_is_tried_again_when_it_is_due),
		cmocka_unit_test(it_polls_every_5_ms_where_nothing_announces_changes),
		cmocka_unit_test(it_does_not_poll_where_there_is_nothing_to_share),
		cmocka_unit_test(rr_does_not_poll_where_the_hardware_takes_turns),
		cmocka_unit_test(it_polls_every_millisecond_with_a_latency_critical_task),
		cmocka_unit_test(it_never_polls_more_often_than_there_is_news),
		cmocka_unit_test(the_intervals_can_be_set),
		cmocka_unit_test(the_plan_can_ask_for_an_earlier_look_but_not_for_a_later_one),
		cmocka_unit_test(an_action_on_its_way_is_looked_at_soon),
		cmocka_unit_test(a_trigger_wants_a_look_at_once),
		cmocka_unit_test(it_scans_every_100_ms),
		cmocka_unit_test(a_scan_that_fails_changes_nothing),
		cmocka_unit_test(what_is_not_known_is_not_in_the_view),
		cmocka_unit_test(the_view_carries_the_devices_properties),
		cmocka_unit_test(waiting_is_counted_while_a_busy_task_is_seen_off_the_hardware),
		cmocka_unit_test(
			being_off_the_hardware_says_nothing_where_it_takes_turns_by_itself),
		cmocka_unit_test(what_a_user_held_is_not_waited),
		cmocka_unit_test(waiting_is_counted_up_to_the_last_sample_of_the_run_time),
		cmocka_unit_test(a_held_task_waits_even_if_its_activity_is_not_known),
		cmocka_unit_test(a_released_task_is_taken_to_have_the_device_unless_it_can_be_seen),
		cmocka_unit_test(time_held_and_preemptions_are_counted),
		cmocka_unit_test(events_say_what_happened_when_and_to_whom),
		cmocka_unit_test(it_works_with_nobody_interested_in_events),
		cmocka_unit_test(decisions_are_timed_where_there_is_a_clock),
		cmocka_unit_test(
			a_policy_that_needs_what_the_device_lacks_is_refused_in_one_sentence),
		cmocka_unit_test(the_policy_is_none_until_another_is_set),
		cmocka_unit_test(a_policy_reads_its_parameters),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
