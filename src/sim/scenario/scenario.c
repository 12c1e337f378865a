/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "sim/scenario/scenario.h"

void gp_scenario_init(struct gp_scenario *s)
{
	*s = (struct gp_scenario){
		.duration_ns = 10 * GP_NS_PER_S,
		.seed = 1,
		.devices = 1,
		.device = gp_sim_h200,
	};
}

void gp_scenario_free(struct gp_scenario *s)
{
	for (uint32_t i = 0; i < s->nlists; i++)
		free(s->list[i]);
	free((void *)s->list);
	s->list = NULL;
	s->nlists = 0;
	free(s->task);
	free(s->attr);
	free(s->alone_ns);
	s->alone_ns = NULL;
	s->task = NULL;
	s->attr = NULL;
	s->ntasks = 0;
}

/* Both arrays have room for the next power of two, so they grow only at these sizes. */
static int grow(struct gp_scenario *s)
{
	size_t capacity = s->ntasks ? 2 * (size_t)s->ntasks : 1;
	void *grown;

	if (s->ntasks & (s->ntasks - 1))
		return 0;
	grown = reallocarray(s->task, capacity, sizeof *s->task);
	if (!grown)
		return -ENOMEM;
	s->task = grown;
	grown = reallocarray(s->attr, capacity, sizeof *s->attr);
	if (!grown)
		return -ENOMEM;
	s->attr = grown;
	return 0;
}

int gp_scenario_add(struct gp_scenario *s, const struct gp_sim_task *task,
		    const struct gp_task_attr *attr)
{
	int r = grow(s);

	if (r)
		return r;
	free(s->alone_ns);
	s->alone_ns = NULL;
	s->task[s->ntasks] = *task;
	s->attr[s->ntasks] = *attr;
	s->ntasks++;
	return 0;
}

int gp_scenario_keep(struct gp_scenario *s, uint64_t *list)
{
	uint64_t **grown = reallocarray((void *)s->list, s->nlists + 1, sizeof *grown);

	if (!grown) {
		free(list);
		return -ENOMEM;
	}
	s->list = grown;
	s->list[s->nlists++] = list;
	return 0;
}
