/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration's file: what each key means, what is taken when it is missing, and whose it is.
 */
#include <grp.h>
#include <sys/stat.h>

#include "config_world.h"

TEST(an_empty_file_is_one_too)
{
	struct gp_config *c = read_good("# nothing\n");

	assert_string_equal(c->policy.text, "priority");
	assert_string_equal(c->policy.choice.ops->name, "priority");
	assert_int_equal(c->gpu, GP_CONFIG_GPU_ALL);
	assert_int_equal(c->ndevices, 0);
	assert_int_equal(c->scheduler.realtime, 0);
	assert_int_equal(c->scheduler.core, GP_CONFIG_NO_CORE);
	assert_int_equal(c->scheduler.check_ns, 0); /* the engine's own */
	assert_string_equal(c->sockets.control.path, "");
	assert_int_equal(c->sockets.control.mode, 0666);
	assert_int_equal(c->sockets.hint.mode, 0666);
	assert_true(c->sockets.has_group);
	assert_int_equal(c->sockets.group, GPREEMPT);
	assert_false(c->metrics.on);
	assert_int_equal(c->log_level, GP_LOG_INFO);
	assert_int_equal(c->memory_limit, 0);
	assert_int_equal(c->nrules, 0);
	assert_memory_equal(&c->limit, &gp_limit_default, sizeof c->limit);
	assert_int_equal(gp_config_wants(c), 0);
	gp_config_free(c);
}

TEST(every_key_of_the_service_has_its_place)
{
	struct gp_config *c = read_good("policy: rr\n"
					"gpu: sim\n"
					"scheduler:\n"
					"  realtime: 50\n"
					"  core: 0\n"
					"  check: 4ms\n"
					"  check_lc: 500us\n"
					"  check_quiet: 2s\n"
					"  scan: 200ms\n"
					"  starve_limit: 20s\n"
					"sockets:\n"
					"  control: {path: /run/a.sock, mode: 0660}\n"
					"  hint: {path: /run/b.sock, mode: 0600}\n"
					"  group: teachers\n"
					"clients:\n"
					"  max: 10\n"
					"  per_user: 5\n"
					"  request_size: 8KiB\n"
					"  rate: 7\n"
					"  idle: 3s\n"
					"log: debug\n"
					"memory_limit: 40GiB\n"
					"on_memory_limit: hold\n");

	assert_string_equal(c->policy.choice.ops->name, "rr");
	assert_int_equal(c->gpu, GP_CONFIG_GPU_SIM);
	assert_int_equal(c->scheduler.realtime, 50);
	assert_int_equal(c->scheduler.core, 0);
	assert_int_equal(c->scheduler.check_ns, 4 * GP_NS_PER_MS);
	assert_int_equal(c->scheduler.check_lc_ns, 500 * GP_NS_PER_US);
	assert_int_equal(c->scheduler.check_quiet_ns, 2 * GP_NS_PER_S);
	assert_int_equal(c->scheduler.scan_every_ns, 200 * GP_NS_PER_MS);
	assert_int_equal(c->scheduler.starve_limit_ns, 20 * GP_NS_PER_S);
	assert_string_equal(c->sockets.control.path, "/run/a.sock");
	assert_int_equal(c->sockets.control.mode, 0660);
	assert_string_equal(c->sockets.hint.path, "/run/b.sock");
	assert_int_equal(c->sockets.hint.mode, 0600);
	assert_int_equal(c->sockets.group, TEACHERS);
	assert_int_equal(c->clients.max, 10);
	assert_int_equal(c->clients.per_user, 5);
	assert_int_equal(c->clients.request_size, 8192);
	assert_int_equal(c->clients.rate, 7);
	assert_int_equal(c->clients.idle_ns, 3 * GP_NS_PER_S);
	assert_int_equal(c->log_level, GP_LOG_DEBUG);
	assert_int_equal(c->memory_limit, 40ull << 30);
	assert_int_equal(c->on_memory_limit, GP_MEMORY_HOLD);
	gp_config_free(c);
}

