/* SPDX-License-Identifier: Apache-2.0 */
/* The output of gpreempt suspend: one line for each event, as text or JSON, the same with and
 * without the daemon. */
#ifndef GP_CLI_LIB_HOLD_EVENT_H
#define GP_CLI_LIB_HOLD_EVENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum gp_hold_event_kind {
	GP_HOLD_BEGAN,   /* ns: how long the hold took */
	GP_HOLD_AGAIN,   /* the task ran, and is held again. ns of this and the next: held for */
	GP_HOLD_ENDED,   /* the process has ended */
	GP_HOLD_RESUMED, /* another process released the task */
	GP_HOLD_RELEASED,
};

/* How long the hold lasts: said with GP_HOLD_BEGAN, which is the first line. */
enum gp_hold_lifetime {
	GP_HOLD_UNTIL_SIGNAL, /* until Ctrl-C or another signal ends this program */
	GP_HOLD_FOR_TIME,     /* for_ns */
	GP_HOLD_UNTIL_RESUME, /* kept by the daemon until gpreempt resume */
};

struct gp_hold_event {
	enum gp_hold_event_kind kind;
	pid_t pid;
	const char *name;
	int device;              /* -1: on all devices */
	const char *device_name; /* NULL with device -1 */
	uint64_t ns;             /* see the kind */
	unsigned again;          /* how often the task had to be held again */
	enum gp_hold_lifetime lifetime;
	uint64_t for_ns;
};

void gp_hold_event_print(const struct gp_hold_event *event, bool json);

#endif
