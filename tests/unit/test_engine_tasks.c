/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine's tasks: how they come and leave, their attributes, tasks that are never changed,
 * users' holds, and policies.
 */
#include "fake_gpu.h"

#include <malloc.h>

RIG_TEST(tasks_come_in_with_rising_ids_and_go_out)
{
	rig_add_many(r, 3);
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
}

RIG_TEST(an_id_is_never_given_twice)
{
	uint64_t last_id = 0;

	rig_add_many(r, 2);
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
}

RIG_TEST(a_task_that_cannot_be_attached_is_tried_again_at_the_next_scan)
{
	rig_add_many(r, 2);
	r->gpu.task[0].refuses_attach = true;
	rig_start(r, &scripted);
	assert_int_equal(gp_engine_tasks(r->engine), 1);
	assert_int_equal(rig_task(r, 0).key, 2);
	r->gpu.task[0].refuses_attach = false;
	rig_run(r, 100 * MS);
	assert_int_equal(gp_engine_tasks(r->engine), 2);
	assert_int_equal(rig_task(r, 1).key, 1);
	assert_int_equal(rig_task(r, 1).id, 2);
}

RIG_TEST(freeing_the_engine_puts_every_task_back)
{
	RIG_START(r, &scripted, HOLD, RUN(1));
	assert_true(rig_is(r, 0)->held);
	assert_int_equal(rig_is(r, 1)->slice_us, 1);
	gp_engine_free(r->engine);
	r->engine = NULL;
	assert_false(rig_is(r, 0)->held);
	assert_int_equal(rig_is(r, 1)->slice_us, 0);
}

/* A policy with a blob per task, which holds the id of its task and is checked at every call. */
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

