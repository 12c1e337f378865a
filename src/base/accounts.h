/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maps a uid to an account; limits per user apply to accounts. A user with an entry in /etc/subuid
 * can run processes under thousands of uids. All uids of the entries of one user are one account.
 */
#ifndef GP_BASE_ACCOUNTS_H
#define GP_BASE_ACCOUNTS_H

#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#define GP_SUBUID_PATH "/etc/subuid"

struct gp_accounts {
	const char *path;
	struct gp_account_range {
		char user[64];
		uint32_t first, count;
		uid_t account;
	} * range;
	unsigned n;
	struct timespec changed; /* st_ctim of the file when it was read */
	uint64_t checked_ns;     /* when st_ctim was last checked; 0: never */
};

/* `path` is GP_SUBUID_PATH, except in tests. */
void gp_accounts_init(struct gp_accounts *a, const char *path);
void gp_accounts_free(struct gp_accounts *a);

/*
 * The account of `uid`: the first uid of the user's first entry, or `uid` itself if no entry has
 * it. Checks at most once a second whether the file changed. If it did, reads it again.
 */
uid_t gp_account_of(struct gp_accounts *a, uid_t uid);

#endif
