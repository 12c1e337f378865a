/* SPDX-License-Identifier: Apache-2.0 */
/* The uids that a user can map count as one account. */
#include "support/test.h"

#include "base/accounts.h"

static struct gp_accounts with_file(const char *text)
{
	char path[] = "/tmp/subuid-XXXXXX";
	struct gp_accounts a;
	int fd = mkstemp(path);

	assert_return_code(fd, errno);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	gp_accounts_init(&a, path);
	gp_account_of(&a, 0); /* reads it */
	unlink(path);
	a.path = "/nonexistent";
	return a;
}

TEST(all_uids_of_a_users_entries_are_one_account)
{
	struct gp_accounts a =
		with_file("alice:100000:65536\nbob:165536:65536\nalice:300000:1000\n");

	assert_int_equal(gp_account_of(&a, 100000), 100000);
	assert_int_equal(gp_account_of(&a, 165535), 100000);
	assert_int_equal(gp_account_of(&a, 165536), 165536);
	assert_int_equal(gp_account_of(&a, 231071), 165536);
	assert_int_equal(gp_account_of(&a, 300999), 100000);
	gp_accounts_free(&a);
}

TEST(other_uids_count_for_themselves)
{
	struct gp_accounts a = with_file("alice:100000:65536\n");

	assert_int_equal(gp_account_of(&a, 0), 0);
	assert_int_equal(gp_account_of(&a, 1000), 1000);
	assert_int_equal(gp_account_of(&a, 99999), 99999);
	assert_int_equal(gp_account_of(&a, 165536), 165536);
	assert_int_equal(gp_account_of(&a, (uid_t)-1), (uid_t)-1);
	gp_accounts_free(&a);
}

TEST(lines_that_are_no_entries_are_skipped_and_a_removed_file_has_none)
{
	struct gp_accounts a =
		with_file("\n# comment\nalice\nalice:x:y\n:5:6\ncarol:4294967290:65536\n");

	assert_int_equal(gp_account_of(&a, 5), 5);
	assert_int_equal(gp_account_of(&a, 4294967295u), 4294967290u);
	a.checked_ns = 0;
	assert_int_equal(gp_account_of(&a, 4294967295u), 4294967295u);
	gp_accounts_free(&a);
}
