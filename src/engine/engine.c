/* SPDX-License-Identifier: Apache-2.0 */
/* Creates and frees an engine, changes its policy, and runs its step. */
#include <stdlib.h>
#include <string.h>

#include "engine/engine_state.h"

#define GAP_MIN_NS (1 * GP_NS_PER_S) /* a tick delayed by more: the thread was suspended */

static void set_defaults(struct gp_engine_config *c)
{
#define DEFAULT(member, value) (c->member = c->member ? c->member : (value))
	DEFAULT(check_ns, 5 * GP_NS_PER_MS);
	DEFAULT(check_lc_ns, 1 * GP_NS_PER_MS);
	DEFAULT(check_quiet_ns, 1 * GP_NS_PER_S);
	DEFAULT(scan_every_ns, 100 * GP_NS_PER_MS);
	DEFAULT(starve_limit_ns, GP_STARVE_LIMIT_NS);
	DEFAULT(decide_limit_ns, 10 * GP_NS_PER_MS);
	DEFAULT(backoff_min_ns, 1 * GP_NS_PER_MS);
	DEFAULT(backoff_max_ns, 1 * GP_NS_PER_S);
#undef DEFAULT
}

int gp_engine_new(const struct gp_engine_config *config, struct gp_engine **engine)
{
	struct gp_policy_choice none = {.ops = &gp_policy_none};
	struct gp_engine *e = calloc(1, sizeof *e);

	if (!e)
		return -ENOMEM;
	e->config = *config;
	set_defaults(&e->config);
	e->gpu = config->gpu;
	e->view.state = &e->state;
	e->next_id = 1;
	e->hint_over_ns = GP_NEVER;
	e->triggered = true;
	e->epoch = config->epoch ? config->epoch(config->arg) : 0;
	gp_table_init(&e->by_key);
	gp_table_init(&e->by_gang);
	gp_hist_init(&e->stats.hold_ns);
	gp_hist_init(&e->stats.release_ns);
	gp_hist_init(&e->stats.decide_ns);
	gp_hist_init(&e->stats.wait_ns);
	gp_hist_init(&e->stats.detect_ns);
	for (unsigned i = 0; i <= GP_LATENCY_CRITICAL; i++)
		gp_log2_hist_init(&e->stats.class_waits[i]);
	gp_engine_load_policy(e, &none);
	*engine = e;
	return 0;
}

void gp_engine_free(struct gp_engine *e)
{
	if (!e)
		return;
	for (unsigned i = 0; i < e->n; i++)
		gp_gpu_detach(e->gpu, e->task[i].handle);
	gp_table_free(&e->by_gang);
	gp_table_free(&e->by_key);
	free(e->found);
	free(e->gang_todo);
	free(e->todo);
	free(e->action_task);
	free(e->action);
	free(e->seen);
	free(e->plan_task);
	free(e->view_task);
	free(e->counters);
	free(e->identity);
	free(e->task);
	free(e->state.task);
	free(e->device_blob);
	free(e);
}

/* Allocates the policy's state and adds the current tasks to it. Changes nothing on error. */
int gp_engine_load_policy(struct gp_engine *e, const struct gp_policy_choice *choice)
{
	const struct gp_policy_ops *ops = choice->ops;
	/* The state may hold any type, so it is aligned for all of them. */
	size_t stride = (ops->task_state + 15u) & ~(size_t)15;
	void *device = NULL, *task = NULL;

	if (ops->device_state && !(device = calloc(1, ops->device_state)))
		return -ENOMEM;
	if (stride && !(task = calloc(e->capacity ? e->capacity : 1, stride))) {
		free(device);
		return -ENOMEM;
	}
	free(e->device_blob);
	free(e->state.task);
	e->device_blob = device;
	e->policy = *choice;
	e->state = (struct gp_policy_state){
		.param = e->policy.param, .device = device, .task = task, .task_stride = stride};
	if (ops->init)
		ops->init(&e->state);
	for (unsigned i = 0; ops->task_in && i < e->n; i++)
		ops->task_in(&e->state, &e->view_task[i], gp_policy_task(&e->view, i));
	return 0;
}

static const char *first_missing(uint32_t caps)
{
	static const struct {
		uint32_t cap;
		const char *name;
	} names[] = {
		{GP_CAP_HOLD, "holding tasks"},          {GP_CAP_SLICE, "time slices"},
		{GP_CAP_ACTIVITY, "activity"},           {GP_CAP_EVENTS, "events"},
		{GP_CAP_REQUEST_MARKS, "request marks"}, {GP_CAP_PREEMPT_MODE, "preemption modes"}};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (caps & names[i].cap)
			return names[i].name;
	return "an unknown capability";
}

static int check_needs(const struct gp_engine *e, const struct gp_policy_ops *ops,
		       struct gp_error *err)
{
	uint32_t caps = gp_engine_caps(e);
	uint32_t missing = ops->needs & ~caps;

