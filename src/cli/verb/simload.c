/* SPDX-License-Identifier: Apache-2.0 */
/* gpreempt simload: a program that uses a simulated GPU, for tests and demonstrations. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hist.h"
#include "base/rng.h"
#include "cli/cli.h"
#include "cli/lib/fields.h"
#include "cli/lib/stop.h"
#include "cli/lib/options.h"
#include "gpu/simclient/connection.h"
#include "sim/model/sim_gpu.h"

enum when { CLOSED, PERIODIC, POISSON };

struct work {
	struct gp_simgpu_hello program;
	enum when when;
	uint64_t every_ns;
	uint32_t ahead; /* with CLOSED: number of queued requests */
	uint32_t kernels;
	uint64_t kernel_ns, gap_ns;
	uint64_t for_ns;   /* GP_NEVER: until a signal */
	uint64_t requests; /* 0: any number */
	uint64_t seed;
};

/* In shared memory; each process writes its own. */
struct result {
	atomic_bool is_ready; /* the context exists */
	uint64_t requests;    /* done */
	uint64_t left;        /* submitted, but not done at the end */
	uint64_t wrong;       /* requests with kernels that were not executed exactly once */
	uint64_t checksum;    /* of all values, in order */
	uint64_t took_ns;
	struct gp_hist response_ns;
	struct gp_hist device_ns; /* from arrival at the device until the end */
	struct gp_error err;
};

struct program {
	const struct work *work;
	struct result *result;
	struct gp_rng rng;
	int fd;
	uint64_t right; /* the expected result of each request */
	uint64_t begin_ns, end_ns;
	uint64_t submitted;  /* requests */
	uint64_t arrival_ns; /* of the next request */
	uint64_t last_done_ns;
	uint64_t since_ns[GP_SIMGPU_QUEUED]; /* start of the response time of each queued request */
};

static uint64_t draw_interval(struct program *p)
{
	return p->work->when == POISSON ? gp_rng_exponential(&p->rng, p->work->every_ns)
					: p->work->every_ns;
}

static uint64_t on_the_way(const struct program *p)
{
	return p->submitted - p->result->requests;
}

static bool is_complete(const struct program *p)
{
	return p->work->requests && p->submitted == p->work->requests;
}

/* The time of the next request; GP_NEVER: after a request is done. */
static uint64_t next_ns(const struct program *p)
{
	uint64_t most = p->work->when == CLOSED ? p->work->ahead : GP_SIMGPU_QUEUED;

	if (is_complete(p) || on_the_way(p) >= most)
		return GP_NEVER;
	return p->arrival_ns;
}

/* A response time begins at the scheduled arrival, also if the request was sent later. In a closed
 * loop a request arrives when it is sent, or when the previous request is done. */
static int submit(struct program *p, uint64_t now_ns)
{
	const struct work *w = p->work;
	int r = gp_simgpu_submit(p->fd, p->submitted, w->kernels, w->kernel_ns, w->gap_ns);

	if (r)
		return r;
	p->since_ns[p->submitted % GP_SIMGPU_QUEUED] = w->when == CLOSED ? now_ns : p->arrival_ns;
	p->submitted++;
	if (w->when == CLOSED)
		p->arrival_ns = now_ns;
	else
		p->arrival_ns += draw_interval(p);
	return 0;
}

static int submit_what_is_due(struct program *p)
{
	uint64_t now_ns = gp_monotonic_ns();
	int r = 0;

	while (!r && next_ns(p) <= now_ns && now_ns < p->end_ns)
		r = submit(p, now_ns);
	return r == -EAGAIN ? 0 : r; /* the socket is full; the end of a request makes room */
}

static int take_done(struct program *p)
{
	struct result *result = p->result;
	struct gp_simgpu_done done;
	uint64_t now_ns, since_ns;
	int r = gp_simgpu_take(p->fd, &done);

	if (r)
		return r;
	if (done.status)
		return gp_fail(&result->err, done.status, "the simulated GPU refused a request: %s",
			       gp_error_name(done.status));
	now_ns = gp_monotonic_ns();
	since_ns = p->since_ns[result->requests % GP_SIMGPU_QUEUED];
	if (p->work->when == CLOSED && since_ns < p->last_done_ns)
		since_ns = p->last_done_ns;
	p->last_done_ns = now_ns;
	gp_hist_add(&result->response_ns, now_ns > since_ns ? now_ns - since_ns : 0);
	gp_hist_add(&result->device_ns, done.done_ns - done.submitted_ns);
	/* Requests end in order. Another tag than the next means a lost or doubled request. */
	result->wrong += done.value != p->right || done.tag != result->requests;
	result->checksum = (result->checksum ^ done.value) * 0x9e3779b97f4a7c15ull + done.tag;
	result->requests++;
	return 0;
}

