/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A limit on log lines that users cause, so that no user fills the log. Each account that causes
 * lines has a bucket with a number of lines per second. If more accounts than there are buckets
 * cause lines in the same second, some of them share a bucket.
 */
#ifndef GP_DAEMON_LOG_LIMIT_H
#define GP_DAEMON_LOG_LIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/clock.h"

#define GP_LOG_LIMIT_BUCKETS 256u
#define GP_LOG_LIMIT_LINES   10u /* per second and account */

struct gp_log_limit {
	struct gp_log_bucket {
		uid_t by; /* the last account that used the bucket */
		uint64_t second;
		unsigned lines, left_out;
	} bucket[GP_LOG_LIMIT_BUCKETS];
};

/* The bucket of the account. If it has none: one that no account has used in this second, if
 * possible without lines that were left out and not yet reported. */
static inline struct gp_log_bucket *gp_log_limit_bucket(struct gp_log_limit *limit, uid_t by,
							uint64_t second)
{
	struct gp_log_bucket *unused = NULL;

	for (unsigned i = 0; i < GP_LOG_LIMIT_BUCKETS; i++) {
		struct gp_log_bucket *b = &limit->bucket[(by + i) % GP_LOG_LIMIT_BUCKETS];

		if (b->by == by && (b->lines || b->left_out))
			return b;
		if ((b->second != second || !b->lines) &&
		    (!unused || (unused->left_out && !b->left_out)))
			unused = b;
	}
	if (!unused)
		return &limit->bucket[by % GP_LOG_LIMIT_BUCKETS];
	*unused = (struct gp_log_bucket){.by = by, .second = second};
	return unused;
}

/* Whether the line may be logged. `left_out`: lines that were not logged since the last one. */
static inline bool gp_log_limit_pass(struct gp_log_limit *limit, uid_t by, uint64_t now_ns,
				     unsigned *left_out)
{
	uint64_t second = now_ns / GP_NS_PER_S;
	struct gp_log_bucket *b = gp_log_limit_bucket(limit, by, second);

	if (b->second != second) {
		b->second = second;
		b->lines = 0;
	}
	*left_out = 0;
	if (++b->lines > GP_LOG_LIMIT_LINES) {
		b->left_out++;
		return false;
	}
	*left_out = b->left_out;
	b->left_out = 0;
	return true;
}

#endif
