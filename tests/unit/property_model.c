/* SPDX-License-Identifier: Apache-2.0 */
#include "property_model.h"

static struct model *model_of(struct gp_gpu *gpu)
{
	return (struct model *)gpu; /* `base` is the first member */
}

static bool model_one_in(struct model *m, unsigned permille)
{
	return permille && gp_rng_below(&m->rng, 1000) < permille;
}

static bool model_is_runnable(const struct model_task *t)
{
	return t->present && t->active && !t->held;
}

bool model_has_pending(const struct model *m, uint32_t task)
{
	for (unsigned i = 0; i < m->effects; i++)
		if (m->effect[i].task == task)
			return true;
	return false;
}

static uint64_t model_slice_ns(const struct model *m, uint32_t task)
{
	uint32_t us = m->task[task].slice_us;

	return (us ? us : m->profile.slice_us) * GP_NS_PER_US;
}

static void model_next_slice(struct model *m)
{
	for (unsigned i = 0; i < MODEL_TASKS; i++) {
		m->current = (m->current + 1) % MODEL_TASKS;
		if (model_is_runnable(&m->task[m->current]) && !model_is_tiny(&m->task[m->current]))
			break;
	}
	m->left_ns = model_slice_ns(m, m->current);
}

/* Sets on_hardware. Returns how long that stays unchanged if nothing else happens. */
static uint64_t model_pick(struct model *m)
{
	unsigned normal = 0, tiny = 0;

	for (unsigned i = 0; i < MODEL_TASKS; i++) {
		struct model_task *t = &m->task[i];
		bool runnable = model_is_runnable(t);

		t->on_hardware = runnable && !m->profile.slices;
		normal += runnable && !model_is_tiny(t);
		tiny += runnable && model_is_tiny(t);
	}
	if (!m->profile.slices)
		return GP_NEVER;
	if (normal) {
		if (!m->left_ns || !model_is_runnable(&m->task[m->current]) ||
		    model_is_tiny(&m->task[m->current]))
			model_next_slice(m);
		m->task[m->current].on_hardware = true;
		return normal > 1 ? m->left_ns : GP_NEVER;
	}
	for (unsigned i = 0; tiny == 1 && i < MODEL_TASKS; i++)
		m->task[i].on_hardware = model_is_runnable(&m->task[i]);
	return GP_NEVER;
}

static void model_account(struct model *m, uint64_t length_ns)
{
	for (unsigned i = 0; i < MODEL_TASKS; i++) {
		struct model_task *t = &m->task[i];

		t->run_ns += t->on_hardware ? length_ns : 0;
		t->was_free &= !t->active && !t->held;
	}
	if (m->profile.slices && m->task[m->current].on_hardware)
		m->left_ns -= length_ns < m->left_ns ? length_ns : m->left_ns;
	if (m->on_piece)
		m->on_piece(m->arg, length_ns);
}

void model_set_active(struct model *m, uint32_t task, bool active)
{
	struct model_task *t = &m->task[task];
	uint64_t mean_ns = active ? t->busy_ns : t->idle_ns;

	if (active && !t->active)
		t->active_since_ns = m->now_ns;
	if (active != t->active && t->attached && m->profile.events)
		m->signalled = true;
	t->active = active;
	t->toggles_ns = mean_ns == GP_NEVER
				? GP_NEVER
				: m->now_ns + mean_ns / 2 + 1 + gp_rng_below(&m->rng, mean_ns);
}

void model_set_rhythm(struct model *m, uint32_t task, uint64_t busy_ns, uint64_t idle_ns)
{
	m->task[task].busy_ns = busy_ns;
	m->task[task].idle_ns = idle_ns;
	model_set_active(m, task, busy_ns != 0);
}

static void model_take_samples(struct model *m)
{
	for (unsigned i = 0; i < MODEL_TASKS; i++) {
		struct model_task *t = &m->task[i];
		bool worked = t->run_ns != t->sample_run_ns;

		t->sample_ns = m->now_ns;
		t->sample_known = worked || t->was_free;
		t->sample_active = worked;
		t->sample_run_ns = t->run_ns;
		t->was_free = true;
	}
	m->sample_at_ns = m->now_ns + MODEL_SAMPLE_NS;
}

