/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon itself. Names that Prometheus has given for every process are used as they are. */
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

/* 0 = not known. */
static void write_known(FILE *out, const char *name, const char *help, uint64_t value)
{
	if (value)
		write_one(out, name, "gauge", help, value);
}

static void write_process(FILE *out, const struct gp_metrics_page *p)
{
	gp_metrics_head(out, "process_cpu_seconds_total", "counter",
	                "CPU time the daemon has used, all threads.");
	fputs("process_cpu_seconds_total", out);
	gp_metrics_seconds(out, p->cpu_ns);
	write_known(out, "process_resident_memory_bytes", "Memory of the daemon.",
	            p->resident_bytes);
	write_known(out, "process_open_fds", "Files the daemon has open.", p->open_fds);
	write_known(out, "process_max_fds", "Files it may have open.", p->max_fds);
	write_known(out, "process_start_time_seconds", "When it started, since 1970.",
	            p->started_s);
}

static void write_service(FILE *out, const struct gp_metrics_page *p)
{
	write_one(out, "gpreempt_clients", "gauge", "Clients that are connected.", p->clients);
	write_one(out, "gpreempt_clients_refused_total", "counter",
	          "Connections that were refused: too many.", p->refused);
	write_one(out, "gpreempt_clients_cut_off_total", "counter",
	          "Connections closed for a limit or for what nobody can read.", p->cut_off);
	write_one(out, "gpreempt_requests_total", "counter", "Requests of clients.", p->requests);
	write_one(out, "gpreempt_request_errors_total", "counter",
	          "Requests that were answered with an error.", p->errors);
	write_one(out, "gpreempt_events_lost_total", "counter",
	          "Events that clients lost because they read too slowly.", p->events_lost);
	write_one(out, "gpreempt_processes", "gauge", "Processes the daemon knows.", p->processes);
	write_one(out, "gpreempt_keeper_up", "gauge",
	          "1: the keeper is there and would release everything if the daemon died.",
	          p->keeper);
	write_one(out, "gpreempt_memory_limit_passed_total", "counter",
	          "How often a process passed its limit of GPU memory.", p->limits_passed);
	write_one(out, "gpreempt_processes_over_memory_limit", "gauge",
	          "Processes above their limit of GPU memory now.", p->over_limit);
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
