/* SPDX-License-Identifier: Apache-2.0 */
/* The method `set`: sets attributes of a process, whether it has queues yet or not. */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/process.h"
#include "daemon/control.h"
#include "rpc/params.h"
#include "task/json/task_json.h"

#define WEEK_NS (GP_NS_PER_S * 3600 * 24 * 7)

/* Reads the name of the gang; "" removes the process from its gang. */
static int read_gang(struct json_object *params, const char **name, bool *named,
		     struct gp_error *err)
{
	struct json_object *value = json_object_object_get(params, "gang");

	*named = json_object_is_type(value, json_type_string) && !json_object_get_string_len(value);
	*name = "";
	return *named ? 0
		      : gp_params_string(params, "gang", GP_GANG_NAME_MAX - 1, name, named, err);
}

/* Changes `attr` by the parameters of the call. */
static int read_attr(struct gp_control *c, struct gp_rpc_call *call, const struct gp_proc *proc,
		     struct json_object *params, struct gp_task_attr *attr, char *gang)
{
	struct gp_error *err = gp_rpc_error(call);
	unsigned class = attr->class;
	uint64_t priority = attr->priority, weight = attr->weight, share = attr->share_permille,
		 ceiling = attr->ceiling_permille;
	const char *name = NULL;
	bool there, named;

	if (gp_params_choice(params, "class", gp_class_words, GP_CLASSES, &class, &there, err) ||
	    gp_params_u64(params, "priority", 0, GP_PRIORITY_MAX, &priority, &there, err) ||
	    gp_params_u64(params, "weight", 1, 10000, &weight, &there, err) ||
	    gp_params_u64(params, "share_permille", 0, 1000, &share, &there, err) ||
	    gp_params_u64(params, "ceiling_permille", 0, 1000, &ceiling, &there, err) ||
	    gp_params_u64(params, "deadline_ns", 0, WEEK_NS, &attr->deadline_ns, &there, err) ||
	    gp_params_u64(params, "budget_ns", 0, WEEK_NS, &attr->budget_ns, &there, err) ||
	    read_gang(params, &name, &named, err))
		return -EINVAL;
	attr->class = (uint8_t) class;
	attr->priority = (uint8_t)priority;
	attr->weight = (uint32_t)weight;
	attr->share_permille = (uint32_t)share;
	attr->ceiling_permille = (uint32_t)ceiling;
	if (named) {
		snprintf(gang, GP_GANG_NAME_MAX, "%s", name);
		attr->gang = !*gang ? 0
			     : gp_administers(c, gp_rpc_peer(call))
				     ? gp_gang_of_admin(gang)
				     : gp_gang_of_user(proc->uid, gang);
	}
	return 0;
}

/* The attributes of a process that have an effect under a policy, by the names of options. */
static struct json_object *render_effective(const struct gp_policy_ops *policy,
					    const struct gp_task_attr *attr)
{
	struct json_object *list = json_object_new_array();

	if (attr->class == GP_UNMANAGED) {
		gp_json_append(list, json_object_new_string("class"));
		return list;
	}
	for (unsigned i = 0; gp_attr_use_names[i]; i++)
		if (policy->uses & 1u << i)
			gp_json_append(list, json_object_new_string(gp_attr_use_names[i]));
	gp_json_append(list, json_object_new_string("gang"));
	return list;
}

/* Why the attributes are not in force on a device; NULL: they are. A new reference. */
static struct json_object *find_reason(const struct gp_gather *g, unsigned device)
{
	char key[16];

	snprintf(key, sizeof key, "%u", device);
	return json_object_get(json_object_object_get(g->not_in_force, key));
}

/* The devices of the process; all devices if it has no tasks yet. */
static struct json_object *render_devices(const struct gp_gather *g, const struct gp_proc *proc)
{
	struct gp_control *c = g->control;
	struct json_object *list = json_object_new_array();
	uint64_t used = proc->ntasks ? 0 : UINT64_MAX;

	for (unsigned i = 0; i < proc->ntasks; i++)
		used |= 1ull << proc->task[i].device;
	for (unsigned i = 0; i < c->nthreads; i++) {
		const struct gp_policy_ops *policy =
			gp_device_thread_snapshot(c->thread[i])->policy;
		struct json_object *o, *reason;

		if (!(used & 1ull << i) || !policy)
			continue;
		o = json_object_new_object();
		gp_json_add(o, "device", json_object_new_uint64(i));
		gp_json_add(o, "policy", json_object_new_string(policy->name));
		gp_json_add(o, "in_force", render_effective(policy, &proc->attr));
		reason = find_reason(g, i);
		if (reason)
			gp_json_add(o, "not_in_force", reason);
		gp_json_append(list, o);
	}
	return list;
}

static void finish(struct gp_gather *g)
{
	const struct gp_proc *proc = gp_procs_find(&g->control->procs, g->pid, g->start_time);
	struct json_object *result, *attr;

	if (g->status && g->status != -ESRCH) { /* a task that ended meanwhile is not a failure */
		gp_rpc_fail(g->call, 0, g->status, "%s", g->text);
		return;
	}
	if (!proc) {
		gp_rpc_fail(g->call, 0, -ESRCH, "process %d has ended", g->pid);
		return;
	}
	result = gp_json_begin();
	attr = json_object_new_object();
	gp_json_add(result, "tasks", json_object_new_uint64(g->done));
	gp_attr_to_json(attr, &proc->attr, proc->gang);
	gp_json_add(result, "attr", attr);
	gp_json_add(result, "devices", render_devices(g, proc));
	gp_rpc_reply(g->call, result);
}

