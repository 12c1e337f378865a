/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What we add to the driver's own time: system calls of the thread that talks to it, allocations,
 * and the time of a hold beside that of a bare SUSPEND_QUEUES of the same run.
 *
 * The system calls are counted by tracing that one thread, in a process of its own: this program
 * again, with the argument --tool.
 */
#include <dirent.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#include "count_alloc.h"
#include "timing.h"

#define CYCLES    60
#define BATCH_MAX 4
#define ROUNDS    5
#define PER_ROUND 20

/* Asks for one or the other, and sleeps until all have ended. */
static void act(struct gp_gpu *gpu, bool hold, struct gp_action *a, unsigned n)
{
	struct pollfd news = {.fd = gp_gpu_event_fd(gpu), .events = POLLIN};
	struct gp_observation o[BATCH_MAX] = {0};
	uint64_t ignored;
	unsigned left = n;

	if (hold)
		gp_gpu_hold(gpu, aw_now(), a, n);
	else
		gp_gpu_release(gpu, aw_now(), a, n);
	while (left) {
		poll(&news, 1, 1000);
		(void)!read(news.fd, &ignored, sizeof ignored);
		for (unsigned i = 0; i < n; i++)
			o[i].handle = a[i].handle;
		gp_gpu_observe(gpu, aw_now(), o, n);
		left = 0;
		for (unsigned i = 0; i < n; i++)
			left += o[i].under_way != 0;
	}
	for (unsigned i = 0; i < n; i++)
		if (o[i].failed || o[i].held != hold)
			exit(3);
}

/* --tool PID...: attaches to them, says so, waits for a byte, then holds and releases them. */
static int be_tool(int npids, char **pids)
{
	struct gp_action a[BATCH_MAX] = {0};
	unsigned n = (unsigned)npids;
	struct gp_gpu *gpu;
	char byte;

	if (gp_amd_ops.open(0, 0, &gpu))
		return 2;
	for (unsigned i = 0; i < n; i++) {
		a[i].handle = aw_attach_on(gpu, atoi(pids[i]));
		gp_gpu_prepare(gpu, a[i].handle, true);
	}
	for (int i = 0; i < 5; i++) {
		act(gpu, true, a, n);
		act(gpu, false, a, n);
	}
	if (write(1, "r", 1) != 1 || read(0, &byte, 1) != 1)
		return 2;
	for (int i = 0; i < CYCLES; i++) {
		act(gpu, true, a, n);
		usleep(1000);
		act(gpu, false, a, n);
		usleep(1000);
	}
	gp_amd_ops.close(gpu);
	return 0;
}

struct tool {
	pid_t pid, thread;
	int to;
};

/* Whether it waits in epoll_wait: only the thread that talks to the driver does. */
static bool is_host_thread(pid_t pid, const char *thread)
{
	char path[320], text[64] = "";
	long number;
	FILE *f;

	snprintf(path, sizeof path, "/proc/%d/task/%s/syscall", pid, thread);
	f = fopen(path, "re");
	if (!f)
		return false;
	if (!fgets(text, sizeof text, f))
		text[0] = 0;
	fclose(f);
	number = strtol(text, NULL, 10);
	return number == SYS_epoll_wait || number == SYS_epoll_pwait;
}

