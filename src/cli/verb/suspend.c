/* SPDX-License-Identifier: Apache-2.0 */
/* gpreempt suspend: holds processes until Ctrl-C, for a time, or through the daemon. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli/cli.h"
#include "cli/ask/with_daemon.h"
#include "cli/lib/hold_event.h"
#include "cli/lib/stop.h"
#include "cli/verb/suspend.h"
#include "hold/hold.h"

#define TICK_NS  (100 * GP_NS_PER_MS)
#define AGAIN_NS (5 * GP_NS_PER_MS)

enum { NO_DAEMON = 0x2000 };

static struct gp_suspend env = {.device = GP_DEVICES_MAX, .for_ns = GP_NEVER};

static const struct argp_option options[] = {
	{"device", 'd', "N", 0, "Only on this device; without a PID, all processes on it", 0},
	{"queue", 'q', "ID", 0, "Only this queue of the process (see gpreempt queues)", 0},
	{"for", 'f', "TIME", 0,
	 "Release after this time, such as 500ms, 10s or 2m (default: at Ctrl-C)", 0},
	{"type", 't', "NAME", 0,
	 "Preemption type: save (save running work at once; the default), drain (let short work "
	 "finish first), or another type that the GPU offers",
	 0},
	{"grace", 'g', "N", 0, "With drain: wait at most N times 1,000 GPU clocks, 1 to 255 (255)",
	 0},
	{"force", 'F', NULL, 0, "Hold also a server that works for many programs", 0},
	{"no-daemon", NO_DAEMON, NULL, 0, "Hold from this program, not through the daemon", 0},
	{"json", 'j', NULL, 0, "Write JSON: one object per line for each event", 0},
	{0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	switch (key) {
	case ARGP_KEY_INIT: gp_targets_init(&env.targets, GP_TARGETS_MAX, state); break;
	case 't': env.type = arg; break;
	case 'g':
		env.grace =
			(unsigned)gp_option_number(state, "--grace", arg, 1, GP_PREEMPT_GRACE_MAX);
		break;
	case 'd':
		env.device =
			(unsigned)gp_option_number(state, "--device", arg, 0, GP_DEVICES_MAX - 1);
		break;
	case 'q':
		env.queue = (uint32_t)gp_option_number(state, "--queue", arg, 0, GP_QUEUE_ALL - 1);
		env.one_queue = true;
		break;
	case 'f': env.for_ns = gp_option_duration(state, "--for", arg); break;
	case 'F': env.force = true; break;
	case 'j': env.json = true; break;
	case NO_DAEMON: env.no_daemon = true; break;
	case ARGP_KEY_END:
		if (!env.targets.n && env.device == GP_DEVICES_MAX)
			argp_error(state, "give a PID, or --device N for all processes on it");
		if (env.one_queue && env.targets.n != 1)
			argp_error(state, "--queue needs one PID");
		break;
	default: return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

/* The daemon holds whole processes, and on all devices. */
static bool is_for_daemon(void)
{
	return !env.no_daemon && !env.one_queue && env.device == GP_DEVICES_MAX && !env.type &&
	       !env.grace;
}

static void print_event(const struct gp_hold *h, enum gp_hold_event_kind kind, uint64_t ns)
{
	const struct gp_hold_event event = {
		.kind = kind,
		.pid = h->ref.seen.pid,
		.name = h->ref.seen.name,
		.device = (int)h->ref.device,
		.device_name = h->ref.gpu->info.name,
		.ns = ns,
		.again = h->again,
		.lifetime = env.for_ns == GP_NEVER ? GP_HOLD_UNTIL_SIGNAL : GP_HOLD_FOR_TIME,
		.for_ns = env.for_ns,
	};

	gp_hold_event_print(&event, env.json);
}

static uint64_t held_for(const struct gp_hold *h)
{
	return gp_monotonic_ns() - h->since_ns;
}

