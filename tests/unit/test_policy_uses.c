/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The attributes that a policy says it uses (gp_policy_ops.uses) are those that change its plans:
 * two copies of a policy get the same random views, except for one attribute. Their plans must be
 * equal if the attribute is not used, and differ at least once if it is.
 */
#include "support/test.h"

#include "base/clock.h"
#include "base/rng.h"
#include "policy/registry.h"

#define TASKS 4u
#define STEPS 400u
#define SEEDS 60u

struct copy {
	struct gp_policy_choice choice;
	struct gp_policy_state state;
	struct gp_task_view task[TASKS];
	struct gp_task_plan plan[TASKS];
};

static void copy_init(struct copy *c, const struct gp_policy_ops *ops)
{
	*c = (struct copy){0};
	gp_policy_defaults(ops, &c->choice);
	c->state.param = c->choice.param;
	c->state.device = calloc(1, ops->device_state + 1);
	c->state.task_stride = (ops->task_state + 15u) & ~15u;
	c->state.task = calloc(TASKS, c->state.task_stride + 1);
	if (ops->init)
		ops->init(&c->state);
}

static void copy_free(struct copy *c)
{
	free(c->state.device);
	free(c->state.task);
}

/* Random attributes; bit `other` draws a second value for one of them. */
static void draw_attr(struct gp_rng *rng, struct gp_task_view *t, uint32_t other)
{
	uint64_t draw[14];

	for (unsigned i = 0; i < 14; i++)
		draw[i] = gp_rng_below(rng, 1u << 20);
	for (unsigned i = 0; i < 7; i++)
		draw[i] = other & 1u << i ? draw[7 + i] : draw[i];
	t->class = draw[0] & 1 ? GP_LATENCY_CRITICAL : GP_BEST_EFFORT;
	t->priority = (uint8_t)(draw[1] % (GP_PRIORITY_MAX + 1));
	t->weight = 1 + (uint32_t)draw[2] % 1000;
	t->share_permille = (uint32_t)draw[3] % 200;
	t->ceiling_permille = (uint32_t)draw[4] % 1000;
	t->deadline_ns = (1 + draw[5] % 100) * GP_NS_PER_MS;
	t->budget_ns = (1 + draw[6] % 4) * GP_NS_PER_MS / 2;
}

/* What happens to the tasks, the same for both copies. */
static void draw_load(struct gp_rng *rng, struct gp_task_view *t, uint64_t now_ns)
{
	bool active = gp_rng_below(rng, 1000) < 990 ? t->active : !t->active;

	t->known = GP_KNOWN_ACTIVE | GP_KNOWN_RUNNING | GP_KNOWN_HELD | GP_KNOWN_RUN |
		   GP_KNOWN_REQUEST | GP_KNOWN_WAITED;
	if (active != t->active)
		t->active_since_ns = now_ns;
	t->active = t->in_request = active;
	t->running = active && !t->held;
	t->run_source = GP_RUN_MEASURED;
	t->run_ns += t->running ? GP_NS_PER_MS : 0;
	t->waited_ns = 0;
}

static bool task_plans_differ(const struct gp_task_plan *a, const struct gp_task_plan *b)
{
	return a->want != b->want || a->refused != b->refused || a->overran != b->overran ||
	       a->slice_us != b->slice_us;
}

static bool plans_differ(const struct gp_policy_ops *ops, uint32_t other, uint32_t caps,
			 uint64_t seed)
{
	struct gp_rng rng;
	struct copy c[2];
	bool differ = false;

	gp_rng_init(&rng, seed, 1);
	for (unsigned k = 0; k < 2; k++)
		copy_init(&c[k], ops);
	for (uint32_t i = 0; i < TASKS; i++) {
		struct gp_rng same = rng;

		c[0].task[i] = c[1].task[i] = (struct gp_task_view){.id = i + 1, .gang = i};
		draw_attr(&rng, &c[0].task[i], 0);
		draw_attr(&same, &c[1].task[i], other);
	}
	for (unsigned k = 0; k < 2 && ops->task_in; k++)
		for (uint32_t i = 0; i < TASKS; i++)
			ops->task_in(&c[k].state, &c[k].task[i],
				     c[k].state.task + i * c[k].state.task_stride);
	for (unsigned step = 1; step <= STEPS && !differ; step++) {
		uint64_t now_ns = step * GP_NS_PER_MS;
		struct gp_rng before = rng;

		for (unsigned k = 0; k < 2; k++) {
			struct gp_view view = {.now_ns = now_ns,
					       .caps = caps,
					       .max_held = TASKS,
					       .slice_default_us = 2000,
					       .slice_min_us = 1,
					       .slice_max_us = 10000000,
					       .hold_cost_ns = 100000,
					       .release_cost_ns = 100000,
					       .switch_cost_ns = 100000,
					       .starve_limit_ns = 10 * GP_NS_PER_S,
					       .n = TASKS,
					       .task = c[k].task,
					       .state = &c[k].state};
			struct gp_plan plan = {.next_ns = UINT64_MAX, .task = c[k].plan};

			rng = before;
			memset(c[k].plan, 0, sizeof c[k].plan);
			for (uint32_t i = 0; i < TASKS; i++)
				draw_load(&rng, &c[k].task[i], now_ns);
			assert_int_equal(ops->decide(&view, &plan), 0);
			for (uint32_t i = 0; i < TASKS; i++) { /* every plan is carried out */
				c[k].task[i].held = c[k].plan[i].want == GP_HOLD;
				c[k].task[i].held_by = c[k].task[i].held ? GP_HELD_BY_POLICY : 0;
			}
		}
		for (uint32_t i = 0; i < TASKS; i++)
			differ |= task_plans_differ(&c[0].plan[i], &c[1].plan[i]);
	}
	for (unsigned k = 0; k < 2; k++)
		copy_free(&c[k]);
	return differ;
}

static bool ever_differ(const struct gp_policy_ops *ops, uint32_t other)
{
	static const uint32_t devices[] = {
		GP_CAP_HOLD | GP_CAP_SLICE | GP_CAP_ACTIVITY | GP_CAP_REQUEST_MARKS,
		GP_CAP_HOLD | GP_CAP_ACTIVITY | GP_CAP_EVENTS | GP_CAP_REQUEST_MARKS};

	for (uint64_t seed = 1; seed <= SEEDS; seed++)
		for (unsigned d = 0; d < 2; d++)
			if (plans_differ(ops, other, devices[d], seed))
				return true;
	return false;
}

TEST(plans_depend_on_the_attributes_a_policy_uses_and_on_no_other)
{
	for (const struct gp_policy_ops *const *p = gp_policies; *p; p++)
		for (unsigned i = 0; gp_attr_use_names[i]; i++) {
			bool uses = (*p)->uses & 1u << i, differ = ever_differ(*p, 1u << i);

			if (uses != differ)
				fail_msg("policy %s %s %s, but its plans %s", (*p)->name,
					 uses ? "uses" : "does not use", gp_attr_use_names[i],
					 differ ? "depend on it" : "never depend on it");
		}
}