static pid_t find_host_thread(pid_t pid)
{
	struct dirent *entry;
	pid_t found = 0;
	char path[48];
	DIR *dir;

	snprintf(path, sizeof path, "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir)))
		if (is_host_thread(pid, entry->d_name))
			found = atoi(entry->d_name);
	if (dir)
		closedir(dir);
	return found;
}

static void start_tool(struct tool *tool, struct kfd_load *const *load, unsigned n)
{
	const char *words[BATCH_MAX + 3] = {"/proc/self/exe", "--tool"};
	struct test_child child;
	char pid[BATCH_MAX][16], byte;

	for (unsigned i = 0; i < n; i++) {
		snprintf(pid[i], sizeof pid[i], "%d", load[i]->pid);
		words[2 + i] = pid[i];
	}
	test_spawn(&child, words);
	tool->pid = child.pid;
	tool->to = child.to;
	assert_int_equal(read(child.from, &byte, 1), 1);
	close(child.from);
	TEST_WAIT((tool->thread = find_host_thread(tool->pid)));
}

/* Every system call of the thread, until it ends. For each suspend and each resume, how many there
 * were since the one before. */
struct count {
	unsigned calls[4 * CYCLES * BATCH_MAX];
	unsigned n;
};

static void note_call(struct count *count, unsigned *since, pid_t thread)
{
	struct __ptrace_syscall_info info;

	if (ptrace(PTRACE_GET_SYSCALL_INFO, thread, sizeof info, &info) <= 0 ||
	    info.op != PTRACE_SYSCALL_INFO_ENTRY)
		return;
	(*since)++;
	if (info.entry.nr != SYS_ioctl || info.entry.args[1] != KFD_IOC_DBG_TRAP ||
	    count->n == sizeof count->calls / sizeof count->calls[0])
		return;
	count->calls[count->n++] = *since;
	*since = 0;
}

static void follow_thread(struct tool *tool, struct count *count)
{
	unsigned since = 0;
	int status;

	assert_int_equal(ptrace(PTRACE_SEIZE, tool->thread, NULL, PTRACE_O_TRACESYSGOOD), 0);
	assert_int_equal(ptrace(PTRACE_INTERRUPT, tool->thread, NULL, NULL), 0);
	assert_int_equal(waitpid(tool->thread, &status, __WALL), tool->thread);
	assert_int_equal(write(tool->to, "g", 1), 1);
	ptrace(PTRACE_SYSCALL, tool->thread, NULL, NULL);
	while (waitpid(tool->thread, &status, __WALL) == tool->thread && WIFSTOPPED(status)) {
		uintptr_t signal = 0;

		if (WSTOPSIG(status) == (SIGTRAP | 0x80))
			note_call(count, &since, tool->thread);
		else if (status >> 16 != PTRACE_EVENT_STOP)
			signal = (uintptr_t)WSTOPSIG(status);
		ptrace(PTRACE_SYSCALL, tool->thread, NULL, signal);
	}
}

static void a_batch_needs_three_calls_each(struct amd_world *w, unsigned batch)
{
	struct count *count = calloc(1, sizeof *count);
	struct kfd_load *load[BATCH_MAX];
	uint64_t calls[4 * CYCLES * BATCH_MAX];
	struct tool tool;
	unsigned total = 0, n;
	int status;

	for (unsigned i = 0; i < batch; i++)
		load[i] = aw_load(w, "--queues", "4", "--steps", "20");
	start_tool(&tool, load, batch);
	follow_thread(&tool, count);
	close(tool.to);
	assert_int_equal(waitpid(tool.pid, &status, 0), tool.pid);
	assert_int_equal(status, 0);
	n = 2 * CYCLES * batch; /* what follows is the end */
	assert_true(count->n >= n);
	for (unsigned i = 0; i < n; i++) {
		total += count->calls[i];
		calls[i] = count->calls[i];
	}
	printf("batches of %u: %u suspends and resumes, %u system calls: %.2f each\n", batch, n,
	       total, (double)total / n);
	assert_true(percentile(calls, n, 50) <= 3);
	assert_true(total <= 3 * n + n / 10); /* now and then there is something else to do */
	free(count);
	for (unsigned i = 0; i < batch; i++)
		assert_int_equal(kfd_load_stop(load[i]), 0);
}

AMD_TEST_ON(a_suspend_is_three_system_calls, mi250, navi31)
{
	a_batch_needs_three_calls_each(w, 1);
}

AMD_TEST_ON(so_it_is_in_a_batch, mi250)
{
	a_batch_needs_three_calls_each(w, BATCH_MAX);
}

AMD_TEST_ON(nothing_is_allocated_by_a_hold, mi250, mi250_old)
{
	struct kfd_load *load[BATCH_MAX];
	struct gp_action a[BATCH_MAX] = {0};
	uint64_t before;

	for (unsigned i = 0; i < BATCH_MAX; i++)
		load[i] = aw_load(w, "--queues", "4", "--steps", "20");
	aw_open(w);
	for (unsigned i = 0; i < BATCH_MAX; i++) {
		a[i].handle = aw_attach(w, load[i]->pid);
		gp_gpu_prepare(w->gpu, a[i].handle, true);
		TEST_WAIT(aw_look(w, a[i].handle).known & GP_KNOWN_ACTIVE);
	}
	act(w->gpu, true, a, BATCH_MAX);
	act(w->gpu, false, a, BATCH_MAX);
	before = bench_allocations();
	assert_true(before); /* they are counted */
	for (int i = 0; i < CYCLES; i++) {
		act(w->gpu, true, a, BATCH_MAX);
		act(w->gpu, false, a, BATCH_MAX);
	}
	assert_int_equal(bench_allocations(), before);
}

struct bare {
	int kfd;
	struct gp_amd_session s;
};

static void open_bare(struct bare *b, pid_t pid)
{
	enum gp_amd_rule rule = GP_AMD_RULE_UNKNOWN;

	b->kfd = gp_kfd_open(NULL);
	assert_int_equal(gp_amd_session_open(&b->s, b->kfd, pid, &rule, NULL), 0);
	TEST_WAIT((gp_amd_session_tick(&b->s), b->s.link == GP_AMD_UNLINKED));
}

/* One system call, and nothing else. */
static uint64_t bare_hold_ns(struct bare *b)
{
	uint32_t id[4] = {0, 1, 2, 3};
	uint64_t begin_ns = aw_now(), ns;

	assert_int_equal(gp_kfd_suspend(b->kfd, b->s.pid, id, 4, KFD_GRACE_DEFAULT), 4);
	ns = aw_now() - begin_ns;
	for (uint32_t i = 0; i < 4; i++)
		id[i] = i;
	assert_int_equal(gp_kfd_resume(b->kfd, b->s.pid, id, 4), 4);
	return ns;
}

static uint64_t our_hold_ns(struct amd_world *w, uint32_t handle)
{
	struct gp_action a = {.handle = handle};
	uint64_t begin_ns = aw_now(), ns;

	act(w->gpu, true, &a, 1);
	ns = aw_now() - begin_ns;
	act(w->gpu, false, &a, 1);
	return ns;
}

AMD_TEST_ON(a_hold_takes_less_than_two_bare_suspends, mi250, navi31)
{
	struct kfd_load *load[2];
	uint64_t bare_ns[ROUNDS * PER_ROUND], our_ns[ROUNDS * PER_ROUND], bare, ours;
	struct bare b;
	uint32_t handle = 0;

	for (unsigned i = 0; i < 2; i++)
		load[i] = aw_load(w, "--queues", "4", "--steps", "20");
	kfd_emu_control(&w->emu, "suspend_us 0"); /* what the hardware takes would hide us */
	open_bare(&b, load[0]->pid);
	handle = aw_attach(w, load[1]->pid);
	aw_must_hold(w, handle);
	aw_must_release(w, handle);
	for (unsigned i = 0; i < ROUNDS * PER_ROUND; i++) {
		if (i / PER_ROUND % 2) { /* one after the other: the machine is the same */
			bare_ns[i] = bare_hold_ns(&b);
			our_ns[i] = our_hold_ns(w, handle);
		} else {
			our_ns[i] = our_hold_ns(w, handle);
			bare_ns[i] = bare_hold_ns(&b);
		}
		usleep(500);
	}
	bare = percentile(bare_ns, ROUNDS * PER_ROUND, 50);
	ours = percentile(our_ns, ROUNDS * PER_ROUND, 50);
	printf("a hold: %lu us; a bare SUSPEND_QUEUES: %lu us (half of the times less)\n",
	       ours / 1000, bare / 1000);
	assert_true(ours <= 2 * bare);
	gp_amd_session_close(&b.s);
	close(b.kfd);
}

TEST_BEGIN
{
	if (argc > 2 && !strcmp(argv[1], "--tool"))
		exit(be_tool(argc - 2 < BATCH_MAX ? argc - 2 : BATCH_MAX, argv + 2));
}
