/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rm-load: stands for a CUDA program on the emulator: makes what libcuda makes, keeps the GPU busy,
 * and checks at its end that no work was lost or done twice.
 */
#include <argp.h>
#include <err.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "load.h"

#define LIBCUDA_HANDLES 0x5c000002u /* its first device; subdevice and groups follow */
#define DEPTH           4u          /* kernels in the queue: the GPU is never idle in between */
#define DRAIN_NS        (10 * GP_NS_PER_S)

static struct env {
	uint64_t kernel_us, period_us, count, memory;
	double seconds;
	uint32_t contexts, gpus;
	uint64_t grow_ms, shrink_ms, reset_ms;
	uint32_t handles;
	bool random_handles, no_compute, idle, fork, mps;
	long drop_to;
} env = {.kernel_us = 1000, .contexts = 1, .gpus = 1, .handles = LIBCUDA_HANDLES, .drop_to = -1};

static volatile sig_atomic_t stopped;

enum {
	OPT_GROW = 256,
	OPT_SHRINK,
	OPT_RESET,
	OPT_FORK,
	OPT_DROP,
	OPT_NO_COMPUTE,
	OPT_MPS,
	OPT_HANDLES,
	OPT_IDLE,
};

static const struct argp_option options[] = {
	{"kernel-us", 'k', "US", 0, "GPU time of a kernel (1000)", 0},
	{"period-us", 'p', "US", 0, "Interval between kernels (default: one after the other)", 0},
	{"count", 'n', "N", 0, "End after N kernels", 0},
	{"seconds", 's', "S", 0, "End after this time (else SIGTERM)", 0},
	{"memory", 'm', "BYTES", 0, "GPU memory to allocate on each GPU", 0},
	{"contexts", 'c', "N", 0, "Contexts, spread over the GPUs (1)", 0},
	{"gpus", 'g', "N", 0, "Use the first N GPUs (1)", 0},
	{"handles", OPT_HANDLES, "BASE|random", 0, "Names of objects (as libcuda: 0x5c000002)", 0},
	{"idle", OPT_IDLE, NULL, 0, "Submit nothing", 0},
	{"grow", OPT_GROW, "MS", 0, "Another context after this time", 0},
	{"shrink", OPT_SHRINK, "MS", 0, "One context less after this time", 0},
	{"reset-slice", OPT_RESET, "MS", 0, "Set its own slice back this often, as CUDA might", 0},
	{"fork", OPT_FORK, NULL, 0, "Leave a child that shares the open file", 0},
	{"drop-to", OPT_DROP, "UID", 0, "Become this user first", 0},
	{"no-compute", OPT_NO_COMPUTE, NULL, 0, "Only copy groups, as an X server", 0},
	{"mps", OPT_MPS, NULL, 0, "Call itself as the MPS server does", 0},
	{0},
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	(void)state;
	switch (key) {
	case 'k': env.kernel_us = strtoull(arg, NULL, 0); break;
	case 'p': env.period_us = strtoull(arg, NULL, 0); break;
	case 'n': env.count = strtoull(arg, NULL, 0); break;
	case 's': env.seconds = strtod(arg, NULL); break;
	case 'm': env.memory = strtoull(arg, NULL, 0); break;
	case 'c': env.contexts = (uint32_t)strtoul(arg, NULL, 0); break;
	case 'g': env.gpus = (uint32_t)strtoul(arg, NULL, 0); break;
	case OPT_HANDLES:
		env.random_handles = !strcmp(arg, "random");
		if (!env.random_handles)
			env.handles = (uint32_t)strtoul(arg, NULL, 0);
		break;
	case OPT_IDLE: env.idle = true; break;
	case OPT_GROW: env.grow_ms = strtoull(arg, NULL, 0); break;
	case OPT_SHRINK: env.shrink_ms = strtoull(arg, NULL, 0); break;
	case OPT_RESET: env.reset_ms = strtoull(arg, NULL, 0); break;
	case OPT_FORK: env.fork = true; break;
	case OPT_DROP: env.drop_to = strtol(arg, NULL, 0); break;
	case OPT_NO_COMPUTE: env.no_compute = true; break;
	case OPT_MPS: env.mps = true; break;
	default: return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static const struct argp argp = {
	.options = options,
	.parser = parse_option,
	.doc = "Works on the GPU behind GPREEMPT_NVIDIACTL. Prints `ready PID`, and at its end "
	       "what "
	       "was done; exit 1 if work was lost or done twice.",
};

static uint64_t now_ns(void)
{
	return gp_monotonic_ns();
}

static void on_signal(int number)
{
	(void)number;
	stopped = 1;
}

static bool is_over(const struct program *p, uint64_t start_ns)
{
	if (stopped || (env.seconds > 0 &&
			now_ns() - start_ns >= (uint64_t)(env.seconds * (double)GP_NS_PER_S)))
		return true;
	return env.count && p->context[0].submitted >= env.count;
}

/* An event that happens once or at an interval. */
struct plan {
	uint64_t grow_ns, shrink_ns, reset_ns; /* when; GP_NEVER: not (any more) */
};

static uint64_t first(uint64_t start_ns, uint64_t ms)
{
	return ms ? start_ns + ms * GP_NS_PER_MS : GP_NEVER;
}

static void follow_plan(struct program *p, struct plan *plan)
{
	uint64_t t = now_ns();

	if (t >= plan->grow_ns) {
		context_add(p);
		plan->grow_ns = GP_NEVER;
	}
	if (t >= plan->shrink_ns && p->ncontexts > 1) {
		context_remove(p);
		plan->shrink_ns = GP_NEVER;
	}
	if (t >= plan->reset_ns) {
		for (uint32_t i = 0; i < p->ncontexts; i++)
			context_set_slice(p, &p->context[i], 2048);
		plan->reset_ns = t + env.reset_ms * GP_NS_PER_MS;
	}
}

/* Keeps every context's queue full, then waits for the first one. */
static void fill_queues(struct program *p)
{
	uint64_t waits_for;

	for (uint32_t i = 0; i < p->ncontexts; i++) {
		struct context *c = &p->context[i];
		uint64_t done = context_query(p, c, 0, 0).done;

		while (c->submitted < done + DEPTH && !(env.count && c->submitted >= env.count))
			context_submit(p, c, env.kernel_us * GP_NS_PER_US);
	}
	waits_for = p->context[0].submitted - (env.count ? 0 : DEPTH - 1);
	context_query(p, &p->context[0], waits_for, 20000);
}

static void work_periodically(struct program *p, uint64_t *next_ns)
{
	uint64_t t = now_ns();

	while (*next_ns <= t) {
		for (uint32_t i = 0; i < p->ncontexts; i++)
			context_submit(p, &p->context[i], env.kernel_us * GP_NS_PER_US);
		*next_ns += env.period_us * GP_NS_PER_US;
	}
	usleep((useconds_t)((*next_ns - t) / GP_NS_PER_US < 20000 ? (*next_ns - t) / GP_NS_PER_US
								  : 20000));
}

static void work(struct program *p)
{
	uint64_t start_ns = now_ns(), next_ns = start_ns;
	struct plan plan = {first(start_ns, env.grow_ms), first(start_ns, env.shrink_ms),
			    first(start_ns, env.reset_ms)};

	while (!is_over(p, start_ns)) {
		follow_plan(p, &plan);
		if (env.idle)
			usleep(5000);
		else if (env.period_us)
			work_periodically(p, &next_ns);
		else
			fill_queues(p);
	}
}

/* Lets the context finish what it has, and compares. A context that stays held is no error. */
static bool check(const struct program *p, const struct context *c)
{
	uint64_t deadline_ns = now_ns() + DRAIN_NS;
	struct emu_query query;
	bool right;

	do {
		query = context_query(p, c, c->submitted, 20000);
	} while (query.done < c->submitted && now_ns() < deadline_ns);
	right = query.done == c->submitted && query.digest == c->digest;
	printf("context gpu %u kernels %lu run_ns %lu checksum %s\n", c->gpu, query.done,
	       query.run_ns,
	       right                       ? "ok"
	       : query.done < c->submitted ? "unfinished"
					   : "WRONG");
	return right;
}

static void become_user(void)
{
	if (env.mps)
		prctl(PR_SET_NAME, "nvidia-cuda-mps-server");
	if (env.drop_to < 0)
		return;
	if (setgid((gid_t)env.drop_to) || setuid((uid_t)env.drop_to))
		err(1, "setuid");
	prctl(PR_SET_DUMPABLE, 1);
}

/* A child that does nothing but keep the file open, until its parent and it are stopped. */
static void leave_child(void)
{
	pid_t child = fork();

	if (child < 0)
		err(1, "fork");
	if (!child) {
		while (!stopped)
			pause();
		_exit(0);
	}
	printf("child %d\n", child);
}

/* SIGUSR1: the process goes on with another program, which uses no GPU. */
static void on_execute(int number)
{
	(void)number;
	execl("/bin/sleep", "sleep", "600", NULL);
}

int main(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = on_signal};
	static struct program p;
	bool right = true;

	if (argp_parse(&argp, argc, argv, 0, NULL, NULL))
		return 2;
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	action.sa_handler = on_execute;
	sigaction(SIGUSR1, &action, NULL);
	become_user();
	p = (struct program){.next_handle = env.handles,
			     .random_handles = env.random_handles,
			     .seed = (uint64_t)getpid(),
			     .gpus = env.gpus,
			     .computes = !env.no_compute};
	program_open(&p, env.memory);
	for (uint32_t i = 0; i < env.contexts; i++)
		context_add(&p);
	if (env.fork)
		leave_child();
	printf("ready %d\n", getpid());
	fflush(stdout);
	work(&p);
	for (uint32_t i = 0; i < p.ncontexts; i++)
		right = check(&p, &p.context[i]) && right;
	return !right;
}
