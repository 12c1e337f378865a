/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kfd-load: stands for a ROCm program on the emulator: makes queues as ROCr does, keeps them busy,
 * and checks at its end that no packet was lost or executed twice.
 */
#include <argp.h>
#include <err.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "load_queue.h"

#define MAX_QUEUES 256u
#define DEPTH      8u /* packets in a ring: the GPU is never idle in between */
#define DRAIN_NS   (30 * GP_NS_PER_S)
#define LOOK_US    50u /* between two looks at a request, and */
#define LOOK_SHARE 16u /* a part of the time that it has taken: it may be held */

static struct env {
	uint32_t queues, gpu, type, priority, steps;
	uint64_t packets; /* of each queue; 0: for ever */
	uint64_t period_us;
	uint64_t churn_ms;
	double seconds;
	bool no_runtime, idle;
	long drop_to;
} env = {.queues = 1, .type = KFD_QUEUE_COMPUTE_AQL, .priority = 7, .steps = 1, .drop_to = -1};

static volatile sig_atomic_t stopped;
static uint64_t done, wrong; /* of queues that are gone */

enum { OPT_NO_RUNTIME = 256, OPT_CHURN, OPT_IDLE, OPT_PRIORITY, OPT_DROP, OPT_SECONDS };

static const struct argp_option options[] = {
	{"queues", 'q', "N", 0, "So many queues (1)", 0},
	{"gpu", 'g', "I", 0, "On the I-th GPU (0)", 0},
	{"type", 't', "aql|pm4|sdma", 0, "Of queues (aql)", 0},
	{"priority", OPT_PRIORITY, "0-15", 0, "Of queues (7)", 0},
	{"packets", 'n', "N", 0, "End after N packets in each queue (default: at SIGTERM)", 0},
	{"steps", 's', "N", 0, "Steps of a packet (1)", 0},
	{"seconds", OPT_SECONDS, "S", 0, "End after this time", 0},
	{"period", 'p', "US", 0,
	 "Submit a packet at this interval and wait for it; prints `latency US`", 0},
	{"idle", OPT_IDLE, NULL, 0, "Submit nothing", 0},
	{"churn", OPT_CHURN, "MS", 0, "Destroy a queue and create it again at this interval", 0},
	{"no-runtime", OPT_NO_RUNTIME, NULL, 0, "Without RUNTIME_ENABLE, as programs without ROCr",
	 0},
	{"drop-to", OPT_DROP, "UID", 0, "Become this user first", 0},
	{0},
};