static int blob_decide(const struct gp_view *view, struct gp_plan *plan)
{
	assert_int_equal(*(uint64_t *)view->state->device, 4711);
	assert_true(plan->next_ns == GP_NEVER);
	for (uint32_t i = 0; i < view->n; i++) {
		struct id_blob *b = gp_policy_task(view, i);

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
	.summary = "checks that each task keeps its blob",
	.device_state = sizeof(uint64_t),
	.task_state = sizeof(struct id_blob),
	.init = blob_init,
	.task_in = blob_task_in,
	.task_out = blob_task_out,
	.decide = blob_decide,
};

RIG_TEST(tasks_removed_from_the_middle_leave_the_others_their_blobs)
{
	struct gp_rng rng;

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
}

RIG_TEST(a_new_policy_starts_with_clear_blobs_and_the_tasks_that_are_there)
{
	blob_tasks_in = blob_tasks_out = blob_inits = 0;
	rig_add_many(r, 3);
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
}

RIG_TEST(arrays_grow_for_as_many_tasks_as_there_are)
{
	rig_add_many(r, 15);
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
}

RIG_TEST(attributes_come_from_classify)
{
	const struct gp_task_attr given = {.class = GP_LATENCY_CRITICAL,
					   .priority = 9,
					   .weight = 1234,
					   .share_permille = 250,
					   .ceiling_permille = 750,
					   .deadline_ns = 5 * MS,
					   .budget_ns = 2 * MS};
	const struct gp_task_view *v;

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
	assert_int_equal(v->ceiling_permille, given.ceiling_permille);
	assert_int_equal(v->deadline_ns, given.deadline_ns);
	assert_int_equal(v->budget_ns, given.budget_ns);
}

RIG_TEST(without_classify_every_task_is_unmanaged)
{
	rig_add(r, GP_BEST_EFFORT);
	r->config.classify = NULL;
	rig_start(r, &scripted);
	assert_int_equal(rig_task(r, 0).attr.class, GP_UNMANAGED);
	assert_int_equal(rig_task(r, 0).attr.weight, 100);
}

RIG_TEST(attributes_out_of_range_are_refused_and_change_nothing)
{
	const struct gp_task_attr good = {.class = GP_BEST_EFFORT, .weight = 100};
	struct gp_task_attr a;

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
	REFUSED(ceiling_permille, 1001);
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
}

RIG_TEST(a_task_that_is_not_there_is_no_such_process)
{
	const struct gp_task_attr good = {.class = GP_BEST_EFFORT, .weight = 100};
	const uint64_t missing[] = {0, 2, 5, UINT64_MAX};

	rig_add_many(r, 4);
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
}

static const struct gp_policy_ops *const every_policy[] = {&gp_policy_none, &gp_policy_priority,
							   &gp_policy_rr, &scripted};

TEST(an_unmanaged_task_is_never_touched)
{
	for (unsigned p = 0; p < 4; p++) {
		struct rig *r = rig_new();

		rig_add(r, GP_UNMANAGED);
		rig_add(r, GP_LATENCY_CRITICAL);
		rig_add_many(r, 2);
		rig_is(r, 0)->slice_us = 777; /* set by another program */
		want(2, GP_HOLD, 0);
		want(3, GP_RUN, 1);
		rig_start(r, every_policy[p]);
		for (int i = 0; i < 20; i++) {
			rig_is(r, 0)->held = i % 2; /* this, too */
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

RIG_TEST(what_the_plan_leaves_alone_is_left_alone)
{
	rig_add_many(r, 2);
	rig_is(r, 0)->slice_us = 500;
	rig_start(r, &scripted); /* wants nothing */
	for (unsigned i = 0; i < 10; i++) {
		rig_run(r, 50 * MS);
		rig_is(r, 0)->slice_us = 100 * i;
	}
	assert_int_equal(r->gpu.nasked, 0);

	/* What was decided before stands while the plan says nothing. */
	WANT(HOLD, RUN(300));
	gp_engine_trigger(r->engine, false);
	rig_run(r, 50 * MS);
	WANT(LEAVE, LEAVE);
	r->gpu.nasked = 0;
	rig_run(r, 500 * MS);
	assert_int_equal(r->gpu.nasked, 0);
	assert_true(rig_is(r, 0)->held);
	assert_int_equal(rig_is(r, 1)->slice_us, 300);
}

RIG_TEST(a_hold_by_somebody_else_is_left_alone_if_the_plan_says_leave)
{
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
}

RIG_TEST(a_hold_by_somebody_else_is_left_alone_whatever_else_was_changed)
{
	RIG_START(r, &scripted, RUN(3000));
	rig_run(r, 10 * MS);
	want(1, GP_LEAVE, 0);
	rig_is(r, 0)->held = true;
	rig_run(r, 300 * MS);
	assert_true(rig_is(r, 0)->held);
	assert_int_equal(r->gpu.nasked, 1);
}

RIG_TEST(a_hold_of_ones_own_is_made_although_the_task_looks_held)
{
	rig_add(r, GP_UNMANAGED);
	r->gpu.fault[FAKE_HOLD] = (struct fake_fault){.asks_to_wait = true, .delay_ns = 10 * MS};
	rig_start(r, &scripted);
	rig_is(r, 0)->held = true; /* or so the driver says */
	rig_run(r, 300 * MS);
	assert_int_equal(r->gpu.nasked, 0);
	assert_true(rig_task(r, 0).held);
	assert_int_equal(gp_engine_user_hold(r->engine, 1), 0);
	assert_false(rig_task(r, 0).settled);
	rig_run(r, 5 * MS);
	assert_int_equal(r->gpu.nasked, 1);
	assert_false(rig_task(r, 0).settled);
	rig_run(r, 1 * S);
	assert_int_equal(r->gpu.nasked, 1); /* once */
	assert_true(rig_task(r, 0).settled);
	assert_int_equal(rig_stats(r)->holds, 1);
}

TEST(a_hold_by_somebody_else_is_not_taken_for_the_users)
{
	for (int fails = 0; fails < 2; fails++) {
		struct rig *r = rig_new();

		rig_add(r, GP_UNMANAGED);
		for (enum fake_kind k = 0; k < FAKE_KINDS; k++)
			r->gpu.fault[k].observed = true;
		r->gpu.fault[FAKE_HOLD].status = fails ? -EBUSY : 0;
		rig_start(r, &scripted);
		gp_engine_user_hold(r->engine, 1);
		rig_run(r, 10 * MS);
		assert_int_equal(rig_is(r, 0)->held, !fails);
		assert_int_equal(rig_task(r, 0).failure, fails ? -EBUSY : 0);
		gp_engine_user_release(r->engine, 1);
		rig_step(r); /* that was all the user wanted */
		assert_false(rig_is(r, 0)->held);
		rig_is(r, 0)->held = true;
		rig_run(r, 2 * S);
		assert_true(rig_is(r, 0)->held);
		rig_free(r);
	}
}

RIG_TEST(a_users_hold_ends_with_the_process_also_if_a_child_inherits_the_task)
{
	rig_add_many(r, 2);
	r->gpu.task[0].seen.start_time = 7;
	rig_start(r, &scripted);
	WANT(RUN(0), RUN(0));
	gp_engine_user_hold(r->engine, 1);
	gp_engine_user_hold(r->engine, 2);
	rig_run(r, 10 * MS);
	assert_true(rig_is(r, 0)->held);
	r->gpu.task[0].seen.pid = 77;
	r->gpu.task[0].seen.start_time = 8;
	rig_run(r, 200 * MS);
	assert_false(rig_is(r, 0)->held);
	assert_true(rig_is(r, 1)->held);
	assert_int_equal(rig_task(r, 0).id, 1);
	assert_int_equal(rig_task(r, 0).pid, 77);
	assert_int_equal(rig_task(r, 0).held_by, 0);
	assert_int_equal(r->events[GP_EVENT_TASK_OUT], 1);
	assert_int_equal(r->events[GP_EVENT_TASK_IN], 3);
	assert_int_equal(r->last[GP_EVENT_RELEASED].task, 1);
}

RIG_TEST(a_task_that_becomes_unmanaged_is_put_back_and_then_left_alone)
{
	struct gp_task_attr a = GP_TASK_ATTR_DEFAULT;

	RIG_START(r, &scripted, HOLD, RUN(7000));
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
}

RIG_TEST(putting_back_an_unmanaged_task_is_repeated_until_it_is_done)
{
	struct gp_task_attr a = GP_TASK_ATTR_DEFAULT;

	RIG_START(r, &scripted, RUN(7000));
	rig_run(r, 10 * MS);
	r->gpu.fault[FAKE_SLICE].status = -EBUSY;
	gp_engine_set_attr(r->engine, 1, &a);
	rig_run(r, 200 * MS);
	assert_int_equal(rig_is(r, 0)->slice_us, 7000);
	r->gpu.fault[FAKE_SLICE].status = 0;
	rig_run(r, 300 * MS);
	assert_int_equal(rig_is(r, 0)->slice_us, 0);
}

TEST(a_user_holds_even_an_unmanaged_task_under_every_policy)
{
	for (unsigned p = 0; p < 4; p++) {
		struct rig *r = rig_new();

		rig_add(r, GP_UNMANAGED);
		rig_add(r, GP_LATENCY_CRITICAL);
		WANT(RUN(0), RUN(0));
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

RIG_TEST(a_user_hold_is_no_starvation_and_no_time_held_by_the_policy)
{
	RIG_START(r, &watching, RUN(0));
	gp_engine_user_hold(r->engine, 1);
	rig_run(r, 30 * S);
	assert_true(rig_is(r, 0)->held);
	assert_null(gp_engine_ejection(r->engine));
	assert_int_equal(rig_task(r, 0).held_ns, 0);
	assert_int_equal(rig_task(r, 0).preemptions, 0);
}

RIG_TEST(policy_and_user_can_both_hold_and_each_lets_go_for_itself)
{
	RIG_START(r, &scripted, HOLD);
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
	rig_run(r, 5 * MS); /* a task that is held already is not preempted */
	assert_int_equal(rig_task(r, 0).preemptions, 1);
	assert_int_equal(fake_count(&r->gpu, FAKE_HOLD, 0, 0), 1);
	assert_int_equal(fake_count(&r->gpu, FAKE_RELEASE, 0, 0), 0);
}

RIG_TEST(a_device_that_cannot_hold_refuses_a_users_hold)
{
	rig_add(r, GP_BEST_EFFORT);
	r->gpu.base.info.caps = GP_CAP_SLICE;
	rig_start(r, &scripted);
	assert_int_equal(gp_engine_user_hold(r->engine, 1), -ENOTSUP);
	assert_int_equal(gp_engine_user_release(r->engine, 1), 0);
	rig_run(r, 10 * MS);
	assert_int_equal(r->gpu.nasked, 0);
}

RIG_TEST(a_users_hold_spreads_over_the_gang_and_no_further)
{
	struct gp_task_attr a;

	rig_add_many(r, 5);
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
	/* A hold ends only by its own release: another user may have made it. */
	gp_engine_user_release(r->engine, 4);
	gp_engine_user_release(r->engine, 1);
	rig_run(r, 5 * MS);
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(rig_is(r, i)->held, i == 0 || i == 3 || i == 4);
	gp_engine_user_release(r->engine, 5);
	rig_run(r, 5 * MS);
	for (uint32_t i = 0; i < 5; i++)
		assert_false(rig_is(r, i)->held);
}

RIG_TEST(an_unmanaged_task_is_in_no_gang)
{
	rig_add(r, GP_UNMANAGED);
	rig_add_many(r, 2);
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
}

RIG_TEST(users_can_hold_as_many_as_the_device_can_and_no_more)
{
	rig_add_many(r, 5);
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
}

RIG_TEST(the_gang_lives_on_when_its_first_task_exits)
{
	rig_add_many(r, 3);
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
}

RIG_TEST(a_gang_waits_until_the_device_has_room_for_all_of_it)
{
	rig_add_many(r, 3);
	r->attr[2].gang = r->attr[3].gang = 7;
	r->gpu.base.info.max_held = 2;
	WANT(HOLD, RUN(0), RUN(0));
	rig_start(r, &watching);
	rig_run(r, 10 * MS);
	assert_true(rig_is(r, 0)->held);
	r->gpu.fault[FAKE_RELEASE].status = -EIO;
	WANT(RUN(0), HOLD, HOLD);
	rig_run(r, 50 * MS);
	assert_true(rig_is(r, 0)->held);
	assert_false(rig_is(r, 1)->held || rig_is(r, 2)->held);
	r->gpu.fault[FAKE_RELEASE].status = 0;
	rig_run(r, 200 * MS);
	assert_true(!rig_is(r, 0)->held && rig_is(r, 1)->held && rig_is(r, 2)->held);
}

RIG_TEST(a_policy_that_needs_what_the_device_lacks_is_refused_in_one_sentence)
{
	static const struct {
		uint32_t cap;
		const char *word;
	} needs[] = {{GP_CAP_HOLD, "hold"},
		     {GP_CAP_SLICE, "slice"},
		     {GP_CAP_ACTIVITY, "activity"},
		     {GP_CAP_EVENTS, "event"},
		     {GP_CAP_REQUEST_MARKS, "request marks"},
		     {GP_CAP_PREEMPT_MODE, "preempt"}};

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
}

RIG_TEST(the_policy_is_none_until_another_is_set)
{
	rig_make(r);
	assert_ptr_equal(gp_engine_policy(r->engine), &gp_policy_none);
	rig_step(r);
	assert_null(gp_engine_ejection(r->engine));
	rig_set_policy(r, &scripted);
	assert_int_equal(gp_engine_next_ns(r->engine), 0);
}

RIG_TEST(a_policy_reads_its_parameters)
{
	struct gp_policy_choice choice;
	struct gp_error err = {0};

	rig_add(r, GP_BEST_EFFORT);
	rig_start(r, &gp_policy_none);
	assert_int_equal(gp_policy_parse("rr:quantum=4321", &choice, &err), 0);
	assert_int_equal(gp_engine_set_policy(r->engine, r->now_ns, &choice, &err), 0);
	memset(&choice, 0xff, sizeof choice); /* the engine has its own copy */
	rig_run(r, 10 * MS);
	assert_int_equal(rig_is(r, 0)->slice_us, 4321);
}
