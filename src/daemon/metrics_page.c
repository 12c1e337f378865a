/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collects the values of the metrics page from the snapshots of the devices. The metrics themselves
 * are defined in src/metrics.
 */
#include "daemon/metrics_page.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "base/log.h"
#include "daemon/http.h"
#include "metrics/page.h"

struct gp_metrics {
	struct gp_control *control;
	struct gp_http *http;
	uint64_t started_s; /* seconds since 1970, read once at start */
};

/* 0 = unknown. */
static uint64_t count_open_fds(void)
{
	DIR *folder = opendir("/proc/self/fd");
	uint64_t n = 0;

	if (!folder)
		return 0;
	while (readdir(folder))
		n++;
	closedir(folder);
	return n > 3 ? n - 3 : 0; /* ".", ".." and the folder itself */
}

static uint64_t max_fds(void)
{
	struct rlimit l;

	return getrlimit(RLIMIT_NOFILE, &l) || l.rlim_cur == RLIM_INFINITY ? 0 : l.rlim_cur;
}

static uint64_t count_over_limit(const struct gp_control *c)
{
	uint64_t n = 0;

	for (const struct gp_proc *p = c->procs.first; p; p = p->next)
		n += p->limit_passed;
	return n;
}

static void fill_device(const struct gp_control *c, unsigned i, uint64_t now_ns,
			struct gp_metrics_device *d)
{
	struct gp_device_thread *h = c->thread[i];
	const struct gp_snapshot *snapshot = gp_device_thread_snapshot(h);
	uint64_t limit_ns = c->config->scheduler.starve_limit_ns;

	*d = (struct gp_metrics_device){
		.name = gp_device_thread_info(h)->name,
		.backend = gp_device_thread_backend(h),
		.policy = snapshot->policy ? snapshot->policy->name : NULL,
		.wanted = c->policy[i].ops->name,
		.caps = gp_device_thread_caps(h),
		.stuck = gp_device_thread_overdue_ns(h, now_ns) > GP_STUCK_NS,
		.starve_limit_ns = limit_ns ? limit_ns : GP_STARVE_LIMIT_NS,
		.stats = &snapshot->stats,
		.lag_ns = &snapshot->lag_ns,
		.ntasks = snapshot->ntasks,
		.task = snapshot->task,
	};
}

static void write_page(FILE *out, void *arg)
{
	const struct gp_metrics *m = arg;
	struct gp_control *c = m->control;
	struct gp_metrics_device device[GP_DEVICES_MAX];
	uint64_t now_ns = gp_monotonic_ns();
	struct gp_rpc_counters n;
	struct gp_metrics_page page;

	gp_rpc_server_counters(c->server, &n);
	for (unsigned i = 0; i < c->nthreads; i++)
		fill_device(c, i, now_ns, &device[i]);
	page = (struct gp_metrics_page){
		.version = GP_VERSION,
		.started_s = m->started_s,
		.cpu_ns = gp_cpu_ns(),
		.resident_bytes = gp_resident_bytes(),
		.open_fds = count_open_fds(),
		.max_fds = max_fds(),
		.clients = n.clients,
		.refused = n.refused,
		.requests = n.requests,
		.errors = n.errors,
		.cut_off = n.cut_off,
		.events_lost = n.lost,
		.processes = c->procs.n,
		.keeper = !c->keeper_gone,
		.limits_passed = c->limits_passed,
		.over_limit = count_over_limit(c),
		.tasks = c->config->metrics.tasks,
		.ndevices = c->nthreads,
		.device = device,
	};
	gp_metrics_write(out, &page);
}

int gp_metrics_begin(struct gp_control *c, struct gp_error *err)
{
	struct gp_http_config config = {.address = &c->config->metrics.address.any,
					.type = GP_METRICS_TYPE,
					.write = write_page};
	struct gp_metrics *m;
	int r;

	if (!c->config->metrics.on)
		return 0;
	config.arg = m = calloc(1, sizeof *m);
	if (!m)
		return gp_fail(err, -ENOMEM, "no memory for metrics");
	m->control = c;
	m->started_s = (uint64_t)time(NULL);
	r = gp_http_begin(c->loop, &config, &m->http, err);
	if (r) {
		free(m);
		return r;
	}
	c->metrics = m;
	gp_log(GP_LOG_INFO, "metrics.listening", "listen=%s", c->config->metrics.listen);
	return 0;
}

void gp_metrics_end(struct gp_control *c)
{
	if (!c->metrics)
		return;
	gp_http_end(c->metrics->http);
	free(c->metrics);
	c->metrics = NULL;
}
