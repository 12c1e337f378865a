/* SPDX-License-Identifier: Apache-2.0 */
/* Ejection of a policy: the record of it, and the switch to `none`. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "engine/engine_state.h"

const char *gp_eject_reason_name(enum gp_eject_reason reason)
{
	switch (reason) {
	case GP_EJECT_NONE: return "none";
	case GP_EJECT_FAILED: return "failed";
	case GP_EJECT_SLOW: return "slow";
	case GP_EJECT_BOUND: return "bound";
	case GP_EJECT_STARVED: return "starved";
	}
	return "unknown";
}

static void keep_record(struct gp_engine *e, uint64_t now_ns, enum gp_eject_reason reason,
			uint64_t task)
{
	struct gp_ejection *x = &e->ejection;

	x->reason = reason;
	x->policy = e->policy.ops;
	x->now_ns = now_ns;
	x->task = task;
	x->view = e->view;
	x->view.task = x->task_view;
	x->view.state = NULL; /* the policy's memory is freed */
	x->ntasks = e->n < GP_EJECT_VIEW_MAX ? e->n : GP_EJECT_VIEW_MAX;
	if (!x->ntasks)
		return;
	memcpy(x->task_view, e->view_task, x->ntasks * sizeof *x->task_view);
	memcpy(x->task_plan, e->plan_task, x->ntasks * sizeof *x->task_plan);
}

/* `none` holds no task and has no state, so loading it cannot fail. The next act releases all tasks
 * and restores the hardware's slices. */
void gp_engine_eject(struct gp_engine *e, uint64_t now_ns, enum gp_eject_reason reason,
		     uint64_t task, const char *format, ...)
{
	struct gp_policy_choice none = {.ops = &gp_policy_none};
	char why[160];
	va_list args;

	va_start(args, format);
	vsnprintf(why, sizeof why, format, args);
	va_end(args);
	keep_record(e, now_ns, reason, task);
	snprintf(e->ejection.text, sizeof e->ejection.text, "policy %s %s", e->policy.ops->name,
		 why);
	e->stats.ejections++;
	gp_log(GP_LOG_WARN, "policy.ejected", "reason=%s task=%llu text=\"%s\"",
	       gp_eject_reason_name(reason), (unsigned long long)task, e->ejection.text);
	gp_engine_load_policy(e, &none);
	gp_engine_emit(e, now_ns, GP_EVENT_EJECTED, task, 0, 0);
}

const struct gp_ejection *gp_engine_ejection(const struct gp_engine *e)
{
	return e->ejection.reason == GP_EJECT_NONE ? NULL : &e->ejection;
}
