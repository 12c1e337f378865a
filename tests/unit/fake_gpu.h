/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A scripted back end, a scripted policy and an engine between them, for the engine's tests.
 *
 * The back end has the true state of each task, which the test sets and reads, and reports a part
 * of it. One worker executes actions in their order; `fault` says for each kind how they fail.
 * Every requested action is recorded in `asked`.
 *
 * The scripted policy wants what `script` says for each task id.
 */
#ifndef TESTS_UNIT_FAKE_GPU_H
#define TESTS_UNIT_FAKE_GPU_H

#include "support/test.h"

#include "base/log.h"
#include "base/rng.h"
#include "engine/engine.h"

#define MS GP_NS_PER_MS
#define S  GP_NS_PER_S

/* The back end. */

enum fake_kind { FAKE_SLICE, FAKE_HOLD, FAKE_RELEASE, FAKE_KINDS };

struct fake_fault {
	int whole;         /* -errno of the whole call */
	int status;        /* -errno of every action */
	bool asks_to_wait; /* says -EINPROGRESS; otherwise 0 */
	bool lost;         /* whatever it says, nothing happens */
	bool observed;     /* says GP_OBSERVED, not only GP_ACCEPTED */
	uint64_t delay_ns; /* how long the worker takes */
};

struct fake_task {
	struct gp_seen seen;
	bool present, attached;
	bool refuses_attach;
	bool best_effort;
	struct gp_observation is; /* the truth; `known` is what is told of it */
};

struct fake_act {
	enum fake_kind kind;
	unsigned call; /* actions of one call have the same number */
	uint32_t handle;
	uint32_t slice_us;
	uint64_t now_ns;
};

struct fake_work {
	enum fake_kind kind;
	uint32_t handle;
	uint32_t slice_us;
	uint64_t due_ns;
	bool lost;
	bool tells; /* was answered with -EINPROGRESS */
};

#define FAKE_WORK_MAX 4096

struct fake_gpu {
	struct gp_gpu base;
	struct fake_task *task;
	unsigned n; /* all that ever were; the handle is the index */

	struct fake_fault fault[FAKE_KINDS];
	/* Chooses another fault for one action, instead of the table. */
	void (*choose)(struct fake_gpu *g, enum fake_kind kind, struct fake_fault *fault);
	struct gp_rng *rng; /* for `choose` */
	int observe_fails, scan_fails, undo_fails;
	bool sees_nothing; /* observe succeeds and knows nothing */

	struct fake_act *asked;
	unsigned nasked, asked_capacity, calls;
	unsigned scans, undo_records, observes;

	struct fake_work work[FAKE_WORK_MAX];
	unsigned first_work, nwork;
	uint64_t work_done_ns; /* when the worker has done all it was given */

	bool two_tiny; /* two best-effort tasks were released with a tiny slice, at any time */
	unsigned most_held;
};

/* Makes room for n recorded actions. */
void fake_reserve(struct fake_gpu *g, unsigned n);
int fake_act(struct gp_gpu *gpu, uint64_t now_ns, enum gp_act_kind act, struct gp_action *a,
	     unsigned n);

/* How often one kind was asked of one task, from the `from`th action on. */
unsigned fake_count(const struct fake_gpu *g, enum fake_kind kind, uint32_t handle, unsigned from);

/* The policy. */

#define SCRIPT_MAX 65

struct script {
	struct gp_task_plan want[SCRIPT_MAX]; /* by task id; unmanaged ones only if `rude` */
	struct gp_task_plan others;           /* larger ids */
	bool rude;
	uint64_t next_ns; /* 0: no wish */
	int result;
	struct gp_virtual_clock *clock; /* each decision advances it by takes_ns */
	uint64_t takes_ns;              /* how long a decision takes */
	unsigned asked;
};

extern struct script script;
int script_decide(const struct gp_view *view, struct gp_plan *plan);

extern const struct gp_policy_ops scripted;

/* As above, and its plans depend on activity. */
extern const struct gp_policy_ops watching;
void want(uint64_t id, enum gp_want what, uint32_t slice_us);

/* Plans for WANT and RIG_START. */
#define HOLD                    \
	{                       \
		.want = GP_HOLD \
	}
#define LEAVE                    \
	{                        \
		.want = GP_LEAVE \
	}
#define RUN(slice)                                  \
	{                                           \
		.want = GP_RUN, .slice_us = (slice) \
	}
#define PLANS(...)                                  \
	(const struct gp_task_plan[]){__VA_ARGS__}, \
		sizeof((struct gp_task_plan[]){__VA_ARGS__}) / sizeof(struct gp_task_plan)

/* Sets the plans of the tasks 1, 2, 3 ... */
#define WANT(...) want_each(PLANS(__VA_ARGS__))
void want_each(const struct gp_task_plan *plan, size_t n);

/* The engine between the two. */

struct rig {
	struct fake_gpu gpu;
	struct gp_engine_config config;
	struct gp_engine *engine;
	struct gp_task_attr *attr; /* by key */
	uint64_t now_ns;
	struct gp_virtual_clock decide_clock;

	unsigned events[GP_EVENT_ADMITTED + 1]; /* by kind */
	struct gp_event last[GP_EVENT_ADMITTED + 1];
};

#define FAKE_CAPS (GP_CAP_HOLD | GP_CAP_SLICE | GP_CAP_ACTIVITY)

#define RIG_TASKS 1500 /* the most tasks of one test */

/* A device that can hold and slice, reports everything, and acts at once. */
struct rig *rig_new(void);
void rig_free(struct rig *r); /* checks that all tasks are detached */

/* A test case with a new rig, `r`, to which `set_up` can add tasks. */
int rig_set_up(void **state);
int rig_tear_down(void **state);
#define RIG_TEST_WITH(function, set_up)            \
	static void function##_on(struct rig *r);  \
	TEST_WITH(function, set_up, rig_tear_down) \
	{                                          \
		function##_on(*state);             \
	}                                          \
	static void function##_on(struct rig *r)
#define RIG_TEST(function) RIG_TEST_WITH(function, rig_set_up)

/* Another task on the device, busy and on the hardware; returns its handle. Its key is one more. */
uint32_t rig_add(struct rig *r, enum gp_class class);
void rig_add_many(struct rig *r, unsigned n); /* best-effort */

static inline void rig_make(struct rig *r)
{
	assert_int_equal(gp_engine_new(&r->config, &r->engine), 0);
}

void rig_set_policy(struct rig *r, const struct gp_policy_ops *ops);
uint64_t rig_step(struct rig *r);

/* An engine with that policy that has seen all tasks there are. */
void rig_start(struct rig *r, const struct gp_policy_ops *ops);

/* The same with a new best-effort task for each plan. */
#define RIG_START(r, ops, ...) rig_start_with(r, ops, PLANS(__VA_ARGS__))
void rig_start_with(struct rig *r, const struct gp_policy_ops *ops, const struct gp_task_plan *plan,
		    size_t n);

/* As the daemon drives it: a tick whenever one is due. */
void rig_run(struct rig *r, uint64_t for_ns);

/* One tick after that time. */
void rig_tick(struct rig *r, uint64_t after_ns);

static inline struct gp_observation *rig_is(struct rig *r, uint32_t handle)
{
	return &r->gpu.task[handle].is;
}

static inline const struct gp_engine_stats *rig_stats(const struct rig *r)
{
	return gp_engine_stats(r->engine);
}

struct gp_task_stats rig_task(const struct rig *r, unsigned index);

#endif
