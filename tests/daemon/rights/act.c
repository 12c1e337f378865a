/* SPDX-License-Identifier: Apache-2.0 */
/* An actor: who it is, and what it does when it is told. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <json-c/json.h>
#include <linux/capability.h>
#include <linux/userfaultfd.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "act.h"
#include "base/process.h"
#include "base/run_dir.h"
#include "gpu/simclient/connection.h"
#include "rpc/client.h"

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

static void ask(const struct command *o, struct reply *reply)
{
	struct json_object *params = json_tokener_parse(o->params), *result = NULL;
	struct gp_error err = {0};

	reply->code = gp_client_call(client[o->socket], o->method, params, &result, &err);
	snprintf(reply->text, sizeof reply->text, "%s",
		 reply->code ? err.text
			     : json_object_to_json_string_ext(result, JSON_C_TO_STRING_PLAIN));
	json_object_put(result);
}

static void make_queue(void)
{
	struct gp_simgpu_hello hello = {0};
	struct gp_error err = {0};
	char path[GP_SIMGPU_PATH_SIZE];

	if (gp_simgpu_join(gp_simgpu_path(path, sizeof path), &hello, &err) < 0) {
		fprintf(stderr, "no queue: %s\n", err.text);
		_exit(1);
	}
}

/* The test was started with a variable PADDING of several pages. */
static void take_page_away(const int until[2])
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *at = getenv("PADDING");
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register range = {.mode = UFFDIO_REGISTER_MODE_MISSING};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);

	MUST(at && strlen(at) > 2 * page);
	at += -(uintptr_t)at & (page - 1);
	range.range = (struct uffdio_range){(uintptr_t)at, page};
	if (fd < 0 || ioctl(fd, UFFDIO_API, &api))
		_exit(77);
	MUST(mmap(at, page, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1,
		  0) == at);
	MUST(!ioctl(fd, UFFDIO_REGISTER, &range));
	if (fork())
		return;
	close(until[1]); /* this one has the page, too */
	(void)!read(until[0], &api, 1);
	_exit(0);
}

__attribute__((noreturn)) static void act(int link, const struct actor_kind *k)
{
	static struct reply reply;
	struct command o;

	if (k->name)
		prctl(PR_SET_NAME, k->name);
	if (k->queue)
		make_queue();
	if (!k->mute)
		connect_all();
	MUST(send(link, &reply.code, sizeof reply.code, 0) > 0);
	while (recv(link, &o, sizeof o, 0) == sizeof o) { /* until the test is over */
		reply.code = 0;
		switch (o.wish) {
		case WISH_ASK: ask(&o, &reply); break;
		case WISH_QUEUE: make_queue(); break;
		case WISH_BECOME: become(o.uid); break;
		}
		MUST(send(link, &reply, sizeof reply.code + strlen(reply.text) + 1, 0) > 0);
	}
	_exit(0);
}

void actor_begin(int link, const struct actor_kind *k)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (k->silent)
		take_page_away(k->silent); /* as root: not everybody may */
	MUST(!setgroups(k->group ? 1 : 0, &k->group));
	MUST(!setresgid(k->uid[0], k->uid[0], k->uid[0]));
	if (k->rootless)
		make_namespaces(k);
	else
		become(k->uid);
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* the change of user has taken it back */
	act(link, k);
}
