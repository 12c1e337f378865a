/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Thousands of suspend and resume cycles over 64 queues in 8 processes, while queues are made and
 * destroyed, processes end and others come, and the tool that holds them is killed at random
 * moments: nothing stays suspended, no packet is lost or run twice, nothing leaks.
 *
 * The tool is this program again, with the argument --tool: it uses the back end's table. The short
 * form makes 500 cycles on each machine; with GPREEMPT_SOAK=N, N times 10,000. GPREEMPT_SEED
 * chooses another storm.
 */
#include <sys/mman.h>
#include <sys/prctl.h>

#include "amd_world.h"
#include "base/rng.h"

#define LOADS        8
#define QUEUES       "8"
#define STEPS        "500" /* 50 ms of work in a packet */
#define SHORT_CYCLES 500
#define SOAK_CYCLES  10000
#define LIFE_CYCLES  60 /* of a tool, at most: then it is ended */
#define TASKS_MAX    32

/* What the tool tells, also after it was killed. */
struct report {
	uint64_t cycles;  /* completed holds of a process, with their release */
	uint64_t refused; /* because the process was ending */
	int unexpected;   /* an error that has no reason here */
	char sentence[256];
};

static void name_open_files(char *text, size_t size)
{
	size_t used = 0;

	for (int fd = 3; fd < 256 && used + 80 < size; fd++) {
		char path[48], name[64] = "";

		snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
		if (readlink(path, name, sizeof name - 1) > 0)
			used += (size_t)snprintf(text + used, size - used, "%d %s; ", fd, name);
	}
}

struct tool {
	struct gp_gpu *gpu;
	struct report *report;
	struct gp_rng rng;
	struct {
		uint64_t key;
		uint32_t handle;
	} task[TASKS_MAX];
	unsigned ntasks;
};

static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
	(void)number;
	stopped = 1;
}

static bool is_seen(const struct gp_seen *seen, int n, uint64_t key)
{
	for (int i = 0; i < n; i++)
		if (seen[i].key == key)
			return true;
	return false;
}

static bool is_attached(const struct tool *t, uint64_t key)
{
	for (unsigned i = 0; i < t->ntasks; i++)
		if (t->task[i].key == key)
			return true;
	return false;
}

static void let_go(struct tool *t, unsigned i)
{
	gp_gpu_detach(t->gpu, t->task[i].handle);
	t->task[i] = t->task[--t->ntasks];
}

static void follow(struct tool *t)
{
	struct gp_seen seen[TASKS_MAX];
	int n = gp_gpu_scan(t->gpu, aw_now(), seen, TASKS_MAX);

	n = n < TASKS_MAX ? n : TASKS_MAX;
	for (unsigned i = t->ntasks; i-- > 0;)
		if (!is_seen(seen, n, t->task[i].key))
			let_go(t, i);
	for (int i = 0; i < n && t->ntasks < TASKS_MAX; i++) {
		uint32_t handle = 0;

		if (is_attached(t, seen[i].key) || gp_gpu_attach(t->gpu, seen[i].key, &handle))
			continue;
		t->task[t->ntasks].key = seen[i].key;
		t->task[t->ntasks++].handle = handle;
	}
}

/* A process that ends may refuse; for anything else there is no reason. */
static void note_failure(struct tool *t, uint32_t handle, int code)
{
	struct gp_error err = {0};

	t->report->refused++;
	if (code == -ESRCH || code == -EPERM || code == -EINVAL || t->report->unexpected)
		return;
	gp_gpu_why(t->gpu, handle, &err);
	memcpy(t->report->sentence, err.text, sizeof err.text);
	t->report->unexpected = code;
}

static void await(struct tool *t, struct gp_action *a, unsigned n, bool hold)
{
	struct pollfd news = {.fd = gp_gpu_event_fd(t->gpu), .events = POLLIN};

	for (unsigned i = 0; i < n;) {
		struct gp_observation o = {.handle = a[i].handle};
		uint64_t ignored;

		gp_gpu_observe(t->gpu, aw_now(), &o, 1);
		if (!o.under_way) {
			if (o.failed)
				note_failure(t, a[i].handle, o.failed);
			else if (hold)
				t->report->cycles++;
			i++;
			continue;
		}
		poll(&news, 1, 20);
		(void)!read(news.fd, &ignored, sizeof ignored);
	}
}

