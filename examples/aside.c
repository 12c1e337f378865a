/* SPDX-License-Identifier: Apache-2.0 */
/* Lets any ROCm program step aside: SIGUSR1 takes its own queues off the GPU, SIGUSR2 puts them
 * back.
 * Compile with:  cc -shared -fPIC aside.c -o aside.so $(pkg-config --cflags --libs gpreempt)
 * Run with:      LD_PRELOAD=./aside.so PROGRAM... */
#include <gpreempt.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static sigset_t signals;

static void *obey(void *arg)
{
	struct gpreempt *g = NULL;
	char why[256];
	int signal, n;

	while (!sigwait(&signals, &signal)) {
		n = g ? 0 : gpreempt_open(getpid(), 0, &g, why, sizeof why);
		if (!n && signal == SIGUSR1)
			n = gpreempt_hold_self(g, GPREEMPT_NORMAL_PRIORITY);
		else if (!n)
			n = gpreempt_release_self(g);
		if (n < 0)
			fprintf(stderr, "aside: %s\n", g ? gpreempt_why(g) : why);
		else
			fprintf(stderr, "aside: %d queues are %s the GPU\n", n,
				signal == SIGUSR1 ? "off" : "back on");
	}
	return arg;
}

/* Runs before main(), so that all threads of the program inherit the blocked signals and only the
 * thread above receives them. */
__attribute__((constructor)) static void begin(void)
{
	pthread_t thread;

	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR1);
	sigaddset(&signals, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	if (!pthread_create(&thread, NULL, obey, NULL))
		pthread_detach(thread);
}
