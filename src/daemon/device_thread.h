/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One device, and the thread that owns it. The thread looks when its engine wants to, when the back
 * end has news and when an order comes; it does nothing that can block, and shares nothing but the
 * two rings and the pictures. All calls below come from the control thread.
 */
#ifndef GP_DAEMON_DEVICE_THREAD_H
#define GP_DAEMON_DEVICE_THREAD_H

#include "daemon/assignments.h"
#include "daemon/snapshot.h"
#include "engine/engine.h"

struct gp_device_thread_config {
	struct gp_gpu *gpu; /* the host closes it */
	unsigned number;    /* of the device */
	struct gp_assignments *assignments;
	struct gp_policy_choice policy;
	bool undo;    /* records are kept; false only where changes cannot outlive us */
	int realtime; /* SCHED_FIFO priority, 0 = none */
	int cpu;      /* the only one to run on, -1 = any */
	/* As in struct gp_engine_config; 0 = the engine's own. */
	uint64_t check_ns, check_lc_ns, check_quiet_ns, scan_every_ns, starve_limit_ns;
	int wake_fd; /* an eventfd of the control thread: there is news */
};

enum gp_command_kind {
	GP_COMMAND_ATTR,    /* task, attr */
	GP_COMMAND_HOLD,    /* task: answered when it is held */
	GP_COMMAND_RELEASE, /* task: answered when that is done */
	GP_COMMAND_POLICY,  /* policy */
	GP_COMMAND_MARK,    /* key, begins */
	GP_COMMAND_HINT,    /* key: its work will follow in a moment */
};

struct gp_command {
	enum gp_command_kind kind;
	uint64_t token; /* comes back with the answer; 0: none is wanted */
	uint64_t task;
	uint64_t key;
	bool begins;
	struct gp_task_attr attr;
	struct gp_policy_choice policy;
};

struct gp_answer {
	uint64_t token;
	int status; /* 0 or -errno */
	char text[256];
};

/* An event of the engine, with what was known of the task. */
struct gp_device_event {
	struct gp_event event;
	uint8_t held_by; /* HELD: GP_HELD_BY_* */
	bool resumed;    /* RELEASED: a hold by hand is over, by the records */
	pid_t pid;       /* TASK_IN; these too: */
	uint64_t start_time;
	uint64_t key;
	uint32_t seen_flags;
	char name[32];
	struct gp_task_attr attr;
	char text[256]; /* EJECTED, ACTION_FAILED: a sentence; POLICY: its name */
};

#define GP_COMMANDS_MAX 512 /* that are with the thread and were not answered yet */

struct gp_device_thread;

/* Starts the thread. On error, too, the device is closed. */
int gp_device_thread_start(const struct gp_device_thread_config *config,
                           struct gp_device_thread **thread, struct gp_error *err);

/* Everything is put back and the thread has ended. The records stay: when all hosts have stopped,
 * gp_records_settle does it once more by them, and drops those of what is as it was. */
void gp_device_thread_stop(struct gp_device_thread *thread);

/* They keep their order, and those for which there is no room yet wait for it here; hints and
 * brackets, which are of no use later, do not. -EAGAIN: too many wait. -ENOMEM. */
int gp_device_thread_command(struct gp_device_thread *thread, const struct gp_command *command);
/* Sends those that wait, as far as there is room; to be called now and then. */
void gp_device_thread_push(struct gp_device_thread *thread);
bool gp_device_thread_next_answer(struct gp_device_thread *thread, struct gp_answer *answer);
bool gp_device_thread_next_event(struct gp_device_thread *thread,
                                 struct gp_device_event *device_event);

/* How many were lost because nobody took them in time; reading sets it to 0. The picture that one
 * gets afterwards is not older than what they told of tasks that came and went. */
uint64_t gp_device_thread_lost_events(struct gp_device_thread *thread);

/* Which events are news: a bit for each kind. Those of tasks and policies always are. */
void gp_device_thread_want(struct gp_device_thread *thread, uint32_t kinds);

/* The device as it was at most a few hundred ms ago. Valid until the next call. */
const struct gp_snapshot *gp_device_thread_snapshot(struct gp_device_thread *thread);

const struct gp_gpu_info *gp_device_thread_info(const struct gp_device_thread *thread);
const char *gp_device_thread_backend(const struct gp_device_thread *thread);
uint32_t gp_device_thread_caps(const struct gp_device_thread *thread);

/* For how long the thread should have looked and did not; 0: it is well. */
uint64_t gp_device_thread_overdue_ns(const struct gp_device_thread *thread, uint64_t now_ns);

#endif
