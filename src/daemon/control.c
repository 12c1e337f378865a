/* SPDX-License-Identifier: Apache-2.0 */
/* Start, main loop and end of the daemon. */
#include "daemon/control.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "base/log.h"
#include "base/run_dir.h"
#include "daemon/metrics_page.h"
#include "hold/replay.h"
#include "undo/undo.h"

static int on_end_signal(sd_event_source *source, const struct signalfd_siginfo *info, void *arg)
{
	struct gp_control *c = arg;

	(void)source;
	gp_log(GP_LOG_INFO, "daemon.stopping", "signal=%u", info->ssi_signo);
	return sd_event_exit(c->loop, 0);
}

static int on_hangup(sd_event_source *source, const struct signalfd_siginfo *info, void *arg)
{
	(void)source;
	(void)info;
	gp_control_reload(arg, NULL); /* logs its own errors */
	return 0;
}

static int watch_signals(struct gp_control *c)
{
	sigset_t mask;
	int r;

	/* Before the first thread starts, so that all threads inherit the mask. */
	sigemptyset(&mask);
	sigaddset(&mask, SIGTERM);
	sigaddset(&mask, SIGINT);
	sigaddset(&mask, SIGHUP);
	sigprocmask(SIG_BLOCK, &mask, NULL);
	signal(SIGPIPE, SIG_IGN);
	r = sd_event_add_signal(c->loop, NULL, SIGTERM, on_end_signal, c);
	if (r >= 0)
		r = sd_event_add_signal(c->loop, NULL, SIGINT, on_end_signal, c);
	if (r >= 0)
		r = sd_event_add_signal(c->loop, NULL, SIGHUP, on_hangup, c);
	return r < 0 ? r : 0;
}

static void on_process_end(void *arg, struct gp_proc *proc)
{
	struct gp_control *c = arg;

	gp_assignments_drop(c->assignments, proc->pid, proc->start_time);
}

/* Watches a process with an assignment of an earlier daemon, to drop the assignment at its end. */
static void restore_process(void *arg, const struct gp_assignment *entry)
{
	struct gp_control *c = arg;
	struct gp_proc *proc = gp_procs_get(&c->procs, entry->pid, entry->start_time);

	if (!proc)
		return;
	gp_proc_assign(proc, entry->source, entry->by);
	proc->attr = entry->attr;
	memcpy(proc->gang, entry->gang, sizeof proc->gang);
}

static int start_device_thread(struct gp_control *c, struct gp_gpu *gpu, struct gp_error *err)
{
	const struct gp_config_scheduler *s = &c->config->scheduler;
	struct gp_device_thread_config config = {
		.gpu = gpu,
		.number = c->nthreads,
		.assignments = c->assignments,
		.undo = true,
		.realtime = (int)s->realtime,
		.cpu = s->core == GP_CONFIG_NO_CORE ? -1 : (int)s->core,
		.check_ns = s->check_ns,
		.check_lc_ns = s->check_lc_ns,
		.check_quiet_ns = s->check_quiet_ns,
		.scan_every_ns = s->scan_every_ns,
		.starve_limit_ns = s->starve_limit_ns,
		.wake_fd = c->wake_fd,
	};
	struct gp_policy_origin *origin = &c->policy_origin[c->nthreads];
	int r = gp_control_policy(c, gpu->info.name, &config.policy, origin, err);

	if (r) {
		gpu->ops->close(gpu);
		return r;
	}
	c->policy[c->nthreads] = config.policy;
	r = gp_device_thread_start(&config, &c->thread[c->nthreads], err);
	if (r)
		return r;
	gp_log(GP_LOG_INFO, "device.started", "device=%u name=\"%s\" policy=%s source=%s",
	       c->nthreads, gp_device_thread_info(c->thread[c->nthreads])->name,
	       config.policy.ops->name, gp_policy_source_names[origin->source]);
	/* Clients may have subscribed before there was a GPU. */
	gp_device_thread_want(c->thread[c->nthreads++], c->wanted);
	return 0;
}

static int start_device_threads(struct gp_control *c, struct gp_error *err)
{
	struct gp_devices devices;
	int r = gp_devices_open(&devices, 0, err);

	for (unsigned i = 0; !r && i < devices.n; i++) {
		struct gp_gpu *gpu = devices.device[i].gpu;
		bool ignore = false;

		gp_config_device(c->config, gpu->info.name, &ignore);
		if (ignore)
			gpu->ops->close(gpu);
		else
			r = start_device_thread(c, gpu, err);
		if (r)
			while (++i < devices.n)
				devices.device[i].gpu->ops->close(devices.device[i].gpu);
	}
	if (!r && !c->nthreads)
		r = gp_fail(err, -ENODEV,
			    "the configuration ignores every GPU of this machine; change 'devices' "
			    "in it");
	return r;
}

static const char *socket_path(const struct gp_config_socket *s, const char *name, char *out,
			       size_t size)
{
	char folder[GP_RUN_DIR_SIZE];

	if (*s->path)
		snprintf(out, size, "%s", s->path);
	else
		snprintf(out, size, "%s/%s", gp_run_dir(folder, sizeof folder), name);
	return out;
}