	if (missing)
		return gp_fail(err, -ENOTSUP,
			       "policy %s needs %s, which %s does not offer; try priority or rr",
			       ops->name, first_missing(missing), e->gpu->info.name);
	if (!gp_tells_in_time(caps, e->gpu->info.sample_period_ns))
		caps &= ~(uint32_t)GP_CAP_ACTIVITY; /* activity is known too late to act on it */
	if (ops->needs_one && !(ops->needs_one & caps))
		return gp_fail(
			err, -ENOTSUP,
			"policy %s must know when a request begins, and %s does not show it; "
			"let programs send request marks, or try priority or rr",
			ops->name, e->gpu->info.name);
	return 0;
}

int gp_engine_set_policy(struct gp_engine *e, uint64_t now_ns,
			 const struct gp_policy_choice *choice, struct gp_error *err)
{
	int r = check_needs(e, choice->ops, err);

	if (r)
		return r;
	r = gp_engine_load_policy(e, choice);
	if (r)
		return gp_fail(err, r, "not enough memory for policy %s", choice->ops->name);
	for (unsigned i = 0; i < e->n; i++)
		e->task[i].starved_ns = 0; /* caused by the previous policy */
	gp_engine_emit(e, now_ns, GP_EVENT_POLICY, 0, 0, 0);
	gp_engine_trigger(e, false);
	return 0;
}

static struct gp_task *find_by_key(const struct gp_engine *e, uint64_t key)
{
	unsigned i = 0;

	while (i < e->n && e->identity[i].key != key)
		i++;
	return i < e->n ? &e->task[i] : NULL;
}

int gp_engine_hint(struct gp_engine *e, uint64_t now_ns, uint64_t key, uint64_t for_ns)
{
	struct gp_task *t = find_by_key(e, key);

	if (!t)
		return -ESRCH;
	if (!t->hint_until_ns)
		t->hint_ns = now_ns;
	t->hint_until_ns = gp_time_add(now_ns, for_ns);
	gp_engine_trigger(e, false);
	return 0;
}

int gp_engine_mark(struct gp_engine *e, uint64_t now_ns, uint64_t key, bool begins)
{
	struct gp_task *t = find_by_key(e, key);

	if (!t)
		return -ESRCH;
	t->has_marks = true;
	if (begins && !t->in_request)
		t->request_since_ns = now_ns;
	t->in_request = begins;
	gp_engine_trigger(e, false);
	return 0;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Whether the plan may depend on activity that the back end does not announce. With a single task
 * it does not, because that task shares the device with no other. */
static bool must_poll(const struct gp_engine *e)
{
	return e->policy.ops->watches && e->n > 1 && e->managed &&
	       !(e->gpu->info.caps & (GP_CAP_EVENTS | e->policy.ops->watch_free));
}

static uint64_t next_tick(const struct gp_engine *e, uint64_t now_ns)
{
	const struct gp_gpu_info *info = &e->gpu->info;
	uint64_t wait_ns = e->config.check_quiet_ns;
	uint64_t next_ns = earlier(earlier(e->plan.next_ns, e->next_attempt_ns), e->scan_at_ns);

	if (must_poll(e)) {
		wait_ns = e->lc_tasks ? e->config.check_lc_ns : e->config.check_ns;
		if (wait_ns < info->sample_period_ns)
			wait_ns = info->sample_period_ns;
	}
	next_ns = earlier(earlier(next_ns, e->hint_over_ns), gp_time_add(now_ns, wait_ns));
	return next_ns > now_ns ? next_ns : now_ns + 1;
}

/* If the owning thread was suspended, the gap is charged to no task. A delay of up to GAP_MIN_NS is
 * charged. */
static uint64_t suspended_for(const struct gp_engine *e, uint64_t now_ns)
{
	uint64_t due_ns = e->last_tick_ns ? e->next_ns : now_ns;

	return now_ns > gp_time_add(due_ns, GAP_MIN_NS) ? now_ns - due_ns : 0;
}

uint64_t gp_engine_step(struct gp_engine *e, uint64_t now_ns)
{
	e->gap_ns = suspended_for(e, now_ns);
	gp_engine_epoch_changed(e, now_ns);
	e->triggered = false;
	if (now_ns >= e->scan_at_ns)
		gp_engine_scan(e, now_ns);
	gp_engine_observe(e, now_ns);
	gp_engine_find_inversion(e, now_ns);
	gp_engine_decide(e, now_ns);
	gp_engine_act(e, now_ns);
	e->last_tick_ns = now_ns;
	e->next_ns = next_tick(e, now_ns);
	return e->next_ns;
}

uint64_t gp_engine_next_ns(const struct gp_engine *e)
{
	return e->triggered ? 0 : e->next_ns;
}

void gp_engine_trigger(struct gp_engine *e, bool rescan)
{
	e->triggered = true;
	if (rescan)
		e->scan_at_ns = 0;
}

const struct gp_policy_ops *gp_engine_policy(const struct gp_engine *e)
{
	return e->policy.ops;
}

const struct gp_engine_stats *gp_engine_stats(const struct gp_engine *e)
{
	return &e->stats;
}

const struct gp_view *gp_engine_view(const struct gp_engine *e)
{
	return &e->view;
}

const struct gp_plan *gp_engine_plan(const struct gp_engine *e)
{
	return &e->plan;
}
