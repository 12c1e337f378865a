/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RUNTIME_ENABLE: a ROCm program says that its runtime is there, or goes. A debugged one waits
 * until its debugger has answered.
 */
#include "kfd.h"

static bool is_answered(const void *arg)
{
	const struct process *p = arg;

	return p->runtime_sema || p->dead;
}

/* As a semaphore: the next wait takes an answer that came earlier. */
static int wait_for_debugger(struct call *call, struct process *p)
{
	int result;

	process_unlock(p);
	result = call_wait(call, is_answered, p);
	if (!result && p->runtime_sema)
		p->runtime_sema--;
	process_lock(p);
	p->runtime_retry = result != 0;
	return result;
}

static int enable(struct call *call, struct process *p, const struct kfd_runtime_enable *args)
{
	if (!p->runtime_retry) {
		if (p->runtime.runtime_state != KFD_RUNTIME_DISABLED)
			return -EBUSY;
		if (p->nqueues)
			return -EEXIST;
		p->runtime.runtime_state = KFD_RUNTIME_ENABLED;
		p->runtime.r_debug = args->r_debug;
		p->runtime.ttmp_setup = !!(args->mode_mask & KFD_RUNTIME_ENABLE_MODE_TTMP_SAVE);
	}
	if (!p->debugged)
		return 0;
	if (!p->runtime_retry) {
		session_activate(p);
		event_raise(p, KFD_EC_PROCESS_RUNTIME, NULL, NULL);
	}
	return wait_for_debugger(call, p);
}

static int disable(struct call *call, struct process *p)
{
	bool was_enabled = p->runtime.runtime_state == KFD_RUNTIME_ENABLED;

	p->runtime.runtime_state = KFD_RUNTIME_DISABLED;
	p->runtime.r_debug = 0;
	if (p->debugged) {
		int result;

		if (was_enabled)
			session_deactivate(p);
		if (!p->runtime_retry)
			event_raise(p, KFD_EC_PROCESS_RUNTIME, NULL, NULL);
		result = wait_for_debugger(call, p);
		if (result)
			return result;
	}
	p->runtime.ttmp_setup = 0;
	session_refresh(p);
	return 0;
}

int runtime_enable(struct call *call, void *data)
{
	const struct kfd_runtime_enable *args = data;
	struct process *p = call->process;
	int result;

	process_lock(p);
	if (args->mode_mask & KFD_RUNTIME_ENABLE_MODE_ENABLE)
		result = enable(call, p, args);
	else
		result = disable(call, p);
	process_unlock(p);
	return result;
}