/* Drops tasks that have ended, and releases those whose release another process asks for. */
static int drop_gone(struct gp_holds *holds, struct gp_error *err)
{
	int r = 0;

	for (unsigned i = holds->n; i-- > 0 && !r;) {
		struct gp_hold h = holds->hold[i];
		bool ended = gp_hold_has_ended(holds, &holds->hold[i]);

		if (!ended && gp_hold_is_recorded(holds, &h))
			continue;
		r = gp_holds_remove(holds, i, err);
		if (!r)
			print_event(&h, ended ? GP_HOLD_ENDED : GP_HOLD_RESUMED, held_for(&h));
	}
	return r;
}

/* Holds tasks again that were released, or that have a new queue. */
static int hold_again(struct gp_holds *holds, struct gp_error *err)
{
	bool any = false;

	for (unsigned i = 0; i < holds->n; i++) {
		struct gp_hold *h = &holds->hold[i];

		if (h->held)
			continue;
		any = true;
		if (!h->again++)
			print_event(h, GP_HOLD_AGAIN, held_for(h));
	}
	if (!any)
		return 0;
	/* Limits the rate against a process that releases the task all the time. */
	gp_stop_sleep(gp_monotonic_ns() + AGAIN_NS);
	return gp_stop_asked() ? 0 : gp_holds_hold(holds, err);
}

static int hold_until_end(struct gp_holds *holds, struct gp_error *err)
{
	uint64_t end_ns = gp_time_add(gp_monotonic_ns(), env.for_ns);
	int r = 0;

	while (holds->n && !r && !gp_stop_asked()) {
		uint64_t now_ns = gp_monotonic_ns();

		if (now_ns >= end_ns)
			break;
		gp_holds_wait(holds, end_ns < now_ns + TICK_NS ? end_ns : now_ns + TICK_NS,
			      gp_stop_fd());
		gp_holds_heartbeat(holds);
		r = drop_gone(holds, err);
		gp_holds_refresh(holds);
		if (!r && !gp_stop_asked())
			r = hold_again(holds, err);
		if (r == -ESRCH) { /* the process has ended; drop_gone reports it */
			*err = (struct gp_error){0};
			r = 0;
		}
	}
	return r;
}

/* Fails with the preemption types of the device, or only those with a grace. */
static int refuse_type(const struct gp_gpu *gpu, bool with_grace, struct gp_error *err)
{
	unsigned n;
	const struct gp_preempt_type *type = gp_gpu_preempt_types(gpu, &n);
	char offered[128] = "";

	for (unsigned i = 0; i < n; i++)
		if (!with_grace || type[i].grace_max)
			snprintf(offered + strlen(offered), sizeof offered - strlen(offered),
				 "%s%s", *offered ? ", " : "", type[i].name);
	if (!with_grace)
		return gp_fail(err, -EINVAL, "%s has no preemption type '%s'; it offers: %s",
			       gpu->info.name, env.type, offered);
	if (*offered)
		return gp_fail(err, -EINVAL, "--grace goes with --type %s; leave it out", offered);
	return gp_fail(err, -EINVAL, "%s has no preemption type with a grace; leave out --grace",
		       gpu->info.name);
}

/* The device's type that --type names. Without --type it is the default, or with --grace the first
 * type that has one. NULL: the device has no such type. */
static const struct gp_preempt_type *find_type(const struct gp_preempt_type *type, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (env.type ? !strcmp(type[i].name, env.type) : !env.grace || type[i].grace_max)
			return &type[i];
	return NULL;
}

static int choose_type(const struct gp_hold *h, struct gp_error *err)
{
	struct gp_gpu *gpu = h->ref.gpu;
	unsigned n;
	const struct gp_preempt_type *offered = gp_gpu_preempt_types(gpu, &n);
	const struct gp_preempt_type *type = find_type(offered, n);
	int r;

	if (!type)
		return refuse_type(gpu, !env.type, err);
	if (env.grace > type->grace_max)
		return refuse_type(gpu, true, err);
	if (type == offered) /* a task that was just attached has the default */
		return 0;
	r = gp_gpu_set_preempt_type(gpu, h->handle, env.grace ? env.grace : type->value);
	return r ? gp_fail(err, r, "%s refuses preemption type %s: %s", gpu->info.name, type->name,
			   gp_error_name(r))
		 : 0;
}

