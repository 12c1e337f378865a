/* SPDX-License-Identifier: Apache-2.0 */
/*
 * daemon-crowd SOCKET CLIENTS SECONDS TIMERS REALTIME: many busy clients of a daemon, and bare
 * timers to compare its threads with, with that real-time priority (0: none).
 *
 * The timers run from the start: TIMERS threads, each with a timerfd every 100 ms and nothing else
 * to do. Says `ready`; a line of pids on standard input lets the clients begin. Most ask, some
 * change the classes of these processes or hold and release them, some subscribe and read slowly or
 * not at all, some come and go. At the end one line of JSON: calls, refusals, connections that were
 * overrun by events nobody read, failures, the slowest call, how late the timers were. When the
 * machine itself stood still, calls that were under way say nothing; how many is said, too.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hist.h"
#include "base/rng.h"
#include "rpc/client.h"

#define TIMER_NS (100 * GP_NS_PER_MS)
#define STALL_NS GP_NS_PER_S /* later than that no thread is that the kernel could have run */
#define PIDS_MAX 1024

static struct {
	const char *socket;
	unsigned nclients, ntimers;
	uint64_t seconds;
	unsigned npids;
	int pid[PIDS_MAX];
	int realtime;
	_Atomic bool stop;
	_Atomic uint64_t calls, refused, failed, overrun, excused, events, slowest_ns;
	_Atomic uint64_t stalls_ns; /* for so long the machine stood still, in pieces of STALL_NS */
	pthread_mutex_t lock;
	struct gp_hist lag_ns;
} crowd = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void *wait_for_timer(void *arg)
{
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	uint64_t due_ns = gp_monotonic_ns(), ignored;

	(void)arg;
	if (crowd.realtime &&
	    pthread_setschedparam(pthread_self(), SCHED_FIFO,
				  &(struct sched_param){.sched_priority = crowd.realtime}))
		exit(1);
	prctl(PR_SET_TIMERSLACK, 1ul);
	while (!crowd.stop) {
		struct itimerspec at;
		uint64_t now_ns;

		due_ns += TIMER_NS;
		at = (struct itimerspec){.it_value = gp_timespec(due_ns)};
		timerfd_settime(fd, TFD_TIMER_ABSTIME, &at, NULL);
		if (read(fd, &ignored, sizeof ignored) < 0)
			break;
		now_ns = gp_monotonic_ns();
		pthread_mutex_lock(&crowd.lock);
		gp_hist_add(&crowd.lag_ns, now_ns - due_ns);
		if (now_ns - due_ns > STALL_NS)
			crowd.stalls_ns += now_ns - due_ns;
		pthread_mutex_unlock(&crowd.lock);
	}
	close(fd);
	return NULL;
}

static struct json_object *about(int pid)
{
	struct json_object *params = json_object_new_object(), *target = json_object_new_object();

	json_object_object_add(target, "pid", json_object_new_int(pid));
	json_object_object_add(params, "target", target);
	return params;
}

/* `stalled`: while it was under way, everything stood still for a while. */
static void note(const char *method, int r, const char *why, uint64_t took_ns, bool stalled)
{
	uint64_t slowest_ns = crowd.slowest_ns;

	crowd.calls++;
	if (stalled && (!r || r == -ETIMEDOUT)) {
		crowd.excused++;
		return;
	}
	if (r == -ESRCH || r == -EBUSY || r == -EAGAIN || r == -EPERM || r == -ECANCELED) {
		crowd.refused++;
	} else if (r == -ENOBUFS) { /* who never reads events has no use of the connection */
		crowd.overrun++;
	} else if (r) {
		crowd.failed++;
		fprintf(stderr, "%s: error %d after %llu ms: %s\n", method, -r,
			(unsigned long long)(took_ns / GP_NS_PER_MS), why);
	}
	while (took_ns > slowest_ns &&
	       !atomic_compare_exchange_weak(&crowd.slowest_ns, &slowest_ns, took_ns))
		;
}

/* -errno after which the connection is of no use. */
static int ask(struct gp_client *client, const char *method, struct json_object *params)
{
	uint64_t begin_ns = gp_monotonic_ns(), stalls_ns = crowd.stalls_ns;
	struct gp_error err = {0};
	int r = gp_client_call(client, method, params, NULL, &err);

	note(method, r, err.text, gp_monotonic_ns() - begin_ns, crowd.stalls_ns > stalls_ns);
	return r == -ETIMEDOUT || r == -ECONNRESET || r == -EPROTO || r == -ENOBUFS ? r : 0;
}

