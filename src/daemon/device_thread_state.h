/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of a device thread, private to these files:
 *     device_thread.c       start, stop, and what the control thread reads
 *     device_commands.c     device commands and their answers, on both sides
 *     device_thread_loop.c  the thread itself: its engine and its ticks
 */
#ifndef GP_DAEMON_DEVICE_THREAD_STATE_H
#define GP_DAEMON_DEVICE_THREAD_STATE_H

#include <pthread.h>

#include "daemon/backlog.h"
#include "daemon/device_thread.h"
#include "daemon/ring.h"
#include "undo/undo.h"

/* A device command that waits until its task is held or released, or is as its new attributes want
 * it. */
struct gp_waiting {
	uint64_t token;
	uint64_t task;
	enum gp_command_kind kind; /* HOLD, RELEASE or ATTR; RELEASE also to become unmanaged */
	bool was_held;             /* when the wait began */
	uint64_t failures;         /* failures of the task then */
	uint64_t gang_failures;    /* and of all tasks of its gang */
	uint64_t since_ns;
};

struct gp_device_thread {
	struct gp_device_thread_config config;
	struct gp_gpu *gpu;
	struct gp_engine *engine;
	struct gp_undo_file *undo;
	uint64_t epoch; /* of the undo file, at the last tick */
	uint64_t undo_check_ns;
	unsigned undo_files; /* how often the undo file was replaced */
	uint64_t since_ns;
	pthread_t thread;

	/* Used by the control thread only. */
	unsigned unanswered;
	struct gp_backlog backlog; /* commands for which the ring has no room */

	/* Shared by both threads. */
	struct gp_ring commands, answers, device_event;
	int command_fd;
	struct gp_snapshots snapshots;
	_Atomic bool stop;
	_Atomic uint32_t wanted;
	_Atomic uint64_t lost;
	_Atomic bool gone;       /* the device has gone, as the back end says */
	_Atomic uint64_t due_ns; /* latest time of the next tick */

	/* Used by the device thread only. */
	int timer_fd;
	struct gp_seen new_process; /* the process of the last task that was classified */
	struct gp_hist lag_ns;
	uint64_t published_ns;
	bool at_once;      /* the next tick was triggered by an event, not by the clock */
	bool publish;      /* publish a snapshot at this tick */
	bool wake_control; /* wake the control thread at the end of this tick */
	uint64_t dropped;  /* events lost at this tick */
	struct gp_answer answer[GP_COMMANDS_MAX];
	unsigned nanswers;
	struct gp_waiting waiting[GP_COMMANDS_MAX];
	unsigned nwaiting;
};

/* device_commands.c, called by the device thread. */

/* Executes the commands that came since the last tick. */
void gp_device_thread_execute(struct gp_device_thread *dt, uint64_t now_ns);
/* Answers hold and release commands that are done or have failed. */
void gp_device_thread_answer_waiting(struct gp_device_thread *dt, uint64_t now_ns);
/* Sends the answers, after a snapshot that shows the changes was published. */
void gp_device_thread_give_answers(struct gp_device_thread *dt);

/* device_thread_loop.c */

/* Called before the thread starts. */
int gp_device_thread_make_engine(struct gp_device_thread *dt, struct gp_error *err);
/* The thread function; `arg` is a struct gp_device_thread. Returns after `stop` was set. */
void *gp_device_thread_run(void *arg);

#endif
