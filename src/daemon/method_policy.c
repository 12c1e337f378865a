/* SPDX-License-Identifier: Apache-2.0 */
/* The methods `policy` and `reload`. */
#include <json-c/json.h>
#include <stdio.h>

#include "base/log.h"
#include "daemon/control.h"
#include "rpc/params.h"

static struct json_object *render_policy(struct gp_control *c)
{
	const struct gp_policy_choice *choice = &c->policy[0];
	struct json_object *o = json_object_new_object(), *param = json_object_new_object(),
			   *devices = json_object_new_array();

	json_object_object_add(o, "policy", json_object_new_string(choice->ops->name));
	for (uint32_t i = 0; i < choice->ops->nparam; i++)
		json_object_object_add(param, choice->ops->param[i].name,
				       json_object_new_int64(choice->param[i]));
	json_object_object_add(o, "params", param);
	for (unsigned i = 0; i < c->nthreads; i++) {
		const struct gp_snapshot *snapshot = gp_device_thread_snapshot(c->thread[i]);

		json_object_array_add(
			devices,
			json_object_new_string(snapshot->policy ? snapshot->policy->name : "none"));
	}
	json_object_object_add(o, "devices", devices);
	return o;
}

/* A policy that a device refused is neither recorded for that device nor kept for a restart. */
static void finish(struct gp_gather *g)
{
	struct gp_control *c = g->control;
	struct gp_error err = {0};
	int r = g->status;

	for (unsigned i = 0; i < c->nthreads; i++)
		if (g->done_on & 1ull << i)
			c->policy[i] = g->policy;
	if (!c->nthreads)
		c->policy[0] = g->policy;
	if (r)
		gp_fail(&err, r, "%s", g->text);
	else if (*g->policy_text)
		r = gp_assignments_set_policy(c->assignments, g->policy_text, &err);
	if (r)
		gp_rpc_fail(g->call, 0, r, "%s", err.text);
	else
		gp_rpc_reply(g->call, render_policy(c));
}

/*
 * Sets the policy until the next change. It survives a restart, unless it was set for a single
 * device.
 */
static int choose(struct gp_control *c, struct gp_rpc_call *call, const char *text, int device)
{
	struct gp_error *err = gp_rpc_error(call);
	struct gp_command command = {.kind = GP_COMMAND_POLICY};
	struct gp_gather *g;
	int r = gp_policy_parse(text, &command.policy, err);

	if (r)
		return r;
	g = gp_gather_new(c, call, finish);
	if (!g)
		return 0;
	g->policy = command.policy;
	if (device < 0)
		snprintf(g->policy_text, sizeof g->policy_text, "%s", text);
	gp_log(GP_LOG_INFO, "policy.set", "policy=%s by=%u", command.policy.ops->name,
	       gp_rpc_peer(call)->uid);
	for (unsigned i = 0; i < c->nthreads; i++)
		if (device < 0 || (unsigned)device == i)
			gp_gather_command(g, c->thread[i], &command);
	gp_gather_go(g);
	return 0;
}

int gp_method_policy(void *arg, struct gp_rpc_call *call, struct json_object *params)
{
	struct gp_control *c = arg;
	struct gp_error *err = gp_rpc_error(call);
	const char *text = NULL;
	bool given, one;
	uint64_t device = 0;
	int r;

	if (GP_PARAMS_KNOWN(params, err, "policy", "device") ||
	    gp_params_string(params, "policy", 250, &text, &given, err) ||
	    gp_params_u64(params, "device", 0, GP_DEVICES_MAX - 1, &device, &one, err))
		return -EINVAL;
	if (!given)
		return gp_rpc_reply(call, render_policy(c));
	r = gp_may_administer(c, call, err);
	if (!r && one && device >= c->nthreads)
		r = gp_fail(err, -ENODEV, "there is no device %u; call `devices` for the list",
			    (unsigned)device);
	return r ? r : choose(c, call, text, one ? (int)device : -1);
}

int gp_method_reload(void *arg, struct gp_rpc_call *call, struct json_object *params)
{
	struct gp_control *c = arg;
	struct gp_error *err = gp_rpc_error(call);
	int r;

	if (gp_params_known(params, NULL, 0, err))
		return -EINVAL;
	r = gp_may_administer(c, call, err);
	return r ? r : gp_control_reload(c, call);
}
