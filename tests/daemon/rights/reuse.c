/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rights-reuse DAEMON SIMGPU LOG: whom a number means. A process that gets the pid of one that has
 * ended gets nothing else of it, whenever that happens; and a number of a container's means nobody
 * outside of it. The arguments are the daemon's pid, that of the simulated GPU, and where the
 * daemon logs.
 */
#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "actor.h"
#include "base/run_dir.h"
#include "rpc/client.h"

static struct {
	pid_t daemon, gpu;
	const char *log;
	struct actor *steward;
	unsigned failures;
} test;

static char source[ACTOR_TEXT];

static void check(bool good, const char *claim, const char *why)
{
	printf("%s: %s%s%s\n", good ? "ok" : "FAILED", claim, good ? "" : ": ", good ? "" : why);
	test.failures += !good;
}

static struct actor_kind kind_of(uid_t uid, int container)
{
	return (struct actor_kind){.uid = {uid, uid, uid}, .container = container, .queue = true};
}

/* Its state and class are those of a process of which nobody ever said anything. */
static bool is_untouched(const struct actor *a)
{
	static const char *const field[] = {"class", "set_by", "state"}, *const value[] = {
										 "unmanaged",
										 "default", "idle"};
	char now[64];

	actor_wait_for_task(test.steward, a);
	for (int i = 0; i < 3; i++) {
		MUST(actor_task(test.steward, a, field[i], now, sizeof now));
		snprintf(source, sizeof source, "%s is %s", field[i], now);
		if (strcmp(now, value[i]) != 0)
			return false;
	}
	return true;
}

/* Ends it; another user's process has its pid then. A start time is a hundredth of a second. */
static struct actor *replace(struct actor *old, bool queue)
{
	struct actor_kind kind = kind_of(BOB, -1);
	struct actor *new;

	kind.pid = old->pid;
	kind.queue = queue;
	kind.mute = true;
	actor_end(old);
	usleep(30000);
	new = actor_start(&kind);
	if (!new) {
		puts("skipped: somebody else was quicker, or a pid cannot be chosen here");
		_exit(77);
	}
	MUST(new->pid == kind.pid);
	return new;
}

#define AS_LC ",\"class\":\"lc\",\"priority\":3"

static void by_start_time(char *out, size_t size, const struct actor *a, const char *more)
{
	snprintf(out, size, "{\"target\":{\"pid\":%d,\"start_time\":%llu}%s}", a->pid,
		 (unsigned long long)a->start_time, more);
}

/* A pid that is used again. */

static void what_was_said_of_the_dead_is_not_said_of_the_next(void)
{
	struct actor_kind kind = kind_of(ALICE, -1);
	struct actor *old = actor_start(&kind), *new;
	char params[256];

	actor_wait_for_task(test.steward, old);
	by_start_time(params, sizeof params, old, AS_LC);
	MUST(!actor_ask(test.steward, ACTOR_CONTROL, "set", params, source));
	MUST(!actor_ask_about(test.steward, "hold", old, "", source));
	new = replace(old, true);
	check(is_untouched(new), "class and hold of the dead are not the next one's", source);
	check(actor_ask(test.steward, ACTOR_CONTROL, "set", params, source) == -ESRCH &&
		      strstr(source, "its pid was reused"),
	      "pid and start time of the dead are refused", source);
	check(is_untouched(new), "and nothing came of it", source);
	actor_end(new);
}

/* The request is on its way, and the daemon reads it when all is over. */
static void a_target_that_is_replaced_while_the_request_waits_is_refused(const char *method)
{
	struct actor_kind kind = kind_of(ALICE, -1);
	struct actor *old = actor_start(&kind), *new;
	char params[256];

	actor_wait_for_task(test.steward, old);
	by_start_time(params, sizeof params, old, strcmp(method, "set") ? "" : AS_LC);
	kill(test.daemon, SIGSTOP);
	actor_send(test.steward, method, params);
	new = replace(old, false);
	kill(test.daemon, SIGCONT);
	check(actor_receive(test.steward, source) == -ESRCH,
	      "replaced before the daemon reads: pid and start time refused", source);
	actor_make_queue(new);
	check(is_untouched(new), "and the next one is left alone", source);
	actor_end(new);
}

static bool log_has(const char *text)
{
	char line[512];
	bool found = false;
	FILE *f = fopen(test.log, "re");

	MUST(f);
	while (!found && fgets(line, sizeof line, f))
		found = strstr(line, text);
	fclose(f);
	return found;
}

/* The device has the order and does not answer: the target ends in the middle. */
static void a_target_that_is_replaced_while_the_device_acts_is_not_held(void)
{
	struct actor_kind kind = kind_of(ALICE, -1);
	struct actor *old = actor_start(&kind), *new;
	char text[64], params[256];

	actor_wait_for_task(test.steward, old);
	snprintf(text, sizeof text, "process.hold-requested pid=%d ", old->pid);
	kill(test.gpu, SIGSTOP);
	by_start_time(params, sizeof params, old, "");
	actor_send(test.steward, "hold", params);
	for (int i = 0; i < 4000 && !log_has(text); i++)
		usleep(5000);
	check(log_has(text), "the daemon has begun to hold", "");
	new = replace(old, false);
	kill(test.gpu, SIGCONT);
	actor_receive(test.steward, source); /* held in time, or not: there is nobody any more */
	actor_make_queue(new);
	check(is_untouched(new), "replaced while the device acts: the next one is left alone",
	      source);
	actor_end(new);
}

