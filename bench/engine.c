/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures one tick of the engine (observe, decide, compare, account) with 64, 512 and 4,096 tasks,
 * for each policy; how it grows with the number of tasks; and that it allocates nothing. The back
 * end answers from memory, so that only the engine and the policy are measured. Times are the best
 * of several rounds; the limits are ratios within this run. Exits with 1 if a limit is exceeded.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "count_alloc.h"
#include "engine/engine.h"

struct flat_gpu {
	struct gp_gpu base;
	unsigned ntasks;
	bool *held;
	uint32_t *slice_us;
};

static int flat_scan(struct gp_gpu *gpu, uint64_t now_ns, struct gp_seen *seen, unsigned max)
{
	struct flat_gpu *g = (struct flat_gpu *)gpu;

	(void)now_ns;
	for (unsigned i = 0; i < g->ntasks && i < max; i++)
		seen[i] = (struct gp_seen){.key = i + 1};
	return (int)g->ntasks;
}

static int flat_attach(struct gp_gpu *gpu, uint64_t key, uint32_t *handle)
{
	(void)gpu;
	*handle = (uint32_t)key - 1;
	return 0;
}

/* Every eighth task works, others change at each tick: no two views are equal. */
static int flat_observe(struct gp_gpu *gpu, uint64_t now_ns, struct gp_observation *o, unsigned n)
{
	struct flat_gpu *g = (struct flat_gpu *)gpu;

	for (unsigned i = 0; i < n; i++) {
		uint32_t h = o[i].handle;

		o[i].known = GP_KNOWN_ACTIVE | GP_KNOWN_RUNNING | GP_KNOWN_HELD | GP_KNOWN_SLICE |
			     GP_KNOWN_RUN;
		o[i].active = h % 8 == 0 || (now_ns >> 20 & 63) == h % 64;
		o[i].held = g->held[h];
		o[i].running = o[i].active && !o[i].held;
		o[i].slice_us = g->slice_us[h];
		o[i].run_source = GP_RUN_MEASURED;
		o[i].run_ns = o[i].run_at_ns = now_ns;
	}
	return 0;
}

static int flat_act(struct gp_gpu *gpu, uint64_t now_ns, enum gp_act_kind kind, struct gp_action *a,
		    unsigned n)
{
	struct flat_gpu *g = (struct flat_gpu *)gpu;

	(void)now_ns;
	for (unsigned i = 0; i < n; i++) {
		if (kind == GP_ACT_SLICE)
			g->slice_us[a[i].handle] = a[i].slice_us;
		else
			g->held[a[i].handle] = kind == GP_ACT_HOLD;
		a[i].status = 0;
		a[i].certainty = GP_OBSERVED;
	}
	return 0;
}

static const struct gp_gpu_ops flat_ops = {
	.name = "flat",
	.scan = flat_scan,
	.attach = flat_attach,
	.observe = flat_observe,
	.act = flat_act,
};

static void classify(void *arg, const struct gp_seen *seen, struct gp_task_attr *attr)
{
	(void)arg;
	attr->class = seen->key % 16 == 0  ? GP_LATENCY_CRITICAL
		      : seen->key % 16 < 3 ? GP_UNMANAGED
					   : GP_BEST_EFFORT;
	attr->priority = seen->key % 4;
	attr->gang = seen->key % 8 == 5 ? seen->key / 32 + 1 : 0;
}

/*
 * A ratio of 8 is linear, 64 is quadratic. Growth beyond 8 is caused by memory: 4,096 tasks need
 * 2.2 MB, more than the cache of a core on the test machine, and a pass over them costs a quarter
 * more per task.
 */
#define RATIO_MAX 12
#define ROUNDS    80
#define STEPS     (1u << 15) /* tasks times ticks per round: the same work at every size */

/* An engine with a given number of tasks. */
struct subject {
	unsigned ntasks;
	struct flat_gpu gpu;
	struct gp_engine *engine;
	uint64_t now_ns;
	double step_ns; /* of the best round */
};

