/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/sim/tails.h"

static bool counts(const struct gp_tails *t, uint32_t task)
{
	enum gp_sim_load load = t->scenario->task[task].load;

	if (t->lc_only)
		return t->scenario->attr[task].class == GP_LATENCY_CRITICAL;
	return load != GP_LOAD_CLOSED && load != GP_LOAD_IDLE;
}

void gp_tails_begin(struct gp_tails *t, const struct gp_scenario *scenario)
{
	*t = (struct gp_tails){.scenario = scenario, .devices = 1};
	for (uint32_t i = 0; i < scenario->ntasks; i++)
		t->lc_only |= scenario->attr[i].class == GP_LATENCY_CRITICAL;
	for (uint32_t i = 0; i < scenario->ntasks; i++) {
		if (!counts(t, i))
			continue;
		if (t->n < GP_TAILS)
			t->task[t->n++] = i;
		else
			t->more++;
	}
}

void gp_tails_watch(void *tails, const struct gp_sim_event *event)
{
	struct gp_tails *t = tails;
	uint64_t took_ns = event->now_ns - event->arrival_ns;

	if (event->device >= t->devices)
		t->devices = event->device + 1;
	if (event->what != GP_SIM_REQUEST || !counts(t, event->task))
		return;
	if (!t->any || took_ns > t->slow_end_ns - t->slow_arrival_ns) {
		t->any = true;
		t->slow_device = event->device;
		t->slow_task = event->task;
		t->slow_arrival_ns = event->arrival_ns;
		t->slow_end_ns = event->now_ns;
	}
}
