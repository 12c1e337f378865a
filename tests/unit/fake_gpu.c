/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_gpu.h"

static struct fake_gpu *fake_of(struct gp_gpu *gpu)
{
	return (struct fake_gpu *)gpu; /* `base` is the first member */
}

/* The hardware's own view of the rules that matter most. */
static void fake_check_rules(struct fake_gpu *g)
{
	unsigned released = 0, held = 0;

	for (unsigned i = 0; i < g->n; i++) {
		const struct gp_observation *is = &g->task[i].is;

		held += g->task[i].present && is->held;
		released += g->task[i].best_effort && g->task[i].present && !is->held &&
			    is->slice_us && is->slice_us <= GP_TINY_SLICE_US;
	}
	g->two_tiny |= released > 1;
	g->most_held = held > g->most_held ? held : g->most_held;
}

static void fake_apply(struct fake_gpu *g, const struct fake_work *w)
{
	struct gp_observation *is = &g->task[w->handle].is;

	if (w->lost)
		return;
	if (w->kind == FAKE_SLICE)
		is->slice_us = w->slice_us;
	else
		is->held = w->kind == FAKE_HOLD;
	fake_check_rules(g);
}

/* The worker does what is due. */
static void fake_work_until(struct fake_gpu *g, uint64_t now_ns)
{
	while (g->nwork && g->work[g->first_work].due_ns <= now_ns) {
		fake_apply(g, &g->work[g->first_work]);
		g->first_work = (g->first_work + 1) % FAKE_WORK_MAX;
		g->nwork--;
	}
}

static int fake_scan(struct gp_gpu *gpu, uint64_t now_ns, struct gp_seen *seen, unsigned max)
{
	struct fake_gpu *g = fake_of(gpu);
	unsigned n = 0;

	(void)now_ns;
	g->scans++;
	if (g->scan_fails)
		return g->scan_fails;
	for (unsigned i = 0; i < g->n; i++) {
		if (!g->task[i].present)
			continue;
		if (n < max)
			seen[n] = g->task[i].seen;
		n++;
	}
	return (int)n;
}

static int fake_attach(struct gp_gpu *gpu, uint64_t key, uint32_t *handle)
{
	struct fake_gpu *g = fake_of(gpu);

	for (unsigned i = 0; i < g->n; i++) {
		if (g->task[i].seen.key != key)
			continue;
		if (g->task[i].refuses_attach)
			return -EPERM;
		assert_true(g->task[i].present);
		assert_false(g->task[i].attached);
		g->task[i].attached = true;
		*handle = i;
		return 0;
	}
	return -ESRCH;
}

static void fake_detach(struct gp_gpu *gpu, uint32_t handle)
{
	struct fake_task *t = &fake_of(gpu)->task[handle];

	assert_true(t->attached);
	t->attached = false;
	t->is.held = false;
	t->is.slice_us = 0;
}

/* What the worker has been asked to do to a task, and has not ended. */
static uint8_t fake_under_way(const struct fake_gpu *g, uint32_t handle)
{
	uint8_t under_way = 0;

	for (unsigned i = 0; i < g->nwork; i++) {
		const struct fake_work *w = &g->work[(g->first_work + i) % FAKE_WORK_MAX];

		if (w->handle == handle && w->tells)
			under_way |= w->kind == FAKE_SLICE ? GP_UNDER_WAY_SLICE : GP_UNDER_WAY_HOLD;
	}
	return under_way;
}

static int fake_observe(struct gp_gpu *gpu, uint64_t now_ns, struct gp_observation *seen,
			unsigned n)
{
	struct fake_gpu *g = fake_of(gpu);

	g->observes++;
	fake_work_until(g, now_ns);
	for (unsigned i = 0; i < n; i++) {
		uint32_t handle = seen[i].handle;

		assert_true(g->task[handle].attached);
		if (!g->sees_nothing)
			seen[i] = g->task[handle].is;
		seen[i].handle = handle;
		seen[i].under_way = fake_under_way(g, handle); /* that is not the device's to say */
		if (!seen[i].run_at_ns)
			seen[i].run_at_ns = now_ns;
	}
	return g->observe_fails;
}

void fake_reserve(struct fake_gpu *g, unsigned n)
{
	if (n <= g->asked_capacity)
		return;
	g->asked_capacity = n;
	g->asked = realloc(g->asked, n * sizeof *g->asked);
	assert_non_null(g->asked);
}

static void fake_note(struct fake_gpu *g, enum fake_kind kind, uint64_t now_ns,
		      const struct gp_action *a)
{
	if (g->nasked == g->asked_capacity)
		fake_reserve(g, g->nasked ? 2 * g->nasked : 256);
	g->asked[g->nasked++] = (struct fake_act){.kind = kind,
						  .call = g->calls,
						  .handle = a->handle,
						  .slice_us = a->slice_us,
						  .now_ns = now_ns};
}

