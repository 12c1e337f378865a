/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connection of gpreempt top to the daemon. No function blocks. The caller polls: it calls
 * gp_top_connection_work again when gp_top_connection_fd is readable or the time
 * gp_top_connection_due is reached. After a lost connection it connects again every second.
 */
#ifndef GP_CLI_TOP_TOP_CONNECTION_H
#define GP_CLI_TOP_TOP_CONNECTION_H

#include "cli/top/top_snapshot.h"
#include "rpc/client.h"

#define GP_TOP_COMMANDS 16 /* commands without an answer yet, at most */

/* What gp_top_connection_work changed; flags. */
enum gp_top_change {
	GP_TOP_SNAPSHOT = 1u << 0, /* `snapshot` is new and complete */
	GP_TOP_MESSAGE = 1u << 1,  /* `message` is the answer to a command */
	GP_TOP_TROUBLE = 1u << 2,  /* `trouble` has changed */
	GP_TOP_LOST = 1u << 3,     /* the connection was lost: counters of the daemon start again */
};

struct gp_top_connection {
	uint64_t every_ns; /* between two snapshots */
	int device;        /* -1: all */
	bool keep_json;    /* see gp_top_read_tasks */

	struct gp_top_snapshot snapshot;
	char message[384];
	bool refused;            /* `message` says why a command was not carried out */
	struct gp_error trouble; /* why no snapshot comes; .code is 0 without trouble */
	bool had_snapshot;       /* at least one snapshot has come */

	struct gp_client *client; /* owned; NULL: not connected */
	char server[64];          /* name and version from the answer to hello */
	uint64_t due_ns;          /* time of the next snapshot or attempt to connect */
	int64_t question;         /* id of the request under way; 0: none */
	enum {
		GP_TOP_HELLO,
		GP_TOP_DEVICES,
		GP_TOP_TASKS
	} asked;                     /* the method of the request under way */
	unsigned asked_device;       /* GP_TOP_TASKS: index in `next` */
	uint64_t asked_ns;           /* when the request was sent */
	struct gp_top_snapshot next; /* the snapshot that is being read */
	unsigned ncommands;
	struct gp_top_command {
		int64_t id;
		char target[96]; /* "4711 train" */
		char done[96];   /* message after success: "held" */
	} command[GP_TOP_COMMANDS];
};

/* Sends and receives what is possible now. Returns flags of enum gp_top_change. */
unsigned gp_top_connection_work(struct gp_top_connection *link, uint64_t now_ns);
uint64_t gp_top_connection_due(const struct gp_top_connection *link, uint64_t now_ns);
int gp_top_connection_fd(const struct gp_top_connection *link); /* -1: none */

/* Sends a command to the daemon. Takes ownership of `params`. The answer arrives later as
 * GP_TOP_MESSAGE. 0, or -errno and a message if it could not be sent. */
int gp_top_command(struct gp_top_connection *link, const char *method, struct json_object *params,
		   const char *target, const char *done, struct gp_error *err);

void gp_top_connection_end(struct gp_top_connection *link);

#endif