static uint32_t parse_type(const char *arg, struct argp_state *state)
{
	if (!strcmp(arg, "aql"))
		return KFD_QUEUE_COMPUTE_AQL;
	if (!strcmp(arg, "pm4"))
		return KFD_QUEUE_COMPUTE;
	if (strcmp(arg, "sdma") != 0)
		argp_error(state, "no such type: %s", arg);
	return KFD_QUEUE_SDMA;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	switch (key) {
	case 'q': env.queues = (uint32_t)strtoul(arg, NULL, 0); break;
	case 'g': env.gpu = (uint32_t)strtoul(arg, NULL, 0); break;
	case 't': env.type = parse_type(arg, state); break;
	case OPT_PRIORITY: env.priority = (uint32_t)strtoul(arg, NULL, 0); break;
	case 'n': env.packets = strtoull(arg, NULL, 0); break;
	case 's': env.steps = (uint32_t)strtoul(arg, NULL, 0); break;
	case OPT_SECONDS: env.seconds = strtod(arg, NULL); break;
	case 'p': env.period_us = strtoull(arg, NULL, 0); break;
	case OPT_IDLE: env.idle = true; break;
	case OPT_CHURN: env.churn_ms = strtoull(arg, NULL, 0); break;
	case OPT_NO_RUNTIME: env.no_runtime = true; break;
	case OPT_DROP: env.drop_to = strtol(arg, NULL, 0); break;
	case ARGP_KEY_END:
		if (!env.queues || env.queues > MAX_QUEUES)
			argp_error(state, "1 to %u queues", MAX_QUEUES);
		break;
	default: return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static const struct argp argp = {
	.options = options,
	.parser = parse_option,
	.doc = "Works on the GPU behind GPREEMPT_KFD and GPREEMPT_KFD_SYSFS. Prints `ready PID`, "
	       "and at its end `done PACKETS wrong QUEUES`; exit 3 if a packet was lost, executed "
	       "twice or not finished within 30 s.",
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

static void pause_us(uint64_t us)
{
	struct timespec time = {.tv_sec = (time_t)(us / 1000000),
				.tv_nsec = (long)(us % 1000000) * 1000};

	nanosleep(&time, NULL);
}

static bool is_over(const struct load_queue *q, uint64_t start_ns)
{
	if (stopped || (env.seconds > 0 &&
			now_ns() - start_ns >= (uint64_t)(env.seconds * (double)GP_NS_PER_S)))
		return true;
	for (uint32_t i = 0; i < env.queues; i++)
		if (!env.packets || q[i].submitted < env.packets)
			return false;
	return true;
}

/* At most DEPTH packets per call. If a doorbell takes longer than a packet (a slow machine, a
 * sanitizer), the first queue would always have room, and SIGTERM would not be noticed. */
static void fill_queues(int fd, struct load_queue *q)
{
	for (uint32_t i = 0; i < env.queues; i++)
		for (unsigned k = 0; k < DEPTH; k++)
			if (queue_room(&q[i]) && q[i].submitted < q[i].results->completed + DEPTH &&
			    (!env.packets || q[i].submitted < env.packets))
				queue_submit(fd, &q[i], env.steps);
	pause_us(env.steps < 8 ? 200 : 25ull * env.steps); /* a quarter of a packet, by default */
}

/* A request: a packet in each queue, done when the last of them is. */
static void serve_request(int fd, struct load_queue *q, uint64_t *next_ns)
{
	uint64_t start_ns = now_ns();
	bool finished = false;

	if (start_ns < *next_ns) {
		pause_us((*next_ns - start_ns) / GP_NS_PER_US);
		return;
	}
	for (uint32_t i = 0; i < env.queues; i++)
		queue_submit(fd, &q[i], env.steps);
	while (!finished && !stopped) {
		finished = true;
		for (uint32_t i = 0; i < env.queues; i++)
			finished = finished && queue_is_done(&q[i]);
		if (!finished)
			pause_us(LOOK_US + (now_ns() - start_ns) / (LOOK_SHARE * GP_NS_PER_US));
	}
	if (finished)
		printf("latency %llu\n", (now_ns() - start_ns) / GP_NS_PER_US);
	fflush(stdout);
	*next_ns += env.period_us * GP_NS_PER_US;
	if (*next_ns < now_ns())
		*next_ns = now_ns();
}

/* Lets it finish what it has; then adds it to the result. */
static void finish(int fd, struct load_queue *q)
{
	uint64_t deadline_ns = now_ns() + DRAIN_NS;

	while (!queue_is_done(q) && now_ns() < deadline_ns)
		pause_us(200);
	done += q->results->completed;
	if (!queue_is_right(q)) {
		wrong++;
		printf("queue %u: submitted %lu completed %lu rptr %lu sum %s\n", q->id,
		       q->submitted, q->results->completed, q->results->rptr,
		       q->results->accumulator == q->expected ? "right" : "wrong");
	}
	queue_close(fd, q);
}

static void work(int fd, const struct gpu *gpu, struct load_queue *q)
{
	uint64_t start_ns = now_ns(), next_ns = start_ns, churned_ns = start_ns;
	uint32_t victim = 0;

	while (!is_over(q, start_ns)) {
		if (env.churn_ms && now_ns() - churned_ns >= env.churn_ms * GP_NS_PER_MS) {
			finish(fd, &q[victim]);
			queue_open(fd, gpu, &q[victim], env.type, env.priority);
			victim = (victim + 1) % env.queues;
			churned_ns = now_ns();
		}
		if (env.idle)
			pause_us(5000);
		else if (env.period_us)
			serve_request(fd, q, &next_ns);
		else
			fill_queues(fd, q);
	}
}

static void become_user(void)
{
	if (env.drop_to < 0)
		return;
	if (setgid((gid_t)env.drop_to) || setuid((uid_t)env.drop_to))
		err(1, "setuid");
	prctl(PR_SET_DUMPABLE, 1);
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
	static struct load_queue queues[MAX_QUEUES];
	struct gpu gpu;
	int fd;

	if (argp_parse(&argp, argc, argv, 0, NULL, NULL))
		return 2;
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	action.sa_handler = on_execute;
	sigaction(SIGUSR1, &action, NULL);
	become_user();
	fd = load_open();
	gpu = load_gpu(fd, env.gpu);
	if (!env.no_runtime)
		load_runtime(fd, true);
	for (uint32_t i = 0; i < env.queues; i++)
		queue_open(fd, &gpu, &queues[i], env.type, env.priority);
	printf("ready %d\n", getpid());
	fflush(stdout);
	work(fd, &gpu, queues);
	for (uint32_t i = 0; i < env.queues; i++)
		finish(fd, &queues[i]);
	if (!env.no_runtime)
		load_runtime(fd, false);
	printf("done %lu wrong %lu\n", done, wrong);
	return wrong ? 3 : 0;
}