static int ask_something(struct gp_client *client, struct gp_rng *rng)
{
	static const char *const classes[] = {"lc", "be", "unmanaged"};
	int pid = crowd.pid[gp_rng_below(rng, crowd.npids)];
	struct json_object *params = about(pid);

	switch (gp_rng_below(rng, 16)) {
	case 0: json_object_put(params); return ask(client, "devices", NULL);
	case 1: json_object_put(params); return ask(client, "stats", NULL);
	case 2:
	case 3:
		json_object_object_add(params, "class",
				       json_object_new_string(classes[gp_rng_below(rng, 3)]));
		return ask(client, "set", params);
	case 4: {
		int r = ask(client, "hold", params);

		return r ? r : ask(client, "release", about(pid));
	}
	case 5: json_object_put(params); return ask(client, "policy", NULL);
	case 6: json_object_put(params); return ask(client, "hint", NULL);
	default:
		json_object_put(params);
		params = json_object_new_object();
		json_object_object_add(params, "pid", json_object_new_int(pid));
		return ask(client, "tasks", params);
	}
}

/* Some read what they subscribed to, some late, some never. */
static void read_events(struct gp_client *client, unsigned number)
{
	struct json_object *event;

	if (number % 20 >= 2)
		return;
	while (!gp_client_next(client, 0, &event, NULL)) {
		json_object_put(event);
		crowd.events++;
	}
}

static void *be_client(void *arg)
{
	unsigned number = (unsigned)(uintptr_t)arg;
	struct gp_rng rng;
	uint64_t asked = 0;

	gp_rng_init(&rng, 1, number);
	while (!crowd.stop) {
		struct gp_client *client;
		struct gp_error err = {0};
		int r = gp_client_connect(crowd.socket, &client, &err);

		if (r) {
			fprintf(stderr, "connect: %s\n", err.text);
			crowd.failed++;
			usleep(100000);
			continue;
		}
		if (number % 20 < 4)
			r = ask(client, "subscribe", NULL);
		while (!r && !crowd.stop) {
			r = ask_something(client, &rng);
			read_events(client, number);
			usleep(50000 + (useconds_t)gp_rng_below(&rng, 200000));
			if (number % 7 == 0 && ++asked % 50 == 0)
				break; /* comes and goes */
		}
		gp_client_close(client);
	}
	return NULL;
}

/* false: there are none. */
static bool read_pids(FILE *from)
{
	char *line = NULL, *rest = NULL;
	size_t size = 0;

	if (getline(&line, &size, from) > 0)
		for (const char *word = strtok_r(line, " \n", &rest);
		     word && crowd.npids < PIDS_MAX; word = strtok_r(NULL, " \n", &rest))
			crowd.pid[crowd.npids++] = atoi(word);
	free(line);
	return crowd.npids;
}

int main(int argc, char **argv)
{
	pthread_t *thread;

	if (argc != 6)
		return 2;
	crowd.realtime = atoi(argv[5]);
	crowd.socket = argv[1];
	crowd.nclients = (unsigned)atoi(argv[2]);
	crowd.seconds = (uint64_t)atoi(argv[3]);
	crowd.ntimers = (unsigned)atoi(argv[4]);
	gp_hist_init(&crowd.lag_ns);
	thread = calloc(crowd.nclients + crowd.ntimers, sizeof *thread);
	for (unsigned i = 0; i < crowd.ntimers; i++)
		pthread_create(&thread[i], NULL, wait_for_timer, NULL);
	puts("ready");
	fflush(stdout);
	if (!read_pids(stdin))
		exit(1);
	for (unsigned i = 0; i < crowd.nclients; i++)
		pthread_create(&thread[crowd.ntimers + i], NULL, be_client, (void *)(uintptr_t)i);
	sleep((unsigned)crowd.seconds);
	crowd.stop = true;
	for (unsigned i = 0; i < crowd.nclients + crowd.ntimers; i++)
		pthread_join(thread[i], NULL);
	printf("{\"calls\":%llu,\"refused\":%llu,\"overrun\":%llu,\"failed\":%llu,"
	       "\"stalls_ms\":%llu,\"excused\":%llu,\"events\":%llu,"
	       "\"slowest_ms\":%llu,\"lag_p50_us\":%llu,\"lag_p99_us\":%llu,\"lags\":%llu}\n",
	       (unsigned long long)crowd.calls, (unsigned long long)crowd.refused,
	       (unsigned long long)crowd.overrun, (unsigned long long)crowd.failed,
	       (unsigned long long)(crowd.stalls_ns / GP_NS_PER_MS),
	       (unsigned long long)crowd.excused, (unsigned long long)crowd.events,
	       (unsigned long long)(crowd.slowest_ns / GP_NS_PER_MS),
	       (unsigned long long)(gp_hist_quantile(&crowd.lag_ns, 500000) / 1000),
	       (unsigned long long)(gp_hist_quantile(&crowd.lag_ns, 990000) / 1000),
	       (unsigned long long)crowd.lag_ns.count);
	free(thread);
	return 0;
}
