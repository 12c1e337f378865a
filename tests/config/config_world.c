/* SPDX-License-Identifier: Apache-2.0 */
#include "config_world.h"

static int find_name(const char *name, uint32_t *id, bool group)
{
	static const struct {
		const char *name;
		uint32_t id;
		bool group;
	} all[] = {
		{"root", 0, false},           {"alice", ALICE, false},
		{"bob", BOB, false},          {"students", STUDENTS, true},
		{"teachers", TEACHERS, true}, {"gpreempt", GPREEMPT, true},
	};

	for (unsigned i = 0; i < sizeof all / sizeof *all; i++)
		if (!strcmp(all[i].name, name) && all[i].group == group) {
			*id = all[i].id;
			return 0;
		}
	return -ENOENT;
}

static int find_user(const char *name, uid_t *uid)
{
	return find_name(name, uid, false);
}

static int find_group(const char *name, gid_t *gid)
{
	return find_name(name, gid, true);
}

static const struct gp_config_names world_names = {find_user, find_group};

struct gp_config *read_good(const char *text)
{
	struct gp_error err = {0};
	struct gp_config *c;

	if (gp_config_parse("good.yaml", text, strlen(text), &world_names, &c, &err))
		fail_msg("%s", err.text);
	return c;
}

void read_bad(const char *text, unsigned line, const char *a, const char *b)
{
	struct gp_error err = {0};
	struct gp_config *c = (struct gp_config *)1;
	char place[32];

	snprintf(place, sizeof place, "bad.yaml:%u: ", line);
	assert_int_equal(gp_config_parse("bad.yaml", text, strlen(text), &world_names, &c, &err),
			 -EINVAL);
	assert_null(c);
	assert_int_equal(err.code, -EINVAL);
	if (strncmp(err.text, place, strlen(place)) != 0 || !strstr(err.text, a) ||
	    !strstr(err.text, b) || strpbrk(err.text, "\n\033") ||
	    strlen(err.text) == sizeof err.text - 1)
		fail_msg("%s (wanted: %s ... %s ... %s)", err.text, place, a, b);
}

struct gp_procinfo alices(void)
{
	static const gid_t groups[] = {STUDENTS, 5};
	static const char environment[] = "HOME=/home/alice\0JOB=train-7\0EMPTY=\0LAST=x";

	return (struct gp_procinfo){
		.pid = 77,
		.start_time = 4711,
		.known = GP_PROCINFO_ALL,
		.uid = {ALICE, ALICE, ALICE},
		.gid = 100,
		.ngroups = 2,
		.group = groups,
		.cgroup = "/kubepods.slice/pod42/c1",
		.cgroup_trusted = true,
		.exe = "/usr/bin/python3.11",
		.exe_trusted = true,
		.comm = "python3",
		.cmdline = "python3 train.py --size 7",
		.environ = environment,
		.environ_size = sizeof environment,
	};
}

struct gp_match match_in(const char *text, const struct gp_procinfo *info)
{
	struct gp_config *c = read_good(text);
	struct gp_match m;
	int r = gp_config_match(c, info, &m);

	assert_int_equal(r, m.rule < 0 ? -ENOENT : 0);
	gp_config_free(c);
	return m;
}
