/* SPDX-License-Identifier: Apache-2.0 */
/* What the policy wants: asks it, and watches over it. */
#include <string.h>

#include "engine/engine_state.h"

static void watch_for_starvation(struct gp_engine *e, uint64_t now_ns)
{
	if (e->starved_ns <= e->config.starve_limit_ns)
		return;
	for (unsigned i = 0; i < e->n; i++) {
		const struct gp_task *t = &e->task[i];

		if (t->starved_ns <= e->config.starve_limit_ns)
			continue;
		gp_engine_eject(e, now_ns, GP_EJECT_STARVED, t->id,
		                "gave task %llu nothing for %llu ms; the limit is %llu ms",
		                (unsigned long long)t->id,
		                (unsigned long long)(t->starved_ns / GP_NS_PER_MS),
		                (unsigned long long)(e->config.starve_limit_ns / GP_NS_PER_MS));
		return;
	}
}

static int ask(struct gp_engine *e, uint64_t *took_ns)
{
	const struct gp_clock *clock = e->config.decide_clock;
	uint64_t begin_ns = clock ? gp_now_ns(clock) : 0;
	int r;

	if (e->n)
		memset(e->plan_task, 0, e->n * sizeof *e->plan_task);
	e->plan = (struct gp_plan){.next_ns = GP_NEVER, .task = e->plan_task};
	r = e->policy.ops->decide(&e->view, &e->state, &e->plan);
	*took_ns = clock ? gp_now_ns(clock) - begin_ns : 0;
	if (clock)
		gp_hist_add(&e->stats.decide_ns, *took_ns);
	e->stats.decisions++;
	return r;
}

/* The baseline is what is left when all else failed: nobody watches over it. */
static void ask_and_watch(struct gp_engine *e, uint64_t now_ns)
{
	uint64_t took_ns, task;
	char why[120];
	int r;

	watch_for_starvation(e, now_ns);
	if (e->policy.ops == &gp_policy_none)
		return;
	r = ask(e, &took_ns);
	if (r)
		gp_engine_eject(e, now_ns, GP_EJECT_FAILED, 0, "failed: %s", gp_error_name(r));
	else if (took_ns > e->config.decide_limit_ns)
		gp_engine_eject(e, now_ns, GP_EJECT_SLOW, 0,
		                "took %llu us to decide; the limit is %llu us",
		                (unsigned long long)(took_ns / GP_NS_PER_US),
		                (unsigned long long)(e->config.decide_limit_ns / GP_NS_PER_US));
	else if (gp_plan_check(&e->view, &e->plan, why, sizeof why, &task))
		gp_engine_eject(e, now_ns, GP_EJECT_BOUND, task, "%s", why);
}

/* Whether the plan says anything of promises. Most never do, and the tasks need not be touched. */
static bool speaks_of_promises(const struct gp_engine *e)
{
	bool speaks = false;

	for (unsigned i = 0; i < e->n; i++)
		speaks |= e->plan_task[i].refused | e->plan_task[i].overran;
	return speaks;
}

/* A promise that was given or taken back is news, whoever asked for it. */
static void note_promises(struct gp_engine *e, uint64_t now_ns)
{
	bool speaks = speaks_of_promises(e), spoke = e->promises;

	e->promises = speaks;
	for (unsigned i = 0; (speaks || spoke) && i < e->n; i++) {
		struct gp_task *t = &e->task[i];
		bool refused = e->plan_task[i].refused;

		e->counters[i].overruns += e->plan_task[i].overran && !t->overran;
		t->overran = e->plan_task[i].overran;
		if (refused == t->refused)
			continue;
		t->refused = refused;
		gp_engine_tell(e, now_ns, refused ? GP_EVENT_REFUSED : GP_EVENT_ADMITTED, t->id, 0,
		               0);
	}
}

void gp_engine_decide(struct gp_engine *e, uint64_t now_ns)
{
	uint64_t took_ns;

	if (e->policy.ops != &gp_policy_none)
		ask_and_watch(e, now_ns);
	if (e->policy.ops == &gp_policy_none)
		ask(e, &took_ns);
	note_promises(e, now_ns);
}
