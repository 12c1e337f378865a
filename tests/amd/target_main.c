/* SPDX-License-Identifier: Apache-2.0 */
/*
 * amd-target: does with the driver what its input tells it, one line at a time, and answers each
 * with a line "ok NUMBER" or "failed ERRNO". For what kfd-load, which behaves as ROCm does, never
 * does.
 *
 *   open                opens the device               runtime 0|1     as hsa_init and
 * hsa_shut_down queue TYPE [GPU]    makes a queue; its id          destroy ID      ends it submit
 * ID N STEPS   N packets                      done ID         whether all are done and right
 *   delay ID 0|1        its last packet waits for the host, or does so no longer
 *   signals             how many SIGUSR1 came          exec            becomes another amd-target
 *   leave               its first thread ends, and another goes on
 *   step_aside          another thread goes on, and the first one waits
 *   exit STATUS
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "emu/kfd/load_queue.h"

#define MAX_QUEUES 64
#define MAX_GPUS   8

static int fd = -1;
static struct gpu gpu[MAX_GPUS];
static struct load_queue queue[MAX_QUEUES]; /* by id */
static volatile sig_atomic_t signals;

static void on_signal(int number)
{
	(void)number;
	signals++;
}

static void answer(long value)
{
	if (value < 0)
		printf("failed %ld\n", -value);
	else
		printf("ok %ld\n", value);
	fflush(stdout);
}

static long set_runtime(bool enable)
{
	struct kfd_runtime_enable args = {.r_debug = (uintptr_t)&fd, .mode_mask = enable};

	while (ioctl(fd, KFD_IOC_RUNTIME_ENABLE, &args))
		if (errno != EINTR && errno != EAGAIN)
			return -errno;
	return 0;
}

static long make_queue(const char *type, unsigned index)
{
	uint32_t number = !strcmp(type, "sdma")  ? KFD_QUEUE_SDMA
			  : !strcmp(type, "pm4") ? KFD_QUEUE_COMPUTE
						 : KFD_QUEUE_COMPUTE_AQL;
	struct load_queue made;

	if (index >= MAX_GPUS)
		return -EINVAL;
	if (!gpu[index].gpu_id)
		gpu[index] = load_gpu(fd, index);
	queue_open(fd, &gpu[index], &made, number, 7);
	if (made.id >= MAX_QUEUES)
		return -ENOSPC;
	queue[made.id] = made;
	return (long)made.id;
}

static long submit(unsigned id, unsigned n, unsigned steps)
{
	struct load_queue *q = &queue[id % MAX_QUEUES];

	for (unsigned i = 0; i < n; i++)
		queue_submit(fd, q, steps);
	return 0;
}

/* The queue must be held, so that the packet is not taken before. */
static long delay(unsigned id, bool waits)
{
	queue_delay(fd, &queue[id % MAX_QUEUES], waits);
	return 0;
}

static void become_another(void)
{
	char name[] = "amd-target", *words[] = {name, NULL};

	execv("/proc/self/exe", words);
	answer(-errno);
}

static long obey(const char *line)
{
	unsigned a = 0, b = 0, c = 0;
	char word[16] = "", type[16] = "";

	sscanf(line, "%15s", word);
	if (sscanf(line, "queue %15s %u", type, &a) >= 1)
		return make_queue(type, a);
	sscanf(line, "%*s %u %u %u", &a, &b, &c);
	if (!strcmp(word, "open")) {
		fd = load_open();
		return 0;
	}
	if (!strcmp(word, "runtime"))
		return set_runtime(a);
	if (!strcmp(word, "destroy")) {
		queue_close(fd, &queue[a % MAX_QUEUES]);
		return 0;
	}
	if (!strcmp(word, "submit"))
		return submit(a, b, c);
	if (!strcmp(word, "done"))
		return queue_is_done(&queue[a % MAX_QUEUES]) &&
		       queue_is_right(&queue[a % MAX_QUEUES]);
	if (!strcmp(word, "delay"))
		return delay(a, b);
	if (!strcmp(word, "signals"))
		return signals;
	if (!strcmp(word, "exec"))
		become_another();
	if (!strcmp(word, "exit"))
		exit((int)a);
	return -EINVAL;
}

static void *obey_all(void *arg);

/* Another thread goes on instead of this one. */
static void hand_over(bool leave)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, obey_all, NULL))
		err(1, "pthread_create");
	answer(0);
	if (leave)
		pthread_exit(NULL);
	pthread_join(thread, NULL);
}

static void *obey_all(void *arg)
{
	char line[128];

	(void)arg;
	while (fgets(line, sizeof line, stdin)) {
		if (!strncmp(line, "leave", 5) || !strncmp(line, "step_aside", 10))
			hand_over(line[0] == 'l');
		else
			answer(obey(line));
	}
	exit(0);
}

int main(void)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};

	sigaction(SIGUSR1, &action, NULL);
	answer(getpid()); /* it is there */
	obey_all(NULL);
	return 0;
}