TEST(every_key_of_rules_and_limits_has_its_place)
{
	struct gp_config *c =
		read_good("rules:\n"
			  "- match: {user: alice, group: students, cgroup: /a*,\n"
			  "          exe: /b*, comm: c*, cmdline: d*, env: E=f*}\n"
			  "  class: lc\n"
			  "  priority: 3\n"
			  "  weight: 200\n"
			  "  share: 12.5\n"
			  "  ceiling: 50\n"
			  "  deadline: 10ms\n"
			  "  budget: 2ms\n"
			  "  gang: both\n"
			  "  memory_limit: 1GiB\n"
			  "  on_memory_limit: hold\n"
			  "limits:\n"
			  "  default: {class: be, max_tasks: 7}\n"
			  "  users:\n"
			  "    alice: {class: lc, priority: 4, weight: 500, share: 20,\n"
			  "            ceiling: 90, deadline: 5ms, memory: 2GiB}\n"
			  "    4711: {priority: 1}\n"
			  "  groups: {teachers: {class: lc}}\n");
	const struct gp_rule *r = &c->rule[0];

	assert_int_equal(c->nrules, 1);
	assert_int_equal(r->line, 2);
	assert_int_equal(r->match.asks, GP_ASKS_ANYONE - 1); /* all but that */
	assert_int_equal(r->match.user, ALICE);
	assert_int_equal(r->match.group, STUDENTS);
	assert_string_equal(r->match.env, "E=f*");
	assert_int_equal(r->match.env_name, 1);
	assert_int_equal(r->attr.class, GP_LATENCY_CRITICAL);
	assert_int_equal(r->attr.priority, 3);
	assert_int_equal(r->attr.weight, 200);
	assert_int_equal(r->attr.share_permille, 125);
	assert_int_equal(r->attr.ceiling_permille, 500);
	assert_int_equal(r->attr.deadline_ns, 10 * GP_NS_PER_MS);
	assert_int_equal(r->attr.budget_ns, 2 * GP_NS_PER_MS);
	assert_int_equal(r->gang_kind, GP_GANG_NAMED);
	assert_int_equal(r->memory_limit, 1 << 30);
	assert_int_equal(r->on_memory_limit, GP_MEMORY_HOLD);
	assert_int_equal(gp_config_wants(c), GP_PROCINFO_ALL);
	assert_int_equal(c->limit.class, GP_BEST_EFFORT);
	assert_int_equal(c->limit.max_tasks, 7);
	assert_int_equal(c->nusers, 2);
	assert_int_equal(c->user[0].id, ALICE);
	assert_int_equal(c->user[0].limit.share_permille, 200);
	assert_int_equal(c->user[0].limit.ceiling_permille, 900);
	assert_int_equal(c->user[0].limit.deadline_ns, 5 * GP_NS_PER_MS);
	assert_int_equal(c->user[0].limit.memory, 2ull << 30);
	assert_int_equal(c->user[1].id, 4711);
	assert_int_equal(c->group[0].id, TEACHERS);
	gp_config_free(c);
}

TEST(a_device_has_the_policy_of_the_first_entry_that_names_a_part_of_it)
{
	struct gp_config *c = read_good("policy: rr\n"
					"devices:\n"
					"- {match: H200, policy: qos}\n"
					"- {match: 'MI*X', ignore: true}\n"
					"- {match: H2, policy: fair}\n");
	bool ignore = true;

	assert_string_equal(gp_config_device(c, "NVIDIA H200 (0)", &ignore)->text, "qos");
	assert_false(ignore);
	assert_string_equal(gp_config_device(c, "NVIDIA H20", &ignore)->text, "fair");
	gp_config_device(c, "AMD Instinct MI300X", &ignore);
	assert_true(ignore);
	assert_string_equal(gp_config_device(c, "A100", &ignore)->text, "rr");
	assert_false(ignore);
	gp_config_free(c);
}

TEST(metrics_listen_where_they_are_told)
{
	struct gp_config *c = read_good("metrics: {listen: 'localhost:9435'}\n");

	assert_true(c->metrics.on);
	assert_int_equal(c->metrics.address.v4.sin_family, AF_INET);
	assert_int_equal(ntohl(c->metrics.address.v4.sin_addr.s_addr), INADDR_LOOPBACK);
	assert_int_equal(ntohs(c->metrics.address.v4.sin_port), 9435);
	assert_false(c->metrics.tasks); /* names of programs only where asked for */
	gp_config_free(c);
	c = read_good("metrics: {listen: '[::1]:9435', tasks: true}\n");
	assert_true(c->metrics.tasks);
	assert_int_equal(c->metrics.address.v6.sin6_family, AF_INET6);
	assert_int_equal(ntohs(c->metrics.address.v6.sin6_port), 9435);
	gp_config_free(c);
	c = read_good("metrics: {listen: '0.0.0.0:9435', public: true}\n");
	assert_true(c->metrics.on);
	gp_config_free(c);
	c = read_good("metrics: {listen: off}\n");
	assert_false(c->metrics.on);
	gp_config_free(c);
}

static void write_file(const char *path, const char *text, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static int load(const char *path, struct gp_error *err)
{
	struct gp_config *c = NULL;
	int r;

	*err = (struct gp_error){0};
	r = gp_config_load(path, &c, err);
	assert_true(!r == !!c);
	gp_config_free(c);
	return r;
}

TEST(a_file_that_others_could_have_written_is_refused_by_root)
{
	char folder[] = "/tmp/gp-config-XXXXXX", path[64];
	struct gp_error err;

	if (geteuid())
		skip();
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof path, "%s/c.yaml", folder);
	write_file(path, "policy: rr\n", 0644);
	assert_int_equal(load(path, &err), 0);
	write_file(path, "policy: rr\n", 0664);
	assert_int_equal(load(path, &err), -EPERM);
	assert_non_null(strstr(err.text, "chmod go-w"));
	write_file(path, "policy: rr\n", 0646);
	assert_int_equal(load(path, &err), -EPERM);
	write_file(path, "policy: rr\n", 0644);
	assert_int_equal(chown(path, 65534, 65534), 0);
	assert_int_equal(load(path, &err), -EPERM);
	assert_non_null(strstr(err.text, "chown root"));
	unlink(path);
	rmdir(folder);
}

