/* SPDX-License-Identifier: Apache-2.0 */
#include "actor.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <json-c/json.h>
#include <linux/capability.h>
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

#include "base/process.h"
#include "base/run_dir.h"
#include "gpu/simgpu/program.h"
#include "rpc/client.h"

#define PATIENCE_MS 20000

enum wish { WISH_ASK, WISH_CONNECT, WISH_BECOME };

struct order {
	enum wish wish;
	enum actor_socket socket;
	uid_t uid[3];
	char method[32], params[1024];
};

struct reply {
	int code;
	char text[ACTOR_TEXT];
};

/* ---- a message, with a file or not --------------------------------------------------------------
 */

static void send_order(int link, const struct order *o, int file)
{
	struct iovec io = {(void *)(uintptr_t)o, sizeof *o};
	char control[CMSG_SPACE(sizeof file)] __attribute__((aligned(8))) = {0};
	struct msghdr m = {.msg_iov = &io, .msg_iovlen = 1};

	if (file >= 0) {
		struct cmsghdr *c = (struct cmsghdr *)(void *)control;

		*c = (struct cmsghdr){CMSG_LEN(sizeof file), SOL_SOCKET, SCM_RIGHTS};
		memcpy(CMSG_DATA(c), &file, sizeof file);
		m.msg_control = control;
		m.msg_controllen = sizeof control;
	}
	MUST(sendmsg(link, &m, 0) == sizeof *o);
}

/* false: the test is over. */
static bool receive_order(int link, struct order *o, int *file)
{
	struct iovec io = {o, sizeof *o};
	char control[CMSG_SPACE(sizeof *file)] __attribute__((aligned(8)));
	struct msghdr m = {.msg_iov = &io,
	                   .msg_iovlen = 1,
	                   .msg_control = control,
	                   .msg_controllen = sizeof control};
	struct cmsghdr *c;

	if (recvmsg(link, &m, MSG_CMSG_CLOEXEC) != sizeof *o)
		return false;
	c = CMSG_FIRSTHDR(&m);
	*file = -1;
	if (c && c->cmsg_type == SCM_RIGHTS)
		memcpy(file, CMSG_DATA(c), sizeof *file);
	return true;
}

/* ---- the actor's own side -----------------------------------------------------------------------
 */

/* It may become another user whenever the test wants. */
static void keep_right_to_change(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {0};

	data[0].effective = data[0].permitted = 1u << CAP_SETUID;
	MUST(!syscall(SYS_capset, &header, data));
}

static void become(const uid_t uid[3])
{
	bool keep = !getenv("ACTORS_WITHOUT_CAPABILITIES");

	MUST(!prctl(PR_SET_KEEPCAPS, keep, 0, 0, 0));
	MUST(!setresuid(uid[0], uid[1], uid[2]));
	if (keep)
		keep_right_to_change();
	MUST(!prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)); /* as after exec */
}

static void write_map(const char *path, unsigned inside, unsigned outside)
{
	FILE *f = fopen(path, "we");

	if (!f || fprintf(f, "%u %u 1\n", inside, outside) < 0 || fclose(f))
		_exit(77);
}

/* Without any right of root's. Returns in the first process of the new namespaces. */
static void make_namespaces(const struct actor_kind *k)
{
	FILE *f;
	pid_t pid;
	int status;

	MUST(!prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0));
	MUST(!setresuid(k->uid[0], k->uid[0], k->uid[0]));
	MUST(!prctl(PR_SET_DUMPABLE, 1, 0, 0, 0));
	if (unshare(CLONE_NEWUSER | CLONE_NEWPID))
		_exit(77);
	MUST(!prctl(PR_SET_DUMPABLE, 1, 0, 0, 0));
	f = fopen("/proc/self/setgroups", "we");
	if (!f || fputs("deny", f) < 0 || fclose(f))
		_exit(77);
	write_map("/proc/self/uid_map", 0, k->uid[0]);
	write_map("/proc/self/gid_map", 0, k->uid[0]);
	pid = fork();
	MUST(pid >= 0);
	if (pid) {
		waitpid(pid, &status, 0);
		_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
	}
	MUST(getpid() == 1 && !getuid());
}

static struct gp_client *client[2];