static int take_all_done(struct program *p)
{
	int r;

	while (!(r = take_done(p)))
		;
	return r == -EAGAIN ? 0 : r;
}

static bool is_over(const struct program *p)
{
	return gp_stop_asked() || gp_monotonic_ns() >= p->end_ns ||
	       (is_complete(p) && !on_the_way(p));
}

static void wait_for_events(const struct program *p)
{
	struct pollfd fds[2] = {{.fd = p->fd, .events = POLLIN},
				{.fd = gp_stop_fd(), .events = POLLIN}};
	uint64_t now_ns = gp_monotonic_ns(), until_ns = next_ns(p);
	struct timespec timeout;

	if (p->end_ns < until_ns)
		until_ns = p->end_ns;
	timeout = gp_timespec(until_ns > now_ns ? until_ns - now_ns : 0);
	ppoll(fds, 2, until_ns == GP_NEVER ? NULL : &timeout, NULL);
}

static int work_on(struct program *p)
{
	int r = 0;

	p->begin_ns = gp_monotonic_ns();
	p->end_ns = gp_time_add(p->begin_ns, p->work->for_ns);
	p->arrival_ns = p->begin_ns;
	if (p->work->when != CLOSED) /* a random phase: programs that start together must
						   not stay in step */
		p->arrival_ns += gp_rng_below(&p->rng, p->work->every_ns);
	while (!r && !is_over(p)) {
		r = submit_what_is_due(p);
		if (!r) {
			wait_for_events(p);
			r = take_all_done(p);
		}
	}
	p->result->took_ns = gp_monotonic_ns() - p->begin_ns;
	p->result->left = on_the_way(p);
	return r == -EIO ? gp_fail(&p->result->err, r, "the simulated GPU is gone") : r;
}

/* Runs until the work is done or a signal comes (cli/lib/stop.h). Calls `ready`, if not NULL, when
 * the context exists. 0 or -errno with a message in the result. */
static int run_program(const struct work *work, uint64_t stream, struct result *result,
		       void (*ready)(void))
{
	struct program p = {.work = work, .result = result};
	struct gp_simgpu_hello hello = work->program;
	char path[GP_SIMGPU_PATH_SIZE];
	int r;

	gp_hist_init(&result->response_ns);
	gp_hist_init(&result->device_ns);
	gp_rng_init(&p.rng, work->seed, stream);
	p.right = gp_sim_right_value(work->kernels, work->kernel_ns);
	p.fd = gp_simgpu_join(gp_simgpu_path(path, sizeof path), &hello, &result->err);
	if (p.fd < 0)
		return p.fd;
	result->is_ready = true;
	if (ready)
		ready();
	r = work_on(&p);
	close(p.fd);
	return r;
}

#define PROCESSES_MAX 1024
#define TICK_NS       (20 * GP_NS_PER_MS)

static struct {
	struct work work;
	uint32_t processes;
	uint32_t width; /* percent */
	uint64_t slice_ns, memory_mib;
	bool has_device, json;
} env = {
	.work = {.ahead = 2,
		 .kernels = 1,
		 .kernel_ns = GP_NS_PER_MS,
		 .for_ns = GP_NEVER,
		 .seed = 1},
	.processes = 1,
};

static void take_rhythm(struct argp_state *state, const char *option, enum when when,
			const char *arg)
{
	env.work.when = when;
	env.work.every_ns = gp_option_duration(state, option, arg);
	if (!env.work.every_ns)
		argp_error(state, "--%s takes a time, not 0", option);
}

static void take_every(struct argp_state *state, char *arg)
{
	take_rhythm(state, "every", PERIODIC, arg);
}

static void take_poisson(struct argp_state *state, char *arg)
{
	take_rhythm(state, "poisson", POISSON, arg);
}

static void take_closed(struct argp_state *state, char *arg)
{
	(void)state;
	(void)arg;
	env.work.when = CLOSED;
}

static void take_name(struct argp_state *state, char *arg)
{
	struct gp_simgpu_hello *program = &env.work.program;

	if (strlen(arg) >= sizeof program->name)
		argp_error(state, "--name takes at most %zu characters", sizeof program->name - 1);
	memcpy(program->name, arg, strlen(arg));
}

