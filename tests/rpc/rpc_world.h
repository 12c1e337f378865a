/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server with two sockets in a thread of its own, and clients that send whatever they like. The
 * tests see into the server only through its methods:
 *
 *     echo      answers its params                        keep      answers when `let_go` says so
 *     let_go    {"count": N}: the oldest N kept calls     counters  gp_rpc_counters
 *     hint      may come without an id
 *     target    {"target": ...}: pid and start time       subscribe {"bits": N}
 *     emit      {"bits", "count", "bytes"}: events        fail      {"errno": N}
 *     blob      {"bytes": N}: a long answer               ticket    how many were asked for before
 *     toil      blocks the server for 2 ms
 *     most_toils  how many there were between two beats of a timer since it was asked last
 *     stall     does nothing until `gate` is written to: what comes meanwhile comes at once
 *
 * The second socket has `hint` and `hints` (how many came) only.
 */
#ifndef GP_TESTS_RPC_WORLD_H
#define GP_TESTS_RPC_WORLD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "rpc/client.h"
#include "rpc/server/server.h"

#define KEPT_MAX       64
#define WORLD_LINE_MAX (64u << 10) /* bytes of a line, unless a test sets another limit */
#define WAIT_MS                                                                           \
	60000 /* more than anything takes on a busy machine: not waited for in a good run \
	       */

struct world {
	char folder[64];
	char path[128], hint_path[128];
	uid_t (*account)(void *arg, uid_t uid); /* see struct gp_rpc_config */
	struct gp_rpc_limits limits;            /* of the first socket; 0 = the default */
	int fd; /* > 0: instead of the first path, listens already */
	pthread_t thread;
	pthread_barrier_t ready;
	int stop, gate;      /* eventfds */
	struct gp_error err; /* why it did not start */
	int result;          /* of gp_rpc_server_new */
	sd_event *event;     /* from here on the thread's own */
	struct gp_rpc_server *server;
	struct gp_rpc_call *kept[KEPT_MAX];
	unsigned nkept;
	unsigned hints, emitted, tickets;
	unsigned toils, most_toils; /* since the last run of a timer with priority over clients */
	bool heartbeats;
};

/* The limits must stand in `w` before; it is zeroed otherwise. */
void world_start(struct world *w);
int world_try_start(struct world *w);

/* Ends the server, then lets go of what is kept, which must then be harmless. */
void world_stop(struct world *w);

/* For cmocka: a world with the usual limits for each test. */
int world_setup(void **state);
int world_teardown(void **state);
#define WORLD_TEST(f) TEST_IN(struct world, f, world_setup, world_teardown)

/* A client beside, in a thread: it asks, waits for the answer, and asks again. */
struct bystander {
	pthread_t thread;
	struct gp_client *client;
	atomic_uint answered;
	atomic_bool stop;
};
void bystander_start(struct bystander *b, const struct world *w);
void bystander_stop(struct bystander *b);

/* Returns when it got `n` answers from now on; fails the test when it does not. */
void bystander_goes_on(struct bystander *b, unsigned n);

/* A connection that speaks bytes. */
int raw_connect(const char *path); /* closed at the end of the world */
void raw_close(int fd);
void raw_send(int fd, const void *bytes, size_t length);
void raw_say(int fd, const char *text); /* adds the newline */
/* Returns 0 or -errno. `flags`: MSG_OOB. */
int raw_send_files(int fd, const char *bytes, const int *fds, unsigned nfds, int flags);

/* The next line as JSON, NULL when the connection has ended; fails the test when none comes. */
struct json_object *raw_hear(int fd);

/* The connection ends, and nothing more comes. */
void raw_hear_end(int fd);

/* An answer with that id. */
void raw_hear_result(int fd, uint64_t id);

/* An answer with that error code, and a sentence; returns it. */
struct json_object *raw_hear_error(int fd, int code);
#define assert_error(fd, code) json_object_put(raw_hear_error(fd, code))

/* A client that says hello, closed at the end of the world; and one call that must succeed. */
struct gp_client *client_of(const struct world *w);
void client_close(struct gp_client *client);
void close_all_clients(void);
struct json_object *ask(struct gp_client *client, const char *method, struct json_object *params);
uint64_t ask_counter(struct gp_client *client, const char *name);

/* Until the counter is at least that; fails the test when it does not come. */
void await_counter(struct gp_client *client, const char *name, uint64_t least);

/* The server's loop does not turn without need. */
void assert_sleeps(struct gp_client *client);

/* Files that this process has open; and until it has that many. */
unsigned open_files(void);
void await_files(unsigned n);

/* {"key": value, ...} in C. */
struct json_object *object(const char *text);
uint64_t number(struct json_object *object, const char *key);

#endif
