/* SPDX-License-Identifier: Apache-2.0 */
#include "deadline_world.h"

#include "base/log.h"

void deadline_world_init(struct world *w, uint64_t permille)
{
	gp_log_set_level(GP_LOG_ERROR);
	*w = (struct world){.device = gp_sim_h200, .seed = 1, .duration_ns = 10 * S};
	w->device.slices = false;
	w->device.activity = GP_ACTIVITY_EVENTS;
#define SCALE(member) (w->device.member = w->device.member * permille / 1000)
	SCALE(switch_ns);
	SCALE(switch_idle_ns);
	SCALE(refill_ns);
	SCALE(launch_ns);
	SCALE(launch_jitter_ns);
	SCALE(hold_ns);
	SCALE(release_ns);
#undef SCALE
}

void world_show_samples(struct world *w)
{
	w->device.slices = true;
	w->device.activity = GP_ACTIVITY_SAMPLED;
}

uint64_t world_change_ns(const struct world *w)
{
	struct gp_sim_task idle = {.load = GP_LOAD_IDLE, .stop_ns = GP_NEVER};
	struct gp_sim_config config = {.device = w->device, .task = &idle, .ntasks = 1};
	struct gp_gpu_info info;
	struct gp_sim *sim;

	assert_int_equal(gp_sim_new(&config, &sim), 0);
	info = gp_sim_gpu(sim)->info;
	gp_sim_free(sim);
	return info.hold_cost_ns + info.release_cost_ns + info.notice_ns +
	       2 * (info.switch_cost_ns + info.switch_cost_ns / 4);
}

uint32_t world_add(struct world *w, struct gp_sim_task task, uint64_t deadline_ns,
		   uint64_t budget_ns)
{
	uint32_t i = w->n++;

	assert_true(i < WORLD_TASKS);
	task.stop_ns = task.stop_ns ? task.stop_ns : GP_NEVER;
	w->task[i] = task;
	w->attr[i] = GP_TASK_ATTR_DEFAULT;
	w->attr[i].class = deadline_ns ? GP_LATENCY_CRITICAL : GP_BEST_EFFORT;
	w->attr[i].deadline_ns = deadline_ns;
	w->attr[i].budget_ns = budget_ns;
	return i;
}

uint32_t world_add_service(struct world *w, uint64_t deadline_ns, uint64_t every_ns,
			   uint64_t budget_ns)
{
	return world_add(w, PERIODIC(every_ns, budget_ns), deadline_ns, budget_ns);
}

uint32_t world_add_job(struct world *w)
{
	return world_add(w, LOOP(5 * MS), 0, 0);
}

void world_set_trace(struct world *w, uint32_t task, const uint64_t *arrival_ns, uint32_t n)
{
	w->task[task].load = GP_LOAD_TRACE;
	w->task[task].arrival_ns = arrival_ns;
	w->task[task].arrivals = n;
}

static void world_classify(void *arg, const struct gp_seen *seen, struct gp_task_attr *attr)
{
	*attr = ((struct world *)arg)->attr[seen->key - 1];
}

static void note_request(struct world *w, uint32_t t, uint64_t response_ns)
{
	w->finished[t]++;
	w->missed[t] += w->attr[t].deadline_ns && response_ns > w->attr[t].deadline_ns;
	if (response_ns > w->longest_ns[t])
		w->longest_ns[t] = response_ns;
}

static void world_watch(void *arg, const struct gp_sim_event *event)
{
	struct world *w = arg;
	uint32_t t = event->task;

	switch (event->what) {
	case GP_SIM_REQUEST: note_request(w, t, event->now_ns - event->arrival_ns); break;
	case GP_SIM_RUN: w->runs[t]++; break;
	case GP_SIM_BEGIN:
	case GP_SIM_END:
		gp_engine_mark(w->engine, event->now_ns, t + 1u, event->what == GP_SIM_BEGIN);
		break;
	default: break;
	}
}

