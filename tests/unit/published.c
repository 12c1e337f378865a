/* SPDX-License-Identifier: Apache-2.0 */
#include "published.h"

static void note_request(void *arg, const struct gp_sim_event *e)
{
	struct book *b = arg;
	uint64_t begin_ns;

	if (e->what != GP_SIM_REQUEST)
		return;
	begin_ns = e->arrival_ns > b->free_ns[e->task] ? e->arrival_ns : b->free_ns[e->task];
	b->sum_us[e->task] += (double)(e->now_ns - begin_ns) / 1e3;
	b->n[e->task]++;
	b->free_ns[e->task] = e->now_ns;
}

static void run_once(const struct gp_scenario *s, const char *policy, struct book *book)
{
	struct gp_scenario copy = *s; /* the cached results of runs alone stay with the copy */
	const struct gp_run_options options = {.watch = note_request, .watch_arg = book};
	struct gp_run result;

	copy.alone_ns = NULL;
	memset(book->free_ns, 0, sizeof book->free_ns);
	result = run_scenario(&copy, policy, &options);
	gp_run_free(&result);
	free(copy.alone_ns);
}

struct outcome simulate(struct gp_scenario *s, const char *policy)
{
	struct outcome o = {0};
	struct book book = {0};
	unsigned programs = 0;

	assert_true(s->ntasks <= MAX_TASKS);
	for (s->seed = 1; s->seed <= SEEDS; s->seed++)
		run_once(s, policy, &book);
	for (uint32_t i = 0; i < s->ntasks; i++) {
		if (s->attr[i].class != GP_LATENCY_CRITICAL) {
			o.work += (double)book.n[i] / (SEEDS * (double)DURATION / 1e9);
			continue;
		}
		o.task_us[i] = book.sum_us[i] / (double)book.n[i];
		o.us += o.task_us[i];
		programs++;
	}
	o.us /= programs;
	return o;
}

void load(const char *name, struct gp_scenario *s)
{
	shipped_load(name, s);
	s->duration_ns = DURATION;
}

void without_hints(struct gp_scenario *s)
{
	for (uint32_t i = 0; i < s->ntasks; i++)
		s->task[i].hint_ns = 0;
}

void without_slices(struct gp_scenario *s)
{
	for (uint32_t i = 0; i < s->ntasks; i++)
		s->task[i].slice_us = 0;
}

void without_best_effort(struct gp_scenario *s)
{
	for (uint32_t i = 0; i < s->ntasks; i++)
		if (s->attr[i].class != GP_LATENCY_CRITICAL)
			s->task[i].load = GP_LOAD_IDLE;
}

struct outcome simulate_streams(const struct gp_scenario *s, bool with_best_effort)
{
	struct gp_scenario streams;
	struct outcome o;

	make_streams(s, with_best_effort, &streams);
	o = simulate(&streams, "none");
	gp_scenario_free(&streams);
	return o;
}
