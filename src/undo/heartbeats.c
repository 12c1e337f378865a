/* SPDX-License-Identifier: Apache-2.0 */
/* Who is on duty, scheduler and keeper: one of each, known by pid and start time in one word. */
#include <errno.h>
#include <unistd.h>

#include "base/process.h"
#include "undo/undo_layout.h"

/* gp_process_key, read backwards. */
static pid_t pid_of(uint64_t who)
{
	return (pid_t)(who >> 6 & 0x3fffff);
}

static uint64_t start_time_of(uint64_t who)
{
	return who >> 28;
}

static bool lives(uint64_t who)
{
	return who && gp_process_lives(pid_of(who), start_time_of(who));
}

static uint64_t ourselves(void)
{
	return gp_process_key(gp_process_start_time(getpid()), getpid());
}

static int begin(struct undo_party *party, const char *what, struct gp_error *err)
{
	uint64_t us = ourselves(), was = __atomic_load_n(&party->who, __ATOMIC_ACQUIRE);
	char name[32];

	while (was != us) {
		if (lives(was))
			return gp_fail(
				err, -EBUSY, "there is a %s already: process %d (%s); end it first",
				what, pid_of(was), gp_process_name(pid_of(was), name, sizeof name));
		if (__atomic_compare_exchange_n(&party->who, &was, us, false, __ATOMIC_ACQ_REL,
		                                __ATOMIC_ACQUIRE))
			break;
	}
	return 0;
}

static void beat(struct undo_party *party, uint64_t now_ns)
{
	__atomic_store_n(&party->beat_ns, now_ns, __ATOMIC_RELAXED);
	__atomic_add_fetch(&party->beats, 1, __ATOMIC_RELEASE);
}

static void look(const struct undo_party *party, struct gp_undo_guard *out)
{
	uint64_t who = __atomic_load_n(&party->who, __ATOMIC_ACQUIRE);

	*out = (struct gp_undo_guard){
		.pid = pid_of(who),
		.start_time = start_time_of(who),
		.beats = __atomic_load_n(&party->beats, __ATOMIC_ACQUIRE),
		.beat_ns = __atomic_load_n(&party->beat_ns, __ATOMIC_RELAXED),
		.lives = lives(who),
	};
}

static void end(struct undo_party *party)
{
	uint64_t us = ourselves();

	__atomic_compare_exchange_n(&party->who, &us, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

int gp_undo_guard_begin(struct gp_undo_file *file, struct gp_error *err)
{
	return begin(&file->map->head.scheduler, "scheduler", err);
}

void gp_undo_beat(struct gp_undo_file *file, uint64_t now_ns)
{
	beat(&file->map->head.scheduler, now_ns);
}

void gp_undo_guard(const struct gp_undo_file *file, struct gp_undo_guard *guard)
{
	look(&file->map->head.scheduler, guard);
}

void gp_undo_guard_end(struct gp_undo_file *file)
{
	end(&file->map->head.scheduler);
}

int gp_undo_keeper_begin(struct gp_undo_file *file, struct gp_error *err)
{
	return begin(&file->map->head.keeper, "keeper", err);
}

void gp_undo_keeper_beat(struct gp_undo_file *file, uint64_t now_ns)
{
	beat(&file->map->head.keeper, now_ns);
}

void gp_undo_keeper(const struct gp_undo_file *file, struct gp_undo_guard *keeper)
{
	look(&file->map->head.keeper, keeper);
}

void gp_undo_keeper_end(struct gp_undo_file *file)
{
	end(&file->map->head.keeper);
}