static void model_apply(struct model *m, const struct model_effect *e)
{
	struct model_task *t = &m->task[e->task];

	if (e->kind == MODEL_SET_SLICE) {
		t->slice_us = e->slice_us;
		if (m->current == e->task && m->left_ns > model_slice_ns(m, e->task))
			m->left_ns = model_slice_ns(m, e->task);
	} else {
		t->held = e->kind == MODEL_HOLD;
	}
	if (m->on_effect)
		m->on_effect(m->arg, e->task);
}

static unsigned model_next_effect(const struct model *m)
{
	unsigned best = 0;

	for (unsigned i = 1; i < m->effects; i++) {
		const struct model_effect *a = &m->effect[i], *b = &m->effect[best];

		if (a->at_ns < b->at_ns || (a->at_ns == b->at_ns && a->order < b->order))
			best = i;
	}
	return best;
}

static void model_apply_due(struct model *m)
{
	if (m->now_ns >= m->sample_at_ns)
		model_take_samples(m);
	for (unsigned i = 0; i < MODEL_TASKS; i++)
		if (m->task[i].present && m->now_ns >= m->task[i].toggles_ns)
			model_set_active(m, i, !m->task[i].active);
	while (m->effects) {
		unsigned next = model_next_effect(m);
		struct model_effect e = m->effect[next];

		if (e.at_ns > m->now_ns)
			return;
		m->effect[next] = m->effect[--m->effects];
		m->signalled |= m->profile.events;
		model_apply(m, &e);
	}
}

static uint64_t model_next_change(const struct model *m, uint64_t to_ns)
{
	if (m->sample_at_ns < to_ns)
		to_ns = m->sample_at_ns;
	for (unsigned i = 0; i < MODEL_TASKS; i++)
		if (m->task[i].present && m->task[i].toggles_ns < to_ns)
			to_ns = m->task[i].toggles_ns;
	for (unsigned i = 0; i < m->effects; i++)
		if (m->effect[i].at_ns < to_ns)
			to_ns = m->effect[i].at_ns;
	return to_ns;
}

void model_advance(struct model *m, uint64_t to_ns)
{
	for (;;) {
		uint64_t stays_ns, end_ns;

		model_apply_due(m);
		stays_ns = model_pick(m);
		if (m->now_ns >= to_ns || (m->stop_on_signal && m->signalled))
			return;
		end_ns = model_next_change(m, to_ns);
		if (stays_ns < end_ns - m->now_ns)
			end_ns = m->now_ns + stays_ns;
		model_account(m, end_ns - m->now_ns);
		m->now_ns = end_ns;
	}
}

uint32_t model_enter(struct model *m)
{
	for (uint32_t i = 0; i < MODEL_TASKS; i++) {
		struct model_task *t = &m->task[i];

		if (t->present || t->attached)
			continue;
		*t = (struct model_task){.present = true,
					 .key = ++m->next_key,
					 .busy_ns = GP_NEVER,
					 .idle_ns = GP_NEVER,
					 .toggles_ns = GP_NEVER};
		return i;
	}
	return MODEL_TASKS;
}

void model_leave(struct model *m, uint32_t task)
{
	m->task[task].present = false;
	m->task[task].active = false;
}

static int model_scan(struct gp_gpu *gpu, uint64_t now_ns, struct gp_seen *seen, unsigned max)
{
	struct model *m = model_of(gpu);
	unsigned n = 0;

	(void)now_ns;
	for (unsigned i = 0; i < MODEL_TASKS; i++) {
		if (!m->task[i].present)
			continue;
		if (n < max)
			seen[n] = (struct gp_seen){.key = m->task[i].key, .pid = (pid_t)(1000 + i)};
		n++;
	}
	return (int)n;
}

static int model_attach(struct gp_gpu *gpu, uint64_t key, uint32_t *handle)
{
	struct model *m = model_of(gpu);

	for (uint32_t i = 0; i < MODEL_TASKS; i++) {
		struct model_task *t = &m->task[i];

		if (!t->present || t->key != key)
			continue;
		t->attached = true;
		t->run_at_attach_ns = t->run_ns;
		*handle = i;
		return 0;
	}
	return -ESRCH;
}