/* Some of them together, for a moment. */
static void make_cycle(struct tool *t)
{
	struct gp_action a[TASKS_MAX];
	unsigned n = 0;

	for (unsigned i = 0; i < t->ntasks; i++)
		if (gp_rng_below(&t->rng, 2))
			a[n++] = (struct gp_action){.handle = t->task[i].handle};
	if (!n)
		return;
	gp_gpu_hold(t->gpu, aw_now(), a, n);
	await(t, a, n, true);
	usleep((useconds_t)gp_rng_below(&t->rng, 1000));
	if (!gp_rng_below(&t->rng, 20)) {
		while (t->ntasks) /* with all that is held */
			let_go(t, 0);
		return;
	}
	gp_gpu_release(t->gpu, aw_now(), a, n);
	await(t, a, n, false);
}

/* Exit status: 0, or 4 when something of it was left open. */
static int be_tool(int fd, uint64_t seed)
{
	struct tool t = {
		.report = mmap(NULL, sizeof *t.report, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)};
	unsigned files = test_open_files(getpid());

	signal(SIGTERM, on_signal);
	gp_rng_init(&t.rng, seed, 0);
	if (gp_amd_ops.open(0, 0, &t.gpu))
		return 2;
	while (!stopped) {
		follow(&t);
		make_cycle(&t);
		usleep(100);
	}
	gp_amd_ops.close(t.gpu);
	/* The reader is on its way out, and malloc opens files of its own when a thread ends. */
	for (unsigned i = 0; i < 200; i++) {
		if (test_open_files(getpid()) == files)
			return 0;
		usleep(10000);
	}
	name_open_files(t.report->sentence, sizeof t.report->sentence);
	return 4;
}

struct storm {
	struct amd_world *w;
	struct kfd_load *load; /* LOADS of them */
	struct report *report;
	int fd;
	struct gp_rng rng;
	unsigned kills, ends, restarts, nudges;
};

static pid_t start_tool(struct storm *s)
{
	char path[] = "/proc/self/exe", tool[] = "--tool", fd[16], seed[32];
	char *words[] = {path, tool, fd, seed, NULL};
	pid_t pid;

	snprintf(fd, sizeof fd, "%d", s->fd);
	snprintf(seed, sizeof seed, "%lu", gp_rng_next(&s->rng));
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		aw_expect_leak_checks(true);
		execv(path, words);
		_exit(127);
	}
	return pid;
}

static void start_load(struct storm *s, unsigned i)
{
	const char *churn = i % 2 ? "0" : "15";

	assert_int_equal(kfd_load_start(&s->load[i], "--queues", QUEUES, "--steps", STEPS,
					"--churn", churn, NULL),
			 0);
}

static bool has_ended(pid_t pid)
{
	siginfo_t info = {0};

	return !waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) && info.si_pid;
}

/*
 * The load ends with the right result. If its debugger is killed while the load announces the end
 * of its runtime, the load waits in the driver until a signal comes. The driver does so, too; such
 * signals are counted.
 */
static void end_load(struct storm *s, unsigned i)
{
	pid_t pid = s->load[i].pid;
	uint64_t nudge_ns = aw_now() + 3 * GP_NS_PER_S, end_ns = aw_now() + 40 * GP_NS_PER_S;

	kill(pid, SIGTERM);
	while (!has_ended(pid) && aw_now() < end_ns) {
		usleep(2000);
		if (aw_now() < nudge_ns)
			continue;
		kill(pid, SIGTERM);
		s->nudges++;
		nudge_ns = aw_now() + 3 * GP_NS_PER_S;
	}
	assert_int_equal(kfd_load_wait(&s->load[i]), 0);
}

/* Of all loads: whether anything of a tool is left. */
static bool is_anything_left(struct storm *s)
{
	char *state = kfd_emu_state(&s->w->emu);
	bool left =
		!state || strstr(state, "\"debugged\":true") || strstr(state, "\"suspended\":true");

	free(state);
	for (unsigned i = 0; i < LOADS; i++)
		left |= aw_tracer(s->load[i].pid) > 0 || test_process_state(s->load[i].pid) == 't';
	return left;
}

