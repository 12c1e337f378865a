/* SPDX-License-Identifier: Apache-2.0 */
/* The test's side of actors and containers. */
#include "actor.h"

#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "act.h"
#include "base/process.h"

#define PATIENCE_MS 20000

/* fork, with a pid of our choice if there is one, in the pid namespace that was entered. */
static pid_t fork_as(pid_t pid)
{
	struct clone_args args = {.exit_signal = SIGCHLD};

	if (pid) {
		args.set_tid = (uint64_t)(uintptr_t)&pid;
		args.set_tid_size = 1;
	}
	return (pid_t)syscall(SYS_clone3, &args, sizeof args);
}

void container_enter(int container)
{
	int own = container < 0 ? open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC) : container;

	MUST(!setns(own, CLONE_NEWPID));
	if (container < 0)
		close(own);
}

/* Its pid here, whatever it is there: the kernel translates. */
static bool hear_first(struct actor *a)
{
	struct ucred cred;
	char control[CMSG_SPACE(sizeof cred)] __attribute__((aligned(8)));
	struct iovec io = {&(int){0}, sizeof(int)};
	struct msghdr m = {.msg_iov = &io,
			   .msg_iovlen = 1,
			   .msg_control = control,
			   .msg_controllen = sizeof control};
	struct cmsghdr *c;

	if (recvmsg(a->link, &m, MSG_CMSG_CLOEXEC) <= 0)
		return false;
	c = CMSG_FIRSTHDR(&m);
	MUST(c && c->cmsg_type == SCM_CREDENTIALS);
	memcpy(&cred, CMSG_DATA(c), sizeof cred);
	a->pid = cred.pid;
	a->start_time = gp_process_start_time(a->pid);
	a->pidfd = gp_pidfd_open(a->pid);
	MUST(a->pidfd >= 0 && a->start_time);
	return true;
}

struct actor *actor_start(const struct actor_kind *kind)
{
	struct actor *a = calloc(1, sizeof *a);
	int link[2];

	MUST(a && !socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, link));
	MUST(!setsockopt(link[0], SOL_SOCKET, SO_PASSCRED, &(int){1}, sizeof(int)));
	a->link = link[0];
	a->pidfd = -1;
	if (kind->container >= 0)
		container_enter(kind->container);
	a->parent = fork_as(kind->pid);
	if (!a->parent) {
		close(link[0]);
		actor_begin(link[1], kind);
	}
	if (kind->container >= 0)
		container_enter(-1);
	close(link[1]);
	if (a->parent > 0 && hear_first(a))
		return a;
	close(a->link);
	if (a->parent > 0) {
		int status;

		MUST(waitpid(a->parent, &status, 0) == a->parent);
		MUST(WIFEXITED(status) && WEXITSTATUS(status) == 77);
	}
	free(a);
	return NULL;
}

void actor_end(struct actor *a)
{
	if (!a)
		return;
	if (a->pid > 0)
		kill(a->pid, SIGKILL);
	close(a->link);
	if (a->parent > 0)
		MUST(waitpid(a->parent, NULL, 0) == a->parent);
	if (a->pidfd >= 0)
		close(a->pidfd);
	free(a);
}

int container_start(void)
{
	pid_t pid;
	int fd;

	if (unshare(CLONE_NEWPID))
		_exit(77);
	pid = fork();
	MUST(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (unshare(CLONE_NEWNS))
			_exit(77);
		for (;;)
			pause();
	}
	container_enter(-1);
	fd = gp_pidfd_open(pid);
	MUST(fd >= 0);
	return fd;
}

int actor_receive(struct actor *a, char *answer)
{
	static struct reply reply;

	MUST(recv(a->link, &reply, sizeof reply, 0) > 0);
	if (answer)
		memcpy(answer, reply.text, ACTOR_TEXT);
	return reply.code;
}

static void send_order(const struct actor *a, const struct command *o)
{
	MUST(send(a->link, o, sizeof *o, 0) == sizeof *o);
}

static int command(struct actor *a, const struct command *o, char *answer)
{
	send_order(a, o);
	return actor_receive(a, answer);
}

static struct command question(enum actor_socket socket, const char *method, const char *params)
{
	struct command o = {.wish = WISH_ASK, .socket = socket};

	snprintf(o.method, sizeof o.method, "%s", method);
	snprintf(o.params, sizeof o.params, "%s", params);
	return o;
}

void actor_send(struct actor *a, const char *method, const char *params)
{
	struct command o = question(ACTOR_CONTROL, method, params);

	send_order(a, &o);
}

int actor_ask(struct actor *a, enum actor_socket socket, const char *method, const char *params,
	      char *answer)
{
	struct command o = question(socket, method, params);

	return command(a, &o, answer);
}

void actor_make_queue(struct actor *a)
{
	command(a, &(struct command){.wish = WISH_QUEUE}, NULL);
}

void actor_become(struct actor *a, const uid_t uid[3])
{
	command(a, &(struct command){.wish = WISH_BECOME, .uid = {uid[0], uid[1], uid[2]}}, NULL);
}

/* The pid by which `a` knows `whom`: the last of those in whom's pid namespaces, or the first. */
static pid_t pid_for(const struct actor *a, const struct actor *whom)
{
	char path[64], line[256];
	pid_t pid = whom->pid;
	FILE *f;

	if (!gp_process_same_pidns(a->pid, whom->pid))
		return pid;
	snprintf(path, sizeof path, "/proc/%d/status", whom->pid);
	f = fopen(path, "re");
	MUST(f);
	while (fgets(line, sizeof line, f))
		if (!strncmp(line, "NSpid:", 6))
			pid = (pid_t)strtol(strrchr(line, '\t'), NULL, 10);
	fclose(f);
	return pid;
}

int actor_ask_about(struct actor *a, const char *method, const struct actor *whom, const char *more,
		    char *answer)
{
	char params[512];

	snprintf(params, sizeof params, "{\"target\":{\"pid\":%d,\"start_time\":%llu}%s}",
		 pid_for(a, whom), (unsigned long long)whom->start_time, more);
	return actor_ask(a, ACTOR_CONTROL, method, params, answer);
}

bool actor_task(struct actor *a, const struct actor *whom, const char *field, char *value,
		size_t size)
{
	static char text[ACTOR_TEXT];
	struct json_object *answer, *list, *found = NULL;

	*value = 0;
	if (actor_ask(a, ACTOR_CONTROL, "tasks", "{}", text))
		return false;
	answer = json_tokener_parse(text);
	list = json_object_object_get(answer, "tasks");
	for (size_t i = 0; !found && i < json_object_array_length(list); i++) {
		struct json_object *task = json_object_array_get_idx(list, i);

		if (json_object_get_int(json_object_object_get(task, "pid")) == whom->pid)
			found = task;
	}
	if (found)
		snprintf(value, size, "%s",
			 json_object_get_string(json_object_object_get(found, field)));
	json_object_put(answer);
	return found;
}

void actor_wait_for_task(struct actor *a, const struct actor *whom)
{
	char value[64];

	for (int i = 0; i < PATIENCE_MS / 5; i++) {
		if (actor_task(a, whom, "class", value, sizeof value))
			return;
		usleep(5000);
	}
	fprintf(stderr, "the daemon does not see process %d\n", whom->pid);
	_exit(1);
}
