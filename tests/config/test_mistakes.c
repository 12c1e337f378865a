/* SPDX-License-Identifier: Apache-2.0 */
/* Each mistake in a configuration is one sentence with file and line that says what would be right.
 */
#include "config_world.h"

#define RULE(text) "rules:\n- match: {user: alice}\n  " text "\n"

TEST(each_mistake_is_a_sentence_with_its_line_and_what_would_be_right)
{
	static const struct {
		const char *text;
		unsigned line;
		const char *a, *b;
	} bad[] = {
		{"policy: rr\npolcy: rr\n", 2, "unknown key 'polcy'", "'policy'"},
		{"policy: rr\npolicy: rr\n", 2, "'policy' is set here and on line 1", "remove"},
		{"policy: prio\n", 1, "no policy 'prio'", "priority"},
		{"\npolicy: priority:speed=3\n", 2, "no parameter 'speed'", "gpreempt policy"},
		{"gpu: intel\n", 1, "'gpu' must be one of", "nvidia"},
		{"devices:\n- policy: rr\n", 2, "needs 'match'", "name"},
		{"devices:\n- match: a\n", 2, "'policy'", "'ignore: true'"},
		{"devices:\n- {match: a, policy: rr, ignore: true}\n", 2, "'policy'", "ignore"},
		{"devices:\n- {match: a, ignore: true}\n- {match: a, ignore: true}\n", 3, "twice",
		 "'a'"},
		{"devices:\n- {match: 'a[', ignore: true}\n", 2, "[ without a ]", "\\["},
		{"devices:\n- {match: a, policy: rr:x}\n", 2, "no parameter 'x'", "rr"},
		{"scheduler: {realtime: 100}\n", 1, "'realtime'", "0 to 99"},
		{"scheduler: {core: 65535}\n", 1, "no core 65535", "0 to"},
		{"scheduler: {check: 5}\n", 1, "'check' needs a unit", "3ms"},
		{"scheduler:\n  check: 1ms\n  check_lc: 2ms\n", 3, "'check_lc' (2ms)", "1ms"},
		{"scheduler: {stave_limit: 5s}\n", 1, "unknown key", "'starve_limit'"},
		{"sockets: {control: {path: run/a}}\n", 1, "'path' must begin with /", "'run/a'"},
		{"sockets: {control: {mode: 0999}}\n", 1, "octal", "'0999'"},
		{"sockets: {control: {mode: 1777}}\n", 1, "octal", "0777"},
		{"sockets: {group: wheel}\n", 1, "no group 'wheel'", "getent group"},
		{"sockets:\n  control: {path: /a}\n  hint: {path: /a}\n", 3, "same path", "own"},
		{"clients: {request_size: 8000}\n", 1, "'request_size' needs a unit", "KiB"},
		{"clients: {request_size: 1TiB}\n", 1, "from 1KiB to 16MiB", "1TiB"},
		{"clients: {request_size: 1.5MiB}\n", 1, "whole size", "1.5MiB"},
		{"clients:\n  max: 5\n  per_user: 6\n", 3, "'per_user' (6)", "is 5"},
		{"metrics: {listen: 9435}\n", 1, "'listen' must be off", "127.0.0.1:9435"},
		{"metrics: {listen: '127.0.0.1:0'}\n", 1, "'listen'", "port"},
		{"metrics: {listen: '127.0.0.1:70000'}\n", 1, "'listen'", "port"},
		{"metrics: {listen: 'example.org:80'}\n", 1, "'listen'", "address"},
		{"metrics: {listen: ':80'}\n", 1, "'listen'", "address"},
		{"metrics: {listen: '0.0.0.0:80'}\n", 1, "not a loopback", "public: true"},
		{"metrics: {listen: '[::]:80'}\n", 1, "not a loopback", "public: true"},
		{"keeper: {timeout: 1s}\n", 1, "unknown key 'keeper'", "keeper"},
		{"log: loud\n", 1, "'log' must be one of", "debug"},
		{"on_memory_limit: hold\n", 1, "without 'memory_limit'", "no effect"},
		{"rules: {}\n", 1, "'rules' must be a list", "set of keys"},
		{"limits: {default: {}}\n", 1, "limit is empty", "class"},
		{"limits: {default: {claas: lc}}\n", 1, "unknown key", "'class'"},
		{"limits:\n  users:\n    carol: {class: lc}\n", 3, "no user 'carol'", "getent"},
		{"limits:\n  users:\n    alice: {class: lc}\n    1000: {class: be}\n", 4, "'1000'",
		 "twice"},
		{"limits:\n  groups:\n    wheel: {class: lc}\n", 3, "no group 'wheel'", "getent"},
		{"limits: {users: [alice]}\n", 1, "'users' must be names", "a list"},
		{"limits: {users: {alice: lc}}\n", 1, "a limit must be keys", "'lc'"},
		{"limits: {default: {ceiling: 0}}\n", 1, "'ceiling'", "more than 0"},
		{"rules:\n- class: be\n", 2, "needs 'match'", "anyone"},
		{"rules:\n- match: {}\n  class: be\n", 2, "'match' is empty", "anyone"},
		{"rules:\n- match: {user: alice}\n", 2, "gives nothing", "class: unmanaged"},
		{"rules:\n- match: {user: carol}\n  class: be\n", 2, "no user 'carol'", "getent"},
		{"rules:\n- match: {group: wheel}\n  class: be\n", 2, "no group 'wheel'", "getent"},
		{"rules:\n- match: {exe: a/b}\n  class: be\n", 2, "'exe' can never match",
		 "/ or *"},
		{"rules:\n- match: {cgroup: a/b}\n  class: be\n", 2, "'cgroup' can never",
		 "/ or *"},
		{"rules:\n- match: {comm: abcdefghijklmnop}\n  class: be\n", 2, "'comm' can never",
		 "15 bytes"},
		{"rules:\n- match: {cmdline: 'a[b'}\n  class: be\n", 2, "'cmdline'", "without a ]"},
		{"rules:\n- match: {exe: '/a\\'}\n  class: be\n", 2, "'exe' ends with", "\\"},
		{"rules:\n- match: {env: '=x'}\n  class: be\n", 2, "NAME=GLOB", "'=x'"},
		{"rules:\n- match: {env: 'A*=x'}\n  class: be\n", 2, "as it is", "'A*=x'"},
		{"rules:\n- match: {anyone: false}\n  class: be\n", 2, "must be the only key",
		 "remove"},
		{"rules:\n- match: {anyone: true, comm: a}\n  class: be\n", 2,
		 "must be the only key", "'match'"},
		{RULE("priority: 3"), 3, "'priority' has no effect on an unmanaged", "class: be"},
		{RULE("gang: a"), 3, "'gang' has no effect on an unmanaged", "class: be"},
		{RULE("class: be\n  priority: 16"), 4, "'priority'", "0 to 15"},
		{RULE("class: be\n  share: 50\n  ceiling: 40"), 5, "'ceiling'", "'share'"},
		{RULE("class: be\n  budget: 5ms"), 4, "'budget'", "without 'deadline'"},
		{RULE("class: be\n  deadline: 5ms\n  budget: 6ms"), 5, "'budget'", "'deadline'"},
		{RULE("class: be\n  on_memory_limit: hold"), 4, "without 'memory_limit'", "on_"},
		{RULE("memory_limit: 1GiB\n  on_memory_limit: hold"), 4, "never held", "class: be"},
	};

	for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++)
		read_bad(bad[i].text, bad[i].line, bad[i].a, bad[i].b);
}

