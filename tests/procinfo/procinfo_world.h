/* SPDX-License-Identifier: Apache-2.0 */
/* Processes to ask about, and a pool to ask. Times here are limits of patience, not claims. */
#ifndef TESTS_PROCINFO_FACTS_WORLD_H
#define TESTS_PROCINFO_FACTS_WORLD_H

#include "support/test.h"

#include <poll.h>
#include <sys/prctl.h>

#include "base/clock.h"
#include "base/process.h"
#include "procinfo/procinfo.h"

#define PATIENCE_MS 60000
#define NOBODY      65534u

struct target {
	pid_t pid;
	uint64_t start_time;
	int input; /* a byte lets a silent one answer */
};

/* argv[0] is short, so that the page that is taken away lies in the first 4096 bytes. */
#define PADDING_SIZE 12288

/* Skips the test where that cannot be. */
struct target start_target(const char *mode, unsigned uid);

/* The same; the page that is taken away is the first of `file`. */
struct target start_target_on(const char *mode, unsigned uid, const char *file);

/* A plain target from a copy of its program. */
struct target start_copy(const char *program);
void stop_target(struct target *t);
struct gp_procinfo_pool *make_pool(struct gp_procinfo_limits limits, int *fd);

/* For those whose deadline must not matter. */
extern const struct gp_procinfo_limits patient;
bool is_readable(int fd, int timeout_ms);

/* The next answer, which must come. */
struct gp_procinfo *wait_for(struct gp_procinfo_pool *pool, int fd, uint64_t *token);

/* One question and its answer. */
struct gp_procinfo *info_of(pid_t pid, uint64_t start_time, uint32_t want);

/* A child that does `prepare`, then waits. */
pid_t start_child(bool (*prepare)(void));

static inline struct gp_procinfo *info_of_child(pid_t pid)
{
	return info_of(pid, gp_process_start_time(pid), GP_PROCINFO_ALL);
}

void stop_child(pid_t pid);

#endif
