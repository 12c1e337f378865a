/* SPDX-License-Identifier: Apache-2.0 */
#include "task/task.h"

#include <string.h>

const char *const gp_class_words[] = {
	[GP_UNMANAGED] = "unmanaged",
	[GP_BEST_EFFORT] = "be",
	[GP_LATENCY_CRITICAL] = "lc",
	NULL,
};

const char *gp_class_name(unsigned class)
{
	return gp_class_words[class < GP_CLASSES ? class : GP_UNMANAGED];
}

int gp_class_find(const char *word)
{
	for (int i = 0; i < GP_CLASSES; i++)
		if (!strcmp(gp_class_words[i], word))
			return i;
	return -1;
}

enum gp_task_state gp_task_state(const struct gp_task_condition *c)
{
	if (c->held)
		return c->held_by & GP_HELD_BY_USER ? GP_TASK_SUSPENDED : GP_TASK_HELD;
	if (c->evicted)
		return GP_TASK_EVICTED;
	if (!(c->known & GP_KNOWN_ACTIVE))
		return GP_TASK_UNKNOWN;
	if (!c->active)
		return GP_TASK_IDLE;
	if (!(c->known & GP_KNOWN_RUNNING))
		return GP_TASK_ACTIVE;
	return c->running ? GP_TASK_RUNNING : GP_TASK_WAITING;
}

const char *gp_task_state_name(enum gp_task_state state)
{
	static const char *const names[] = {
		[GP_TASK_RUNNING] = "running", [GP_TASK_WAITING] = "waiting",
		[GP_TASK_IDLE] = "idle",       [GP_TASK_ACTIVE] = "active",
		[GP_TASK_HELD] = "held",       [GP_TASK_SUSPENDED] = "suspended",
		[GP_TASK_EVICTED] = "evicted", [GP_TASK_UNKNOWN] = "unknown",
	};

	return names[state < GP_TASK_STATES ? state : GP_TASK_UNKNOWN];
}