static int choose_types(const struct gp_holds *holds, struct gp_error *err)
{
	int r = 0;

	for (unsigned i = 0; i < holds->n && !r; i++)
		r = choose_type(&holds->hold[i], err);
	return r;
}

static int suspend(struct gp_holds *holds, struct gp_error *err)
{
	int r = choose_types(holds, err);

	if (!r)
		r = gp_holds_hold(holds, err);
	for (unsigned i = 0; i < holds->n && !r; i++)
		print_event(&holds->hold[i], GP_HOLD_BEGAN, holds->hold[i].took_ns);
	return r ? r : hold_until_end(holds, err);
}

/* Releases everything, also after a failure. An earlier message in `err` is kept. */
static int release(struct gp_holds *holds, struct gp_error *err)
{
	int r = gp_holds_release(holds, err);

	for (unsigned i = 0; i < holds->n; i++) {
		const struct gp_hold *h = &holds->hold[i];

		if (h->status)
			fprintf(stderr,
				"gpreempt: process %d may still be held; run gpreempt "
				"resume %d\n",
				h->ref.seen.pid, h->ref.seen.pid);
		else if (h->since_ns)
			print_event(h, GP_HOLD_RELEASED, held_for(h));
	}
	return r;
}

static int run_on(const struct gp_devices *devices, struct gp_error *err)
{
	struct gp_task_refs list = {0};
	struct gp_holds holds = {0};
	int r = gp_suspend_choose(&env, devices, &list, err), last;

	if (!r) {
		r = gp_holds_begin(&holds, devices, list.ref, list.n, err);
		if (!r)
			r = suspend(&holds, err);
		last = release(&holds, err);
		r = r ? r : last;
		gp_holds_end(&holds);
	}
	free(list.ref);
	return r;
}

static int run(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		GP_TARGETS_ARGP("PID...\n--device N"),
		.doc = "Keep processes off the GPU. Their work waits and is not lost. The first "
		       "line says how long the hold lasts: until Ctrl-C, for the time of --for, "
		       "or, if a daemon runs, until gpreempt resume.\v"
		       "If this program is killed, gpreempt resume --all releases the "
		       "processes.\n\n"
		       "Examples:\n"
		       "  gpreempt suspend 4711\n"
		       "  gpreempt suspend 4711 4712 --for 10s\n"
		       "  gpreempt suspend 4711 --type drain --grace 50\n"
		       "  gpreempt suspend --device 0 --for 500ms\n",
	};
	struct gp_devices devices;
	struct gp_error err = {0};
	int r;

	argp_parse(&argp, argc, argv, 0, NULL, NULL);
	if (env.type && !strcmp(env.type, "reset")) {
		gp_fail(&err, -EINVAL,
			"--type reset is not offered: the program would lose its work; --type save "
			"keeps it");
		return gp_cli_fail(&err);
	}
	r = gp_stop_open();
	if (r < 0)
		gp_fail(&err, r, "cannot wait for signals: %s", gp_error_name(r));
	else
		r = gp_targets_resolve(&env.targets, &err);
	if (!r && is_for_daemon() &&
	    gp_daemon_suspend(&env.targets, env.for_ns, env.force, env.json, &r))
		return r;
	if (r >= 0)
		r = gp_devices_open(&devices, 0, &err);
	if (r < 0)
		return gp_cli_fail(&err);
	r = run_on(&devices, &err);
	gp_devices_close(&devices);
	return r ? gp_cli_fail(&err) : GP_EXIT_DONE;
}

const struct gp_verb gp_verb_suspend = {
	.name = "suspend",
	.summary = "keep processes off the GPU until Ctrl-C, for a time, or until resume",
	.run = run,
};
