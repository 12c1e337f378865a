/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a host consists of. Private to these files:
 *   host.c         its life, and what the control thread reads of it
 *   host_orders.c  orders and their answers, at both ends
 *   host_thread.c  the device's thread: its engine, and when it looks
 */
#ifndef GP_DAEMON_DEVICE_THREAD_STATE_H
#define GP_DAEMON_DEVICE_THREAD_STATE_H

#include <pthread.h>

#include "daemon/backlog.h"
#include "daemon/device_thread.h"
#include "daemon/ring.h"
#include "undo/undo.h"

/* Somebody waits until a task is held, or released. */
struct gp_waiting {
	uint64_t token;
	uint64_t task;
	bool held;
	uint64_t failures; /* of the task when it began */
	uint64_t since_ns;
};

struct gp_device_thread {
	struct gp_device_thread_config config;
	struct gp_gpu *gpu;
	struct gp_engine *engine;
	struct gp_undo_file *undo;
	uint64_t epoch; /* as last seen */
	uint64_t since_ns;
	pthread_t thread;

	/* Of the control thread. */
	unsigned unanswered;
	struct gp_backlog backlog; /* orders for which there is no room yet */

	/* Between both. */
	struct gp_ring commands, answers, device_event;
	int command_fd;
	struct gp_snapshots snapshots;
	_Atomic bool stop;
	_Atomic uint32_t wanted;
	_Atomic uint64_t lost;
	_Atomic uint64_t due_ns; /* the next look, at the latest */

	/* Of the device's thread. */
	int timer_fd;
	struct gp_seen new_process; /* the last one that was classified */
	struct gp_hist lag_ns;
	uint64_t published_ns;
	bool at_once;      /* the next look is due because something happened, not by the clock */
	bool publish;      /* something changed that people want to see at once */
	bool wake_control; /* the control thread has something to take */
	uint64_t dropped;  /* news that did not fit, in this look */
	struct gp_answer answer[GP_COMMANDS_MAX];
	unsigned nanswers;
	struct gp_waiting waiting[GP_COMMANDS_MAX];
	unsigned nwaiting;
};

/* ---- host_orders.c: of the device's thread -----------------------------------------------------
 */

/* Does what was ordered since the last look. */
void gp_device_thread_execute(struct gp_device_thread *h, uint64_t now_ns);
/* Answers those whose hold or release has come, or will not come. */
void gp_device_thread_answer_waiting(struct gp_device_thread *h, uint64_t now_ns);
/* Hands over the answers: there is a picture that shows what was done. */
void gp_device_thread_give_answers(struct gp_device_thread *h);

/* ---- host_thread.c -----------------------------------------------------------------------------
 */

/* Before the thread begins. */
int gp_device_thread_make_engine(struct gp_device_thread *h, struct gp_error *err);
/* The thread; `arg` is the host. Ends when it is to stop. */
void *gp_device_thread_run(void *arg);

#endif