/* systemd passes the sockets by the names of their units. */
static int given_fd(const char *name)
{
	char **names = NULL;
	int n = sd_listen_fds_with_names(0, &names), fd = -1;

	for (int i = 0; i < n; i++) {
		if (!strcmp(names[i], name))
			fd = SD_LISTEN_FDS_START + i;
		free(names[i]);
	}
	free(names);
	return fd;
}

static uid_t account(void *arg, uid_t uid)
{
	struct gp_control *c = arg;

	return gp_account_of(&c->accounts, uid);
}

static int start_server(struct gp_control *c, struct gp_error *err)
{
	const struct gp_config_sockets *s = &c->config->sockets;
	const struct gp_config_clients *l = &c->config->clients;
	struct gp_rpc_limits limits = {
		.clients = l->max,
		.per_user = l->per_user,
		.line = (unsigned)l->request_size,
		.rate = l->rate,
		.idle_s = (unsigned)(l->idle_ns / GP_NS_PER_S),
	};
	char control[GP_RUN_DIR_SIZE + 16], hint[GP_RUN_DIR_SIZE + 16];
	struct gp_rpc_socket sockets[2] = {
		{.fd = given_fd("gpreemptd.socket"),
		 .mode = s->control.mode,
		 .gid = s->has_group ? s->group : (gid_t)-1,
		 .method = gp_control_methods,
		 .nmethods = gp_control_nmethods,
		 .limits = limits},
		{.fd = given_fd("gpreemptd-hint.socket"),
		 .mode = s->hint.mode,
		 .gid = (gid_t)-1,
		 .method = gp_hint_methods,
		 .nmethods = gp_hint_nmethods,
		 .limits = limits},
	};
	struct gp_rpc_config config = {
		.name = "gpreemptd " GP_VERSION,
		.socket = sockets,
		.nsockets = 2,
		.account = account,
		.arg = c,
	};

	if (sockets[0].fd < 0)
		sockets[0].path =
			socket_path(&s->control, "gpreemptd.sock", control, sizeof control);
	if (sockets[1].fd < 0)
		sockets[1].path = socket_path(&s->hint, "hint.sock", hint, sizeof hint);
	/* The sockets of a daemon that was killed and hangs in the kernel still accept clients. */
	for (unsigned i = 0; i < 2 && gp_undo_replaces_hung_scheduler(c->undo); i++)
		if (sockets[i].path)
			unlink(sockets[i].path);
	return gp_rpc_server_new(c->loop, &config, &c->server, err);
}

/* The daemon needs a pidfd for each process with tasks. */
static void raise_file_limit(void)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l))
		return;
	l.rlim_cur = l.rlim_max;
	setrlimit(RLIMIT_NOFILE, &l);
}

static void select_gpus(const struct gp_control *c)
{
	static const char *const names[] = {NULL, "nvidia", "amd", "sim"};

	gp_backends_select(c->options.gpu ? c->options.gpu : names[c->config->gpu]);
}

/*
 * Opens the files of the run-time folder: undo records (those of a dead daemon are replayed) and
 * assignments.
 */
static int open_files(struct gp_control *c, struct gp_error *err)
{
	char folder[GP_RUN_DIR_SIZE], path[GP_RUN_DIR_SIZE + 16];
	int r = gp_run_dir_make(err);

	gp_undo_survive_truncation();
	if (!r)
		r = gp_undo_open(&c->undo, true, err);
	if (!r)
		r = gp_undo_scheduler_begin(c->undo, err);
	if (r)
		return r;
	gp_undo_heartbeat(c->undo, gp_monotonic_ns());
	gp_records_replay_dead(c->undo);
	snprintf(path, sizeof path, "%s/assignments", gp_run_dir(folder, sizeof folder));
	r = gp_assignments_open(path, &c->assignments, err);
	if (r)
		return r;
	gp_assignments_each(c->assignments, restore_process, c);
	gp_bounds_renew(c);
	gp_policy_review(c);
	/* Used until there is a device. */
	return gp_control_policy(c, "", &c->policy[0], &c->policy_origin[0], err);
}

static int start_loop(struct gp_control *c, struct gp_error *err)
{
	int r = sd_event_default(&c->loop);

	if (r >= 0)
		r = watch_signals(c);
	if (r >= 0)
		r = gp_events_begin(c);
	if (r >= 0)
		r = gp_heartbeat_begin(c);
	if (r < 0)
		return gp_fail(err, r, "cannot start the event loop: %s", gp_error_name(r));
	gp_procs_init(&c->procs, c->loop, on_process_end, c);
	gp_accounts_init(&c->accounts, GP_SUBUID_PATH);
	c->procs.accounts = &c->accounts;
	return 0;
}

#define RETRY_US            5000000ull
#define FIRST_TICK_NS       (2 * GP_NS_PER_S) /* all devices together */
#define FIRST_TICK_PAUSE_US 1000

