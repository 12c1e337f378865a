/* SPDX-License-Identifier: Apache-2.0 */
/* Samples over time, and what they come to. */
#include "amd/target.h"
#include "lib_world.h"

/* Statistics of samples that were made up. */

struct made_up {
	struct gpreempt_queue queue[8][4];
	struct gpreempt_snapshot snapshot[8];
	struct gpreempt_history history;
};

/* A sample of queues "id,id,...": odd ones on device 1, from 100 on they copy. */
static void add_sample(struct made_up *m, unsigned n, const uint32_t *id)
{
	unsigned at = m->history.n++;

	m->history.snapshot = m->snapshot;
	m->snapshot[at] =
		(struct gpreempt_snapshot){.time_ns = 1000 + at, .n = n, .queue = m->queue[at]};
	for (unsigned i = 0; i < n; i++) {
		struct gpreempt_queue *q = &m->queue[at][i];

		*q = (struct gpreempt_queue){.id = id[i], .device = id[i] & 1, .held = at == 2};
		snprintf(q->type, sizeof q->type, "%s", id[i] >= 100 ? "copy" : "compute");
	}
}

#define SAMPLE(m, ...) \
	add_sample(m, sizeof(uint32_t[]){__VA_ARGS__} / sizeof(uint32_t), (uint32_t[]){__VA_ARGS__})

static void assert_count(const struct gpreempt_count *c, unsigned min, unsigned max, unsigned came,
			 unsigned went, double average)
{
	assert_int_equal(c->min, min);
	assert_int_equal(c->max, max);
	assert_int_equal(c->came, came);
	assert_int_equal(c->went, went);
	assert_true(c->average > average - 1e-9 && c->average < average + 1e-9);
}

TEST(statistics_are_right)
{
	struct made_up m = {0};
	struct gpreempt_statistics *s;

	SAMPLE(&m, 2, 4, 1);
	SAMPLE(&m, 2, 4, 1);
	SAMPLE(&m, 1, 2, 100, 4);
	SAMPLE(&m, 4);
	add_sample(&m, 0, NULL);
	SAMPLE(&m, 4);
	assert_int_equal(gpreempt_analyse(&m.history, &s), 0);
	assert_int_equal(s->samples, 6);
	assert_false(s->stable);
	assert_false(s->ended);
	assert_count(&s->all, 0, 4, 2, 4, 12.0 / 6);
	assert_int_equal(s->nseries, 3);
	assert_int_equal(s->series[0].device, 0);
	assert_string_equal(s->series[0].type, "compute");
	assert_count(&s->series[0].count, 0, 2, 1, 2, 8.0 / 6);
	assert_int_equal(s->series[1].device, 1);
	assert_count(&s->series[1].count, 0, 1, 0, 1, 3.0 / 6);
	assert_string_equal(s->series[2].type, "copy");
	assert_count(&s->series[2].count, 0, 1, 1, 1, 1.0 / 6);
	assert_int_equal(s->nsightings, 4);
	assert_int_equal(s->sighting[1].id, 4);
	assert_int_equal(s->sighting[1].samples, 5);
	assert_int_equal(s->sighting[1].held, 1);
	assert_int_equal(s->sighting[1].first_ns, 1000);
	assert_int_equal(s->sighting[1].last_ns, 1005);
	assert_int_equal(s->sighting[0].samples, 3);
	gpreempt_statistics_free(s);
}

TEST(an_id_that_is_used_again_is_another_queue)
{
	struct made_up m = {0};
	struct gpreempt_statistics *s;

	SAMPLE(&m, 2, 4);
	SAMPLE(&m, 2, 4);
	m.queue[1][0].object = 7;
	assert_int_equal(gpreempt_analyse(&m.history, &s), 0);
	assert_count(&s->all, 2, 2, 1, 1, 2);
	assert_int_equal(s->nsightings, 3);
	gpreempt_statistics_free(s);
	/* The same in another order is the same. */
	m.queue[1][0] = m.queue[0][1];
	m.queue[1][1] = m.queue[0][0];
	assert_int_equal(gpreempt_analyse(&m.history, &s), 0);
	assert_true(s->stable);
	gpreempt_statistics_free(s);
}

TEST(no_sample_has_no_statistics)
{
	struct gpreempt_history none = {0};
	struct gpreempt_statistics *s;

	assert_int_equal(gpreempt_analyse(&none, &s), -ENODATA);
	assert_null(s);
	assert_int_equal(gpreempt_analyse(NULL, &s), -EINVAL);
	gpreempt_statistics_free(NULL);
	gpreempt_history_free(&none);
	gpreempt_history_free(NULL);
	gpreempt_snapshot_free(NULL);
}