static void connect_all(void)
{
	char folder[GP_RUN_DIR_SIZE], path[GP_RUN_DIR_SIZE + 16];
	struct gp_error err = {0};

	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof path, "%s/%s", gp_run_dir(folder, sizeof folder),
		         i == ACTOR_HINT ? "hint.sock" : "gpreemptd.sock");
		gp_client_close(client[i]);
		if (gp_client_connect(path, &client[i], &err)) {
			fprintf(stderr, "%s: %s\n", path, err.text);
			_exit(1);
		}
	}
}

static void ask(const struct order *o, int file, struct reply *reply)
{
	struct json_object *params = json_tokener_parse(o->params), *result = NULL;
	struct gp_error err = {0};

	reply->code = gp_client_call(client[o->socket], o->method, params, &file, file >= 0,
	                             &result, &err);
	snprintf(reply->text, sizeof reply->text, "%s",
	         reply->code ? err.text
	                     : json_object_to_json_string_ext(result, JSON_C_TO_STRING_PLAIN));
	json_object_put(result);
}

static void make_queue(void)
{
	struct simgpu_hello hello = {0};
	struct gp_error err = {0};
	char path[SIMGPU_PATH_SIZE];

	if (gp_simgpu_join(gp_simgpu_path(path, sizeof path), &hello, &err) < 0) {
		fprintf(stderr, "no queue: %s\n", err.text);
		_exit(1);
	}
}

__attribute__((noreturn)) static void act(int link, const struct actor_kind *k)
{
	static struct reply reply;
	struct order o;
	int file;

	if (k->queue)
		make_queue();
	connect_all();
	MUST(send(link, &reply.code, sizeof reply.code, 0) > 0);
	while (receive_order(link, &o, &file)) {
		reply.code = 0;
		switch (o.wish) {
		case WISH_ASK: ask(&o, file, &reply); break;
		case WISH_CONNECT: connect_all(); break;
		case WISH_BECOME: become(o.uid); break;
		}
		if (file >= 0)
			close(file);
		MUST(send(link, &reply, sizeof reply.code + strlen(reply.text) + 1, 0) > 0);
	}
	_exit(0);
}

__attribute__((noreturn)) static void begin(int link, const struct actor_kind *k)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	MUST(!setgroups(k->group ? 1 : 0, &k->group));
	MUST(!setresgid(k->uid[0], k->uid[0], k->uid[0]));
	if (k->rootless)
		make_namespaces(k);
	else
		become(k->uid);
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* the change of user has taken it back */
	act(link, k);
}

/* ---- the test's side ----------------------------------------------------------------------------
 */

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

static void enter(int container)
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
		enter(kind->container);
	a->parent = fork_as(kind->pid);
	if (!a->parent) {
		close(link[0]);
		begin(link[1], kind);
	}
	if (kind->container >= 0)
		enter(-1);
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
	enter(-1);
	fd = gp_pidfd_open(pid);
	MUST(fd >= 0);
	return fd;
}

static int order(struct actor *a, const struct order *o, int file, char *answer)
{
	static struct reply reply;

	send_order(a->link, o, file);
	MUST(recv(a->link, &reply, sizeof reply, 0) > 0);
	if (answer)
		memcpy(answer, reply.text, ACTOR_TEXT);
	return reply.code;
}

int actor_ask(struct actor *a, enum actor_socket socket, const char *method, const char *params,
              int file, char *answer)
{
	struct order o = {.wish = WISH_ASK, .socket = socket};

	snprintf(o.method, sizeof o.method, "%s", method);
	snprintf(o.params, sizeof o.params, "%s", params);
	return order(a, &o, file, answer);
}

void actor_connect(struct actor *a)
{
	order(a, &(struct order){.wish = WISH_CONNECT}, -1, NULL);
}

void actor_become(struct actor *a, const uid_t uid[3])
{
	order(a, &(struct order){.wish = WISH_BECOME, .uid = {uid[0], uid[1], uid[2]}}, -1, NULL);
}

int actor_ask_about(struct actor *a, const char *method, const struct actor *whom, const char *more,
                    char *answer)
{
	char params[512];

	snprintf(params, sizeof params, "{\"target\":{\"pidfd\":0}%s}", more);
	return actor_ask(a, ACTOR_CONTROL, method, params, whom->pidfd, answer);
}

bool actor_task(struct actor *a, const struct actor *whom, const char *field, char *value,
                size_t size)
{
	static char text[ACTOR_TEXT];
	struct json_object *answer, *list, *found = NULL;

	*value = 0;
	if (actor_ask(a, ACTOR_CONTROL, "tasks", "{}", -1, text))
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
