/* SPDX-License-Identifier: Apache-2.0 */
/* What the test (actor.c) and an actor (act.c) say to each other, a packet each. */
#ifndef GP_TESTS_DAEMON_RIGHTS_ACT_H
#define GP_TESTS_DAEMON_RIGHTS_ACT_H

#include "actor.h"

enum wish { WISH_ASK, WISH_QUEUE, WISH_BECOME };

struct command {
	enum wish wish;
	enum actor_socket socket;
	uid_t uid[3];
	char method[32], params[1024];
};

struct reply {
	int code;
	char text[ACTOR_TEXT];
};

/* In the new process: becomes what it shall be, says so, and does what it is told. */
__attribute__((noreturn)) void actor_begin(int link, const struct actor_kind *k);

#endif