/* The same file, read by a user. */
TEST(a_user_may_use_a_file_of_his_own)
{
	char folder[] = "/tmp/gp-config-XXXXXX", path[64];
	int status;
	pid_t pid;

	if (geteuid())
		skip();
	assert_non_null(mkdtemp(folder));
	assert_int_equal(chmod(folder, 0755), 0);
	snprintf(path, sizeof path, "%s/c.yaml", folder);
	write_file(path, "policy: rr\n", 0664);
	assert_int_equal(chown(path, 65534, 65534), 0);
	pid = fork();
	if (!pid) {
		struct gp_error err;

		if (setgroups(0, NULL) || setgid(65534) || setuid(65534))
			_exit(2);
		_exit(load(path, &err) ? 1 : 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	unlink(path);
	rmdir(folder);
}

TEST(what_is_not_a_file_is_refused_and_not_waited_for)
{
	char folder[] = "/tmp/gp-config-XXXXXX", path[64];
	struct gp_error err;

	assert_non_null(mkdtemp(folder));
	assert_int_equal(load(folder, &err), -EINVAL);
	assert_non_null(strstr(err.text, "is not a regular file"));
	snprintf(path, sizeof path, "%s/fifo", folder);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(load(path, &err), -EINVAL);
	unlink(path);
	assert_int_equal(load(path, &err), -ENOENT);
	assert_non_null(strstr(err.text, path));
	rmdir(folder);
}

TEST(the_file_is_the_option_else_the_variable_else_in_etc)
{
	bool chosen;

	unsetenv("GPREEMPT_CONFIG");
	assert_string_equal(gp_config_path(NULL, &chosen), "/etc/gpreempt/gpreempt.yaml");
	assert_false(chosen);
	setenv("GPREEMPT_CONFIG", "/v", 1);
	assert_string_equal(gp_config_path(NULL, &chosen), "/v");
	assert_true(chosen);
	assert_string_equal(gp_config_path("/o", &chosen), "/o");
	assert_true(chosen);
	unsetenv("GPREEMPT_CONFIG");
}

/* Its users and groups must be there, so it is read with those of this machine. */
TEST(the_file_that_is_installed_loads_and_has_no_rule)
{
	const char *source = getenv("SRC");
	struct gp_error err = {0};
	struct gp_config *c;
	char path[512];

	if (!source)
		skip();
	snprintf(path, sizeof path, "%s/etc/gpreempt.yaml", source);
	if (geteuid()) { /* a checkout may belong to any user */
		if (gp_config_load(path, &c, &err))
			fail_msg("%s", err.text);
	} else {
		static char text[1 << 16];
		FILE *f = fopen(path, "re");
		size_t n;

		assert_non_null(f);
		n = fread(text, 1, sizeof text, f);
		fclose(f);
		if (gp_config_parse(path, text, n, &gp_config_system_names, &c, &err))
			fail_msg("%s", err.text);
	}
	/* Installing changes nothing for any program. */
	assert_int_equal(c->nrules, 0);
	gp_config_free(c);
}

static void has_line(const char *text, const char *file, const char *format, uint64_t value)
{
	char line[128];

	snprintf(line, sizeof line, format, (unsigned long)value);
	if (!strstr(text, line))
		fail_msg("%s does not say: %s", file, line);
}

TEST(the_limits_of_clients_are_those_that_the_documents_say)
{
	static const char *const files[] = {"docs/protocol.md", "etc/gpreempt.yaml",
					    "man/gpreempt.yaml.5"};
	/* The same order: of each file max, per_user, request_size, rate, idle. */
	static const char *const lines[][5] = {
		{"| connections | %lu, of", "| connections of a user | %lu;",
		 "| a line | %lu KiB |", "| lines | %lu per second",
		 "| time without a request | %lu minutes"},
		{"max: %lu\n", "per_user: %lu\n", "request_size: %luKiB\n", "rate: %lu ",
		 "idle: %lum\n"},
		{"from 1 to 100000\n.Pq %lu .", "each user\n.Pq %lu .", ".Pq %luKiB .",
		 "each client may send\n.Pq %lu .", ".Pq %lum ."},
	};
	static char text[1 << 16];
	const char *source = getenv("SRC");
	struct gp_config *c;

	if (!source)
		skip();
	assert_int_equal(gp_config_default(&c), 0);
	for (unsigned i = 0; i < sizeof files / sizeof *files; i++) {
		const uint64_t value[] = {c->clients.max, c->clients.per_user,
					  c->clients.request_size >> 10, c->clients.rate,
					  c->clients.idle_ns / GP_NS_PER_S / 60};
		char path[512];
		FILE *f;

		snprintf(path, sizeof path, "%s/%s", source, files[i]);
		f = fopen(path, "re");
		assert_non_null(f);
		text[fread(text, 1, sizeof text - 1, f)] = 0;
		fclose(f);
		for (unsigned j = 0; j < 5; j++)
			has_line(text, files[i], lines[i][j], value[j]);
	}
	gp_config_free(c);
}