/* Rules would make whoever is called `chosen` best-effort, after a look at its environment. */
static void a_target_that_is_replaced_while_its_facts_are_read_gets_no_rule(void)
{
	struct actor_kind kind = kind_of(ALICE, -1);
	struct actor *old, *new, *witness;
	char class[64];
	int pipe[2];

	MUST(!pipe2(pipe, O_CLOEXEC));
	kind.silent = pipe;
	kind.name = "chosen";
	old = actor_start(&kind);
	if (!old) {
		puts("skipped: no userfaultfd");
		return;
	}
	actor_wait_for_task(test.steward, old);
	new = replace(old, true);
	/* Asked later, so answered later; and from then on the question of the first is over. */
	kind.uid[0] = kind.uid[1] = kind.uid[2] = CAROL;
	witness = actor_start(&kind);
	actor_wait_for_task(test.steward, witness);
	for (int i = 0; i < 4000; i++) {
		MUST(actor_task(test.steward, witness, "class", class, sizeof class));
		if (!strcmp(class, "be"))
			break;
		usleep(5000);
	}
	check(!strcmp(class, "be"), "who does not answer gets its rule without that", class);
	check(is_untouched(new), "replaced while its facts are read: the next one gets no rule",
	      source);
	actor_end(witness);
	actor_end(new);
	close(pipe[0]);
	close(pipe[1]);
}

/* Root of a container connects, hands on the connection and ends; its pid is then a host's. */
static void a_connection_from_a_container_stays_one(int container)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	char folder[GP_RUN_DIR_SIZE];
	struct gp_client *client;
	struct gp_error err = {0};
	struct actor_kind kind = kind_of(0, -1);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), r;
	struct actor *heir;
	pid_t pid;

	snprintf(address.sun_path, sizeof address.sun_path, "%s/gpreemptd.sock",
		 gp_run_dir(folder, sizeof folder));
	container_enter(container);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		MUST(!connect(fd, (struct sockaddr *)&address, sizeof address));
		for (;;)
			pause();
	}
	container_enter(-1);
	while (gp_client_adopt(dup(fd), &client, &err)) /* not connected yet */
		usleep(5000);
	kill(pid, SIGKILL);
	MUST(waitpid(pid, NULL, 0) == pid);
	kind.pid = pid;
	kind.queue = false;
	heir = actor_start(&kind);
	if (heir) {
		r = gp_client_call(client, "reload", NULL, NULL, &err);
		check(r == -EPERM,
		      "a container's connection is one when its maker's pid is a host's",
		      r ? err.text : "it was allowed");
	}
	actor_end(heir);
	gp_client_close(client);
	close(fd);
}

static void a_number_in_a_container_is_nobody_outside(int container)
{
	struct actor_kind kind = kind_of(ALICE, -1);
	struct actor *outside = actor_start(&kind), *inside, *asker;
	char params[256];

	kind.container = container;
	asker = actor_start(&kind);
	kind.pid = outside->pid; /* the same number, in another world */
	usleep(30000);           /* a start time is a hundredth of a second */
	inside = actor_start(&kind);
	MUST(outside && asker && inside && inside->pid != outside->pid);
	actor_wait_for_task(test.steward, inside);
	by_start_time(params, sizeof params, outside, AS_LC);
	check(actor_ask(asker, ACTOR_CONTROL, "set", params, source) == -ESRCH &&
		      strstr(source, "its pid was reused"),
	      "a number from a container with a start time from outside is refused", source);
	snprintf(params, sizeof params, "{\"pid\":%d}", outside->pid);
	check(actor_ask(asker, ACTOR_CONTROL, "tasks", params, source) == -EPERM, "and as a filter",
	      source);
	check(is_untouched(outside) && is_untouched(inside), "nothing came of it", source);
	snprintf(params, sizeof params, "{\"target\":{\"pid\":%d}}", outside->pid);
	check(!actor_ask(asker, ACTOR_CONTROL, "hold", params, source) && is_untouched(outside),
	      "a number from a container means no process outside", source);
	check(!is_untouched(inside), "but the one inside", source);
	actor_end(inside);
	actor_end(outside);
	actor_end(asker);
}

static void a_sibling_cannot_be_named(int container)
{
	struct actor_kind kind = kind_of(ALICE, container);
	struct actor *asker = actor_start(&kind), *sibling;

	kind.container = container_start();
	sibling = actor_start(&kind);
	MUST(asker && sibling);
	actor_wait_for_task(test.steward, sibling);
	check(actor_ask_about(asker, "hold", sibling, "", source) == -ESRCH,
	      "one's own process in another container is refused", source);
	check(actor_ask_about(asker, "set", sibling, ",\"class\":\"be\"", source) == -ESRCH,
	      "and not set", source);
	check(is_untouched(sibling), "nothing came of it", source);
	actor_end(sibling);
	actor_end(asker);
	close(kind.container);
}

int main(int argc, char **argv)
{
	struct actor_kind kind = kind_of(0, -1);
	int container;

	if (argc != 4 || geteuid())
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	test.daemon = atoi(argv[1]);
	test.gpu = atoi(argv[2]);
	test.log = argv[3];
	container = container_start();
	test.steward = actor_start(&kind);
	MUST(test.steward);
	what_was_said_of_the_dead_is_not_said_of_the_next();
	a_target_that_is_replaced_while_the_request_waits_is_refused("set");
	a_target_that_is_replaced_while_the_request_waits_is_refused("hold");
	a_target_that_is_replaced_while_the_device_acts_is_not_held();
	a_target_that_is_replaced_while_its_facts_are_read_gets_no_rule();
	a_connection_from_a_container_stays_one(container);
	a_number_in_a_container_is_nobody_outside(container);
	a_sibling_cannot_be_named(container);
	actor_end(test.steward);
	return test.failures ? 1 : 0;
}
