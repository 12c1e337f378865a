/* SPDX-License-Identifier: Apache-2.0 */
/* The rules that every plan must keep. Linear in the number of tasks. */
#include <stdarg.h>
#include <stdio.h>

#include "engine/engine_state.h"

struct verdict {
	char *text;
	unsigned size;
	uint64_t *task;
};

__attribute__((format(printf, 3, 4))) static int broken(const struct verdict *v, uint64_t task,
							const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(v->text, v->size, format, args);
	va_end(args);
	*v->task = task;
	return -EINVAL;
}

static int check_slice(const struct gp_view *view, const struct gp_task_view *t, uint32_t slice_us,
		       const struct verdict *v)
{
	if (!slice_us)
		return 0;
	if (!(view->caps & GP_CAP_SLICE))
		return broken(v, t->id, "sets a slice on a device without settable slices");
	if (slice_us < view->slice_min_us || slice_us > view->slice_max_us)
		return broken(v, t->id, "sets a slice of %u us, outside %u to %u", slice_us,
			      view->slice_min_us, view->slice_max_us);
	return 0;
}

static int check_task(const struct gp_view *view, const struct gp_plan *plan, uint32_t i,
		      const struct verdict *v)
{
	const struct gp_task_view *t = &view->task[i];
	const struct gp_task_plan *p = &plan->task[i];

	if (p->want > GP_HOLD)
		return broken(v, t->id, "wants %u, which is neither run, hold nor leave", p->want);
	if (t->class == GP_UNMANAGED && (p->want != GP_LEAVE || p->slice_us))
		return broken(v, t->id, "changes an unmanaged task");
	if (p->want == GP_HOLD && !(view->caps & GP_CAP_HOLD))
		return broken(v, t->id, "holds a task on a device that cannot hold");
	if (p->want != plan->task[t->gang].want)
		return broken(v, t->id, "treats the tasks of one gang differently");
	return check_slice(view, t, p->slice_us, v);
}

int gp_plan_check(const struct gp_view *view, const struct gp_plan *plan, char *text, unsigned size,
		  uint64_t *task)
{
	const struct verdict v = {text, size, task};
	uint32_t held = 0, by_user = 0, tiny = 0;

	*task = 0;
	if (plan->next_ns <= view->now_ns)
		return broken(&v, 0, "asks for its next tick in the past");
	for (uint32_t i = 0; i < view->n; i++) {
		const struct gp_task_view *t = &view->task[i];
		const struct gp_task_plan *p = &plan->task[i];
		bool user = t->held_by & GP_HELD_BY_USER;
		int r = check_task(view, plan, i, &v);

		if (r)
			return r;
		by_user += user;
		held += !user && p->want == GP_HOLD;
		tiny += !user && p->want == GP_RUN && t->class == GP_BEST_EFFORT &&
			p->slice_us >= 1 && p->slice_us <= GP_TINY_SLICE_US;
		if (tiny > 1)
			return broken(&v, t->id,
				      "lets two best-effort tasks run with a tiny slice");
	}
	if (held && held + by_user > view->max_held)
		return broken(&v, 0, "holds %u tasks beside %u held by users; the device holds %u",
			      held, by_user, view->max_held);
	return 0;
}