LIB_TEST(a_steady_process_is_stable)
{
	struct lw_load *load = lw_load(w, "3");
	struct gpreempt *g = lw_open(load->pid);
	struct gpreempt_history history;
	struct gpreempt_statistics *s;
	int samples = gpreempt_monitor(g, 300, 20, NULL, NULL, &history);

	assert_in_range(samples, 1, 16);
	assert_int_equal(history.n, samples);
	for (unsigned i = 1; i < history.n; i++)
		assert_true(history.snapshot[i].time_ns > history.snapshot[i - 1].time_ns);
	assert_int_equal(gpreempt_analyse(&history, &s), 0);
	assert_true(s->stable);
	assert_int_equal(s->all.min, s->all.max);
	assert_true(s->all.min >= 3);
	for (unsigned i = 0; i < s->nsightings; i++)
		assert_int_equal(s->sighting[i].samples, samples);
	gpreempt_statistics_free(s);
	gpreempt_history_free(&history);
}

/* A program that creates and destroys queues on command, and the number of samples. */
struct changing {
	struct target target;
	unsigned samples;
};

static void start_changing(struct changing *c)
{
	target_start(&c->target);
	target_become_rocm(&c->target, 2);
}

/* One more after the first sample, one less after the second. */
static int change_queues(void *arg, const struct gpreempt_snapshot *now)
{
	struct changing *c = arg;

	(void)now;
	switch (++c->samples) {
	case 1: target_do(&c->target, "queue aql"); break;
	case 2: target_do(&c->target, "destroy 0"); break;
	case 4: return 1;
	default: break;
	}
	return 0;
}

LIB_TEST_ON(changing_queues_are_counted, amd)
{
	struct changing c = {0};
	struct gpreempt_history history;
	struct gpreempt_statistics *s;
	struct gpreempt *g;

	start_changing(&c);
	g = lw_open(c.target.pid);
	LW_CALL(g, gpreempt_monitor(g, 60000, 1, change_queues, &c, &history), 4);
	assert_int_equal(gpreempt_analyse(&history, &s), 0);
	assert_false(s->stable);
	assert_count(&s->all, 2, 3, 1, 1, 9.0 / 4);
	assert_int_equal(s->nseries, 1);
	assert_string_equal(s->series[0].type, "aql");
	assert_count(&s->series[0].count, 2, 3, 1, 1, 9.0 / 4);
	assert_int_equal(s->nsightings, 3);
	for (unsigned i = 0; i < 3; i++) /* the first was destroyed, the last came later */
		assert_int_equal(s->sighting[i].samples, s->sighting[i].id == 0   ? 2
							 : s->sighting[i].id == 1 ? 4
										  : 3);
	gpreempt_statistics_free(s);
	gpreempt_history_free(&history);
	lw_close(g);
	target_kill(&c.target);
}

static int make_it_again(void *arg, const struct gpreempt_snapshot *now)
{
	struct changing *c = arg;

	assert_int_equal(now->n, 2);
	if (++c->samples == 2) { /* with the same id, and its memory is where it was */
		target_do(&c->target, "destroy 1");
		target_do(&c->target, "queue aql");
	}
	return c->samples == 4;
}

static void check_made_again(struct changing *c, unsigned flags)
{
	struct gpreempt *g = lw_open_with(c->target.pid, flags);
	struct gpreempt_history history;
	struct gpreempt_statistics *s;

	c->samples = 0;
	LW_CALL(g, gpreempt_monitor(g, 60000, 1, make_it_again, c, &history), 4);
	assert_int_equal(gpreempt_analyse(&history, &s), 0);
	assert_false(s->stable);
	assert_count(&s->all, 2, 2, 1, 1, 2);
	assert_int_equal(s->nsightings, 3);
	for (unsigned i = 0; i < 2; i++) { /* a ring that has moved would tell, too */
		assert_int_equal(history.snapshot[1].queue[i].ring_address,
				 history.snapshot[2].queue[i].ring_address);
		assert_true(history.snapshot[0].queue[i].serial);
	}
	gpreempt_statistics_free(s);
	gpreempt_history_free(&history);
	lw_close(g);
}

LIB_TEST_ON(a_queue_that_was_made_again_is_another, amd)
{
	struct changing c = {0};

	start_changing(&c);
	check_made_again(&c, 0);
	check_made_again(&c, GPREEMPT_FROM_AFAR);
	target_kill(&c.target);
}

/* Until it has created this number. */
struct creations {
	struct lib_world *w;
	uint64_t enough;
};

static int until_created(void *arg, const struct gpreempt_snapshot *now)
{
	struct creations *c = arg;

	(void)now;
	return kfd_emu_count(&c->w->amd, "create_queue") >= c->enough;
}

