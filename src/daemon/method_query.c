/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The methods `devices`, `tasks` and `stats`, which only read. All users may call them; a client in
 * a container sees only its own processes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "daemon/control.h"
#include "rpc/params.h"

static void add(struct json_object *o, const char *key, uint64_t value)
{
	gp_json_add(o, key, json_object_new_uint64(value));
}

static struct json_object *render_devices(struct gp_control *c)
{
	struct json_object *list = json_object_new_array();

	for (unsigned i = 0; i < c->nthreads; i++)
		gp_json_append(list, gp_render_device(c, i));
	return list;
}

int gp_method_devices(void *arg, struct gp_rpc_call *call, struct json_object *params)
{
	struct json_object *result;

	if (gp_params_known(params, NULL, 0, gp_rpc_error(call)))
		return -EINVAL;
	result = gp_json_begin();
	gp_json_add(result, "devices", render_devices(arg));
	add(result, "now_ns", gp_monotonic_ns());
	return gp_rpc_reply(call, result);
}

static bool may_see(struct gp_control *c, const struct gp_rpc_call *call, unsigned device,
		    const struct gp_task_stats *task)
{
	const struct gp_proc *proc;

	if (gp_rpc_peer(call)->same_pidns)
		return true;
	proc = gp_procs_of_task(&c->procs, device, task->id);
	return proc && !gp_may_read(c, call, proc, NULL);
}

int gp_method_tasks(void *arg, struct gp_rpc_call *call, struct json_object *params)
{
	struct gp_control *c = arg;
	struct gp_error *err = gp_rpc_error(call);
	uint64_t device = 0, pid = 0;
	bool one_device, one_pid;
	struct json_object *result, *list;

	if (GP_PARAMS_KNOWN(params, err, "device", "pid") ||
	    gp_params_u64(params, "device", 0, GP_DEVICES_MAX - 1, &device, &one_device, err) ||
	    gp_params_u64(params, "pid", 1, INT32_MAX, &pid, &one_pid, err))
		return -EINVAL;
	if (one_pid && !gp_rpc_peer(call)->same_pidns)
		return gp_fail(
			err, -EPERM,
			"a pid of your pid namespace means another process here; ask without pid");
	if (one_device && device >= c->nthreads)
		return gp_fail(err, -ENODEV, "there is no device %u; gpreempt ps lists the devices",
			       (unsigned)device);
	result = gp_json_begin();
	list = json_object_new_array();
	for (unsigned i = 0; i < c->nthreads; i++) {
		const struct gp_snapshot *snapshot = gp_device_thread_snapshot(c->thread[i]);

		if (one_device && i != device)
			continue;
		for (unsigned t = 0; t < snapshot->ntasks; t++)
			if ((!one_pid || (uint64_t)snapshot->task[t].pid == pid) &&
			    may_see(c, call, i, &snapshot->task[t]))
				gp_json_append(list, gp_render_task(c, i, snapshot, t));
	}
	gp_json_add(result, "tasks", list);
	add(result, "now_ns", gp_monotonic_ns());
	return gp_rpc_reply(call, result);
}

uint64_t gp_resident_bytes(void)
{
	char line[128], *pages;
	FILE *f = fopen("/proc/self/statm", "re");
	uint64_t resident = 0;

	if (f && fgets(line, sizeof line, f)) {
		pages = strchr(line, ' '); /* after the total size */
		resident = pages ? strtoull(pages, NULL, 10) : 0;
	}
	if (f)
		fclose(f);
	return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

uint64_t gp_cpu_ns(void)
{
	struct timespec t = {0};

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * GP_NS_PER_S + (uint64_t)t.tv_nsec;
}

static struct json_object *render_daemon(struct gp_control *c)
{
	struct json_object *o = json_object_new_object();
	struct gp_rpc_counters counters;

	gp_rpc_server_counters(c->server, &counters);
	add(o, "pid", (uint64_t)getpid());
	add(o, "uptime_ns", gp_monotonic_ns() - c->started_ns);
	add(o, "cpu_ns", gp_cpu_ns());
	add(o, "rss_bytes", gp_resident_bytes());
	add(o, "clients", counters.clients);
	add(o, "requests", counters.requests);
	add(o, "errors", counters.errors);
	add(o, "events_lost", counters.lost);
	add(o, "processes", c->procs.n);
	if (*c->config_path)
		gp_json_add(o, "config", json_object_new_string(c->config_path));
	gp_json_add(o, "keeper", json_object_new_string(c->keeper_gone ? "gone" : "running"));
	return o;
}

int gp_method_stats(void *arg, struct gp_rpc_call *call, struct json_object *params)
{
	struct json_object *result;

	if (gp_params_known(params, NULL, 0, gp_rpc_error(call)))
		return -EINVAL;
	result = gp_json_begin();
	gp_json_add(result, "daemon", render_daemon(arg));
	gp_json_add(result, "devices", render_devices(arg));
	return gp_rpc_reply(call, result);
}