static const struct gp_option options[] = {
	{"device", 'd', "N", "Number of the simulated GPU (0)",
	 .number32 = &env.work.program.device, .max = GP_SIMGPU_DEVICES - 1,
	 .given = &env.has_device},
	{"name", 'n', "NAME", "Name of the program (default: that of the process)",
	 .call = take_name},
	{"every", 'e', "TIME", "Interval between requests", .call = take_every},
	{"poisson", 'p', "TIME", "Mean interval between requests that come at random",
	 .call = take_poisson},
	{"closed", 'c', NULL, "One request after the other (the default)", .call = take_closed},
	{"kernel", 'k', "TIME", "GPU time of a kernel (1ms)", .time_ns = &env.work.kernel_ns,
	 .min = 1},
	{"kernels", 'K', "N", "Kernels of a request, one after the other (1)",
	 .number32 = &env.work.kernels, .min = 1, .max = 1000000},
	{"gap", 'g', "TIME", "Host time between two kernels (0)", .time_ns = &env.work.gap_ns},
	{"ahead", 0, "N", "With --closed: requests queued at one time (2)",
	 .number32 = &env.work.ahead, .min = 1, .max = GP_SIMGPU_QUEUED},
	{"slice", 0, "TIME", "Time slice that the program sets for itself",
	 .time_ns = &env.slice_ns},
	{"width", 0, "PERCENT", "Part of the device that a kernel fills, on mi300x (100)",
	 .number32 = &env.width, .min = 1, .max = 100},
	{"memory", 0, "MIB", "GPU memory that the program reports", .number = &env.memory_mib,
	 .max = 1u << 30},
	{"for", 'f', "TIME", "End after this time, such as 500ms, 10s or 2m (default: at Ctrl-C)",
	 .time_ns = &env.work.for_ns},
	{"requests", 'r', "N", "End after this number of requests", .number = &env.work.requests,
	 .min = 1, .max = UINT32_MAX},
	{"processes", 'P', "N", "Number of processes (1)", .number32 = &env.processes, .min = 1,
	 .max = PROCESSES_MAX},
	{"seed", 0, "N", "Seed of the random numbers (1)", .number = &env.work.seed,
	 .max = UINT32_MAX},
	{"json", 'j', NULL, "Write JSON", .flag = &env.json},
	{0},
};

/* gpreempt run --gpu sets the variable. */
static void check(struct argp_state *state)
{
	struct gp_simgpu_hello *program = &env.work.program;
	const char *chosen = getenv("GPREEMPT_SIM_DEVICE");
	uint64_t device = 0;

	if (chosen && !gp_cli_number(chosen, GP_SIMGPU_DEVICES - 1, &device))
		argp_error(state, "GPREEMPT_SIM_DEVICE is a whole number from 0 to %d, not '%s'",
			   GP_SIMGPU_DEVICES - 1, chosen);
	if (chosen && !env.has_device)
		program->device = (uint32_t)device;
	program->slice_us = (uint32_t)(env.slice_ns / GP_NS_PER_US);
	program->width_permille = 10 * env.width;
	program->memory = env.memory_mib << 20;
}

/* Each process handles signals by itself: a signal for one does not end the others. */
static pid_t start_child(unsigned i, struct result *result)
{
	pid_t parent = getpid(), pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent || gp_stop_open() < 0)
		_exit(GP_EXIT_FAILED);
	_exit(run_program(&env.work, i, result, NULL) ? GP_EXIT_FAILED : GP_EXIT_DONE);
}

static bool all_ready(const struct result *result)
{
	for (unsigned i = 0; i < env.processes; i++)
		if (!result[i].is_ready)
			return false;
	return true;
}

static void print_ready(void)
{
	if (env.json)
		return;
	puts("ready");
	fflush(stdout); /* a reader may wait at a pipe */
}

static void wait_for_children(const pid_t *child, const struct result *result)
{
	unsigned left = env.processes;
	bool announced = false, stopping = false;

	for (unsigned i = 0; i < env.processes; i++)
		left -= child[i] <= 0;
	while (left) {
		pid_t pid = waitpid(-1, NULL, WNOHANG);

		if (pid > 0) {
			left--;
			continue;
		}
		if (!announced && all_ready(result)) {
			print_ready();
			announced = true;
		}
		if (gp_stop_sleep(gp_monotonic_ns() + TICK_NS) && !stopping) {
			for (unsigned i = 0; i < env.processes; i++)
				if (child[i] > 0)
					kill(child[i], SIGTERM);
			stopping = true;
		} else if (stopping) {
			usleep(1000);
		}
	}
}

static void run_children(struct result *result)
{
	pid_t child[PROCESSES_MAX] = {0};

	for (unsigned i = 0; i < env.processes; i++) {
		child[i] = start_child(i, &result[i]);
		if (child[i] < 0) {
			gp_fail(&result[i].err, -errno, "cannot start a process: %s",
				gp_error_name(-errno));
			break; /* the others run */
		}
	}
	wait_for_children(child, result);
}

