/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Another process undoes the engine's changes, at any moment of a tick: afterwards no task is held
 * or has another slice without an undo record, and the planned state is reached again.
 */
#include "fake_gpu.h"

#include "engine/engine_state.h"

#define TASKS 6

/* The undo records, and the process that undoes the changes. */
struct book {
	struct rig *rig;
	bool has[TASKS]; /* by handle */
	bool has_slice[TASKS];
	uint64_t undone_ns[TASKS];
	int fails;      /* -errno of writing one */
	int then_fails; /* the same, after the undo */
	uint64_t epoch, seen_epoch;
	bool drops; /* the undoing process drops the records, as a user does; the keeper does not */
	unsigned at;      /* undo in the middle of a batch, at this action; 0 = not */
	unsigned actions; /* so far */
};

static struct book book;

static int write_record(void *arg, const struct gp_undo *undo)
{
	(void)arg;
	if (book.fails)
		return book.fails;
	book.has[undo->data[0]] = true;
	book.has_slice[undo->data[0]] = !undo->hold_only;
	return (int)undo->data[0];
}

static void drop_record(void *arg, int record)
{
	(void)arg;
	book.has[record] = false;
}

static uint64_t tell_undone_ns(void *arg, int record)
{
	(void)arg;
	return book.undone_ns[record];
}

/* Everything that has a record is put back. */
static void undo_all(void)
{
	for (unsigned i = 0; i < book.rig->gpu.n; i++) {
		if (!book.has[i])
			continue;
		rig_is(book.rig, i)->held = false;
		rig_is(book.rig, i)->slice_us = 0;
		if (book.drops)
			book.has[i] = false;
	}
	book.epoch++;
}

/* The back end asks what becomes of an action: a moment in the middle of a batch. */
static void count_action(struct fake_gpu *g, enum fake_kind kind, struct fake_fault *fault)
{
	(void)g;
	(void)kind;
	(void)fault;
	if (++book.actions != book.at)
		return;
	undo_all();
	book.fails = book.then_fails;
}

static uint64_t tell_epoch(void *arg)
{
	(void)arg;
	return book.epoch;
}

/* The epoch is read before every tick, by the engine itself or by its driver. */
static void look(struct rig *r)
{
	if (r->config.epoch) {
		book.seen_epoch = book.epoch;
		gp_engine_step(r->engine, r->now_ns);
		return;
	}
	if (book.epoch != book.seen_epoch) {
		book.seen_epoch = book.epoch;
		gp_engine_renew_undo(r->engine);
		assert_true(gp_engine_next_ns(r->engine) == 0); /* a tick is due at once */
	}
	rig_step(r);
}

static void run(struct rig *r, uint64_t for_ns)
{
	for (uint64_t end_ns = r->now_ns + for_ns; r->now_ns < end_ns; r->now_ns += MS)
		look(r);
}

static unsigned changed_without_record(struct rig *r)
{
	unsigned n = 0;

	for (unsigned i = 0; i < r->gpu.n; i++)
		n += !book.has[i] && (rig_is(r, i)->held || rig_is(r, i)->slice_us);
	return n;
}

/* Half of them are to be held, the others have a slice. */
static bool engine_ticks_itself;

static int tick_by_the_driver(void **state)
{
	(void)state;
	engine_ticks_itself = false;
	return 0;
}

static int tick_by_the_engine(void **state)
{
	(void)state;
	engine_ticks_itself = true;
	return 0;
}

