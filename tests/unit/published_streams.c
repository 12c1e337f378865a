/* SPDX-License-Identifier: Apache-2.0 */
#include "published_streams.h"

/* In the order in which the published benchmark starts them: by name. */
static const struct stream models[] = {
	{"bert", 4200 * GP_NS_PER_US, 363},      {"densenet", 4200 * GP_NS_PER_US, 363},
	{"inception", 4200 * GP_NS_PER_US, 363}, {"resnet152", 7200 * GP_NS_PER_US, 363},
	{"vgg", 2090 * GP_NS_PER_US, 900},
};

/* Only the sum of the four is published: 2.04 ms of the whole device per request. */
static const struct stream graphs[] = {
	{"bfs", 4080 * GP_NS_PER_US, 500},
	{"cc", 4080 * GP_NS_PER_US, 500},
	{"pagerank", 4080 * GP_NS_PER_US, 500},
	{"sssp", 4080 * GP_NS_PER_US, 500},
};

static uint32_t width_of(const char *name)
{
	for (size_t i = 0; i < sizeof models / sizeof *models; i++)
		if (!strcmp(models[i].name, name))
			return models[i].width_permille;
	return 1000; /* miniWeather has as many threads as there are cells */
}

static void add_stream(struct gp_scenario *to, struct gp_sim_task task,
		       const struct gp_task_attr *attr)
{
	task.hint_ns = 0;
	task.slice_us = 0;
	assert_int_equal(gp_scenario_add(to, &task, attr), 0);
}

/* Divides a task that stands for several programs. Programs with the same period do not begin at
 * the same time: each begins when the one before it would have finished if it were alone. */
static void add_streams(struct gp_scenario *to, struct gp_sim_task task,
			const struct gp_task_attr *attr, const struct stream *stream, uint32_t n)
{
	uint64_t phase_ns = task.phase_ns;

	task.every_ns *= n;
	task.prepare_ns = 280 * GP_NS_PER_US;
	for (uint32_t i = 0; i < n; i++) {
		snprintf(task.name, sizeof task.name, "%s", stream[i].name);
		task.kernel_ns = stream[i].kernel_ns;
		task.width_permille = stream[i].width_permille;
		task.phase_ns = phase_ns;
		add_stream(to, task, attr);
		if (phase_ns)
			phase_ns += task.prepare_ns + to->device.launch_ns + task.kernel_ns;
	}
}

void make_streams(const struct gp_scenario *from, bool with_best_effort, struct gp_scenario *to)
{
	gp_scenario_init(to);
	to->duration_ns = from->duration_ns;
	to->device = gp_sim_mi300x;
	to->device.launch_ns = from->device.launch_ns;
	to->device.launch_jitter_ns = from->device.launch_jitter_ns;
	for (uint32_t i = 0; i < from->ntasks; i++) {
		struct gp_sim_task task = from->task[i];

		if (from->attr[i].class != GP_LATENCY_CRITICAL && !with_best_effort)
			continue;
		if (!strcmp(task.name, "five models")) {
			add_streams(to, task, &from->attr[i], models, 5);
		} else if (!strcmp(task.name, "graphs")) {
			add_streams(to, task, &from->attr[i], graphs, 4);
		} else {
			task.width_permille = width_of(task.name);
			add_stream(to, task, &from->attr[i]);
		}
	}
}