/* Logs each reason once, because the search is repeated every few seconds. */
static void log_no_device(struct gp_control *c, const struct gp_error *err)
{
	char why[300];

	if (!strcmp(err->text, c->no_device.text))
		return;
	c->no_device = *err;
	gp_log(GP_LOG_WARN, "device.none", "text=%s", gp_log_quote(why, sizeof why, err->text));
}

/* Searches for GPUs again, because a driver may be loaded later. */
static int on_retry(sd_event_source *source, uint64_t usec, void *arg)
{
	struct gp_control *c = arg;
	struct gp_error err = {0};

	(void)usec;
	if (!start_device_threads(c, &err) || c->nthreads) {
		sd_notifyf(0, "STATUS=Scheduling %u device%s", c->nthreads,
			   c->nthreads == 1 ? "" : "s");
		return 0;
	}
	log_no_device(c, &err);
	sd_event_source_set_time_relative(source, RETRY_US);
	sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
	return 0;
}

static int start_or_wait(struct gp_control *c, struct gp_error *err)
{
	int r = start_device_threads(c, err);

	if (r != -ENODEV || !c->options.wait)
		return r;
	log_no_device(c, err);
	*err = (struct gp_error){0};
	r = sd_event_add_time_relative(c->loop, NULL, CLOCK_MONOTONIC, RETRY_US, 0, on_retry, c);
	return r < 0 ? gp_fail(err, r, "cannot start the event loop: %s", gp_error_name(r)) : 0;
}

int gp_control_begin(struct gp_control *c, const struct gp_options *options, struct gp_error *err)
{
	int r;

	*c = (struct gp_control){.options = *options, .wake_fd = -1, .group = (gid_t)-1};
	c->started_ns = gp_monotonic_ns();
	raise_file_limit();
	r = gp_control_configure(c, err);
	if (r)
		return r;
	select_gpus(c);
	r = start_loop(c, err);
	if (!r)
		r = open_files(c, err);
	if (!r)
		r = gp_rules_begin(c, err);
	if (!r)
		r = gp_sweeper_begin(c, err);
	if (!r)
		r = start_server(c, err);
	if (!r)
		r = start_or_wait(c, err);
	if (!r)
		r = gp_metrics_begin(c, err);
	return r;
}

static bool all_have_ticked(const struct gp_control *c)
{
	for (unsigned i = 0; i < c->nthreads; i++)
		if (!gp_device_thread_has_ticked(c->thread[i]))
			return false;
	return true;
}

/* Waits until the processes that use a GPU now are known. Before that, an answer would say that
 * they use none. A driver that hangs does not keep the daemon from being ready. */
static void wait_for_first_tick(struct gp_control *c)
{
	uint64_t until_ns = gp_monotonic_ns() + FIRST_TICK_NS;
	int r = 0;

	while (r >= 0 && sd_event_get_state(c->loop) != SD_EVENT_FINISHED && !all_have_ticked(c) &&
	       gp_monotonic_ns() < until_ns)
		r = sd_event_run(c->loop, FIRST_TICK_PAUSE_US);
	for (unsigned i = 0; i < c->nthreads; i++)
		if (!gp_device_thread_has_ticked(c->thread[i]))
			gp_log(GP_LOG_WARN, "device.slow", "device=%u", i);
	gp_events_take(c);
}

int gp_control_run(struct gp_control *c, struct gp_error *err)
{
	int r;

	wait_for_first_tick(c);
	if (sd_event_get_state(c->loop) == SD_EVENT_FINISHED) /* a signal came meanwhile */
		return 0;
	sd_notifyf(0, "READY=1\nSTATUS=Scheduling %u device%s", c->nthreads,
		   c->nthreads == 1 ? "" : "s");
	gp_log(GP_LOG_INFO, "daemon.ready", "devices=%u", c->nthreads);
	r = sd_event_loop(c->loop);
	sd_notify(0, "STOPPING=1");
	return r < 0 ? gp_fail(err, r, "the event loop failed: %s", gp_error_name(r)) : 0;
}

/*
 * First the device threads put all tasks back. Then the undo records are replayed once more, which
 * is cheap and verifies it. A task that could not be put back keeps its record, for the keeper.
 */
int gp_control_end(struct gp_control *c, struct gp_error *err)
{
	int r = 0;

	gp_metrics_end(c);
	for (unsigned i = 0; i < c->nthreads; i++)
		gp_device_thread_stop(c->thread[i]);
	c->nthreads = 0;
	gp_gathers_end(c);
	gp_reload_end(c);
	gp_rpc_server_free(c->server);
	c->server = NULL;
	gp_sweeper_end(c);
	if (c->undo)
		r = gp_records_settle(c->undo, err);
	gp_procinfo_free(c->info);
	gp_accounts_free(&c->accounts);
	if (c->loop)
		gp_procs_free(&c->procs);
	gp_assignments_close(c->assignments);
	if (c->undo)
		gp_undo_scheduler_end(c->undo);
	gp_undo_close(c->undo);
	gp_config_free(c->config);
	gp_config_free(c->initial_config);
	if (c->wake_fd >= 0)
		close(c->wake_fd);
	sd_event_unref(c->loop);
	return r;
}
