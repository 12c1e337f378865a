/* SPDX-License-Identifier: Apache-2.0 */
/* Access rights: each cell of the table, and the meaning of "within the limit". */
#include "config_world.h"

#include "config/rights.h"
#include "rights_table.h"

static struct gp_peer peer_of(enum rights_who who)
{
	bool contained = who >= WHO_CONTAINED_USER;
	bool member = who == WHO_MEMBER || who == WHO_CONTAINED_MEMBER;
	uid_t uid = who == WHO_ROOT || who == WHO_CONTAINED_ROOT ? 0 : ALICE;

	return (struct gp_peer){
		.uid = uid,
		.admin = !uid || member,
		.other_pidns = contained,
	};
}

static struct gp_subject target_of(const struct gp_peer *peer, enum rights_whose whose)
{
	struct gp_subject t = {.uid = {peer->uid, peer->uid, peer->uid}, .same_pidns = true};

	switch (whose) {
	case WHOSE_SELF: t.is_self = true; break;
	case WHOSE_OWN_SETUID: t.uid[1] = t.uid[2] = BOB; break;
	case WHOSE_OTHERS:
	case WHOSE_OTHERS_ELSEWHERE: t.uid[0] = t.uid[1] = t.uid[2] = BOB; break;
	default: break;
	}
	if (whose == WHOSE_OWN_ELSEWHERE || whose == WHOSE_OTHERS_ELSEWHERE)
		t.same_pidns = false;
	return t;
}

static const struct gp_limit limit = {
	.class = GP_UNMANAGED,
	.priority = 3,
	.weight = 200,
	.share_permille = 100,
	.ceiling_permille = 500,
	.deadline_ns = 10 * GP_NS_PER_MS,
	.max_tasks = 2,
};

static const struct gp_task_attr be = {.class = GP_BEST_EFFORT, .weight = 100},
				 unmanaged = {.class = GP_UNMANAGED, .weight = 100},
				 lc = {.class = GP_LATENCY_CRITICAL, .weight = 100};

static const struct gp_task_attr ruled = {.class = GP_BEST_EFFORT,
					  .weight = 100,
					  .ceiling_permille = 500},
				 lower = {.class = GP_BEST_EFFORT,
					  .weight = 50,
					  .ceiling_permille = 100};

/* The limit of a user without an entry, for a process that matches a rule. */
static const struct gp_limit *by_rule(void)
{
	static struct gp_limit limit_by_rule;

	limit_by_rule = gp_limit_least;
	gp_limit_add_given(&limit_by_rule, &ruled);
	return &limit_by_rule;
}

/* The change; what it is about in the target is set there. */
static struct gp_change change_of(enum rights_what what, const struct gp_peer *peer,
				  struct gp_subject *t)
{
	struct gp_change c = {.limit = &limit, .hold_uid = peer->uid};

	t->gang_of_others = what == WHAT_HOLD_GANG || what == WHAT_RELEASE_GANG;
	switch (what) {
	case WHAT_READ: c.kind = GP_CHANGE_READ; return c;
	case WHAT_HINT: c.kind = GP_CHANGE_HINT; return c;
	case WHAT_HOLD:
	case WHAT_HOLD_GANG: c.kind = GP_CHANGE_HOLD; return c;
	case WHAT_RELEASE:
	case WHAT_RELEASE_GANG: c.kind = GP_CHANGE_RELEASE; return c;
	case WHAT_RELEASE_ADMINS:
		c.kind = GP_CHANGE_RELEASE;
		c.hold_by_admin = true; /* also if it was the same person */
		return c;
	case WHAT_RELEASE_OTHERS:
		c.kind = GP_CHANGE_RELEASE;
		c.hold_uid = BOB;
		return c;
	case WHAT_TO_RULE:
	case WHAT_ABOVE_RULE:
		c.kind = GP_CHANGE_ATTR;
		c.from = &lower;
		c.to = what == WHAT_TO_RULE ? &ruled : &be;
		c.limit = by_rule();
		return c;
	default: break;
	}
	c.kind = GP_CHANGE_ATTR;
	c.from = what == WHAT_LOWER ? &lc : &be;
	c.to = what == WHAT_LOWER ? &be : what == WHAT_ABOVE ? &lc : &unmanaged;
	c.tasks = what == WHAT_MANY ? limit.max_tasks + 1 : limit.max_tasks;
	return c;
}