static void fake_take(struct fake_gpu *g, enum fake_kind kind, uint64_t now_ns, struct gp_action *a)
{
	struct fake_fault f = g->fault[kind];
	struct fake_work w = {.kind = kind, .handle = a->handle, .slice_us = a->slice_us};

	if (g->choose)
		g->choose(g, kind, &f);
	assert_true(g->task[a->handle].attached);
	a->certainty = f.observed ? GP_OBSERVED : GP_ACCEPTED;
	a->driver_code = f.status ? 0xbad : 0;
	a->status = f.status;
	if (f.status)
		return;
	w.lost = f.lost;
	w.due_ns = (g->work_done_ns > now_ns ? g->work_done_ns : now_ns) + f.delay_ns;
	/* What has long to wait behind others is under way, not accepted. */
	w.tells = f.asks_to_wait || w.due_ns > now_ns + 10 * MS;
	a->status = w.tells ? -EINPROGRESS : 0;
	g->work_done_ns = w.due_ns;
	assert_true(g->nwork < FAKE_WORK_MAX);
	g->work[(g->first_work + g->nwork++) % FAKE_WORK_MAX] = w;
}

int fake_act(struct gp_gpu *gpu, uint64_t now_ns, enum gp_act_kind act, struct gp_action *a,
	     unsigned n)
{
	enum fake_kind kind = act == GP_ACT_HOLD      ? FAKE_HOLD
			      : act == GP_ACT_RELEASE ? FAKE_RELEASE
						      : FAKE_SLICE;
	struct fake_gpu *g = fake_of(gpu);

	assert_true(n > 0);
	fake_work_until(g, now_ns);
	g->calls++;
	for (unsigned i = 0; i < n; i++)
		fake_note(g, kind, now_ns, &a[i]);
	if (g->fault[kind].whole)
		return g->fault[kind].whole;
	for (unsigned i = 0; i < n; i++)
		fake_take(g, kind, now_ns, &a[i]);
	fake_work_until(g, now_ns);
	return 0;
}

static int fake_undo_record(struct gp_gpu *gpu, uint32_t handle, struct gp_undo *undo)
{
	struct fake_gpu *g = fake_of(gpu);

	g->undo_records++;
	*undo = (struct gp_undo){.key = g->task[handle].seen.key,
				 .pid = g->task[handle].seen.pid,
				 .size = 1,
				 .data = {(uint8_t)handle}};
	return g->undo_fails;
}

static const struct gp_gpu_ops fake_ops = {
	.name = "fake",
	.scan = fake_scan,
	.attach = fake_attach,
	.detach = fake_detach,
	.observe = fake_observe,
	.act = fake_act,
	.undo_record = fake_undo_record,
};

unsigned fake_count(const struct fake_gpu *g, enum fake_kind kind, uint32_t handle, unsigned from)
{
	unsigned count = 0;

	for (unsigned i = from; i < g->nasked; i++)
		count += g->asked[i].kind == kind && g->asked[i].handle == handle;
	return count;
}

struct script script;

int script_decide(const struct gp_view *view, struct gp_plan *plan)
{
	script.asked++;
	for (uint32_t i = 0; i < view->n; i++) {
		uint64_t id = view->task[i].id;

		if (view->task[i].class != GP_UNMANAGED || script.rude)
			plan->task[i] = id < SCRIPT_MAX ? script.want[id] : script.others;
	}
	if (script.next_ns)
		plan->next_ns = script.next_ns;
	if (script.clock)
		script.clock->at_ns += script.takes_ns;
	return script.result;
}

const struct gp_policy_ops scripted = {
	.name = "scripted",
	.summary = "wants what the test wants",
	.decide = script_decide,
};

const struct gp_policy_ops watching = {
	.name = "watching",
	.summary = "wants what the test wants, and watches",
	.watches = true,
	.decide = script_decide,
};

void want(uint64_t id, enum gp_want what, uint32_t slice_us)
{
	assert_in_range(id, 1, SCRIPT_MAX - 1);
	script.want[id] = (struct gp_task_plan){.want = (uint8_t)what, .slice_us = slice_us};
}

void want_each(const struct gp_task_plan *plan, size_t n)
{
	for (size_t i = 0; i < n; i++)
		want(i + 1, plan[i].want, plan[i].slice_us);
}

static void rig_classify(void *arg, const struct gp_seen *seen, struct gp_task_attr *attr)
{
	struct rig *r = arg;

	assert_int_equal(attr->class, GP_UNMANAGED);
	assert_int_equal(attr->weight, 100);
	*attr = r->attr[seen->key];
}

