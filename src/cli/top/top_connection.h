/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connection to the daemon, which never waits for it: gp_top_connection_work does what can be
 * done now, and whoever polls calls it again when gp_top_connection_fd is readable or
 * gp_top_connection_due has come. A daemon that goes away is looked for every second.
 */
#ifndef GP_CLI_TOP_TOP_CONNECTION_H
#define GP_CLI_TOP_TOP_CONNECTION_H

#include "cli/top/top_snapshot.h"
#include "rpc/client.h"

#define GP_TOP_COMMANDS 16 /* that have not been answered */

/* What gp_top_connection_work has done. */
enum gp_top_read {
	GP_TOP_SNAPSHOT = 1u << 0, /* `shot` is new and whole: the caller takes it */
	GP_TOP_MESSAGE = 1u << 1,  /* `said` is the answer to an order */
	GP_TOP_TROUBLE = 1u << 2,  /* `trouble` has changed */
	GP_TOP_LOST = 1u << 3,     /* the daemon went away: what it counted is over */
};

struct gp_top_connection {
	uint64_t every_ns; /* between two shots */
	int device;        /* -1: all */
	bool keep_json;

	struct gp_top_snapshot snapshot;
	char message[384];
	bool refused;            /* ... and it was not done */
	struct gp_error trouble; /* why there is no news; .code 0 = there is */
	bool was_there;          /* there has been a shot */

	struct gp_client *client; /* NULL: not connected */
	char server[64];          /* what hello said */
	uint64_t due_ns;          /* the next shot, or attempt to connect */
	int64_t question;         /* its id; 0 = none is open */
	enum { GP_TOP_HELLO, GP_TOP_DEVICES, GP_TOP_TASKS } about;
	unsigned asked_device; /* GP_TOP_TASKS: its place in `coming` */
	uint64_t asked_ns;     /* when it was asked */
	struct gp_top_snapshot coming;
	unsigned ncommands;
	struct gp_top_command {
		int64_t id;
		char whom[96]; /* "4711 train" */
		char done[96]; /* what it is when it is done: "held" */
	} command[GP_TOP_COMMANDS];
};

/* enum gp_top_read. */
unsigned gp_top_connection_work(struct gp_top_connection *link, uint64_t now_ns);
uint64_t gp_top_connection_due(const struct gp_top_connection *link, uint64_t now_ns);
int gp_top_connection_fd(const struct gp_top_connection *link); /* -1: none */

/* The next shot is due now. */
void gp_top_connection_hurry(struct gp_top_connection *link);

/* Asks the daemon to do something. Takes `params`. What came of it is said later; -errno with a
 * sentence: it could not be asked. */
int gp_top_command(struct gp_top_connection *link, const char *method, struct json_object *params,
                   const char *whom, const char *done, struct gp_error *err);

void gp_top_connection_end(struct gp_top_connection *link);

#endif