/* Refused with a sentence that says what to do, or allowed without one. */
static bool is_allowed(const struct gp_peer *peer, const struct gp_subject *t,
		       const struct gp_change *c)
{
	struct gp_error err = {0};
	int r = gp_rights_check(peer, t, c, &err);

	assert_true(r == 0 || r == -EPERM);
	assert_int_equal(r, err.code);
	assert_true(!r == !err.text[0]);
	assert_true(strlen(err.text) < sizeof err.text - 1);
	if (r && !strstr(err.text, ";"))
		fail_msg("does not say what to do: %s", err.text);
	return !r;
}

TEST(each_cell_of_the_table_is_true)
{
	for (unsigned i = 0; i < sizeof rights_rows / sizeof *rights_rows; i++) {
		const struct rights_row *row = &rights_rows[i];
		struct gp_peer peer = peer_of(row->who);

		assert_int_equal(row->who, i / RIGHTS_WHOSE); /* each once */
		assert_int_equal(row->whose, i % RIGHTS_WHOSE);
		for (unsigned what = 0; what < RIGHTS_WHAT; what++) {
			struct gp_subject t = target_of(&peer, row->whose);
			struct gp_change c = change_of(what, &peer, &t);

			if (is_allowed(&peer, &t, &c) != (row->may[what] == '+'))
				fail_msg("who %u, whose %u, what %u", row->who, row->whose, what);
		}
	}
}

TEST(and_of_what_is_about_no_process)
{
	static const enum gp_change_kind kinds[RIGHTS_GENERAL] = {
		GP_CHANGE_READ, GP_CHANGE_RESUME_ALL, GP_CHANGE_POLICY, GP_CHANGE_RELOAD};

	for (unsigned i = 0; i < RIGHTS_WHO; i++)
		for (unsigned what = 0; what < RIGHTS_GENERAL; what++) {
			struct gp_peer peer = peer_of(rights_general[i].who);
			struct gp_change c = {.kind = kinds[what]};

			assert_int_equal(rights_general[i].who, i);
			if (is_allowed(&peer, NULL, &c) != (rights_general[i].may[what] == '+'))
				fail_msg("who %u, what %u", i, what);
		}
}

TEST(what_is_about_a_process_needs_one)
{
	struct gp_peer peer = peer_of(WHO_USER);

	for (unsigned kind = GP_CHANGE_HINT; kind <= GP_CHANGE_RELEASE; kind++) {
		struct gp_change c = {.kind = kind, .from = &lc, .to = &be, .limit = &limit};
		struct gp_error err = {0};

		assert_int_equal(gp_rights_check(&peer, NULL, &c, &err), -EPERM);
	}
	assert_int_equal(
		gp_rights_check(&peer, NULL, &(struct gp_change){.kind = GP_CHANGE_KINDS}, NULL),
		-EPERM);
}

TEST(root_is_an_administrator_and_so_is_the_group_where_there_is_one)
{
	for (unsigned who = 0; who < RIGHTS_WHO; who++) {
		struct gp_peer peer = peer_of(who);

		assert_int_equal(gp_peer_administers(&peer), who == WHO_MEMBER || who == WHO_ROOT);
	}
}

static bool may_change(struct gp_task_attr from, struct gp_task_attr to)
{
	struct gp_peer peer = peer_of(WHO_USER);
	struct gp_subject t = target_of(&peer, WHOSE_OWN);
	struct gp_change c = {.kind = GP_CHANGE_ATTR, .from = &from, .to = &to, .limit = &limit};

	return is_allowed(&peer, &t, &c);
}

#define A(...) ((struct gp_task_attr){__VA_ARGS__})

TEST(the_order_of_classes_is_be_unmanaged_lc)
{
	assert_true(gp_class_rank(GP_BEST_EFFORT) < gp_class_rank(GP_UNMANAGED));
	assert_true(gp_class_rank(GP_UNMANAGED) < gp_class_rank(GP_LATENCY_CRITICAL));
	assert_true(may_change(lc, unmanaged));
	assert_true(may_change(lc, lc)); /* a class that it has is kept */
	assert_true(may_change(unmanaged, be));
	assert_false(may_change(unmanaged, lc));
}

