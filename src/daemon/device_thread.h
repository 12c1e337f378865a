/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A device thread: owns one device and drives its engine. It ticks when the engine asks for it,
 * when the back end signals and when a device command comes. It makes no call that can block. It
 * shares only the rings and the snapshots with the control thread, which makes all calls below.
 */
#ifndef GP_DAEMON_DEVICE_THREAD_H
#define GP_DAEMON_DEVICE_THREAD_H

#include "daemon/assignments.h"
#include "daemon/snapshot.h"
#include "engine/engine.h"

struct gp_device_thread_config {
	struct gp_gpu *gpu; /* closed by the device thread */
	unsigned number;    /* number of the device */
	struct gp_assignments *assignments;
	struct gp_policy_choice policy;
	bool undo; /* undo records are kept; false only where changes cannot outlive the daemon */
	int realtime; /* SCHED_FIFO priority, 0 = none */
	int cpu;      /* CPU to run on; -1 = any */
	/* As in struct gp_engine_config; 0 = the engine's default. */
	uint64_t check_ns, check_lc_ns, check_quiet_ns, scan_every_ns, starve_limit_ns;
	int wake_fd; /* eventfd of the control thread: events or answers are ready */
};

enum gp_command_kind {
	/* task, attr; the answer follows when the task is held or not, as the policy wants it; if
	 * it becomes unmanaged, when the task is released */
	GP_COMMAND_ATTR,
	GP_COMMAND_HOLD,    /* task; the answer follows when the task is held */
	GP_COMMAND_RELEASE, /* task; the answer follows when the task is released */
	GP_COMMAND_POLICY,  /* policy */
	GP_COMMAND_MARK,    /* key, begins */
	GP_COMMAND_HINT,    /* key; GPU work of the task follows within a moment */
};

struct gp_command {
	enum gp_command_kind kind;
	uint64_t token; /* repeated in the answer; 0: no answer */
	uint64_t task;
	uint64_t key;
	bool begins;
	struct gp_task_attr attr;
	struct gp_policy_choice policy;
};

struct gp_answer {
	uint64_t token;
	int status;     /* 0 or -errno */
	char text[256]; /* with status 0: why new attributes are not in force; "": they are */
};

/* An event of the engine, with what is known about its task. */
struct gp_device_event {
	struct gp_event event;
	uint8_t held_by;            /* HELD: GP_HELD_BY_* */
	enum gp_evidence evidence;  /* HELD, RELEASED */
	struct gp_eviction evicted; /* EVICTED */
	bool resumed; /* RELEASED: the undo records show that a user's hold has ended */
	pid_t pid;    /* TASK_IN; likewise the next four */
	uint64_t start_time;
	uint64_t key;
	uint32_t seen_flags;
	char name[32];
	struct gp_task_attr attr;
	char text[256]; /* EJECTED, ACTION_FAILED: a message; POLICY: its name */
};

#define GP_COMMANDS_MAX 512 /* sent to the thread and not yet answered */

struct gp_device_thread;

/* Starts the thread. The device is closed also on error. */
int gp_device_thread_start(const struct gp_device_thread_config *config,
			   struct gp_device_thread **thread, struct gp_error *err);

/*
 * Puts all tasks back and ends the thread. The undo records stay. When all device threads have
 * stopped, gp_records_settle puts tasks back once more and drops the records that are no longer
 * needed.
 */
void gp_device_thread_stop(struct gp_device_thread *dt);

/*
 * Sends a device command. Commands keep their order and wait here if the ring is full. Hints and
 * request marks do not wait, because they are useless later. -EAGAIN: too many wait. -ENOMEM.
 */
int gp_device_thread_command(struct gp_device_thread *dt, const struct gp_command *command);
/* Sends waiting commands as far as there is room; to be called periodically. */
void gp_device_thread_push(struct gp_device_thread *dt);
bool gp_device_thread_next_answer(struct gp_device_thread *dt, struct gp_answer *answer);
bool gp_device_thread_next_event(struct gp_device_thread *dt, struct gp_device_event *device_event);

/*
 * The number of events that were lost because the ring was full; reading resets it. A snapshot read
 * afterwards contains the tasks of the lost events.
 */
uint64_t gp_device_thread_lost_events(struct gp_device_thread *dt);

/*
 * Sets which kinds of events are reported, a bit for each. Those of tasks and policies always are.
 */
void gp_device_thread_want(struct gp_device_thread *dt, uint32_t kinds);

/* The newest snapshot, at most a few hundred ms old. Valid until the next call. */
const struct gp_snapshot *gp_device_thread_snapshot(struct gp_device_thread *dt);

const struct gp_gpu_info *gp_device_thread_info(const struct gp_device_thread *dt);
const char *gp_device_thread_backend(const struct gp_device_thread *dt);
uint32_t gp_device_thread_caps(const struct gp_device_thread *dt);

/* Whether the first tick is over, which finds the tasks that there are. */
bool gp_device_thread_has_ticked(struct gp_device_thread *dt);

/* How long the next tick of the thread is overdue, or the back end's own thread is at one piece of
 * work, in ns; 0: not at all. */
uint64_t gp_device_thread_overdue_ns(const struct gp_device_thread *dt, uint64_t now_ns);

/* Whether the device has gone. The thread goes on, and uses it again when it is back. */
bool gp_device_thread_is_gone(const struct gp_device_thread *dt);

#endif
