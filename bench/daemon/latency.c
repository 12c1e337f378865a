/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures the time from detection to action in the daemon's device thread
 * (src/daemon/device_thread.h), on the simulated GPU in real time. A latency-critical program gets
 * work, and the best-effort program that has the device must be held. There are three ways to
 * detect the work:
 *
 * - events: the device signals changes. Measured from the device's own time stamp until the job is
 *   off the device.
 * - triggers: the program announces its work with a hint. Measured from the hint to the same end.
 * - polling: activity is observed every millisecond. Measured from the device's time stamp until
 *   the back end is called.
 *
 * The same run also measures how late a bare eventfd wakes a thread, and how late a bare timer is.
 * All of it is done twice: on the machine as it is, and under load with as many busy processes as
 * cores. Real-time priority is used if permitted, also for the bare measurements and the simulated
 * device.
 *
 * The limits apply at p99. Events and triggers: twice the bare eventfd (the thread and the
 * simulated device are woken) plus the cost of the action on the device. Polling: one interval plus
 * twice the bare timer. On a shared machine other processes sometimes take whole milliseconds from
 * one of the two measurements. So a failed comparison is repeated twice. Exits with 1 if it never
 * holds.
 *
 * The first argument is the number of rounds of each kind (400). The second is a different
 * percentile for the limits: few rounds on a shared machine say little about one in a hundred.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/timerfd.h>

#include "base/hist.h"
#include "base/process.h"
#include "children.h"
#include "daemon/device_thread.h"
#include "gpu/simclient/simclient_device.h"
#include "gpu/simclient/connection.h"
#include "sim/server/sim_server.h"

#define PAUSE_NS   (12 * GP_NS_PER_MS) /* between two requests: the job has the device */
#define POLL_NS    (1 * GP_NS_PER_MS)
#define KERNEL_NS  (8 * GP_NS_PER_MS) /* work that is not noticed for this time is missed */
#define TOO_LATE_S 10

static char folder[] = "/tmp/bench-latency-XXXXXX", path[64];

/* The watched device. The daemon's thread gets a device that records in `observe` and `act` when
 * the observed work began, and when the thread acted on it. */

static struct {
	struct gp_gpu_ops ops;
	const struct gp_gpu_ops *real;
	bool no_events;
	uint64_t lc_key;
	uint32_t lc_handle; /* handle + 1; 0 = it has not come yet */
	bool was_active;
	_Atomic uint64_t begun_ns; /* begin of work that was not acted upon; 0 = none */
	uint64_t asked_ns;         /* begin of work with a requested hold that is not seen yet */
	uint64_t cost_ns;          /* cost of a hold on the device */
	_Atomic uint64_t held;     /* number of holds */
	unsigned missed;
	struct gp_hist lag_ns;
} watched;

static int attach(struct gp_gpu *gpu, uint64_t key, uint32_t *handle)
{
	int r = watched.real->attach(gpu, key, handle);

	if (!r && key == watched.lc_key)
		watched.lc_handle = *handle + 1;
	return r;
}

static void note(uint64_t lag_ns)
{
	gp_hist_add(&watched.lag_ns, lag_ns);
	watched.asked_ns = 0;
	watched.held++;
}

static int observe(struct gp_gpu *gpu, uint64_t now_ns, struct gp_observation *o, unsigned n)
{
	int r = watched.real->observe(gpu, now_ns, o, n);

	for (unsigned i = 0; !r && i < n; i++) {
		if (o[i].handle + 1 != watched.lc_handle) {
			if (o[i].held && watched.asked_ns)
				/* A task that had no work on the device at that moment is off when
				 * it is held. */
				note((o[i].off_at_ns > watched.asked_ns ? o[i].off_at_ns : now_ns) -
				     watched.asked_ns);
			continue;
		}
		if (o[i].active && !watched.was_active && !watched.begun_ns)
			watched.begun_ns = o[i].active_since_ns;
		watched.was_active = o[i].active;
	}
	return r;
}

