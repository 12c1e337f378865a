/* SPDX-License-Identifier: Apache-2.0 */
/* Which rule fits a process, what is not known of it, and how long that takes. */
#include "config_world.h"

/* Whether a rule with these criteria fits. */
static bool fits(const char *criteria, const struct gp_procinfo *info)
{
	char text[256];

	snprintf(text, sizeof text, "rules: [{match: {%s}, class: be}]", criteria);
	return match_in(text, info).rule == 0;
}

TEST(each_criterion_fits_what_it_says_and_nothing_else)
{
	static const struct {
		const char *criteria;
		bool fits;
	} all[] = {
		{"anyone: true", true},
		{"user: alice", true},
		{"user: bob", false},
		{"user: 1000", true},
		{"group: students", true},
		{"group: teachers", false},
		{"group: 100", true}, /* the real one */
		{"cgroup: '/kubepods*'", true},
		{"cgroup: '*/pod42/*'", true},
		{"cgroup: '/kubepods'", false},
		{"exe: '/usr/bin/python*'", true},
		{"exe: /usr/bin/bash", false},
		{"comm: python3", true},
		{"comm: python", false},
		{"cmdline: '*train.py*'", true},
		{"cmdline: 'train.py*'", false},
		{"env: JOB", true},
		{"env: EMPTY", true},
		{"env: LAST", true},
		{"env: LAST=x", true},
		{"env: JO", false},
		{"env: OB", false},
		{"env: JOBS", false},
		{"env: 'JOB=train-*'", true},
		{"env: 'JOB=rain-*'", false},
		{"env: 'EMPTY='", true},
		{"env: 'EMPTY=?*'", false},
		{"user: alice, comm: python3, env: JOB", true},
		{"user: alice, comm: python3, env: NONE", false},
		{"user: bob, comm: python3", false},
	};
	struct gp_procinfo f = alices();

	for (unsigned i = 0; i < sizeof all / sizeof *all; i++)
		if (fits(all[i].criteria, &f) != all[i].fits)
			fail_msg("%s", all[i].criteria);
}

TEST(the_first_rule_that_fits_wins)
{
	struct gp_procinfo f = alices();
	struct gp_match m = match_in("rules:\n"
				     "- {match: {user: bob}, class: lc}\n"
				     "- {match: {group: students}, class: be, priority: 2}\n"
				     "- {match: {user: alice}, class: lc}\n",
				     &f);

	assert_int_equal(m.rule, 1);
	assert_int_equal(m.attr.class, GP_BEST_EFFORT);
	assert_int_equal(m.attr.priority, 2);
	assert_int_equal(m.attr.weight, 100);
	assert_false(m.incomplete);
	assert_false(m.clamped);
	assert_true(m.trusted);
}

TEST(without_a_rule_a_process_is_unmanaged)
{
	struct gp_procinfo f = alices();
	struct gp_match m = match_in("rules: [{match: {user: bob}, class: lc}]", &f);

	assert_int_equal(m.rule, -1);
	assert_memory_equal(&m.attr, &GP_TASK_ATTR_DEFAULT, sizeof m.attr);
	assert_false(m.incomplete);
}

/* It has the rights of one and does the will of the other. */
TEST(a_set_uid_program_is_nobodys_by_name)
{
	struct gp_procinfo f = alices();

	f.uid[1] = 0;
	assert_false(fits("user: alice", &f));
	assert_false(fits("user: root", &f));
	f.uid[0] = f.uid[2] = 0;
	assert_true(fits("user: root", &f));
}

TEST(a_rule_that_needs_what_is_not_known_does_not_fit_and_that_is_said)
{
	static const struct {
		const char *criteria;
		uint32_t needs;
	} all[] = {
		{"user: alice", GP_PROCINFO_USER},   {"group: students", GP_PROCINFO_USER},
		{"cgroup: '*'", GP_PROCINFO_CGROUP}, {"exe: '*'", GP_PROCINFO_EXE},
		{"comm: '*'", GP_PROCINFO_COMM},     {"cmdline: '*'", GP_PROCINFO_CMDLINE},
		{"env: JOB", GP_PROCINFO_ENVIRON},
	};
	char text[256];

	for (unsigned i = 0; i < sizeof all / sizeof *all; i++) {
		struct gp_procinfo f = alices();
		struct gp_match m;

		snprintf(text, sizeof text,
			 "rules: [{match: {%s}, class: lc}, {match: {anyone: true}, class: be}]",
			 all[i].criteria);
		m = match_in(text, &f);
		assert_int_equal(m.rule, 0);
		assert_false(m.incomplete);
		f.known &= ~all[i].needs;
		m = match_in(text, &f);
		assert_int_equal(m.rule, 1);
		assert_true(m.incomplete);
	}
}

TEST(what_is_not_known_does_not_matter_where_the_rest_does_not_fit)
{
	struct gp_procinfo f = alices();
	struct gp_match m;

	f.known &= ~(uint32_t)GP_PROCINFO_CMDLINE;
	m = match_in("rules: [{match: {user: bob, cmdline: '*'}, class: lc}]", &f);
	assert_false(m.incomplete);
	m = match_in("rules: [{match: {user: alice, cmdline: '*'}, class: lc}]", &f);
	assert_true(m.incomplete);
}

TEST(only_what_rules_need_is_wanted)
{
	struct gp_config *c = read_good("rules: [{match: {comm: a}, class: be}]");

	assert_int_equal(gp_config_wants(c), GP_PROCINFO_USER | GP_PROCINFO_COMM);
	gp_config_free(c);
	c = read_good("rules: [{match: {user: alice}, class: be, gang: cgroup}]");
	assert_int_equal(gp_config_wants(c), GP_PROCINFO_USER | GP_PROCINFO_CGROUP);
	gp_config_free(c);
}

TEST(whatever_a_process_calls_itself_the_work_is_bounded)
{
	static char words[GP_PROCINFO_CMDLINE_MAX + 1], text[1 << 17];
	char *at = text + sprintf(text, "rules:\n");
	struct gp_procinfo f = alices();
	struct gp_match m;

	memset(words, 'a', sizeof words - 1);
	f.cmdline = words;
	for (unsigned i = 0; i < 500; i++)
		at += sprintf(at, "- {match: {cmdline: '*%0100db%u'}, class: be}\n", 0, i);
	for (char *zero = text; (zero = strchr(zero, '0')); zero++)
		*zero = 'a';
	m = match_in(text, &f);
	assert_int_equal(m.rule, -1);
	assert_true(m.incomplete); /* there were not enough steps for all 500 */
}

TEST(a_long_value_of_a_variable_fits_no_glob)
{
	static char environment[8192];
	struct gp_procinfo f = alices();

	memset(environment, 'a', sizeof environment - 1);
	environment[0] = 'J', environment[1] = 'O', environment[2] = 'B', environment[3] = '=';
	f.environ = environment;
	f.environ_size = sizeof environment;
	assert_true(fits("env: JOB", &f));
	assert_false(fits("env: 'JOB=a*'", &f));
	f.environ_size = 100; /* cut in the middle */
	assert_true(fits("env: 'JOB=a*'", &f));
	f.environ_size = 2; /* in the name */
	assert_false(fits("env: JOB", &f));
	f.environ_size = 0;
	assert_false(fits("env: JOB", &f));
}