static void world_drive(struct world *w, struct gp_sim *sim)
{
	uint64_t now_ns = gp_sim_advance(sim, 0);
	bool rescan;

	while (now_ns < w->duration_ns) {
		uint64_t to_ns = gp_engine_next_ns(w->engine);

		if (to_ns <= now_ns) {
			gp_engine_step(w->engine, now_ns);
			continue;
		}
		now_ns = gp_sim_advance(sim, to_ns < w->duration_ns ? to_ns : w->duration_ns);
		if (gp_sim_take_signal(sim, &rescan))
			gp_engine_trigger(w->engine, rescan);
	}
}

static void world_collect(struct world *w, struct gp_sim *sim)
{
	const struct gp_ejection *ejection = gp_engine_ejection(w->engine);

	gp_sim_finish(sim, w->duration_ns);
	gp_sim_set_watch(sim, NULL, NULL);
	for (unsigned k = 0; k < gp_engine_tasks(w->engine); k++) {
		struct gp_task_stats stats;

		gp_engine_task_stats(w->engine, k, &stats);
		w->stats[stats.key - 1] = stats;
	}
	for (uint32_t i = 0; i < w->n; i++)
		w->work_ns[i] = gp_sim_result(sim, i)->work_ns;
	w->engine_stats = *gp_engine_stats(w->engine);
	if (ejection)
		memcpy(w->ejected, ejection->text, sizeof w->ejected);
}

void world_run_choice(struct world *w, const struct gp_policy_choice *choice)
{
	struct gp_sim_config config = {
		.device = w->device, .task = w->task, .ntasks = w->n, .seed = w->seed};
	struct gp_error err = {0};
	struct gp_sim *sim;

	for (uint32_t i = 0; i < w->n; i++)
		w->config.request_marks |= w->task[i].request_marks;
	assert_int_equal(gp_sim_new(&config, &sim), 0);
	w->config.gpu = gp_sim_gpu(sim);
	w->config.classify = world_classify;
	w->config.arg = w;
	assert_int_equal(gp_engine_new(&w->config, &w->engine), 0);
	if (gp_engine_set_policy(w->engine, 0, choice, &err))
		fail_msg("%s", err.text);
	gp_sim_set_watch(sim, world_watch, w);
	world_drive(w, sim);
	world_collect(w, sim);
	gp_engine_free(w->engine);
	w->engine = NULL;
	gp_sim_free(sim);
}

void world_run(struct world *w, const char *policy)
{
	struct gp_policy_choice choice;
	struct gp_error err = {0};

	assert_int_equal(gp_policy_parse(policy, &choice, &err), 0);
	world_run_choice(w, &choice);
}

unsigned world_refused(const struct world *w)
{
	unsigned refused = 0;

	for (uint32_t i = 0; i < w->n; i++)
		refused += w->stats[i].refused;
	return refused;
}

uint64_t world_missed(const struct world *w)
{
	uint64_t missed = 0;

	for (uint32_t i = 0; i < w->n; i++)
		missed += w->stats[i].refused ? 0 : w->missed[i];
	return missed;
}

static void draw_arrivals(struct world *w, struct gp_rng *rng, uint32_t i)
{
	uint64_t deadline_ns = w->attr[i].deadline_ns;
	uint64_t at_ns = 1 * MS; /* a mark of a task that is not found yet would be lost */
	uint32_t most = (uint32_t)(w->duration_ns / deadline_ns) + 1, n;

	w->arrival_ns[i] = calloc(most, sizeof **w->arrival_ns);
	assert_non_null(w->arrival_ns[i]);
	for (n = 0; n < most && at_ns < w->duration_ns; n++) {
		w->arrival_ns[i][n] = at_ns;
		at_ns += deadline_ns + (gp_rng_below(rng, 2) ? gp_rng_below(rng, deadline_ns) : 0);
	}
	world_set_trace(w, i, w->arrival_ns[i], n);
}

