/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values that users control raise no process above the limit of that user: class, memory, or the
 * gang of another user.
 */
#include "config_world.h"

#define GENEROUS "class: lc, priority: 9, weight: 900, share: 50, deadline: 1ms, budget: 500us"

static struct gp_match match_generously(const char *criteria, const char *limits,
					const struct gp_procinfo *info)
{
	char text[512];

	snprintf(text, sizeof text, "rules: [{match: {%s}, " GENEROUS "}]\nlimits: %s\n", criteria,
		 limits);
	return match_in(text, info);
}

static bool is_generous(const struct gp_match *m)
{
	return m->rule == 0 && m->attr.class == GP_LATENCY_CRITICAL && m->attr.priority == 9 &&
	       m->attr.weight == 900 && m->attr.share_permille == 500 &&
	       m->attr.deadline_ns == GP_NS_PER_MS && m->attr.budget_ns == 500 * GP_NS_PER_US &&
	       !m->clamped;
}

static bool is_clamped_to_nothing(const struct gp_match *m)
{
	return m->rule == 0 && m->attr.class == GP_UNMANAGED && m->attr.priority == 0 &&
	       m->attr.weight == 100 && m->attr.share_permille == 0 && m->attr.deadline_ns == 0 &&
	       m->attr.budget_ns == 0 && m->clamped && !m->trusted;
}

TEST(what_users_control_raises_nobody_above_his_limit)
{
	static const char *const theirs[] = {"comm: python3", "cmdline: '*train*'", "env: JOB",
					     "user: alice, env: JOB", "exe: '*', comm: '*'"};
	static const char *const roots[] = {"user: alice", "group: students", "cgroup: '*'",
					    "exe: '*'", "anyone: true"};
	struct gp_procinfo f = alices();

	for (unsigned i = 0; i < sizeof theirs / sizeof *theirs; i++) {
		struct gp_match m = match_generously(theirs[i], "{default: {priority: 0}}", &f);

		assert_true(is_clamped_to_nothing(&m));
	}
	for (unsigned i = 0; i < sizeof roots / sizeof *roots; i++) {
		struct gp_match m = match_generously(roots[i], "{default: {priority: 0}}", &f);

		assert_true(is_generous(&m));
		assert_true(m.trusted);
	}
}

TEST(a_program_or_cgroup_of_the_users_own_is_what_he_controls)
{
	struct gp_procinfo f = alices();
	struct gp_match m;

	f.exe_trusted = false;
	m = match_generously("exe: '*'", "{default: {priority: 0}}", &f);
	assert_true(is_clamped_to_nothing(&m));
	m = match_generously("cgroup: '*'", "{default: {priority: 0}}", &f);
	assert_true(is_generous(&m)); /* it does not ask for the program */
	f.cgroup_trusted = false;
	m = match_generously("cgroup: '*'", "{default: {priority: 0}}", &f);
	assert_true(is_clamped_to_nothing(&m));
}

TEST(what_users_control_lowers_them_whatever_their_limit)
{
	struct gp_procinfo f = alices();
	struct gp_match m = match_in("rules: [{match: {env: JOB}, class: be, weight: 10, "
				     "ceiling: 20}]",
				     &f);

	assert_int_equal(m.attr.class, GP_BEST_EFFORT);
	assert_int_equal(m.attr.weight, 10);
	assert_int_equal(m.attr.ceiling_permille, 200);
	assert_false(m.clamped);
}

TEST(up_to_the_limit_it_raises)
{
	struct gp_procinfo f = alices();
	struct gp_match m = match_generously(
		"env: JOB",
		"{users: {alice: {class: lc, priority: 15, weight: 10000, share: 50, "
		"deadline: 1ms}}}",
		&f);

	assert_true(is_generous(&m));
	m = match_generously("env: JOB",
			     "{users: {alice: {class: lc, priority: 5, deadline: 2ms, share: 10}}}",
			     &f);
	assert_int_equal(m.attr.class, GP_LATENCY_CRITICAL);
	assert_int_equal(m.attr.priority, 5);
	assert_int_equal(m.attr.weight, 100);
	assert_int_equal(m.attr.share_permille, 100);
	assert_int_equal(m.attr.deadline_ns, 2 * GP_NS_PER_MS);
	assert_int_equal(m.attr.budget_ns, 200 * GP_NS_PER_US); /* a tenth of the device */
	assert_true(m.clamped);
}

TEST(of_the_limits_that_apply_the_most_generous_counts_in_each_respect)
{
	struct gp_procinfo f = alices();
	struct gp_match m = match_generously("env: JOB",
					     "{default: {class: be, weight: 150}, "
					     "users: {alice: {priority: 7}, bob: {class: lc}}, "
					     "groups: {students: {class: unmanaged, weight: 120}, "
					     "100: {share: 30}, teachers: {weight: 9999}}}",
					     &f);

	assert_int_equal(m.attr.class, GP_UNMANAGED);
	assert_int_equal(m.attr.priority, 7);
	assert_int_equal(m.attr.weight, 150);
	assert_int_equal(m.attr.share_permille, 300);
}

TEST(of_a_set_uid_programs_users_the_least_limit_counts)
{
	struct gp_procinfo f = alices();
	struct gp_match m;

	f.uid[0] = f.uid[1] = f.uid[2] = 0;
	m = match_generously("env: JOB", "{default: {priority: 0}}", &f);
	assert_true(is_generous(&m)); /* root has no limit */
	f.uid[0] = ALICE;
	m = match_generously("env: JOB", "{default: {priority: 0}}", &f);
	assert_true(is_clamped_to_nothing(&m));
}

