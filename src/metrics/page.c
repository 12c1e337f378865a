/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of the daemon itself. Metrics of the process have the names that Prometheus defines. */
#include "metrics/page.h"

#include "metrics/page_parts.h"
#include "metrics/sample.h"

static void write_one(FILE *out, const char *name, const char *type, const char *help,
		      uint64_t value)
{
	gp_metrics_head(out, name, type, help);
	fputs(name, out);
	gp_metrics_count(out, value);
}

/* Omits a value that is not known (0). */
static void write_known(FILE *out, const char *name, const char *help, uint64_t value)
{
	if (value)
		write_one(out, name, "gauge", help, value);
}

static void write_process(FILE *out, const struct gp_metrics_page *p)
{
	gp_metrics_head(out, "process_cpu_seconds_total", "counter",
			"CPU time of the daemon, all threads.");
	fputs("process_cpu_seconds_total", out);
	gp_metrics_seconds(out, p->cpu_ns);
	write_known(out, "process_resident_memory_bytes", "Memory of the daemon.",
		    p->resident_bytes);
	write_known(out, "process_open_fds", "Open file descriptors of the daemon.", p->open_fds);
	write_known(out, "process_max_fds", "Limit of open file descriptors.", p->max_fds);
	write_known(out, "process_start_time_seconds",
		    "Start time of the daemon, in seconds since 1970.", p->started_s);
}

static void write_service(FILE *out, const struct gp_metrics_page *p)
{
	write_one(out, "gpreempt_clients", "gauge", "Connected clients.", p->clients);
	write_one(out, "gpreempt_clients_refused_total", "counter",
		  "Connections refused because too many clients were connected.", p->refused);
	write_one(out, "gpreempt_clients_cut_off_total", "counter",
		  "Connections closed because of a limit or malformed input.", p->cut_off);
	write_one(out, "gpreempt_requests_total", "counter", "Requests of clients.", p->requests);
	write_one(out, "gpreempt_request_errors_total", "counter",
		  "Requests answered with an error.", p->errors);
	write_one(out, "gpreempt_events_lost_total", "counter",
		  "Events that clients lost because they read too slowly.", p->events_lost);
	write_one(out, "gpreempt_processes", "gauge", "Processes the daemon knows.", p->processes);
	write_one(out, "gpreempt_keeper_up", "gauge",
		  "1: the keeper is running; it releases all tasks if the daemon dies.", p->keeper);
	write_one(out, "gpreempt_memory_limit_passed_total", "counter",
		  "How often a process exceeded its GPU memory limit.", p->limits_passed);
	write_one(out, "gpreempt_processes_over_memory_limit", "gauge",
		  "Processes that exceed their GPU memory limit now.", p->over_limit);
}

void gp_metrics_write(FILE *out, const struct gp_metrics_page *p)
{
	gp_metrics_head(out, "gpreempt_build_info", "gauge", "Always 1; the version is a label.");
	fputs("gpreempt_build_info{", out);
	gp_metrics_label(out, "version", p->version);
	fputc('}', out);
	gp_metrics_count(out, 1);
	write_process(out, p);
	write_service(out, p);
	gp_metrics_devices(out, p);
	gp_metrics_tasks(out, p);
}
