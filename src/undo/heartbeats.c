/* SPDX-License-Identifier: Apache-2.0 */
/* The roles of scheduler and keeper. Each is held by one process, stored as gp_process_key. */
#include <errno.h>
#include <unistd.h>

#include "base/process.h"
#include "undo/undo_layout.h"

/* The inverse of gp_process_key. */
static pid_t pid_of(uint64_t process)
{
	return (pid_t)(process >> 6 & 0x3fffff);
}

static uint64_t start_time_of(uint64_t process)
{
	return process >> 28;
}

static bool lives(uint64_t process)
{
	return process && gp_process_lives(pid_of(process), start_time_of(process));
}

/* A process that was killed and hangs in the kernel has the role no longer. */
static bool keeps_role(uint64_t process)
{
	return process && gp_process_can_run(pid_of(process), start_time_of(process));
}

static uint64_t own_key(void)
{
	return gp_process_key(gp_process_start_time(getpid()), getpid());
}

static int take_role(struct gp_undo_role *role, const char *what, struct gp_error *err)
{
	uint64_t own = own_key(), was = __atomic_load_n(&role->process, __ATOMIC_ACQUIRE);
	char name[32];

	while (was != own) {
		if (keeps_role(was))
			return gp_fail(
				err, -EBUSY, "another %s is running: process %d (%s); end it first",
				what, pid_of(was), gp_process_name(pid_of(was), name, sizeof name));
		if (__atomic_compare_exchange_n(&role->process, &was, own, false, __ATOMIC_ACQ_REL,
						__ATOMIC_ACQUIRE))
			break;
	}
	return 0;
}

static void send_heartbeat(struct gp_undo_role *role, uint64_t now_ns)
{
	__atomic_store_n(&role->heartbeat_ns, now_ns, __ATOMIC_RELAXED);
	__atomic_add_fetch(&role->heartbeats, 1, __ATOMIC_RELEASE);
}

static void read_role(const struct gp_undo_role *role, struct gp_undo_scheduler *out)
{
	uint64_t process = __atomic_load_n(&role->process, __ATOMIC_ACQUIRE);

	*out = (struct gp_undo_scheduler){
		.pid = pid_of(process),
		.start_time = start_time_of(process),
		.heartbeats = __atomic_load_n(&role->heartbeats, __ATOMIC_ACQUIRE),
		.heartbeat_ns = __atomic_load_n(&role->heartbeat_ns, __ATOMIC_RELAXED),
		.lives = lives(process),
	};
}

static void leave_role(struct gp_undo_role *role)
{
	uint64_t own = own_key();

	__atomic_compare_exchange_n(&role->process, &own, 0, false, __ATOMIC_ACQ_REL,
				    __ATOMIC_RELAXED);
}

int gp_undo_scheduler_begin(struct gp_undo_file *file, struct gp_error *err)
{
	struct gp_undo_role *role = &file->map->head.scheduler;

	file->is_first = !__atomic_load_n(&role->heartbeats, __ATOMIC_ACQUIRE);
	file->replaces_hung = lives(__atomic_load_n(&role->process, __ATOMIC_ACQUIRE));
	return take_role(role, "scheduler", err);
}

bool gp_undo_is_first_scheduler(const struct gp_undo_file *file)
{
	return file->is_first;
}

bool gp_undo_replaces_hung_scheduler(const struct gp_undo_file *file)
{
	return file->replaces_hung;
}

void gp_undo_heartbeat(struct gp_undo_file *file, uint64_t now_ns)
{
	send_heartbeat(&file->map->head.scheduler, now_ns);
}

void gp_undo_scheduler(const struct gp_undo_file *file, struct gp_undo_scheduler *scheduler)
{
	read_role(&file->map->head.scheduler, scheduler);
}

void gp_undo_scheduler_end(struct gp_undo_file *file)
{
	leave_role(&file->map->head.scheduler);
}

int gp_undo_keeper_begin(struct gp_undo_file *file, struct gp_error *err)
{
	return take_role(&file->map->head.keeper, "keeper", err);
}

void gp_undo_keeper_heartbeat(struct gp_undo_file *file, uint64_t now_ns)
{
	send_heartbeat(&file->map->head.keeper, now_ns);
}

void gp_undo_keeper(const struct gp_undo_file *file, struct gp_undo_scheduler *keeper)
{
	read_role(&file->map->head.keeper, keeper);
}

void gp_undo_keeper_end(struct gp_undo_file *file)
{
	leave_role(&file->map->head.keeper);
}