TEST(root_of_a_container_has_the_limit_of_everybody)
{
	struct gp_procinfo f = alices();
	struct gp_match m;

	f.uid[0] = f.uid[1] = f.uid[2] = 0;
	f.other_pidns = true;
	m = match_generously("env: JOB", "{default: {priority: 0}}", &f);
	assert_true(is_clamped_to_nothing(&m));
}

TEST(who_is_not_known_has_the_limit_of_everybody)
{
	struct gp_procinfo f = alices();
	struct gp_match m;

	f.known &= ~(uint32_t)GP_PROCINFO_USER;
	m = match_generously("env: JOB", "{users: {alice: {class: lc}}}", &f);
	assert_true(is_clamped_to_nothing(&m));
}

TEST(a_memory_limit_is_the_rules_else_everybodys)
{
	struct gp_procinfo f = alices();
	struct gp_match m;

	m = match_in("memory_limit: 1GiB\non_memory_limit: hold\n"
		     "rules: [{match: {user: alice}, class: be}]",
		     &f);
	assert_int_equal(m.memory_limit, 1 << 30);
	assert_int_equal(m.on_memory_limit, GP_MEMORY_HOLD);
	m = match_in("memory_limit: 1GiB\non_memory_limit: hold\n"
		     "rules: [{match: {user: alice}, class: be, memory_limit: 2GiB}]",
		     &f);
	assert_int_equal(m.memory_limit, 2ull << 30);
	assert_int_equal(m.on_memory_limit, GP_MEMORY_EVENT);
	m = match_in("limits: {default: {memory: 1GiB}}\n"
		     "rules: [{match: {comm: python3}, class: be, memory_limit: 2GiB}]",
		     &f);
	assert_int_equal(m.memory_limit, 1 << 30); /* what he controls does not raise it */
	assert_true(m.clamped);
}

/* That an unmanaged one is not held is seen when it passes the limit: tests/daemon/limits.sh. */
TEST(what_happens_at_the_limit_does_not_depend_on_the_class)
{
	struct gp_procinfo f = alices();
	struct gp_match m = match_in("memory_limit: 1GiB\non_memory_limit: hold\n", &f);

	assert_int_equal(m.attr.class, GP_UNMANAGED);
	assert_int_equal(m.memory_limit, 1 << 30);
	assert_int_equal(m.on_memory_limit, GP_MEMORY_HOLD);
	m = match_in("rules: [{match: {comm: '*'}, class: lc, memory_limit: 1GiB, "
		     "on_memory_limit: hold}]",
		     &f);
	assert_int_equal(m.attr.class, GP_UNMANAGED); /* by the limit */
	assert_int_equal(m.on_memory_limit, GP_MEMORY_HOLD);
}

static uint64_t gang_in(const char *criteria, const char *gang, const struct gp_procinfo *info)
{
	char text[256];

	snprintf(text, sizeof text, "rules: [{match: {%s}, class: be, gang: %s}]", criteria, gang);
	return match_in(text, info).attr.gang;
}

TEST(a_gang_is_a_name_a_cgroup_or_a_process)
{
	struct gp_procinfo f = alices(), other = alices();

	other.pid = 78;
	assert_true(gang_in("anyone: true", "a", &f) == gp_gang_of_admin("a"));
	assert_true(gang_in("anyone: true", "a", &f) == gang_in("anyone: true", "a", &other));
	assert_true(gang_in("anyone: true", "a", &f) != gang_in("anyone: true", "b", &f));
	assert_true(gang_in("anyone: true", "cgroup", &f) ==
		    gang_in("anyone: true", "cgroup", &other));
	assert_true(gang_in("anyone: true", "process", &f) !=
		    gang_in("anyone: true", "process", &other));
	other.cgroup = "/other";
	assert_true(gang_in("anyone: true", "cgroup", &f) !=
		    gang_in("anyone: true", "cgroup", &other));
	assert_true(gang_in("anyone: true", "process", &f) ==
		    gp_gang_of_process(f.start_time, f.pid));
}

TEST(nobody_gets_into_a_gang_of_somebody_else_by_what_he_controls)
{
	struct gp_procinfo alice = alices(), bob = alices();

	bob.uid[0] = bob.uid[1] = bob.uid[2] = BOB;
	assert_true(gang_in("env: JOB", "a", &alice) != gang_in("env: JOB", "a", &bob));
	assert_true(gang_in("env: JOB", "a", &alice) != gang_in("anyone: true", "a", &alice));
	assert_true(gang_in("env: JOB", "a", &alice) == gp_gang_of_user(ALICE, "a"));
	bob.cgroup_trusted = false; /* one that he named like that of alice */
	assert_true(gang_in("anyone: true", "cgroup", &alice) !=
		    gang_in("anyone: true", "cgroup", &bob));
}

TEST(the_kinds_of_gangs_are_kept_apart_and_the_numbers_stay)
{
	for (unsigned i = 0; i < 10000; i++) {
		char name[16];

		snprintf(name, sizeof name, "%u", i);
		assert_int_equal(gp_gang_of_user(ALICE, name) >> 30, 1ull << 32 | ALICE);
		assert_int_equal(gp_gang_of_admin(name) >> 62, 2);
		assert_int_equal(gp_gang_of_cgroup(name) >> 62, 3);
	}
	assert_int_equal(gp_gang_of_process(1000000, 4711) >> 62, 0);
	assert_true(gp_gang_of_user(0, "") != 0);
	/* Worked out by other means: a restarted daemon must find the same ones. */
	assert_true(gp_gang_of_admin("ranks") == 0xa1497e3adc3aab59ull);
	assert_true(gp_gang_of_cgroup("/a/b") == 0xe5ea80a34534a44bull);
	assert_true(gp_gang_of_user(1000, "ranks") == 0x400000fa08525f8eull);
}
