/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures the simulated GPU in real time: the cost of observing 128 tasks, and the time from a
 * change of activity on the device until the scheduler is awake. The same run measures two
 * references: a bare eventfd that wakes another process, and a process that waits for a timer and
 * then writes to an eventfd. The latter is the least that any server can do. Exits with 1 if an
 * observation allocates, or if the median is more than twice that of the bare process.
 */
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hist.h"
#include "children.h"
#include "count_alloc.h"
#include "gpu/simclient/simclient_device.h"
#include "gpu/simclient/connection.h"
#include "sim/server/sim_server.h"

#define TASKS     128
#define LOOKS     20000
#define ROUNDS    2000
#define KERNEL_NS (1 * GP_NS_PER_MS)
#define LEAD_NS   (200 * GP_NS_PER_US) /* from the start of a round to the bare timer */

static char folder[] = "/tmp/bench-simgpu-XXXXXX", path[64];

/* Other processes. */

static void serve(void *arg)
{
	struct gp_sim_device model = gp_sim_h200;
	struct gp_sim_server_config config = {
		.path = path, .model = &model, .model_name = "H200", .devices = 1, .seed = 1};
	struct server *server;

	(void)arg;
	model.activity = GP_ACTIVITY_EVENTS;
	if (!gp_sim_server_new(&config, &server, NULL))
		gp_sim_server_run(server);
}

static void have_a_context(void *arg)
{
	struct gp_simgpu_hello hello = {.name = "idle"};

	(void)arg;
	if (gp_simgpu_join(path, &hello, NULL) >= 0)
		pause();
}

/* What the bare process is told, and where it reports when its timer was due. */
struct bare {
	int timer_fd, event_fd;
	uint64_t at_ns;    /* when it is due */
	uint64_t woken_ns; /* when it wrote */
};

static void relay(void *arg)
{
	struct bare *b = arg;
	uint64_t count;

	for (;;)
		if (read(b->timer_fd, &count, sizeof count) == sizeof count) {
			b->woken_ns = now();
			eventfd_write(b->event_fd, 1);
		}
}

/* Measuring. */

static void wait_for(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	uint64_t count;

	if (poll(&p, 1, 10000) != 1)
		give_up("no event for 10 s");
	if (read(fd, &count, sizeof count) != sizeof count)
		give_up("reading the event failed");
}

static void drain(int fd)
{
	uint64_t count;

	while (read(fd, &count, sizeof count) == sizeof count)
		;
}

static bool measure_observations(struct gp_gpu *gpu)
{
	static struct gp_seen seen[TASKS];
	static struct gp_observation o[TASKS];
	uint64_t begin_ns, observe_ns, scan_ns, allocations;

	for (unsigned tries = 0; gp_gpu_scan(gpu, now(), seen, TASKS) < TASKS; tries++) {
		if (tries > 10000)
			give_up("the programs are not found");
		usleep(1000);
	}
	for (unsigned i = 0; i < TASKS; i++)
		if (gp_gpu_attach(gpu, seen[i].key, &o[i].handle))
			give_up("attach");
	allocations = bench_allocations();
	begin_ns = now();
	for (unsigned i = 0; i < LOOKS; i++)
		gp_gpu_observe(gpu, begin_ns, o, TASKS);
	observe_ns = (now() - begin_ns) / LOOKS;
	begin_ns = now();
	for (unsigned i = 0; i < LOOKS; i++)
		gp_gpu_scan(gpu, begin_ns, seen, TASKS);
	scan_ns = (now() - begin_ns) / LOOKS;
	allocations = bench_allocations() - allocations;
	printf("%u tasks  observe %.1f us (%.0f ns per task)  scan %.1f us  %llu allocations\n",
	       TASKS, (double)observe_ns / 1e3, (double)observe_ns / TASKS, (double)scan_ns / 1e3,
	       (unsigned long long)allocations);
	for (unsigned i = 0; i < TASKS; i++)
		gp_gpu_detach(gpu, o[i].handle);
	return !allocations;
}

/* One request on an idle device: the time from the begin of its kernel on the device until it is
 * known here. If this process wakes up after the kernel's end, it was late by that much. */