static void model_detach(struct gp_gpu *gpu, uint32_t handle)
{
	struct model *m = model_of(gpu);
	struct model_task *t = &m->task[handle];
	unsigned kept = 0;

	for (unsigned i = 0; i < m->effects; i++)
		if (m->effect[i].task != handle)
			m->effect[kept++] = m->effect[i];
	m->effects = kept;
	t->attached = false;
	t->held = false;
	t->slice_us = 0;
}

static void model_show_activity(const struct model *m, const struct model_task *t,
				struct gp_observation *o)
{
	bool sampled = m->profile.activity == SAMPLED;

	if (m->profile.activity == UNSEEN || (t->held && !m->profile.activity_of_held) ||
	    (sampled && (t->held || !t->sample_ns || !t->sample_known)))
		return;
	o->known |= GP_KNOWN_ACTIVE;
	o->active = sampled ? t->sample_active : t->active;
	if (sampled)
		return;
	o->known |= GP_KNOWN_PENDING | (t->active ? GP_KNOWN_ACTIVE_SINCE : 0);
	o->pending = t->active;
	o->active_since_ns = t->active_since_ns;
}

static void model_show_run(const struct model *m, const struct model_task *t,
			   struct gp_observation *o)
{
	bool sampled = m->profile.run == SAMPLED;
	uint64_t run_ns = sampled ? t->sample_run_ns : t->run_ns;

	if (m->profile.run == UNSEEN || (sampled && !t->sample_ns))
		return;
	o->known |= GP_KNOWN_RUN;
	o->run_source = GP_RUN_MEASURED;
	o->run_ns = run_ns > t->run_at_attach_ns ? run_ns - t->run_at_attach_ns : 0;
	o->run_at_ns = sampled ? t->sample_ns : m->now_ns;
}

static void model_show_under_way(const struct model *m, struct gp_observation *o)
{
	for (unsigned i = 0; i < m->effects; i++)
		if (m->effect[i].task == o->handle && m->effect[i].in_progress)
			o->under_way |= m->effect[i].kind == MODEL_SET_SLICE ? GP_UNDER_WAY_SLICE
									     : GP_UNDER_WAY_HOLD;
}

static void model_show(struct model *m, struct gp_observation *o)
{
	struct model_task *t = &m->task[o->handle];

	model_show_under_way(m, o);
	if (!t->present)
		return;
	model_show_activity(m, t, o);
	model_show_run(m, t, o);
	if (m->profile.running_seen) {
		o->known |= GP_KNOWN_RUNNING;
		o->running = t->on_hardware;
	}
	if (m->profile.held_seen) {
		o->known |= GP_KNOWN_HELD;
		o->held = t->held;
	}
	if (m->profile.slice_seen) {
		o->known |= GP_KNOWN_SLICE;
		o->slice_us = t->slice_us;
	}
	if (t->shown && model_one_in(m, m->profile.drop_permille))
		o->known &= ~(1u << gp_rng_below(&m->rng, 7));
	t->shown = true;
}

static int model_observe(struct gp_gpu *gpu, uint64_t now_ns, struct gp_observation *seen,
			 unsigned n)
{
	struct model *m = model_of(gpu);
	bool all_shown = true;

	(void)now_ns;
	for (unsigned i = 0; i < n; i++)
		all_shown &= m->task[seen[i].handle].shown || !m->task[seen[i].handle].present;
	if (all_shown && model_one_in(m, m->profile.blind_permille))
		return -EIO;
	for (unsigned i = 0; i < n; i++)
		model_show(m, &seen[i]);
	return 0;
}

/* The end of the last action of this kind on the task: a later one does not overtake it. */
static uint64_t model_last_pending(const struct model *m, enum model_action kind, uint32_t task)
{
	uint64_t last_ns = 0;

	for (unsigned i = 0; i < m->effects; i++) {
		const struct model_effect *e = &m->effect[i];
		bool same = (e->kind == MODEL_SET_SLICE) == (kind == MODEL_SET_SLICE);

		if (e->task == task && same && e->at_ns > last_ns)
			last_ns = e->at_ns;
	}
	return last_ns;
}