TEST(each_value_may_sink_always_and_rise_to_the_limit)
{
	static const struct {
		struct gp_task_attr from, to;
		bool may;
	} all[] = {
		{A(.priority = 0), A(.priority = 3), true},
		{A(.priority = 0), A(.priority = 4), false},
		{A(.priority = 9), A(.priority = 8), true},
		{A(.priority = 9), A(.priority = 10), false},
		{A(.weight = 100), A(.weight = 200), true},
		{A(.weight = 100), A(.weight = 201), false},
		{A(.weight = 900), A(.weight = 899), true},
		{A(.share_permille = 0), A(.share_permille = 100), true},
		{A(.share_permille = 0), A(.share_permille = 101), false},
		{A(.share_permille = 900), A(.share_permille = 800), true},
		{A(.ceiling_permille = 100), A(.ceiling_permille = 500), true},
		{A(.ceiling_permille = 100), A(.ceiling_permille = 501), false},
		{A(.ceiling_permille = 100), A(.ceiling_permille = 0), false}, /* none */
		{A(.ceiling_permille = 0), A(.ceiling_permille = 0), true},
		{A(.ceiling_permille = 0), A(.ceiling_permille = 900), true},
		{A(.deadline_ns = 0), A(.deadline_ns = 10 * GP_NS_PER_MS), true},
		{A(.deadline_ns = 0), A(.deadline_ns = 9 * GP_NS_PER_MS), false},
		{A(.deadline_ns = GP_NS_PER_MS), A(.deadline_ns = 2 * GP_NS_PER_MS), true},
		{A(.deadline_ns = GP_NS_PER_MS), A(.deadline_ns = 0), true},
		{A(.deadline_ns = 0), A(.deadline_ns = GP_NS_PER_S, .budget_ns = GP_NS_PER_S / 10),
		 true},
		{A(.deadline_ns = 0), A(.deadline_ns = GP_NS_PER_S, .budget_ns = GP_NS_PER_S / 9),
		 false}, /* more than a tenth of the device */
		{A(.deadline_ns = GP_NS_PER_S, .budget_ns = GP_NS_PER_S / 2),
		 A(.deadline_ns = GP_NS_PER_S, .budget_ns = GP_NS_PER_S / 3), true},
		{A(.deadline_ns = 0), A(.deadline_ns = UINT64_MAX, .budget_ns = UINT64_MAX), false},
		{A(.deadline_ns = 0), A(.deadline_ns = 1, .budget_ns = 1ull << 61), false},
		{A(.deadline_ns = 1), A(.deadline_ns = 1, .budget_ns = 1ull << 61), false},
		{A(.gang = 1), A(.gang = 2), true},
		/* One goes down, the other does not go up for that. */
		{A(.class = GP_LATENCY_CRITICAL), A(.class = GP_BEST_EFFORT, .priority = 4), false},
	};

	for (unsigned i = 0; i < sizeof all / sizeof *all; i++)
		if (may_change(all[i].from, all[i].to) != all[i].may)
			fail_msg("row %u", i);
}

TEST(what_is_clamped_is_allowed_and_what_is_allowed_is_not_clamped)
{
	static const uint64_t times[] = {0,           1,          GP_NS_PER_MS, 10 * GP_NS_PER_MS,
					 GP_NS_PER_S, 1ull << 62, UINT64_MAX};
	const struct gp_task_attr least = {.class = GP_BEST_EFFORT, .ceiling_permille = 1};

	for (unsigned i = 0; i < 7 * 7 * 64; i++) {
		struct gp_task_attr a = {
			.class = (uint8_t)(i % 3),
			.priority = (uint8_t)(i % 16),
			.weight = i * 7 % 1000,
			.share_permille = i * 3 % 500,
			.ceiling_permille = i * 11 % 1001,
			.deadline_ns = times[i % 7],
			.budget_ns = times[i / 7 % 7],
		};
		struct gp_task_attr clamped = a;
		bool changed = gp_limit_clamp(&limit, &clamped);

		assert_true(may_change(least, clamped));
		assert_int_equal(changed, !may_change(least, a));
		assert_false(gp_limit_clamp(&limit, &clamped)); /* once is enough */
	}
}