/* kfd-load destroys one queue after the other, and makes it again at once: few samples show it. */
LIB_TEST_ON(a_monitor_does_not_disturb_changes, amd)
{
	struct lw_load *load = lw_load_with(w, "--queues", "3", "--churn", "5");
	struct gpreempt *g = lw_open(load->pid);
	/* Many: a look comes just after a queue was destroyed rather often, for it wakes us. */
	struct creations c = {w, kfd_emu_count(&w->amd, "create_queue") + 30};
	struct gpreempt_history history;
	struct gpreempt_statistics *s;

	assert_true(gpreempt_monitor(g, 60000, 2, until_created, &c, &history) > 0);
	assert_true(kfd_emu_count(&w->amd, "create_queue") >= c.enough);
	assert_int_equal(gpreempt_analyse(&history, &s), 0);
	assert_true(s->all.min >= 2);
	assert_int_equal(s->all.max, 3);
	/* What came and did not go is still there. */
	assert_int_equal(history.snapshot[0].n + s->all.came - s->all.went,
			 history.snapshot[history.n - 1].n);
	gpreempt_statistics_free(s);
	gpreempt_history_free(&history);
}

static int until_five(void *arg, const struct gpreempt_snapshot *now)
{
	(void)arg;
	for (unsigned i = 0, computing = 0; i < now->n; i++) {
		computing += !now->queue[i].copies;
		if (computing == 5)
			return 1;
	}
	return 0;
}

/* False: it had come before the first sample. */
static bool sees_one_come(struct lib_world *w, const char *after_ms)
{
	struct lw_load *load = lw_load_with(w, "--contexts", "4", "--grow", after_ms);
	struct gpreempt *g = lw_open(load->pid);
	struct gpreempt_history history;
	struct gpreempt_statistics *s;
	int samples = gpreempt_monitor(g, 60000, 5, until_five, NULL, &history);

	assert_true(samples > 0);
	assert_int_equal(gpreempt_analyse(&history, &s), 0);
	if (samples > 1) {
		assert_false(s->stable);
		assert_string_equal(s->series[0].type, "compute");
		assert_count(&s->series[0].count, 4, 5, 1, 0, 4 + 1.0 / s->samples);
	}
	gpreempt_statistics_free(s);
	gpreempt_history_free(&history);
	lw_close(g);
	LW_ENDS_RIGHT(w, load);
	return samples > 1;
}

LIB_TEST_ON(a_queue_that_came_is_counted, nvidia)
{
	assert_true(sees_one_come(w, "1000") || sees_one_come(w, "5000") ||
		    sees_one_come(w, "20000"));
}

struct killing {
	struct lib_world *w;
	struct lw_load *load;
	struct gpreempt *g;
	unsigned samples;
};

static int kill_at_the_third(void *arg, const struct gpreempt_snapshot *now)
{
	struct killing *k = arg;

	assert_true(now->n > 0);
	if (++k->samples == 3)
		lw_kill_load(k->w, k->load);
	return 0;
}

LIB_TEST(the_end_of_the_process_ends_it)
{
	struct killing k = {.w = w, .load = lw_load(w, "1")};
	struct gpreempt *g = lw_open(k.load->pid);
	struct gpreempt_history history;

	LW_CALL(g, gpreempt_monitor(g, 30000, 5, kill_at_the_third, &k, &history), 3);
	assert_true(history.ended);
	assert_string_equal(gpreempt_why(g), "");
	gpreempt_history_free(&history);
	LW_CALL(g, gpreempt_monitor(g, 10, 5, NULL, NULL, &history), -ESRCH);
	assert_int_equal(history.n, 0);
	assert_true(*gpreempt_why(g));
	LW_CALL(g, gpreempt_monitor(g, 10, 0, NULL, NULL, NULL), -EINVAL);
}

/* The first sample holds, the second sees it. */
static int hold_at_once(void *arg, const struct gpreempt_snapshot *now)
{
	struct killing *k = arg;

	if (!k->samples++) {
		assert_int_equal(gpreempt_suspend_queues(k->g, NULL, 0), 2);
		return 0;
	}
	for (unsigned i = 0; i < now->n; i++)
		assert_true(now->queue[i].held || now->queue[i].copies);
	return 1;
}

LIB_TEST(samples_may_lead_to_a_hold)
{
	struct killing k = {.w = w, .load = lw_load(w, "2")};

	k.g = lw_open(k.load->pid);
	LW_CALL(k.g, gpreempt_monitor(k.g, 30000, 5, hold_at_once, &k, NULL), 2);
	assert_int_equal(lw_held(w, k.load->pid), 2);
	lw_close(k.g);
}
