/* SPDX-License-Identifier: Apache-2.0 */
/* gpreempt monitor: samples the queues of a process and reports how stable they are. */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/process.h"
#include "cli/cli.h"
#include "cli/verb/monitor.h"
#include "cli/lib/progress.h"
#include "cli/lib/stop.h"
#include "cli/lib/targets.h"

static struct {
	struct gp_targets targets;
	bool json, closely;
	const char *plot;
	uint64_t for_ns, every_ns;
} env = {.for_ns = 30 * GP_NS_PER_S, .every_ns = GP_NS_PER_S};

static const struct argp_option options[] = {
	{"for", 'f', "TIME", 0, "Sample for this time (30s); Ctrl-C ends it earlier", 0},
	{"every", 'e', "TIME", 0, "Interval between samples (1s)", 0},
	{"plot", 'p', "FILE.svg", 0, "Draw the number of queues over time", 0},
	{"closely", 'c', NULL, 0, "Attach to the process where that shows more", 0},
	{"json", 'j', NULL, 0, "Write JSON", 0},
	{0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	switch (key) {
	case ARGP_KEY_INIT: gp_targets_init(&env.targets, 1, state); break;
	case 'f': env.for_ns = gp_option_duration(state, "--for", arg); break;
	case 'e':
		env.every_ns = gp_option_duration(state, "--every", arg);
		if (env.every_ns < GP_NS_PER_MS)
			argp_error(state, "--every takes 1ms or more, not '%s'", arg);
		break;
	case 'p': env.plot = arg; break;
	case 'c': env.closely = true; break;
	case 'j': env.json = true; break;
	default: return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static int close_sample(struct gp_monitor *m, uint64_t now_ns, struct gp_error *err)
{
	const struct gp_queue_counts *c = &m->counts;

	gp_queue_counts_close(&m->counts);
	m->last_ns = now_ns;
	gp_progress("sample %u: %u queue%s", c->samples, c->all.last, c->all.last == 1 ? "" : "s");
	if (env.plot && gp_monitor_plot_sample(m))
		return gp_fail(err, -ENOMEM, "no memory");
	return 0;
}

static int sample_ref(struct gp_monitor *m, const struct gp_task_ref *ref, uint64_t now_ns,
		      struct gp_error *err)
{
	struct gp_task_ref *known = &m->ref[ref->device];
	struct gp_queue *queue;
	int n = gp_task_ref_queues(ref, env.closely, &queue, err), r = 0;

	for (int i = 0; i < n && !r; i++)
		r = gp_queue_counts_note(&m->counts, ref->device, &queue[i], now_ns);
	free(queue);
	if (r)
		return gp_fail(err, r, "no memory");
	if (!known->gpu)
		gp_share_begin(&m->share[ref->device], ref);
	*known = *ref;
	gp_share_tick(&m->share[ref->device], ref);
	snprintf(m->name, sizeof m->name, "%s", ref->seen.name);
	return n < 0 ? n : 0;
}

/* A sample without queues counts: queues may come later. */
static int sample(struct gp_monitor *m, pid_t pid, struct gp_error *err)
{
	struct gp_task_ref ref[GP_DEVICES_MAX];
	struct gp_error why = {0};
	uint64_t now_ns = gp_monotonic_ns();
	int n = gp_devices_find_any(m->devices, pid, ref, GP_DEVICES_MAX, &why), r = 0;

	if (n < 0 && n != -ENODEV)
		return gp_fail(err, n, "%s", why.text);
	m->begin_ns = m->begin_ns ? m->begin_ns : now_ns;
	for (int i = 0; i < n && (!r || r == -ESRCH); i++)
		r = sample_ref(m, &ref[i], now_ns, &why);
	if (r && r != -ESRCH)
		return gp_fail(err, r, "%s", why.text);
	return close_sample(m, now_ns, err);
}

static int watch(struct gp_monitor *m, pid_t pid, struct gp_error *err)
{
	uint64_t next_ns = gp_monotonic_ns();
	uint64_t end_ns = gp_time_add(next_ns, env.for_ns);
	int r;

	do {
		r = sample(m, pid, err);
		next_ns = gp_time_add(next_ns, env.every_ns);
	} while (!r && next_ns <= end_ns && !gp_stop_sleep(next_ns));
	gp_progress_end();
	if (r == -ESRCH && m->counts.samples) {
		m->ended = true;
		*err = (struct gp_error){0};
		return 0;
	}
	return r;
}

static void forget(struct gp_monitor *m)
{
	for (unsigned i = 0; i < m->devices->n; i++)
		gp_share_end(&m->share[i], &m->ref[i]);
	for (unsigned i = 0; i < m->nlines; i++)
		free(m->line[i].step);
	free(m->line);
	gp_queue_counts_free(&m->counts);
	free(m);
}

static int compare_queues(const void *a, const void *b)
{
	const struct gp_queue_counts_queue *p = a, *q = b;

	if (p->device != q->device)
		return p->device < q->device ? -1 : 1;
	return p->queue.id < q->queue.id ? -1 : p->queue.id > q->queue.id;
}

static int monitor(const struct gp_devices *devices, pid_t pid, struct gp_out_file *plot,
		   struct gp_error *err)
{
	struct gp_monitor *m = calloc(1, sizeof *m);
	int r;

	if (!m)
		return gp_fail(err, -ENOMEM, "no memory");
	m->devices = devices;
	gp_process_name(pid, m->name, sizeof m->name);
	r = watch(m, pid, err);
	if (!r && !m->counts.nseries)
		r = gp_fail(err, -ENODEV, "process %d had no queues in %u sample%s", pid,
			    m->counts.samples, m->counts.samples == 1 ? "" : "s");
	if (!r) {
		qsort(m->counts.queue, m->counts.nqueues, sizeof *m->counts.queue, compare_queues);
		(env.json ? gp_monitor_json : gp_monitor_print)(m, pid);
		if (plot->out)
			r = gp_monitor_plot_write(m, pid, env.plot, plot, err);
	}
	forget(m);
	return r;
}

static const struct argp argp = {
	.options = options,
	.parser = parse,
	GP_TARGETS_ARGP("PID"),
	.doc = "Sample the queues of a process: number, stability, slices, share of the "
	       "GPU, and what that means for scheduling the process.\v"
	       "Examples:\n"
	       "  gpreempt monitor 4711 --for 30s --every 5s\n"
	       "  gpreempt monitor 4711 --for 10s --every 200ms --plot queues.svg\n",
};

static int run(int argc, char **argv)
{
	struct gp_devices devices;
	struct gp_error err = {0};
	struct gp_out_file plot = {0};
	int r;

	argp_parse(&argp, argc, argv, 0, NULL, NULL);
	if (gp_targets_open(&env.targets, &devices, &err))
		return gp_cli_fail(&err);
	r = gp_stop_open();
	if (r < 0)
		gp_fail(&err, r, "cannot wait for signals: %s", gp_error_name(r));
	else if (env.plot)
		r = gp_monitor_plot_open(&plot, env.plot, &err);
	if (r >= 0)
		r = monitor(&devices, env.targets.pid[0], &plot, &err);
	gp_out_drop(&plot);
	gp_devices_close(&devices);
	return r ? gp_cli_fail(&err) : GP_EXIT_DONE;
}

const struct gp_verb gp_verb_monitor = {
	.name = "monitor",
	.summary = "sample the queues of a process: number and stability",
	.run = run,
};