#define BOTH_TEST(f)                                    \
	static void f(void **state);                    \
	TEST_ADD(#f, f, tick_by_the_driver, NULL, NULL) \
	TEST_WITH(f, tick_by_the_engine, NULL)

static struct rig *start(bool observable)
{
	struct rig *r = rig_new();

	memset(&book, 0, sizeof book);
	book.rig = r;
	r->config.before_change = write_record;
	r->config.drop_record = drop_record;
	r->config.undone_ns = tell_undone_ns;
	r->config.epoch = engine_ticks_itself ? tell_epoch : NULL;
	r->gpu.choose = count_action;
	for (unsigned i = 0; i < TASKS; i++) {
		rig_add(r, GP_BEST_EFFORT);
		if (!observable)
			rig_is(r, i)->known = GP_KNOWN_ACTIVE;
		want(i + 1, i % 2 ? GP_HOLD : GP_RUN, i % 2 ? 0 : 500 + i);
	}
	rig_make(r);
	rig_set_policy(r, &watching);
	return r;
}

static void is_as_wanted(struct rig *r)
{
	for (unsigned i = 0; i < TASKS; i++) {
		assert_int_equal(rig_is(r, i)->held, i % 2);
		if (!(i % 2))
			assert_int_equal(rig_is(r, i)->slice_us, 500 + i);
	}
}

BOTH_TEST(what_was_undone_between_two_looks_comes_back_with_a_record)
{
	for (int observable = 0; observable < 2; observable++)
		for (int drops = 0; drops < 2; drops++) {
			struct rig *r = start(observable);

			book.drops = drops;
			run(r, 50 * MS);
			is_as_wanted(r);
			undo_all();
			look(r);
			assert_int_equal(changed_without_record(r), 0);
			run(r, 50 * MS);
			is_as_wanted(r);
			assert_int_equal(changed_without_record(r), 0);
			rig_free(r);
		}
}

BOTH_TEST(the_slices_of_a_record_count_before_a_slice_is_changed)
{
	struct rig *r = start(true);

	run(r, 50 * MS);
	for (unsigned i = 0; i < TASKS; i++)
		assert_int_equal(book.has_slice[i], !(i % 2));
	want(2, GP_RUN, 700);
	run(r, 50 * MS);
	assert_int_equal(rig_is(r, 1)->slice_us, 700);
	assert_true(book.has_slice[1]);
	rig_free(r);
}

/* Its release was none, or a hold that failed has taken effect late. */
TEST(a_hold_that_shows_after_an_unfinished_release_is_ended)
{
	struct rig *r = rig_new();

	memset(&book, 0, sizeof book);
	book.rig = r;
	r->config.before_change = write_record;
	r->config.drop_record = drop_record;
	rig_add(r, GP_UNMANAGED);
	rig_make(r);
	rig_set_policy(r, &watching);
	run(r, 20 * MS);
	assert_int_equal(gp_engine_user_hold(r->engine, 1), 0);
	run(r, 20 * MS);
	assert_true(rig_is(r, 0)->held && book.has[0]);
	assert_int_equal(gp_engine_user_release(r->engine, 1), 0);
	rig_is(r, 0)->unfinished = true;
	run(r, 100 * MS);
	assert_true(!rig_is(r, 0)->held && book.has[0]);
	rig_is(r, 0)->held = true;
	run(r, 100 * MS);
	assert_true(!rig_is(r, 0)->held && book.has[0]);
	rig_is(r, 0)->unfinished = false;
	run(r, 100 * MS);
	assert_false(book.has[0]);
	rig_is(r, 0)->held = true; /* by another process */
	run(r, 100 * MS);
	assert_true(rig_is(r, 0)->held);
	rig_free(r);
}

/* At the first action, the second, and so on, also at those that come of the undo before. */
BOTH_TEST(an_undo_in_the_middle_of_a_batch_leaves_nothing_without_a_record)
{
	for (int variant = 0; variant < 8; variant++)
		for (unsigned at = 1; at <= 2 * TASKS; at++) {
			struct rig *r = start(variant & 1);

			book.drops = variant & 2;
			r->gpu.fault[FAKE_HOLD].asks_to_wait = variant & 4;
			r->gpu.fault[FAKE_HOLD].delay_ns = variant & 4 ? 3 * MS : 0;
			book.at = at;
			run(r, 3 * MS);
			if (book.actions < at) { /* later: they are asked to change places */
				for (unsigned i = 0; i < TASKS; i++)
					want(i + 1, i % 2 ? GP_RUN : GP_HOLD, i % 2 ? 700 : 0);
				run(r, 3 * MS);
				for (unsigned i = 0; i < TASKS; i++)
					want(i + 1, i % 2 ? GP_HOLD : GP_RUN, i % 2 ? 0 : 500 + i);
			}
			for (int i = 0; i < 20; i++, r->now_ns += MS) {
				bool knows = book.epoch == book.seen_epoch;

				look(r);
				/* The keeper leaves records: there is not even a moment without. */
				if (knows || !book.drops)
					assert_int_equal(changed_without_record(r), 0);
			}
			run(r, 100 * MS);
			assert_true(book.actions >= at);
			is_as_wanted(r);
			assert_int_equal(changed_without_record(r), 0);
			rig_free(r);
		}
}

BOTH_TEST(what_cannot_be_recorded_is_put_back_and_left_alone_until_it_can)
{
	for (int observable = 0; observable < 2; observable++)
		for (int mid = 0; mid < 2; mid++) {
			struct rig *r = start(observable);
			unsigned asked;

			book.drops = true;
			book.at = mid ? 2 : 0;
			book.then_fails = -ENOSPC;
			run(r, mid ? 0 : 20 * MS);
			if (mid) /* the rest of the batch came after the undo */
				gp_engine_step(r->engine, r->now_ns);
			else
				undo_all();
			book.fails = -ENOSPC;
			run(r, 50 * MS);
			for (unsigned i = 0; i < TASKS; i++) {
				assert_false(rig_is(r, i)->held);
				assert_int_equal(rig_is(r, i)->slice_us, 0);
			}
			asked = r->gpu.nasked;
			run(r, 3 * S);
			assert_int_equal(r->gpu.nasked, asked);                     /* left alone */
			assert_in_range(r->events[GP_EVENT_ACTION_FAILED], 6, 200); /* backs off */
			book.fails = 0;
			run(r, 2 * S);
			is_as_wanted(r);
			assert_int_equal(changed_without_record(r), 0);
			rig_free(r);
		}
}

BOTH_TEST(without_a_record_nothing_is_changed_for_the_first_time_either)
{
	struct rig *r = start(true);

	book.fails = -EBUSY; /* another process is undoing the change */
	run(r, 100 * MS);
	assert_int_equal(r->gpu.nasked, 0);
	book.epoch++;
	run(r, 100 * MS);
	assert_int_equal(r->gpu.nasked, 0);
	book.fails = 0;
	run(r, 2 * S);
	is_as_wanted(r);
	rig_free(r);
}

BOTH_TEST(what_we_never_changed_is_not_touched_and_has_no_record)
{
	struct rig *r = start(true);
	unsigned records;

	for (uint64_t i = 1; i <= TASKS; i++)
		want(i, GP_RUN, 0);
	run(r, 20 * MS);
	assert_int_equal(r->gpu.nasked, 0);
	records = r->gpu.undo_records;
	book.epoch++;
	run(r, 20 * MS);
	assert_int_equal(r->gpu.nasked, 0);
	assert_int_equal(r->gpu.undo_records, records);
	rig_free(r);
}

/* Where a hold was not undone, to ask again does no harm; it does not count as another task. */
BOTH_TEST(the_record_of_a_task_that_leaves_stays_unless_it_is_seen_released)
{
	for (int known = 0; known < 2; known++)
		for (int held = 0; held < 2; held++) {
			struct rig *r = start(true);

			run(r, 50 * MS);
			assert_true(book.has[1] && rig_is(r, 1)->held);
			rig_is(r, 1)->known &= known ? UINT32_MAX : ~(uint32_t)GP_KNOWN_HELD;
			rig_is(r, 1)->held = held;
			r->gpu.task[1].present = false;
			gp_engine_trigger(r->engine, true);
			look(r);
			assert_int_equal(gp_engine_tasks(r->engine), TASKS - 1);
			assert_int_equal(book.has[1], held || !known);
			rig_free(r);
		}
}

BOTH_TEST(a_renewal_asks_once_more_and_keeps_to_the_room_there_is)
{
	struct rig *r = start(true);
	unsigned from;

	r->gpu.base.info.max_held = TASKS / 2;
	run(r, 20 * MS);
	is_as_wanted(r);
	from = r->gpu.nasked;
	book.epoch++;
	run(r, 100 * MS);
	is_as_wanted(r);
	for (uint32_t i = 0; i < TASKS; i++) {
		assert_int_equal(fake_count(&r->gpu, FAKE_HOLD, i, from), i % 2);
		assert_int_equal(fake_count(&r->gpu, FAKE_SLICE, i, from), !(i % 2));
	}
	assert_int_equal(rig_stats(r)->undone, 0);
	assert_int_equal(rig_stats(r)->failures, 0);
	rig_free(r);
}

BOTH_TEST(the_rule_about_tiny_slices_holds_through_an_undo)
{
	struct rig *r = start(false);

	for (uint64_t i = 1; i <= TASKS; i++)
		want(i, GP_HOLD, 0);
	want(1, GP_RUN, 1);
	run(r, 50 * MS);
	for (uint64_t turn = 1; turn <= TASKS; turn++) {
		undo_all();
		r->gpu.fault[FAKE_HOLD].status = turn % 3 ? 0 : -EIO;
		for (uint64_t i = 1; i <= TASKS; i++)
			want(i, i == turn ? GP_RUN : GP_HOLD, i == turn ? 1 : 0);
		run(r, 50 * MS);
		assert_false(r->gpu.two_tiny);
	}
	rig_free(r);
}

/* Half undone: it was released, and its slice could not be put back. */
BOTH_TEST(a_task_that_may_be_loose_keeps_tiny_slices_from_others)
{
	struct rig *r = start(false);

	for (uint64_t i = 1; i <= TASKS; i++)
		want(i, GP_HOLD, 0);
	want(1, GP_RUN, 1);
	run(r, 50 * MS);
	want(1, GP_HOLD, 0); /* keeps its slice while it is held */
	run(r, 50 * MS);
	assert_int_equal(rig_is(r, 0)->slice_us, 1);
	undo_all();
	rig_is(r, 0)->slice_us = 1;
	r->gpu.fault[FAKE_HOLD].status = -EIO;
	r->gpu.fault[FAKE_SLICE].status = 0;
	want(2, GP_RUN, 1);
	run(r, 50 * MS);
	assert_false(r->gpu.two_tiny);
	r->gpu.fault[FAKE_HOLD].status = 0;
	run(r, 2 * S);
	assert_false(r->gpu.two_tiny);
	assert_int_equal(rig_is(r, 1)->slice_us, 1);
	rig_free(r);
}

static void fail_sometimes(struct fake_gpu *g, enum fake_kind kind, struct fake_fault *fault)
{
	uint64_t dice = gp_rng_below(g->rng, 16);

	(void)kind;
	if (++book.actions == book.at)
		undo_all();
	fault->status = dice == 0 ? -EIO : 0;
	/* A lost action that cannot be observed is never repeated. */
	fault->lost = dice == 1 && (g->task[0].is.known & GP_KNOWN_HELD);
	fault->asks_to_wait = dice & 4;
	fault->delay_ns = gp_rng_below(g->rng, 4) * MS;
}

BOTH_TEST(whenever_it_is_undone_nothing_stays_changed_without_a_record)
{
	for (uint64_t seed = 1; seed <= 100; seed++) {
		struct rig *r = start(seed % 3);
		struct gp_rng rng;

		gp_rng_init(&rng, seed, 0);
		r->gpu.rng = &rng;
		r->gpu.choose = fail_sometimes;
		book.drops = seed % 2;
		for (int i = 0; i < 60; i++) {
			uint64_t id = 1 + gp_rng_below(&rng, TASKS);

			if (gp_rng_below(&rng, 4) == 0)
				book.at = book.actions + 1 + (unsigned)gp_rng_below(&rng, 5);
			if (gp_rng_below(&rng, 8) == 0)
				undo_all();
			book.fails = gp_rng_below(&rng, 6) ? 0 : -ENOSPC;
			if (gp_rng_below(&rng, 2))
				want(id, GP_HOLD, 0);
			else
				want(id, GP_RUN, (uint32_t)gp_rng_below(&rng, 3) * 500);
			look(r);
			r->now_ns += 1 + gp_rng_below(&rng, 3 * MS);
			if (!book.drops)
				assert_int_equal(changed_without_record(r), 0);
		}
		book.at = 0;
		book.fails = 0;
		r->gpu.choose = NULL;
		for (unsigned i = 0; i < TASKS; i++)
			want(i + 1, i % 2 ? GP_HOLD : GP_RUN, i % 2 ? 0 : 500 + i);
		run(r, 2500 * MS);
		is_as_wanted(r);
		assert_int_equal(changed_without_record(r), 0);
		rig_free(r);
	}
}

/* Records were taken away between the first call of a step and the second: that one is not made. */
TEST(a_step_does_not_go_on_when_the_epoch_changes_in_it)
{
	struct rig *r;

	engine_ticks_itself = true;
	r = start(true);
	book.drops = true;
	book.at = 1; /* of the slices, which come before the holds */
	gp_engine_step(r->engine, r->now_ns);
	assert_int_equal(r->gpu.calls, 1);
	assert_int_equal(changed_without_record(r), 0);
	assert_true(gp_engine_next_ns(r->engine) == 0);
	run(r, 20 * MS);
	is_as_wanted(r);
	rig_free(r);
}

/* The epoch changes also if another process undid changes of another owner, or asked for a release.
 */
TEST(only_a_task_that_was_undone_is_called_undone)
{
	for (int observable = 0; observable < 2; observable++)
		for (int seen_first = 0; seen_first <= observable; seen_first++) {
			struct rig *r;

			engine_ticks_itself = true;
			r = start(observable);
			book.epoch++; /* nothing of ours is there yet */
			run(r, 50 * MS);
			book.epoch++;
			run(r, 50 * MS);
			assert_int_equal(r->events[GP_EVENT_UNDONE], 0);

			rig_is(r, 1)->held = false;
			book.undone_ns[1] = r->now_ns;
			if (seen_first) /* before the other process has noted it */
				run(r, 5 * MS);
			book.epoch++;
			run(r, 50 * MS);
			assert_int_equal(r->events[GP_EVENT_UNDONE], 1);
			assert_int_equal(r->last[GP_EVENT_UNDONE].task, 2);
			assert_int_equal(rig_task(r, 1).undone, 1);
			is_as_wanted(r);
			book.epoch++;
			run(r, 50 * MS);
			assert_int_equal(r->events[GP_EVENT_UNDONE], 1);
			assert_int_equal(rig_stats(r)->undone, 1);

			book.undone_ns[1] = r->now_ns; /* again */
			book.epoch++;
			run(r, 50 * MS);
			assert_int_equal(r->events[GP_EVENT_UNDONE], 2);
			rig_free(r);
		}
}
