/* SPDX-License-Identifier: Apache-2.0 */
/* The names of users, which a thread looks up. */
#include "support/test.h"

#include "daemon/usernames.h"

#define FIRST_MAPPED 200000
#define MANY         3000 /* more than the daemon remembers */

static bool has_name(uid_t uid, const char *name)
{
	char text[32];

	return !strcmp(gp_user_name(uid, text, sizeof text), name);
}

/* A user can map 65,536 uids (/etc/subuid), and the daemon describes processes of each. */
TEST(many_uids_of_one_user_do_not_keep_the_names_of_others_out)
{
	char text[32];

	for (uid_t uid = FIRST_MAPPED; uid < FIRST_MAPPED + MANY; uid++)
		gp_user_name(uid, text, sizeof text);
	TEST_WAIT(has_name(0, "root"));
}