static int act(struct gp_gpu *gpu, uint64_t now_ns, enum gp_act_kind kind, struct gp_action *a,
	       unsigned n)
{
	uint64_t acted_ns = now(), begun_ns = watched.begun_ns;
	int r = watched.real->act(gpu, now_ns, kind, a, n);

	if (kind != GP_ACT_HOLD)
		return r;
	watched.begun_ns = 0;
	if (begun_ns && watched.no_events)
		note(acted_ns - begun_ns);
	else
		watched.asked_ns = begun_ns;
	return r;
}

static int no_event_fd(struct gp_gpu *gpu)
{
	(void)gpu;
	return -ENOTSUP;
}

static void watch(struct gp_gpu *gpu)
{
	watched.real = gpu->ops;
	watched.ops = *gpu->ops;
	watched.ops.attach = attach;
	watched.ops.observe = observe;
	watched.ops.act = act;
	if (watched.no_events) {
		watched.ops.event_fd = no_event_fd;
		gpu->info.caps &= ~(uint32_t)GP_CAP_EVENTS;
	}
	watched.cost_ns = gpu->info.hold_cost_ns;
	gpu->ops = &watched.ops;
	gp_hist_init(&watched.lag_ns);
}

/* Other processes. */

static void serve(void *arg)
{
	struct gp_sim_device model = gp_sim_mi300x;
	struct gp_sim_server_config config = {
		.path = path, .model = &model, .model_name = "MI300X", .devices = 1, .seed = 1};
	struct server *server;

	(void)arg;
	model.activity = GP_ACTIVITY_EVENTS;
	model.detect_ns = 0; /* the delay of the hardware is not measured here */
	model.hides_run = false;
	model.launch_ns = model.launch_jitter_ns = 0;
	if (!gp_sim_server_new(&config, &server, NULL))
		gp_sim_server_run(server);
}

/* Always has work. */
static void be_job(void *arg)
{
	struct gp_simgpu_hello hello = {.name = "job"};
	int fd = gp_simgpu_join(path, &hello, NULL);
	struct gp_simgpu_done done;

	(void)arg;
	if (fd < 0)
		give_up("creating a context failed");
	for (uint64_t tag = 1; !gp_simgpu_submit(fd, tag, 1, 5 * GP_NS_PER_MS, 0); tag++) {
		struct pollfd p = {.fd = fd, .events = POLLIN};

		do
			poll(&p, 1, -1);
		while (gp_simgpu_take(fd, &done));
	}
}

static void keep_busy(void *arg)
{
	(void)arg;
	sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){0});
	for (;;)
		;
}

/* Bare measurements for comparison. */

struct bare {
	int fd;
	_Atomic uint64_t written_ns;
	_Atomic bool stop;
	struct gp_hist event_ns, timer_ns;
	pthread_t event_thread, timer_thread;
};

static void *wait_for_events(void *arg)
{
	struct bare *b = arg;
	struct pollfd p = {.fd = b->fd, .events = POLLIN};
	eventfd_t ignored;

	while (!b->stop) {
		if (poll(&p, 1, 100) != 1)
			continue;
		gp_hist_add(&b->event_ns, now() - b->written_ns);
		eventfd_read(b->fd, &ignored);
	}
	return NULL;
}

static void *wait_for_timer(void *arg)
{
	struct bare *b = arg;
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	struct itimerspec at = {0};
	uint64_t due_ns, ignored;

	while (!b->stop) {
		due_ns = now() + POLL_NS;
		at.it_value = gp_timespec(due_ns);
		timerfd_settime(fd, TFD_TIMER_ABSTIME, &at, NULL);
		if (read(fd, &ignored, sizeof ignored) < 0)
			break;
		gp_hist_add(&b->timer_ns, now() - due_ns);
	}
	close(fd);
	return NULL;
}