static uint64_t measure_event(struct gp_gpu *gpu, int program, uint32_t handle)
{
	struct gp_observation o = {.handle = handle};
	uint64_t woken_ns, since_ns = 0;
	struct gp_simgpu_done done;
	bool is_done;

	if (gp_simgpu_submit(program, 1, 1, KERNEL_NS, 0))
		give_up("submit");
	do {
		wait_for(gp_gpu_event_fd(gpu));
		woken_ns = now();
		gp_gpu_observe(gpu, woken_ns, &o, 1);
		is_done = !o.active && !gp_simgpu_take(program, &done);
		if (o.active)
			since_ns = o.active_since_ns;
		else if (is_done)
			since_ns = done.done_ns - KERNEL_NS;
	} while (!since_ns);
	while (!is_done) {
		struct pollfd p = {.fd = program, .events = POLLIN};

		poll(&p, 1, 10000);
		is_done = !gp_simgpu_take(program, &done);
	}
	do
		gp_gpu_observe(gpu, now(), &o, 1);
	while (o.active);
	drain(gp_gpu_event_fd(gpu));
	return woken_ns - since_ns;
}

static void measure_bare(struct bare *b, struct gp_hist *event, struct gp_hist *chain)
{
	struct itimerspec when = {0};
	uint64_t woken_ns;

	b->at_ns = now() + LEAD_NS;
	when.it_value = gp_timespec(b->at_ns);
	timerfd_settime(b->timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
	wait_for(b->event_fd);
	woken_ns = now();
	gp_hist_add(event, woken_ns - b->woken_ns);
	gp_hist_add(chain, woken_ns - b->at_ns);
}

static void print_times(const char *what, const struct gp_hist *h, const struct gp_hist *bare)
{
	uint64_t p50 = gp_hist_quantile(h, 500000), p99 = gp_hist_quantile(h, 990000);

	printf("%-34s p50 %6.1f us  p99 %6.1f us", what, (double)p50 / 1e3, (double)p99 / 1e3);
	if (bare)
		printf("  %.2f and %.2f times the bare timer",
		       (double)p50 / (double)gp_hist_quantile(bare, 500000),
		       (double)p99 / (double)gp_hist_quantile(bare, 990000));
	putchar('\n');
}

static bool measure_wake_ups(struct gp_gpu *gpu, struct bare *b)
{
	static struct gp_hist ours, event, chain;
	struct gp_simgpu_hello hello = {.name = "bench"};
	int program = gp_simgpu_join(path, &hello, NULL);
	struct gp_seen seen;
	uint32_t handle;

	if (program < 0 || gp_gpu_find(gpu, getpid(), &seen, NULL) ||
	    gp_gpu_attach(gpu, seen.key, &handle))
		give_up("creating a context failed");
	drain(gp_gpu_event_fd(gpu));
	gp_hist_init(&ours);
	gp_hist_init(&event);
	gp_hist_init(&chain);
	for (unsigned i = 0; i < ROUNDS; i++) {
		gp_hist_add(&ours, measure_event(gpu, program, handle));
		measure_bare(b, &event, &chain);
	}
	print_times("a bare eventfd", &event, NULL);
	print_times("a bare timer, then an eventfd", &chain, NULL);
	print_times("activity on the device, then event", &ours, &chain);
	close(program);
	return gp_hist_quantile(&ours, 500000) <= 2 * gp_hist_quantile(&chain, 500000);
}

/* The whole run. */

static struct bare *make_bare(void)
{
	struct bare *b =
		mmap(NULL, sizeof *b, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (b == MAP_FAILED)
		give_up("out of memory");
	b->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	b->event_fd = eventfd(0, EFD_CLOEXEC);
	if (b->timer_fd < 0 || b->event_fd < 0)
		give_up("creating a timer failed");
	return b;
}

static struct gp_gpu *open_gpu(void)
{
	struct gp_gpu *gpu;

	setenv("GPREEMPT_SIMGPU", path, 1);
	for (unsigned tries = 0; gp_simgpu_ops.open(0, 0, &gpu); tries++) {
		if (tries > 1000)
			give_up("starting the simulated GPU failed");
		usleep(10000);
	}
	return gpu;
}

int main(void)
{
	pid_t child[TASKS + 2];
	struct bare *bare = make_bare();
	struct gp_gpu *gpu;
	bool good;

	if (!mkdtemp(folder))
		give_up("creating a folder failed");
	snprintf(path, sizeof path, "%s/socket", folder);
	child[0] = start(serve, NULL);
	gpu = open_gpu();
	child[1] = start(relay, bare);
	for (unsigned i = 0; i < TASKS; i++)
		child[2 + i] = start(have_a_context, NULL);
	puts("simulated GPU in real time");
	good = measure_observations(gpu);
	good &= measure_wake_ups(gpu, bare);
	printf("%s: an observation allocates nothing, the median wake-up is within twice the bare "
	       "timer\n",
	       good ? "holds" : "DOES NOT HOLD");
	gpu->ops->close(gpu);
	for (unsigned i = TASKS + 2; i--;)
		end(child[i], i ? SIGKILL : SIGTERM);
	rmdir(folder);
	return !good;
}