static void begin(struct subject *s, const struct gp_policy_ops *policy, uint32_t caps)
{
	struct gp_engine_config config = {.gpu = &s->gpu.base, .classify = classify};
	struct gp_policy_choice choice;

	s->gpu = (struct flat_gpu){.base = {.ops = &flat_ops,
					    .info = {.name = "flat",
						     .caps = caps,
						     .max_held = 1u << 20,
						     .slice_min_us = 1,
						     .slice_max_us = 10000000}},
				   .ntasks = s->ntasks};
	s->now_ns = 1;
	s->step_ns = 1e18;
	s->gpu.held = calloc(s->ntasks, sizeof *s->gpu.held);
	s->gpu.slice_us = calloc(s->ntasks, sizeof *s->gpu.slice_us);
	gp_policy_defaults(policy, &choice);
	if (!s->gpu.held || !s->gpu.slice_us || gp_engine_new(&config, &s->engine) ||
	    gp_engine_set_policy(s->engine, s->now_ns, &choice, NULL))
		exit(1);
	for (unsigned i = 0; i < 200; i++)
		gp_engine_step(s->engine, s->now_ns += GP_NS_PER_MS);
}

static void measure(struct subject *s)
{
	unsigned steps = STEPS / s->ntasks;
	uint64_t begin_ns = gp_monotonic_ns();
	double step_ns;

	for (unsigned i = 0; i < steps; i++)
		gp_engine_step(s->engine, s->now_ns += GP_NS_PER_MS);
	step_ns = (double)(gp_monotonic_ns() - begin_ns) / steps;
	if (step_ns < s->step_ns)
		s->step_ns = step_ns;
}

static void end(struct subject *s)
{
	if (gp_engine_stats(s->engine)->ejections) {
		printf("ejected: %s\n", gp_engine_ejection(s->engine)->text);
		exit(1);
	}
	gp_engine_free(s->engine);
	free(s->gpu.held);
	free(s->gpu.slice_us);
}

/* The sizes alternate, so that other load on the machine affects all of them. */
static bool compare(const struct gp_policy_ops *policy, const char *device, uint32_t caps)
{
	static struct subject subject[] = {{.ntasks = 64}, {.ntasks = 512}, {.ntasks = 4096}};
	uint64_t allocations;
	double ratio;

	for (unsigned i = 0; i < 3; i++)
		begin(&subject[i], policy, caps);
	allocations = bench_allocations();
	for (unsigned round = 0; round < ROUNDS; round++)
		for (unsigned i = 0; i < 3; i++)
			measure(&subject[i]);
	allocations = bench_allocations() - allocations;
	printf("%-9s %-7s", policy->name, device);
	for (unsigned i = 0; i < 3; i++) {
		const struct subject *s = &subject[i];

		printf(" %9.1f us (%5.1f ns/task)", s->step_ns / 1e3, s->step_ns / s->ntasks);
	}
	for (unsigned i = 0; i < 3; i++)
		end(&subject[i]);
	ratio = subject[2].step_ns / subject[1].step_ns;
	printf("  %5.2fx  %llu\n", ratio, (unsigned long long)allocations);
	return ratio <= RATIO_MAX && !allocations;
}

int main(void)
{
	const uint32_t all = GP_CAP_HOLD | GP_CAP_SLICE | GP_CAP_ACTIVITY;
	bool good = true;

	printf("engine: one tick, best of %d rounds\n%-9s %-7s %28s %28s %28s  %s\n", ROUNDS,
	       "policy", "device", "64 tasks", "512 tasks", "4096 tasks", "4096/512  allocations");
	for (const struct gp_policy_ops *const *p = gp_policies; *p; p++) {
		good &= compare(*p, "slices", all);
		good &= compare(*p, "holds", all & ~(uint32_t)GP_CAP_SLICE);
	}
	printf("%s: 8 times the tasks cost at most %d times as much, and a tick allocates "
	       "nothing\n",
	       good ? "holds" : "DOES NOT HOLD", RATIO_MAX);
	return !good;
}
