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

static int begin(struct gp_undo_party *party, const char *what, struct gp_error *err)
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

static void heartbeat(struct gp_undo_party *party, uint64_t now_ns)
{
	__atomic_store_n(&party->heartbeat_ns, now_ns, __ATOMIC_RELAXED);
	__atomic_add_fetch(&party->heartbeats, 1, __ATOMIC_RELEASE);
}

static void look(const struct gp_undo_party *party, struct gp_undo_scheduler *out)
{
	uint64_t who = __atomic_load_n(&party->who, __ATOMIC_ACQUIRE);

	*out = (struct gp_undo_scheduler){
		.pid = pid_of(who),
		.start_time = start_time_of(who),
		.heartbeats = __atomic_load_n(&party->heartbeats, __ATOMIC_ACQUIRE),
		.heartbeat_ns = __atomic_load_n(&party->heartbeat_ns, __ATOMIC_RELAXED),
		.lives = lives(who),
	};
}

static void end(struct gp_undo_party *party)
{
	uint64_t us = ourselves();

	__atomic_compare_exchange_n(&party->who, &us, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

int gp_undo_scheduler_begin(struct gp_undo_file *file, struct gp_error *err)
{
	return begin(&file->map->head.scheduler, "scheduler", err);
}

void gp_undo_heartbeat(struct gp_undo_file *file, uint64_t now_ns)
{
	heartbeat(&file->map->head.scheduler, now_ns);
}

void gp_undo_scheduler(const struct gp_undo_file *file, struct gp_undo_scheduler *guard)
{
	look(&file->map->head.scheduler, guard);
}

void gp_undo_scheduler_end(struct gp_undo_file *file)
{
	end(&file->map->head.scheduler);
}

int gp_undo_keeper_begin(struct gp_undo_file *file, struct gp_error *err)
{
	return begin(&file->map->head.keeper, "keeper", err);
}

void gp_undo_keeper_heartbeat(struct gp_undo_file *file, uint64_t now_ns)
{
	heartbeat(&file->map->head.keeper, now_ns);
}

void gp_undo_keeper(const struct gp_undo_file *file, struct gp_undo_scheduler *keeper)
{
	look(&file->map->head.keeper, keeper);
}

void gp_undo_keeper_end(struct gp_undo_file *file)
{
	end(&file->map->head.keeper);
}
