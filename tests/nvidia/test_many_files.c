/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hold does not wait until the files of other processes are examined. Counted is work, not time:
 * the links that the back end's thread reads between the request of a hold and its next driver
 * call. The fdinfo of a file of another process is never read: that of an epoll file can have a
 * million lines, which the kernel makes for the first read.
 */
#include "gpu_world.h"
#include "support/process.h"

#include <stdatomic.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#define PROCESSES 8
#define FILES     10000
#define STEP      16 /* LISTED_PER_CLOCK: links between two looks at the clock */

static _Atomic bool armed, in_sweep, asked;
static _Atomic unsigned links, foreign_infos;

/* Blocks the sweep in the middle of a process until the hold is asked for and the step's time is
 * over. */
static void meet(void)
{
	in_sweep = true;
	while (!asked)
		usleep(100);
	usleep(2000);
}

/* These three replace the C library's. */
int open(const char *path, int flags, ...)
{
	va_list list;
	mode_t mode;

	va_start(list, flags);
	mode = flags & O_CREAT ? va_arg(list, mode_t) : 0;
	va_end(list);
	foreign_infos += strstr(path, "/fdinfo/") && strncmp(path, "/proc/self/", 11) != 0;
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

ssize_t readlinkat(int dir, const char *path, char *out, size_t size)
{
	if (armed && !in_sweep && atoi(path) > FILES / 2) /* only such a process has this file */
		meet();
	links += in_sweep;
	return syscall(SYS_readlinkat, dir, path, out, size);
}

int ioctl(int fd, unsigned long request, ...)
{
	va_list list;
	void *arg;

	va_start(list, request);
	arg = va_arg(list, void *);
	va_end(list);
	if (in_sweep)
		armed = in_sweep = false;
	return (int)syscall(SYS_ioctl, fd, request, arg);
}

/* Their parent is another process: a back end does not examine the forks of its own. */
static void start_processes(struct test_child *child)
{
	if (!test_fork(child))
		return;
	for (int i = 0; i < PROCESSES; i++)
		if (!fork()) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			while (open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0)
				;
			break;
		}
	for (;;)
		pause();
}

GPU_TEST(a_hold_does_not_wait_for_the_files_of_others)
{
	struct rlimit limit;
	struct emu_load *load = gw_load(w);
	uint32_t handle = gw_attach(w, load->pid);
	struct gp_action a = {.handle = handle};
	struct test_child child;
	unsigned n;

	getrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_max <= FILES)
		skip();
	limit.rlim_cur = FILES + 1; /* the next open() fails */
	setrlimit(RLIMIT_NOFILE, &limit);
	armed = true;
	start_processes(&child);
	TEST_WAIT(in_sweep);
	assert_int_equal(gp_gpu_hold(w->gpu, gw_now(), &a, 1), 0);
	asked = true;
	TEST_WAIT(!in_sweep);
	n = links;
	assert_true(gw_settled(w, handle).held);
	print_message("%u links of other processes' files before the hold\n", n);
	assert_in_range(n, 1, STEP);
	assert_int_equal(foreign_infos, 0);
	test_child_end(&child);
}
