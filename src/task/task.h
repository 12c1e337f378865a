/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a task is, apart from any back end, engine or daemon: the names of the classes, the
 * attributes, and the state that follows from an observation. Needs libc only. task/json has the
 * JSON and the table columns of a task.
 */
#ifndef GP_TASK_TASK_H
#define GP_TASK_TASK_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu/caps.h" /* GP_KNOWN_* */
#include "task/class.h"

/* "unmanaged", "be" and "lc" by enum gp_class, ended by NULL. */
#define GP_CLASSES (GP_LATENCY_CRITICAL + 1)
extern const char *const gp_class_words[GP_CLASSES + 1];

/* The word for a class. A value that is no class counts as unmanaged. */
const char *gp_class_name(unsigned class);

/* The class with this name, or -1. */
int gp_class_find(const char *word);

/* The attributes of a task: set by default, by a rule or by a user. The rest is observed. */
struct gp_task_attr {
	uint8_t class;    /* enum gp_class */
	uint8_t priority; /* 0 to 15 */
	uint32_t weight;  /* 1 to 10000 */
	uint32_t share_permille;
	uint32_t ceiling_permille; /* 0 = none */
	uint64_t budget_ns;
	uint64_t deadline_ns;
	uint64_t gang; /* tasks with the same number are one gang; 0 = none */
};

#define GP_TASK_ATTR_DEFAULT ((struct gp_task_attr){.class = GP_UNMANAGED, .weight = 100})

static inline bool gp_task_attr_same(const struct gp_task_attr *a, const struct gp_task_attr *b)
{
	return a->class == b->class && a->priority == b->priority && a->weight == b->weight &&
	       a->share_permille == b->share_permille &&
	       a->ceiling_permille == b->ceiling_permille && a->deadline_ns == b->deadline_ns &&
	       a->budget_ns == b->budget_ns && a->gang == b->gang;
}

enum gp_task_state {
	GP_TASK_RUNNING,   /* has work, and is on the hardware */
	GP_TASK_WAITING,   /* has work, and is not on the hardware */
	GP_TASK_IDLE,      /* has no work */
	GP_TASK_ACTIVE,    /* has work; the driver does not tell whether it is on the hardware */
	GP_TASK_HELD,      /* held by a policy, or by an unknown process */
	GP_TASK_SUSPENDED, /* held by a user */
	GP_TASK_EVICTED,   /* not held; the driver itself keeps it off the hardware */
	GP_TASK_UNKNOWN,
	GP_TASK_STATES,
};

/* What a state is derived from. */
struct gp_task_condition {
	bool held;
	uint8_t held_by; /* GP_HELD_BY_*; 0: not known */
	bool evicted;    /* known to be evicted */
	uint32_t known;  /* GP_KNOWN_ACTIVE, GP_KNOWN_RUNNING: which members below are valid */
	bool active, running;
};

/* The driver itself keeps a task off the device: until it restores the task or, after a reset of
 * the device, until the process ends. */
struct gp_eviction {
	uint64_t ns; /* for how long; 0 = not known to be evicted */
	bool by_reset;
};

enum gp_task_state gp_task_state(const struct gp_task_condition *condition);

/* "running", "waiting", ... "unknown". */
const char *gp_task_state_name(enum gp_task_state state);

#endif
