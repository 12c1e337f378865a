/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Real processes of real users, in pid namespaces of their own where wanted, each with a queue on
 * the simulated GPU and connections to the daemon. The test says what each asks for. The test
 * itself is root: everything ends with an exit where something cannot be had (77: not on this
 * machine).
 */
#ifndef GP_TESTS_DAEMON_RIGHTS_ACTOR_H
#define GP_TESTS_DAEMON_RIGHTS_ACTOR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define ACTOR_TEXT 60000

/* Says where and what, and ends the test. */
#define MUST(condition)                                                                     \
	do {                                                                                \
		if (!(condition)) {                                                         \
			fprintf(stderr, "%s:%d: %s: %m\n", __FILE__, __LINE__, #condition); \
			_exit(1);                                                           \
		}                                                                           \
	} while (0)

/* Free numbers: they need no names. */
enum { ALICE = 59001, BOB, CAROL, MEMBER, KEEPER_OF_DAEMON, GROUP = 59100 };

struct actor_kind {
	uid_t uid[3];  /* real, effective, saved */
	gid_t group;   /* another one that it is in; 0: none */
	int container; /* pidfd of a process in it; -1: in the test's own pid namespace */
	bool rootless; /* root in a user and pid namespace that this user makes himself */
	bool queue;    /* has one on the simulated GPU */
	bool mute;     /* does not connect to the daemon, which may not answer now */
	/* A pipe: until it is closed nobody can read its environment, a page of which never comes.
	 * Also when it has ended. NULL: everybody can. */
	const int *silent;
	pid_t pid;        /* that it shall have in its pid namespace; 0: any */
	const char *name; /* NULL: as the test */
};

struct actor {
	pid_t pid, parent; /* in the test's pid namespace; parent: whom to wait for */
	uint64_t start_time;
	int pidfd, link;
};

enum actor_socket { ACTOR_CONTROL, ACTOR_HINT };

/* An empty pid namespace with its first process, of root's making: its pidfd. */
int container_start(void);

/* For who forks by himself: what is forked next is in there; -1: here again. */
void container_enter(int container);

/* NULL: the pid is taken, or this user may not make namespaces. */
struct actor *actor_start(const struct actor_kind *kind);
void actor_end(struct actor *a); /* NULL is fine */

/* 0 or -errno. `answer`, of ACTOR_TEXT bytes, may be NULL: the result as JSON, or the sentence. */
int actor_ask(struct actor *a, enum actor_socket socket, const char *method, const char *params,
	      char *answer);

/* The same in two steps: others can do something in between. */
void actor_send(struct actor *a, const char *method, const char *params);
int actor_receive(struct actor *a, char *answer);

void actor_make_queue(struct actor *a);
void actor_become(struct actor *a, const uid_t uid[3]);

/* About `whom`, named by its pid for `a` and its start time. `more` is "" or begins with a comma.
 */
int actor_ask_about(struct actor *a, const char *method, const struct actor *whom, const char *more,
		    char *answer);

/* Waits until the daemon has tasks of it, as `a` sees it. */
void actor_wait_for_task(struct actor *a, const struct actor *whom);

/* What `a` is told about its only task: false, it is not there. */
bool actor_task(struct actor *a, const struct actor *whom, const char *field, char *value,
		size_t size);

#endif
