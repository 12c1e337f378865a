/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gang numbers. The two highest bits say what the gang is named after. A user's number contains the
 * uid, so that no hash collision leads into another user's gang.
 */
#include <stdint.h>

#include "base/process.h"
#include "config/config.h"

enum { OF_PROCESS, OF_USER, OF_ADMIN, OF_CGROUP };

#define KIND_SHIFT 62
#define USER_SHIFT 30

static uint64_t with_kind(uint64_t kind, uint64_t number)
{
	number &= (1ull << KIND_SHIFT) - 1;
	return kind << KIND_SHIFT | (number ? number : 1);
}

/* FNV-1a with a final mix, so that every byte reaches every bit. */
static uint64_t hash(const char *text)
{
	uint64_t h = 0xcbf29ce484222325ull;

	for (; *text; text++)
		h = (h ^ (unsigned char)*text) * 0x100000001b3ull;
	h = (h ^ h >> 33) * 0xff51afd7ed558ccdull;
	return h ^ h >> 33;
}

uint64_t gp_gang_of_user(uid_t uid, const char *name)
{
	return with_kind(OF_USER, (uint64_t)uid << USER_SHIFT | hash(name) >> (64 - USER_SHIFT));
}

uint64_t gp_gang_of_admin(const char *name)
{
	return with_kind(OF_ADMIN, hash(name));
}

uint64_t gp_gang_of_cgroup(const char *path)
{
	return with_kind(OF_CGROUP, hash(path));
}

uint64_t gp_gang_of_process(uint64_t start_time, pid_t pid)
{
	return with_kind(OF_PROCESS, gp_process_key(start_time, pid));
}