static void publish_attr(struct gp_control *c, const struct gp_proc *proc)
{
	struct json_object *event = gp_event_new(c, GP_TOPIC_ATTR);

	if (!event)
		return;
	gp_event_add_proc(event, proc);
	gp_attr_to_json(event, &proc->attr, proc->gang);
	gp_events_publish(c, GP_TOPIC_ATTR, event);
}

static void send_attr(struct gp_control *c, struct gp_gather *g, const struct gp_proc *proc)
{
	for (unsigned i = 0; i < proc->ntasks; i++) {
		struct gp_command command = {
			.kind = GP_COMMAND_ATTR, .task = proc->task[i].id, .attr = proc->attr};

		if (g)
			gp_gather_command(g, c->thread[proc->task[i].device], &command);
		else
			gp_device_thread_command(c->thread[proc->task[i].device], &command);
	}
}

void gp_apply_attr(struct gp_control *c, struct gp_gather *g, const struct gp_proc *proc)
{
	send_attr(c, g, proc);
	publish_attr(c, proc);
}

void gp_log_shared(const struct gp_proc *proc)
{
	if (proc->shared && proc->attr.class != GP_UNMANAGED)
		gp_log(GP_LOG_WARN, "process.shared",
		       "pid=%d name=\"%s\" class=%s text=\"works for many programs; the class "
		       "applies to all of them\"",
		       proc->pid, proc->name, gp_class_name(proc->attr.class));
}

static void log_set(struct gp_control *c, struct gp_rpc_call *call, const struct gp_proc *proc)
{
	if (!gp_method_may_log(c, call))
		return;
	gp_log(GP_LOG_INFO, "process.attributes-set", "pid=%d class=%s priority=%u by=%u",
	       proc->pid, gp_class_name(proc->attr.class), proc->attr.priority,
	       gp_rpc_peer(call)->uid);
	gp_log_shared(proc);
}

static bool is_assigned(struct gp_control *c, const struct gp_assignment *entry)
{
	struct gp_assignment now;

	return gp_assignments_get(c->assignments, entry->pid, entry->start_time, &now) &&
	       now.source == entry->source && now.by == entry->by &&
	       now.inherit == entry->inherit && !strcmp(now.gang, entry->gang) &&
	       gp_task_attr_same(&now.attr, &entry->attr);
}

/* All checks have passed; applies the assignment. A call that changes nothing is not logged. */
static int set(struct gp_control *c, struct gp_rpc_call *call, struct gp_proc *proc,
	       const struct gp_assignment *entry)
{
	struct gp_error *err = gp_rpc_error(call);
	struct gp_gather *g;
	bool changes = !is_assigned(c, entry);
	int r = changes ? gp_assignments_put(c->assignments, entry, err) : 0;

	if (r)
		return r;
	gp_proc_assign(proc, GP_ATTR_BY_USER, entry->by);
	proc->limit = gp_configured_limit(c, gp_rpc_peer(call));
	proc->attr = entry->attr;
	memcpy(proc->gang, entry->gang, sizeof proc->gang);
	if (changes) {
		log_set(c, call, proc);
		publish_attr(c, proc);
	}
	g = gp_gather_new(c, call, finish);
	if (!g)
		return 0;
	g->pid = proc->pid;
	g->start_time = proc->start_time;
	send_attr(c, g, proc);
	gp_gather_go(g);
	return 0;
}

int gp_method_set(void *arg, struct gp_rpc_call *call, struct json_object *params)
{
	struct gp_control *c = arg;
	struct gp_error *err = gp_rpc_error(call);
	const struct gp_rpc_peer *peer = gp_rpc_peer(call);
	struct gp_assignment entry = {.source = GP_ATTR_BY_USER,
				      .by = gp_administers(c, peer) ? GP_BY_ADMIN : peer->uid};
	struct gp_proc *proc;
	bool force = false, there;
	int r;

	if (GP_PARAMS_KNOWN(params, err, "target", "inherit", "force", "class", "priority",
			    "weight", "share_permille", "ceiling_permille", "deadline_ns",
			    "budget_ns", "gang") ||
	    gp_params_bool(params, "inherit", &entry.inherit, &there, err) ||
	    gp_params_bool(params, "force", &force, &there, err))
		return -EINVAL;
	proc = gp_method_target(c, call, params);
	if (!proc)
		return 0;
	entry.pid = proc->pid;
	entry.start_time = proc->start_time;
	entry.attr = proc->attr;
	memcpy(entry.gang, proc->gang, sizeof entry.gang);
	r = read_attr(c, call, proc, params, &entry.attr, entry.gang);
	if (!r)
		r = gp_may_set(c, call, proc, &entry.attr, err);
	if (!r && proc->shared && entry.attr.class != GP_UNMANAGED && !force)
		r = gp_fail(err, -EPERM,
			    "process %d (%s) works for many programs, and its attributes would "
			    "apply to all of them; use --force to set them anyway",
			    proc->pid, proc->name);
	if (!r && gp_proc_ended(proc))
		r = gp_fail(err, -ESRCH, "process %d has ended", proc->pid);
	if (!r)
		r = set(c, call, proc, &entry);
	if (r)
		gp_procs_drop_unused(&c->procs, proc);
	return r;
}
