/* SPDX-License-Identifier: Apache-2.0 */
/* The options of gpreempt suspend and the choice of its tasks. Private to suspend.c and
 * suspend_targets.c. */
#ifndef GP_CLI_VERB_SUSPEND_H
#define GP_CLI_VERB_SUSPEND_H

#include "cli/lib/targets.h"
#include "hold/devices.h"

struct gp_suspend {
	struct gp_targets targets;
	bool json, force, one_queue;
	bool no_daemon;
	const char *type; /* preemption type; NULL = the device's default */
	unsigned grace;   /* in 1,000 GPU clocks; 0 = not given */
	unsigned device;  /* GP_DEVICES_MAX = all */
	uint32_t queue;
	uint64_t for_ns;
};

struct gp_task_refs {
	struct gp_task_ref *ref;
	unsigned n;
};

/* The tasks to hold, each once. The caller frees list->ref, also after a failure. */
int gp_suspend_choose(const struct gp_suspend *what, const struct gp_devices *devices,
		      struct gp_task_refs *list, struct gp_error *err);

#endif