static void begin_bare(struct bare *b)
{
	memset(b, 0, sizeof *b);
	b->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	gp_hist_init(&b->event_ns);
	gp_hist_init(&b->timer_ns);
	if (b->fd < 0 || pthread_create(&b->event_thread, NULL, wait_for_events, b) ||
	    pthread_create(&b->timer_thread, NULL, wait_for_timer, b))
		give_up("creating a thread failed");
}

static void end_bare(struct bare *b)
{
	b->stop = true;
	pthread_join(b->event_thread, NULL);
	pthread_join(b->timer_thread, NULL);
	close(b->fd);
}

static void wake_bare(struct bare *b)
{
	b->written_ns = now();
	eventfd_write(b->fd, 1);
}

/* Measuring. */

enum way { EVENTS, POLLING, TRIGGERS, WAYS };

static const char *const way_names[] = {"events", "polling every 1 ms", "triggers"};

static void put(struct gp_assignments *assignments, pid_t pid, uint8_t class)
{
	struct gp_assignment e = {.pid = pid,
				  .start_time = gp_process_start_time(pid),
				  .source = GP_ATTR_BY_RULE,
				  .attr = GP_TASK_ATTR_DEFAULT};

	e.attr.class = class;
	if (gp_assignments_put(assignments, &e, NULL))
		give_up("out of memory");
}

static struct gp_device_thread *start_host(struct gp_assignments *assignments, int wake_fd,
					   enum way way)
{
	struct gp_device_thread_config config = {
		.assignments = assignments, .cpu = -1, .wake_fd = wake_fd, .check_lc_ns = POLL_NS};
	struct gp_device_thread *thread;
	struct gp_error err = {0};
	struct gp_seen seen;

	for (unsigned tries = 0; gp_simgpu_ops.open(0, 0, &config.gpu); tries++) {
		if (tries > 1000)
			give_up("starting the simulated GPU failed");
		usleep(10000);
	}
	if (gp_gpu_find(config.gpu, getpid(), &seen, &err))
		give_up(err.text);
	memset(&watched, 0, sizeof watched);
	watched.lc_key = seen.key;
	watched.no_events = way == POLLING;
	watch(config.gpu);
	gp_policy_defaults(&gp_policy_priority, &config.policy);
	if (gp_device_thread_start(&config, &thread, &err))
		give_up(err.text);
	return thread;
}

/* Waits until there is no request and no hold: the job has the device again. */
static void wait_until_given_back(struct gp_device_thread *thread, int program)
{
	struct gp_simgpu_done done;
	uint64_t until_ns = now() + TOO_LATE_S * GP_NS_PER_S;

	(void)thread;
	usleep(PAUSE_NS / 1000);
	while (program >= 0 && gp_simgpu_take(program, &done))
		if (now() > until_ns)
			give_up("a request was not finished in time");
}

/* Work that ended before it was seen counts as seen at its end: too late. */
static void wait_until_held(uint64_t before)
{
	uint64_t until_ns = now() + 4 * KERNEL_NS;

	while (watched.held == before && now() < until_ns)
		usleep(200);
	if (watched.held != before)
		return;
	gp_hist_add(&watched.lag_ns, KERNEL_NS);
	if (++watched.missed > 100)
		give_up("the job was not held in time");
}

static void measure(struct gp_device_thread *thread, enum way way, int program, struct bare *bare,
		    unsigned rounds)
{
	struct gp_command hint = {.kind = GP_COMMAND_HINT, .key = watched.lc_key};

	for (unsigned i = 0; i < rounds + 5; i++) {
		uint64_t before = watched.held;

		if (i == 5)
			gp_hist_init(&watched.lag_ns); /* the first rounds warm up */
		wake_bare(bare);
		usleep(1000 + (useconds_t)(i * 37 % 1000)); /* at all phases of a millisecond */
		if (way == TRIGGERS) {
			watched.begun_ns = now();
			gp_device_thread_command(thread, &hint);
		} else if (gp_simgpu_submit(program, i + 1, 1, KERNEL_NS, 0)) {
			give_up("submit");
		}
		wait_until_held(before);
		wait_until_given_back(thread, way == TRIGGERS ? -1 : program);
	}
}

