/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of methods. A new method is a function in method_NAME.c and a line here. */
#include "base/log.h"
#include "base/process.h"
#include "daemon/control.h"
#include "rpc/server/target_process.h"

const struct gp_rpc_method gp_control_methods[] = {
	{"devices", gp_method_devices, 0},
	{"tasks", gp_method_tasks, 0},
	{"stats", gp_method_stats, 0},
	{"set", gp_method_set, 0},
	{"hold", gp_method_hold, 0},
	{"release", gp_method_release, 0},
	{"release_all", gp_method_release_all, 0},
	{"policy", gp_method_policy, 0},
	{"reload", gp_method_reload, 0},
	{"subscribe", gp_method_subscribe, 0},
	{"hint", gp_method_hint, GP_RPC_MAY_NOTIFY},
	{"mark", gp_method_mark, GP_RPC_MAY_NOTIFY},
};
const unsigned gp_control_nmethods = sizeof gp_control_methods / sizeof gp_control_methods[0];

/*
 * Methods of the hint socket, which may be mounted into containers: they concern only the client
 * itself.
 */
const struct gp_rpc_method gp_hint_methods[] = {
	{"hint", gp_method_hint, GP_RPC_MAY_NOTIFY},
	{"mark", gp_method_mark, GP_RPC_MAY_NOTIFY},
};
const unsigned gp_hint_nmethods = sizeof gp_hint_methods / sizeof gp_hint_methods[0];

struct gp_proc *gp_method_target(struct gp_control *c, struct gp_rpc_call *call,
				 struct json_object *params)
{
	struct gp_error *err = gp_rpc_error(call);
	struct gp_target target;
	struct gp_proc *proc;
	int r = gp_target_param(call, params, &target, err);

	if (r) {
		gp_rpc_fail(call, 0, r, "%s", err->text);
		return NULL;
	}
	proc = gp_procs_get(&c->procs, target.pid, target.start_time);
	if (!proc)
		gp_rpc_fail(call, 0, -ENOMEM, "the daemon has no memory left");
	return proc;
}

bool gp_method_may_log(struct gp_control *c, const struct gp_rpc_call *call)
{
	uid_t by = gp_rpc_peer(call)->uid;
	unsigned left_out;

	if (!gp_log_limit_pass(&c->call_log, gp_account_of(&c->accounts, by), gp_monotonic_ns(),
			       &left_out))
		return false;
	if (left_out)
		gp_log(GP_LOG_WARN, "process.log-limited",
		       "by=%u lines=%u text=\"the user made too many calls to log each\"", by,
		       left_out);
	return true;
}