static void rig_event(void *arg, const struct gp_event *event)
{
	struct rig *r = arg;

	assert_true(event->kind <= GP_EVENT_ADMITTED);
	r->events[event->kind]++;
	r->last[event->kind] = *event;
}

struct rig *rig_new(void)
{
	struct rig *r = calloc(1, sizeof *r);

	assert_non_null(r);
	gp_log_set_level(GP_LOG_ERROR); /* failures are what is tested here */
	memset(&script, 0, sizeof script);
	r->gpu.base.ops = &fake_ops;
	r->gpu.base.info = (struct gp_gpu_info){.name = "fake GPU",
						.caps = FAKE_CAPS,
						.max_held = 4096,
						.slice_default_us = 2000,
						.slice_min_us = 1,
						.slice_max_us = 1000000};
	r->gpu.task = calloc(RIG_TASKS, sizeof *r->gpu.task);
	r->attr = calloc(RIG_TASKS + 1, sizeof *r->attr);
	assert_true(r->gpu.task && r->attr);
	r->config = (struct gp_engine_config){
		.gpu = &r->gpu.base, .classify = rig_classify, .on_event = rig_event, .arg = r};
	r->now_ns = 1 * S;
	gp_virtual_clock_init(&r->decide_clock, 0);
	return r;
}

void rig_free(struct rig *r)
{
	gp_engine_free(r->engine);
	for (unsigned i = 0; i < r->gpu.n; i++)
		assert_false(r->gpu.task[i].attached);
	free(r->gpu.asked);
	free(r->gpu.task);
	free(r->attr);
	free(r);
}

int rig_set_up(void **state)
{
	*state = rig_new();
	return 0;
}

int rig_tear_down(void **state)
{
	rig_free(*state);
	return 0;
}

uint32_t rig_add(struct rig *r, enum gp_class class)
{
	uint32_t handle = r->gpu.n++;
	struct fake_task *t = &r->gpu.task[handle];

	assert_true(r->gpu.n <= RIG_TASKS);
	t->seen = (struct gp_seen){.key = handle + 1u, .pid = (pid_t)(1000 + handle)};
	t->present = true;
	t->best_effort = class == GP_BEST_EFFORT;
	t->is = (struct gp_observation){.known = GP_KNOWN_ACTIVE | GP_KNOWN_RUNNING |
						 GP_KNOWN_HELD | GP_KNOWN_SLICE,
					.active = true,
					.running = true};
	r->attr[handle + 1] = GP_TASK_ATTR_DEFAULT;
	r->attr[handle + 1].class = (uint8_t) class;
	return handle;
}

void rig_add_many(struct rig *r, unsigned n)
{
	while (n--)
		rig_add(r, GP_BEST_EFFORT);
}

void rig_set_policy(struct rig *r, const struct gp_policy_ops *ops)
{
	struct gp_policy_choice choice;
	struct gp_error err = {0};

	gp_policy_defaults(ops, &choice);
	assert_int_equal(gp_engine_set_policy(r->engine, r->now_ns, &choice, &err), 0);
	assert_ptr_equal(gp_engine_policy(r->engine), ops);
}

uint64_t rig_step(struct rig *r)
{
	uint64_t next_ns;

	fake_work_until(&r->gpu, r->now_ns);
	next_ns = gp_engine_step(r->engine, r->now_ns);
	assert_true(next_ns > r->now_ns);
	assert_true(gp_engine_next_ns(r->engine) == next_ns);
	return next_ns;
}

void rig_start(struct rig *r, const struct gp_policy_ops *ops)
{
	rig_make(r);
	rig_set_policy(r, ops);
	rig_step(r);
}

void rig_start_with(struct rig *r, const struct gp_policy_ops *ops, const struct gp_task_plan *plan,
		    size_t n)
{
	rig_add_many(r, (unsigned)n);
	want_each(plan, n);
	rig_start(r, ops);
}

void rig_tick(struct rig *r, uint64_t after_ns)
{
	r->now_ns += after_ns;
	rig_step(r);
}

void rig_run(struct rig *r, uint64_t for_ns)
{
	uint64_t end_ns = r->now_ns + for_ns;

	for (;;) {
		uint64_t next_ns = gp_engine_next_ns(r->engine);

		if (next_ns > end_ns)
			break;
		if (next_ns > r->now_ns)
			r->now_ns = next_ns;
		rig_step(r);
	}
	r->now_ns = end_ns;
	fake_work_until(&r->gpu, end_ns);
}

struct gp_task_stats rig_task(const struct rig *r, unsigned index)
{
	struct gp_task_stats s;

	assert_true(index < gp_engine_tasks(r->engine));
	gp_engine_task_stats(r->engine, index, &s);
	return s;
}