static unsigned judged = 99; /* percentile */

static bool report(enum way way, const struct bare *b, bool loaded)
{
	uint64_t late = gp_hist_quantile(&watched.lag_ns, judged * 10000);
	uint64_t event = gp_hist_quantile(&b->event_ns, judged * 10000);
	uint64_t timer = gp_hist_quantile(&b->timer_ns, judged * 10000);
	uint64_t limit = way == POLLING ? POLL_NS + 2 * timer : 2 * event + watched.cost_ns;
	bool good = late <= limit;

	printf("%-19s %-10s p50 %7.1f us  p%u %7.1f us  bare %s %7.1f us  limit %7.1f us  %s\n",
	       way_names[way], loaded ? "under load" : "",
	       (double)gp_hist_quantile(&watched.lag_ns, 500000) / 1e3, judged, (double)late / 1e3,
	       way == POLLING ? "timer  " : "eventfd",
	       (double)(way == POLLING ? timer : event) / 1e3, (double)limit / 1e3,
	       good ? "holds" : "DOES NOT HOLD");
	return good;
}

static bool try_way(enum way way, int program, pid_t job, bool loaded, unsigned rounds)
{
	static struct bare bare;
	int wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	long cores = loaded ? sysconf(_SC_NPROCESSORS_ONLN) : 0;
	pid_t busy[64];
	struct gp_assignments *assignments;
	struct gp_device_thread *thread;
	bool good;

	if (gp_assignments_open(NULL, &assignments, NULL) || wake_fd < 0)
		give_up("out of memory");
	put(assignments, getpid(), GP_LATENCY_CRITICAL);
	put(assignments, job, GP_BEST_EFFORT);
	thread = start_host(assignments, wake_fd, way);
	for (long i = 0; i < cores && i < 64; i++)
		busy[i] = start(keep_busy, NULL);
	begin_bare(&bare);
	measure(thread, way, program, &bare, rounds);
	end_bare(&bare);
	for (long i = 0; i < cores && i < 64; i++)
		end(busy[i], SIGKILL);
	gp_device_thread_stop(thread);
	gp_assignments_close(assignments);
	close(wake_fd);
	good = report(way, &bare, loaded);
	return good;
}

int main(int argc, char **argv)
{
	unsigned rounds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 400;
	struct gp_simgpu_hello hello = {.name = "service"};
	pid_t server, job;
	bool good = true;
	int program;

	if (argc > 2)
		judged = (unsigned)strtoul(argv[2], NULL, 10);
	if (!mkdtemp(folder))
		give_up("creating a folder failed");
	snprintf(path, sizeof path, "%s/socket", folder);
	setenv("GPREEMPT_SIMGPU", path, 1);
	/* As the daemon can be configured; applies to the measurements for comparison, too. */
	if (sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){.sched_priority = 1}))
		puts("no permission for real-time priority: other processes may delay the "
		     "measurement");
	server = start(serve, NULL);
	for (unsigned tries = 0; (program = gp_simgpu_join(path, &hello, NULL)) < 0; tries++) {
		if (tries > 1000)
			give_up("starting the simulated GPU failed");
		usleep(10000);
	}
	job = start(be_job, NULL);
	puts("gpreemptd: from detection to action, on the simulated GPU in real time");
	for (int loaded = 0; loaded < 2; loaded++)
		for (enum way way = EVENTS; way < WAYS; way++) {
			bool held = false;

			for (unsigned tries = 0; tries < 3 && !held; tries++)
				held = try_way(way, program, job, loaded, rounds);
			good &= held;
		}
	close(program);
	end(job, SIGKILL);
	end(server, SIGTERM);
	rmdir(folder);
	return !good;
}
