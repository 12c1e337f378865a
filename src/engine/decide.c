/* SPDX-License-Identifier: Apache-2.0 */
/* Calls the policy and supervises it. */
#include <string.h>

#include "engine/engine_state.h"

static void eject_if_starving(struct gp_engine *e, uint64_t now_ns)
{
	if (e->starved_ns <= e->config.starve_limit_ns)
		return;
	for (unsigned i = 0; i < e->n; i++) {
		const struct gp_task *t = &e->task[i];

		if (t->starved_ns <= e->config.starve_limit_ns)
			continue;
		gp_engine_eject(e, now_ns, GP_EJECT_STARVED, t->id,
				"starved task %llu for %llu ms; the limit is %llu ms",
				(unsigned long long)t->id,
				(unsigned long long)(t->starved_ns / GP_NS_PER_MS),
				(unsigned long long)(e->config.starve_limit_ns / GP_NS_PER_MS));
		return;
	}
}

static int call_policy(struct gp_engine *e, uint64_t *took_ns)
{
	const struct gp_clock *clock = e->config.decide_clock;
	uint64_t begin_ns = clock ? gp_now_ns(clock) : 0;
	int r;

	if (e->n)
		memset(e->plan_task, 0, e->n * sizeof *e->plan_task);
	e->plan = (struct gp_plan){.next_ns = GP_NEVER, .task = e->plan_task};
	r = e->policy.ops->decide(&e->view, &e->plan);
	*took_ns = clock ? gp_now_ns(clock) - begin_ns : 0;
	if (clock)
		gp_hist_add(&e->stats.decide_ns, *took_ns);
	e->stats.decisions++;
	return r;
}

/* Ejects the policy if it breaks a rule. The policy `none` is the fallback and is not supervised.
 */
static void call_supervised(struct gp_engine *e, uint64_t now_ns)
{
	uint64_t took_ns, task;
	char why[120];
	int r;

	eject_if_starving(e, now_ns);
	if (e->policy.ops == &gp_policy_none)
		return;
	r = call_policy(e, &took_ns);
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

/* Whether the plan refuses a task or reports an overrun. Most plans do not, and then the tasks need
 * not be accessed. */
static bool has_promises(const struct gp_engine *e)
{
	bool has = false;

	for (unsigned i = 0; i < e->n; i++)
		has |= e->plan_task[i].refused | e->plan_task[i].overran;
	return has;
}

/* Emits an event when a guarantee is given or withdrawn. */
static void note_promises(struct gp_engine *e, uint64_t now_ns)
{
	bool has = has_promises(e), had = e->promises;

	e->promises = has;
	for (unsigned i = 0; (has || had) && i < e->n; i++) {
		struct gp_task *t = &e->task[i];
		bool refused = e->plan_task[i].refused;

		e->counters[i].overruns += e->plan_task[i].overran && !t->overran;
		t->overran = e->plan_task[i].overran;
		if (refused == t->refused)
			continue;
		t->refused = refused;
		gp_engine_emit(e, now_ns, refused ? GP_EVENT_REFUSED : GP_EVENT_ADMITTED, t->id, 0,
			       0);
	}
}

void gp_engine_decide(struct gp_engine *e, uint64_t now_ns)
{
	uint64_t took_ns;

	if (e->policy.ops != &gp_policy_none)
		call_supervised(e, now_ns);
	if (e->policy.ops == &gp_policy_none)
		call_policy(e, &took_ns);
	note_promises(e, now_ns);
}