TEST(a_rule_that_can_never_match_because_of_one_before_it_is_a_mistake)
{
	static const char *const covered[][2] = {
		{"anyone: true", "user: alice"},
		{"user: alice", "user: alice"},
		{"user: alice", "user: 1000, comm: x"},
		{"group: students", "group: students, exe: '*'"},
		{"cgroup: '/a/*'", "cgroup: /a/b"},
		{"cgroup: '*'", "cgroup: '/x*y'"},
		{"exe: '/usr/bin/[a-c]*'", "exe: /usr/bin/bash, user: bob"},
		{"env: A", "env: A=x"},
		{"env: A=x*", "env: A=xy"},
		{"cmdline: '*train*'", "cmdline: python train.py"},
	};
	static const char *const fine[][2] = {
		{"user: alice", "user: bob"},
		{"user: alice, comm: x", "user: alice"},
		{"cgroup: '/a/*'", "cgroup: /b/c"},
		{"cgroup: '/a/*'", "cgroup: '*'"},
		{"env: A=x", "env: A"},
		{"env: A", "env: AB"},
		{"env: AB", "env: A"},
		{"comm: x", "exe: /x"},
		{"user: root", "comm: x"},
		{"exe: '/a[*]'", "exe: /ab"},
	};
	char text[256];

	for (unsigned i = 0; i < sizeof covered / sizeof *covered; i++) {
		snprintf(text, sizeof text,
			 "rules:\n- match: {%s}\n  class: be\n- match: {%s}\n"
			 "  class: lc\n",
			 covered[i][0], covered[i][1]);
		read_bad(text, 4, "can never match", "line 2");
	}
	for (unsigned i = 0; i < sizeof fine / sizeof *fine; i++) {
		snprintf(text, sizeof text,
			 "rules:\n- match: {%s}\n  class: be\n- match: {%s}\n"
			 "  class: lc\n",
			 fine[i][0], fine[i][1]);
		gp_config_free(read_good(text));
	}
}

TEST(there_are_as_many_rules_as_there_may_be)
{
	size_t size = ((size_t)GP_CONFIG_RULES_MAX + 2) * 64;
	char *text = malloc(size), *at = text;

	at += sprintf(at, "rules:\n");
	for (unsigned i = 0; i < GP_CONFIG_RULES_MAX; i++)
		at += sprintf(at, "- {match: {comm: c%u}, class: be}\n", i);
	gp_config_free(read_good(text));
	sprintf(at, "- {match: {comm: more}, class: be}\n");
	read_bad(text, GP_CONFIG_RULES_MAX + 2, "more than 512 rules", "globs");
	free(text);
}