static uint64_t model_end_of(struct model *m, enum model_action kind, uint32_t task)
{
	uint64_t last_ns = model_last_pending(m, kind, task);
	uint64_t end_ns = m->now_ns + 1 + gp_rng_below(&m->rng, m->profile.cost_ns);

	if (m->profile.finish == WORKER) {
		if (m->worker_free_ns > m->now_ns)
			end_ns += m->worker_free_ns - m->now_ns;
		m->worker_free_ns = end_ns;
	}
	return end_ns > last_ns ? end_ns : last_ns;
}

static void model_act_on(struct model *m, enum model_action kind, struct gp_action *a)
{
	bool observable = kind == MODEL_SET_SLICE ? m->profile.slice_seen : m->profile.held_seen;
	enum model_finish finish = m->profile.finish;
	struct model_effect e = {
		.order = m->next_order++, .kind = kind, .task = a->handle, .slice_us = a->slice_us};

	if (m->on_call)
		m->on_call(m->arg, kind, a->handle, a->slice_us);
	a->status = m->task[a->handle].present ? 0 : -ESRCH;
	if (a->status)
		return;
	if (finish == MIXED)
		finish = (enum model_finish)gp_rng_below(&m->rng, 3);
	if (model_last_pending(m, kind, a->handle))
		finish = WORKER;
	a->certainty = finish == AT_ONCE ? GP_OBSERVED : GP_ACCEPTED;
	if (finish == AT_ONCE || (finish == ACCEPTED && !observable) ||
	    m->effects == MODEL_EFFECTS) {
		model_apply(m, &e);
		return;
	}
	e.at_ns = model_end_of(m, kind, a->handle);
	e.in_progress = finish == WORKER;
	m->effect[m->effects++] = e;
	a->status = e.in_progress ? -EINPROGRESS : 0;
}

static int model_act(struct gp_gpu *gpu, enum model_action kind, struct gp_action *action,
		     unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		model_act_on(model_of(gpu), kind, &action[i]);
	return 0;
}

static int model_act_op(struct gp_gpu *gpu, uint64_t now_ns, enum gp_act_kind kind,
			struct gp_action *a, unsigned n)
{
	(void)now_ns;
	return model_act(gpu,
			 kind == GP_ACT_HOLD      ? MODEL_HOLD
			 : kind == GP_ACT_RELEASE ? MODEL_RELEASE
						  : MODEL_SET_SLICE,
			 a, n);
}

void model_init(struct model *m, const struct model_profile *profile, uint64_t seed)
{
	static const struct gp_gpu_ops ops = {
		.name = "model",
		.scan = model_scan,
		.attach = model_attach,
		.detach = model_detach,
		.observe = model_observe,
		.act = model_act_op,
	};
	const struct model_profile *p = profile;
	struct gp_gpu_info *info = &m->base.info;

	*m = (struct model){.base.ops = &ops, .profile = *profile};
	gp_rng_init(&m->rng, seed, 1);
	m->now_ns = GP_NS_PER_S + gp_rng_below(&m->rng, GP_NS_PER_S);
	m->sample_at_ns = m->now_ns + MODEL_SAMPLE_NS;
	snprintf(info->name, sizeof info->name, "model");
	info->caps = (p->max_held ? GP_CAP_HOLD : 0) | (p->slices ? GP_CAP_SLICE : 0) |
		     (p->activity != UNSEEN ? GP_CAP_ACTIVITY : 0) |
		     (p->events ? GP_CAP_EVENTS : 0);
	info->max_held = p->max_held;
	info->slice_default_us = p->slice_us_told ? p->slice_us : 0;
	info->slice_min_us = p->slices ? p->slice_min_us : 0;
	info->slice_max_us = p->slices ? p->slice_max_us : 0;
	info->hold_cost_ns = info->release_cost_ns = info->slice_cost_ns = p->cost_ns;
	info->sample_period_ns = p->activity == SAMPLED ? MODEL_SAMPLE_NS : 0;
}
