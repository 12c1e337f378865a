/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A peer is a child that waits on a socket for actions. They are sent as the address of a function,
 * relative to one in this file, since after exec the program may lie elsewhere.
 */
#include <linux/close_range.h>
#include <poll.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>

#include "cases.h"

#define BLOCKED_MS 200   /* without an answer for this time, the peer waits */
#define ANSWER_MS  30000 /* without an answer for this time, the peer hangs */
#define SOON_MS    10000

struct request {
	intptr_t act;
	long arg;
};

static int own_socket;

static intptr_t to_number(action *act)
{
	return (intptr_t)act - (intptr_t)peer_serve;
}

static action *to_action(intptr_t number)
{
	return (action *)(number + (intptr_t)peer_serve);
}

static void send_answer(int socket, long rc)
{
	if (write(socket, &rc, sizeof(rc)) != sizeof(rc))
		_exit(1);
}

int peer_serve(int socket)
{
	struct request request;
	ssize_t n;

	own_socket = socket;
	for (;;) {
		n = read(socket, &request, sizeof(request));
		if (n < 0 && errno == EINTR)
			continue;
		if (n != sizeof(request))
			_exit(0);
		send_answer(socket, to_action(request.act)(request.arg));
	}
}

long exec_self(long unused)
{
	char socket[16];

	(void)unused;
	snprintf(socket, sizeof(socket), "%d", own_socket);
	execl("/proc/self/exe", "kfd-cases", "--serve", socket, "--device", kfd_device, NULL);
	return -errno;
}

struct peer peer_start_none(void)
{
	return (struct peer){0};
}

struct peer peer_start_plain(void)
{
	int sockets[2];
	struct peer p;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets))
		broken("socketpair", -errno);
	p.pid = fork();
	if (p.pid < 0)
		broken("fork", -errno);
	if (!p.pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(sockets[1], 3);
		close_range(4, ~0u, 0);
		peer_serve(3);
	}
	close(sockets[1]);
	p.socket = sockets[0];
	return p;
}

void peer_ask(const struct peer *p, action *act, long arg)
{
	struct request request = {to_number(act), arg};

	if (write(p->socket, &request, sizeof(request)) != sizeof(request))
		broken("peer", -errno);
}

static bool has_answer(const struct peer *p, int ms)
{
	struct pollfd poller = {.fd = p->socket, .events = POLLIN};

	return poll(&poller, 1, ms) == 1;
}

bool peer_is_blocked(const struct peer *p)
{
	return !has_answer(p, BLOCKED_MS);
}

long peer_answer(const struct peer *p)
{
	long rc;

	if (!has_answer(p, ANSWER_MS))
		broken("peer", -ETIMEDOUT);
	if (read(p->socket, &rc, sizeof(rc)) != sizeof(rc))
		broken("peer", -EPIPE);
	return rc;
}

long peer_call(const struct peer *p, action *act, long arg)
{
	peer_ask(p, act, arg);
	return peer_answer(p);
}

void peer_kill(const struct peer *p)
{
	int status;

	kill(p->pid, SIGKILL);
	while (waitpid(p->pid, &status, __WALL) == p->pid && !WIFEXITED(status) &&
	       !WIFSIGNALED(status))
		;
}

struct peer peer_start_open(void)
{
	struct peer p = peer_start_plain();

	must("peer: open", peer_call(&p, open_kfd, 0));
	return p;
}

struct peer peer_start_seized(void)
{
	struct peer p = peer_start_open();

	must("seize", seize(p.pid));
	return p;
}

struct peer peer_start_debugged(void)
{
	struct peer p = peer_start_seized();

	must("enable", enable(p.pid));
	return p;
}

struct peer peer_start_ready(void)
{
	struct peer p = peer_start_seized();

	must("peer: runtime", peer_call(&p, set_runtime, KFD_RUNTIME_ENABLE_MODE_ENABLE));
	must("enable", enable(p.pid));
	return p;
}

struct thread_request {
	action *act;
	long arg, rc;
};

static void *run_request(void *arg)
{
	struct thread_request *request = arg;

	request->rc = request->act(request->arg);
	return NULL;
}

long in_thread(action *act, long arg)
{
	struct thread_request request = {act, arg, 0};
	pthread_t thread;

	if (pthread_create(&thread, NULL, run_request, &request))
		broken("thread", -EAGAIN);
	pthread_join(thread, NULL);
	return request.rc;
}

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

long repeat_while(long while_rc, action *act, long arg)
{
	int64_t until_ms = now_ms() + SOON_MS;
	long rc;

	while ((rc = act(arg)) == while_rc && now_ms() < until_ms)
		usleep(1000);
	return rc;
}