static void all_go_on(struct storm *s)
{
	uint64_t before[LOADS];

	for (unsigned i = 0; i < LOADS; i++)
		before[i] = aw_sum(s->w, s->load[i].pid, "executed");
	emulator_sleep_ms(60);               /* a packet, and a little */
	for (unsigned i = 0; i < LOADS; i++) /* with a new queue it may be less */
		TEST_WAIT(aw_sum(s->w, s->load[i].pid, "executed") != before[i]);
}

/* A tool works for a while, and processes end meanwhile; then it is ended in one way or another. */
static void live_through_a_tool(struct storm *s)
{
	uint64_t until = s->report->cycles + 1 + gp_rng_below(&s->rng, LIFE_CYCLES);
	bool kill_it = gp_rng_below(&s->rng, 4);
	pid_t tool = start_tool(s);
	int status;

	if (!gp_rng_below(&s->rng, 3)) {
		unsigned i = (unsigned)gp_rng_below(&s->rng, LOADS);

		end_load(s, i);
		start_load(s, i);
		s->restarts++;
	}
	TEST_WAIT(s->report->cycles >= until || has_ended(tool));
	usleep((useconds_t)gp_rng_below(&s->rng, 3000));
	kill(tool, kill_it ? SIGKILL : SIGTERM);
	TEST_WAIT(has_ended(tool));
	waitpid(tool, &status, 0);
	if (!kill_it && status)
		fail_msg("the tool ended with %#x: %s", status, s->report->sentence);
	*(kill_it ? &s->kills : &s->ends) += 1;
	if (s->report->unexpected)
		fail_msg("%d: %s", s->report->unexpected, s->report->sentence);
	TEST_WAIT(!is_anything_left(s));
	all_go_on(s);
}

static uint64_t cycles_wanted(void)
{
	const char *soak = getenv("GPREEMPT_SOAK");
	long times = soak ? atol(soak) : 0;

	return times > 0 ? (uint64_t)times * SOAK_CYCLES : SHORT_CYCLES;
}

static void begin(struct storm *s, struct amd_world *w)
{
	const char *seed = getenv("GPREEMPT_SEED");

	*s = (struct storm){.w = w, .load = w->load, .fd = memfd_create("report", 0)};
	gp_rng_init(&s->rng, seed ? strtoull(seed, NULL, 0) : 1, 0);
	assert_int_equal(ftruncate(s->fd, sizeof *s->report), 0);
	s->report = mmap(NULL, sizeof *s->report, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, 0);
	for (w->nloads = 0; w->nloads < LOADS; w->nloads++)
		start_load(s, w->nloads);
}

static void end(struct storm *s)
{
	munmap(s->report, sizeof *s->report);
	close(s->fd);
}

/* All queues run at full speed: the rest of a process's work is soon done. */
static struct aw_machine hws_new = {.gpu = "mi300x", .rule = "new", .slots = "64"},
			 hws_old = {.gpu = "mi250", .rule = "old", .slots = "64"},
			 mes_new = {.gpu = "navi31", .rule = "new", .slots = "64"};

AMD_TEST_ON(nothing_is_lost_in_a_storm, hws_new, hws_old, mes_new)
{
	unsigned files = test_open_files(w->emu.pid);
	struct storm s;

	begin(&s, w);
	while (s.report->cycles < cycles_wanted())
		live_through_a_tool(&s);
	for (unsigned i = 0; i < LOADS; i++)
		end_load(&s, i);
	printf("%lu cycles, %lu refused; tools killed %u, ended %u; processes replaced %u, nudged "
	       "%u; packets %lu\n",
	       s.report->cycles, s.report->refused, s.kills, s.ends, s.restarts, s.nudges,
	       kfd_emu_count(&w->emu, "packets"));
	TEST_WAIT(test_open_files(w->emu.pid) == files); /* the driver has released all processes */
	end(&s);
}

TEST_BEGIN
{
	if (argc == 4 && !strcmp(argv[1], "--tool"))
		exit(be_tool(atoi(argv[2]), strtoull(argv[3], NULL, 0)));
}
