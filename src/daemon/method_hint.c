/* SPDX-License-Identifier: Apache-2.0 */
/* The methods `hint` and `mark`: a program announces GPU work and marks its own requests. */
#include "daemon/control.h"
#include "rpc/params.h"

/* The client as a process with tasks; NULL: it has none (yet), which is not an error. */
static const struct gp_proc *caller(const struct gp_control *c, const struct gp_rpc_call *call)
{
	const struct gp_rpc_peer *peer = gp_rpc_peer(call);

	return peer->start_time ? gp_procs_find(&c->procs, peer->pid, peer->start_time) : NULL;
}

static int command_tasks(struct gp_control *c, struct gp_rpc_call *call, enum gp_command_kind kind,
			 bool begins)
{
	const struct gp_proc *proc = caller(c, call);
	struct json_object *result;

	for (unsigned i = 0; proc && i < proc->ntasks; i++) {
		struct gp_command command = {
			.kind = kind, .key = proc->task[i].key, .begins = begins};

		/* If the ring is full, the device thread is ticking continuously anyway. */
		gp_device_thread_command(c->thread[proc->task[i].device], &command);
	}
	if (gp_rpc_is_notification(call))
		return gp_rpc_reply(call, NULL);
	result = gp_json_begin();
	gp_json_add(result, "tasks", json_object_new_uint64(proc ? proc->ntasks : 0));
	return gp_rpc_reply(call, result);
}

int gp_method_hint(void *arg, struct gp_rpc_call *call, struct json_object *params)
{
	if (gp_params_known(params, NULL, 0, gp_rpc_error(call)))
		return -EINVAL;
	return command_tasks(arg, call, GP_COMMAND_HINT, false);
}

int gp_method_mark(void *arg, struct gp_rpc_call *call, struct json_object *params)
{
	struct gp_error *err = gp_rpc_error(call);
	bool begins = false;

	if (GP_PARAMS_KNOWN(params, err, "begins") ||
	    gp_params_bool(params, "begins", &begins, NULL, err))
		return -EINVAL;
	return command_tasks(arg, call, GP_COMMAND_MARK, begins);
}