/* Any part of a handover may be the largest: hold, release or switch. */
static void draw_costs(struct world *w, struct gp_rng *rng)
{
	bool prompt_hold = gp_rng_below(rng, 2), prompt_release = gp_rng_below(rng, 2);

	w->device.switch_ns = draw_between(rng, 50, 600) * US;
	w->device.switch_idle_ns = w->device.switch_ns * draw_between(rng, 3, 4) / 4;
	w->device.refill_ns = w->device.switch_ns / 5;
	w->device.hold_ns = draw_between(rng, 10, prompt_hold ? 100 : 3000) * US;
	w->device.release_ns = draw_between(rng, 10, prompt_release ? 100 : 1500) * US;
	w->device.slice_us = (uint32_t)draw_between(rng, 500, 3000);
}

void split_request(struct world *w, uint32_t i)
{
	struct gp_sim_task *t = &w->task[i];
	uint64_t budget_ns = w->attr[i].budget_ns;

	t->request_marks = true;
	t->kernels = 4;
	t->kernel_ns = budget_ns / 8;
	t->kernel_gap_ns = budget_ns / 8;
	if (!t->kernel_ns)
		t->kernel_ns = 1;
}

/*
 * One task, or two of a gang that share its part and arrive together. Returns its budget in
 * millionths of its deadline, rounded up.
 */
static uint64_t draw_task(struct world *w, struct gp_rng *rng, const struct draw *draw,
			  uint64_t deadline_ns, uint64_t permille)
{
	uint64_t every_ns = deadline_ns, budget_ns = deadline_ns * permille / 1000 + 2;
	unsigned members = draw->gangs ? 2 : 1;

	if (!gp_rng_below(rng, 3))
		every_ns += gp_rng_below(rng, deadline_ns);
	for (unsigned m = 0; m < members; m++) {
		uint32_t i = world_add_service(w, deadline_ns, every_ns, budget_ns / members);

		if (draw->request_marks && !(draw->silent && !gp_rng_below(rng, 3)))
			split_request(w, i);
		if (draw->sporadic || draw->gangs)
			draw_arrivals(w, rng, i);
		if (draw->gangs)
			w->attr[i].gang = 1 + i / 2;
		if (draw->unannounced) /* the engine itself ticks less often for these */
			w->attr[i].class = GP_BEST_EFFORT;
		if (m) {
			w->task[i].arrival_ns = w->task[i - 1].arrival_ns;
			w->task[i].arrivals = w->task[i - 1].arrivals;
		}
	}
	return budget_ns * 1000000 / deadline_ns + 1;
}

/*
 * Tasks with random deadlines from the shortest to 16 times that, with periods of at least the
 * deadline. Each asks for a random part of the rest. Up to two jobs that never pause are added.
 * Returns the sum of what they ask for in permille, rounded up.
 */
static uint64_t world_draw(struct world *w, struct gp_rng *rng, const struct draw *draw)
{
	uint64_t left = draw_between(rng, draw->low, draw->high), used_ppm = 0;
	uint64_t shortest_ns = world_change_ns(w) * 1000 / draw->change_permille + 1;
	unsigned count = draw->equal ? draw->most : (unsigned)draw_between(rng, 1, draw->most);

	for (unsigned i = 0; i < count; i++) {
		uint64_t deadline_ns =
			draw->equal ? shortest_ns : shortest_ns << gp_rng_below(rng, 4);
		uint64_t permille =
			i + 1 == count ? left : gp_rng_below(rng, 2 * left / (count - i) + 1);

		if (i && !draw->equal)
			deadline_ns += gp_rng_below(rng, deadline_ns);
		used_ppm += draw_task(w, rng, draw, deadline_ns, permille);
		left -= permille < left ? permille : left;
	}
	for (uint64_t n = gp_rng_below(rng, 3); n; n--)
		world_add_job(w);
	return (used_ppm + 999) / 1000;
}

void world_free(struct world *w)
{
	for (uint32_t i = 0; i < w->n; i++)
		free(w->arrival_ns[i]);
}

