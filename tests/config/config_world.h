/* SPDX-License-Identifier: Apache-2.0 */
/* Configurations written in a test, on a machine whose users and groups are known. */
#ifndef TESTS_CONFIG_CONFIG_WORLD_H
#define TESTS_CONFIG_CONFIG_WORLD_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <config.h>
#include "config/config.h"

enum { ALICE = 1000, BOB = 1001, STUDENTS = 2000, TEACHERS = 2001, GPREEMPT = 2002 };

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

static inline struct gp_config *read_good(const char *text)
{
	struct gp_error err = {0};
	struct gp_config *c;

	if (gp_config_parse("good.yaml", text, strlen(text), &world_names, &c, &err))
		fail_msg("%s", err.text);
	return c;
}

/* Both `a` and `b` stand in the sentence, and no more than fits into one. */
static inline void read_bad(const char *text, unsigned line, const char *a, const char *b)
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

#endif
