/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Access rights by caller, target process, action and namespace: every combination, + allowed,
 * - refused.
 * The unit test asks the functions; tests of the daemon do the same things as real users.
 */
#ifndef TESTS_CONFIG_RIGHTS_TABLE_H
#define TESTS_CONFIG_RIGHTS_TABLE_H

#include <stddef.h>

enum rights_who {
	WHO_USER,             /* not in the group gpreempt */
	WHO_MEMBER,           /* of the group gpreempt */
	WHO_ROOT,             /* these three are in the daemon's pid namespace, ... */
	WHO_CONTAINED_USER,   /* the same users in a user namespace of their own */
	WHO_CONTAINED_MEMBER, /* a user with the same group number */
	WHO_CONTAINED_ROOT,   /* uid 0, but not the machine's administrator */
	RIGHTS_WHO,
};

/* Of the same pid namespace as who asks, unless it is elsewhere: in a container's, seen from
 * outside, or outside, seen from a container. */
enum rights_whose {
	WHOSE_SELF,
	WHOSE_OWN,
	WHOSE_OWN_ELSEWHERE,
	WHOSE_OWN_SETUID, /* started by the caller; effective and saved user differ */
	WHOSE_OTHERS,
	WHOSE_OTHERS_ELSEWHERE,
	RIGHTS_WHOSE,
};

enum rights_what {
	WHAT_READ,
	WHAT_HINT,
	WHAT_LOWER,  /* a lower class than it has */
	WHAT_WITHIN, /* a higher one, within the limit */
	WHAT_ABOVE,
	WHAT_TO_RULE,    /* as high as a rule gives it, where no limit says anything */
	WHAT_ABOVE_RULE, /* and higher */
	WHAT_MANY,       /* within the limit, but there are too many of the user's already */
	WHAT_HOLD,
	WHAT_HOLD_GANG,    /* others' processes are in its gang */
	WHAT_RELEASE,      /* the hold is the asker's own */
	WHAT_RELEASE_GANG, /* the same, with others' processes in its gang */
	WHAT_RELEASE_ADMINS,
	WHAT_RELEASE_OTHERS, /* of another user who is no administrator */
	RIGHTS_WHAT,
};

struct rights_row {
	enum rights_who who;
	enum rights_whose whose;
	char may[RIGHTS_WHAT + 1];
};

