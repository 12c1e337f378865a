/* SPDX-License-Identifier: Apache-2.0 */
/* The methods `policy` and `reload`. */
#include <json-c/json.h>
#include <stdio.h>
#include <time.h>

#include "base/log.h"
#include "daemon/control.h"
#include "daemon/usernames.h"
#include "rpc/params.h"

static uint64_t realtime_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * GP_NS_PER_S + (uint64_t)t.tv_nsec;
}

/* Where the policy of the device comes from, and the configured policy. */
static void add_origin(const struct gp_control *c, unsigned device, struct json_object *o)
{
	const struct gp_policy_origin *origin = &c->policy_origin[device];
	const char *name = c->nthreads ? gp_device_thread_info(c->thread[device])->name : "";
	struct gp_policy_origin ignored;
	struct gp_policy_choice configured;
	char user[32];

	gp_json_add(o, "source", json_object_new_string(gp_policy_source_names[origin->source]));
	if (origin->source == GP_POLICY_CHOSEN && origin->by != GP_BY_UNKNOWN) {
		gp_user_name(origin->by, user, sizeof user);
		gp_json_add(o, "chosen_by", json_object_new_string(user));
		gp_json_add(o, "chosen_at_ns", json_object_new_uint64(origin->at_ns));
	}
	if (!gp_policy_configured(c, name, &configured, &ignored, NULL))
		gp_json_add(o, "configured", json_object_new_string(configured.ops->name));
}

static struct json_object *render_policy(struct gp_control *c, unsigned device)
{
	const struct gp_policy_choice *choice = &c->policy[device];
	struct json_object *o = gp_json_begin(), *param = json_object_new_object(),
			   *devices = json_object_new_array();

	gp_json_add(o, "device", json_object_new_uint64(device));
	gp_json_add(o, "policy", json_object_new_string(choice->ops->name));
	for (uint32_t i = 0; i < choice->ops->nparam; i++)
		gp_json_add(param, choice->ops->param[i].name,
			    json_object_new_int64(choice->param[i]));
	gp_json_add(o, "params", param);
	add_origin(c, device, o);
	for (unsigned i = 0; i < c->nthreads; i++) {
		const struct gp_snapshot *snapshot = gp_device_thread_snapshot(c->thread[i]);

		gp_json_append(
			devices,
			json_object_new_string(snapshot->policy ? snapshot->policy->name : "none"));
	}
	gp_json_add(o, "devices", devices);
	return o;
}

/* Records the policy of a device that has accepted it. */
static void note_policy(struct gp_control *c, const struct gp_gather *g, unsigned device,
			uint64_t at_ns)
{
	const char *name = c->nthreads ? gp_device_thread_info(c->thread[device])->name : "";

	if (g->policy_default) {
		gp_policy_configured(c, name, &c->policy[device], &c->policy_origin[device], NULL);
		return;
	}
	c->policy[device] = g->policy;
	c->policy_origin[device] = (struct gp_policy_origin){
		.source = GP_POLICY_CHOSEN, .by = gp_rpc_peer(g->call)->uid, .at_ns = at_ns};
}

/* A choice for all devices is kept for a restart. The default removes that choice. */
static int keep_choice(struct gp_control *c, const struct gp_gather *g, uint64_t at_ns,
		       struct gp_error *err)
{
	struct gp_chosen_policy chosen = {
		.by = gp_rpc_peer(g->call)->uid, .at_ns = at_ns, .configured = c->policies_key};

	if (!g->policy_everywhere)
		return 0;
	snprintf(chosen.text, sizeof chosen.text, "%s", g->policy_text);
	return gp_assignments_set_policy(c->assignments, &chosen, err);
}

/* A policy that a device refused is neither recorded for that device nor kept for a restart. */
static void finish(struct gp_gather *g)
{
	struct gp_control *c = g->control;
	struct gp_error err = {0};
	uint64_t at_ns = realtime_ns();
	int r = g->status;

	for (unsigned i = 0; i < c->nthreads; i++)
		if (g->done_on & 1ull << i)
			note_policy(c, g, i, at_ns);
	if (!c->nthreads)
		note_policy(c, g, 0, at_ns);
	if (r)
		gp_fail(&err, r, "%s", g->text);
	else
		r = keep_choice(c, g, at_ns, &err);
	if (r)
		gp_rpc_fail(g->call, 0, r, "%s", err.text);
	else
		gp_rpc_reply(g->call, render_policy(c, g->policy_device));
}

/*
 * Sets the policy `text` until the next change; NULL: the configured policy. A choice for all
 * devices survives a restart.
 */
static int choose(struct gp_control *c, struct gp_rpc_call *call, const char *text, int device)
{
	struct gp_error *err = gp_rpc_error(call);
	struct gp_command command = {.kind = GP_COMMAND_POLICY};
	struct gp_policy_origin ignored;
	struct gp_gather *g;
	int r = text ? gp_policy_parse(text, &command.policy, err) : 0;

	if (r)
		return r;
	g = gp_gather_new(c, call, finish);
	if (!g)
		return 0;
	g->policy = command.policy;
	g->policy_default = !text;
	g->policy_everywhere = device < 0;
	g->policy_device = device < 0 ? 0 : (unsigned)device;
	snprintf(g->policy_text, sizeof g->policy_text, "%s", text ? text : "");
	gp_log(GP_LOG_INFO, "policy.set", "policy=%s by=%u", text ? text : "configured",
	       gp_rpc_peer(call)->uid);
	for (unsigned i = 0; i < c->nthreads; i++) {
		const char *name = gp_device_thread_info(c->thread[i])->name;

		if (!text)
			gp_policy_configured(c, name, &command.policy, &ignored, NULL);
		if (device < 0 || (unsigned)device == i)
			gp_gather_command(g, c->thread[i], &command);
	}
	gp_gather_go(g);
	return 0;
}

int gp_method_policy(void *arg, struct gp_rpc_call *call, struct json_object *params)
{
	struct gp_control *c = arg;
	struct gp_error *err = gp_rpc_error(call);
	const char *text = NULL;
	bool given, one, there, configured = false;
	uint64_t device = 0;
	int r;

	if (GP_PARAMS_KNOWN(params, err, "policy", "device", "default") ||
	    gp_params_string(params, "policy", 250, &text, &given, err) ||
	    gp_params_bool(params, "default", &configured, &there, err) ||
	    gp_params_u64(params, "device", 0, GP_DEVICES_MAX - 1, &device, &one, err))
		return -EINVAL;
	if (given && configured)
		return gp_fail(err, -EINVAL, "give `policy` or `default`, not both");
	if (!given && !configured)
		return gp_rpc_reply(
			call, render_policy(c, one && device < c->nthreads ? (unsigned)device : 0));
	r = gp_may_administer(c, call, err);
	if (!r && one && device >= c->nthreads)
		r = gp_fail(err, -ENODEV, "there is no device %u; gpreempt ps lists the devices",
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
