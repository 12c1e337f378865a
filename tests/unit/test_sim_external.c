/* SPDX-License-Identifier: Apache-2.0 */
/* External programs on a simulated device: they join, submit, are held, and leave. */
#include "support/test.h"

#include "base/clock.h"
#include "sim/model/sim_gpu.h"

#define US     GP_NS_PER_US
#define MS     GP_NS_PER_MS
#define PLACES 70 /* more than fit into one word of bits */

struct world {
	struct gp_sim *sim;
	uint64_t done[PLACES];
	uint64_t wrong;
	struct gp_sim_done last;
	uint64_t right;
};

static void count_done(void *arg, const struct gp_sim_event *event)
{
	struct world *w = arg;

	if (event->what != GP_SIM_REQUEST)
		return;
	w->last = *gp_sim_done(w->sim, event->task);
	w->wrong += w->last.value != w->right;
	w->done[event->task]++;
}

static struct world make(const struct gp_sim_device *device)
{
	struct gp_sim_task task[PLACES] = {{.load = GP_LOAD_EXTERNAL}};
	struct gp_sim_config config = {
		.device = *device, .task = task, .ntasks = PLACES, .seed = 7};
	struct world w = {0};

	for (unsigned i = 0; i < PLACES; i++)
		task[i].load = GP_LOAD_EXTERNAL;
	config.device.activity = GP_ACTIVITY_EVENTS;
	assert_int_equal(gp_sim_new(&config, &w.sim), 0);
	return w;
}

static void advance(struct world *w, uint64_t to_ns)
{
	bool rescan;

	while (gp_sim_advance(w->sim, to_ns) < to_ns)
		gp_sim_take_signal(w->sim, &rescan);
	gp_sim_take_signal(w->sim, &rescan);
}

static uint32_t join(struct world *w)
{
	struct gp_sim_program program = {.name = "program"};
	uint32_t task;

	assert_int_equal(gp_sim_join(w->sim, &program, &task), 0);
	return task;
}

static int submit(struct world *w, uint32_t task, uint64_t tag, uint64_t kernel_ns)
{
	struct gp_sim_request request = {.tag = tag, .kernels = 3, .kernel_ns = kernel_ns};

	w->right = gp_sim_right_value(3, kernel_ns);
	return gp_sim_submit(w->sim, task, &request);
}

static struct gp_observation observe(struct world *w, uint32_t task)
{
	struct gp_observation o = {.handle = task};

	assert_int_equal(gp_gpu_observe(gp_sim_gpu(w->sim), 0, &o, 1), 0);
	return o;
}

static void hold(struct world *w, uint32_t task, bool hold)
{
	struct gp_action a = {.handle = task};
	struct gp_gpu *gpu = gp_sim_gpu(w->sim);

	assert_int_equal(hold ? gp_gpu_hold(gpu, 0, &a, 1) : gp_gpu_release(gpu, 0, &a, 1), 0);
	assert_int_equal(a.status, -EINPROGRESS);
}

TEST(a_request_is_done_in_its_time)
{
	struct world w = make(&gp_sim_h200);
	uint32_t task = join(&w);

	gp_sim_set_watch(w.sim, count_done, &w);
	advance(&w, 5 * MS);
	assert_int_equal(submit(&w, task, 4711, 100 * US), 0);
	advance(&w, 20 * MS);
	assert_int_equal(w.done[task], 1);
	assert_int_equal(w.last.tag, 4711);
	assert_true(gp_sim_runs_until_ns(w.sim) == GP_NEVER);
	assert_int_equal(w.last.submitted_ns, 5 * MS);
	/* A launch, a switch from the idle context, and three kernels. */
	assert_in_range(w.last.done_ns, 5 * MS + 300 * US + gp_sim_h200.launch_ns,
			5 * MS + 300 * US + 600 * US);
	assert_int_equal(w.wrong, 0);
	assert_false(observe(&w, task).active);
	gp_sim_free(w.sim);
}

TEST(requests_are_queued_and_not_more_than_fit)
{
	struct world w = make(&gp_sim_h200);
	uint32_t task = join(&w);

	gp_sim_set_watch(w.sim, count_done, &w);
	for (uint64_t i = 0; i < GP_SIM_REQUESTS; i++)
		assert_int_equal(submit(&w, task, i, 1 * MS), 0);
	assert_int_equal(submit(&w, task, 99, 1 * MS), -EAGAIN);
	assert_int_equal(submit(&w, task, 99, 0), -EINVAL);
	w.right = gp_sim_right_value(3, 1 * MS);
	advance(&w, 1 * MS);
	assert_int_equal(observe(&w, task).pending, GP_SIM_REQUESTS);
	/* Launched while others ran: no time between them. */
	advance(&w, 3ull * GP_SIM_REQUESTS * MS + 500 * US);
	assert_int_equal(w.done[task], GP_SIM_REQUESTS);
	assert_int_equal(w.wrong, 0);
	gp_sim_free(w.sim);
}