static void add_up(struct result *sum, const struct result *result)
{
	gp_hist_init(&sum->response_ns);
	gp_hist_init(&sum->device_ns);
	for (unsigned i = 0; i < env.processes; i++) {
		const struct result *r = &result[i];

		sum->requests += r->requests;
		sum->left += r->left;
		sum->wrong += r->wrong;
		sum->checksum += r->checksum;
		sum->took_ns = r->took_ns > sum->took_ns ? r->took_ns : sum->took_ns;
		if (r->requests) {
			gp_hist_merge(&sum->response_ns, &r->response_ns);
			gp_hist_merge(&sum->device_ns, &r->device_ns);
		}
		if (r->err.code && !sum->err.code)
			sum->err = r->err;
	}
}

static double rate(const struct result *r)
{
	return r->took_ns ? (double)r->requests * 1e9 / (double)r->took_ns : 0;
}

/* The keys of times on the device have a prefix. */
static void add_times(struct json_object *o, bool device, const struct gp_hist *h)
{
	if (!h->count)
		return;
	gp_field_put_us(o, device ? "device_p50_us" : "p50_us", gp_hist_quantile(h, 500000));
	gp_field_put_us(o, device ? "device_p99_us" : "p99_us", gp_hist_quantile(h, 990000));
	gp_field_put_us(o, device ? "device_max_us" : "max_us", h->max);
}

static void print_json(const struct result *r)
{
	struct json_object *o = json_object_new_object();
	char checksum[24];

	snprintf(checksum, sizeof checksum, "%016llx", (unsigned long long)r->checksum);
	gp_field_put(o, "processes", env.processes);
	gp_field_put(o, "requests", r->requests);
	gp_field_put(o, "left", r->left);
	gp_field_put(o, "wrong", r->wrong);
	gp_field_put_decimal(o, "seconds", (double)r->took_ns / 1e9, 3);
	gp_field_put_decimal(o, "per_second", rate(r), 3);
	add_times(o, false, &r->response_ns);
	add_times(o, true, &r->device_ns);
	gp_field_put_text(o, "checksum", checksum);
	gp_print_json_once(o);
}

static void print_text(const struct result *r)
{
	const struct gp_hist *h = &r->response_ns;

	printf("%llu requests, %.1f/s", (unsigned long long)r->requests, rate(r));
	if (h->count)
		printf(", p50 %s, p99 %s, max %s",
		       gp_cli_duration(gp_hist_quantile(h, 500000)).text,
		       gp_cli_duration(gp_hist_quantile(h, 990000)).text,
		       gp_cli_duration(h->max).text);
	printf(", checksum %016llx\n", (unsigned long long)r->checksum);
	if (r->left)
		printf("%llu more were not done at the end\n", (unsigned long long)r->left);
}

static int finish(struct result *result)
{
	struct result sum = {0};

	add_up(&sum, result);
	if (sum.requests || !sum.err.code) {
		if (env.json)
			print_json(&sum);
		else
			print_text(&sum);
	}
	if (sum.wrong)
		fprintf(stderr, "gpreempt: %llu requests were lost, doubled or cut short\n",
			(unsigned long long)sum.wrong);
	if (sum.err.code)
		return gp_cli_fail(&sum.err);
	return sum.wrong ? GP_EXIT_FAILED : GP_EXIT_DONE;
}

static int run(struct gp_error *err)
{
	struct result *result;
	size_t bytes = env.processes * sizeof *result;
	int code;

	result = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (result == MAP_FAILED || gp_stop_open() < 0)
		return gp_fail(err, -ENOMEM, "no memory");
	if (env.processes == 1) /* the caller knows the pid of this process */
		run_program(&env.work, 0, result, print_ready);
	else
		run_children(result);
	code = finish(result);
	munmap(result, bytes);
	return code;
}

const struct gp_verb gp_verb_simload = {
	.name = "simload",
	.summary = "a program that uses a simulated GPU, for tests",
	.options = options,
	.check = check,
	.doc = "Use a simulated GPU as a program does, and measure the response times.\v"
	       "Needs gpreempt-simgpu. Prints `ready` when the context exists, and at the end the "
	       "number of requests, their rate and times, and a checksum of the results. The "
	       "checksum does not depend on holds or slices.\n\n"
	       "Examples:\n"
	       "  gpreempt simload --kernel 10ms\n"
	       "  gpreempt simload --kernel 100us --every 3ms --for 10s\n",
	.run = run,
};