void world_check(const struct world *w, const char *policy)
{
	for (uint32_t i = 0; i < w->n; i++) {
		bool promised = w->attr[i].deadline_ns && !w->stats[i].refused;

		if (promised && (w->missed[i] || w->stats[i].overruns))
			fail_msg("%s, seed %llu: task %u of %u was late %llu times, overran %llu",
				 policy, (unsigned long long)w->seed, i, w->n,
				 (unsigned long long)w->missed[i],
				 (unsigned long long)w->stats[i].overruns);
		if (!w->work_ns[i])
			fail_msg("%s, seed %llu: task %u of %u got nothing", policy,
				 (unsigned long long)w->seed, i, w->n);
	}
	if (w->ejected[0])
		fail_msg("%s, seed %llu: %s", policy, (unsigned long long)w->seed, w->ejected);
}

unsigned sets_of(unsigned n)
{
	return getenv("GPREEMPT_SOAK") ? n : n / 4;
}

unsigned run_sets(const char *policy, const struct draw *draw)
{
	unsigned with_refusals = 0;

	for (unsigned seed = 1; seed <= draw->sets; seed++) {
		struct gp_rng rng;
		struct world w;
		uint64_t asked;

		gp_rng_init(&rng, seed, 9);
		deadline_world_init(&w, draw->cost_permille ? draw->cost_permille : 1000);
		w.seed = seed;
		if (draw->request_marks)
			w.device.activity = GP_ACTIVITY_NONE;
		if (draw->sampled)
			world_show_samples(&w);
		w.config.request_marks = draw->request_marks;
		if (draw->unannounced)
			w.device.activity = GP_ACTIVITY_EXACT;
		if (draw->any_costs)
			draw_costs(&w, &rng);
		if (draw->cwsr)
			w.device = gp_sim_mi300x;
		asked = world_draw(&w, &rng, draw);
		world_run(&w, policy);
		world_check(&w, policy);
		if (asked > 1001 && !world_refused(&w))
			fail_msg("%s, seed %u: all are promised %llu permille", policy, seed,
				 (unsigned long long)asked);
		with_refusals += world_refused(&w) != 0;
		world_free(&w);
	}
	return with_refusals;
}

void none_are_refused(const char *policy, struct draw draw)
{
	assert_int_equal(run_sets(policy, &draw), 0);
}

void all_are_refused(const char *policy, struct draw draw)
{
	assert_int_equal(run_sets(policy, &draw), draw.sets);
}

void some_are_refused(const char *policy, struct draw draw)
{
	assert_in_range(run_sets(policy, &draw), 1, draw.sets - 1);
}

void four_fifths_are_accepted(const char *policy, unsigned most)
{
	none_are_refused(policy,
			 DRAW(300, .most = most, .low = 100, .high = 799, .change_permille = 10));
	none_are_refused(policy, DRAW(300, .most = most, .low = 799, .high = 799,
				      .change_permille = 10, .equal = true));
}

/* Many tasks run at the same time, a hold stops all of them, and changes are noticed a millisecond
 * late. */
void amd_keeps_promises(const char *policy, unsigned most)
{
	struct draw any = DRAW(100, .most = most, .low = 100, .high = 1500, .change_permille = 50,
			       .cwsr = true, .sporadic = true);

	none_are_refused(policy, DRAW(100, .most = most, .low = 100, .high = 799,
				      .change_permille = 10, .cwsr = true));
	some_are_refused(policy, any);
	any.gangs = true;
	some_are_refused(policy, any);
}

void overruns_harm_no_other_task(const char *policy)
{
	for (unsigned permille = 1100; permille <= 4000; permille += 100) {
		uint32_t liar;
		struct world w;

		deadline_world_init(&w, 100);
		liar = world_add_service(&w, 100 * MS, 100 * MS, 20 * MS);
		world_add_service(&w, 90 * MS, 90 * MS, 30 * MS);
		world_add_service(&w, 250 * MS, 250 * MS, 60 * MS);
		w.task[liar].kernel_ns = 20 * MS * permille / 1000;
		world_run(&w, policy);
		assert_int_equal(world_refused(&w), 0);
		assert_int_equal(w.missed[1] + w.missed[2], 0);
		assert_true(w.finished[liar] > 0);
		assert_in_range(w.stats[liar].overruns, w.finished[liar], w.finished[liar] + 1);
		assert_int_equal(w.stats[1].overruns + w.stats[2].overruns, 0);
	}
}