TEST(held_work_waits_and_is_neither_lost_nor_done_twice)
{
	static const struct gp_sim_device *const devices[] = {&gp_sim_h200, &gp_sim_mi300x};

	for (unsigned i = 0; i < 2; i++) {
		struct world w = make(devices[i]);
		uint32_t task = join(&w), other = join(&w);

		gp_sim_set_watch(w.sim, count_done, &w);
		assert_int_equal(submit(&w, task, 1, 10 * MS), 0);
		assert_int_equal(submit(&w, other, 1, 10 * MS), 0);
		for (uint64_t at_ns = 5 * MS; at_ns < 50 * MS; at_ns += 10 * MS) {
			advance(&w, at_ns);
			hold(&w, task, true);
			advance(&w, at_ns + 5 * MS);
			assert_true(observe(&w, task).held);
			hold(&w, task, false);
		}
		advance(&w, 300 * MS);
		assert_int_equal(w.done[task], 1);
		assert_int_equal(w.done[other], 1);
		assert_int_equal(w.wrong, 0);
		gp_sim_free(w.sim);
	}
}

TEST(a_program_that_leaves_takes_its_work_and_its_hold_along)
{
	struct world w = make(&gp_sim_h200);
	uint32_t task = join(&w), again;
	uint32_t seen = 0, changed;

	gp_sim_set_watch(w.sim, count_done, &w);
	assert_int_equal(submit(&w, task, 1, 1 * MS), 0);
	advance(&w, 1 * MS);
	hold(&w, task, true);
	gp_sim_leave(w.sim, task);
	/* A control call for it is pending: its slot is not given to another. */
	assert_int_not_equal(join(&w), task);
	advance(&w, 10 * MS);
	again = join(&w);
	assert_int_equal(again, task);
	while (gp_sim_take_changed(w.sim, &changed))
		seen |= changed == task;
	assert_true(seen);
	assert_false(observe(&w, again).held);
	assert_false(observe(&w, again).active);
	assert_int_equal(observe(&w, again).run_ns, 0);
	assert_int_equal(w.done[task], 0);
	assert_int_equal(submit(&w, again, 2, 1 * MS), 0);
	advance(&w, 30 * MS);
	assert_int_equal(w.done[task], 1);
	assert_int_equal(w.last.tag, 2);
	gp_sim_free(w.sim);
}

/* It does not inherit the loaded context of the program before it, nor saved waves. */
TEST(a_new_program_inherits_nothing_from_the_one_before)
{
	static const struct gp_sim_device *const devices[] = {&gp_sim_h200, &gp_sim_mi300x};

	for (unsigned i = 0; i < 2; i++) {
		struct gp_sim_device device = *devices[i];
		struct world w;
		uint32_t task;

		device.launch_jitter_ns = 0;
		w = make(&device);
		task = join(&w);
		gp_sim_set_watch(w.sim, count_done, &w);
		assert_int_equal(submit(&w, task, 1, 100 * MS), 0);
		advance(&w, 10 * MS);
		hold(&w, task, true);
		advance(&w, 20 * MS);
		gp_sim_leave(w.sim, task);
		advance(&w, 30 * MS);
		assert_int_equal(join(&w), task);
		assert_int_equal(submit(&w, task, 2, 100 * US), 0);
		advance(&w, 40 * MS);
		assert_int_equal(w.done[task], 1);
		assert_int_equal(w.last.done_ns - w.last.submitted_ns,
				 device.launch_ns + device.switch_idle_ns + 300 * US);
		gp_sim_free(w.sim);
	}
}

TEST(places_run_out)
{
	struct world w = make(&gp_sim_h200);
	struct gp_sim_program program = {.name = "one too many"};
	uint32_t task;

	for (unsigned i = 0; i < PLACES; i++)
		assert_int_equal(join(&w), i);
	assert_int_equal(gp_sim_join(w.sim, &program, &task), -ENOSPC);
	gp_sim_leave(w.sim, 66);
	assert_int_equal(join(&w), 66);
	program.width_permille = 1001;
	assert_int_equal(gp_sim_join(w.sim, &program, &task), -EINVAL);
	gp_sim_free(w.sim);
}

TEST(the_value_shows_lost_and_doubled_work)
{
	uint64_t right = gp_sim_right_value(2, 1 * MS);

	assert_true(right != gp_sim_right_value(1, 1 * MS));
	assert_true(right != gp_sim_right_value(3, 1 * MS));
	assert_true(right != gp_sim_right_value(2, 1 * MS - 1));
	assert_true(right != gp_sim_right_value(2, 2 * MS));
	assert_true(right == gp_sim_right_value(2, 1 * MS));
}
