/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A limit on log lines that users cause, so that no user fills the log. Users share a fixed number
 * of buckets by their uid; each bucket has a number of lines per second.
 */
#ifndef GP_DAEMON_LOG_LIMIT_H
#define GP_DAEMON_LOG_LIMIT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/clock.h"

#define GP_LOG_LIMIT_BUCKETS 256u
#define GP_LOG_LIMIT_LINES   10u /* per second and bucket */

struct gp_log_limit {
	struct {
		uint64_t second;
		unsigned lines, left_out;
	} bucket[GP_LOG_LIMIT_BUCKETS];
};

/* Whether the line may be logged. `left_out`: lines that were not logged since the last one. */
static inline bool gp_log_limit_pass(struct gp_log_limit *limit, uid_t by, uint64_t now_ns,
				     unsigned *left_out)
{
	unsigned i = by % GP_LOG_LIMIT_BUCKETS;

	if (limit->bucket[i].second != now_ns / GP_NS_PER_S) {
		limit->bucket[i].second = now_ns / GP_NS_PER_S;
		limit->bucket[i].lines = 0;
	}
	*left_out = 0;
	if (++limit->bucket[i].lines > GP_LOG_LIMIT_LINES) {
		limit->bucket[i].left_out++;
		return false;
	}
	*left_out = limit->bucket[i].left_out;
	limit->bucket[i].left_out = 0;
	return true;
}

#endif