/* clang-format off */
static const struct rights_row rights_rows[] = {
	/*                                              read
	 *                                              |hint
	 *                                              ||   lower
	 *                                              ||   |within
	 *                                              ||   ||above
	 *                                              ||   |||to what a rule gives
	 *                                              ||   ||||above that
	 *                                              ||   |||||many
	 *                                              ||   ||||||   hold
	 *                                              ||   ||||||   |hold gang
	 *                                              ||   ||||||   ||   release own
	 *                                              ||   ||||||   ||   |own, gang
	 *                                              ||   ||||||   ||   ||admin's
	 *                                              ||   ||||||   ||   |||others' */
	{WHO_USER,             WHOSE_SELF,             "++" "++-+--" "+-" "+---"},
	{WHO_USER,             WHOSE_OWN,              "+-" "++-+--" "+-" "+---"},
	{WHO_USER,             WHOSE_OWN_ELSEWHERE,    "+-" "++-+--" "+-" "+---"},
	{WHO_USER,             WHOSE_OWN_SETUID,       "+-" "------" "--" "----"},
	{WHO_USER,             WHOSE_OTHERS,           "+-" "------" "--" "----"},
	{WHO_USER,             WHOSE_OTHERS_ELSEWHERE, "+-" "------" "--" "----"},

	{WHO_MEMBER,           WHOSE_SELF,             "++" "++++++" "++" "++++"},
	{WHO_MEMBER,           WHOSE_OWN,              "+-" "++++++" "++" "++++"},
	{WHO_MEMBER,           WHOSE_OWN_ELSEWHERE,    "+-" "++++++" "++" "++++"},
	{WHO_MEMBER,           WHOSE_OWN_SETUID,       "+-" "++++++" "++" "++++"},
	{WHO_MEMBER,           WHOSE_OTHERS,           "+-" "++++++" "++" "++++"},
	{WHO_MEMBER,           WHOSE_OTHERS_ELSEWHERE, "+-" "++++++" "++" "++++"},

	{WHO_ROOT,             WHOSE_SELF,             "++" "++++++" "++" "++++"},
	{WHO_ROOT,             WHOSE_OWN,              "+-" "++++++" "++" "++++"},
	{WHO_ROOT,             WHOSE_OWN_ELSEWHERE,    "+-" "++++++" "++" "++++"},
	{WHO_ROOT,             WHOSE_OWN_SETUID,       "+-" "++++++" "++" "++++"},
	{WHO_ROOT,             WHOSE_OTHERS,           "+-" "++++++" "++" "++++"},
	{WHO_ROOT,             WHOSE_OTHERS_ELSEWHERE, "+-" "++++++" "++" "++++"},

	{WHO_CONTAINED_USER,   WHOSE_SELF,             "++" "++-+--" "+-" "+---"},
	{WHO_CONTAINED_USER,   WHOSE_OWN,              "+-" "++-+--" "+-" "+---"},
	{WHO_CONTAINED_USER,   WHOSE_OWN_ELSEWHERE,    "--" "------" "--" "----"},
	{WHO_CONTAINED_USER,   WHOSE_OWN_SETUID,       "--" "------" "--" "----"},
	{WHO_CONTAINED_USER,   WHOSE_OTHERS,           "--" "------" "--" "----"},
	{WHO_CONTAINED_USER,   WHOSE_OTHERS_ELSEWHERE, "--" "------" "--" "----"},

	{WHO_CONTAINED_MEMBER, WHOSE_SELF,             "++" "++-+--" "+-" "+---"},
	{WHO_CONTAINED_MEMBER, WHOSE_OWN,              "+-" "++-+--" "+-" "+---"},
	{WHO_CONTAINED_MEMBER, WHOSE_OWN_ELSEWHERE,    "--" "------" "--" "----"},
	{WHO_CONTAINED_MEMBER, WHOSE_OWN_SETUID,       "--" "------" "--" "----"},
	{WHO_CONTAINED_MEMBER, WHOSE_OTHERS,           "--" "------" "--" "----"},
	{WHO_CONTAINED_MEMBER, WHOSE_OTHERS_ELSEWHERE, "--" "------" "--" "----"},

	{WHO_CONTAINED_ROOT,   WHOSE_SELF,             "++" "++-+--" "+-" "+---"},
	{WHO_CONTAINED_ROOT,   WHOSE_OWN,              "+-" "++-+--" "+-" "+---"},
	{WHO_CONTAINED_ROOT,   WHOSE_OWN_ELSEWHERE,    "--" "------" "--" "----"},
	{WHO_CONTAINED_ROOT,   WHOSE_OWN_SETUID,       "--" "------" "--" "----"},
	{WHO_CONTAINED_ROOT,   WHOSE_OTHERS,           "--" "------" "--" "----"},
	{WHO_CONTAINED_ROOT,   WHOSE_OTHERS_ELSEWHERE, "--" "------" "--" "----"},
};

enum rights_general {
	GENERAL_READ_ALL, GENERAL_RESUME_ALL, GENERAL_POLICY, GENERAL_RELOAD, RIGHTS_GENERAL
};

/* What is about no process. */
static const struct {
	enum rights_who who;
	char may[RIGHTS_GENERAL + 1];
} rights_general[] = {
	/*                      read all, resume all, policy, reload */
	{WHO_USER,             "+---"},
	{WHO_MEMBER,           "++++"},
	{WHO_ROOT,             "++++"},
	{WHO_CONTAINED_USER,   "----"},
	{WHO_CONTAINED_MEMBER, "----"},
	{WHO_CONTAINED_ROOT,   "----"},
};
/* clang-format on */

_Static_assert(sizeof rights_rows / sizeof *rights_rows == (size_t)RIGHTS_WHO * RIGHTS_WHOSE,
	       "every combination has its row");
_Static_assert(sizeof rights_general / sizeof *rights_general == RIGHTS_WHO,
	       "one row for each caller");

#endif
